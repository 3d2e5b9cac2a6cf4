// SPDX-License-Identifier: Apache-2.0
// Clocks of devices: their state, and locks for the time of a run or until
// they are undone.
#ifndef SONDE_CLI_COMMANDS_CLOCKS_H_
#define SONDE_CLI_COMMANDS_CLOCKS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/commands/console.h"
#include "cli/commands/gpu_process.h"

namespace sonde::cli {

// What a device's clocks, temperature and power are now, as CUPTI tells it:
// {"status", "sm_mhz", "memory_mhz", "temperature_c", "power_mw",
// "power_limit_mw", "fan_percent", "throttle_reasons"}; what is not known is
// left out. In the process that has CUPTI.
nlohmann::json clockState(const Gpu& gpu, int device);
// "unlocked, SM 1500 MHz, memory 1600 MHz, 35 C, 30.0 W of 300.0 W".
std::string describeClocks(const nlohmann::json& state);

// Locks clocks for as long as it lives. A process of its own holds each lock
// and undoes it when ours goes, however that ends; should that process be
// killed as well, the lock is on the list that `sonde clocks unlock` goes by.
class ClockHold {
 public:
  ClockHold() = default;
  ~ClockHold();
  ClockHold(const ClockHold&) = delete;
  ClockHold& operator=(const ClockHold&) = delete;

  // kind: of device, "software" or "real". mode: "base" or "boost". devices
  // empty: all. False: *error, and nothing is locked.
  bool lock(const GpuLibraries& libraries, const std::string& kind, const std::vector<uint32_t>& devices,
            const std::string& mode, Console& console, std::string* error);
  void release();

 private:
  struct Holder {
    pid_t process = -1;
    int release = -1;  // closing it ends the lock
  };
  std::vector<Holder> holders_;
};

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_CLOCKS_H_
