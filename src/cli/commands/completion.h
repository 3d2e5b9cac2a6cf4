// SPDX-License-Identifier: Apache-2.0
#ifndef SONDE_CLI_COMMANDS_COMPLETION_H_
#define SONDE_CLI_COMMANDS_COMPLETION_H_

#include <CLI/App.hpp>
#include <optional>
#include <string>

namespace sonde::cli {

// A completion script made from the options that the program really has.
// nullopt: no such shell (bash, zsh and fish exist).
std::optional<std::string> completionScript(const CLI::App& app, const std::string& shell);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_COMPLETION_H_
