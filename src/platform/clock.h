// SPDX-License-Identifier: Apache-2.0
//
// The one clock of a software GPU and its profiler: nanoseconds since the
// epoch. Kernel times, copy times, API times, events and %globaltimer all read
// it, so that they can be compared without conversion.
#pragma once

#include <cstdint>
#include <ctime>

namespace sonde::platform {

inline uint64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace sonde::platform
