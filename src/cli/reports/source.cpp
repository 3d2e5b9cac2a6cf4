// SPDX-License-Identifier: Apache-2.0
// Source-level counts as tables, one row for each line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/reports/source_lines.h"

namespace sonde::reports {
namespace {

Cell percentCell(double value) { return std::isnan(value) ? Cell() : Cell(value); }

Cell perRequest(const InstructionCounts::Memory& m) {
  if (m.requests == 0) return {};
  return Quantity{static_cast<double>(m.transactions) / static_cast<double>(m.requests), QuantityKind::Number};
}

// Lines for which `order` is not 0, the greatest first.
Table linesTable(const Trace& trace, const Options& options, const char* emptyReason, std::vector<Column> columns,
                 const std::function<uint64_t(const LineCounts&)>& order,
                 const std::function<void(const LineCounts&, std::vector<Cell>&)>& fill) {
  Table t;
  t.emptyReason = emptyReason;
  t.columns = {{"File"}, {"Line", CellKind::Id}};
  t.columns.insert(t.columns.end(), columns.begin(), columns.end());
  t.columns.push_back({"Function"});
  const SourceProfile profile = profileOf(trace, options);
  std::vector<SourceProfile::Line> lines;
  for (const auto& l : profile.byCost)
    if (order(*l.counts) != 0) lines.push_back(l);
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const auto& a, const auto& b) { return order(*a.counts) > order(*b.counts); });
  for (const auto& l : lines) {
    std::vector<Cell> cells = {l.file->name, l.line == 0 ? Cell() : Cell(uint64_t{l.line})};
    fill(*l.counts, cells);
    cells.emplace_back(fmt::format("{}", fmt::join(l.counts->functions, "; ")));
    t.rows.push_back(std::move(cells));
  }
  return t;
}

Table accessTable(const Trace& trace, const Options& options, const char* emptyReason,
                  InstructionCounts::Memory LineCounts::* which) {
  return linesTable(
      trace, options, emptyReason,
      {{"Executed", CellKind::Integer},
       {"Threads", CellKind::Integer},
       {"Transactions", CellKind::Integer},
       {"Ideal Transactions", CellKind::Integer},
       {"Transactions/Access", CellKind::Integer},
       {"Efficiency", CellKind::Percent}},
      [which](const LineCounts& c) { return (c.*which).transactions; },
      [which](const LineCounts& c, std::vector<Cell>& cells) {
        const auto& m = c.*which;
        cells.insert(cells.end(), {m.requests, m.threads, m.transactions, m.ideal, perRequest(m),
                                   percentCell(LineCounts::efficiency(m))});
      });
}

}  // namespace

Table sourceGlobalAccess(const Trace& trace, const Options& options) {
  return accessTable(trace, options, "no access to global memory was recorded (--source-level-analysis global_access)",
                     &LineCounts::global);
}

Table sourceSharedAccess(const Trace& trace, const Options& options) {
  return accessTable(trace, options, "no access to shared memory was recorded (--source-level-analysis shared_access)",
                     &LineCounts::shared);
}

Table sourceBranch(const Trace& trace, const Options& options) {
  return linesTable(
      trace, options, "no branch was recorded (--source-level-analysis branch)",
      {{"Executed", CellKind::Integer},
       {"Diverged", CellKind::Integer},
       {"Divergence", CellKind::Percent},
       {"Threads", CellKind::Integer}},
      [](const LineCounts& c) { return c.branches; },
      [](const LineCounts& c, std::vector<Cell>& cells) {
        cells.insert(cells.end(), {c.branches, c.diverged, percentCell(c.divergence()), c.branchThreads});
      });
}

Table sourceInstructions(const Trace& trace, const Options& options) {
  return linesTable(
      trace, options, "no instruction was recorded (--source-level-analysis instruction_execution)",
      {{"Executed", CellKind::Integer},
       {"Threads", CellKind::Integer},
       {"Not Predicated Off", CellKind::Integer},
       {"Thread Efficiency", CellKind::Percent}},
      [](const LineCounts& c) { return c.executed; },
      [](const LineCounts& c, std::vector<Cell>& cells) {
        cells.insert(cells.end(), {c.executed, c.threads, c.notPredicatedOff, percentCell(c.threadEfficiency())});
      });
}

Table sourceLines(const Trace& trace, const Options& options) {
  const uint64_t all = profileOf(trace, options).total.cost();
  return linesTable(
      trace, options, "no instruction was recorded (sonde source, or run --source-level-analysis all)",
      {{"Cost", CellKind::Percent},
       {"Executed", CellKind::Integer},
       {"Thread Efficiency", CellKind::Percent},
       {"Branches", CellKind::Integer},
       {"Diverged", CellKind::Integer},
       {"Global Transactions", CellKind::Integer},
       {"Ideal", CellKind::Integer},
       {"Shared Transactions", CellKind::Integer},
       {"Ideal Shared", CellKind::Integer}},
      [](const LineCounts& c) { return c.cost(); },
      [all](const LineCounts& c, std::vector<Cell>& cells) {
        cells.insert(cells.end(), {100.0 * static_cast<double>(c.cost()) / static_cast<double>(all), c.executed,
                                   percentCell(c.threadEfficiency()), c.branches, c.diverged, c.global.transactions,
                                   c.global.ideal, c.shared.transactions, c.shared.ideal});
      });
}

}  // namespace sonde::reports
