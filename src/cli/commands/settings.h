// SPDX-License-Identifier: Apache-2.0
// What the command line says.
#ifndef SONDE_CLI_COMMANDS_SETTINGS_H_
#define SONDE_CLI_COMMANDS_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::cli {

// Of `run` and `report`.
struct ReportSettings {
  std::vector<std::string> reports;  // in the order asked; empty: the usual ones
  bool printGpuTrace = false, printApiTrace = false, printGpuSummary = false, printApiSummary = false;
  bool csv = false;
  bool noReport = false;
  std::string names = "full";
  std::string units = "auto";
  std::string kernels;
  std::vector<uint32_t> devices;
  bool nestedDriverCalls = false;
};

// Of `run` and `export`.
struct ExportSettings {
  std::string output;
  std::vector<std::string> formats;
  bool force = false;
};

struct CommonSettings {
  std::string logFile;
  bool quiet = false;
};

// Of `source`.
struct SourceSettings {
  bool on = false;                   // the command is `source`, not `run`
  std::string output;                // HTML file; pattern
  std::vector<std::string> folders;  // where to look for files
  uint32_t top = 20, context = 2;
};

struct RunSettings {
  SourceSettings source;
  std::vector<std::string> sourceLevel;  // --source-level-analysis
  ReportSettings report;
  ExportSettings exports;
  CommonSettings common;
  std::string device = "software";  // software, real, auto
  std::string cupti;
  std::string trace = "cuda,nvtx,overhead";
  std::string profileFromStart = "on";
  std::string preload = "auto";
  // What the software GPU looks for, and tells, besides running kernels.
  bool memcheck = false, racecheck = false, initcheck = false, synccheck = false, fidelity = false;
  // Events and metrics.
  std::vector<std::string> events, metrics;
  bool queryEvents = false, queryMetrics = false, json = false;
  std::string aggregateMode = "on", replayMode = "kernel", eventCollectionMode = "kernel";
  std::string unifiedMemory = "off";  // or per-process-device
  bool environment = false;
  uint32_t environmentMs = 100;
  std::string lockClocks;   // base, boost; empty: as they are
  bool traceGiven = false;  // --trace is not just its default
  double timeout = 0;
  uint32_t flushMs = 500;
  uint32_t bufferKb = 1024;
  std::vector<std::string> command;
};

struct ReportCommand {
  ReportSettings report;
  CommonSettings common;
  std::vector<std::string> inputs;
};

struct ExportCommand {
  ExportSettings exports;
  CommonSettings common;
  std::string names = "full";
  std::vector<std::string> inputs;
};

struct ClocksCommand {
  std::string action;               // status, lock, unlock
  std::string mode = "base";        // of lock
  std::vector<uint32_t> devices;    // empty: all
  std::string device = "software";  // or real
  bool json = false;
  CommonSettings common;
};

class Console;

int runCommand(RunSettings& settings, Console& console);
int reportCommand(ReportCommand& settings, Console& console);
int exportCommand(ExportCommand& settings, Console& console);
int clocksCommand(ClocksCommand& settings, Console& console);
int devicesCommand(const std::string& device, bool json, Console& console);
int versionCommand(Console& console);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_SETTINGS_H_
