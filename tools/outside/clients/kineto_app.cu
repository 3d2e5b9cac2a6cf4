// SPDX-License-Identifier: Apache-2.0
// Traces the workload with libkineto as PyTorch does, twice in one process:
//   kineto_app FIRST.json SECOND.json
#include <libkineto.h>
#include <unistd.h>

#include "workload.h"

static bool trace(const char* path) {
  auto& profiler = libkineto::api().activityProfiler();
  const std::set<libkineto::ActivityType> types = {
      libkineto::ActivityType::GPU_MEMCPY,        libkineto::ActivityType::GPU_MEMSET,
      libkineto::ActivityType::CONCURRENT_KERNEL, libkineto::ActivityType::EXTERNAL_CORRELATION,
      libkineto::ActivityType::CUDA_RUNTIME,      libkineto::ActivityType::CUDA_DRIVER,
      libkineto::ActivityType::OVERHEAD,          libkineto::ActivityType::CUDA_SYNC};
  profiler.prepareTrace(types);
  profiler.startTrace();
  profiler.recordThreadInfo();
  profiler.pushCorrelationId(4711);
  const bool right = workload();
  profiler.popCorrelationId();
  auto result = profiler.stopTrace();
  std::printf("activities: %zu\n", result->activities()->size());
  result->save(path);
  return right;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  libkineto_init(false, true);
  libkineto::api().initProfilerIfRegistered();
  bool right = trace(argv[1]);
  // With TEARDOWN_CUPTI=1 a thread of libkineto now takes CUPTI down, in the next call of CUDA that it sees.
  for (int i = 0; i < 20; ++i) {
    right = workload() && right;
    usleep(10000);
  }
  right = trace(argv[2]) && right;
  std::printf("results: %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
