// SPDX-License-Identifier: Apache-2.0
// The locks that `sonde clocks lock` and `sonde run --lock-clocks` have made and
// that are still in force.
//
// A lock outlives the process that made it, and for any other process CUPTI
// treats it as a stranger's, which cuptiClockControlUnlock leaves alone. So the
// command keeps a list of its own locks in a file, and undoes those on it by
// the driver's own interface: the software GPU's tools interface, or NVML.
#ifndef SONDE_CLI_COMMANDS_CLOCK_LOCKS_H_
#define SONDE_CLI_COMMANDS_CLOCK_LOCKS_H_

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/gpu_process.h"

namespace sonde::cli {

// The list, in $SONDE_STATE_DIR, $XDG_RUNTIME_DIR/sonde or /tmp/sonde-<uid>.
// While it is open no other sonde changes it.
class ClockLocks {
 public:
  ClockLocks() = default;
  ~ClockLocks();
  ClockLocks(const ClockLocks&) = delete;
  ClockLocks& operator=(const ClockLocks&) = delete;

  bool open(std::string* error);
  bool contains(const std::string& kind, int device) const;
  // The process that lives and will undo the lock by itself; 0: none, the lock
  // is to be undone by hand.
  pid_t holder(const std::string& kind, int device) const;
  // `holder`: 0, or a process that undoes the lock itself.
  bool add(const std::string& kind, int device, const std::string& mode, pid_t holder, std::string* error);
  bool remove(const std::string& kind, int device, std::string* error);

 private:
  bool write(std::string* error);
  int fd_ = -1;
  std::string path_;
  // "software:0" → {"mode", "holder", "holder_started"}; a process number alone may be used again.
  nlohmann::json locks_ = nlohmann::json::object();
};

// Frees the clocks of a device whoever locked them. In a process that has the driver.
bool undoLock(const Gpu& gpu, bool software, int device, std::string* error);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_CLOCK_LOCKS_H_
