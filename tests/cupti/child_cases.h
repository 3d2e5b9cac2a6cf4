// SPDX-License-Identifier: Apache-2.0
// Tests whose cases fork, exit or end in other ways that take the process along:
// each runs in a child of its own, this program again with the case's name.
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <span>

extern char** environ;

namespace testing_support {

struct Case {
  const char* name;
  void (*run)();
};

// In a case, where assertions would not reach the test: ends the process with 1.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  _exit(1);
}

// The exit status; 1000 and the signal for a child that one has ended.
inline int waitFor(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline int runCase(const char* name) {
  const char* arguments[] = {"/proc/self/exe", "--case", name, nullptr};
  pid_t child;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments), environ) != 0) return -1;
  return waitFor(child);
}

// For main(): whether this process is a case's child; `status` is then what it ends with.
inline bool isCase(int argc, char** argv, std::span<const Case> cases, int* status) {
  if (argc != 3 || std::strcmp(argv[1], "--case") != 0) return false;
  alarm(120);
  *status = 2;
  for (const Case& c : cases) {
    if (std::strcmp(c.name, argv[2]) != 0) continue;
    c.run();
    *status = 0;
  }
  return true;
}

}  // namespace testing_support
