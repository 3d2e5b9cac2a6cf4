// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/reports.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace sonde::reports {
namespace {

constexpr std::array kReports = {
    Report{"cuda_api_sum", "CUDA API Summary", "time in CUDA API calls, by function", apiSummary},
    Report{"cuda_gpu_kern_sum", "CUDA GPU Kernel Summary", "time of kernels, by name", kernelSummary},
    Report{"cuda_gpu_mem_time_sum", "CUDA GPU MemOps Summary (by Time)", "time of copies and sets, by operation",
           memoryTimeSummary},
    Report{"cuda_gpu_mem_size_sum", "CUDA GPU MemOps Summary (by Size)", "bytes of copies and sets, by operation",
           memorySizeSummary},
    Report{"nvtx_sum", "NVTX Range Summary", "time of NVTX ranges, by name", nvtxSummary},
    Report{"cuda_gpu_sum", "CUDA GPU Summary (Kernels/MemOps)", "time of all work on the GPU, by name", gpuSummary},
    Report{"cuda_gpu_kern_gb_sum", "CUDA GPU Kernel/Grid/Block Summary", "time of kernels, by name, grid and block",
           kernelGridSummary},
    Report{"cuda_kern_exec_sum", "CUDA Kernel Launch & Exec Time Summary",
           "for each kernel: time in the launch call, waiting, and running", launchSummary},
    Report{"cuda_gpu_trace", "CUDA GPU Trace", "each kernel, copy and set in order", gpuTrace},
    Report{"cuda_api_trace", "CUDA API Trace", "each CUDA API call in order", apiTrace},
    Report{"cuda_event_sum", "CUDA Event Results", "events counted with -e, by kernel", eventSummary},
    Report{"cuda_metric_sum", "CUDA Metric Results", "metrics of -m, by kernel", metricSummary},
    Report{"cuda_counter_trace", "CUDA Event and Metric Trace", "events and metrics of each launch", counterTrace},
    Report{"source_lines", "Source Lines by Cost", "everything counted for each source line", sourceLines},
    Report{"source_global_access", "Global Memory Access by Source Line",
           "global memory transactions against the fewest possible", sourceGlobalAccess},
    Report{"source_shared_access", "Shared Memory Access by Source Line",
           "shared memory transactions against the fewest possible", sourceSharedAccess},
    Report{"source_branch", "Branches by Source Line", "how often branches diverge", sourceBranch},
    Report{"source_instruction_execution", "Instruction Execution by Source Line",
           "how often instructions run, and with how many threads", sourceInstructions},
    Report{"environment_sum", "Clocks, Temperature and Power", "what --environment sampled, by device",
           environmentSummary},
    Report{"um_profile_sum", "Unified Memory Profiling Result", "managed memory: transfers and faults, by device",
           umProfileSummary},
    Report{"um_sum", "Unified Memory Analysis Summary", "managed memory: transfers and faults, by page (rows=N)",
           umSummary},
    Report{"um_total_sum", "Unified Memory Totals Summary", "managed memory: totals", umTotalSummary},
    Report{"um_cause_sum", "Unified Memory Transfers by Cause", "managed memory: why it was moved", umCauseSummary},
    Report{"um_cpu_page_faults_sum", "Unified Memory CPU Page Faults Summary",
           "managed memory: faults of the CPU, by instruction", umCpuFaultSummary},
    Report{"um_gpu_page_faults_sum", "Unified Memory GPU Page Faults Summary",
           "managed memory: faults of the devices, by kernel", umGpuFaultSummary},
    Report{"um_thrashing_sum", "Unified Memory Thrashing Summary", "managed memory: regions that processors fight over",
           umThrashingSummary},
    Report{"um_advice", "Unified Memory Advice", "managed memory: what would avoid faults and transfers", umAdvice},
    Report{"um_trace", "Unified Memory Trace", "managed memory: each fault, transfer and map in order", umTrace},
    Report{"overhead_sum", "Overhead Summary", "time that compilation, loading and profiling took", overheadSummary},
};

}  // namespace

std::span<const Report> allReports() { return kReports; }

bool makeReport(const std::string& nameAndArgument, const Trace& trace, const Options& options, Table* table,
                std::string* error) {
  const size_t colon = nameAndArgument.find(':');
  const std::string name = nameAndArgument.substr(0, colon);
  Options used = options;
  if (colon != std::string::npos) {
    const std::string argument = nameAndArgument.substr(colon + 1);
    const auto style = parseNameStyle(argument);
    uint64_t rows = 0;
    const char* end = argument.data() + argument.size();
    if (style) {
      used.names = *style;
    } else if (argument.compare(0, 5, "rows=") == 0 && argument.size() > 5 &&
               std::from_chars(argument.data() + 5, end, rows).ptr == end) {
      used.rows = rows;
    } else {
      *error = fmt::format("report {}: unknown argument '{}' (full, base, mangled and rows=N exist)", name, argument);
      return false;
    }
  }
  for (const Report& r : kReports) {
    if (r.name != name) continue;
    *table = r.make(trace, used);
    table->name = r.name;
    table->title = r.title;
    return true;
  }
  *error = fmt::format("there is no report '{}'; there are", name);
  for (const Report& r : kReports) *error += fmt::format("{} {}", &r == kReports.data() ? "" : ",", r.name);
  return false;
}

bool selected(const Trace& trace, const GpuEvent& e, const Options& options) {
  if (!e.finished) return false;
  if (!options.devices.empty() && !options.devices.contains(e.device)) return false;
  if (options.kernels.empty() || e.work != GpuWork::Kernel) return true;
  return options.kernels.matches(demangle(trace.text(e.name)));
}

}  // namespace sonde::reports
