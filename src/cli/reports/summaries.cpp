// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "cli/reports/reports.h"
#include "cli/reports/stats.h"

namespace sonde::reports {
namespace {

using Groups = std::map<std::vector<std::string>, std::vector<uint64_t>>;

struct Line {
  std::vector<std::string> key;
  Stats stats;
};

// Largest total first; equal totals by name, so that output is always the same.
std::vector<Line> sortedLines(Groups& groups, uint64_t* total) {
  std::vector<Line> lines;
  *total = 0;
  for (auto& [key, values] : groups) {
    lines.push_back({key, computeStats(values)});
    *total += lines.back().stats.total;
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.stats.total > b.stats.total; });
  return lines;
}

// The columns that nsys prints, then the key's own.
Table timeTable(Groups& groups, const char* countHeader, std::vector<Column> keyColumns, const char* emptyReason) {
  Table t;
  t.columns = {{"Time", CellKind::Percent}, {"Total Time", CellKind::Time}, {countHeader, CellKind::Integer},
               {"Avg", CellKind::Time},     {"Med", CellKind::Time},        {"Min", CellKind::Time},
               {"Max", CellKind::Time},     {"StdDev", CellKind::Time}};
  for (Column& c : keyColumns) t.columns.push_back(std::move(c));
  t.emptyReason = emptyReason;
  uint64_t total = 0;
  for (Line& line : sortedLines(groups, &total)) {
    const Stats& s = line.stats;
    std::vector<Cell> row = {total != 0 ? 100.0 * static_cast<double>(s.total) / static_cast<double>(total) : 0.0,
                             s.total,
                             s.count,
                             s.average,
                             s.median,
                             s.min,
                             s.max,
                             s.deviation};
    for (std::string& k : line.key) row.emplace_back(std::move(k));
    t.rows.push_back(std::move(row));
  }
  return t;
}

// Names are asked for once per distinct name, not once per event.
class KernelNames {
 public:
  KernelNames(const Trace& trace, NameStyle style) : trace_(trace), style_(style) {}
  const std::string& operator()(StringId id) {
    const auto [it, isNew] = known_.try_emplace(id);
    if (isNew) it->second = kernelName(trace_.text(id), style_);
    return it->second;
  }

 private:
  const Trace& trace_;
  NameStyle style_;
  std::unordered_map<StringId, std::string> known_;
};

}  // namespace

Table apiSummary(const Trace& trace, const Options& options) {
  std::unordered_map<StringId, std::vector<uint64_t>> byId;
  for (const ApiCall& call : trace.apiCalls)
    if (options.nestedDriverCalls || !call.nested) byId[call.name].push_back(call.duration());
  Groups groups;
  for (auto& [id, durations] : byId) {
    auto& all = groups[{apiName(trace.text(id))}];
    all.insert(all.end(), durations.begin(), durations.end());
  }
  return timeTable(groups, "Num Calls", {{"Name"}}, "no CUDA API calls were recorded");
}

Table kernelSummary(const Trace& trace, const Options& options) {
  Groups groups;
  KernelNames names(trace, options.names);
  for (const GpuEvent& e : trace.gpuEvents)
    if (e.work == GpuWork::Kernel && selected(trace, e, options)) groups[{names(e.name)}].push_back(e.duration());
  return timeTable(groups, "Instances", {{"Name"}}, "no kernels were recorded");
}

Table kernelGridSummary(const Trace& trace, const Options& options) {
  Groups groups;
  KernelNames names(trace, options.names);
  for (const GpuEvent& e : trace.gpuEvents) {
    if (e.work != GpuWork::Kernel || !selected(trace, e, options)) continue;
    groups[{fmt::format("{}", fmt::join(e.grid, " ")), fmt::format("{}", fmt::join(e.block, " ")), names(e.name)}]
        .push_back(e.duration());
  }
  return timeTable(groups, "Instances", {{"GridXYZ", CellKind::Label}, {"BlockXYZ", CellKind::Label}, {"Name"}},
                   "no kernels were recorded");
}

Table gpuSummary(const Trace& trace, const Options& options) {
  Groups groups;
  KernelNames names(trace, options.names);
  for (const GpuEvent& e : trace.gpuEvents) {
    if (!selected(trace, e, options)) continue;
    const bool kernel = e.work == GpuWork::Kernel || e.work == GpuWork::Graph;
    groups[{kernel ? "CUDA_KERNEL" : "MEMORY_OPER",
            e.work == GpuWork::Kernel ? names(e.name) : gpuEventName(trace, e, options.names)}]
        .push_back(e.duration());
  }
  return timeTable(groups, "Instances", {{"Category"}, {"Operation"}}, "no work on the GPU was recorded");
}

Table memoryTimeSummary(const Trace& trace, const Options& options) {
  Groups groups;
  for (const GpuEvent& e : trace.gpuEvents) {
    const bool memory = e.work == GpuWork::Memcpy || e.work == GpuWork::Memset;
    if (memory && selected(trace, e, options)) groups[{operationName(e)}].push_back(e.duration());
  }
  return timeTable(groups, "Count", {{"Operation"}}, "no copies or sets were recorded");
}

Table memorySizeSummary(const Trace& trace, const Options& options) {
  Groups groups;
  for (const GpuEvent& e : trace.gpuEvents) {
    const bool memory = e.work == GpuWork::Memcpy || e.work == GpuWork::Memset;
    if (memory && selected(trace, e, options)) groups[{operationName(e)}].push_back(e.bytes);
  }
  Table t;
  t.columns = {
      {"Total", CellKind::Bytes}, {"Count", CellKind::Integer}, {"Avg", CellKind::Bytes},    {"Med", CellKind::Bytes},
      {"Min", CellKind::Bytes},   {"Max", CellKind::Bytes},     {"StdDev", CellKind::Bytes}, {"Operation"}};
  t.emptyReason = "no copies or sets were recorded";
  uint64_t total = 0;
  for (Line& line : sortedLines(groups, &total)) {
    const Stats& s = line.stats;
    t.rows.push_back({s.total, s.count, s.average, s.median, s.min, s.max, s.deviation, std::move(line.key[0])});
  }
  return t;
}

Table nvtxSummary(const Trace& trace, const Options&) {
  Groups groups;
  for (const NvtxRange& r : trace.ranges) {
    if (r.style == RangeStyle::Mark || !r.closed) continue;
    groups[{r.style == RangeStyle::PushPop ? "Range" : "StartEnd", rangeName(trace, r)}].push_back(r.duration());
  }
  return timeTable(groups, "Instances", {{"Style"}, {"Range"}}, "no NVTX ranges were recorded");
}

Table overheadSummary(const Trace& trace, const Options&) {
  Groups groups;
  for (const Overhead& o : trace.overheads) groups[{std::string(overheadKindName(o.kind))}].push_back(o.duration());
  return timeTable(groups, "Instances", {{"Cause"}}, "no overhead was recorded");
}

Table launchSummary(const Trace& trace, const Options& options) {
  struct Times {
    std::vector<uint64_t> api, queue, kernel, total;
  };
  std::map<std::pair<uint32_t, uint32_t>, const ApiCall*> launches;
  for (const ApiCall& call : trace.apiCalls)
    if (!call.nested) launches[{call.process, call.correlation}] = &call;
  std::map<std::pair<std::string, std::string>, Times> groups;
  KernelNames names(trace, options.names);
  for (const GpuEvent& e : trace.gpuEvents) {
    if (e.work != GpuWork::Kernel || e.fromDevice || !selected(trace, e, options)) continue;
    const auto it = launches.find({e.process, e.correlation});
    if (it == launches.end()) continue;
    const ApiCall& call = *it->second;
    Times& t = groups[{names(e.name), apiName(trace.text(call.name))}];
    t.api.push_back(call.duration());
    t.queue.push_back(e.start > call.end ? e.start - call.end : 0);
    t.kernel.push_back(e.duration());
    t.total.push_back(std::max(e.end, call.end) - call.start);
  }
  Table t;
  t.columns = {{"Count", CellKind::Integer},
               {"API Avg", CellKind::Time},
               {"API Max", CellKind::Time},
               {"Queue Avg", CellKind::Time},
               {"Queue Max", CellKind::Time},
               {"Kernel Avg", CellKind::Time},
               {"Kernel Max", CellKind::Time},
               {"Total Avg", CellKind::Time},
               {"API Name"},
               {"Kernel Name"}};
  t.emptyReason = "no kernel could be joined with its launch";
  std::vector<std::pair<uint64_t, std::vector<Cell>>> rows;
  for (auto& [key, times] : groups) {
    const Stats api = computeStats(times.api), queue = computeStats(times.queue), kernel = computeStats(times.kernel),
                total = computeStats(times.total);
    rows.push_back({total.total,
                    {total.count, api.average, api.max, queue.average, queue.max, kernel.average, kernel.max,
                     total.average, key.second, key.first}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& row : rows) t.rows.push_back(std::move(row.second));
  return t;
}

}  // namespace sonde::reports
