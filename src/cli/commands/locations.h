// SPDX-License-Identifier: Apache-2.0
// Functions and source lines of the instructions that records point to.
#ifndef SONDE_CLI_COMMANDS_LOCATIONS_H_
#define SONDE_CLI_COMMANDS_LOCATIONS_H_

#include <vector>

#include "cli/commands/results.h"

namespace sonde::cli {

// Looks them up in the modules' files, which must be those that ran, and appends
// the names to the spools. What has no symbols stays as it is.
void nameLocations(std::vector<Spool>& spools);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_LOCATIONS_H_
