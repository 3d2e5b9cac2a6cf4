// SPDX-License-Identifier: Apache-2.0
// A "CUDA program" for tests of the collector: does what the driver does at
// cuInit, makes a fixed set of records appear, and ends in the way that its
// first argument names.
#include <cupti.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void* cupti;

template <typename F>
F function(const char* name) {
  return reinterpret_cast<F>(dlsym(cupti, name));
}

void initialize() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(90);
  }
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  cupti = dlopen(std::getenv("SONDE_CUPTI"), RTLD_NOW);
}

// One launch (2 us call, 5 us kernel) and one copy of 1 MB in 100 us.
void work(uint64_t time, uint32_t correlation) {
  const auto record = function<void (*)(const void*)>("standInRecord");
  CUpti_ActivityAPI launch{};
  launch.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  launch.cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  launch.start = time;
  launch.end = time + 2000;
  launch.processId = static_cast<uint32_t>(getpid());
  launch.threadId = 42;
  launch.correlationId = correlation;
  record(&launch);
  CUpti_ActivityAPI nested = launch;
  nested.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  nested.cbid = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
  nested.start = time + 500;
  nested.end = time + 1500;
  record(&nested);
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.start = time + 3000;
  kernel.end = time + 8000;
  kernel.contextId = 1;
  kernel.streamId = 7;
  kernel.correlationId = correlation;
  kernel.gridX = 4, kernel.gridY = 2, kernel.gridZ = 1;
  kernel.blockX = 128, kernel.blockY = kernel.blockZ = 1;
  kernel.registersPerThread = 32;
  kernel.name = "_Z5saxpyifPfS_";
  record(&kernel);
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.bytes = 1000000;
  copy.start = time + 10000;
  copy.end = time + 110000;
  copy.contextId = 1;
  copy.streamId = 7;
  copy.correlationId = correlation + 1;
  record(&copy);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "return";
  if (how == "no-cuda") return 0;
  if (how == "print") {  // its arguments, for tests of the command line
    for (int i = 2; i < argc; i++) std::printf("[%s]", argv[i]);
    std::printf("\n");
    return 0;
  }
  initialize();
  if (cupti == nullptr) return 91;
  constexpr uint64_t kTime = 1'700'000'000'000'000'000ull;
  if (how == "profiler-api") {
    const auto call = function<void (*)(int, int)>("standInProfilerCall");
    work(kTime, 1);
    call(1, 0), call(1, 1);
    work(kTime + 1'000'000, 3);
    call(0, 0), call(0, 1);
    work(kTime + 2'000'000, 5);
    return 0;
  }
  work(kTime, 1);
  if (how == "return") return argc > 2 ? std::atoi(argv[2]) : 0;
  if (how == "_exit") _exit(argc > 2 ? std::atoi(argv[2]) : 0);
  if (how == "quick_exit") std::quick_exit(0);
  if (how == "abort") std::abort();
  if (how == "segv") {
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  }
  if (how == "term") raise(SIGTERM);
  if (how == "own-handler") {  // as crash reporters do
    signal(SIGSEGV, [](int) { _exit(77); });
    raise(SIGSEGV);
  }
  if (how == "sleep") {  // until somebody ends it
    std::printf("ready\n");
    std::fflush(stdout);
    for (;;) pause();
  }
  if (how == "kill9") {
    function<CUptiResult (*)(uint32_t)>("cuptiActivityFlushAll")(0);
    work(kTime + 1'000'000, 3);  // not delivered when the process dies
    raise(SIGKILL);
  }
  if (how == "drop") function<void (*)(size_t)>("standInDrop")(17);
  // Two samples of each sort; the second at another clock, and in one case idle.
  if (how == "environment" || how == "environment-still") {
    const auto record = function<void (*)(const void*)>("standInRecord");
    for (uint32_t i = 0; i < 2; i++) {
      CUpti_ActivityEnvironment e{};
      e.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
      e.timestamp = kTime + 1000 * i;
      e.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_SPEED;
      e.data.speed.smClock = 1000 + 400 * i;
      e.data.speed.memoryClock = 2000;
      e.data.speed.clocksThrottleReasons = i == 0                 ? CUPTI_CLOCKS_THROTTLE_REASON_SW_POWER_CAP
                                           : how == "environment" ? CUPTI_CLOCKS_THROTTLE_REASON_NONE
                                                                  : CUPTI_CLOCKS_THROTTLE_REASON_GPU_IDLE;
      record(&e);
      e.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE;
      e.data.temperature.gpuTemperature = 40 + i;
      record(&e);
      e.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_POWER;
      e.data.power.power = 100500 + 1000 * i;
      e.data.power.powerLimit = 350000;
      record(&e);
    }
  }
  if (how == "many") {
    const int n = std::atoi(argv[2]);
    for (int i = 0; i < n; i++)
      work(kTime + 1'000'000ull * static_cast<uint64_t>(i + 1), 3 + 2 * static_cast<uint32_t>(i));
  }
  if (how == "exec") {
    char* next[] = {argv[0], const_cast<char*>("return"), nullptr};
    execv(argv[0], next);
  }
  if (how == "fork") {
    // The child of a process with CUDA must leave its parent's file alone.
    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int status = 0;
    waitpid(child, &status, 0);
  }
  if (how == "fork-exec") {
    const pid_t child = fork();
    if (child == 0) {
      char* next[] = {argv[0], const_cast<char*>("return"), nullptr};
      execv(argv[0], next);
      _exit(92);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  return 0;
}
