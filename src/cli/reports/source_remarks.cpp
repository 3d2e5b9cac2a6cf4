// SPDX-License-Identifier: Apache-2.0
// Lines that cost more than they have to, and why.
#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/source_lines.h"

namespace sonde::reports {
namespace {

constexpr double kWorthSaying = 1;         // of 100: of all cost
constexpr double kFewThreads = 80;         // of 100
constexpr double kManyTransactions = 1.2;  // times the ideal

std::string times(const InstructionCounts::Memory& m, const char* what) {
  const double factor = static_cast<double>(m.transactions) / static_cast<double>(std::max<uint64_t>(m.ideal, 1));
  return fmt::format("{} {} where {} would do ({:.1f}x)", formatCount(m.transactions), what, formatCount(m.ideal),
                     factor);
}

bool tooMany(const InstructionCounts::Memory& m) {
  return static_cast<double>(m.transactions) >= kManyTransactions * static_cast<double>(m.ideal);
}

}  // namespace

std::vector<Remark> remarksOn(const SourceProfile& profile, size_t most) {
  std::vector<Remark> out;
  const auto all = static_cast<double>(profile.total.cost());
  if (all == 0) return out;
  for (const SourceProfile::Line& line : profile.byCost) {
    const LineCounts& c = *line.counts;
    const auto remark = [&](double saved, std::string text) {
      const double share = 100 * saved / all;
      if (share >= kWorthSaying) out.push_back({&line, share, std::move(text)});
    };
    if (tooMany(c.global))
      remark(static_cast<double>(c.global.transactions - std::min(c.global.ideal, c.global.transactions)),
             times(c.global, "transactions with global memory") + ": the addresses of a warp's threads are apart");
    if (tooMany(c.shared))
      remark(static_cast<double>(c.shared.transactions - std::min(c.shared.ideal, c.shared.transactions)),
             times(c.shared, "passes over shared memory") + ": a warp's threads access different words of one bank");
    const double active = c.threadEfficiency();
    if (active < kFewThreads) {
      const char* why = c.diverged != 0                  ? "its branches part the warps"
                        : c.notPredicatedOff < c.threads ? "others wait behind a branch or a predicate"
                                                         : "others wait behind a branch, or the warps are not full";
      remark(static_cast<double>(c.executed) * (100 - active) / 100,
             fmt::format("{:.1f}% of the warps' threads do something: {}", active, why));
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Remark& a, const Remark& b) { return a.savings > b.savings; });
  if (out.size() > most) out.resize(most);
  return out;
}

}  // namespace sonde::reports
