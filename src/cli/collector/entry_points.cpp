// SPDX-License-Identifier: Apache-2.0
// What the world calls: the CUDA driver and NVTX by their injection variables,
// and, when the library is preloaded, the process itself on its ways out that
// run no exit handlers.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <vector>

#include "cli/collector/collector.h"
#include "cli/collector/helper_thread.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using sonde::collector::Collector;

template <typename F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

void* chained(const char* variable, const char* function) {
  const char* path = std::getenv(variable);
  if (path == nullptr || path[0] == 0) return nullptr;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* entry = library != nullptr ? dlsym(library, function) : nullptr;
  if (entry == nullptr)
    sonde::collector::message(std::string("the injection library ") + path + " cannot be chained: " +
                              (library != nullptr ? "it has no function " + std::string(function) : dlerror()));
  return entry;
}

bool started = false;  // of this process, by InitializeInjection or NVTX

void beforeLeaving(sonde::spool::EndReason reason, int value) {
  if (started) Collector::instance().finish(reason, value);
}

}  // namespace

EXPORT int InitializeInjection(void) {
  started = true;
  Collector::instance().start();
  if (auto entry = reinterpret_cast<int (*)()>(chained("SONDE_CHAIN_INJECTION", "InitializeInjection"))) return entry();
  return 1;
}

// NVTX gives its one injection slot to the library in NVTX_INJECTION64_PATH.
// We start collecting, then let CUPTI have it. 0 leaves NVTX without effect.
EXPORT int InitializeInjectionNvtx2(void* getExportTable) {
  if (std::getenv("SONDE_CHAIN_NVTX") != nullptr) {
    if (auto entry = reinterpret_cast<int (*)(void*)>(chained("SONDE_CHAIN_NVTX", "InitializeInjectionNvtx2")))
      return entry(getExportTable);
  }
  started = true;
  if (!Collector::instance().start()) return 0;
  const auto entry = Collector::instance().cupti().initializeInjectionNvtx2;
  return entry != nullptr ? entry(getExportTable) : 0;
}

EXPORT __attribute__((noreturn)) void _exit(int status) {
  if (started) sonde::collector::finishByHelper(sonde::spool::EndReason::QuickExit, status);
  ::syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

EXPORT __attribute__((noreturn)) void _Exit(int status) { _exit(status); }

EXPORT int execve(const char* path, char* const argv[], char* const envp[]) {
  beforeLeaving(sonde::spool::EndReason::Exec, -1);
  return next<int (*)(const char*, char* const*, char* const*)>("execve")(path, argv, envp);
}

EXPORT int execv(const char* path, char* const argv[]) {
  beforeLeaving(sonde::spool::EndReason::Exec, -1);
  return next<int (*)(const char*, char* const*)>("execv")(path, argv);
}

EXPORT int execvp(const char* file, char* const argv[]) {
  beforeLeaving(sonde::spool::EndReason::Exec, -1);
  return next<int (*)(const char*, char* const*)>("execvp")(file, argv);
}

EXPORT int execvpe(const char* file, char* const argv[], char* const envp[]) {
  beforeLeaving(sonde::spool::EndReason::Exec, -1);
  return next<int (*)(const char*, char* const*, char* const*)>("execvpe")(file, argv, envp);
}

EXPORT int fexecve(int fd, char* const argv[], char* const envp[]) {
  beforeLeaving(sonde::spool::EndReason::Exec, -1);
  return next<int (*)(int, char* const*, char* const*)>("fexecve")(fd, argv, envp);
}
