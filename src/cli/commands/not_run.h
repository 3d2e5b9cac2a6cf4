// SPDX-License-Identifier: Apache-2.0
// Why the kernel did not run a file.
#ifndef SONDE_CLI_COMMANDS_NOT_RUN_H_
#define SONDE_CLI_COMMANDS_NOT_RUN_H_

#include <string>

namespace sonde::cli {

// Not text: a shell must not take it for a script without a first line.
bool isBinary(const std::string& path);

// `code`: the errno of execve for an existing file.
std::string whyNotRun(const std::string& path, int code);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_NOT_RUN_H_
