// SPDX-License-Identifier: Apache-2.0
// Processes that fork, end or exit while kernels run on the software GPU. Each
// case runs in a child of its own: this program again, with the case's name.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <thread>

#include "gpu_trace.h"
#include "tests/cupti/child_cases.h"

// What the threads of the parent owned is nobody's in a forked child: no leak. Asked by the sanitizer, where there is
// one.
static bool inForkedChild = false;
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return inForkedChild; }

namespace sonde::test {
namespace {

using testing_support::Case;
using testing_support::Collector;
using testing_support::require;
using testing_support::waitFor;

uint32_t* out = nullptr;

cudaError_t launch(uint32_t blocks = 64) {
  uint32_t value = 7;
  void* arguments[] = {&out, &value};
  return cudaLaunchKernel(&fillStub, dim3(blocks), dim3(32), arguments, 0, nullptr);
}

void launches(int count) {
  for (int i = 0; i < count; ++i) require(launch() == cudaSuccess, "launch");
}

size_t kernels() { return Collector::instance().records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).size(); }

size_t flushed() {
  require(cuptiActivityFlushAll(0) == CUPTI_SUCCESS, "flush");
  return kernels();
}

void trace() {
  auto* binary = new FatBinary(kTracePtx);
  binary->kernel(&fillStub, kFill);
  __cudaRegisterFatBinaryEnd(binary->handle());
  require(cuptiActivityRegisterCallbacks(Collector::requested, Collector::completed) == CUPTI_SUCCESS, "register");
  require(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS, "enable kernels");
  require(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS, "enable calls");
  require(cudaMalloc(reinterpret_cast<void**>(&out), 1 << 20) == cudaSuccess, "memory");
}

// The parent goes on. The child has no device, as with the vendor's driver, and
// records its own failing calls.
void caseFork() {
  trace();
  launches(5);
  const pid_t child = fork();
  if (child == 0) {
    inForkedChild = true;
    alarm(30);
    void* memory = nullptr;
    require(cudaMalloc(&memory, 100) != cudaSuccess, "no CUDA in the child");
    require(launch() != cudaSuccess, "no launch in the child");
    Collector::instance().clear();
    require(flushed() == 0, "the parent's kernels are the parent's");
    for (const auto& record : Collector::instance().records(CUPTI_ACTIVITY_KIND_RUNTIME)) {
      const auto& api = record.as<CUpti_ActivityAPI>();
      require(api.processId == static_cast<uint32_t>(getpid()), "the child's calls have its id");
      require(api.returnValue != 0, "and their errors");
    }
    require(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS, "disable");
    require(cuptiFinalize() == CUPTI_SUCCESS, "finalize");
    std::exit(0);
  }
  require(waitFor(child) == 0, "child");
  launches(3);
  require(cudaDeviceSynchronize() == cudaSuccess, "synchronize");
  require(flushed() == 8, "the parent has all its kernels");
}

// The collector's own lock may be held by a thread that the child lacks.
void CUPTIAPI plainRequest(uint8_t** buffer, size_t* size, size_t*) {
  static uint8_t memory[4096];
  *buffer = memory;
  *size = sizeof memory;
}
void CUPTIAPI plainComplete(CUcontext, uint32_t, uint8_t*, size_t, size_t) {}

// While threads launch and one flushes.
void caseForkUnderLoad() {
  trace();
  std::atomic<bool> stop{false};
  std::atomic<size_t> launched{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        launches(4);
        launched += 4;
        require(cudaDeviceSynchronize() == cudaSuccess, "synchronize");
      }
    });
  threads.emplace_back([&] {
    while (!stop) cuptiActivityFlushAll(0);
  });
  for (int i = 0; i < 12; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      inForkedChild = true;
      alarm(30);
      void* memory = nullptr;
      if (cuptiActivityRegisterCallbacks(plainRequest, plainComplete) != CUPTI_SUCCESS) _exit(4);
      if (cudaMalloc(&memory, 100) == cudaSuccess) _exit(1);
      if (cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != CUPTI_SUCCESS) _exit(2);
      if (cuptiFinalize() != CUPTI_SUCCESS) _exit(3);
      if (i % 2 == 0) _exit(0);
      std::exit(0);
    }
    require(waitFor(child) == 0, "child");
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  require(flushed() == launched, "each kernel of the parent");
}

void caseExitWithKernelsInFlight() {
  trace();
  std::thread([] { launches(200); }).join();
  launches(200);
  std::exit(0);
}

void caseQuickExitWithKernelsInFlight() {
  trace();
  launches(300);
  _exit(0);
}

void caseExitWhileThreadsLaunch() {
  trace();
  std::atomic<int> running{0};
  for (int t = 0; t < 3; ++t)
    std::thread([&running] {
      ++running;
      for (;;) launch();  // fails at some time: the process ends
    }).detach();
  while (running < 3 || flushed() < 20) {
  }
  std::exit(0);
}

// What a client's exit handler asks for is delivered, also of a kernel that is
// still running when the process begins to end.
void caseExitHandler() {
  std::atexit([] {
    require(cudaDeviceSynchronize() == cudaSuccess, "synchronize in an exit handler");
    require(flushed() == 40, "kernels in an exit handler");
  });
  trace();
  launches(40);
  std::exit(0);
}

struct AtStaticDestruction {
  ~AtStaticDestruction() {
    if (!armed) return;
    launches(2);
    require(cudaDeviceSynchronize() == cudaSuccess, "synchronize in a static destructor");
    require(flushed() == 5, "kernels of static-destructor time");
    require(cuptiFinalize() == CUPTI_SUCCESS, "finalize in a static destructor");
    require(launch() == cudaSuccess, "and on it goes");
  }
  bool armed = false;
} atStaticDestruction;

void caseStaticDestructor() {
  trace();
  atStaticDestruction.armed = true;
  launches(3);
  std::exit(0);
}

struct AtThreadEnd {
  ~AtThreadEnd() { launches(1); }
};

void caseThreadLocalDestructor() {
  trace();
  for (int i = 0; i < 20; ++i) {
    std::thread([] {
      static thread_local AtThreadEnd atEnd;
      (void)&atEnd;
      launches(1);
    }).join();
  }
  require(cudaDeviceSynchronize() == cudaSuccess, "synchronize");
  require(flushed() == 40, "two kernels of each thread");
}

// A new life after each end, with kernels in flight.
void caseFinalizeWithKernelsInFlight() {
  trace();
  for (int life = 0; life < 50; ++life) {
    launches(10);
    require(cuptiFinalize() == CUPTI_SUCCESS, "finalize");
    Collector::instance().clear();
    require(cuptiActivityRegisterCallbacks(Collector::requested, Collector::completed) == CUPTI_SUCCESS, "register");
    require(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS, "enable");
    launches(3);
    require(cudaDeviceSynchronize() == cudaSuccess, "synchronize");
    require(flushed() == 3, "those of this life, no others");
  }
}

const Case kCases[] = {
    {"Fork", caseFork},
    {"ForkUnderLoad", caseForkUnderLoad},
    {"ExitWithKernelsInFlight", caseExitWithKernelsInFlight},
    {"QuickExitWithKernelsInFlight", caseQuickExitWithKernelsInFlight},
    {"ExitWhileThreadsLaunch", caseExitWhileThreadsLaunch},
    {"ExitHandler", caseExitHandler},
    {"StaticDestructor", caseStaticDestructor},
    {"ThreadLocalDestructor", caseThreadLocalDestructor},
    {"FinalizeWithKernelsInFlight", caseFinalizeWithKernelsInFlight},
};

class GpuProcesses : public ::testing::TestWithParam<Case> {};
TEST_P(GpuProcesses, EndsCleanly) { EXPECT_EQ(0, testing_support::runCase(GetParam().name)); }
INSTANTIATE_TEST_SUITE_P(Cases, GpuProcesses, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sonde::test

int main(int argc, char** argv) {
  int status = 0;
  if (testing_support::isCase(argc, argv, sonde::test::kCases, &status)) return status;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
