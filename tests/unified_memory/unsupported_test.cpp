// SPDX-License-Identifier: Apache-2.0
// No counters of unified memory: the device's model has none, or they are
// switched off. Built for the newest CUPTI and for that of 6.5.
#include <cstring>

#include "um.h"

namespace um {
namespace {

class Unsupported : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v4(&context_, nullptr, 0, 0));
    Collector::instance().start();  // 6.5 shows itself by the name of this function
  }
  void TearDown() override { cuCtxDestroy(context_); }
  CUcontext context_ = nullptr;
};

TEST_F(Unsupported, ACT_112_ConfiguringAnswersNotSupported) {
#if CUPTI_RECORD_ABI == 6050
  const CUptiResult expected = CUPTI_ERROR_NOT_SUPPORTED;
#else
  const CUptiResult expected = CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE;
#endif
  for (uint32_t kind : {kHtoD, kDtoH, kCpuFault}) {
    auto c = config(kind);
    EXPECT_EQ(expected, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
    c.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES;
    EXPECT_EQ(expected, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
  }
  // What is not valid is said first.
  auto c = config(0);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
}

TEST_F(Unsupported, SixFiveKnowsThreeCounters) {
  auto c = config(kGpuFault);
#if CUPTI_RECORD_ABI == 6050
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
#else
  EXPECT_EQ(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
#endif
}

TEST_F(Unsupported, AllocationsFollowTheModel) {
  int managed = -1;
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
  CUdeviceptr p = 0;
  const CUresult result = cuMemAllocManaged(&p, kPage, CU_MEM_ATTACH_GLOBAL);
#ifdef UM_SWITCHED_OFF
  EXPECT_EQ(1, managed);
  ASSERT_EQ(CUDA_SUCCESS, result);
  // Every page is open to both sides.
  store(reinterpret_cast<char*>(p), 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8(p, 2, kPage));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(2, load(reinterpret_cast<char*>(p)));
#else
  EXPECT_EQ(0, managed);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, result);
  EXPECT_EQ(0u, p);
#endif
}

}  // namespace
}  // namespace um
