// SPDX-License-Identifier: Apache-2.0
// Counter tracks of a Perfetto trace.
#ifndef SONDE_CLI_EXPORTS_PERFETTO_COUNTERS_H_
#define SONDE_CLI_EXPORTS_PERFETTO_COUNTERS_H_

#include "cli/exports/kernel_counters.h"
#include "cli/exports/perfetto_stream.h"

namespace sonde::exports {

// How many kernels run, and how fast the copies under way go, for each device.
void writeActivityCounters(PerfettoStream& stream, const Trace& trace);
// A counter track for each event and metric of each device.
void writeKernelCounters(PerfettoStream& stream, const Trace& trace, const CountedLaunches& counted);
// Clocks, temperature, power and fan of each device.
void writeEnvironment(PerfettoStream& stream, const Trace& trace);

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_PERFETTO_COUNTERS_H_
