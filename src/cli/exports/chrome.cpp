// SPDX-License-Identifier: Apache-2.0
// Chrome's JSON trace format, for the viewers that know nothing else. Times
// are microseconds since the start of the trace, exact to the nanosecond.
#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "cli/exports/exports.h"
#include "cli/reports/um_analysis.h"

namespace sonde::exports {
namespace {

std::string micros(uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

// Rows of the GPU are a process of their own in this format.
uint64_t gpuPid(uint32_t process, uint32_t device) { return 1'000'000'000ull + process * 1000ull + device; }

// "name":value, or "name":[value, …] for the instances of a domain.
std::string counters(const Trace& trace, const CountedLaunch& launch) {
  std::map<StringId, std::string> byName;
  std::vector<StringId> order;
  std::set<StringId> lists;
  for (const CounterValue& v : launch.values) {
    std::string& text = byName[v.name];
    if (text.empty()) order.push_back(v.name);
    if (v.instance != spool::kAllInstances) lists.insert(v.name);
    text += (text.empty() ? "" : ",") + counterText(trace, v);
  }
  std::string out;
  for (const StringId id : order) {
    const bool list = lists.contains(id);
    out += fmt::format("{}{}:{}{}{}", out.empty() ? "" : ",", jsonString(trace.text(id)), list ? "[" : "", byName[id],
                       list ? "]" : "");
  }
  return out;
}

}  // namespace

void writeChrome(const Trace& trace, const Options& options, const Sink& sink) {
  const uint64_t origin = trace.origin();
  bool first = true;
  const auto event = [&](const std::string& body) {
    sink(first ? "\n{" : ",\n{");
    first = false;
    sink(body);
    sink("}");
  };
  const auto name = [&](const char* what, uint64_t pid, uint64_t tid, const std::string& text) {
    event(fmt::format(R"("ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}})", what, pid, tid,
                      jsonString(text)));
  };
  sink("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"sonde\",\"lost_records\":" +
       std::to_string(trace.dropped()) + "},\"traceEvents\":[");
  for (const Process& p : trace.processes) {
    name("process_name", p.pid, 0, p.executable);
    for (const auto& [tid, text] : p.threadNames) name("thread_name", p.pid, tid, trace.text(text));
  }
  std::set<std::pair<uint64_t, uint64_t>> named;
  for (const GpuEvent& e : trace.gpuEvents) {
    const uint64_t pid = gpuPid(e.process, e.device), tid = uint64_t{e.context} << 16 | e.stream;
    if (named.insert({pid, UINT64_MAX}).second)
      name("process_name", pid, 0,
           fmt::format("{}, process {}", reports::deviceName(trace, e.process, e.device),
                       trace.processes[e.process].pid));
    if (named.insert({pid, tid}).second)
      name("thread_name", pid, tid, fmt::format("Context {} Stream {}", e.context, e.stream));
  }
  std::map<std::pair<uint32_t, uint32_t>, bool> hasWork;
  for (const GpuEvent& e : trace.gpuEvents)
    if (e.finished) hasWork[{e.process, e.correlation}] = true;
  for (const ApiCall& c : trace.apiCalls) {
    const uint32_t pid = trace.processes[c.process].pid;
    const std::string text = jsonString(reports::apiName(trace.text(c.name)));
    event(fmt::format(
        R"("ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"correlation":{},"result":{}}})",
        c.runtime ? "cuda_runtime" : "cuda_driver", text, pid, c.threadId, micros(c.start - origin),
        micros(c.duration()), c.correlation, c.returnValue));
    if (!c.nested && hasWork.contains({c.process, c.correlation}))
      event(fmt::format(R"("ph":"s","cat":"launch","name":"launch","id":"{}.{}","pid":{},"tid":{},"ts":{})", pid,
                        c.correlation, pid, c.threadId, micros(c.start - origin)));
  }
  // Values go to the kernel they belong to; of instances, to a list.
  std::map<std::pair<uint32_t, uint32_t>, const CountedLaunch*> counted;
  for (const CountedLaunch& l : trace.launches) counted[{l.process, l.correlation}] = &l;
  for (const GpuEvent& e : trace.gpuEvents) {
    if (!e.finished) continue;
    const uint64_t pid = gpuPid(e.process, e.device), tid = uint64_t{e.context} << 16 | e.stream;
    std::string args = fmt::format(R"("correlation":{},"device":{},"context":{},"stream":{})", e.correlation, e.device,
                                   e.context, e.stream);
    if (e.work == GpuWork::Kernel) {
      args += fmt::format(
          R"(,"grid":[{},{},{}],"block":[{},{},{}],"registers per thread":{},"static shared memory":{},"dynamic shared memory":{})",
          e.grid[0], e.grid[1], e.grid[2], e.block[0], e.block[1], e.block[2], e.registers, e.staticShared,
          e.dynamicShared);
      // Not those of a graph to the first of its kernels.
      if (const auto l = counted.find({e.process, e.correlation}); l != counted.end() && l->second->kernel == e.name) {
        args += ",\"counters\":{" + counters(trace, *l->second) + "}";
        counted.erase(l);
      }
    } else if (e.work != GpuWork::Graph) {
      args += fmt::format(R"(,"bytes":{})", e.bytes);
    }
    constexpr const char* kCategories[] = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_graph"};
    event(fmt::format(R"("ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}})",
                      kCategories[static_cast<int>(e.work)], jsonString(reports::gpuEventName(trace, e, options.names)),
                      pid, tid, micros(e.start - origin), micros(e.duration()), args));
    event(fmt::format(R"("ph":"f","bp":"e","cat":"launch","name":"launch","id":"{}.{}","pid":{},"tid":{},"ts":{})",
                      trace.processes[e.process].pid, e.correlation, pid, tid, micros(e.start - origin)));
  }
  // Each sort of event of managed memory has a row, below those of the contexts.
  for (const UnifiedMemory& u : trace.unifiedMemory) {
    const bool cpu = u.kind == reports::kUmCpuFault || reports::umOnCpu(u);
    const uint64_t pid = cpu ? trace.processes[u.process].pid : gpuPid(u.process, reports::umDevice(u));
    const uint64_t tid = 0xff000000ull + u.kind;
    const std::string text(reports::unifiedMemoryKindName(u.kind));
    if (named.insert({pid, tid}).second) name("thread_name", pid, tid, "Unified memory: " + text);
    const std::string args =
        fmt::format(R"("address":"0x{:x}","{}":{},"cause or access":"{}")", u.address,
                    reports::isUmTransfer(u.kind) || u.kind == reports::kUmRemoteMap ? "bytes" : "value", u.value,
                    reports::unifiedMemoryFlagsName(u.kind, u.flags));
    const std::string common = fmt::format(R"("cat":"unified_memory","name":{},"pid":{},"tid":{},"ts":{})",
                                           jsonString(text), pid, tid, micros(u.start - origin));
    if (u.end != 0)
      event(fmt::format(R"("ph":"X",{},"dur":{},"args":{{{}}})", common, micros(u.duration()), args));
    else
      event(fmt::format(R"("ph":"i","s":"t",{},"args":{{{}}})", common, args));
  }
  // Launches whose kernels left no record: from before the launch to after the kernel.
  for (const auto& [key, l] : counted) {
    const uint64_t pid = gpuPid(l->process, l->device);
    if (named.insert({pid, UINT64_MAX}).second)
      name("process_name", pid, 0,
           fmt::format("{}, process {}", reports::deviceName(trace, l->process, l->device),
                       trace.processes[l->process].pid));
    if (named.insert({pid, 0}).second) name("thread_name", pid, 0, "Counted launches");
    event(fmt::format(
        R"("ph":"X","cat":"counted_launch","name":{},"pid":{},"tid":0,"ts":{},"dur":{},"args":{{"correlation":{},"device":{},"context":{},"counters":{{{}}}}})",
        jsonString(reports::kernelName(trace.text(l->kernel), options.names)), pid, micros(l->start - origin),
        micros(l->duration()), l->correlation, l->device, l->context, counters(trace, *l)));
  }
  for (const NvtxRange& r : trace.ranges) {
    if (!r.closed) continue;
    const uint32_t pid = trace.processes[r.process].pid;
    const std::string text = jsonString(reports::rangeName(trace, r));
    if (r.style == RangeStyle::Mark) {
      event(fmt::format(R"("ph":"i","s":"t","cat":"nvtx","name":{},"pid":{},"tid":{},"ts":{})", text, pid, r.threadId,
                        micros(r.start - origin)));
    } else if (r.style == RangeStyle::StartEnd) {  // need not nest
      const std::string common =
          fmt::format(R"("cat":"nvtx","name":{},"id":"{}.{}","pid":{},"tid":{})", text, pid, r.id, pid, r.threadId);
      event(fmt::format(R"("ph":"b",{},"ts":{})", common, micros(r.start - origin)));
      event(fmt::format(R"("ph":"e",{},"ts":{})", common, micros(r.end - origin)));
    } else {
      event(fmt::format(R"("ph":"X","cat":"nvtx","name":{},"pid":{},"tid":{},"ts":{},"dur":{})", text, pid, r.threadId,
                        micros(r.start - origin), micros(r.duration())));
    }
  }
  sink("\n]}\n");
}

}  // namespace sonde::exports
