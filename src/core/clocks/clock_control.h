// SPDX-License-Identifier: Apache-2.0
//
// Who owns a clock lock: the rules of cuptiClockControl on top of a platform's
// clock functions.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "platform/tools_api.h"

namespace sonde::core {

// CUresult values that clock functions of a platform give.
inline constexpr int32_t kDriverAlreadyAcquired = 210, kDriverFileError = 304, kDriverNotPermitted = 800,
                         kDriverNotSupported = 801;

// One per process; the child of a fork owns nothing. Thread-safe: of threads
// that race for a lock one makes it, and the others find it made.
class ClockControl {
 public:
  struct Outcome {
    CUptiResult code = CUPTI_SUCCESS;
    std::string message;
  };
  Outcome status(const SondePlatform& platform, CUcontext context, uint32_t* status);
  Outcome lock(const SondePlatform& platform, CUcontext context, uint32_t mode);
  Outcome unlock();

 private:
  bool owning() const;

  std::mutex mutex_;
  const SondePlatform* owner_ = nullptr;  // platform of the lock that is ours
  uint32_t device_ = 0;
  int process_ = 0;  // that made it
};

}  // namespace sonde::core
