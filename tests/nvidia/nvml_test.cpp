// SPDX-License-Identifier: Apache-2.0
//
// Clocks, against a stand-in for NVML (nvml_stand_in.cpp). No test touches the
// settings of a card.
#include "platform/nvidia/nvml.h"

#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sonde::platform::nvidia {
namespace {

class Nvml : public ::testing::Test {
 protected:
  void SetUp() override {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library != nullptr && dlsym(library, "nvmlStandIn") != nullptr) << "this is not the stand-in";
    old = dlsym(library, "nvmlDeviceSetGpuLockedClocks") == nullptr;
    char path[] = "/tmp/sonde-nvml-XXXXXX";
    directory = mkdtemp(path);
    setenv("NVML_STAND_IN", (directory + "/card").c_str(), 1);
    nvmlForget();
  }
  void TearDown() override {
    for (const char* name : {"NVML_DENY", "NVML_DENY_QUERIES", "NVML_MIG", "NVML_REASONS", "NVML_NO_LIMITS",
                             "NVML_AUTO_BOOST", "CUDA_AUTO_BOOST", "NVML_STAND_IN"})
      unsetenv(name);
    std::filesystem::remove_all(directory);
  }
  // How the card is locked; "" when it is not.
  std::string card() const {
    std::ifstream in(directory + "/card");
    std::string text;
    in >> text;
    return text;
  }
  uint32_t status() {
    uint32_t s = 77;
    ours = -1;
    EXPECT_EQ(CUDA_SUCCESS, nvmlClockStatus(kBus, &s, &ours));
    return s;
  }
  static constexpr const char* kBus = "0000:01:00.0";
  SondeClockInfo info{sizeof(SondeClockInfo)};
  std::string directory;
  bool old = false;
  int ours = -1;
};
class NvmlOfAnOldDriver : public Nvml {};

TEST_F(Nvml, TellsWhatTheCardSays) {
  setenv("NVML_REASONS", "4", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));
  EXPECT_EQ(1200u, info.smClockMHz);
  EXPECT_EQ(2600u, info.memoryClockMHz);
  EXPECT_EQ(1105u, info.baseClockMHz);
  EXPECT_EQ(1980u, info.boostClockMHz);
  EXPECT_EQ(5u, info.pcieLinkGen);
  EXPECT_EQ(16u, info.pcieLinkWidth);
  EXPECT_EQ(41u, info.temperatureC);
  EXPECT_EQ(123456u, info.powerMilliwatts);
  EXPECT_EQ(700000u, info.powerLimitMilliwatts);
  EXPECT_EQ(~0u, info.fanSpeedPercent);  // it has no fan
  EXPECT_EQ(4u, info.throttleReasons);
}

TEST_F(Nvml, AReasonThatHasNoNameIsUnknown) {
  setenv("NVML_REASONS", "96", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));
  EXPECT_EQ(0x80000000u, info.throttleReasons);
  setenv("NVML_REASONS", "41", 1);  // idle, slowdown and one of those
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));
  EXPECT_EQ(0x80000009u, info.throttleReasons);
  setenv("NVML_DENY_QUERIES", "1", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));
  EXPECT_EQ(0x40000000u, info.throttleReasons);  // not told
}

TEST_F(Nvml, CLK_006_007_LocksToRatedAndToBoostClocks) {
  EXPECT_EQ(1u, status());
  EXPECT_EQ(0, ours);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockLock(kBus, 1));
  EXPECT_EQ("4294967041-4294967041", card());  // the rated clock has a name
  EXPECT_EQ(2u, status());
  EXPECT_EQ(1, ours);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));
  EXPECT_EQ(1095u, info.smClockMHz);
  EXPECT_EQ(2u, info.throttleReasons);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockUnlock(kBus));
  EXPECT_EQ("", card());
  EXPECT_EQ(1u, status());
  // 1970 MHz are allowed; of the clocks that go with the fastest memory clock 1965 comes next.
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockLock(kBus, 2));
  EXPECT_EQ("1965-1965", card());
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, nvmlClockLock(kBus, 3));
}

TEST_F(Nvml, CLK_006_ADriverThatKnowsNoNamesGetsNumbers) {
  setenv("NVML_NO_LIMITS", "1", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockLock(kBus, 1));
  EXPECT_EQ("1095-1095", card());  // supported, and not above 1105
}

TEST_F(Nvml, CLK_011_032_TheLockOfAnotherIsSeenAndLeft) {
  std::ofstream(directory + "/card") << "1500-1500";
  EXPECT_EQ(2u, status());
  EXPECT_EQ(0, ours);
  EXPECT_EQ(CUDA_SUCCESS, nvmlClockUnlock(kBus));
  EXPECT_EQ("1500-1500", card());
}

TEST_F(Nvml, CLK_007_029_WithoutPermissionNothingIsLocked) {
  setenv("NVML_DENY", "1", 1);
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, nvmlClockLock(kBus, 1));
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, nvmlClockLock(kBus, 2));
  EXPECT_EQ("", card());
  EXPECT_EQ(1u, status());
  // Rights that were lost after the lock: it stays ours.
  unsetenv("NVML_DENY");
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockLock(kBus, 2));
  setenv("NVML_DENY", "1", 1);
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, nvmlClockUnlock(kBus));
  EXPECT_EQ(2u, status());
  EXPECT_EQ(1, ours);
}

TEST_F(Nvml, CLK_020_AStatusThatIsNotToldIsAnError) {
  setenv("NVML_DENY_QUERIES", "1", 1);
  uint32_t s = 77;
  EXPECT_EQ(CUDA_ERROR_NOT_PERMITTED, nvmlClockStatus(kBus, &s, &ours));
  EXPECT_EQ(77u, s);
}

TEST_F(Nvml, CLK_003_ADividedCardIsNotLocked) {
  setenv("NVML_MIG", "1", 1);
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlClockLock(kBus, 1));
  EXPECT_EQ("", card());
  std::ofstream(directory + "/card") << "1500-1500";
  EXPECT_EQ(2u, status());
}

TEST_F(Nvml, CLK_013_014_BoostThatIsNotAsUsual) {
  setenv("NVML_AUTO_BOOST", "1,0", 1);
  EXPECT_EQ(4u, status());
  setenv("NVML_AUTO_BOOST", "0,1", 1);
  EXPECT_EQ(5u, status());
  setenv("NVML_AUTO_BOOST", "1,1", 1);
  EXPECT_EQ(1u, status());
}

TEST_F(Nvml, ACT_113_AutoBoost) {
  uint32_t enabled = 7, pid = 8;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlAutoBoost(kBus, &enabled, &pid));  // of newer cards
  EXPECT_EQ(7u, enabled);
  setenv("NVML_AUTO_BOOST", "0,1", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlAutoBoost(kBus, &enabled, &pid));
  EXPECT_EQ(0u, enabled);
  EXPECT_EQ(0u, pid);
  setenv("CUDA_AUTO_BOOST", "0", 1);
  ASSERT_EQ(CUDA_SUCCESS, nvmlAutoBoost(kBus, &enabled, &pid));
  EXPECT_EQ(static_cast<uint32_t>(getpid()), pid);
  setenv("CUDA_AUTO_BOOST", "1", 1);  // not what holds
  ASSERT_EQ(CUDA_SUCCESS, nvmlAutoBoost(kBus, &enabled, &pid));
  EXPECT_EQ(0u, pid);
}

// Run with the other stand-in: see CMakeLists.txt.
TEST_F(NvmlOfAnOldDriver, DISABLED_CLK_003_WhatTheLibraryHasNotIsNotSupported) {
  ASSERT_TRUE(old);
  ASSERT_EQ(CUDA_SUCCESS, nvmlClockInfo(kBus, &info));  // by the older names
  EXPECT_EQ(1200u, info.smClockMHz);
  EXPECT_EQ(0x40000000u, info.throttleReasons);
  uint32_t s = 77, enabled = 7, pid = 8;
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlClockLock(kBus, 1));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlClockLock(kBus, 2));
  EXPECT_EQ(CUDA_SUCCESS, nvmlClockUnlock(kBus));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlClockStatus(kBus, &s, &ours));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, nvmlAutoBoost(kBus, &enabled, &pid));
  EXPECT_EQ(77u, s);
}

}  // namespace
}  // namespace sonde::platform::nvidia
