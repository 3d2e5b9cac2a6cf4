// SPDX-License-Identifier: Apache-2.0
// Reports of managed memory: what was moved, who faulted, who fights.
#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cli/reports/reports.h"
#include "cli/reports/stats.h"
#include "cli/reports/um_analysis.h"

namespace sonde::reports {
namespace {

constexpr const char* kNothing = "no events of unified memory were recorded (--unified-memory-profiling)";

bool chosen(const UnifiedMemory& e, const Options& options) {
  // Faults of the CPU are those of no device in particular.
  return options.devices.empty() || e.kind == kUmCpuFault || umOnCpu(e) || options.devices.contains(umDevice(e));
}

std::string hex(uint64_t address) { return fmt::format("0x{:x}", address); }

Cell whenAny(uint64_t value) { return value != 0 ? Cell(value) : Cell(); }

double rate(uint64_t bytes, uint64_t ns) {
  return ns != 0 ? static_cast<double>(bytes) * 1e9 / static_cast<double>(ns) : 0;
}

const char* directionName(uint32_t kind) {
  return kind == kUmHtoD ? "Host-to-Device" : kind == kUmDtoH ? "Device-to-Host" : "Device-to-Device";
}

}  // namespace

Table umProfileSummary(const Trace& trace, const Options& options) {
  struct Line {
    std::vector<uint64_t> sizes;
    uint64_t count = 0, time = 0;
  };
  // In the order of the rows within a device; what has no device comes last.
  enum Row : int { kUp, kDown, kAcross, kGpuFaults, kThrashes, kThrottles, kMaps, kCpuFaults };
  constexpr const char* kNames[] = {"Host-to-Device", "Device-to-Host", "Device-to-Device", "GPU page fault groups",
                                    "Thrashing",      "Throttling",     "Remote map",       "CPU page faults"};
  std::map<std::tuple<bool, uint32_t, uint32_t, Row>, Line> lines;
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    if (!chosen(e, options)) continue;
    Row row = kCpuFaults;
    bool cpu = false;
    switch (e.kind) {
      case kUmHtoD: row = kUp; break;
      case kUmDtoH: row = kDown; break;
      case kUmDtoD: row = kAcross; break;
      case kUmGpuFault: row = kGpuFaults; break;
      case kUmThrashing: row = kThrashes; break;
      case kUmThrottling:
        row = kThrottles;
        cpu = umOnCpu(e);
        break;
      case kUmRemoteMap: row = kMaps; break;
      default: cpu = true;
    }
    uint32_t device = cpu ? 0 : umDevice(e);
    if (e.kind == kUmThrashing) {  // a mask: the first of them
      device = 0;
      while (device < 320 && (e.processors[device / 64] >> (device % 64) & 1) == 0) device++;
      if (device == 320) device = 0;
    }
    Line& line = lines[{cpu, e.process, device, row}];
    line.count++;
    line.time += e.duration();
    if (isUmTransfer(e.kind) || row == kThrashes || row == kMaps) line.sizes.push_back(e.value);
  }
  Table t;
  t.columns = {{"Count", CellKind::Integer},
               {"Avg Size", CellKind::Bytes},
               {"Min Size", CellKind::Bytes},
               {"Max Size", CellKind::Bytes},
               {"Total Size", CellKind::Bytes},
               {"Total Time", CellKind::Time},
               {"Device"},
               {"Name"}};
  t.emptyReason = kNothing;
  for (auto& [key, line] : lines) {
    const auto& [cpu, process, device, row] = key;
    std::vector<Cell> cells = {line.count};
    if (line.sizes.empty()) {
      cells.resize(5);
    } else {
      const Stats s = computeStats(line.sizes);
      cells.insert(cells.end(), {s.average, s.min, s.max, s.total});
    }
    cells.push_back(whenAny(line.time));
    cells.emplace_back(cpu ? std::string("CPU") : deviceName(trace, process, device));
    cells.emplace_back(std::string(kNames[row]));
    t.rows.push_back(std::move(cells));
  }
  return t;
}

Table umSummary(const Trace& trace, const Options& options) {
  struct Line {
    uint64_t up = 0, down = 0, cpu = 0, gpu = 0, time = 0;
  };
  std::map<std::pair<uint64_t, uint32_t>, Line> lines;  // by address and process
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    if (!chosen(e, options)) continue;
    if (!isUmTransfer(e.kind) && e.kind != kUmCpuFault && e.kind != kUmGpuFault) continue;
    Line& line = lines[{e.address, e.process}];
    if (e.kind == kUmHtoD) line.up += e.value;
    if (e.kind == kUmDtoH) line.down += e.value;
    if (isUmTransfer(e.kind)) line.time += e.duration();
    if (e.kind == kUmCpuFault) line.cpu++;
    if (e.kind == kUmGpuFault) line.gpu += e.value;
  }
  std::vector<std::pair<uint64_t, Line>> sorted;
  for (const auto& [key, line] : lines) sorted.emplace_back(key.first, line);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.second.up + a.second.down, a.second.cpu + a.second.gpu) >
           std::tuple(b.second.up + b.second.down, b.second.cpu + b.second.gpu);
  });
  if (options.rows != 0 && sorted.size() > options.rows) sorted.resize(options.rows);
  Table t;
  t.columns = {{"Virtual Address", CellKind::Label},     {"HtoD Migration Size", CellKind::Bytes},
               {"DtoH Migration Size", CellKind::Bytes}, {"CPU Page Faults", CellKind::Integer},
               {"GPU Page Faults", CellKind::Integer},   {"Migration Throughput", CellKind::Throughput}};
  t.emptyReason = kNothing;
  for (const auto& [address, line] : sorted)
    t.rows.push_back({hex(address), line.up, line.down, line.cpu, line.gpu,
                      line.time != 0 ? Cell(rate(line.up + line.down, line.time)) : Cell()});
  return t;
}

Table umTotalSummary(const Trace& trace, const Options& options) {
  uint64_t up = 0, down = 0, across = 0, cpu = 0, gpu = 0, lowest = UINT64_MAX, highest = 0;
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    if (!chosen(e, options)) continue;
    if (e.kind == kUmHtoD) up += e.value;
    if (e.kind == kUmDtoH) down += e.value;
    if (e.kind == kUmDtoD) across += e.value;
    if (e.kind == kUmCpuFault) cpu++;
    if (e.kind == kUmGpuFault) gpu += e.value;
    lowest = std::min(lowest, e.address);
    highest = std::max(highest, e.address);
  }
  Table t;
  t.columns = {{"Total HtoD Migration Size", CellKind::Bytes}, {"Total DtoH Migration Size", CellKind::Bytes},
               {"Total DtoD Migration Size", CellKind::Bytes}, {"Total CPU Page Faults", CellKind::Integer},
               {"Total GPU Page Faults", CellKind::Integer},   {"Minimum Virtual Address", CellKind::Label},
               {"Maximum Virtual Address", CellKind::Label}};
  t.emptyReason = kNothing;
  if (lowest != UINT64_MAX) t.rows.push_back({up, down, across, cpu, gpu, hex(lowest), hex(highest)});
  return t;
}

Table umCauseSummary(const Trace& trace, const Options& options) {
  struct Line {
    uint64_t count = 0, bytes = 0, time = 0;
  };
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, Line> lines;
  uint64_t all = 0;
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    if (!isUmTransfer(e.kind) || !chosen(e, options)) continue;
    Line& line = lines[{e.process, umDevice(e), e.kind, e.flags}];
    line.count++;
    line.bytes += e.value;
    line.time += e.duration();
    all += e.value;
  }
  Table t;
  t.columns = {{"Size", CellKind::Percent},
               {"Total Size", CellKind::Bytes},
               {"Count", CellKind::Integer},
               {"Total Time", CellKind::Time},
               {"Throughput", CellKind::Throughput},
               {"Device"},
               {"Direction"},
               {"Cause"}};
  t.emptyReason = "no transfers of managed memory were recorded (--unified-memory-profiling)";
  std::vector<std::pair<uint64_t, std::vector<Cell>>> rows;
  for (const auto& [key, line] : lines) {
    const auto& [process, device, kind, cause] = key;
    rows.push_back({line.bytes,
                    {all != 0 ? 100.0 * static_cast<double>(line.bytes) / static_cast<double>(all) : 0.0, line.bytes,
                     line.count, line.time, rate(line.bytes, line.time), deviceName(trace, process, device),
                     std::string(directionName(kind)), std::string(unifiedMemoryFlagsName(kind, cause))}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& row : rows) t.rows.push_back(std::move(row.second));
  return t;
}

Table umCpuFaultSummary(const Trace& trace, const Options&) {
  struct Line {
    uint64_t faults = 0, reads = 0, writes = 0;
    std::set<uint64_t> pages;
  };
  std::map<std::pair<uint32_t, uint64_t>, Line> lines;
  uint64_t all = 0;
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    if (e.kind != kUmCpuFault) continue;
    Line& line = lines[{e.process, e.value}];
    line.faults++;
    (unifiedMemoryFlagsName(e.kind, e.flags) == "Read" ? line.reads : line.writes)++;
    line.pages.insert(e.address);
    all++;
  }
  Table t;
  t.columns = {{"Faults", CellKind::Percent},
               {"CPU Page Faults", CellKind::Integer},
               {"Reads", CellKind::Integer},
               {"Writes", CellKind::Integer},
               {"Pages", CellKind::Integer},
               {"CPU Instruction Address", CellKind::Label},
               {"Source"},
               {"Function"}};
  t.emptyReason = "no faults of the CPU were recorded (--unified-memory-profiling)";
  std::vector<std::pair<uint64_t, std::vector<Cell>>> rows;
  for (const auto& [key, line] : lines)
    rows.push_back({line.faults,
                    {100.0 * static_cast<double>(line.faults) / static_cast<double>(all), line.faults, line.reads,
                     line.writes, uint64_t{line.pages.size()}, umPlace(trace, key.first, key.second),
                     umSource(trace, key.first, key.second), umFunction(trace, key.first, key.second)}});
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& row : rows) t.rows.push_back(std::move(row.second));
  return t;
}

Table umGpuFaultSummary(const Trace& trace, const Options& options) {
  struct Line {
    uint64_t groups = 0, faults = 0, reads = 0, time = 0;
  };
  std::map<std::tuple<uint32_t, uint32_t, std::string>, Line> lines;
  UmKernels kernels(trace, options.names);
  uint64_t all = 0;
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    if (e.kind != kUmGpuFault || !chosen(e, options)) continue;
    Line& line = lines[{e.process, e.srcId, kernels.at(e.process, e.srcId, e.start)}];
    line.groups++;
    line.faults += e.value;
    line.reads += unifiedMemoryFlagsName(e.kind, e.flags) == "Read";
    line.time += e.duration();
    all += e.duration();
  }
  Table t;
  t.columns = {{"Time", CellKind::Percent},   {"Total Time", CellKind::Time},
               {"Groups", CellKind::Integer}, {"Faults", CellKind::Integer},
               {"Reads", CellKind::Integer},  {"Writes", CellKind::Integer},
               {"Device", CellKind::Text},    {"Kernel"}};
  t.emptyReason = "no faults of a device were recorded (--unified-memory-profiling)";
  std::vector<std::pair<uint64_t, std::vector<Cell>>> rows;
  for (const auto& [key, line] : lines) {
    const auto& [process, device, kernel] = key;
    rows.push_back(
        {line.time,
         {all != 0 ? 100.0 * static_cast<double>(line.time) / static_cast<double>(all) : 0.0, line.time, line.groups,
          line.faults, line.reads, line.groups - line.reads, deviceName(trace, process, device), kernel}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& row : rows) t.rows.push_back(std::move(row.second));
  return t;
}

Table umThrashingSummary(const Trace& trace, const Options& options) {
  constexpr uint64_t kBig = 65536;  // what thrashing is judged for
  struct Line {
    uint64_t bytes = 0, detected = 0, up = 0, down = 0, throttles = 0, throttled = 0, maps = 0;
    std::set<std::string> contenders;
  };
  std::map<std::pair<uint32_t, uint64_t>, Line> lines;  // by process and region
  for (const UnifiedMemory& e : trace.unifiedMemory)
    if (e.kind == kUmThrashing && chosen(e, options)) {
      Line& line = lines[{e.process, e.address / kBig}];
      line.detected++;
      line.bytes = std::max(line.bytes, e.value);
      line.contenders.insert(umContenders(e));
    }
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    const auto it = lines.find({e.process, e.address / kBig});
    if (it == lines.end()) continue;
    Line& line = it->second;
    if (e.kind == kUmHtoD) line.up++;
    if (e.kind == kUmDtoH) line.down++;
    if (e.kind == kUmThrottling) line.throttles++, line.throttled += e.duration();
    if (e.kind == kUmRemoteMap) line.maps++;
  }
  Table t;
  t.columns = {{"Region", CellKind::Label},        {"Size", CellKind::Bytes},          {"Detected", CellKind::Integer},
               {"HtoD", CellKind::Integer},        {"DtoH", CellKind::Integer},        {"Throttled", CellKind::Integer},
               {"Throttled Time", CellKind::Time}, {"Remote Maps", CellKind::Integer}, {"Contenders"}};
  t.emptyReason = "nothing was found to thrash";
  for (const auto& [key, line] : lines)
    t.rows.push_back({hex(key.second * kBig), line.bytes, line.detected, line.up, line.down, line.throttles,
                      whenAny(line.throttled), line.maps, fmt::format("{}", fmt::join(line.contenders, "; "))});
  std::stable_sort(t.rows.begin(), t.rows.end(), [](const auto& a, const auto& b) {
    return std::get<uint64_t>(a[3]) + std::get<uint64_t>(a[4]) > std::get<uint64_t>(b[3]) + std::get<uint64_t>(b[4]);
  });
  return t;
}

Table umTrace(const Trace& trace, const Options& options) {
  Table t;
  t.columns = {
      {"Start", CellKind::Instant},     {"Duration", CellKind::Time},      {"Virtual Address", CellKind::Label},
      {"Size", CellKind::Bytes},        {"Faults", CellKind::Integer},     {"Source", CellKind::Label},
      {"Destination", CellKind::Label}, {"Cause/Access", CellKind::Label}, {"Name"}};
  t.emptyReason = kNothing;
  const uint64_t origin = trace.origin();
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    if (!chosen(e, options)) continue;
    const auto gpu = [](uint32_t id) {
      return id == CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID ? "CPU" : fmt::format("GPU {}", id);
    };
    std::string from, to, name(unifiedMemoryKindName(e.kind));
    Cell size, faults;
    switch (e.kind) {
      case kUmHtoD: from = "CPU", to = gpu(e.dstId), size = e.value; break;
      case kUmDtoH: from = gpu(e.srcId), to = "CPU", size = e.value; break;
      case kUmDtoD: from = gpu(e.srcId), to = gpu(e.dstId), size = e.value; break;
      case kUmGpuFault: from = gpu(e.srcId), faults = e.value; break;
      case kUmThrashing: from = umContenders(e), size = e.value; break;
      case kUmThrottling: from = umOnCpu(e) ? "CPU" : gpu(e.srcId); break;
      case kUmRemoteMap: from = gpu(e.srcId), to = gpu(e.dstId), size = e.value; break;
      case kUmCpuFault: {
        from = "CPU", faults = uint64_t{1};
        const std::string function = umFunction(trace, e.process, e.value),
                          source = umSource(trace, e.process, e.value);
        name += fmt::format(" in {}{}", function.empty() ? umPlace(trace, e.process, e.value) : function,
                            source.empty() ? "" : " (" + source + ")");
        break;
      }
      default: break;
    }
    const bool flagsSaid = e.kind == kUmThrashing || e.kind == kUmThrottling;
    t.rows.push_back({e.start - origin, e.end != 0 ? Cell(e.duration()) : Cell(), hex(e.address), size, faults, from,
                      to, flagsSaid ? std::string() : std::string(unifiedMemoryFlagsName(e.kind, e.flags)), name});
  }
  return t;
}

}  // namespace sonde::reports
