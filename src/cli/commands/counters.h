// SPDX-License-Identifier: Apache-2.0
// After the application: puts the passes together and works out the metrics.
#ifndef SONDE_CLI_COMMANDS_COUNTERS_H_
#define SONDE_CLI_COMMANDS_COUNTERS_H_

#include <string>
#include <vector>

#include "cli/commands/counter_catalogue.h"
#include "cli/commands/results.h"

namespace sonde::cli {

// passes[p]: the spools of pass p (one pass unless the application was
// replayed). Adds a block with the values of the later passes, the metrics and
// what the names mean to each spool of passes[0].
void completeCounters(std::vector<std::vector<Spool>>& passes, const GpuLibraries& libraries,
                      const Catalogue& catalogue, const CounterChoice& choice, Console& console);

// How many passes the spools say that they need; 0: nothing was counted.
uint32_t passesNeeded(const std::vector<Spool>& spools);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_COUNTERS_H_
