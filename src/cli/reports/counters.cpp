// SPDX-License-Identifier: Apache-2.0
// Events and metrics of kernels, in the shape of nvprof's tables.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/reports/reports.h"

namespace sonde::reports {
namespace {

bool selected(const Trace& trace, const CountedLaunch& l, const Options& options) {
  if (!options.devices.empty() && !options.devices.contains(l.device)) return false;
  return options.kernels.empty() || options.kernels.matches(demangle(trace.text(l.kernel)));
}

QuantityKind quantityKind(const CounterInfo& info) {
  switch (info.valueKind) {
    case 0: return QuantityKind::Number;
    case 2: return QuantityKind::Percent;
    case 3: return QuantityKind::Throughput;
    case 4: return QuantityKind::Number;
    case 5: return QuantityKind::Level;
    default: return QuantityKind::Count;
  }
}

double numberOf(const CounterValue& v, const CounterInfo& info) {
  return info.kind == CounterKind::Event ? static_cast<double>(v.count) : v.number;
}

struct Row {
  uint64_t launches = 0, total = 0;
  uint64_t minCount = UINT64_MAX, maxCount = 0;
  double min = 0, max = 0, sum = 0;
  bool overflow = false;
};

Table summary(const Trace& trace, const Options& options, CounterKind kind) {
  const bool events = kind == CounterKind::Event;
  Table t;
  t.emptyReason =
      options.kernels.empty() ? "no kernel launch was counted" : "no kernel that matches --kernels was counted";
  bool instances = false;
  // Kernels in the order of their first launches, counters in the order asked.
  std::map<std::pair<std::string, std::string>, size_t> kernels;
  std::map<std::tuple<size_t, size_t, uint32_t>, Row> rows;
  std::vector<std::pair<std::string, std::string>> kernelKeys;
  for (const CountedLaunch& l : trace.launches) {
    if (!selected(trace, l, options)) continue;
    const std::pair key{deviceName(trace, l.process, l.device), kernelName(trace.text(l.kernel), options.names)};
    const auto [it, isNew] = kernels.try_emplace(key, kernelKeys.size());
    if (isNew) kernelKeys.push_back(key);
    for (const CounterValue& v : l.values) {
      const auto at = std::find(trace.shownCounters.begin(), trace.shownCounters.end(), std::pair(v.kind, v.name));
      if (v.kind != kind || at == trace.shownCounters.end()) continue;
      instances = instances || v.instance != spool::kAllInstances;
      Row& row = rows[{it->second, static_cast<size_t>(at - trace.shownCounters.begin()), v.instance}];
      const double number = numberOf(v, trace.counterInfos.at(*at));
      row.min = row.launches == 0 ? number : std::min(row.min, number);
      row.max = row.launches == 0 ? number : std::max(row.max, number);
      row.launches++;
      row.sum += number;
      row.total += v.count;
      row.minCount = std::min(row.minCount, v.count);
      row.maxCount = std::max(row.maxCount, v.count);
      row.overflow = row.overflow || (events && v.count == UINT64_MAX);
    }
  }
  t.columns = {{"Device"}, {"Kernel"}, {"Invocations", CellKind::Integer}};
  t.groupColumns = t.columns.size();  // names are long, and the same for every counter
  if (instances) t.columns.push_back({"Instance", CellKind::Id});
  t.columns.push_back({events ? "Event Name" : "Metric Name"});
  t.columns.push_back({events ? "Event Description" : "Metric Description"});
  for (const char* name : {"Min", "Max", "Avg"}) t.columns.push_back({name, CellKind::Integer});
  if (events) t.columns.push_back({"Total", CellKind::Integer});
  for (const auto& [key, row] : rows) {
    const auto& [kernel, counter, instance] = key;
    const auto& shown = trace.shownCounters[counter];
    const CounterInfo& info = trace.counterInfos.at(shown);
    std::vector<Cell> cells = {kernelKeys[kernel].first, kernelKeys[kernel].second, row.launches};
    if (instances) cells.push_back(instance == spool::kAllInstances ? Cell("all") : Cell(uint64_t{instance}));
    cells.emplace_back(trace.text(shown.second));
    cells.emplace_back(trace.text(info.description));
    const QuantityKind quantity = quantityKind(info);
    const double average = row.sum / static_cast<double>(row.launches);
    if (row.overflow) {
      cells.insert(cells.end(), 4, Cell("overflow"));
    } else if (events) {
      cells.insert(cells.end(), {row.minCount, row.maxCount, Quantity{average, QuantityKind::Number}, row.total});
    } else {
      const auto averageKind = quantity == QuantityKind::Count ? QuantityKind::Number : quantity;
      cells.insert(cells.end(),
                   {Quantity{row.min, quantity}, Quantity{row.max, quantity}, Quantity{average, averageKind}});
    }
    t.rows.push_back(std::move(cells));
  }
  return t;
}

}  // namespace

Table eventSummary(const Trace& trace, const Options& options) { return summary(trace, options, CounterKind::Event); }
Table metricSummary(const Trace& trace, const Options& options) { return summary(trace, options, CounterKind::Metric); }

Table counterTrace(const Trace& trace, const Options& options) {
  Table t;
  t.emptyReason =
      options.kernels.empty() ? "no kernel launch was counted" : "no kernel that matches --kernels was counted";
  // A column for each counter, or for each of its instances.
  std::map<std::pair<size_t, uint32_t>, size_t> columns;
  const auto keyOf = [&](const CounterValue& v) -> std::optional<std::pair<size_t, uint32_t>> {
    const auto at = std::find(trace.shownCounters.begin(), trace.shownCounters.end(), std::pair(v.kind, v.name));
    if (at == trace.shownCounters.end()) return std::nullopt;
    return std::pair(static_cast<size_t>(at - trace.shownCounters.begin()), v.instance);
  };
  for (const CountedLaunch& l : trace.launches) {
    if (!selected(trace, l, options)) continue;
    for (const CounterValue& v : l.values)
      if (const auto key = keyOf(v)) columns[*key] = 0;
  }
  t.columns = {{"Start", CellKind::Instant}, {"Device"}, {"Ctx", CellKind::Id}, {"Strm", CellKind::Id},
               {"CorrId", CellKind::Id},     {"Kernel"}};
  const size_t fixed = t.columns.size();
  for (auto& [key, column] : columns) {
    const std::string& name = trace.text(trace.shownCounters[key.first].second);
    column = t.columns.size();
    t.columns.push_back(
        {key.second == spool::kAllInstances ? name : fmt::format("{} ({})", name, key.second), CellKind::Integer});
  }
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> streams;
  for (const GpuEvent& e : trace.gpuEvents)
    if (e.work == GpuWork::Kernel) streams[{e.process, e.correlation}] = e.stream;
  const uint64_t origin = trace.origin();
  for (const CountedLaunch& l : trace.launches) {
    if (!selected(trace, l, options)) continue;
    const auto stream = streams.find({l.process, l.correlation});
    std::vector<Cell> row = {l.start - origin,        deviceName(trace, l.process, l.device),
                             uint64_t{l.context},     stream != streams.end() ? Cell(uint64_t{stream->second}) : Cell(),
                             uint64_t{l.correlation}, kernelName(trace.text(l.kernel), options.names)};
    row.resize(fixed + columns.size());
    for (const CounterValue& v : l.values) {
      const auto key = keyOf(v);
      if (!key) continue;
      const CounterInfo& info = trace.counterInfos.at(trace.shownCounters[key->first]);
      Cell& cell = row[columns.at(*key)];
      if (v.kind == CounterKind::Metric) {
        cell = Quantity{v.number, quantityKind(info)};
      } else {
        cell = v.count == UINT64_MAX ? Cell("overflow") : Cell(v.count);
      }
    }
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace sonde::reports
