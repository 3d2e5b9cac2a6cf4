// SPDX-License-Identifier: Apache-2.0
// The rules of the Clock Control API (CLK-nnn) on the software GPU.
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

namespace {

#define CU_OK(call) ASSERT_EQ(CUDA_SUCCESS, (call))

class ClockControl : public ::testing::Test {
 protected:
  // One for the whole program: the driver looks at the variable once.
  static void SetUpTestSuite() {
    char path[] = "/tmp/sonde-clock-XXXXXX";
    directory = mkdtemp(path);
    setenv("SONDE_STATE_DIR", directory.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory); }
  void SetUp() override {
    CU_OK(cuInit(0));
    CU_OK(cuDeviceGet(&device, 0));
    CU_OK(cuCtxCreate(&context, nullptr, 0, device));
  }
  void TearDown() override {
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    external("none");
    cuCtxDestroy(context);
  }
  CUpti_ClockControl_Status status() {
    auto s = static_cast<CUpti_ClockControl_Status>(99);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlGetStatus(context, &s));
    return s;
  }
  // What another process or an administrator does: the state of the device.
  void external(const std::string& mode, int index = 0) {
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      if (entry.path().filename().string().ends_with("-" + std::to_string(index)))
        std::ofstream(entry.path()) << "sonde-clocks 1 " << mode << " 1\n";
  }
  // Makes the state file, so that external() has one to write.
  void touchState() {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  }
  int smClock() {
    int khz = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, device));
    return khz;
  }

  static inline std::string directory;
  CUdevice device = 0;
  CUcontext context = nullptr;
};

TEST_F(ClockControl, CLK_005_006_007_008_Modes) {
  EXPECT_EQ(1, CUPTI_CLOCK_CONTROL_MODE_BASE);
  EXPECT_EQ(2, CUPTI_CLOCK_CONTROL_MODE_BOOST);
  for (int bad : {0, 3, -1, 0x7fffffff})
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlLock(context, static_cast<CUpti_ClockControl_Mode>(bad)));
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());
}

TEST_F(ClockControl, CLK_009_to_015_Statuses) {
  EXPECT_EQ(1, CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED);
  EXPECT_EQ(2, CUPTI_CLOCK_CONTROL_STATUS_LOCKED);
  EXPECT_EQ(3, CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR);
  EXPECT_EQ(4, CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED);
  EXPECT_EQ(5, CUPTI_CLOCK_CONTROL_STATUS_BOOST_DISABLED);
  touchState();
  external("floor");
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR, status());
}

TEST_F(ClockControl, CLK_001_002_023_LockHoldsForEveryContextUntilUnlock) {
  CUcontext other = nullptr;
  CU_OK(cuCtxCreate(&other, nullptr, 0, device));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
  auto s = CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlGetStatus(other, &s));
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED, s);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());
  CU_OK(cuCtxDestroy(other));
}

TEST_F(ClockControl, CLK_016_017_019_021_StatusChangesNothingAndOutputsStayOnFailure) {
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());
  auto s = CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlGetStatus(nullptr, &s));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlGetStatus(context, nullptr));
  CUcontext gone = nullptr;
  CU_OK(cuCtxCreate(&gone, nullptr, 0, device));
  CU_OK(cuCtxDestroy(gone));
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiClockControlGetStatus(gone, &s));
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED, s);
}

TEST_F(ClockControl, CLK_018_027_032_AnExternalLockIsLeftAlone) {
  touchState();
  external("base");
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED, status());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BOOST));  // no ownership
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED, status());
}

TEST_F(ClockControl, CLK_020_029_GoneContext) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlLock(nullptr, CUPTI_CLOCK_CONTROL_MODE_BASE));
  CUcontext gone = nullptr;
  CU_OK(cuCtxCreate(&gone, nullptr, 0, device));
  CU_OK(cuCtxDestroy(gone));
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiClockControlLock(gone, CUPTI_CLOCK_CONTROL_MODE_BASE));
}

TEST_F(ClockControl, CLK_026_OneLockAProcess) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BOOST));  // changes nothing
  std::string text;
  for (const auto& e : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(e.path());
    std::getline(file, text);
  }
  EXPECT_TRUE(text.starts_with("sonde-clocks 1 base")) << text;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());  // one unlock is enough
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());
}

TEST_F(ClockControl, CLK_030_031_033_034_UnlockIsAlwaysSafe) {
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BOOST));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
}

TEST_F(ClockControl, ThreadsThatRaceMakeOneLock) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 10; ++i)
          if (t % 2 ? cuptiClockControlUnlock() : cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE))
            ++failures;
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(0, failures.load());
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());
  }
}

// CLK-024: nothing is cleaned up at exit. A child that locks and ends leaves
// the lock, which is an external one for us.
TEST_F(ClockControl, CLK_024_ALockOutlivesItsProcess) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  ASSERT_EQ(0, std::system(("SONDE_STATE_DIR=" + directory + " " + self +
                            " --gtest_also_run_disabled_tests "
                            "--gtest_filter=*DISABLED_LockAndEnd >/dev/null 2>&1")
                               .c_str()));
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED, status());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED, status());
}

TEST(ClockControlChild, DISABLED_LockAndEnd) {
  CUcontext c = nullptr;
  CU_OK(cuInit(0));
  CU_OK(cuCtxCreate(&c, nullptr, 0, 0));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(c, CUPTI_CLOCK_CONTROL_MODE_BASE));
}

// Run with models that lack rights: see CMakeLists.txt.
TEST_F(ClockControl, DISABLED_CLK_007_029_BoostWithoutRights) {
  EXPECT_EQ(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BOOST));
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());  // no fall-back to base
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
}

TEST_F(ClockControl, DISABLED_CLK_003_022_028_PartitionedDevice) {
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());
  // Locked from outside, the same call succeeds.
  std::ofstream(directory + "/" + std::getenv("SONDE_TEST_CLOCK_FILE")) << "sonde-clocks 1 base 1\n";
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED, status());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED, status());
}

TEST_F(ClockControl, CLK_004_025_WithoutALockNothingIsDifferent) {
  EXPECT_GT(smClock(), 0);
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED, status());  // CLK-010: promises nothing about the clock
}

}  // namespace
