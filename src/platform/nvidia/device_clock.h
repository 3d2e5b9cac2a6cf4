// SPDX-License-Identifier: Apache-2.0
//
// From the stamps of events to times of the host's clock.
//
// "Device time" is %globaltimer in nanoseconds. An event's stamp is known as a
// distance from an anchor event, whose device time a calibration kernel told.
// The host's clock minus the device's is sampled again and again: both drift.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <mutex>

namespace sonde::platform::nvidia {

class DeviceClock {
 public:
  // A reading of %globaltimer as this class's device time.
  double relative(uint64_t globaltimer);
  static double relativeHost(uint64_t host);
  void setAnchor(CUevent anchor, double deviceTime);
  // Adds a sample: device time minus host time at a host time.
  void addSample(uint64_t host, double deviceMinusHost);
  void forgetSamples();
  bool hasAnchor() const;

  // Device time of an event of the same context that has happened. False: the
  // driver does not tell.
  bool deviceTime(CUevent event, double* time) const;
  uint64_t toHost(double deviceTime) const;
  double toDevice(uint64_t host) const;
  uint64_t lastSample() const;
  // There are samples enough to tell how the clocks drift.
  bool knowsDrift() const;

 private:
  double offsetAt(double host) const;  // mutex held

  struct Sample {
    double host, offset;
  };
  mutable std::mutex mutex_;
  uint64_t deviceOrigin_ = 0;
  CUevent anchor_ = nullptr;
  double anchorTime_ = 0;
  std::array<Sample, 24> samples_{};  // the newest last
  unsigned count_ = 0;
};

}  // namespace sonde::platform::nvidia
