// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "cli/reports/reports.h"

namespace sonde::reports {
namespace {

bool severalProcesses(const Trace& trace) {
  std::set<uint32_t> seen;
  for (const GpuEvent& e : trace.gpuEvents) seen.insert(e.process);
  return seen.size() > 1;
}

Cell positive(uint64_t value) { return value != 0 ? Cell(value) : Cell(); }

}  // namespace

Table gpuTrace(const Trace& trace, const Options& options) {
  Table t;
  t.emptyReason = "no work on the GPU was recorded";
  const bool pids = severalProcesses(trace);
  t.columns = {{"Start", CellKind::Instant},  {"Duration", CellKind::Time},
               {"CorrId", CellKind::Id},      {"GrdX", CellKind::Id},
               {"GrdY", CellKind::Id},        {"GrdZ", CellKind::Id},
               {"BlkX", CellKind::Id},        {"BlkY", CellKind::Id},
               {"BlkZ", CellKind::Id},        {"Reg/Trd", CellKind::Id},
               {"StcSMem", CellKind::Bytes},  {"DymSMem", CellKind::Bytes},
               {"Bytes", CellKind::Bytes},    {"Throughput", CellKind::Throughput},
               {"SrcMemKd", CellKind::Label}, {"DstMemKd", CellKind::Label},
               {"Device", CellKind::Label},   {"Ctx", CellKind::Id},
               {"Strm", CellKind::Id}};
  if (pids) t.columns.push_back({"Pid", CellKind::Id});
  t.columns.push_back({"Name", CellKind::Text});
  const uint64_t origin = trace.origin();
  for (const GpuEvent& e : trace.gpuEvents) {
    if (!selected(trace, e, options)) continue;
    std::vector<Cell> row = {e.start - origin, e.duration(), uint64_t{e.correlation}};
    if (e.work == GpuWork::Kernel) {
      for (const int32_t g : e.grid) row.emplace_back(static_cast<uint64_t>(g));
      for (const int32_t b : e.block) row.emplace_back(static_cast<uint64_t>(b));
      row.insert(row.end(),
                 {uint64_t{e.registers}, uint64_t{e.staticShared}, uint64_t{e.dynamicShared}, {}, {}, {}, {}});
    } else {
      row.resize(row.size() + 9);
      row.push_back(e.work == GpuWork::Graph ? Cell() : Cell(e.bytes));
      row.push_back(e.work != GpuWork::Graph && e.duration() != 0
                        ? Cell(static_cast<double>(e.bytes) * 1e9 / static_cast<double>(e.duration()))
                        : Cell());
      row.emplace_back(std::string(memoryKindName(e.srcKind)));
      row.emplace_back(std::string(memoryKindName(e.dstKind)));
    }
    row.emplace_back(deviceName(trace, e.process, e.device));
    row.push_back(positive(e.context));
    row.emplace_back(uint64_t{e.stream});
    if (pids) row.emplace_back(uint64_t{trace.processes[e.process].pid});
    row.emplace_back(gpuEventName(trace, e, options.names));
    t.rows.push_back(std::move(row));
  }
  return t;
}

Table apiTrace(const Trace& trace, const Options& options) {
  Table t;
  t.emptyReason = "no CUDA API calls were recorded";
  t.columns = {{"Start", CellKind::Instant},
               {"Duration", CellKind::Time},
               {"Name"},
               {"Result", CellKind::Id},
               {"CorrID", CellKind::Id},
               {"Pid", CellKind::Id},
               {"Tid", CellKind::Id},
               {"Thread Name"}};
  const uint64_t origin = trace.origin();
  for (const ApiCall& call : trace.apiCalls) {
    if (call.nested && !options.nestedDriverCalls) continue;
    const Process& process = trace.processes[call.process];
    const auto thread = process.threadNames.find(call.threadId);
    t.rows.push_back({call.start - origin, call.duration(), apiName(trace.text(call.name)), uint64_t{call.returnValue},
                      uint64_t{call.correlation}, uint64_t{process.pid}, uint64_t{call.threadId},
                      thread != process.threadNames.end() ? Cell(trace.text(thread->second)) : Cell()});
  }
  return t;
}

}  // namespace sonde::reports
