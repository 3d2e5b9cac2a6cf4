// SPDX-License-Identifier: Apache-2.0
// Buffers, flushing, dropping.
#include <cstring>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;

void makeCalls(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
}

class ActivityBuffers : public ::testing::Test {
 protected:
  void SetUp() override {
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  }
  void TearDown() override { EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize()); }
  Collector& collector_ = Collector::instance();
};

size_t dropped() {
  size_t count = ~size_t{0};
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &count));
  return count;
}

TEST_F(ActivityBuffers, ACT_009_ZeroMaxNumRecordsFillsTheBuffer) {
  collector_.bufferSize = 40 * 10 + 16;
  makeCalls(25);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{10, 10, 5}), collector_.recordsPerBuffer());
  EXPECT_EQ(0u, dropped());
}

TEST_F(ActivityBuffers, ACT_010_MaxNumRecordsLimitsBuffer) {
  collector_.maxRecords = 3;
  makeCalls(8);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{3, 3, 2}), collector_.recordsPerBuffer());
}

TEST_F(ActivityBuffers, ACT_007_NullBufferIsARefusal) {
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t* max) {
    *buffer = nullptr;
    *size = 4096;
    *max = 0;
  };
  makeCalls(5);
  collector_.flush();
  EXPECT_EQ(0u, collector_.completions);
  EXPECT_EQ(5u, dropped());
  EXPECT_EQ(0u, dropped());  // ACT-107: reading resets
}

TEST_F(ActivityBuffers, ACT_108_TooSmallABufferComesBackEmptyAndCounts) {
  alignas(8) static uint8_t tiny[39];
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t* max) {
    *buffer = tiny;
    *size = sizeof tiny;
  };
  size_t given = 0;
  collector_.onComplete = [&](uint8_t* buffer, size_t size, size_t valid) {
    EXPECT_EQ(tiny, buffer);
    EXPECT_EQ(39u, size);
    EXPECT_EQ(0u, valid);
    ++given;
  };
  makeCalls(3);
  collector_.flush();
  EXPECT_EQ(3u, given);
  EXPECT_EQ(3u, dropped());
}

}  // namespace
