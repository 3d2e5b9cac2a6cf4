// SPDX-License-Identifier: Apache-2.0
// The `sonde` program: reads the command line and hands over to a command.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include "cli/commands/completion.h"
#include "cli/commands/console.h"
#include "cli/commands/settings.h"
#include "cli/exports/exports.h"
#include "cli/reports/reports.h"

namespace sonde::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  sonde run ./app                        profile on the software GPU, print summaries\n"
    "  sonde run -o app.pftrace -- ./app -n 3 also write a trace for https://ui.perfetto.dev\n"
    "  sonde report app.sonde --print-gpu-trace\n"
    "'sonde COMMAND --help' says more.";

constexpr const char* kRunFooter =
    "The application starts at the first word that is no option, or after --.\n"
    "The exit status is the application's (128 + N when signal N ended it); 125 when sonde itself fails,\n"
    "126 when the application cannot be run, 127 when there is no such application.\n"
    "Patterns in file names: %p process id, %h host name, %q{VAR} environment variable, %% percent sign.\n"
    "With %p each process gets a file of its own.\n\n"
    "Examples:\n"
    "  sonde run ./app --its-own-option\n"
    "  sonde run --print-gpu-trace --units us ./app\n"
    "  sonde run --csv --report cuda_gpu_kern_sum:base -- ./app > kernels.csv\n"
    "  sonde run -o app --export perfetto,sqlite -f ./app\n"
    "  sonde run -o 'rank-%q{OMPI_COMM_WORLD_RANK}.sonde' ./app      (under mpirun)\n"
    "  sonde run --query-events               what can be counted\n"
    "  sonde run -e warps_launched,inst_executed -m ipc --kernels saxpy ./app\n"
    "  sonde run --device real ./app          on NVIDIA's driver instead of the software GPU";

constexpr const char* kSourceFooter =
    "The application starts at the first word that is no option, or after --.\n"
    "Cost is the warp instructions that a line executes and its transactions with global and shared memory; Threads\n"
    "the share of the warps' threads that do something; Diverged the branches after which threads of a warp part.\n"
    "In brackets: the fewest transactions that would do. Code without line information is shown as PTX; compile with\n"
    "-lineinfo.\n\n"
    "Examples:\n"
    "  sonde source ./app\n"
    "  sonde source --kernels saxpy --top 5 -- ./app --its-own-option\n"
    "  sonde source -o report.html --source-dir ~/src/app ./app\n"
    "  sonde source --csv ./app > lines.csv";

std::string reportNames() {
  std::string text = "Reports:\n";
  for (const auto& r : reports::allReports()) text += fmt::format("  {:<24} {}\n", r.name, r.description);
  return text +
         "A name may carry :full, :base or :mangled, as in cuda_gpu_kern_sum:base; um_sum:rows=N shows N "
         "rows, 0 all.\n\n";
}

std::string seconds(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == 0 && end != text.c_str() && value >= 0 && value < 1e9 ? "" : "so many seconds, not " + text;
}

// The choices stand in the type's name; CLI11 would add them again.
CLI::Validator oneOf(const std::vector<std::string>& words) { return CLI::IsMember(words).description(""); }

void addReportOptions(CLI::App& app, ReportSettings& s) {
  const char* group = "Reports";
  app.add_option("-r,--report", s.reports, "Print this report instead of the usual ones; again or by commas for more")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--print-gpu-trace", s.printGpuTrace, "Print each kernel, copy and set in order")->group(group);
  app.add_flag("--print-api-trace", s.printApiTrace, "Print each CUDA API call in order")->group(group);
  app.add_flag("--print-gpu-summary", s.printGpuSummary, "Print summaries of kernels, copies and sets")->group(group);
  app.add_flag("--print-api-summary", s.printApiSummary, "Print the summary of CUDA API calls")->group(group);
  app.add_flag("--no-report", s.noReport, "Print no report")->group(group);
  app.add_flag("--csv", s.csv, "Comma-separated values; times are always ns")->group(group);
  app.add_option("--units", s.units, "Unit of times in tables")
      ->type_name("auto|ns|us|ms|s")
      ->capture_default_str()
      ->group(group);
  app.add_option("--names", s.names, "Names of kernels: with parameters, without, or as in the binary")
      ->type_name("full|base|mangled")
      ->capture_default_str()
      ->group(group);
  app.add_option("--kernels", s.kernels, "Only kernels whose name this regular expression matches")
      ->type_name("REGEX")
      ->group(group);
  app.add_option("--devices", s.devices, "Only work on these devices, by number")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("N,N")
      ->group(group);
  app.add_flag("--nested", s.nestedDriverCalls, "Also the driver calls that runtime calls make")->group(group);
}

CLI::Option* addList(CLI::App& app, const char* names, std::vector<std::string>& to, const char* description) {
  return app.add_option(names, to, description)
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("NAME,NAME");
}

void addCounterOptions(CLI::App& app, RunSettings& s) {
  const char* group = "Events and metrics";
  app.add_flag("--query-events", s.queryEvents, "List the events of each device (with --csv or --json for programs)")
      ->group(group);
  app.add_flag("--query-metrics", s.queryMetrics, "List the metrics of each device")->group(group);
  app.add_flag("--json", s.json, "With --query-events and --query-metrics: one JSON object a line")->group(group);
  addList(app, "-e,--events", s.events, "Count these events of each kernel; all: every one")->group(group);
  addList(app, "-m,--metrics", s.metrics, "Work out these metrics of each kernel; all: every one")->group(group);
  app.add_option("--aggregate-mode", s.aggregateMode, "off: each instance of a domain by itself, not their sum")
      ->check(oneOf({"on", "off"}))
      ->type_name("on|off")
      ->capture_default_str()
      ->group(group);
  app.add_option("--replay-mode", s.replayMode,
                 "When one pass cannot count all: kernel runs each kernel again, application the whole application, "
                 "disabled counts what fits in one pass")
      ->check(oneOf({"disabled", "kernel", "application"}))
      ->type_name("disabled|kernel|application")
      ->capture_default_str()
      ->group(group);
  app.add_option("--event-collection-mode", s.eventCollectionMode,
                 "kernel: counters start at 0 with each kernel; continuous: they run on")
      ->check(oneOf({"kernel", "continuous"}))
      ->type_name("kernel|continuous")
      ->capture_default_str()
      ->group(group);
}

void addExportOptions(CLI::App& app, ExportSettings& s, const char* formats) {
  const char* group = "Files";
  app.add_option("-o,--output", s.output,
                 "Write a trace; its extension chooses the format (.sonde .pftrace .sqlite .json .csv)")
      ->type_name("FILE")
      ->group(group);
  app.add_option(formats, s.formats, "Formats to write: sonde, perfetto, sqlite, chrome, csv, json")
      ->delimiter(',')
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("FORMAT")
      ->group(group);
  app.add_flag("-f,--force", s.force, "Replace files that exist")->group(group);
}

void addCommonOptions(CLI::App& app, CommonSettings& s) {
  app.add_option("--log-file", s.logFile, "Results and messages go to this file")->type_name("FILE")->group("Files");
  app.add_flag("-q,--quiet", s.quiet, "No messages but warnings and errors")->group("Files");
}

bool useCommon(const CommonSettings& s, Console& console, std::string* error) {
  console.setQuiet(s.quiet);
  if (s.logFile.empty()) return true;
  std::string path;
  return expandPattern(s.logFile, static_cast<unsigned>(::getpid()), &path, error) && console.setLogFile(path, error);
}

// `run` takes the application's words, which CLI11 knows nothing of.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "source") return "Usage: sonde source [OPTIONS] [--] APPLICATION [ARGUMENTS...]\n";
    if (app->get_name() == "run") return "Usage: sonde run [OPTIONS] [--] APPLICATION [ARGUMENTS...]\n";
    return CLI::Formatter::make_usage(app, std::move(name));
  }
};

struct CommandLine {
  CLI::App app{"Profiles CUDA programs, on a software GPU or on a real one.", "sonde"};
  RunSettings run;
  ReportCommand report;
  ExportCommand exportOf;
  ClocksCommand clocks;
  std::string devicesOf = "auto";
  bool devicesJson = false;
  std::string shell;
  CLI::Option* traceOption = nullptr;

  void addSourceCommand();

  CommandLine() {
    app.formatter(std::make_shared<HelpFormatter>());
    app.get_formatter()->column_width(34);
    app.footer(kFooter);
    app.require_subcommand(1);
    app.set_version_flag("--version,-V", fmt::format("sonde {}", SONDE_VERSION), "Print the version");

    CLI::App& r = *app.add_subcommand("run", "Run an application and profile it");
    r.footer(reportNames() + kRunFooter);
    r.prefix_command();
    addReportOptions(r, run.report);
    addExportOptions(r, run.exports, "--export,--type");  // -e is --events here
    addCounterOptions(r, run);
    addCommonOptions(r, run.common);
    r.add_option("--device", run.device,
                 "software: the GPU that comes with sonde; real: NVIDIA's driver; auto: real where there is one")
        ->check(oneOf({"software", "real", "auto"}))
        ->type_name("software|real|auto")
        ->capture_default_str();
    r.add_option("--cupti", run.cupti, "Use this libcupti instead of sonde's own")->type_name("PATH");
    traceOption =
        r.add_option("--trace", run.trace,
                     "What to record: cuda (gpu and api), gpu, api, runtime, driver, nvtx, overhead, sync, memory, "
                     "unified-memory, graph. With -e or -m the default is gpu")
            ->type_name("LIST")
            ->capture_default_str();
    r.add_option("--unified-memory-profiling", run.unifiedMemory,
                 "per-process-device: record page faults and migrations of managed memory, print where they come from "
                 "and what would avoid them; off: do not")
        ->check(oneOf({"per-process-device", "off"}))
        ->type_name("per-process-device|off")
        ->capture_default_str();
    r.add_flag("--fidelity", run.fidelity,
               "Say how faithfully the software GPU executes the instructions of the application's kernels");
    r.add_flag("--environment", run.environment, "Sample clocks, temperature, power and fan of the devices");
    r.add_option("--environment-ms", run.environmentMs, "How often")
        ->check(CLI::Range(1u, 3600000u).description(""))
        ->type_name("MS")
        ->capture_default_str();
    r.add_option("--lock-clocks", run.lockClocks, "Lock the clocks of the devices while the application runs")
        ->check(oneOf({"base", "boost"}))
        ->type_name("base|boost");
    addList(r, "--source-level-analysis", run.sourceLevel,
            "Count instruction by instruction: global_access, shared_access, branch, instruction_execution or all")
        ->group("Source level");
    r.add_option("-t,--timeout", run.timeout, "Stop the application after so many seconds")
        ->check(seconds)
        ->type_name("SECONDS");
    r.add_option("--profile-from-start", run.profileFromStart, "off: record only between cudaProfilerStart and Stop")
        ->check(oneOf({"on", "off"}))
        ->type_name("on|off")
        ->capture_default_str();
    r.add_option("--flush-ms", run.flushMs,
                 "How often records go to disk, so that a crash loses few; 0: only when a buffer is full")
        ->type_name("MS")
        ->capture_default_str();
    r.add_option("--buffer-kb", run.bufferKb, "Size of one record buffer")
        ->check(CLI::Range(4u, 1024u * 1024u).description(""))
        ->type_name("KB")
        ->capture_default_str();
    r.add_option("--preload", run.preload,
                 "Load the collector with the program, so that _exit and exec are seen; auto: not with a sanitizer")
        ->check(oneOf({"auto", "on", "off"}))
        ->type_name("auto|on|off")
        ->capture_default_str();
    r.add_flag("--memcheck", run.memcheck, "Each access of a kernel must lie within one allocation (software GPU)");
    r.add_flag("--racecheck", run.racecheck, "Find accesses to shared memory without a barrier between (software GPU)");
    r.add_flag("--initcheck", run.initcheck, "Find reads of device memory that nothing wrote (software GPU)");
    r.add_flag("--synccheck", run.synccheck, "Find barriers that not all threads reach (software GPU)");

    addSourceCommand();

    CLI::App& p = *app.add_subcommand("report", "Print reports of a trace file");
    p.footer(reportNames() +
             "Examples:\n  sonde report app.sonde\n  sonde report app.sonde -r cuda_gpu_trace --csv > trace.csv\n"
             "  sonde report rank-*.sonde        several files as one trace");
    p.add_option("FILE", report.inputs, "Trace files (.sonde), or folders of spools")->required()->type_name("");
    addReportOptions(p, report.report);
    addCommonOptions(p, report.common);

    CLI::App& x = *app.add_subcommand("export", "Convert a trace file for another program");
    x.footer(
        "Examples:\n  sonde export app.sonde                       app.pftrace for https://ui.perfetto.dev\n"
        "  sonde export app.sonde -o app.sqlite\n  sonde export app.sonde --export chrome,csv -f");
    x.add_option("FILE", exportOf.inputs, "Trace files (.sonde), or folders of spools")->required()->type_name("");
    addExportOptions(x, exportOf.exports, "-e,--export,--type");
    addCommonOptions(x, exportOf.common);
    x.add_option("--names", exportOf.names, "Names of kernels")->type_name("full|base|mangled")->capture_default_str();

    CLI::App& k = *app.add_subcommand("clocks", "Show, lock and unlock the clocks of devices");
    k.footer(
        "A lock stays until 'sonde clocks unlock', also when this program has ended, and holds for every program.\n"
        "Unlock frees what 'sonde clocks lock' locked, and nobody else's locks. See also sonde run --lock-clocks.\n\n"
        "Examples:\n  sonde clocks status\n  sonde clocks lock --mode base --device 0\n  sonde clocks unlock");
    k.add_option("ACTION", clocks.action, "status, lock or unlock")
        ->required()
        ->check(oneOf({"status", "lock", "unlock"}))
        ->type_name("");
    k.add_option("--mode", clocks.mode, "Lock to the base or to the boost clock")
        ->check(oneOf({"base", "boost"}))
        ->type_name("base|boost")
        ->capture_default_str();
    k.add_option("--device,--devices", clocks.devices, "Only these devices, by number")
        ->delimiter(',')
        ->expected(1)
        ->take_all()
        ->allow_extra_args(false)
        ->type_name("N,N");
    k.add_option("--kind", clocks.device, "The software GPU's devices or those of NVIDIA's driver")
        ->check(oneOf({"software", "real"}))
        ->type_name("software|real")
        ->capture_default_str();
    k.add_flag("--json", clocks.json, "With status: one JSON object a line");
    addCommonOptions(k, clocks.common);

    CLI::App& d = *app.add_subcommand("devices", "List the devices");
    d.footer("Example:\n  sonde devices --json");
    d.add_option("--device", devicesOf, "Which: software, real, or auto for all there are")
        ->check(oneOf({"software", "real", "auto"}))
        ->type_name("software|real|auto")
        ->capture_default_str();
    d.add_flag("--json", devicesJson, "One JSON object a line");

    app.add_subcommand("version", "Print the version and where the parts lie")->footer("Example:\n  sonde version");

    CLI::App& c = *app.add_subcommand("completion", "Print a completion script for a shell");
    c.footer("Example:\n  sonde completion bash > ~/.local/share/bash-completion/completions/sonde");
    c.add_option("SHELL", shell, "bash, zsh or fish")->required()->type_name("");
  }
};

void CommandLine::addSourceCommand() {
  CLI::App& s = *app.add_subcommand("source", "Run an application and show what each source line costs");
  s.footer(kSourceFooter);
  s.prefix_command();
  s.add_option("-o,--output", run.source.output, "Also write the annotated source as one HTML file")
      ->type_name("FILE.html");
  s.add_flag("-f,--force", run.exports.force, "Replace a file that exists");
  s.add_option("--kernels", run.report.kernels, "Only functions whose name this regular expression matches")
      ->type_name("REGEX");
  s.add_option("--top", run.source.top, "So many lines in the list of the most expensive")
      ->type_name("LINES")
      ->capture_default_str();
  s.add_option("--context", run.source.context, "So many lines around those that ran")
      ->check(CLI::Range(0u, 1000000u).description(""))
      ->type_name("LINES")
      ->capture_default_str();
  addList(s, "--source-dir", run.source.folders, "Look for source files here too")->type_name("FOLDER");
  s.add_flag("--csv", run.report.csv, "Print a table of all lines as comma-separated values instead");
  s.add_flag("--no-report", run.report.noReport, "Print nothing, just write the file");
  s.add_option("--names", run.report.names, "Names of functions")
      ->type_name("full|base|mangled")
      ->capture_default_str();
  s.add_option("--device", run.device, "The software GPU counts instructions; NVIDIA's driver does not")
      ->check(oneOf({"software", "real", "auto"}))
      ->type_name("software|real|auto")
      ->capture_default_str();
  s.add_option("--cupti", run.cupti, "Use this libcupti instead of sonde's own")->type_name("PATH");
  s.add_option("-t,--timeout", run.timeout, "Stop the application after so many seconds")
      ->check(seconds)
      ->type_name("SECONDS");
  s.add_option("--profile-from-start", run.profileFromStart, "off: count only between cudaProfilerStart and Stop")
      ->check(oneOf({"on", "off"}))
      ->type_name("on|off")
      ->capture_default_str();
  addCommonOptions(s, run.common);
}

int runWith(CommandLine& line, const char* name, const std::vector<std::string>& afterDashes, bool hadDashes,
            Console& console) {
  // Only the application's words are left over; an option among them at the
  // front is one that sonde does not have.
  std::vector<std::string>& command = line.run.command;
  command = line.app.get_subcommand(name)->remaining();
  if (!command.empty() && command[0] == "--") command.erase(command.begin());
  if (!command.empty() && command[0].size() > 1 && command[0][0] == '-') {
    console.error(fmt::format("{0} has no option {1}; 'sonde {0} --help' lists them", name, command[0]));
    return kOwnFailure;
  }
  if (hadDashes && !command.empty()) command.emplace_back("--");
  command.insert(command.end(), afterDashes.begin(), afterDashes.end());
  line.run.traceGiven = line.traceOption->count() != 0;
  if (command.empty() && !line.run.queryEvents && !line.run.queryMetrics) {
    console.error(fmt::format("no application is given: sonde {} [OPTIONS] APPLICATION [ARGUMENTS...]", name));
    return kOwnFailure;
  }
  return runCommand(line.run, console);
}

bool isCommand(const CLI::App& app, const std::string& word, std::string* error) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == word) return true;
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  *error = fmt::format("there is no command '{}'; there are {}", word, names);
  if (::access(word.c_str(), X_OK) == 0) *error += fmt::format(". To profile it: sonde run {}", word);
  return false;
}

int mainOrThrow(int argc, char** argv) {
  Console console;
  CommandLine line;
  // What follows -- belongs to the application, whatever it looks like.
  std::vector<std::string> words(argv + 1, argv + argc), afterDashes;
  bool hadDashes = false;
  if (!words.empty() && (words[0] == "run" || words[0] == "source")) {
    for (size_t i = 1; i < words.size(); i++) {
      if (words[i] != "--") continue;
      hadDashes = true;
      afterDashes.assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      words.resize(i);
      break;
    }
  }
  std::string error;
  if (words.empty()) {
    std::fputs(line.app.help().c_str(), stderr);
    return kOwnFailure;
  }
  if (!words[0].empty() && words[0][0] != '-' && !isCommand(line.app, words[0], &error)) {
    console.error(error);
    return kOwnFailure;
  }
  std::reverse(words.begin(), words.end());  // as CLI11 wants it
  try {
    line.app.parse(words);
  } catch (const CLI::Success& e) {  // --help, --version
    return line.app.exit(e);
  } catch (const CLI::ParseError& e) {
    console.error(fmt::format("{} (--help says more)", e.what()));
    return kOwnFailure;
  }
  const auto ready = [&](const CommonSettings& s) {
    if (useCommon(s, console, &error)) return true;
    console.error(error);
    return false;
  };
  if (line.app.got_subcommand("run"))
    return ready(line.run.common) ? runWith(line, "run", afterDashes, hadDashes, console) : kOwnFailure;
  if (line.app.got_subcommand("source")) {
    line.run.source.on = true;
    line.run.sourceLevel = {"all"};
    return ready(line.run.common) ? runWith(line, "source", afterDashes, hadDashes, console) : kOwnFailure;
  }
  if (line.app.got_subcommand("report"))
    return ready(line.report.common) ? reportCommand(line.report, console) : kOwnFailure;
  if (line.app.got_subcommand("export"))
    return ready(line.exportOf.common) ? exportCommand(line.exportOf, console) : kOwnFailure;
  if (line.app.got_subcommand("clocks"))
    return ready(line.clocks.common) ? clocksCommand(line.clocks, console) : kOwnFailure;
  if (line.app.got_subcommand("devices")) return devicesCommand(line.devicesOf, line.devicesJson, console);
  if (line.app.got_subcommand("version")) return versionCommand(console);
  const auto script = completionScript(line.app, line.shell);
  if (!script) {
    console.error(fmt::format("there is no completion for {}; bash, zsh and fish exist", line.shell));
    return kOwnFailure;
  }
  console.result(*script);
  return 0;
}

}  // namespace
}  // namespace sonde::cli

int main(int argc, char** argv) {
  try {
    return sonde::cli::mainOrThrow(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sonde: error: %s\n", e.what());
    return sonde::cli::kOwnFailure;
  }
}
