// SPDX-License-Identifier: Apache-2.0
// Processes that fork, exit or have no driver. Each case runs in a child of its
// own: this program again, with the case's name as argument.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/child_cases.h"
#include "cupti/collector.h"

using testing_support::Case;
using testing_support::Collector;
using testing_support::require;
using testing_support::waitFor;

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;

void trace() {
  require(cuptiActivityRegisterCallbacks(Collector::requested, Collector::completed) == CUPTI_SUCCESS, "register");
  require(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS, "enable");
}

void calls(int count) {
  for (int i = 0; i < count; ++i) fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
}

size_t flushed() {
  require(cuptiActivityFlushAll(0) == CUPTI_SUCCESS, "flush");
  return Collector::instance().records().size();
}

// Parent and child each deliver what they recorded, and only that.
void caseFork() {
  trace();
  calls(5);
  const pid_t child = fork();
  if (child == 0) {
    calls(3);
    require(flushed() == 3, "the child delivers its own three records");
    const auto records = Collector::instance().records();
    require(records[0].as<CUpti_ActivityAPI>().processId == static_cast<uint32_t>(getpid()), "with its process id");
    calls(4000);  // the delivery thread runs here too
    require(flushed() == 4003, "and goes on");
    std::exit(0);
  }
  require(waitFor(child) == 0, "child");
  calls(2);
  require(flushed() == 7, "the parent keeps all of its records");
}

// The collector's own lock may be held by a thread that the child lacks.
void CUPTIAPI plainRequest(uint8_t** buffer, size_t* size, size_t*) {
  static uint8_t memory[4096];
  *buffer = memory;
  *size = sizeof memory;
}
size_t plainBytes = 0;
void CUPTIAPI plainComplete(CUcontext, uint32_t, uint8_t*, size_t, size_t valid) { plainBytes += valid; }

// fork while other threads record and flush.
void caseForkUnderLoad() {
  trace();
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop) calls(10);
  });
  std::thread flusher([&] {
    while (!stop) cuptiActivityFlushAll(0);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      cuptiActivityRegisterCallbacks(plainRequest, plainComplete);
      calls(3);
      if (cuptiActivityFlushAll(0) != CUPTI_SUCCESS) _exit(1);
      _exit(plainBytes == 3 * sizeof(CUpti_ActivityAPI) ? 0 : 1);
    }
    require(waitFor(child) == 0, "child");
  }
  stop = true;
  worker.join();
  flusher.join();
}

void caseExit() {
  trace();
  std::thread([] { calls(3000); }).join();
  calls(5);
  std::exit(0);
}

void caseQuickExit() {
  trace();
  calls(5000);
  _exit(0);
}

// A flush from an exit handler, registered before and after the library's own.
void caseExitHandler() {
  std::atexit([] {
    require(flushed() == 4, "records at exit");
    std::puts("delivered");
    std::fflush(stdout);
  });
  trace();
  calls(4);
  std::exit(0);
}

struct AtStaticDestruction {
  ~AtStaticDestruction() {
    if (!armed) return;
    calls(2);
    require(flushed() == 2, "records of static-destructor time");
    require(cuptiFinalize() == CUPTI_SUCCESS, "finalize");
  }
  bool armed = false;
} atStaticDestruction;

void caseStaticDestructor() {
  trace();
  atStaticDestruction.armed = true;
  std::exit(0);
}

// The thread is still recording while the process ends.
void caseExitWhileRecording() {
  trace();
  std::thread([] {
    for (;;) calls(100);
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  std::exit(0);
}

// Calls from destructors of thread-local objects, after the library's own.
struct AtThreadEnd {
  ~AtThreadEnd() { calls(1); }
};

void caseThreadLocalDestructor() {
  trace();
  for (int i = 0; i < 20; ++i) {
    std::thread([] {
      static thread_local AtThreadEnd atEnd;
      (void)&atEnd;
      calls(1);
    }).join();
  }
  require(flushed() == 40, "two records of each thread");
}

const Case kCases[] = {
    {"fork", caseFork},
    {"fork-under-load", caseForkUnderLoad},
    {"exit", caseExit},
    {"quick-exit", caseQuickExit},
    {"exit-handler", caseExitHandler},
    {"static-destructor", caseStaticDestructor},
    {"exit-while-recording", caseExitWhileRecording},
    {"thread-local-destructor", caseThreadLocalDestructor},
};

class Processes : public ::testing::TestWithParam<Case> {};
TEST_P(Processes, EndsCleanly) { EXPECT_EQ(0, testing_support::runCase(GetParam().name)); }
INSTANTIATE_TEST_SUITE_P(Cases, Processes, ::testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  if (testing_support::isCase(argc, argv, kCases, &status)) return status;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
