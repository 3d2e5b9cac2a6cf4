// SPDX-License-Identifier: Apache-2.0
// The two plain formats: CSV, one line for each event; JSON, one array for
// each sort of event.
#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "cli/exports/exports.h"
#include "cli/reports/table.h"
#include "cli/reports/um_analysis.h"

namespace sonde::exports {
namespace {

constexpr const char* kWorkNames[] = {"kernel", "memcpy", "memset", "graph"};
constexpr const char* kStyleNames[] = {"pushpop", "startend", "mark"};

enum CsvColumn : size_t {
  kType,
  kStart,
  kEnd,
  kDuration,
  kPid,
  kTid,
  kCorrelation,
  kDevice,
  kContext,
  kStream,
  kGrid,
  kBlock = kGrid + 3,
  kRegisters = kBlock + 3,
  kStaticShared,
  kDynamicShared,
  kBytes,
  kSource,
  kDestination,
  kResult,
  kName,
  kAddress,  // of managed memory
  kFaults,
  kCause,  // of a transfer or map; the access of a fault
  kColumns
};
using CsvFields = std::array<std::string, kColumns>;
constexpr std::array<const char*, kColumns> kCsvHeader = {
    "Type",        "Start (ns)", "End (ns)", "Duration (ns)", "Pid",    "Tid",  "CorrId",  "Device",  "Ctx",
    "Strm",        "GrdX",       "GrdY",     "GrdZ",          "BlkX",   "BlkY", "BlkZ",    "Reg/Trd", "StcSMem (B)",
    "DymSMem (B)", "Bytes",      "SrcMemKd", "DstMemKd",      "Result", "Name", "Address", "Faults",  "Cause"};

template <typename N>
std::string number(N n) {
  return fmt::format("{}", n);
}

CsvFields head(const Trace& trace, const EventBase& e, std::string_view type) {
  CsvFields f;
  f[kType] = type;
  f[kStart] = number(e.start);
  f[kEnd] = number(e.end);
  f[kDuration] = number(e.duration());
  f[kPid] = number(trace.processes[e.process].pid);
  return f;
}

std::string joined(const CsvFields& f) { return fmt::format("{}", fmt::join(f, ",")); }

struct CsvRow {
  const EventBase* event;
  int order;  // of the sorts of event at one start time
  std::string text;
};

std::string dimensions(const int32_t (&v)[3]) { return fmt::format("{},{},{}", v[0], v[1], v[2]); }

}  // namespace

void writeCsv(const Trace& trace, const Options& options, const Sink& sink) {
  std::vector<CsvRow> rows;
  for (const ApiCall& c : trace.apiCalls) {
    CsvFields f = head(trace, c, c.runtime ? "runtime" : "driver");
    f[kTid] = number(c.threadId);
    f[kCorrelation] = number(c.correlation);
    f[kResult] = number(c.returnValue);
    f[kName] = reports::csvField(reports::apiName(trace.text(c.name)));
    rows.push_back({&c, 1, joined(f)});
  }
  for (const GpuEvent& e : trace.gpuEvents) {
    if (!e.finished) continue;
    CsvFields f = head(trace, e, kWorkNames[static_cast<int>(e.work)]);
    f[kCorrelation] = number(e.correlation);
    f[kDevice] = number(e.device);
    f[kContext] = number(e.context);
    f[kStream] = number(e.stream);
    if (e.work == GpuWork::Kernel) {
      for (size_t i = 0; i < 3; i++) f[kGrid + i] = number(e.grid[i]), f[kBlock + i] = number(e.block[i]);
      f[kRegisters] = number(e.registers);
      f[kStaticShared] = number(e.staticShared);
      f[kDynamicShared] = number(e.dynamicShared);
    } else if (e.work != GpuWork::Graph) {
      f[kBytes] = number(e.bytes);
      f[kSource] = reports::memoryKindName(e.srcKind);
      f[kDestination] = reports::memoryKindName(e.dstKind);
    }
    f[kName] = reports::csvField(reports::gpuEventName(trace, e, options.names));
    rows.push_back({&e, 2, joined(f)});
  }
  for (const NvtxRange& r : trace.ranges) {
    if (!r.closed) continue;
    CsvFields f = head(trace, r, fmt::format("nvtx_{}", kStyleNames[static_cast<int>(r.style)]));
    f[kTid] = number(r.threadId);
    f[kName] = reports::csvField(reports::rangeName(trace, r));
    rows.push_back({&r, 0, joined(f)});
  }
  for (const UnifiedMemory& u : trace.unifiedMemory) {
    CsvFields f = head(trace, u, "unified_memory");
    if (u.end == 0) f[kEnd] = f[kDuration] = "";
    const bool sized =
        reports::isUmTransfer(u.kind) || u.kind == reports::kUmThrashing || u.kind == reports::kUmRemoteMap;
    const bool cpu = u.kind == reports::kUmCpuFault;
    if (sized) f[kBytes] = number(u.value);
    if (!cpu && !reports::umOnCpu(u)) f[kDevice] = number(reports::umDevice(u));
    f[kAddress] = fmt::format("0x{:x}", u.address);
    if (cpu || u.kind == reports::kUmGpuFault) f[kFaults] = number(cpu ? 1 : u.value);
    f[kCause] = reports::unifiedMemoryFlagsName(u.kind, u.flags);
    std::string name(reports::unifiedMemoryKindName(u.kind));
    if (cpu) {
      const std::string function = reports::umFunction(trace, u.process, u.value);
      const std::string source = reports::umSource(trace, u.process, u.value);
      name += " in " + (function.empty() ? reports::umPlace(trace, u.process, u.value) : function);
      if (!source.empty()) name += " (" + source + ")";
    } else if (u.kind == reports::kUmThrashing) {
      name += " of " + reports::umContenders(u);
    }
    f[kName] = reports::csvField(name);
    rows.push_back({&u, 3, joined(f)});
  }
  // A line for each value; only such traces have the three columns.
  for (const CountedLaunch& l : trace.launches) {
    for (const CounterValue& v : l.values) {
      const bool overflow = v.kind == CounterKind::Event && v.count == UINT64_MAX;
      CsvFields f = head(trace, l, v.kind == CounterKind::Event ? "event" : "metric");
      f[kCorrelation] = number(l.correlation);
      f[kDevice] = number(l.device);
      f[kContext] = number(l.context);
      f[kName] = reports::csvField(reports::kernelName(trace.text(l.kernel), options.names));
      rows.push_back({&l, 4,
                      fmt::format("{},{},{},{}", joined(f), reports::csvField(trace.text(v.name)),
                                  v.instance == spool::kAllInstances ? "" : number(v.instance),
                                  overflow ? "overflow" : counterText(trace, v))});
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const CsvRow& a, const CsvRow& b) {
    return std::tie(a.event->start, a.order, a.event->process, a.event->record) <
           std::tie(b.event->start, b.order, b.event->process, b.event->record);
  });
  const bool counted = !trace.launches.empty();
  sink(fmt::format("{}{}\n", fmt::join(kCsvHeader, ","), counted ? ",Counter,Instance,Value" : ""));
  for (const CsvRow& row : rows) {
    sink(row.text);
    sink(counted && row.order != 4 ? ",,,\n" : "\n");
  }
}

void writeJson(const Trace& trace, const Options& options, const Sink& sink) {
  bool first = true;
  const auto open = [&](const char* key) {
    sink(fmt::format(",\n\"{}\":[", key));
    first = true;
  };
  const auto row = [&](const std::string& body) {
    sink(first ? "\n{" : ",\n{");
    first = false;
    sink(body);
    sink("}");
  };
  const auto times = [](const EventBase& e) {
    return fmt::format(R"("process":{},"record":{},"start":{},"end":{})", e.process, e.record, e.start, e.end);
  };
  sink(fmt::format("{{\"format\":\"sonde-json\",\"version\":1,\"records\":{},\"lost_records\":{},\"damaged_bytes\":{}",
                   trace.records(), trace.dropped(), trace.damagedBytes()));
  open("processes");
  for (const Process& p : trace.processes) {
    std::string arguments;
    for (const std::string& a : p.arguments) arguments += (arguments.empty() ? "" : ",") + jsonString(a);
    row(fmt::format(
        R"("pid":{},"parent_pid":{},"executable":{},"arguments":[{}],"host":{},"cupti":{},"cupti_version":{},"start":{},"ended":{},"records":{},"lost_records":{})",
        p.pid, p.parentPid, jsonString(p.executable), arguments, jsonString(p.host), jsonString(p.cuptiPath),
        p.cuptiVersion, p.startTime, p.end.has_value(), p.records, p.dropped));
  }
  sink("]");
  open("devices");
  for (const Device& d : trace.devices)
    row(fmt::format(
        R"("process":{},"id":{},"name":{},"compute_capability":"{}.{}","multiprocessors":{},"memory_bytes":{},"core_clock_khz":{})",
        d.process, d.id, jsonString(trace.text(d.name)), d.ccMajor, d.ccMinor, d.multiprocessors, d.memoryBytes,
        d.coreClockKHz));
  sink("]");
  open("api_calls");
  for (const ApiCall& c : trace.apiCalls)
    row(fmt::format(R"({},"domain":"{}","tid":{},"correlation":{},"cbid":{},"result":{},"nested":{},"name":{})",
                    times(c), c.runtime ? "runtime" : "driver", c.threadId, c.correlation, c.cbid, c.returnValue,
                    c.nested, jsonString(reports::apiName(trace.text(c.name)))));
  sink("]");
  open("gpu_events");
  for (const GpuEvent& e : trace.gpuEvents) {
    if (!e.finished) continue;
    std::string body = fmt::format(R"({},"type":"{}","device":{},"context":{},"stream":{},"correlation":{},"name":{})",
                                   times(e), kWorkNames[static_cast<int>(e.work)], e.device, e.context, e.stream,
                                   e.correlation, jsonString(reports::gpuEventName(trace, e, options.names)));
    if (e.work == GpuWork::Kernel) {
      body += fmt::format(
          R"(,"mangled_name":{},"grid":[{}],"block":[{}],"registers":{},"static_shared":{},"dynamic_shared":{},"local_per_thread":{})",
          jsonString(trace.text(e.name)), dimensions(e.grid), dimensions(e.block), e.registers, e.staticShared,
          e.dynamicShared, e.localPerThread);
    } else if (e.work != GpuWork::Graph) {
      body += fmt::format(R"(,"bytes":{},"async":{},"source_memory":"{}","destination_memory":"{}")", e.bytes, e.async,
                          reports::memoryKindName(e.srcKind), reports::memoryKindName(e.dstKind));
    }
    row(body);
  }
  sink("]");
  open("nvtx_ranges");
  for (const NvtxRange& r : trace.ranges)
    row(fmt::format(R"({},"style":"{}","tid":{},"closed":{},"domain":{},"name":{})", times(r),
                    kStyleNames[static_cast<int>(r.style)], r.threadId, r.closed, jsonString(trace.text(r.domain)),
                    jsonString(trace.text(r.name))));
  sink("]");
  open("environment");
  for (const EnvironmentSample& e : trace.environment) {
    std::string values;
    switch (e.kind) {
      case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
        values = fmt::format(R"("sm_clock_mhz":{},"memory_clock_mhz":{},"throttle_reasons":{})", e.smClockMHz,
                             e.memoryClockMHz, e.throttleReasons);
        break;
      case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE: values = fmt::format(R"("temperature_c":{})", e.temperatureC); break;
      case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
        values = fmt::format(R"("power_mw":{},"power_limit_mw":{})", e.powerMilliwatts, e.powerLimit);
        break;
      default: values = fmt::format(R"("fan_percent":{})", e.fanPercent); break;
    }
    row(fmt::format(R"("process":{},"record":{},"time":{},"device":{},{})", e.process, e.record, e.start, e.device,
                    values));
  }
  sink("]");
  open("counted_launches");
  for (const CountedLaunch& l : trace.launches) {
    std::string values;
    for (const CounterValue& v : l.values) {
      const bool metric = v.kind == CounterKind::Metric;
      values += fmt::format(R"({}{{"{}":{},"instance":{},"value":{}}})", values.empty() ? "" : ",",
                            metric ? "metric" : "event", jsonString(trace.text(v.name)),
                            v.instance == spool::kAllInstances ? "null" : fmt::format("{}", v.instance),
                            counterText(trace, v));
    }
    row(fmt::format(R"({},"device":{},"context":{},"correlation":{},"name":{},"mangled_name":{},"values":[{}])",
                    times(l), l.device, l.context, l.correlation,
                    jsonString(reports::kernelName(trace.text(l.kernel), options.names)),
                    jsonString(trace.text(l.kernel)), values));
  }
  sink("]");
  open("unified_memory");
  for (const UnifiedMemory& u : trace.unifiedMemory) {
    std::string more;
    if (u.kind == reports::kUmCpuFault) {
      const auto l = trace.locations.find({u.process, u.value});
      if (l != trace.locations.end())
        more = fmt::format(R"(,"module":{},"module_offset":{},"function":{},"source_file":{},"source_line":{})",
                           jsonString(trace.text(l->second.module)), l->second.offset,
                           jsonString(reports::demangle(trace.text(l->second.function))),
                           jsonString(trace.text(l->second.file)), l->second.line);
    }
    row(fmt::format(
        R"({},"kind":{},"name":"{}","value":{},"address":{},"source":{},"destination":{},"flags":{},"flags_name":"{}","processors":[{}]{})",
        times(u), u.kind, reports::unifiedMemoryKindName(u.kind), u.value, u.address, u.srcId, u.dstId, u.flags,
        reports::unifiedMemoryFlagsName(u.kind, u.flags), fmt::join(u.processors, ","), more));
  }
  sink("]");
  open("overheads");
  for (const Overhead& o : trace.overheads)
    row(fmt::format(R"({},"kind":{},"name":"{}","correlation":{})", times(o), o.kind, reports::overheadKindName(o.kind),
                    o.correlation));
  sink("]\n}\n");
}

}  // namespace sonde::exports
