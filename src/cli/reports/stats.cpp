// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/stats.h"

#include <algorithm>
#include <cmath>

namespace sonde::reports {

Stats computeStats(std::vector<uint64_t>& v) {
  Stats s;
  s.count = v.size();
  if (v.empty()) return s;
  std::sort(v.begin(), v.end());
  s.min = v.front();
  s.max = v.back();
  double mean = 0, squares = 0, n = 0;
  for (const uint64_t x : v) {  // Welford: no cancellation with long runs of near-equal times
    s.total += x;
    n += 1;
    const double delta = static_cast<double>(x) - mean;
    mean += delta / n;
    squares += delta * (static_cast<double>(x) - mean);
  }
  s.average = static_cast<double>(s.total) / n;
  const size_t half = v.size() / 2;
  s.median = v.size() % 2 != 0 ? static_cast<double>(v[half])
                               : (static_cast<double>(v[half - 1]) + static_cast<double>(v[half])) / 2;
  s.deviation = v.size() > 1 ? std::sqrt(squares / (n - 1)) : 0;
  return s;
}

}  // namespace sonde::reports
