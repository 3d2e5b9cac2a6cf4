// SPDX-License-Identifier: Apache-2.0
//
// Every environment variable that the driver reads, in one place.
#pragma once

#include <string>

namespace sonde::softgpu::driver {

struct Environment {
  std::string devices;    // SONDE_DEVICES: models, one device each
  bool quiet = false;     // SONDE_QUIET=1: no line on stderr when a context fails
  bool verbose = false;   // SONDE_VERBOSE=1: more lines (modules refused, compile times)
  std::string injection;  // CUDA_INJECTION64_PATH: a library to load in cuInit
  bool hasVisibleDevices = false;
  std::string visibleDevices;    // CUDA_VISIBLE_DEVICES: ordinals or GPU-<uuid prefix>
  bool launchBlocking = false;   // CUDA_LAUNCH_BLOCKING=1: every launch waits
  bool eagerLoading = false;     // CUDA_MODULE_LOADING=EAGER: compile all kernels of a module when it loads
  std::string managed = "auto";  // SONDE_MANAGED: resident, faults or auto (managed.h)
  bool userfaultfd = true;       // SONDE_USERFAULTFD=0: do without it
  int64_t thrashingLapseMs = 5;  // SONDE_THRASHING_LAPSE_MS: pages that move again within it may be thrashing
  int64_t accessCounters = -1;   // SONDE_ACCESS_COUNTERS: threshold of all devices; -1: as their models say
};

// Read once, at first use.
const Environment& environment();

}  // namespace sonde::softgpu::driver
