// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/device_clock.h"

#include <algorithm>
#include <cmath>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"

namespace sonde::platform::nvidia {
namespace {
// Doubles hold nanoseconds exactly for a hundred days: times are kept as the
// distance from when the platform came to life.
uint64_t origin() {
  static const uint64_t start = nowNs();
  return start;
}
// Samples that are closer than this tell no slope, ns; the clocks run apart by 7 ns in a ms, a sample is 0.1 us off.
constexpr double kSlopeSpan = 100e6;
// From then on the slope is good for longer.
constexpr double kDriftSpan = 350e6;

double less(uint64_t host) { return static_cast<double>(static_cast<int64_t>(host - origin())); }
}  // namespace

double DeviceClock::relative(uint64_t globaltimer) {
  std::lock_guard lock(mutex_);
  if (deviceOrigin_ == 0) deviceOrigin_ = globaltimer;
  return static_cast<double>(static_cast<int64_t>(globaltimer - deviceOrigin_));
}

double DeviceClock::relativeHost(uint64_t host) { return less(host); }

void DeviceClock::setAnchor(CUevent anchor, double deviceTime) {
  std::lock_guard lock(mutex_);
  anchor_ = anchor;
  anchorTime_ = deviceTime;
}

bool DeviceClock::hasAnchor() const {
  std::lock_guard lock(mutex_);
  return anchor_ != nullptr;
}

void DeviceClock::addSample(uint64_t host, double offset) {
  std::lock_guard lock(mutex_);
  if (count_ == samples_.size()) {
    std::rotate(samples_.begin(), samples_.begin() + 1, samples_.end());
    --count_;
  }
  samples_[count_++] = {less(host), offset};
}

void DeviceClock::forgetSamples() {
  std::lock_guard lock(mutex_);
  count_ = 0;
}

double DeviceClock::offsetAt(double host) const {
  if (count_ == 0) return 0;
  const Sample& last = samples_[count_ - 1];
  if (count_ == 1) return last.offset;
  // Between samples: a line through the two. Outside: the slope over all.
  for (unsigned i = count_ - 1; i > 0; --i) {
    const Sample &a = samples_[i - 1], &b = samples_[i];
    if (host >= a.host && host <= b.host && b.host > a.host)
      return a.offset + (b.offset - a.offset) * (host - a.host) / (b.host - a.host);
  }
  const Sample& first = samples_[0];
  const double span = last.host - first.host;
  if (span < kSlopeSpan) return last.offset;
  const double slope = (last.offset - first.offset) / span;
  const Sample& from = host > last.host ? last : first;
  return from.offset + slope * (host - from.host);
}

bool DeviceClock::deviceTime(CUevent event, double* time) const {
  CUevent anchor;
  double start;
  {
    std::lock_guard lock(mutex_);
    anchor = anchor_;
    start = anchorTime_;
  }
  float ms = 0;
  if (anchor == nullptr || own.cuEventElapsedTime(&ms, anchor, event) != CUDA_SUCCESS) return false;
  *time = start + static_cast<double>(ms) * 1e6;
  return true;
}

uint64_t DeviceClock::toHost(double deviceTime) const {
  std::lock_guard lock(mutex_);
  const double host = deviceTime - offsetAt(deviceTime);
  return origin() + static_cast<uint64_t>(static_cast<int64_t>(std::llround(host)));
}

double DeviceClock::toDevice(uint64_t host) const {
  std::lock_guard lock(mutex_);
  return less(host) + offsetAt(less(host));
}

bool DeviceClock::knowsDrift() const {
  std::lock_guard lock(mutex_);
  return count_ > 1 && samples_[count_ - 1].host - samples_[0].host >= kDriftSpan;
}

uint64_t DeviceClock::lastSample() const {
  std::lock_guard lock(mutex_);
  return count_ == 0 ? 0 : origin() + static_cast<uint64_t>(static_cast<int64_t>(samples_[count_ - 1].host));
}

}  // namespace sonde::platform::nvidia
