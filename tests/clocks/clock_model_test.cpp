// SPDX-License-Identifier: Apache-2.0
#include "softgpu/model/clock_model.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace sonde::softgpu::model {
namespace {

class Clocks : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/sonde-clocks-XXXXXX";
    directory = mkdtemp(path);
    setenv("SONDE_STATE_DIR", directory.c_str(), 1);
    device.id = "test";
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  static constexpr uint64_t kSecond = 1'000'000'000;
  std::string directory;
  DeviceModel device;
  std::string message;
};

TEST_F(Clocks, IdleUntilWorkComes) {
  ClockModel m(device, 0);
  EXPECT_EQ(device.idleClockMHz, m.sample(kSecond).smClockMHz);
  EXPECT_EQ(1u, m.sample(kSecond).throttleReasons);  // idle
  EXPECT_GT(m.smClockMHz(kSecond), device.baseClockMHz);
  m.workDone(kSecond + 1000, 1'000'000, 1900);
  EXPECT_GT(m.sample(kSecond + 2000).smClockMHz, device.baseClockMHz);
  EXPECT_EQ(device.idleClockMHz, m.sample(3 * kSecond).smClockMHz);
}

TEST_F(Clocks, WorkHeatsAndSlowsDownUnlessLocked) {
  ClockModel m(device, 0);
  uint64_t now = kSecond;
  const uint32_t cool = m.smClockMHz(now);
  std::set<uint32_t> seen;
  const uint32_t coldC = m.sample(now).temperatureC, coldW = m.sample(now).powerMilliwatts;
  for (int i = 0; i < 300; ++i) {
    const uint32_t mhz = m.smClockMHz(now);
    seen.insert(mhz);
    now += kSecond / 5;
    m.workDone(now, 200'000'000ull * mhz / 1000, mhz);  // busy all the time
  }
  EXPECT_GT(seen.size(), 3u);
  EXPECT_LT(m.smClockMHz(now), cool);
  EXPECT_GT(m.sample(now).temperatureC, coldC + 10);
  EXPECT_GT(m.sample(now).powerMilliwatts, coldW);
  EXPECT_LE(m.sample(now).powerMilliwatts, m.sample(now).powerLimitMilliwatts);
  ASSERT_EQ(ClockError::none, m.lock(ClockLock::base, &message)) << message;
  seen.clear();
  for (int i = 0; i < 50; ++i) {
    seen.insert(m.smClockMHz(now));
    now += kSecond / 5;
    m.workDone(now, 300'000'000, 1000);
  }
  EXPECT_EQ((std::set<uint32_t>{device.baseClockMHz}), seen);
}

TEST_F(Clocks, ALockIsSeenByOtherProcessesAndOutlivesItsMaker) {
  const pid_t child = fork();
  if (child == 0) {
    ClockModel m(device, 0);
    _exit(m.lock(ClockLock::boost, &message) == ClockError::none ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  ASSERT_EQ(0, status);
  ClockModel m(device, 0);
  ClockLock lock{};
  uint32_t owner = 0;
  ASSERT_EQ(ClockError::none, m.lockState(&lock, &owner, &message));
  EXPECT_EQ(ClockLock::boost, lock);
  EXPECT_EQ(static_cast<uint32_t>(child), owner);
  EXPECT_EQ(device.boostClockMHz, m.smClockMHz(kSecond));
  ClockModel other(device, 1);  // another device of the model has its own state
  ASSERT_EQ(ClockError::none, other.lockState(&lock, &owner, &message));
  EXPECT_EQ(ClockLock::none, lock);
  ASSERT_EQ(ClockError::none, m.unlock(&message));
  ASSERT_EQ(ClockError::none, m.lockState(&lock, &owner, &message));
  EXPECT_EQ(ClockLock::none, lock);
}

TEST_F(Clocks, RightsOfTheModel) {
  device.strings["clock_control"] = "unprivileged";
  ClockModel user(device, 0);
  EXPECT_EQ(ClockError::notPermitted, user.lock(ClockLock::boost, &message));
  EXPECT_EQ(ClockError::none, user.lock(ClockLock::base, &message));
  device.strings["clock_control"] = "mig";
  ClockModel mig(device, 2);
  EXPECT_EQ(ClockError::notSupported, mig.lock(ClockLock::base, &message));
}

TEST_F(Clocks, ADamagedStateFileIsAnErrorThatNamesIt) {
  ClockModel m(device, 0);
  std::filesystem::create_directories(directory);
  std::ofstream(m.statePath()) << "rubbish";
  ClockLock lock{};
  uint32_t owner = 0;
  EXPECT_EQ(ClockError::stateFile, m.lockState(&lock, &owner, &message));
  EXPECT_NE(std::string::npos, message.find(m.statePath()));
  EXPECT_GT(m.smClockMHz(kSecond), 0u);  // kernels still run
}

}  // namespace
}  // namespace sonde::softgpu::model
