// SPDX-License-Identifier: Apache-2.0
// Starts the application, hands on signals, waits, and knows how it ended.
#ifndef SONDE_CLI_COMMANDS_LAUNCHER_H_
#define SONDE_CLI_COMMANDS_LAUNCHER_H_

#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace sonde::cli {

struct LaunchResult {
  int status = 0;  // what sonde should exit with: the application's, 128 + signal, 126, 127
  int signal = 0;  // that ended it
  int pid = 0;
  bool started = false;  // false: error says why
  bool timedOut = false;
  std::string error;
};

// environment is added to ours; an empty value removes the variable.
// timeoutSeconds 0: none. After it comes SIGTERM, and five seconds later SIGKILL.
LaunchResult launch(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                    double timeoutSeconds, const std::function<void(int pid)>& onStarted);

// The libraries that an ELF program asks for (DT_NEEDED); empty when it is a
// script or unreadable.
std::vector<std::string> neededLibraries(const std::string& path);
// The file that execvp takes, where access(2) allows what is asked; empty when there is none.
std::string findProgram(const std::string& name, int access = X_OK);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_LAUNCHER_H_
