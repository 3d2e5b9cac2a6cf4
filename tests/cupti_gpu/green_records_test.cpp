// SPDX-License-Identifier: Apache-2.0
// What records say of a green context and of the work in its streams.
#include <map>

#include "gpu_trace.h"

namespace sonde::test {
namespace {

using GreenRecords = GpuTrace;

// A green context on 8 of the 16 multiprocessors: a context of its own, whose work and streams carry its id.
TEST_F(GreenRecords, AContextOfItsOwn) {
  enable({CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
          CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
  CUdevResource whole, half;
  unsigned n = 1;
  CU(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  CU(cuDevSmResourceSplitByCount(&half, &n, &whole, nullptr, 0, 8));
  CUdevResourceDesc description;
  CU(cuDevResourceGenerateDesc(&description, &half, 1));
  CUgreenCtx green;
  CU(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CUcontext context, before;
  CU(cuCtxFromGreenCtx(&context, green));
  uint32_t id = 0, own = 0, created = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(context, &id));
  EXPECT_NE(contextId, id);
  unsigned long long driverId = 0;
  CU(cuCtxGetId(context, &driverId));
  EXPECT_EQ(id, driverId);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamIdEx(context, nullptr, 0, &own));
  EXPECT_NE(nullStream, own);
  CUstream stream;
  CU(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(context, stream, &created));
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  CU(cuCtxGetCurrent(&before));
  CU(cuCtxSetCurrent(context));
  ASSERT_EQ(cudaSuccess, launch(out, 1, 32, 0));
  ASSERT_EQ(cudaSuccess, launch(out, 2, 32, 0, stream));
  CU(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(out), 1, 100, stream));
  CU(cuStreamSynchronize(stream));
  CU(cuCtxSetCurrent(before));
  ASSERT_EQ(cudaSuccess, launch(out, 3, 32, 0));
  finish();
  const auto contexts = of<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT);
  ASSERT_EQ(2u, contexts.size());
  const auto& record = contexts[contexts[0].isGreenContext ? 0 : 1];
  EXPECT_EQ(1, record.isGreenContext);
  EXPECT_EQ(id, record.contextId);
  EXPECT_EQ(contextId, record.parentContextId);
  EXPECT_EQ(8, record.numMultiprocessors);
  EXPECT_EQ(own, record.nullStreamId);
  EXPECT_EQ(0u, record.deviceId);
  std::map<uint32_t, uint32_t> contextOfStream;
  for (const auto& s : of<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM)) contextOfStream[s.streamId] = s.contextId;
  EXPECT_EQ(id, contextOfStream[own]);
  EXPECT_EQ(id, contextOfStream[created]);
  const auto kernels = byCall<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(3u, kernels.size());
  EXPECT_EQ(id, kernels[0].contextId);
  EXPECT_EQ(own, kernels[0].streamId);
  EXPECT_EQ(id, kernels[1].contextId);
  EXPECT_EQ(created, kernels[1].streamId);
  EXPECT_EQ(contextId, kernels[2].contextId);
  EXPECT_EQ(nullStream, kernels[2].streamId);
  const auto sets = of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  ASSERT_EQ(1u, sets.size());
  EXPECT_EQ(id, sets[0].contextId);
  const auto waits = of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  ASSERT_FALSE(waits.empty());
  EXPECT_EQ(id, waits[0].contextId);
  // Enabled later, the kind tells what exists.
  collector_.clear();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONTEXT));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONTEXT));
  finish();
  CU(cuStreamDestroy(stream));
  CU(cuGreenCtxDestroy(green));
  CUDA(cudaFree(out));
}

}  // namespace
}  // namespace sonde::test
