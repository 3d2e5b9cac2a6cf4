// SPDX-License-Identifier: Apache-2.0
// What callbacks see of calls that do their work: the arguments by the names of
// the parameter structures, outputs once they are there, what is returned, whose
// context it is. (parameter_values_test.cpp compares the structures of all
// functions.)
#include <generated_cuda_meta.h>
#include <generated_cuda_runtime_api_meta.h>

#include <functional>
#include <string>

#include "gpu_trace.h"

namespace sonde::test {
namespace {

// What is looked at in one call.
struct Site {
  int seen = 0;
  std::function<void(const CUpti_CallbackData&)> look;
};
struct Watch {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId cbid;
  Site enter, exit;
  uint32_t correlation = 0;
  uint64_t* slot = nullptr;
  int result = -1;
};
Watch* watch = nullptr;

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* raw) {
  if (watch == nullptr || domain != watch->domain || cbid != watch->cbid) return;
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  Site& site = data.callbackSite == CUPTI_API_ENTER ? watch->enter : watch->exit;
  ++site.seen;
  if (data.callbackSite == CUPTI_API_ENTER) {
    watch->correlation = data.correlationId;
    watch->slot = data.correlationData;
    *data.correlationData = 0x600d + cbid;
    EXPECT_EQ(nullptr, data.functionReturnValue);
  } else {
    EXPECT_EQ(watch->correlation, data.correlationId);
    EXPECT_EQ(watch->slot, data.correlationData);
    EXPECT_EQ(0x600du + cbid, *data.correlationData);
    watch->result = *static_cast<const int*>(data.functionReturnValue);
  }
  if (site.look) site.look(data);
}

class GpuCallbackValues : public GpuTrace {
 protected:
  void SetUp() override {
    GpuTrace::SetUp();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber_, called, nullptr));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&context_));
  }
  void TearDown() override {
    watch = nullptr;
    GpuTrace::TearDown();
  }
  // Makes the call with both looks; what it returned.
  template <typename Params>
  int during(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, std::function<int()> call,
             std::function<void(const Params&)> enter, std::function<void(const Params&)> exit) {
    Watch w{domain, cbid, {}, {}};
    w.enter.look = [&](const CUpti_CallbackData& data) {
      last_ = data;
      enter(*static_cast<const Params*>(data.functionParams));
    };
    w.exit.look = [&](const CUpti_CallbackData& data) {
      last_ = data;
      exit(*static_cast<const Params*>(data.functionParams));
    };
    watch = &w;
    const int result = call();
    watch = nullptr;
    EXPECT_EQ(1, w.enter.seen);
    EXPECT_EQ(1, w.exit.seen);
    EXPECT_EQ(result, w.result);
    return result;
  }
  CUpti_SubscriberHandle subscriber_ = nullptr;
  CUcontext context_ = nullptr;
  CUpti_CallbackData last_{};  // of the site that is looked at
};

#define OF_DRIVER(name) CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_##name
#define OF_RUNTIME(name) CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_##name

TEST_F(GpuCallbackValues, OutputsAreThereAtTheExitAndNotBefore) {
  void* const unset = reinterpret_cast<void*>(0x5e7);
  void *memory = unset, *inExit = nullptr;
  during<cudaMalloc_v3020_params>(
      OF_RUNTIME(cudaMalloc_v3020), [&] { return cudaMalloc(&memory, 12345); },
      [&](const auto& p) {
        EXPECT_EQ(&memory, p.devPtr);
        EXPECT_EQ(unset, *p.devPtr);
        EXPECT_EQ(12345u, p.size);
        EXPECT_STREQ("cudaMalloc", last_.functionName);
        EXPECT_EQ(nullptr, last_.symbolName);
        EXPECT_EQ(context_, last_.context);
        EXPECT_EQ(contextId, last_.contextUid);
      },
      [&](const auto& p) {
        EXPECT_EQ(12345u, p.size);
        inExit = *p.devPtr;
      });
  EXPECT_NE(unset, memory);
  EXPECT_EQ(memory, inExit);

  CUdeviceptr address = 1, addressInExit = 0;
  during<cuMemAlloc_v2_params>(
      OF_DRIVER(cuMemAlloc_v2), [&] { return cuMemAlloc(&address, 23456); },
      [&](const auto& p) {
        EXPECT_EQ(1u, *p.dptr);
        EXPECT_EQ(23456u, p.bytesize);
        EXPECT_STREQ("cuMemAlloc_v2", last_.functionName);
      },
      [&](const auto& p) { addressInExit = *p.dptr; });
  EXPECT_EQ(address, addressInExit);

  CUstream stream = nullptr, streamInExit = nullptr;
  during<cuStreamCreate_params>(
      OF_DRIVER(cuStreamCreate), [&] { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); },
      [&](const auto& p) {
        EXPECT_EQ(nullptr, *p.phStream);
        EXPECT_EQ(static_cast<unsigned>(CU_STREAM_NON_BLOCKING), p.Flags);
      },
      [&](const auto& p) { streamInExit = *p.phStream; });
  EXPECT_NE(nullptr, stream);
  EXPECT_EQ(stream, streamInExit);

  int count = -5, countInExit = 0;
  during<cudaGetDeviceCount_v3020_params>(
      OF_RUNTIME(cudaGetDeviceCount_v3020), [&] { return cudaGetDeviceCount(&count); },
      [&](const auto& p) { EXPECT_EQ(-5, *p.count); }, [&](const auto& p) { countInExit = *p.count; });
  EXPECT_EQ(2, countInExit);
  CU(cuStreamDestroy(stream));
  CU(cuMemFree(address));
  CUDA(cudaFree(memory));
}

TEST_F(GpuCallbackValues, LaunchesAndCopiesWithEveryArgument) {
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 1 << 20));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  uint32_t value = 7;
  void* arguments[] = {&out, &value};
  const auto launched = [&](const cudaLaunchKernel_v7000_params& p) {
    EXPECT_EQ(static_cast<const void*>(&fillStub), p.func);
    EXPECT_EQ(2u, p.gridDim.x);
    EXPECT_EQ(3u, p.gridDim.y);
    EXPECT_EQ(4u, p.gridDim.z);
    EXPECT_EQ(5u, p.blockDim.x);
    EXPECT_EQ(6u, p.blockDim.y);
    EXPECT_EQ(7u, p.blockDim.z);
    EXPECT_EQ(static_cast<void**>(arguments), p.args);
    EXPECT_EQ(88u, p.sharedMem);
    EXPECT_EQ(stream, p.stream);
    EXPECT_STREQ(kFill, last_.symbolName);
    EXPECT_STREQ("cudaLaunchKernel", last_.functionName);
  };
  EXPECT_EQ(0, during<cudaLaunchKernel_v7000_params>(
                   OF_RUNTIME(cudaLaunchKernel_v7000),
                   [&] { return cudaLaunchKernel(&fillStub, dim3(2, 3, 4), dim3(5, 6, 7), arguments, 88, stream); },
                   launched, launched));
  CUfunction function = nullptr;
  CUDA(cudaGetFuncBySymbol(&function, &fillStub));
  const auto inDriver = [&](const cuLaunchKernel_params& p) {
    EXPECT_EQ(function, p.f);
    EXPECT_EQ(2u, p.gridDimX);
    EXPECT_EQ(3u, p.gridDimY);
    EXPECT_EQ(4u, p.gridDimZ);
    EXPECT_EQ(5u, p.blockDimX);
    EXPECT_EQ(6u, p.blockDimY);
    EXPECT_EQ(7u, p.blockDimZ);
    EXPECT_EQ(99u, p.sharedMemBytes);
    EXPECT_EQ(stream, p.hStream);
    EXPECT_EQ(static_cast<void**>(arguments), p.kernelParams);
    EXPECT_EQ(nullptr, p.extra);
    EXPECT_STREQ(kFill, last_.symbolName);
  };
  EXPECT_EQ(0, during<cuLaunchKernel_params>(
                   OF_DRIVER(cuLaunchKernel),
                   [&] { return cuLaunchKernel(function, 2, 3, 4, 5, 6, 7, 99, stream, arguments, nullptr); }, inDriver,
                   inDriver));
  std::vector<uint32_t> host(100);
  const auto copied = [&](const cudaMemcpyAsync_v3020_params& p) {
    EXPECT_EQ(host.data(), p.dst);
    EXPECT_EQ(out, p.src);
    EXPECT_EQ(400u, p.count);
    EXPECT_EQ(cudaMemcpyDeviceToHost, p.kind);
    EXPECT_EQ(stream, p.stream);
    EXPECT_EQ(nullptr, last_.symbolName) << "launches alone have one";
  };
  EXPECT_EQ(
      0, during<cudaMemcpyAsync_v3020_params>(
             OF_RUNTIME(cudaMemcpyAsync_v3020),
             [&] { return cudaMemcpyAsync(host.data(), out, 400, cudaMemcpyDeviceToHost, stream); }, copied, copied));
  CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(7u + 9, host[9]) << "the kernel goes by x alone";
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(out));
}

TEST_F(GpuCallbackValues, WhatFailsReturnsItsErrorAndNoOutput) {
  void* memory = nullptr;
  const int refused = during<cudaMalloc_v3020_params>(
      OF_RUNTIME(cudaMalloc_v3020), [&] { return cudaMalloc(&memory, size_t{1} << 60); },
      [&](const auto& p) { EXPECT_EQ(size_t{1} << 60, p.size); },
      [&](const auto& p) { EXPECT_EQ(nullptr, *p.devPtr); });
  EXPECT_EQ(cudaErrorMemoryAllocation, refused);
  cudaGetLastError();
  const int unknown = during<cuMemFree_v2_params>(
      OF_DRIVER(cuMemFree_v2), [] { return cuMemFree(0x77); }, [](const auto& p) { EXPECT_EQ(0x77u, p.dptr); },
      [](const auto& p) { EXPECT_EQ(0x77u, p.dptr); });
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, unknown);
}

// A call that makes another context current: the old one at its entry, the new
// one at its exit.
TEST_F(GpuCallbackValues, TheContextIsTheCurrentOneOfEachSite) {
  CUdevice device = 0;
  CU(cuDeviceGet(&device, 1));
  CUcontext made = nullptr, inExit = nullptr;
  uint32_t uidInExit = 0, uid = 0;
  EXPECT_EQ(0, during<cuCtxCreate_v4_params>(
                   OF_DRIVER(cuCtxCreate_v4), [&] { return cuCtxCreate(&made, nullptr, CU_CTX_SCHED_YIELD, device); },
                   [&](const auto& p) {
                     EXPECT_EQ(&made, p.pctx);
                     EXPECT_EQ(nullptr, p.ctxCreateParams);
                     EXPECT_EQ(static_cast<unsigned>(CU_CTX_SCHED_YIELD), p.flags);
                     EXPECT_EQ(device, p.dev);
                     EXPECT_EQ(context_, last_.context);
                     EXPECT_EQ(contextId, last_.contextUid);
                   },
                   [&](const auto& p) {
                     EXPECT_EQ(*p.pctx, last_.context);
                     inExit = last_.context;
                     uidInExit = last_.contextUid;
                   }));
  EXPECT_EQ(made, inExit);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(made, &uid));
  EXPECT_EQ(uid, uidInExit);
  EXPECT_NE(contextId, uid);
  CU(cuCtxDestroy(made));
  CU(cuCtxSetCurrent(context_));
}

}  // namespace
}  // namespace sonde::test
