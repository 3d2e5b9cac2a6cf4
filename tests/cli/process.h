// SPDX-License-Identifier: Apache-2.0
// Runs a program and takes down all it says.
#ifndef SONDE_TESTS_CLI_PROCESS_H_
#define SONDE_TESTS_CLI_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sonde::test {

using Environment = std::map<std::string, std::string>;

struct Outcome {
  int status = -1;  // exit status, or 1000 + signal
  std::string out, err;
};

// `ready` is called with the program's id when it has printed the line "ready".
Outcome runProgram(const std::vector<std::string>& command, const Environment& environment = {},
                   std::function<void(pid_t)> ready = nullptr);

}  // namespace sonde::test

#endif  // SONDE_TESTS_CLI_PROCESS_H_
