// SPDX-License-Identifier: Apache-2.0
// Callbacks of real calls on the software GPU.
#include <generated_cuda_runtime_api_meta.h>

#include "gpu_trace.h"

namespace sonde::test {
namespace {

struct Seen {
  std::string text;
  uint32_t launches = 0, gridX = 0, contextUid = 0, correlation = 0;
  std::string symbol;
  int result = -1;
  bool same = false;
};
Seen seen;

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* raw) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    const auto* data = static_cast<const CUpti_CallbackData*>(raw);
    seen.text += data->callbackSite == CUPTI_API_ENTER ? ">" : "<";
    seen.text += data->functionName;
    seen.text += ' ';
    if (cbid != CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) return;
    if (data->callbackSite == CUPTI_API_ENTER) {
      ++seen.launches;
      const auto* params = static_cast<const cudaLaunchKernel_v7000_params*>(data->functionParams);
      seen.gridX = params->gridDim.x;
      seen.symbol = data->symbolName != nullptr ? data->symbolName : "";
      seen.contextUid = data->contextUid;
      seen.correlation = data->correlationId;
      *data->correlationData = 4711;
    } else {
      seen.result = *static_cast<const cudaError_t*>(data->functionReturnValue);
      seen.same = *data->correlationData == 4711;
    }
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    seen.text += "resource" + std::to_string(cbid) + ' ';
  } else if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
    seen.text += "sync" + std::to_string(cbid) + ' ';
  }
}

using GpuCallbacks = GpuTrace;

TEST_F(GpuCallbacks, RuntimeResourceAndSynchronize) {
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  seen = {};
  CUpti_SubscriberHandle subscriber = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber, called, nullptr));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  ASSERT_EQ(cudaSuccess, launch(out, 5, 32, 0, stream));
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaStreamDestroy(stream));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber));
  EXPECT_EQ(">cudaStreamCreate resource" + std::to_string(CUPTI_CBID_RESOURCE_STREAM_CREATED) +
                " <cudaStreamCreate >cudaLaunchKernel <cudaLaunchKernel >cudaStreamSynchronize sync" +
                std::to_string(CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED) +
                " <cudaStreamSynchronize >cudaStreamDestroy resource" +
                std::to_string(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING) + " <cudaStreamDestroy ",
            seen.text);
  EXPECT_EQ(1u, seen.launches);
  EXPECT_EQ(5u, seen.gridX);
  EXPECT_EQ(kFill, seen.symbol);
  EXPECT_EQ(contextId, seen.contextUid);
  EXPECT_EQ(0, seen.result);
  EXPECT_TRUE(seen.same);
  finish();
  const auto kernels = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, kernels.size());
  EXPECT_EQ(seen.correlation, kernels[0].correlationId);
  CUDA(cudaFree(out));
}

}  // namespace
}  // namespace sonde::test
