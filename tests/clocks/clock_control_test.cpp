// SPDX-License-Identifier: Apache-2.0
// The rules of the Clock Control API (CLK-nnn) on the software GPU. Who owns a
// lock in cases that cannot be timed here: clock_owner_test.cpp. What a lock is
// good for: clock_cycles_test.cpp.
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "platform/tools_api.h"

namespace {

namespace fs = std::filesystem;

#define CU_OK(call) ASSERT_EQ(CUDA_SUCCESS, (call))

class ClockControl : public ::testing::Test {
 protected:
  // One for the whole program: the driver looks at the variable once.
  static void SetUpTestSuite() {
    const char* given = std::getenv("SONDE_TEST_STATE_DIR");  // of the parent
    char path[] = "/tmp/sonde-clock-XXXXXX";
    directory = given ? given : mkdtemp(path);
    owned = !given;
    setenv("SONDE_STATE_DIR", directory.c_str(), 1);
  }
  static void TearDownTestSuite() {
    if (owned) fs::remove_all(directory);
  }
  void SetUp() override {
    CU_OK(cuInit(0));
    CU_OK(cuDeviceGet(&device, 0));
    CU_OK(cuCtxCreate(&context, nullptr, 0, device));
    // The name that the driver gives the file is no promise: it is found out.
    ASSERT_EQ(0, platform().clockReset(0));
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("clocks-") && name.ends_with("-0")) file = entry.path();
    }
    ASSERT_FALSE(file.empty());
    fs::remove(file);
  }
  void TearDown() override {
    fs::remove(file);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    cuCtxDestroy(context);
  }
  static const SondePlatform& platform() {
    static const auto find =
        reinterpret_cast<SondeToolsGetPlatformFn>(dlsym(RTLD_DEFAULT, SONDE_TOOLS_GET_PLATFORM_SYMBOL));
    return *find(SONDE_TOOLS_ABI_VERSION);
  }
  CUpti_ClockControl_Status status(CUcontext c = nullptr) {
    auto s = static_cast<CUpti_ClockControl_Status>(99);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlGetStatus(c ? c : context, &s));
    return s;
  }
  CUptiResult lock(CUpti_ClockControl_Mode mode, CUcontext c = nullptr) {
    return cuptiClockControlLock(c ? c : context, mode);
  }
  // What another process or an administrator does: the state of the device.
  void external(const std::string& mode) { std::ofstream(file) << "sonde-clocks 1 " << mode << " 1\n"; }
  // The line in the file; "" without one.
  std::string inFile() const {
    std::ifstream in(file);
    std::string text;
    std::getline(in, text);
    return text;
  }
  static std::string lineOf(const std::string& mode, pid_t owner = getpid()) {
    return "sonde-clocks 1 " + mode + " " + std::to_string(owner);
  }
  uint32_t smMHz(uint32_t d = 0) {
    SondeClockInfo info{};
    info.size = sizeof info;
    EXPECT_EQ(0, platform().clockInfo(d, &info));
    return info.smClockMHz;
  }
  CUcontext destroyedContext() {
    CUcontext gone = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuCtxCreate(&gone, nullptr, 0, device));
    EXPECT_EQ(CUDA_SUCCESS, cuCtxDestroy(gone));
    return gone;
  }
  std::string lastDetail() {
    const char* text = nullptr;
    cuptiGetErrorMessage(CUPTI_ERROR_UNKNOWN, &text);
    return text ? text : "";
  }

  static inline std::string directory;
  static inline bool owned = true;
  fs::path file;
  CUdevice device = 0;
  CUcontext context = nullptr;
};

constexpr auto kBase = CUPTI_CLOCK_CONTROL_MODE_BASE;
constexpr auto kBoost = CUPTI_CLOCK_CONTROL_MODE_BOOST;
constexpr auto kUnlocked = CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED;
constexpr auto kLocked = CUPTI_CLOCK_CONTROL_STATUS_LOCKED;

// ------------------------------------------------------------------- enums --

TEST_F(ClockControl, CLK_004_005_008_OnlyBaseAndBoostAreModes) {
  EXPECT_EQ(1, kBase);
  EXPECT_EQ(2, kBoost);
  EXPECT_EQ(0x7fffffff, CUPTI_CLOCK_CONTROL_MODE_FORCE_INT);
  EXPECT_EQ(4u, sizeof(CUpti_ClockControl_Mode));
  CUpti_ClockControl_Mode forgotten{};
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, lock(forgotten));
  for (int bad : {0, 3, -1, 0x7fffffff})
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, lock(static_cast<CUpti_ClockControl_Mode>(bad))) << bad;
  EXPECT_EQ(kUnlocked, status());
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(ClockControl, CLK_006_007_BaseAndBoostAreTheClocksOfTheModel) {
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase));
  EXPECT_EQ(lineOf("base"), inFile());
  EXPECT_EQ(1095u, smMHz());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(345u, smMHz());  // idle
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBoost));
  EXPECT_EQ(lineOf("boost"), inFile());
  EXPECT_EQ(1980u, smMHz());
}

TEST_F(ClockControl, CLK_009_010_011_012_015_StatusesOfLocksWhoeverMadeThem) {
  EXPECT_EQ(1, kUnlocked);
  EXPECT_EQ(2, kLocked);
  EXPECT_EQ(3, CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR);
  EXPECT_EQ(4, CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED);
  EXPECT_EQ(5, CUPTI_CLOCK_CONTROL_STATUS_BOOST_DISABLED);
  EXPECT_EQ(0x7fffffff, CUPTI_CLOCK_CONTROL_STATUS_FORCE_INT);
  EXPECT_EQ(kUnlocked, status());
  for (const char* mode : {"base", "boost"}) {
    external(mode);
    EXPECT_EQ(kLocked, status()) << mode;
  }
  external("floor");
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR, status());
  external("none");
  EXPECT_EQ(kUnlocked, status());
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase));  // our own looks like any other
  EXPECT_EQ(kLocked, status());
}

// ------------------------------------------------------------------ status --

TEST_F(ClockControl, CLK_016_017_018_StatusChangesNothing) {
  EXPECT_EQ(kUnlocked, status());
  EXPECT_FALSE(fs::exists(file));
  external("base");
  const auto written = fs::last_write_time(file);
  EXPECT_EQ(kLocked, status());
  EXPECT_EQ(lineOf("base", 1), inFile());
  EXPECT_EQ(written, fs::last_write_time(file));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());  // LOCKED was not ours to free
  EXPECT_EQ(kLocked, status());
}

TEST_F(ClockControl, CLK_019_020_021_AFailedQueryLeavesTheOutputAsItWas) {
  auto s = CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlGetStatus(nullptr, &s));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlGetStatus(nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlGetStatus(context, nullptr));
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiClockControlGetStatus(destroyedContext(), &s));
  std::ofstream(file) << "rubbish";
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiClockControlGetStatus(context, &s));
  EXPECT_THAT(lastDetail(), testing::HasSubstr("the state of the clocks could not be had"));
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED, s);
  fs::remove(file);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlGetStatus(context, &s));
  EXPECT_EQ(kUnlocked, s);
}

// -------------------------------------------------------------------- lock --

TEST_F(ClockControl, CLK_002_023_ALockHoldsForEveryContextUntilUnlock) {
  CUcontext other = nullptr;
  CU_OK(cuCtxCreate(&other, nullptr, 0, device));
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase));
  EXPECT_EQ(kLocked, status(other));
  CU_OK(cuCtxDestroy(context));  // the lock is the device's, not the context's
  context = other;
  EXPECT_EQ(kLocked, status());
  EXPECT_EQ(1095u, smMHz());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(kUnlocked, status());
  EXPECT_EQ(lineOf("none", 0), inFile());
}

TEST_F(ClockControl, CLK_026_OneLockAProcess) {
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase));
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBase));
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBoost));  // changes nothing
  EXPECT_EQ(lineOf("base"), inFile());
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, lock(static_cast<CUpti_ClockControl_Mode>(0)));  // arguments come first
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());                                      // one unlock is enough
  EXPECT_EQ(kUnlocked, status());
}

TEST_F(ClockControl, CLK_018_027_032_AnExternalLockIsLeftAlone) {
  for (const char* mode : {"base", "boost", "floor"}) {
    external(mode);
    EXPECT_EQ(CUPTI_SUCCESS, lock(kBase));  // no ownership
    EXPECT_EQ(lineOf(mode, 1), inFile());
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    EXPECT_EQ(lineOf(mode, 1), inFile());
  }
  external("none");
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBase));  // nothing is left of the earlier calls
  EXPECT_EQ(lineOf("base"), inFile());
}

// Ours was freed by other hands, and another lock was made since.
TEST_F(ClockControl, CLK_032_ALockThatReplacedOursIsNotOurs) {
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase));
  external("boost");
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(lineOf("boost", 1), inFile());
}

TEST_F(ClockControl, CLK_029_CodesOfLock) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiClockControlLock(nullptr, kBase));
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, lock(kBase, destroyedContext()));
  std::ofstream(file) << "rubbish";
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, lock(kBase));
  EXPECT_EQ("rubbish", inFile());
  EXPECT_THAT(lastDetail(), testing::HasSubstr("the clocks could not be locked"));
}

// The order of lock, session and unlock is advice: any other works too.
TEST_F(ClockControl, CLK_025_033_AnyOrderWithASession) {
  CUpti_EventID event = 0;
  CUpti_EventGroup group = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEventGetIdFromName(device, "warps_launched", &event));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEventGroupCreate(context, &group, 0));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEventGroupAddEvent(group, event));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEventGroupEnable(group));
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBase));
  EXPECT_EQ(kLocked, status());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(kUnlocked, status());
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBoost));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupDisable(group));
  EXPECT_EQ(kLocked, status());  // the end of a session frees nothing
  EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupDestroy(group));
}

// ------------------------------------------------------------------ unlock --

TEST_F(ClockControl, CLK_030_031_UnlockIsAlwaysSafe) {
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_FALSE(fs::exists(file));
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBoost));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(lineOf("none", 0), inFile());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
}

TEST_F(ClockControl, CLK_034_AnUnlockThatFailsCanBeTriedAgain) {
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase));
  const std::string before = inFile();
  std::ofstream(file) << "rubbish";
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiClockControlUnlock());
  std::ofstream(file) << before << "\n";
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(lineOf("none", 0), inFile());
}

// ------------------------------------------------- threads, forks, processes --

TEST_F(ClockControl, CLK_026_ThreadsThatRaceMakeOneLock) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> failures{0};
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        if (lock(t % 2 ? kBase : kBoost) != CUPTI_SUCCESS) ++failures;
        start.arrive_and_wait();
        if (status() != kLocked) ++failures;  // whoever made it, it is there for all
        start.arrive_and_wait();
        if (cuptiClockControlUnlock() != CUPTI_SUCCESS) ++failures;
      });
    for (auto& t : threads) t.join();
    ASSERT_EQ(0, failures.load());
    ASSERT_EQ(kUnlocked, status());
  }
}

TEST_F(ClockControl, ThreadsThatLockAndUnlockAsTheyLike) {
  std::atomic<int> failures{0};
  std::barrier start(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (int i = 0; i < 1000; ++i)
        if (t % 2 ? cuptiClockControlUnlock() : lock(kBase)) ++failures;
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(0, failures.load());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(lineOf("none", 0), inFile());
}

// The child of a fork is another process: the lock is not its own.
TEST_F(ClockControl, CLK_018_030_AForkedChildFreesNothing) {
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase));
  const pid_t child = fork();
  if (child == 0) _exit(cuptiClockControlUnlock() == CUPTI_SUCCESS ? 0 : 1);
  int status = 1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_EQ(lineOf("base"), inFile());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(lineOf("none", 0), inFile());
}

// Runs this program in another process, for one test that is disabled otherwise.
int another(const std::string& test, const std::string& directory) {
  const std::string self = fs::read_symlink("/proc/self/exe");
  const int status = std::system(("SONDE_TEST_STATE_DIR='" + directory + "' '" + self +
                                  "' --gtest_also_run_disabled_tests --gtest_filter='*" + test + "' >/dev/null 2>&1")
                                     .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Nothing is cleaned up at exit. A child that locks and ends leaves the lock,
// which is an external one for us.
TEST_F(ClockControl, CLK_024_ALockOutlivesItsProcess) {
  for (const auto& [test, end] : {std::pair("DISABLED_LockAndEnd", 0), std::pair("DISABLED_LockAndDie", 137)}) {
    EXPECT_EQ(end, another(test, directory)) << test;
    const std::string left = inFile();
    EXPECT_THAT(left, testing::StartsWith("sonde-clocks 1 base "));
    EXPECT_NE(lineOf("base"), left);
    EXPECT_EQ(CUPTI_SUCCESS, lock(kBoost));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    EXPECT_EQ(left, inFile());
    fs::remove(file);
  }
}

class ClockControlChild : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SONDE_STATE_DIR", std::getenv("SONDE_TEST_STATE_DIR"), 1);
    CU_OK(cuInit(0));
    CU_OK(cuCtxCreate(&context, nullptr, 0, 0));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, kBase));
  }
  CUcontext context = nullptr;
};
TEST_F(ClockControlChild, DISABLED_LockAndEnd) {}
TEST_F(ClockControlChild, DISABLED_LockAndDie) { kill(getpid(), SIGKILL); }

// ------------------------------------- other models: each a test of its own, see CMakeLists.txt --

TEST_F(ClockControl, DISABLED_CLK_007_029_BoostWithoutRights) {
  EXPECT_EQ(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, lock(kBoost));
  EXPECT_EQ(kUnlocked, status());  // no fall-back to base
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBase));  // the client's own
  EXPECT_EQ(lineOf("base"), inFile());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  external("boost");
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBoost));  // a lock that is there needs no rights
}

TEST_F(ClockControl, DISABLED_CLK_003_022_028_029_PartitionedDevice) {
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, lock(kBase));
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, lock(kBoost));
  EXPECT_EQ(kUnlocked, status());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  // Locked from outside: a tool sees that it may go on, and the same call succeeds.
  external("base");
  EXPECT_EQ(kLocked, status());
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBase));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(lineOf("base", 1), inFile());
  EXPECT_EQ(1095u, smMHz());
  CUpti_ActivityAutoBoostState boost{7, 8};
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiGetAutoBoostState(context, &boost));  // ACT-115
  EXPECT_EQ(7u, boost.enabled);
  EXPECT_EQ(8u, boost.pid);
}

TEST_F(ClockControl, DISABLED_CLK_002_016_026_SeveralDevices) {
  CUcontext second = nullptr;
  CU_OK(cuCtxCreate(&second, nullptr, 0, 1));
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBase, second));
  EXPECT_EQ(kUnlocked, status(context));
  EXPECT_EQ(kLocked, status(second));
  EXPECT_EQ(345u, smMHz(0));
  EXPECT_EQ(745u, smMHz(1));                        // the base clock of the other model
  EXPECT_EQ(CUPTI_SUCCESS, lock(kBoost, context));  // one lock a process, on whichever device
  EXPECT_EQ(kUnlocked, status(context));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  EXPECT_EQ(kUnlocked, status(second));
  // Threads that want one each: one gets it, and one call frees it.
  for (int round = 0; round < 20; ++round) {
    std::barrier start(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        EXPECT_EQ(CUPTI_SUCCESS, lock(kBase, t % 2 ? second : context));
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(1, (status(context) == kLocked) + (status(second) == kLocked));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    EXPECT_EQ(0, (status(context) == kLocked) + (status(second) == kLocked));
  }
  CU_OK(cuCtxDestroy(second));
}

// -------------------------------------------------------------- auto boost --

TEST_F(ClockControl, ACT_113_NobodyAskedForAutoBoost) {
  CUpti_ActivityAutoBoostState state{7, 8};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetAutoBoostState(context, &state));
  EXPECT_EQ(1u, state.enabled);
  EXPECT_EQ(static_cast<uint32_t>(CUPTI_AUTO_BOOST_INVALID_CLIENT_PID), state.pid);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetAutoBoostState(destroyedContext(), &state));
}

// CUDA_AUTO_BOOST=0: off while this process lives, and the other one sees who wants it so.
TEST_F(ClockControl, DISABLED_ACT_113_114_CLK_014_CudaAutoBoostOff) {
  CUpti_ActivityAutoBoostState state{7, 8};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetAutoBoostState(context, &state));
  EXPECT_EQ(0u, state.enabled);
  if (const char* parent = std::getenv("SONDE_TEST_PARENT")) {
    EXPECT_EQ(parent, std::to_string(state.pid));
    return;
  }
  EXPECT_EQ(static_cast<uint32_t>(getpid()), state.pid);
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_BOOST_DISABLED, status());
  ASSERT_EQ(CUPTI_SUCCESS, lock(kBoost));  // a lock is another matter
  EXPECT_EQ(kLocked, status());
  EXPECT_EQ(1980u, smMHz());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
  setenv("SONDE_TEST_PARENT", std::to_string(getpid()).c_str(), 1);
  unsetenv("CUDA_AUTO_BOOST");
  EXPECT_EQ(0, another("CudaAutoBoostOff", directory));
}

TEST_F(ClockControl, DISABLED_ACT_113_CLK_013_CudaAutoBoostOn) {
  CUpti_ActivityAutoBoostState state{7, 8};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetAutoBoostState(context, &state));
  EXPECT_EQ(1u, state.enabled);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), state.pid);
  EXPECT_EQ(CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED, status());
}

// Switching it off fails without rights: it is on, and nobody's wish.
TEST_F(ClockControl, DISABLED_ACT_114_CudaAutoBoostWithoutRights) {
  CUpti_ActivityAutoBoostState state{7, 8};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetAutoBoostState(context, &state));
  EXPECT_EQ(1u, state.enabled);
  EXPECT_EQ(0u, state.pid);
  EXPECT_EQ(kUnlocked, status());
}

}  // namespace
