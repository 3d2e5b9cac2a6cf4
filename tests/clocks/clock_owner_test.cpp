// SPDX-License-Identifier: Apache-2.0
// The rules of ownership (CLK-nnn) against a platform that answers what a test
// wants: races that others win, failures, platforms that lack functions.
#include <cuda.h>
#include <cupti_profiler_target.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/clocks/clock_control.h"

namespace sonde::core {
namespace {

using Calls = std::vector<std::string>;

// The platform of the test that runs.
struct Answers {
  int32_t contextDevice = 0, status = 0, lock = 0, unlock = 0;
  uint32_t state = CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED;
  Calls calls;
} now;

SondePlatform answering() {
  SondePlatform p{};
  p.size = sizeof p;
  p.contextDevice = [](SondeHandle context, uint32_t* device) {
    *device = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(context));
    return now.contextDevice;
  };
  p.clockStatus = [](uint32_t device, uint32_t* status, int* ours) {
    now.calls.push_back("status " + std::to_string(device));
    if (now.status == 0) *status = now.state, *ours = 0;
    return now.status;
  };
  p.clockLock = [](uint32_t device, uint32_t mode) {
    now.calls.push_back("lock " + std::to_string(device) + " " + std::to_string(mode));
    return now.lock;
  };
  p.clockUnlock = [](uint32_t device) {
    now.calls.push_back("unlock " + std::to_string(device));
    return now.unlock;
  };
  return p;
}

class Owner : public ::testing::Test {
 protected:
  void SetUp() override { now = {}; }
  CUptiResult lock(uintptr_t device, uint32_t mode) {
    const auto outcome = clocks.lock(platform, reinterpret_cast<CUcontext>(device), mode);
    message = outcome.message;
    return outcome.code;
  }
  CUptiResult unlock() {
    const auto outcome = clocks.unlock();
    message = outcome.message;
    return outcome.code;
  }
  SondePlatform platform = answering();
  ClockControl clocks;
  std::string message;
};

TEST_F(Owner, CLK_026_030_TheFirstLockIsTheOneThatIsFreed) {
  EXPECT_EQ(CUPTI_SUCCESS, lock(3, 2));
  EXPECT_EQ(CUPTI_SUCCESS, lock(4, 1));
  EXPECT_EQ(CUPTI_SUCCESS, unlock());
  EXPECT_EQ(CUPTI_SUCCESS, unlock());
  EXPECT_EQ((Calls{"status 3", "lock 3 2", "unlock 3"}), now.calls);
}

TEST_F(Owner, CLK_027_028_TheStatusIsAskedFirstAndALockThereIsEnough) {
  now.lock = CUDA_ERROR_NOT_SUPPORTED;
  for (const uint32_t state : {CUPTI_CLOCK_CONTROL_STATUS_LOCKED, CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR}) {
    now.calls.clear();
    now.state = state;
    EXPECT_EQ(CUPTI_SUCCESS, lock(1, 1));
    EXPECT_EQ(CUPTI_SUCCESS, unlock());
    EXPECT_EQ((Calls{"status 1"}), now.calls);
  }
  now.lock = 0;
  for (const uint32_t state : {CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED, CUPTI_CLOCK_CONTROL_STATUS_BOOST_DISABLED}) {
    now.calls.clear();
    now.state = state;  // no locks
    EXPECT_EQ(CUPTI_SUCCESS, lock(1, 1));
    EXPECT_EQ(CUPTI_SUCCESS, unlock());
    EXPECT_EQ((Calls{"status 1", "lock 1 1", "unlock 1"}), now.calls);
  }
}

// Between the look at the status and the lock another process was faster.
TEST_F(Owner, CLK_027_ALostRaceIsAnExternalLock) {
  now.lock = CUDA_ERROR_ALREADY_ACQUIRED;
  EXPECT_EQ(CUPTI_SUCCESS, lock(0, 1));
  EXPECT_EQ(CUPTI_SUCCESS, unlock());
  EXPECT_EQ((Calls{"status 0", "lock 0 1"}), now.calls);
}

TEST_F(Owner, CLK_020_AnUnknownStatusIsNoReasonToRefuse) {
  now.status = CUDA_ERROR_NOT_PERMITTED;
  EXPECT_EQ(CUPTI_SUCCESS, lock(0, 1));
  EXPECT_EQ((Calls{"status 0", "lock 0 1"}), now.calls);
}

TEST_F(Owner, CLK_007_029_EachFailureHasItsCodeAndNoFallback) {
  const std::pair<int32_t, CUptiResult> kCodes[] = {
      {CUDA_ERROR_NOT_SUPPORTED, CUPTI_ERROR_NOT_SUPPORTED},
      {CUDA_ERROR_NOT_PERMITTED, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES},
      {CUDA_ERROR_OPERATING_SYSTEM, CUPTI_ERROR_UNKNOWN},
      {CUDA_ERROR_UNKNOWN, CUPTI_ERROR_UNKNOWN},
  };
  for (const auto& [driver, code] : kCodes) {
    now.calls.clear();
    now.lock = driver;
    EXPECT_EQ(code, lock(0, CUPTI_CLOCK_CONTROL_MODE_BOOST)) << driver;
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(CUPTI_SUCCESS, unlock());
    EXPECT_EQ((Calls{"status 0", "lock 0 2"}), now.calls);  // never with mode 1, never freed
  }
  now.lock = CUDA_ERROR_NOT_PERMITTED;
  (void)lock(0, CUPTI_CLOCK_CONTROL_MODE_BOOST);
  EXPECT_THAT(message, testing::HasSubstr("or lock to base clocks"));
  now.contextDevice = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, lock(0, 1));
}

TEST_F(Owner, CLK_003_APlatformWithoutClocks) {
  platform.clockLock = nullptr;
  platform.clockStatus = nullptr;
  platform.clockUnlock = nullptr;
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, lock(0, 1));
  EXPECT_EQ(CUPTI_SUCCESS, unlock());
  uint32_t status = 77;
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, clocks.status(platform, nullptr, &status).code);
  EXPECT_EQ(77u, status);
}

TEST_F(Owner, CLK_019_021_StatusFailsWithOneCodeAndLeavesTheOutput) {
  uint32_t status = 77;
  for (const int32_t error : {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_UNKNOWN}) {
    now.status = error;
    EXPECT_EQ(CUPTI_ERROR_UNKNOWN, clocks.status(platform, nullptr, &status).code) << error;
  }
  EXPECT_EQ(77u, status);
  now.status = 0;
  now.state = CUPTI_CLOCK_CONTROL_STATUS_BOOST_DISABLED;
  EXPECT_EQ(CUPTI_SUCCESS, clocks.status(platform, nullptr, &status).code);
  EXPECT_EQ(5u, status);
}

TEST_F(Owner, CLK_034_AFailedUnlockKeepsTheLockOurs) {
  ASSERT_EQ(CUPTI_SUCCESS, lock(2, 1));
  for (const int32_t error : {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_UNKNOWN}) {
    now.unlock = error;
    EXPECT_EQ(CUPTI_ERROR_UNKNOWN, unlock()) << error;
    EXPECT_THAT(message, testing::HasSubstr("try again"));
  }
  now.unlock = 0;
  now.calls.clear();
  EXPECT_EQ(CUPTI_SUCCESS, unlock());
  EXPECT_EQ((Calls{"unlock 2"}), now.calls);
}

TEST_F(Owner, CLK_030_TheChildOfAForkOwnsNothing) {
  ASSERT_EQ(CUPTI_SUCCESS, lock(0, 1));
  const pid_t child = fork();
  if (child == 0) {
    now.calls.clear();
    const bool good = unlock() == CUPTI_SUCCESS && now.calls.empty() && lock(5, 1) == CUPTI_SUCCESS &&
                      unlock() == CUPTI_SUCCESS && now.calls == Calls{"status 5", "lock 5 1", "unlock 5"};
    _exit(good ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_EQ(CUPTI_SUCCESS, unlock());
  EXPECT_EQ((Calls{"status 0", "lock 0 1", "unlock 0"}), now.calls);
}

}  // namespace
}  // namespace sonde::core
