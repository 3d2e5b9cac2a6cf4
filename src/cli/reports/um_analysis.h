// SPDX-License-Identifier: Apache-2.0
// What the records of unified memory say together: which allocation, kernel and
// line of code each belongs to.
#ifndef SONDE_CLI_REPORTS_UM_ANALYSIS_H_
#define SONDE_CLI_REPORTS_UM_ANALYSIS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/reports/names.h"
#include "cli/spool/trace.h"

namespace sonde::reports {

// In the order of CUpti_ActivityUnifiedMemoryCounterKind.
enum UmKind : uint32_t {
  kUmHtoD = 1,
  kUmDtoH,
  kUmCpuFault,
  kUmGpuFault,
  kUmThrashing,
  kUmThrottling,
  kUmRemoteMap,
  kUmDtoD
};
constexpr bool isUmTransfer(uint32_t kind) { return kind == kUmHtoD || kind == kUmDtoH || kind == kUmDtoD; }

// A managed allocation, or, where allocations were not recorded, addresses that
// lie within 2 MiB of each other.
struct UmArea {
  uint32_t process = 0;
  uint64_t address = 0, bytes = 0;
  bool allocation = false;
  std::vector<const UnifiedMemory*> events;  // in order of time
};

// Areas with events, by process and address.
std::vector<UmArea> umAreas(const Trace& trace);

// The device that an event concerns; of a transfer between devices the destination.
uint32_t umDevice(const UnifiedMemory& event);
bool umOnCpu(const UnifiedMemory& event);  // throttling and thrashing: the CPU takes part
// "CPU, GPU 0, GPU 2" of a thrashing record.
std::string umContenders(const UnifiedMemory& event);

// Kernels that ran on a device at a time. Names come in the style asked for.
class UmKernels {
 public:
  UmKernels(const Trace& trace, NameStyle style);
  // "(copy, set or none)" when none did, "(several kernels)" when more than one did.
  std::string at(uint32_t process, uint32_t device, uint64_t time);

 private:
  const Trace& trace_;
  NameStyle style_;
  struct Track {
    std::vector<const GpuEvent*> kernels;  // by start
    std::vector<uint64_t> lastEnd;         // the latest end up to each
  };
  std::map<std::pair<uint32_t, uint32_t>, Track> tracks_;
};

// "fill(float*)" of a faulting instruction, "" when not known, and "file.cu:12".
std::string umFunction(const Trace& trace, uint32_t process, uint64_t pc);
std::string umSource(const Trace& trace, uint32_t process, uint64_t pc);
// "app+0x1234", or the address where not even the module is known.
std::string umPlace(const Trace& trace, uint32_t process, uint64_t pc);

}  // namespace sonde::reports

#endif  // SONDE_CLI_REPORTS_UM_ANALYSIS_H_
