// SPDX-License-Identifier: Apache-2.0
#include "core/clocks/clock_control.h"

#include <cupti_profiler_target.h>
#include <unistd.h>

namespace sonde::core {
namespace {

ClockControl::Outcome deviceOf(const SondePlatform& platform, CUcontext context, uint32_t* device) {
  if (platform.contextDevice(context, device) == 0) return {};
  return {CUPTI_ERROR_UNKNOWN, "the context is not alive, so that no device stands behind it"};
}

std::string driverError(int32_t error) {
  return error == kDriverFileError ? "the driver says which file is in the way"
                                   : "driver error " + std::to_string(error);
}

bool isLock(uint32_t status) {
  return status == CUPTI_CLOCK_CONTROL_STATUS_LOCKED || status == CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR;
}

}  // namespace

bool ClockControl::owning() const { return owner_ && process_ == getpid(); }

ClockControl::Outcome ClockControl::status(const SondePlatform& platform, CUcontext context, uint32_t* status) {
  uint32_t device = 0;
  if (Outcome o = deviceOf(platform, context, &device); o.code) return o;
  uint32_t answer = 0;
  int ours = 0;
  if (!platform.clockStatus) return {CUPTI_ERROR_UNKNOWN, "the platform does not tell the state of the clocks"};
  if (const int32_t error = platform.clockStatus(device, &answer, &ours))
    return {CUPTI_ERROR_UNKNOWN, "the state of the clocks could not be had (" + driverError(error) + ")"};
  *status = answer;
  return {};
}

ClockControl::Outcome ClockControl::lock(const SondePlatform& platform, CUcontext context, uint32_t mode) {
  uint32_t device = 0;
  if (Outcome o = deviceOf(platform, context, &device); o.code) return o;
  std::lock_guard guard(mutex_);
  if (owning()) return {};  // one lock a process; any further call changes nothing
  // A lock from outside is respected, also where none could be made here. Not
  // knowing is no reason to refuse.
  uint32_t state = 0;
  int ours = 0;
  if (platform.clockStatus && platform.clockStatus(device, &state, &ours) == 0 && isLock(state)) return {};
  const int32_t error = platform.clockLock ? platform.clockLock(device, mode) : kDriverNotSupported;
  if (error == 0) {
    owner_ = &platform;
    device_ = device;
    process_ = getpid();
    return {};
  }
  if (error == kDriverAlreadyAcquired) return {};  // another process was first
  const std::string which = mode == CUPTI_CLOCK_CONTROL_MODE_BOOST ? "boost" : "base";
  if (error == kDriverNotSupported)
    return {CUPTI_ERROR_NOT_SUPPORTED,
            "device " + std::to_string(device) + " has no clock control (partitioned devices have none)"};
  if (error == kDriverNotPermitted)
    return {CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
            "locking to " + which + " clocks needs more rights; run as administrator" +
                (mode == CUPTI_CLOCK_CONTROL_MODE_BOOST ? ", or lock to base clocks" : "")};
  return {CUPTI_ERROR_UNKNOWN, "the clocks could not be locked (" + driverError(error) + ")"};
}

ClockControl::Outcome ClockControl::unlock() {
  std::lock_guard guard(mutex_);
  if (!owning()) return {};
  const int32_t error = owner_->clockUnlock ? owner_->clockUnlock(device_) : kDriverNotSupported;
  if (error != 0)
    return {CUPTI_ERROR_UNKNOWN, "the clocks could not be unlocked (" + driverError(error) + "); try again"};
  owner_ = nullptr;
  return {};
}

}  // namespace sonde::core
