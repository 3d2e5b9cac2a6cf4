// SPDX-License-Identifier: Apache-2.0
// `sonde report` and `sonde export`: both begin with trace files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/commands/console.h"
#include "cli/commands/results.h"
#include "cli/commands/settings.h"
#include "cli/reports/names.h"
#include "cli/spool/format.h"
#include "cli/spool/reader.h"

namespace sonde::cli {
namespace {

// Each input, a folder of spools included, as raw content.
bool readInputs(const std::vector<std::string>& inputs, std::vector<Spool>* spools, Trace* trace, std::string* error) {
  for (const std::string& input : inputs) {
    std::vector<std::string> files{input};
    std::error_code ec;
    if (std::filesystem::is_directory(input, ec)) {
      files.clear();
      for (const auto& entry : std::filesystem::directory_iterator(input, ec))
        if (entry.path().extension() == ".spool") files.push_back(entry.path().string());
      std::sort(files.begin(), files.end());
      if (files.empty()) {
        *error = fmt::format("{}: holds no *.spool file", input);
        return false;
      }
    }
    for (const std::string& file : files) {
      Spool s;
      if (!spool::readWholeFile(file, &s.content, error)) return false;
      const size_t before = trace->processes.size();
      const std::span<const unsigned char> bytes(reinterpret_cast<const unsigned char*>(s.content.data()),
                                                 s.content.size());
      if (!spool::readSpool(bytes, *trace, error)) {
        *error = fmt::format("{}: {}", file, *error);
        return false;
      }
      if (before < trace->processes.size()) s.pid = trace->processes[before].pid;
      spools->push_back(std::move(s));
    }
  }
  trace->finish();
  return true;
}

}  // namespace

int reportCommand(ReportCommand& s, Console& console) {
  std::string error;
  std::vector<Spool> spools;
  Trace trace;
  if (!checkReportSettings(s.report, &error) || !readInputs(s.inputs, &spools, &trace, &error)) {
    console.error(error);
    return kOwnFailure;
  }
  const bool good = printReports(trace, s.report, console, &error);
  printLosses(trace, s.report.csv, console);
  printMovedClocks(trace, s.report, console);
  if (good) return 0;
  console.error(error);
  return kOwnFailure;
}

int exportCommand(ExportCommand& s, Console& console) {
  std::string error;
  if (s.exports.formats.empty() && s.exports.output.empty()) s.exports.formats = {"perfetto"};
  if (s.exports.output.empty()) s.exports.output = std::filesystem::path(s.inputs[0]).replace_extension().string();
  std::vector<Spool> spools;
  Trace trace;
  if (!reports::parseNameStyle(s.names)) {
    console.error(fmt::format("--names {}: full, base or mangled", s.names));
    return kOwnFailure;
  }
  if (!checkExportSettings(s.exports, &error) || !readInputs(s.inputs, &spools, &trace, &error) ||
      !writeOutputs(spools, trace, s.exports, s.names, console, &error)) {
    console.error(error);
    return kOwnFailure;
  }
  if (trace.dropped() != 0 || trace.damagedBytes() != 0) printLosses(trace, /*csv=*/true, console);
  return 0;
}

}  // namespace sonde::cli
