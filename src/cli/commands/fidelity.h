// SPDX-License-Identifier: Apache-2.0
// The report behind `run --fidelity`.
#ifndef SONDE_CLI_COMMANDS_FIDELITY_H_
#define SONDE_CLI_COMMANDS_FIDELITY_H_

#include <string>

namespace sonde::cli {

// `lines` as the software driver writes them to the file SONDE_FIDELITY: kernel, class, count, mnemonic, remark,
// separated by tabs. A table for each kernel: how many instructions are of each class, and which are not exact.
std::string fidelityTables(const std::string& lines);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_FIDELITY_H_
