// SPDX-License-Identifier: Apache-2.0
//
// Clocks, against a stand-in for NVML (nvml_stand_in.cpp). No test touches the
// settings of a card.
#include "platform/nvidia/nvml.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace sonde::platform::nvidia {
namespace {

class Nvml : public ::testing::Test {
 protected:
  void SetUp() override { nvmlForget(); }
  void TearDown() override {
    for (const char* name : {"NVML_DENY", "NVML_MIG", "NVML_REASONS"}) unsetenv(name);
  }
  static constexpr const char* kBus = "0000:01:00.0";
  SondeClockInfo info{sizeof(SondeClockInfo)};
};

TEST_F(Nvml, TellsWhatTheCardSays) {
  setenv("NVML_REASONS", "4", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));
  EXPECT_EQ(1200u, info.smClockMHz);
  EXPECT_EQ(2600u, info.memoryClockMHz);
  EXPECT_EQ(1100u, info.baseClockMHz);
  EXPECT_EQ(1980u, info.boostClockMHz);
  EXPECT_EQ(41u, info.temperatureC);
  EXPECT_EQ(123456u, info.powerMilliwatts);
  EXPECT_EQ(0u, info.fanSpeedPercent);  // it has no fan
  EXPECT_EQ(4u, info.throttleReasons);
}

TEST_F(Nvml, AReasonThatHasNoNameIsUnknown) {
  setenv("NVML_REASONS", "96", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));
  EXPECT_EQ(0x80000000u, info.throttleReasons);
}

TEST_F(Nvml, LocksAndUnlocks) {
  uint32_t status = 0;
  int ours = -1;
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockStatus(kBus, &status, &ours));
  EXPECT_EQ(1u, status);
  EXPECT_EQ(0, ours);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockLock(kBus, 2));
  EXPECT_STREQ("1980-1980", std::getenv("NVML_LOCKED"));
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockLock(kBus, 1));
  EXPECT_STREQ("1100-1100", std::getenv("NVML_LOCKED"));
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockStatus(kBus, &status, &ours));
  EXPECT_EQ(2u, status);
  EXPECT_EQ(1, ours);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockUnlock(kBus));
  EXPECT_STREQ("", std::getenv("NVML_LOCKED"));
}

TEST_F(Nvml, WithoutPermissionNothingIsLocked) {
  setenv("NVML_DENY", "1", 1);
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, nvmlClockLock(kBus, 1));
  uint32_t status = 0;
  int ours = -1;
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockStatus(kBus, &status, &ours));
  EXPECT_EQ(1u, status);
}

TEST_F(Nvml, ADividedCardIsNotLocked) {
  setenv("NVML_MIG", "1", 1);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlClockLock(kBus, 1));
}

TEST_F(Nvml, WhatTheLibraryHasNotIsNotSupported) {
  uint32_t enabled = 0, pid = 0;  // the stand-in has no such function
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlAutoBoost(kBus, &enabled, &pid));
}

}  // namespace
}  // namespace sonde::platform::nvidia
