// SPDX-License-Identifier: Apache-2.0
// Events and metrics of kernels for a timeline: at which kernel they stand, and
// as values over time.
#ifndef SONDE_CLI_EXPORTS_KERNEL_COUNTERS_H_
#define SONDE_CLI_EXPORTS_KERNEL_COUNTERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/spool/trace.h"

namespace sonde::exports {

// The launches by process and correlation id, each with the work that it stands
// for: the record of its kernel, or nothing. Work of a graph is of several
// kernels, whose sums belong to none of them.
class CountedLaunches {
 public:
  explicit CountedLaunches(const Trace& trace);
  // Of a kernel's record; null: not counted.
  const CountedLaunch* of(const GpuEvent& kernel) const;
  // From the start of its first kernel to the end of its last where there are
  // records of them, else from before the call to after the kernel.
  std::pair<uint64_t, uint64_t> span(const CountedLaunch& launch) const;
  // Those that of() gives for no kernel.
  std::vector<const CountedLaunch*> withoutKernel() const;

 private:
  using Key = std::pair<uint32_t, uint32_t>;
  const Trace& trace_;
  std::map<Key, const CountedLaunch*> launches_;
  std::map<Key, std::pair<uint64_t, uint64_t>> spans_;
};

// "inst_executed", of an instance "inst_executed[3]".
std::string counterLabel(const Trace& trace, const CounterValue& value);

// One counter of a device over time: its value while a kernel runs, else 0.
// Events by instance are added up; metrics by instance and values that
// overflowed have no track.
struct CounterTrack {
  uint32_t device = 0;
  std::string name, description;
  std::vector<std::pair<uint64_t, double>> values;  // by time
};
std::vector<CounterTrack> counterTracks(const Trace& trace, const CountedLaunches& launches);

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_KERNEL_COUNTERS_H_
