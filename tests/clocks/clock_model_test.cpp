// SPDX-License-Identifier: Apache-2.0
#include "softgpu/model/clock_model.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
  EXPECT_EQ(device.memoryClockMHz / 4, m.sample(kSecond).memoryClockMHz);
  EXPECT_EQ(1u, m.sample(kSecond).throttleReasons);  // idle
  EXPECT_EQ(35u, m.sample(kSecond).temperatureC);
  EXPECT_EQ(30000u, m.sample(kSecond).powerMilliwatts);
  EXPECT_EQ(device.boostClockMHz, m.smClockMHz(kSecond));  // cool: all there is
  m.workStarted(kSecond);
  m.workDone(kSecond + 1000);
  EXPECT_EQ(device.boostClockMHz, m.sample(kSecond + 2000).smClockMHz);
  EXPECT_EQ(device.memoryClockMHz, m.sample(kSecond + 2000).memoryClockMHz);
  EXPECT_EQ(0u, m.sample(kSecond + 2000).throttleReasons);
  EXPECT_EQ(device.idleClockMHz, m.sample(3 * kSecond).smClockMHz);
}

// A kernel that runs for long is work while it runs, not only when it is done.
TEST_F(Clocks, WorkUnderWayCounts) {
  ClockModel m(device, 0);
  m.smClockMHz(kSecond);
  m.workStarted(kSecond);
  m.workStarted(kSecond);
  m.workDone(kSecond + 1);  // of two kernels at once one is left
  const ClockSample s = m.sample(6 * kSecond);
  // The load is 1 by now: the power limit costs a fifth of 885 MHz, and heat more.
  EXPECT_EQ(4u, s.throttleReasons);  // power cap
  EXPECT_LT(s.smClockMHz, 1980u - 177u + 15u);
  EXPECT_GT(s.smClockMHz, device.baseClockMHz);
  // 5 s of 20 s: 1 - e^-0.25 = 22 % of the way from 35 C to 90 C, for the clock it began with.
  EXPECT_EQ(47u, s.temperatureC);
  // 30 W + 270 W * clock / 1980 MHz.
  EXPECT_EQ(static_cast<uint32_t>((30 + 270.0 * s.smClockMHz / 1980) * 1000), s.powerMilliwatts);
  m.workDone(6 * kSecond);
  EXPECT_LT(m.sample(6 * kSecond + kSecond / 2).powerMilliwatts, 31000u);  // ten time constants of the load later
}

// Minutes of full load on a badly cooled device: it slows itself down when it is
// too hot, and is back when it has cooled.
TEST_F(Clocks, HeatSlowsTheHardwareDown) {
  device.facts["full_power_celsius"] = 120;
  ClockModel m(device, 0);
  uint64_t now = kSecond;
  m.workStarted(now);
  std::set<uint32_t> reasons, clocks;
  uint32_t hottest = 0;
  for (int i = 0; i < 1800; ++i) {
    now += kSecond / 10;
    clocks.insert(m.smClockMHz(now));
    const ClockSample s = m.sample(now);
    reasons.insert(s.throttleReasons);
    hottest = std::max(hottest, s.temperatureC);
    if (s.throttleReasons & 8) {
      EXPECT_LE(s.smClockMHz, 990u);
    }
  }
  EXPECT_TRUE(reasons.contains(4)) << "power cap";
  EXPECT_TRUE(reasons.contains(4 | 8)) << "power cap and hardware slowdown";
  EXPECT_GE(hottest, 85u);
  EXPECT_LE(hottest, 86u);  // the slowdown works
  EXPECT_GT(clocks.size(), 10u);
  m.workDone(now);
  EXPECT_EQ(1u, m.sample(now + 600 * kSecond).throttleReasons);
  EXPECT_EQ(35u, m.sample(now + 600 * kSecond).temperatureC);
  EXPECT_EQ(device.boostClockMHz, m.smClockMHz(now + 601 * kSecond));
}

TEST_F(Clocks, WorkHeatsAndSlowsDownUnlessLocked) {
  ClockModel m(device, 0);
  uint64_t now = kSecond;
  const uint32_t cool = m.smClockMHz(now);
  m.workStarted(now);
  std::set<uint32_t> seen;
  for (int i = 0; i < 300; ++i) seen.insert(m.smClockMHz(now += kSecond / 5));
  EXPECT_GT(seen.size(), 3u);
  EXPECT_LT(m.smClockMHz(now), cool);
  EXPECT_LE(m.sample(now).powerMilliwatts, m.sample(now).powerLimitMilliwatts);
  for (const auto& [lock, mhz] :
       {std::pair(ClockLock::base, device.baseClockMHz), {ClockLock::boost, device.boostClockMHz}}) {
    ASSERT_EQ(ClockError::none, m.lock(lock, &message)) << message;
    seen.clear();
    for (int i = 0; i < 50; ++i) seen.insert(m.smClockMHz(now += kSecond / 5));
    EXPECT_EQ((std::set<uint32_t>{mhz}), seen);
    EXPECT_EQ(2u, m.sample(now).throttleReasons);  // set clocks
    ASSERT_EQ(ClockError::none, m.unlock(&message));
  }
}

// What cycles are counted at: 885 MHz between base and boost, in steps of 15.
TEST_F(Clocks, KernelsWarmTheDeviceUpTheSameEveryTime) {
  ClockModel m(device, 0);
  EXPECT_EQ(1980u, m.warmedMHz(0));
  EXPECT_EQ(1980u, m.warmedMHz(9));    // 45 ms: load 1 - e^-0.9 = 0.593
  EXPECT_EQ(1965u, m.warmedMHz(10));   // 50 ms: load 0.632 costs 177 * 0.032 / 0.4 = 14 MHz
  EXPECT_EQ(1800u, m.warmedMHz(360));  // 1.8 s: the load costs all of 177 MHz; 39.7 C
  // 20 s: 35 + 55 * (1 - 1 / e) = 69.8 C cost 531 * 29.8 / 45 = 351 MHz.
  EXPECT_EQ(1440u, m.warmedMHz(4000));       // 1980 - 177 - 351 = 1452
  EXPECT_EQ(1260u, m.warmedMHz(1'000'000));  // it stays at 85 C: 1980 - 177 - 531 = 1272
  // Neither time nor work changes that.
  m.workStarted(kSecond);
  m.smClockMHz(100 * kSecond);
  EXPECT_LT(m.smClockMHz(101 * kSecond), 1980u);
  EXPECT_EQ(1980u, m.warmedMHz(0));
}

TEST_F(Clocks, WhatHoldsTheClockIsTold) {
  ClockModel m(device, 0);
  EXPECT_EQ(0u, m.heldMHz());
  ASSERT_EQ(ClockError::none, m.lock(ClockLock::base, &message)) << message;
  EXPECT_EQ(1095u, m.heldMHz());
  ASSERT_EQ(ClockError::none, m.unlock(&message));
  ASSERT_EQ(ClockError::none, m.lock(ClockLock::boost, &message)) << message;
  EXPECT_EQ(1980u, m.heldMHz());
  ASSERT_EQ(ClockError::none, m.unlock(&message));
  EXPECT_EQ(0u, m.heldMHz());
  std::ofstream(m.statePath()) << "sonde-clocks 1 floor 1\n";
  EXPECT_EQ(0u, m.heldMHz());
}

TEST_F(Clocks, AFloorHoldsTheClockFromBelowAlone) {
  ClockModel m(device, 0);
  std::ofstream(m.statePath()) << "sonde-clocks 1 floor 1\n";
  EXPECT_EQ(device.baseClockMHz, m.sample(kSecond).smClockMHz);  // idle
  EXPECT_EQ(device.boostClockMHz, m.smClockMHz(kSecond));        // busy
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
  ASSERT_EQ(ClockError::none, m.unlock(&message));  // not ours
  ASSERT_EQ(ClockError::none, m.lockState(&lock, &owner, &message));
  EXPECT_EQ(ClockLock::boost, lock);
  ASSERT_EQ(ClockError::none, m.reset(&message));
  ASSERT_EQ(ClockError::none, m.lockState(&lock, &owner, &message));
  EXPECT_EQ(ClockLock::none, lock);
}

TEST_F(Clocks, RightsOfTheModel) {
  device.strings["clock_control"] = "unprivileged";
  ClockModel user(device, 0);
  EXPECT_EQ(ClockError::notPermitted, user.lock(ClockLock::boost, &message));
  EXPECT_EQ(ClockError::none, user.lock(ClockLock::base, &message));
  EXPECT_EQ(ClockError::taken, user.lock(ClockLock::boost, &message));  // a lock comes before rights
  device.strings["clock_control"] = "mig";
  ClockModel mig(device, 2);
  EXPECT_EQ(ClockError::notSupported, mig.lock(ClockLock::base, &message));
  std::ofstream(mig.statePath()) << "sonde-clocks 1 base 1\n";
  EXPECT_EQ(ClockError::taken, mig.lock(ClockLock::base, &message));
  EXPECT_EQ(device.baseClockMHz, mig.smClockMHz(kSecond));
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
