// SPDX-License-Identifier: Apache-2.0
//
// Clocks, power and temperature of one software GPU.
//
// Unlocked, the SM clock moves as on a card: idle when nothing has run for a
// while, near boost when cool, lower step by step as work heats the device up
// and draws power up to the limit. What counts as work is the time in which
// kernels of this process run. Locked, or with auto boost off, it stands still.
//
// Locks and auto boost are device-wide: see clock_state.h.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "softgpu/model/clock_state.h"
#include "softgpu/model/device_model.h"

namespace sonde::softgpu::model {

struct ClockSample {
  uint32_t smClockMHz = 0, memoryClockMHz = 0;
  uint32_t temperatureC = 0, fanPercent = 0;
  uint32_t powerMilliwatts = 0, powerLimitMilliwatts = 0;
  // CUpti_EnvironmentClocksThrottleReason bits.
  uint32_t throttleReasons = 0;
};

// What a process may do to the clocks, from the model's "clock_control":
// "full", "unprivileged" (neither boost nor auto boost), "mig" (nothing).
enum class ClockRights : uint8_t { full, unprivileged, none };

class ClockModel {
 public:
  // `index` tells devices of one model apart. Where the environment has
  // CUDA_AUTO_BOOST, the process asks for auto boost to be off (0) or on.
  ClockModel(const DeviceModel& model, uint32_t index);

  // The clock of a kernel that starts now, in real time.
  uint32_t smClockMHz(uint64_t nowNs);
  // The clock that a lock or the lack of auto boost holds every kernel at; 0:
  // the clock moves.
  uint32_t heldMHz() const;
  // Where it moves: the clock at which the cycles of a kernel are counted. Real
  // time must not matter there, for counters are the same on every run. So each
  // kernel warms the device up as much as any other, by kKernelSeconds of full
  // load, and each stream starts from a cool device. `earlier`: the kernels that
  // ran on the stream before.
  uint32_t warmedMHz(uint64_t earlier) const;
  // Around each kernel; several can run at once.
  void workStarted(uint64_t nowNs);
  void workDone(uint64_t nowNs);
  ClockSample sample(uint64_t nowNs);

  // The lock that is in force, whoever made it. `owner` is the process.
  ClockError lockState(ClockLock* lock, uint32_t* owner, std::string* message) const;
  // As those of ClockState, where the device allows it. A lock that exists
  // comes before any other reason to refuse.
  ClockError lock(ClockLock wanted, std::string* message);
  ClockError unlock(std::string* message);
  ClockError reset(std::string* message);

  // notSupported: the device has no auto boost.
  ClockError autoBoost(ClockState::Boost* boost) const;

  const std::string& statePath() const { return state_.path(); }

 private:
  // What the clock is held at by a lock or by auto boost being off.
  struct Hold {
    ClockLock lock = ClockLock::none;
    bool boostOff = false;
  };
  Hold hold() const;
  void advance(uint64_t nowNs);
  uint32_t currentClock(const Hold& hold, uint32_t* reasons) const;
  uint32_t movingClock(double temperature, double load, uint32_t* reasons) const;
  double watts(uint32_t mhz) const;

  const DeviceModel& model_;
  ClockState state_;
  ClockRights rights_;
  double powerLimitWatts_, idleWatts_;
  double fullPowerC_;         // where the temperature ends when that much power is drawn
  std::mutex mutex_;          // guards what follows
  uint64_t lastNs_ = 0;       // when temperature_ and load_ were true
  uint64_t busyUntilNs_ = 0;  // end of the last work; 0: there was none
  uint32_t running_ = 0;      // kernels
  uint32_t lastMHz_ = 0;      // that heated the device since lastNs_
  double temperature_;
  double load_ = 0;  // share of the recent past that was busy, 0 … 1
};

}  // namespace sonde::softgpu::model
