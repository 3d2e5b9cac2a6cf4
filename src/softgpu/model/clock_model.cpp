// SPDX-License-Identifier: Apache-2.0
#include "softgpu/model/clock_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace sonde::softgpu::model {
namespace {

constexpr double kAmbientC = 30;
constexpr double kIdleC = 35;           // in the long run, idle
constexpr double kCoolC = 40;           // below it all clocks are to be had
constexpr double kSlowdownC = 85;       // the hardware slows itself down
constexpr double kThermalSeconds = 20;  // time constant of the heat sink
constexpr double kLoadSeconds = 0.05;   // how fast the load average follows
constexpr double kPowerCapLoad = 0.6;   // above it the power limit costs clock
constexpr double kKernelSeconds = 0.005;
constexpr uint64_t kIdleAfterNs = 500'000'000;
constexpr uint32_t kClockStepMHz = 15;

// CUpti_EnvironmentClocksThrottleReason.
constexpr uint32_t kGpuIdle = 0x1, kUserClocks = 0x2, kPowerCap = 0x4, kHwSlowdown = 0x8;

std::string deviceKey(const DeviceModel& model, uint32_t index) {
  // A model from a file has the file's path as its id.
  std::string key = model.id + "-" + std::to_string(index);
  std::replace(key.begin(), key.end(), '/', '_');
  return key;
}

double approach(double from, double to, double seconds, double timeConstant) {
  return to + (from - to) * std::exp(-seconds / timeConstant);
}

}  // namespace

ClockModel::ClockModel(const DeviceModel& model, uint32_t index)
    : model_(model), state_(deviceKey(model, index)), temperature_(kIdleC) {
  auto fact = [&](const char* key, double otherwise) {
    const auto it = model.facts.find(key);
    return it == model.facts.end() ? otherwise : it->second;
  };
  const auto control = model.strings.find("clock_control");
  rights_ = control == model.strings.end()      ? ClockRights::full
            : control->second == "mig"          ? ClockRights::none
            : control->second == "unprivileged" ? ClockRights::unprivileged
                                                : ClockRights::full;
  powerLimitWatts_ = fact("power_limit_watts", 300);
  idleWatts_ = fact("idle_watts", 30);
  fullPowerC_ = fact("full_power_celsius", 90);
  const char* request = std::getenv("CUDA_AUTO_BOOST");
  std::string ignored;  // a request that cannot be made leaves auto boost as it is
  if (request && *request && rights_ == ClockRights::full)
    (void)state_.requestBoost(std::strcmp(request, "0") != 0, &ignored);
}

ClockError ClockModel::lockState(ClockLock* lock, uint32_t* owner, std::string* message) const {
  return state_.read(lock, owner, message);
}

ClockError ClockModel::lock(ClockLock wanted, std::string* message) {
  const bool possible = rights_ != ClockRights::none;
  const bool allowed = wanted != ClockLock::boost || rights_ == ClockRights::full;
  if (possible && allowed) return state_.lock(wanted, message);
  ClockLock there{};
  uint32_t owner = 0;
  if (const ClockError e = state_.read(&there, &owner, message); e != ClockError::none) return e;
  if (there != ClockLock::none) return ClockError::taken;
  *message = possible ? "locking to boost clocks needs rights that this process lacks"
                      : "clocks of a partitioned device cannot be locked from here";
  return possible ? ClockError::notPermitted : ClockError::notSupported;
}

ClockError ClockModel::unlock(std::string* message) { return state_.unlock(message); }
ClockError ClockModel::reset(std::string* message) { return state_.reset(message); }

ClockError ClockModel::autoBoost(ClockState::Boost* boost) const {
  if (rights_ == ClockRights::none) return ClockError::notSupported;
  *boost = state_.boost();
  return ClockError::none;
}

ClockModel::Hold ClockModel::hold() const {
  Hold hold;
  uint32_t owner = 0;
  std::string ignored;
  (void)state_.read(&hold.lock, &owner, &ignored);  // a damaged file counts as unlocked
  hold.boostOff = rights_ != ClockRights::none && !state_.boost().enabled;
  return hold;
}

uint32_t ClockModel::currentClock(const Hold& hold, uint32_t* reasons) const {
  *reasons = 0;
  if (hold.lock == ClockLock::base) return *reasons = kUserClocks, model_.baseClockMHz;
  if (hold.lock == ClockLock::boost) return *reasons = kUserClocks, model_.boostClockMHz;
  const uint32_t least = hold.lock == ClockLock::floor ? model_.baseClockMHz : model_.idleClockMHz;
  if (running_ == 0 && (busyUntilNs_ == 0 || lastNs_ > busyUntilNs_ + kIdleAfterNs)) {
    *reasons = kGpuIdle;
    return least;
  }
  if (hold.boostOff) return *reasons = kUserClocks, model_.baseClockMHz;
  return std::max(movingClock(temperature_, load_, reasons), least);
}

uint32_t ClockModel::movingClock(double temperature, double load, uint32_t* reasons) const {
  // Leakage grows with temperature and costs clock steps.
  const double range = model_.boostClockMHz - std::min(model_.baseClockMHz, model_.boostClockMHz);
  double mhz =
      model_.boostClockMHz - range * 0.6 * std::clamp((temperature - kCoolC) / (kSlowdownC - kCoolC), 0.0, 1.0);
  if (load > kPowerCapLoad) {
    *reasons |= kPowerCap;
    mhz -= range * 0.2 * (load - kPowerCapLoad) / (1 - kPowerCapLoad);
  }
  if (temperature > kSlowdownC) {
    *reasons |= kHwSlowdown;
    mhz = std::min(mhz, model_.boostClockMHz / 2.0);
  }
  return static_cast<uint32_t>(mhz / kClockStepMHz) * kClockStepMHz;
}

uint32_t ClockModel::heldMHz() const {
  const Hold held = hold();
  if (held.lock == ClockLock::boost) return model_.boostClockMHz;
  return held.lock == ClockLock::base || held.boostOff ? model_.baseClockMHz : 0;
}

uint32_t ClockModel::warmedMHz(uint64_t earlier) const {
  const double seconds = static_cast<double>(earlier) * kKernelSeconds;
  const double temperature = approach(kIdleC, fullPowerC_, seconds, kThermalSeconds);
  uint32_t reasons = 0;
  // A device at its limit holds its temperature.
  return movingClock(std::min(temperature, kSlowdownC), approach(0, 1, seconds, kLoadSeconds), &reasons);
}

double ClockModel::watts(uint32_t mhz) const {
  return idleWatts_ + (powerLimitWatts_ - idleWatts_) * std::min(1.0, load_ * mhz / model_.boostClockMHz);
}

void ClockModel::advance(uint64_t nowNs) {
  if (lastNs_ == 0) lastNs_ = nowNs;
  if (nowNs <= lastNs_) return;
  const double seconds = static_cast<double>(nowNs - lastNs_) * 1e-9;
  lastNs_ = nowNs;
  if (running_ != 0) busyUntilNs_ = nowNs;
  load_ = approach(load_, running_ != 0 ? 1 : 0, seconds, kLoadSeconds);
  const double share = (watts(lastMHz_) - idleWatts_) / std::max(1.0, powerLimitWatts_ - idleWatts_);
  temperature_ = approach(temperature_, kIdleC + (fullPowerC_ - kIdleC) * share, seconds, kThermalSeconds);
}

uint32_t ClockModel::smClockMHz(uint64_t nowNs) {
  const Hold held = hold();
  std::lock_guard guard(mutex_);
  advance(nowNs);
  // Work is what ends idleness.
  busyUntilNs_ = std::max(busyUntilNs_, nowNs);
  uint32_t reasons = 0;
  return lastMHz_ = currentClock(held, &reasons);
}

void ClockModel::workStarted(uint64_t nowNs) {
  std::lock_guard guard(mutex_);
  advance(nowNs);
  ++running_;
}

void ClockModel::workDone(uint64_t nowNs) {
  std::lock_guard guard(mutex_);
  advance(nowNs);
  if (running_ != 0) --running_;
  busyUntilNs_ = std::max(busyUntilNs_, nowNs);
}

ClockSample ClockModel::sample(uint64_t nowNs) {
  const Hold held = hold();
  std::lock_guard guard(mutex_);
  advance(nowNs);
  ClockSample s;
  s.smClockMHz = currentClock(held, &s.throttleReasons);
  s.memoryClockMHz = (s.throttleReasons & kGpuIdle) ? model_.memoryClockMHz / 4 : model_.memoryClockMHz;
  s.temperatureC = static_cast<uint32_t>(std::lround(temperature_));
  s.fanPercent = static_cast<uint32_t>(std::clamp((temperature_ - kAmbientC) * 1.7, 20.0, 100.0));
  s.powerMilliwatts = static_cast<uint32_t>(watts(s.smClockMHz) * 1000);
  s.powerLimitMilliwatts = static_cast<uint32_t>(powerLimitWatts_ * 1000);
  return s;
}

}  // namespace sonde::softgpu::model
