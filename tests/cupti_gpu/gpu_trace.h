// SPDX-License-Identifier: Apache-2.0
// A traced program on the software GPU: kernels registered with the runtime,
// and the records that came of what the test did.
#ifndef SONDE_TESTS_CUPTI_GPU_GPU_TRACE_H_
#define SONDE_TESTS_CUPTI_GPU_GPU_TRACE_H_

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "tests/cupti/collector.h"
#include "tests/runtime/fat_binary.h"

namespace sonde::test {

// fill: out[i] = value + i. Declares 64 bytes of shared memory.
inline constexpr char kTracePtx[] = R"(
.version 6.4
.target sm_50
.address_size 64
.visible .entry _Z4fillPjj(.param .u64 out, .param .u32 value)
{
    .reg .b32   i, a, b, c;
    .reg .b64   at, offset;
    .shared .align 4 .b8 room[64];
    mov.u32     a, %ctaid.x;
    mov.u32     b, %ntid.x;
    mov.u32     c, %tid.x;
    mad.lo.u32  i, a, b, c;
    ld.param.u32 b, [value];
    add.u32     b, b, i;
    mov.u32     a, room;
    st.shared.u32 [a], b;
    ld.param.u64 at, [out];
    mul.wide.u32 offset, i, 4;
    add.s64     at, at, offset;
    st.global.u32 [at], b;
    ret;
}
)";
inline char fillStub;
inline constexpr char kFill[] = "_Z4fillPjj";

#define CUDA(call) ASSERT_EQ(cudaSuccess, call)
#define CU(call) ASSERT_EQ(CUDA_SUCCESS, call)

class GpuTrace : public ::testing::Test {
 protected:
  using Record = testing_support::Record;
  static void SetUpTestSuite() {
    if (binary == nullptr) {
      binary = new FatBinary(kTracePtx);
      binary->kernel(&fillStub, kFill);
      __cudaRegisterFatBinaryEnd(binary->handle());
    }
    ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
    ASSERT_EQ(cudaSuccess, cudaFree(nullptr));
    CUcontext context = nullptr;
    ASSERT_EQ(CUDA_SUCCESS, cuCtxGetCurrent(&context));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(context, &contextId));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamIdEx(context, nullptr, 0, &nullStream));
    // Compiled before anything is counted.
    uint32_t* memory = nullptr;
    ASSERT_EQ(cudaSuccess, allocate(&memory, 4096));
    ASSERT_EQ(cudaSuccess, launch(memory, 1, 1, 0));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    cudaFree(memory);
  }
  void SetUp() override { collector_.start(); }
  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  }
  void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
    for (CUpti_ActivityKind kind : kinds) ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind)) << kind;
  }
  static cudaError_t allocate(auto** memory, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
  }
  static cudaError_t launch(uint32_t* out, uint32_t blocks, uint32_t threads, size_t shared,
                            cudaStream_t stream = nullptr) {
    uint32_t value = 7;
    void* arguments[] = {&out, &value};
    return cudaLaunchKernel(&fillStub, dim3(blocks), dim3(threads), arguments, shared, stream);
  }
  template <typename T>
  std::vector<T> of(CUpti_ActivityKind kind) {
    std::vector<T> out;
    for (const Record& r : collector_.records(kind)) out.push_back(r.as<T>());
    return out;
  }
  // In the order of the calls that made them: the device's work may be done by
  // more than one thread, and buffers keep the order within a thread only.
  template <typename T>
  std::vector<T> byCall(CUpti_ActivityKind kind) {
    std::vector<T> out = of<T>(kind);
    std::stable_sort(out.begin(), out.end(), [](const T& a, const T& b) { return a.correlationId < b.correlationId; });
    return out;
  }
  void finish() {
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    collector_.flush();
    calls.clear();
    for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER}) {
      for (const auto& call : of<CUpti_ActivityAPI>(kind)) {
        EXPECT_LE(call.start, call.end);
        EXPECT_TRUE(calls.emplace(call.correlationId, call).second) << "correlation ids are unique";
      }
    }
  }
  // The API call that made the record.
  const CUpti_ActivityAPI& callOf(uint32_t correlation) {
    EXPECT_EQ(1u, calls.count(correlation)) << correlation;
    return calls[correlation];
  }
  template <typename T>
  void within(const T& record, const CUpti_ActivityAPI& call) {
    EXPECT_LE(call.start, record.start);
    EXPECT_LE(record.start, record.end);
    EXPECT_LE(record.end, call.end);
  }

  testing_support::Collector& collector_ = testing_support::Collector::instance();
  std::map<uint32_t, CUpti_ActivityAPI> calls;
  inline static uint32_t contextId = 0, nullStream = 0;
  inline static FatBinary* binary = nullptr;
};

}  // namespace sonde::test

#endif  // SONDE_TESTS_CUPTI_GPU_GPU_TRACE_H_
