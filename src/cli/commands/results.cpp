// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/results.h"

#include <cupti.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "cli/exports/exports.h"
#include "cli/exports/output_file.h"
#include "cli/reports/reports.h"
#include "cli/spool/reader.h"

namespace sonde::cli {
namespace {

constexpr const char* kTraceFormat = "sonde";
constexpr const char* kTraceExtension = ".sonde";

std::vector<std::string> chosenReports(const ReportSettings& s) {
  std::vector<std::string> names = s.reports;
  if (s.printGpuSummary) {
    names.insert(names.end(), {"cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum"});
  }
  if (s.printApiSummary) names.emplace_back("cuda_api_sum");
  if (s.printGpuTrace) names.emplace_back("cuda_gpu_trace");
  if (s.printApiTrace) names.emplace_back("cuda_api_trace");
  return names;
}

struct Output {
  std::string format;  // kTraceFormat or one of the exports
  std::string path;    // pattern
};

// -o alone: the extension says the format. With formats: each its extension,
// unless there is one format and the name has an extension already.
bool chosenOutputs(const ExportSettings& s, std::vector<Output>* outputs, std::string* error) {
  if (s.output.empty() && s.formats.empty()) return true;
  const std::string base = s.output.empty() ? "sonde-%p" : s.output;
  const std::filesystem::path asPath(base);
  const std::string extension = asPath.extension().string();
  if (s.formats.empty()) {
    if (extension.empty()) {
      outputs->push_back({kTraceFormat, base + kTraceExtension});
      return true;
    }
    for (const auto& f : exports::formats()) {
      if (f.extension == extension) {
        outputs->push_back({std::string(f.name), base});
        return true;
      }
    }
    if (extension == ".perfetto-trace") {
      outputs->push_back({"perfetto", base});
    } else if (extension == ".db") {
      outputs->push_back({"sqlite", base});
    } else {
      outputs->push_back({kTraceFormat, base});
    }
    return true;
  }
  for (const std::string& name : s.formats) {
    const auto* format = exports::findFormat(name);
    if (format == nullptr && name != kTraceFormat) {
      *error = fmt::format("there is no export format '{}'; there are sonde", name);
      for (const auto& f : exports::formats()) *error += fmt::format(", {}", f.name);
      return false;
    }
    const std::string wanted = format != nullptr ? std::string(format->extension) : kTraceExtension;
    if (s.formats.size() == 1 && !s.output.empty() && !extension.empty()) {
      outputs->push_back({name, base});
    } else {
      outputs->push_back({name, base + (name == "chrome" && s.formats.size() > 1 ? ".chrome.json" : wanted)});
    }
  }
  return true;
}

// Those of the source-level kinds that were recorded.
std::vector<std::string> sourceReports(const Trace& trace) {
  bool global = false, shared = false, branch = false, instruction = false;
  for (const InstructionCounts& i : trace.instructions) {
    global = global || i.global.requests != 0;
    shared = shared || i.shared.requests != 0;
    branch = branch || i.branches != 0;
    instruction = instruction || i.executed != 0;
  }
  std::vector<std::string> names;
  if (global) names.emplace_back("source_global_access");
  if (shared) names.emplace_back("source_shared_access");
  if (branch) names.emplace_back("source_branch");
  if (instruction) names.emplace_back("source_instruction_execution");
  return names;
}

// Without these a report is missing or wrong; the others only add to it.
bool isEssential(uint32_t kind) {
  constexpr uint32_t kHelpful[] = {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_NAME,
                                   CUPTI_ACTIVITY_KIND_MARKER_DATA, CUPTI_ACTIVITY_KIND_OVERHEAD};
  return std::find(std::begin(kHelpful), std::end(kHelpful), kind) == std::end(kHelpful);
}

std::string describe(const Process& p) {
  const size_t slash = p.executable.rfind('/');
  const std::string name = slash == std::string::npos ? p.executable : p.executable.substr(slash + 1);
  return name.empty() ? fmt::format("process {}", p.pid) : fmt::format("process {} ({})", p.pid, name);
}

// What the collector could not do; kinds that were refused for one reason in one line.
void printNotes(const Process& p, Console& console) {
  constexpr std::string_view kHead = "activity kind ", kMiddle = " is not recorded: ";
  std::map<std::pair<bool, std::string>, std::vector<std::string_view>> refused;
  for (const std::string& note : p.notes) {
    const size_t middle = note.find(kMiddle);
    if (note.compare(0, kHead.size(), kHead) != 0 || middle == std::string::npos) {
      console.warning(fmt::format("{}: {}", describe(p), note));
      continue;
    }
    const auto kind = static_cast<uint32_t>(std::strtoul(note.c_str() + kHead.size(), nullptr, 10));
    refused[{isEssential(kind), note.substr(middle + kMiddle.size())}].push_back(reports::activityKindName(kind));
  }
  for (const auto& [why, kinds] : refused) {
    const std::string text =
        fmt::format("{}: {} does not record {} ({})", describe(p), p.cuptiPath, fmt::join(kinds, ", "), why.second);
    why.first ? console.warning(text) : console.info(text);
  }
}

}  // namespace

bool reportOptions(const ReportSettings& s, reports::Options* options, std::string* error) {
  const auto style = reports::parseNameStyle(s.names);
  if (!style) {
    *error = fmt::format("--names {}: full, base or mangled", s.names);
    return false;
  }
  options->names = *style;
  options->devices.insert(s.devices.begin(), s.devices.end());
  options->nestedDriverCalls = s.nestedDriverCalls;
  std::string why;
  if (!s.kernels.empty() && !options->kernels.compile(s.kernels, &why)) {
    *error = fmt::format("--kernels '{}' is no regular expression: {}", s.kernels, why);
    return false;
  }
  return true;
}

bool checkReportSettings(const ReportSettings& s, std::string* error) {
  reports::Options options;
  if (!reportOptions(s, &options, error)) return false;
  if (!reports::parseTimeUnit(s.units)) {
    *error = fmt::format("--units {}: auto, ns, us, ms or s", s.units);
    return false;
  }
  const Trace empty;
  reports::Table table;
  for (const std::string& name : chosenReports(s))
    if (!reports::makeReport(name, empty, options, &table, error)) return false;
  return true;
}

bool checkExportSettings(const ExportSettings& s, std::string* error) {
  std::vector<Output> outputs;
  if (!chosenOutputs(s, &outputs, error)) return false;
  for (const Output& o : outputs) {
    std::string path;
    if (!expandPattern(o.path, 0, &path, error)) return false;
    std::error_code ec;
    if (hasProcessPattern(o.path)) continue;
    const bool exists = std::filesystem::exists(path, ec);
    if (exists && !std::filesystem::is_regular_file(path, ec)) {
      *error = fmt::format("{} is {}", path, std::filesystem::is_directory(path, ec) ? "a folder" : "not a file");
      return false;
    }
    if (exists && !s.force) {
      *error = fmt::format("{} exists already; -f replaces it", path);
      return false;
    }
    const auto folder = std::filesystem::path(path).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder, ec)) {
      *error = fmt::format("{}: there is no folder {}", path, folder.string());
      return false;
    }
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
      *error = fmt::format("{} cannot be created: {}", path, std::strerror(errno));
      return false;
    }
  }
  return true;
}

bool printReports(const Trace& trace, const ReportSettings& s, Console& console, std::string* error) {
  if (s.noReport) return true;
  reports::Options options;
  if (!reportOptions(s, &options, error)) return false;
  std::vector<std::string> names = chosenReports(s);
  const bool usual = names.empty();
  const bool counted = !trace.shownCounters.empty();
  if (counted && s.printGpuTrace)
    std::replace(names.begin(), names.end(), std::string("cuda_gpu_trace"), std::string("cuda_counter_trace"));
  if (usual && counted) {
    for (const auto& [kind, report] :
         {std::pair(CounterKind::Event, "cuda_event_sum"), std::pair(CounterKind::Metric, "cuda_metric_sum")})
      if (std::any_of(trace.shownCounters.begin(), trace.shownCounters.end(),
                      [&, k = kind](const auto& counter) { return counter.first == k; }))
        names.emplace_back(report);
  }
  const bool sources = !trace.instructions.empty();
  if (usual)
    for (std::string& name : sourceReports(trace)) names.push_back(std::move(name));
  if (usual && !counted && !sources)
    names = {"cuda_api_sum", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "nvtx_sum"};
  if (usual && !trace.environment.empty()) names.emplace_back("environment_sum");
  if (usual && !trace.unifiedMemory.empty())
    names.insert(names.end(), {"um_profile_sum", "um_sum", "um_cpu_page_faults_sum", "um_gpu_page_faults_sum",
                               "um_thrashing_sum", "um_advice"});
  const reports::TextStyle style{*reports::parseTimeUnit(s.units), console.resultColor(), console.resultWidth()};
  bool first = true;
  for (const std::string& name : names) {
    reports::Table table;
    if (!reports::makeReport(name, trace, options, &table, error)) return false;
    if (s.csv) {
      if (table.rows.empty() && usual) continue;
      if (!first) console.result("\n");
      console.result(reports::renderCsv(table));
    } else if (table.rows.empty()) {
      // The usual set says nothing of ranges that nobody made, nor of faults that were none.
      if (!(usual && (name == "nvtx_sum" || (name.compare(0, 3, "um_") == 0 && name != "um_advice"))))
        console.result(
            fmt::format("{}** {} ({}): {}\n\n", first ? "\n" : "", table.title, table.name, table.emptyReason));
    } else {
      if (first) console.result("\n");
      console.result(reports::renderText(table, style));
    }
    first = false;
  }
  console.flush();
  return true;
}

void printMovedClocks(const Trace& trace, const ReportSettings& settings, Console& console) {
  reports::Options options;
  options.devices.insert(settings.devices.begin(), settings.devices.end());
  for (const reports::MovedClock& c : reports::movedClocks(trace, options))
    console.warning(
        fmt::format("the SM clock of {} moved between {} and {} MHz while it worked, and all times depend on it: "
                    "repeated runs can differ. --lock-clocks base holds it still",
                    c.device, c.minMHz, c.maxMHz));
}

void printLosses(const Trace& trace, bool csv, Console& console, int alreadySaid) {
  const uint64_t lost = trace.dropped();
  const std::string line = fmt::format(
      "Records: {} collected{}, {} lost", reports::formatCount(trace.records()),
      trace.processes.size() > 1 ? fmt::format(" from {} processes", trace.processes.size()) : std::string(),
      reports::formatCount(lost));
  if (csv) {
    console.info(line);
  } else {
    console.result(line + "\n");
    console.flush();
  }
  for (const Process& p : trace.processes) {
    if (p.dropped != 0)
      console.warning(
          fmt::format("{} RECORDS WERE LOST in {}: every total above may be too small. A larger --buffer-kb helps.",
                      reports::formatCount(p.dropped), describe(p)));
    printNotes(p, console);
    if (p.damagedBytes != 0)
      console.warning(fmt::format("{}: {} bytes of the trace are damaged; {} records were recovered", describe(p),
                                  reports::formatCount(p.damagedBytes), reports::formatCount(p.records)));
    if (!p.end) {
      console.warning(fmt::format("{} did not end in order{}; what it delivered until then is here", describe(p),
                                  ::kill(static_cast<pid_t>(p.pid), 0) == 0 ? " (it is still running)" : " (killed?)"));
    } else if (p.end->reason == static_cast<uint32_t>(spool::EndReason::Signal) &&
               static_cast<int>(p.pid) != alreadySaid) {
      console.warning(
          fmt::format("{} was ended by signal {} ({})", describe(p), p.end->value, ::strsignal(p.end->value)));
    }
  }
  // Kernels compile in the call that first uses them; without this the first
  // launch looks like the program's own cost.
  uint64_t compilation = 0, calls = 0;
  for (const Overhead& o : trace.overheads)
    if (o.kind == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER) compilation += o.duration();
  for (const ApiCall& call : trace.apiCalls)
    if (!call.nested) calls += call.duration();
  if (compilation > calls / 10 && calls != 0)
    console.info(fmt::format("compiling kernels took {} of the {} spent in API calls (report overhead_sum)",
                             reports::formatTime(static_cast<double>(compilation), reports::TimeUnit::Auto),
                             reports::formatTime(static_cast<double>(calls), reports::TimeUnit::Auto)));
  if (trace.unifiedMemory.empty())
    for (const ApiCall& call : trace.apiCalls) {
      const std::string name = reports::apiName(trace.text(call.name));
      if (name != "cudaMallocManaged" && name != "cuMemAllocManaged") continue;
      console.info(
          "the application uses managed memory; --unified-memory-profiling per-process-device records its "
          "page faults and transfers");
      break;
    }
  if (const uint64_t unfinished = trace.unfinished(); unfinished != 0)
    console.warning(fmt::format("{} kernels or copies had not finished when the application ended; they are left out",
                                reports::formatCount(unfinished)));
}

bool readSpools(const std::vector<Spool>& spools, Trace& trace, Console& console) {
  bool any = false;
  for (const Spool& s : spools) {
    std::string error;
    const std::span<const unsigned char> bytes(reinterpret_cast<const unsigned char*>(s.content.data()),
                                               s.content.size());
    if (spool::readSpool(bytes, trace, &error)) {
      any = true;
    } else {
      console.warning(fmt::format("the records of process {} cannot be read: {}", s.pid, error));
    }
  }
  trace.finish();
  return any;
}

bool writeOutputs(const std::vector<Spool>& spools, const Trace& trace, const ExportSettings& s,
                  const std::string& names, Console& console, std::string* error) {
  std::vector<Output> outputs;
  if (!chosenOutputs(s, &outputs, error)) return false;
  exports::Options options;
  options.replace = s.force;
  options.names = reports::parseNameStyle(names).value_or(reports::NameStyle::Full);
  for (const Output& o : outputs) {
    // With %p one file for each process, else one for all of them.
    const bool split = hasProcessPattern(o.path);
    const size_t files = split ? spools.size() : 1;
    for (size_t i = 0; i < files; i++) {
      std::string path;
      if (!expandPattern(o.path, split ? spools[i].pid : 0, &path, error)) return false;
      std::string next;
      if (o.format == kTraceFormat) {
        exports::OutputFile file;
        if (!file.open(path, s.force, error)) return false;
        for (size_t k = 0; k < spools.size(); k++)
          if (!split || k == i) file.write(spools[k].content);
        if (!file.commit(error)) return false;
        next = fmt::format("; sonde report {0} prints it, sonde export {0} --export perfetto converts it", path);
      } else {
        const auto* format = exports::findFormat(o.format);
        Trace one;
        if (split) readSpools({spools[i]}, one, console);
        if (!exports::exportTrace(format->format, split ? one : trace, path, options, error)) return false;
        if (!format->openWith.empty()) {
          next = fmt::format("; {}", format->openWith);
          if (const size_t at = next.find("FILE"); at != std::string::npos) next.replace(at, 4, path);
        }
      }
      console.info(fmt::format("wrote {}{}", path, next));
    }
  }
  return true;
}

void keepRecords(const std::vector<Spool>& spools, Console& console) {
  if (spools.empty()) return;
  const char* temporary = std::getenv("TMPDIR");
  for (const std::string& folder : {std::string("."), std::string(temporary ? temporary : "/tmp")}) {
    const std::string path = fmt::format("{}/sonde-{}{}", folder, spools.front().pid, kTraceExtension);
    std::string ignored;
    exports::OutputFile file;
    if (!file.open(path, false, &ignored)) continue;
    for (const Spool& s : spools) file.write(s.content);
    if (!file.commit(&ignored)) continue;
    console.warning(fmt::format("the records are kept in {0}: sonde export {0} converts them", path));
    return;
  }
}

}  // namespace sonde::cli
