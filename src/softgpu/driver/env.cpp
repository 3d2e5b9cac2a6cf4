// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/env.h"

#include <cstdio>
#include <cstdlib>

namespace sonde::softgpu::driver {
namespace {

std::string text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
bool flag(const char* name) {
  const std::string value = text(name);
  return !value.empty() && value != "0";
}

Environment read() {
  Environment e;
  e.devices = text("SONDE_DEVICES");
  e.quiet = flag("SONDE_QUIET");
  e.verbose = flag("SONDE_VERBOSE");
  e.injection = text("CUDA_INJECTION64_PATH");
  e.hasVisibleDevices = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  e.visibleDevices = text("CUDA_VISIBLE_DEVICES");
  e.launchBlocking = flag("CUDA_LAUNCH_BLOCKING");
  e.eagerLoading = text("CUDA_MODULE_LOADING") == "EAGER";
  e.userfaultfd = text("SONDE_USERFAULTFD") != "0";
  if (const std::string managed = text("SONDE_MANAGED"); managed == "resident" || managed == "faults")
    e.managed = managed;
  else if (!managed.empty() && managed != "auto" && !e.quiet)
    std::fprintf(stderr, "sonde: SONDE_MANAGED=%s: say resident, faults or auto\n", managed.c_str());
  auto number = [&](const char* name, int64_t& value, const char* what) {
    const std::string given = text(name);
    if (given.empty()) return;
    char* end = nullptr;
    const long long read = std::strtoll(given.c_str(), &end, 10);
    if (*end == 0 && read >= 0 && read <= 1 << 30)
      value = read;
    else if (!e.quiet)
      std::fprintf(stderr, "sonde: %s=%s: say a number of %s\n", name, given.c_str(), what);
  };
  number("SONDE_ACCESS_COUNTERS", e.accessCounters, "touches, 0 for never");
  number("SONDE_THRASHING_LAPSE_MS", e.thrashingLapseMs, "milliseconds");
  return e;
}

}  // namespace

const Environment& environment() {
  static const Environment* e = new Environment(read());
  return *e;
}

}  // namespace sonde::softgpu::driver
