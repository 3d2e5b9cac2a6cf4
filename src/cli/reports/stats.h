// SPDX-License-Identifier: Apache-2.0
#ifndef SONDE_CLI_REPORTS_STATS_H_
#define SONDE_CLI_REPORTS_STATS_H_

#include <cstdint>
#include <vector>

namespace sonde::reports {

struct Stats {
  uint64_t count = 0;
  uint64_t total = 0;
  uint64_t min = 0;
  uint64_t max = 0;
  double average = 0;
  double median = 0;     // the mean of the two middle ones when their number is even
  double deviation = 0;  // of a sample: divides by n - 1; 0 for one value
};

// Reorders the values.
Stats computeStats(std::vector<uint64_t>& values);

}  // namespace sonde::reports

#endif  // SONDE_CLI_REPORTS_STATS_H_
