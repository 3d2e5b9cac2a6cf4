// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/reports.h"

#include <fmt/format.h>

#include <array>

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
    Report{"environment_sum", "Clocks, Temperature and Power", "what --environment sampled, by device",
           environmentSummary},
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
    if (!style) {
      *error = fmt::format("report {}: unknown argument '{}' (full, base and mangled exist)", name, argument);
      return false;
    }
    used.names = *style;
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
