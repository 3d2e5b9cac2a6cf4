// SPDX-License-Identifier: Apache-2.0
//
// Clocks, power and temperature of one software GPU.
//
// Unlocked, the SM clock moves as on a card: idle when nothing has run for a
// while, near boost when cool, lower step by step as work heats the device up,
// capped by the power limit. Locked, it stands still.
//
// A lock is device-wide and outlives the process that made it. It lives in a
// small file per device (SONDE_STATE_DIR, else $XDG_RUNTIME_DIR/sonde, else
// /tmp/sonde-<uid>), guarded by flock, so that every process that uses the same
// device model sees it.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "softgpu/model/device_model.h"

namespace sonde::softgpu::model {

enum class ClockLock : uint8_t { none, base, boost, floor };

struct ClockSample {
  uint32_t smClockMHz = 0, memoryClockMHz = 0;
  uint32_t temperatureC = 0, fanPercent = 0;
  uint32_t powerMilliwatts = 0, powerLimitMilliwatts = 0;
  // CUpti_EnvironmentClocksThrottleReason bits.
  uint32_t throttleReasons = 0;
};

// What this process may do to the clocks, from the model's "clock_control":
// "full", "unprivileged" (boost needs rights it lacks), "mig" (none).
enum class ClockRights : uint8_t { full, unprivileged, none };

enum class ClockError : uint8_t { none, notSupported, notPermitted, stateFile };

class ClockModel {
 public:
  // `index` tells devices of one model apart.
  ClockModel(const DeviceModel& model, uint32_t index);

  // The clock a kernel that starts now runs at.
  uint32_t smClockMHz(uint64_t nowNs);
  // A kernel of so many SM cycles ended; heats the device.
  void workDone(uint64_t nowNs, uint64_t cycles, uint32_t atMHz);
  ClockSample sample(uint64_t nowNs);

  // The lock that is in force, whoever made it. `owner` is the process.
  ClockError lockState(ClockLock* lock, uint32_t* owner, std::string* message);
  ClockError lock(ClockLock wanted, std::string* message);
  ClockError unlock(std::string* message);

  // Auto boost: on unless a process asked for it to be off (CUDA_AUTO_BOOST=0
  // in its environment when it used the device). pid 0: nobody asked.
  void autoBoost(bool* enabled, uint32_t* pid);

  const std::string& statePath() const { return statePath_; }

 private:
  struct State {
    ClockLock lock = ClockLock::none;
    uint32_t owner = 0;
  };
  ClockError readState(State* state, std::string* message) const;
  ClockError writeState(const State& state, std::string* message) const;
  void advance(uint64_t nowNs);
  uint32_t currentClock(ClockLock lock, uint32_t* reasons) const;
  uint32_t steps(double mhz) const;

  const DeviceModel& model_;
  std::string statePath_;
  ClockRights rights_;
  double powerLimitWatts_, idleWatts_;
  std::mutex mutex_;
  uint64_t lastNs_ = 0;       // when temperature_ was true
  uint64_t busyUntilNs_ = 0;  // end of the last work
  double temperature_;
  double load_ = 0;  // share of the recent past that was busy, 0 … 1
};

}  // namespace sonde::softgpu::model
