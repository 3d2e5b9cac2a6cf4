// SPDX-License-Identifier: Apache-2.0
// The reports, under the names that nsys gave them.
#ifndef SONDE_CLI_REPORTS_REPORTS_H_
#define SONDE_CLI_REPORTS_REPORTS_H_

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "cli/reports/names.h"
#include "cli/reports/pattern.h"
#include "cli/reports/table.h"
#include "cli/spool/trace.h"

namespace sonde::reports {

struct Options {
  NameStyle names = NameStyle::Full;
  Pattern kernels;                 // keep only kernels whose full name matches somewhere
  std::set<uint32_t> devices;      // keep only GPU work of these; empty: all
  bool nestedDriverCalls = false;  // also those that the runtime made
  uint64_t rows = 10;              // of reports that show only the first; 0: all
};

struct Report {
  std::string_view name;
  std::string_view title;
  std::string_view description;
  Table (*make)(const Trace& trace, const Options& options);
};

std::span<const Report> allReports();
// "cuda_gpu_kern_sum", also with an argument: "cuda_gpu_kern_sum:base".
// False: *error says what is wrong and what there is.
bool makeReport(const std::string& nameAndArgument, const Trace& trace, const Options& options, Table* table,
                std::string* error);

bool selected(const Trace& trace, const GpuEvent& event, const Options& options);

// summaries.cpp
Table apiSummary(const Trace&, const Options&);
Table kernelSummary(const Trace&, const Options&);
Table kernelGridSummary(const Trace&, const Options&);
Table gpuSummary(const Trace&, const Options&);
Table memoryTimeSummary(const Trace&, const Options&);
Table memorySizeSummary(const Trace&, const Options&);
Table nvtxSummary(const Trace&, const Options&);
Table overheadSummary(const Trace&, const Options&);
Table launchSummary(const Trace&, const Options&);
// environment.cpp
Table environmentSummary(const Trace&, const Options&);
// Devices whose SM clock was not the same in all samples that were not idle.
struct MovedClock {
  std::string device;
  uint32_t minMHz = 0, maxMHz = 0;
};
std::vector<MovedClock> movedClocks(const Trace&, const Options&);
// "power cap" … of CUpti_EnvironmentClocksThrottleReason bits.
std::vector<std::string> throttleReasonNames(uint32_t reasons);
// counters.cpp
Table eventSummary(const Trace&, const Options&);
Table metricSummary(const Trace&, const Options&);
Table counterTrace(const Trace&, const Options&);
// unified_memory.cpp
Table umProfileSummary(const Trace&, const Options&);
Table umSummary(const Trace&, const Options&);
Table umTotalSummary(const Trace&, const Options&);
Table umCauseSummary(const Trace&, const Options&);
Table umCpuFaultSummary(const Trace&, const Options&);
Table umGpuFaultSummary(const Trace&, const Options&);
Table umThrashingSummary(const Trace&, const Options&);
Table umTrace(const Trace&, const Options&);
// um_advice.cpp
Table umAdvice(const Trace&, const Options&);
// source.cpp
Table sourceLines(const Trace&, const Options&);
Table sourceGlobalAccess(const Trace&, const Options&);
Table sourceSharedAccess(const Trace&, const Options&);
Table sourceBranch(const Trace&, const Options&);
Table sourceInstructions(const Trace&, const Options&);
// traces.cpp
Table gpuTrace(const Trace&, const Options&);
Table apiTrace(const Trace&, const Options&);

}  // namespace sonde::reports

#endif  // SONDE_CLI_REPORTS_REPORTS_H_
