// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cli/commands/clocks.h"
#include "cli/commands/console.h"
#include "cli/commands/counter_catalogue.h"
#include "cli/commands/counters.h"
#include "cli/commands/fidelity.h"
#include "cli/commands/installation.h"
#include "cli/commands/launcher.h"
#include "cli/commands/locations.h"
#include "cli/commands/results.h"
#include "cli/commands/settings.h"
#include "cli/commands/source.h"
#include "cli/spool/reader.h"

namespace sonde::cli {
namespace {

namespace fs = std::filesystem;

// Removed with what is in it when the command ends.
class TemporaryFolder {
 public:
  static std::string base() {
    const char* named = std::getenv("TMPDIR");
    return named != nullptr && named[0] != 0 ? named : "/tmp";
  }
  TemporaryFolder() {
    path_ = base() + "/sonde-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() { remove(); }
  void remove() {
    std::error_code ec;
    if (!path_.empty()) fs::remove_all(path_, ec);
    path_.clear();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The activity kinds behind the words of --trace.
bool kindsOf(const std::string& words, std::vector<uint32_t>* kinds, std::string* error) {
  // Names of threads, devices and contexts go with everything.
  *kinds = {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_NAME};
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, end - at);
    at = end + 1;
    const auto add = [&](std::initializer_list<uint32_t> more) { kinds->insert(kinds->end(), more); };
    const auto gpu = {uint32_t{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, uint32_t{CUPTI_ACTIVITY_KIND_MEMCPY},
                      uint32_t{CUPTI_ACTIVITY_KIND_MEMCPY2}, uint32_t{CUPTI_ACTIVITY_KIND_MEMSET}};
    const auto api = {uint32_t{CUPTI_ACTIVITY_KIND_RUNTIME}, uint32_t{CUPTI_ACTIVITY_KIND_DRIVER}};
    if (word == "cuda") {
      add(gpu);
      add(api);
    } else if (word == "gpu") {
      add(gpu);
    } else if (word == "api") {
      add(api);
    } else if (word == "runtime") {
      add({CUPTI_ACTIVITY_KIND_RUNTIME});
    } else if (word == "driver") {
      add({CUPTI_ACTIVITY_KIND_DRIVER});
    } else if (word == "nvtx") {
      add({CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_MARKER_DATA});
    } else if (word == "overhead") {
      add({CUPTI_ACTIVITY_KIND_OVERHEAD});
    } else if (word == "sync") {
      add({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
    } else if (word == "memory") {
      add({CUPTI_ACTIVITY_KIND_MEMORY2});
    } else if (word == "unified-memory") {
      add({CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER});
    } else if (word == "graph") {
      add({CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
    } else {
      *error = fmt::format(
          "--trace {}: unknown '{}'; cuda, gpu, api, runtime, driver, nvtx, overhead, sync, memory, unified-memory and "
          "graph exist",
          words, word);
      return false;
    }
  }
  std::sort(kinds->begin(), kinds->end());
  kinds->erase(std::unique(kinds->begin(), kinds->end()), kinds->end());
  return true;
}

// The activity kinds behind the words of --source-level-analysis.
bool sourceKindsOf(const std::vector<std::string>& words, std::vector<uint32_t>* kinds, std::string* error) {
  constexpr std::pair<const char*, uint32_t> kWords[] = {
      {"global_access", CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS},
      {"shared_access", CUPTI_ACTIVITY_KIND_SHARED_ACCESS},
      {"branch", CUPTI_ACTIVITY_KIND_BRANCH},
      {"instruction_execution", CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION}};
  for (const std::string& word : words) {
    bool known = false;
    for (const auto& [name, kind] : kWords) {
      if (word != name && word != "all") continue;
      known = true;
      kinds->push_back(kind);
    }
    if (known) continue;
    if (word == "pc_sampling") {
      *error =
          "--source-level-analysis pc_sampling: the software GPU has no clock that could be sampled; "
          "instruction_execution counts every instruction";
      return false;
    }
    *error = fmt::format(
        "--source-level-analysis {}: there are global_access, shared_access, branch, instruction_execution and all",
        word);
    return false;
  }
  if (!words.empty())
    kinds->insert(kinds->end(), {CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR, CUPTI_ACTIVITY_KIND_FUNCTION,
                                 CUPTI_ACTIVITY_KIND_MODULE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  std::sort(kinds->begin(), kinds->end());
  kinds->erase(std::unique(kinds->begin(), kinds->end()), kinds->end());
  return true;
}

std::string inherited(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A sanitizer's run-time library must come first in the process: nothing may be preloaded before it.
bool usesSanitizer(const std::string& program) {
  for (const std::string& library : neededLibraries(program))
    for (const char* name : {"libasan.", "libtsan.", "libmsan.", "liblsan.", "libhwasan.", "libclang_rt."})
      if (library.compare(0, std::strlen(name), name) == 0) return true;
  return false;
}

bool usesSoftware(const RunSettings& s) { return s.device == "software" || (s.device == "auto" && !hasRealDevice()); }

struct Plan {
  bool software = true;
  std::map<std::string, std::string> environment;
};

// LD_PRELOAD is parted at spaces and colons. A folder that has one in its name is
// reached by a link in `folder`, which lives as long as the run.
fs::path preloadable(const fs::path& libraries, const fs::path& folder) {
  const auto parted = [](const fs::path& path) { return path.string().find_first_of(" :") != std::string::npos; };
  if (!parted(libraries) || parted(folder)) return libraries;
  const fs::path link = folder / "libraries";
  std::error_code ec;
  fs::create_directory_symlink(libraries, link, ec);
  return ec ? libraries : link;
}

bool makePlan(const RunSettings& s, const std::string& spoolFolder, Plan* plan, Console& console, std::string* error) {
  const Installation here = Installation::find();
  std::error_code ec;
  if (!fs::exists(here.collector, ec)) {
    *error = fmt::format("{} is missing; the installation is not whole (SONDE_LIBDIR names another library folder)",
                         here.collector);
    return false;
  }
  const std::string cupti = s.cupti.empty() ? here.cupti : fs::absolute(s.cupti, ec).lexically_normal().string();
  if (!fs::exists(cupti, ec)) {
    *error = fmt::format("{} is missing{}", cupti, s.cupti.empty() ? "; --cupti PATH names another libcupti" : "");
    return false;
  }
  std::vector<uint32_t> kinds;
  if (!kindsOf(s.trace, &kinds, error)) return false;
  if (!sourceKindsOf(s.sourceLevel, &kinds, error)) return false;
  if (s.environment) kinds.push_back(CUPTI_ACTIVITY_KIND_ENVIRONMENT);
  const auto also = [&](uint32_t kind) {
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  };
  if (s.unifiedMemory != "off") {
    also(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    also(CUPTI_ACTIVITY_KIND_MEMORY2);  // what the addresses belong to
  }

  plan->software = usesSoftware(s);
  auto& env = plan->environment;
  if (plan->software) {
    if (!fs::exists(fs::path(here.softgpu) / "libcuda.so.1", ec)) {
      *error = fmt::format("the software GPU is missing ({}/libcuda.so.1); --device real uses NVIDIA's driver",
                           here.softgpu);
      return false;
    }
    const std::string before = inherited("LD_LIBRARY_PATH");
    env["LD_LIBRARY_PATH"] = fmt::format("{}:{}{}{}", here.softgpu, here.libraries, before.empty() ? "" : ":", before);
  }
  std::vector<std::string> checks;
  for (const auto& [on, name] : {std::pair(s.memcheck, "memory"), std::pair(s.racecheck, "race"),
                                 std::pair(s.initcheck, "init"), std::pair(s.synccheck, "sync")})
    if (on) checks.emplace_back(name);
  if (!plan->software && (!checks.empty() || s.fidelity)) {
    *error =
        "--memcheck, --racecheck, --initcheck, --synccheck and --fidelity need the software GPU (--device software)";
    return false;
  }
  if (!checks.empty()) env["SONDE_CHECK"] = fmt::format("{}", fmt::join(checks, ","));
  env["SONDE_SPOOL_DIR"] = spoolFolder;
  env["SONDE_CUPTI"] = cupti;
  env["SONDE_KINDS"] = fmt::format("{}", fmt::join(kinds, ","));
  env["SONDE_FLUSH_MS"] = std::to_string(s.flushMs);
  if (s.environment) env["SONDE_ENVIRONMENT_PERIOD_MS"] = std::to_string(s.environmentMs);
  env["SONDE_BUFFER_KB"] = std::to_string(s.bufferKb);
  env["SONDE_PROFILE_FROM_START"] = std::to_string(s.profileFromStart != "off");
  // There is one slot for each injection library; one that is taken is called by ours.
  for (const auto& [slot, chain] : {std::pair("CUDA_INJECTION64_PATH", "SONDE_CHAIN_INJECTION"),
                                    std::pair("NVTX_INJECTION64_PATH", "SONDE_CHAIN_NVTX")}) {
    const std::string taken = inherited(slot);
    if (!taken.empty() && taken != here.collector) {
      console.warning(fmt::format("{} is set to {}: the collector goes first and then calls it", slot, taken));
      env[chain] = taken;
    }
    env[slot] = here.collector;
  }
  const fs::path libraries = preloadable(here.libraries, spoolFolder);
  const fs::path softgpu = libraries / "softgpu";
  std::string preloads;
  if (plan->software) {
    // Takes the place of a CUDA runtime that is linked into the program.
    const fs::path replacement = softgpu / "libsonde-static-cudart.so";
    if (fs::exists(replacement, ec)) preloads = replacement.string();
    // Programs that bring the vendor's compiler libraries along (Python's wheels) load them by their path, unless one
    // of that name is there already.
    for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvJitLink.so.13", "libnvJitLink.so.12"}) {
      const fs::path compiler = softgpu / name;
      if (fs::exists(compiler, ec)) preloads += (preloads.empty() ? "" : ":") + compiler.string();
    }
    // Where there is no userfaultfd, system calls reach managed pages by this.
    const fs::path io = softgpu / "libsonde-managed-io.so";
    if (s.unifiedMemory != "off" && fs::exists(io, ec)) preloads += (preloads.empty() ? "" : ":") + io.string();
  }
  const std::string program = findProgram(s.command[0]);
  const bool preload = s.preload == "on" || (s.preload == "auto" && !usesSanitizer(program));
  if (preload) {
    const std::string before = inherited("LD_PRELOAD");
    // Last: what is preloaded already may insist on being first.
    env["LD_PRELOAD"] = (before.empty() ? "" : before + ":") + (preloads.empty() ? "" : preloads + ":") +
                        (libraries / fs::path(here.collector).filename()).string();
  }
  return true;
}

std::vector<Spool> collectSpools(const std::string& folder) {
  std::vector<std::pair<std::pair<unsigned long, unsigned long>, fs::path>> files;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    unsigned long pid = 0, n = 0;
    if (std::sscanf(entry.path().filename().c_str(), "%lu.%lu.spool", &pid, &n) == 2)
      files.push_back({{pid, n}, entry.path()});
  }
  std::sort(files.begin(), files.end());
  std::vector<Spool> spools;
  for (const auto& [key, path] : files) {
    Spool s;
    s.pid = static_cast<uint32_t>(key.first);
    std::string error;
    if (spool::readWholeFile(path.string(), &s.content, &error)) spools.push_back(std::move(s));
  }
  return spools;
}

}  // namespace

namespace {

// What to ask about devices, and where.
GpuLibraries librariesFor(const RunSettings& s) {
  const Installation here = Installation::find();
  std::error_code ec;
  return {usesSoftware(s) ? here.softgpu + "/libcuda.so.1" : "libcuda.so.1",
          s.cupti.empty() ? here.cupti : fs::absolute(s.cupti, ec).lexically_normal().string()};
}

int query(const RunSettings& s, Console& console) {
  Catalogue catalogue;
  std::string error;
  if (!readCatalogue(librariesFor(s), s.report.devices, &catalogue, &error)) {
    console.error(error);
    return kOwnFailure;
  }
  const auto format = s.json ? CatalogueFormat::Json : s.report.csv ? CatalogueFormat::Csv : CatalogueFormat::Text;
  if (s.queryEvents) console.result(describeEvents(catalogue, format));
  if (s.queryEvents && s.queryMetrics && format == CatalogueFormat::Csv) console.result("\n");
  if (s.queryMetrics) console.result(describeMetrics(catalogue, format));
  console.flush();
  return 0;
}

void planCounters(const RunSettings& s, const CounterChoice& choice, Plan* plan) {
  auto& env = plan->environment;
  env["SONDE_EVENTS"] = fmt::format("{}", fmt::join(choice.counted, ","));
  env["SONDE_REPLAY"] = s.replayMode;
  env["SONDE_EVENT_MODE"] = s.eventCollectionMode;
  env["SONDE_EVENT_INSTANCES"] = s.aggregateMode == "off" ? "1" : "0";
  env["SONDE_EVENT_KERNELS"] = s.report.kernels;
  env["SONDE_EVENT_DEVICES"] = fmt::format("{}", fmt::join(s.report.devices, ","));
}

}  // namespace

int runCommand(RunSettings& s, Console& console) {
  std::string error;
  const auto fail = [&] {
    console.error(error);
    return kOwnFailure;
  };
  if (s.queryEvents || s.queryMetrics) return query(s, console);
  if (!checkReportSettings(s.report, &error) || !checkExportSettings(s.exports, &error)) return fail();
  if (s.source.on && !checkSourceSettings(s, &error)) return fail();
  if (std::vector<uint32_t> kinds; !sourceKindsOf(s.sourceLevel, &kinds, &error)) return fail();
  const bool counting = !s.events.empty() || !s.metrics.empty();
  const GpuLibraries libraries = librariesFor(s);
  ClockHold clocks;
  if (!s.lockClocks.empty() &&
      !clocks.lock(libraries, usesSoftware(s) ? "software" : "real", s.report.devices, s.lockClocks, console, &error))
    return fail();
  Catalogue catalogue;
  CounterChoice choice;
  if (counting) {
    if (!s.traceGiven) s.trace = "gpu";
  } else if (!s.sourceLevel.empty() && !s.traceGiven) {
    s.trace = "gpu";
  }
  if (counting) {
    if (!readCatalogue(libraries, s.report.devices, &catalogue, &error) ||
        !chooseCounters(catalogue, s.events, s.metrics, &choice, &error))
      return fail();
  }

  std::vector<std::vector<Spool>> passes;
  LaunchResult app;
  bool software = true;
  std::string fidelity;
  for (uint32_t pass = 0, needed = 1; pass < needed; pass++) {
    TemporaryFolder folder;
    if (folder.path().empty()) {
      const int why = errno;
      error = fmt::format("cannot create a folder for the records in {}: {}; set TMPDIR to another place",
                          TemporaryFolder::base(), std::strerror(why));
      return fail();
    }
    Plan plan;
    if (!makePlan(s, folder.path(), &plan, console, &error)) return fail();
    software = plan.software;
    if (s.fidelity && software) plan.environment["SONDE_FIDELITY"] = folder.path() + "/fidelity";
    if (counting) {
      planCounters(s, choice, &plan);
      plan.environment["SONDE_PASS"] = std::to_string(pass);
    }
    app = launch(s.command, plan.environment, s.timeout, [&](int pid) {
      console.info(fmt::format("profiling {} (process {}) on {}{}", s.command[0], pid,
                               software ? "the software GPU" : "the NVIDIA driver's devices",
                               needed > 1 ? fmt::format(", pass {} of {}", pass + 1, needed) : std::string()));
      if (s.device == "software" && hasRealDevice() && pass == 0)
        console.info("this machine has an NVIDIA device; --device real profiles on that");
    });
    if (!app.started) {
      console.error(app.error);
      return app.status;
    }
    if (app.timedOut) console.warning(fmt::format("the application was stopped after {} s (--timeout)", s.timeout));
    if (app.signal != 0) {
      console.warning(fmt::format("{} was ended by signal {} ({})", s.command[0], app.signal, ::strsignal(app.signal)));
    } else if (app.status != 0) {
      console.info(fmt::format("{} ended with status {}", s.command[0], app.status));
    }
    if (std::string ignored; s.fidelity && pass == 0)
      spool::readWholeFile(folder.path() + "/fidelity", &fidelity, &ignored);
    passes.push_back(collectSpools(folder.path()));
    // The first pass says how many there are; an application that was ended is not begun again.
    if (counting && pass == 0 && s.replayMode == "application") needed = std::max(1u, passesNeeded(passes[0]));
    if (app.signal != 0) break;
  }
  clocks.release();
  if (s.fidelity) console.result(fidelityTables(fidelity));
  // The spools' folders are gone by now: a closed pipe may end us while we print.
  if (passes[0].empty()) {
    console.warning(
        std::string("nothing was recorded: the application never initialised CUDA, or its driver does not load "
                    "injection libraries") +
        (!software && !hasRealDevice() ? ". There is no /dev/nvidiactl here: --device real needs NVIDIA's driver"
                                       : ""));
    return app.status;
  }
  if (counting) completeCounters(passes, libraries, catalogue, choice, console);
  nameLocations(passes[0]);
  const std::vector<Spool>& spools = passes[0];
  Trace trace;
  if (!readSpools(spools, trace, console)) return app.status != 0 ? app.status : kOwnFailure;
  bool good = s.source.on ? printSource(trace, s, console, &error) : printReports(trace, s.report, console, &error);
  printLosses(trace, s.report.csv, console, app.signal != 0 ? app.pid : 0);
  if (const auto warning = movingClocksWarning(catalogue, choice)) console.warning(*warning);
  printMovedClocks(trace, s.report, console);
  if (good && !writeOutputs(spools, trace, s.exports, s.report.names, console, &error)) {
    good = false;
    keepRecords(spools, console);
  }
  if (!good) {
    console.error(error);
    return app.status != 0 ? app.status : kOwnFailure;
  }
  return app.status;
}

}  // namespace sonde::cli
