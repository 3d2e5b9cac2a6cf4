// SPDX-License-Identifier: Apache-2.0
// `sonde source`: what each source line costs.
#ifndef SONDE_CLI_COMMANDS_SOURCE_H_
#define SONDE_CLI_COMMANDS_SOURCE_H_

#include <string>

#include "cli/commands/console.h"
#include "cli/commands/settings.h"
#include "cli/spool/trace.h"

namespace sonde::cli {

// Finds mistakes before the application runs. False: *error.
bool checkSourceSettings(const RunSettings& settings, std::string* error);
// Prints the annotated source, or the table of lines with --csv, and writes the HTML file.
bool printSource(const Trace& trace, const RunSettings& settings, Console& console, std::string* error);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_SOURCE_H_
