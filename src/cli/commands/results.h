// SPDX-License-Identifier: Apache-2.0
// What `run`, `report` and `export` have in common: print a trace's reports,
// say what is missing from it, write its exports.
#ifndef SONDE_CLI_COMMANDS_RESULTS_H_
#define SONDE_CLI_COMMANDS_RESULTS_H_

#include <string>
#include <vector>

#include "cli/commands/console.h"
#include "cli/commands/settings.h"
#include "cli/reports/reports.h"
#include "cli/spool/trace.h"

namespace sonde::cli {

// Finds mistakes before an application has run for hours. False: *error.
bool checkReportSettings(const ReportSettings& settings, std::string* error);
bool checkExportSettings(const ExportSettings& settings, std::string* error);

// The filters and names that the settings ask for.
bool reportOptions(const ReportSettings& settings, reports::Options* options, std::string* error);

bool printReports(const Trace& trace, const ReportSettings& settings, Console& console, std::string* error);
// The line on lost records, and warnings on everything that is not whole.
// alreadySaid: a process whose end by a signal its caller has told of.
void printLosses(const Trace& trace, bool csv, Console& console, int alreadySaid = 0);

// Warns of devices whose clocks moved, as far as the trace has samples of them.
void printMovedClocks(const Trace& trace, const ReportSettings& settings, Console& console);

// spools: the raw content of each process's spool, for the trace format.
struct Spool {
  uint32_t pid = 0;
  std::string content;
};
bool writeOutputs(const std::vector<Spool>& spools, const Trace& trace, const ExportSettings& settings,
                  const std::string& names, Console& console, std::string* error);

// When outputs could not be written: keeps the records in another place, so that
// a long run is not lost. Says where.
void keepRecords(const std::vector<Spool>& spools, Console& console);

// Reads spools into a trace; one whose beginning is damaged is reported and left out.
bool readSpools(const std::vector<Spool>& spools, Trace& trace, Console& console);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_RESULTS_H_
