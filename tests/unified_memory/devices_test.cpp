// SPDX-License-Identifier: Apache-2.0
// Two devices and one allocation.
#include "um.h"

namespace um {
namespace {

class Devices : public UnifiedMemory {
 protected:
  void SetUp() override {
    UnifiedMemory::SetUp();
    int count = 0;
    ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetCount(&count));
    ASSERT_EQ(2, count);
    ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v4(&second_, nullptr, 0, 1));
  }
  void TearDown() override {
    if (second_) cuCtxDestroy(second_);
    UnifiedMemory::TearDown();
  }
  void fillOn(CUcontext context, char* p, size_t bytes, unsigned char value) {
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context));
    deviceFill(p, bytes, value);
  }
  CUcontext second_ = nullptr;
};

TEST_F(Devices, PagesMoveFromDeviceToDevice) {
  char* p = managed(kPage);
  fillOn(context_, p, kPage, 1);
  fillOn(second_, p, kPage, 2);
  const auto moves = records(kDtoD);
  ASSERT_EQ(1u, moves.size());
  EXPECT_EQ(kPage, moves[0].value);
  EXPECT_EQ(0u, moves[0].srcId);
  EXPECT_EQ(1u, moves[0].dstId);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE}, moves[0].flags);
  EXPECT_TRUE(records(kHtoD).empty());
  EXPECT_EQ(2, load(p));
  ASSERT_EQ(1u, records(kDtoH).size());
  EXPECT_EQ(1u, records(kDtoH)[0].srcId);
}

TEST_F(Devices, UMC_018_030_ThrashingNamesAllContenders) {
  char* p = managed(kPage);
  for (int i = 0; i < 4; ++i) {
    fillOn(context_, p, kPage, 1);
    fillOn(second_, p, kPage, 2);
  }
  const auto found = records(kThrashing);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(3u, found[0].srcId);  // bits 0 and 1
  EXPECT_EQ(3u, found[0].processors[0]);
  EXPECT_EQ(0u, found[0].flags);  // the CPU has no part in it
}

}  // namespace
}  // namespace um
