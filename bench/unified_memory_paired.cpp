// SPDX-License-Identifier: Apache-2.0
// Two ways of doing the same, in turn, many times: what the second costs over
// the first. CPU time, so that what else the machine does counts for little:
//
//   launch     launch and wait without managed memory; with every counter of
//              unified memory on (two processes, since that cannot be undone)
//   load       the CPU sums 16 MiB of its own memory; of managed memory
//   kernel     a kernel adds 1 to 16 MiB of device memory; of managed memory
//              that is on the device
//   strided    the same with a page between neighbouring lanes
#include <cuda.h>
#include <cupti.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

namespace {

constexpr int kPairs = 200;
constexpr size_t kBytes = 16u << 20;

// p[i] += 1 for all threads; `strided`: neighbours are 4 KiB apart.
constexpr const char* kPtx = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .entry linear(.param .u64 p)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r5, [%rd3];
  add.s32 %r5, %r5, 1;
  st.global.u32 [%rd3], %r5;
  ret;
}
.visible .entry strided(.param .u64 p)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  and.b32 %r6, %r4, 4095;
  shr.u32 %r7, %r4, 12;
  shl.b32 %r6, %r6, 10;
  add.s32 %r8, %r6, %r7;
  mul.wide.u32 %rd2, %r8, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r5, [%rd3];
  add.s32 %r5, %r5, 1;
  st.global.u32 [%rd3], %r5;
  ret;
}
)";

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "unified_memory_paired: %s failed\n", what);
  std::_Exit(1);
}

double cpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double timed(const std::function<void()>& work) {
  const double start = cpuSeconds();
  work();
  return cpuSeconds() - start;
}

double at(std::vector<double> values, double part) {
  const auto n = static_cast<ptrdiff_t>(static_cast<double>(values.size() - 1) * part);
  std::nth_element(values.begin(), values.begin() + n, values.end());
  return values[static_cast<size_t>(n)];
}

// Turn and turn about, the first of each pair now the one, now the other.
void compare(const char* name, const std::function<double()>& one, const std::function<double()>& other) {
  std::vector<double> ratios, first, second;
  for (int i = 0; i < 4; ++i) one(), other();
  for (int i = 0; i < kPairs; ++i) {
    double a = 0, b = 0;
    if (i % 2 == 0)
      a = one(), b = other();
    else
      b = other(), a = one();
    first.push_back(a);
    second.push_back(b);
    ratios.push_back(b / a);
  }
  std::printf("%-8s %10.2f us %10.2f us   ratio %.3f   (10 %% to 90 %%: %.3f to %.3f, %d pairs)\n", name,
              at(first, 0.5) * 1e6, at(second, 0.5) * 1e6, at(ratios, 0.5), at(ratios, 0.1), at(ratios, 0.9), kPairs);
  std::fflush(stdout);
}

struct Gpu {
  CUfunction linear, strided;
  Gpu() {
    CUcontext context;
    CUmodule module;
    check(cuInit(0) == CUDA_SUCCESS && cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS, "cuCtxCreate");
    check(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS, "cuModuleLoadData");
    check(cuModuleGetFunction(&linear, module, "linear") == CUDA_SUCCESS, "cuModuleGetFunction");
    check(cuModuleGetFunction(&strided, module, "strided") == CUDA_SUCCESS, "cuModuleGetFunction");
  }
};

void run(CUfunction function, CUdeviceptr p, size_t bytes) {
  void* parameters[] = {&p};
  check(cuLaunchKernel(function, static_cast<unsigned>(bytes / 1024), 1, 1, 256, 1, 1, 0, nullptr, parameters,
                       nullptr) == CUDA_SUCCESS &&
            cuCtxSynchronize() == CUDA_SUCCESS,
        "a kernel");
}

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *size = 1u << 20;
  *buffer = static_cast<uint8_t*>(std::malloc(*size));
  *maxNumRecords = 0;
}
void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) { std::free(buffer); }

void record() {
  std::vector<CUpti_ActivityUnifiedMemoryCounterConfig> all;
  for (int kind = 1; kind < CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT; ++kind) {
    CUpti_ActivityUnifiedMemoryCounterConfig c{};
    c.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES;
    c.kind = static_cast<CUpti_ActivityUnifiedMemoryCounterKind>(kind);
    c.enable = 1;
    all.push_back(c);
  }
  check(
      cuptiActivityRegisterCallbacks(requested, completed) == CUPTI_SUCCESS &&
          cuptiActivityConfigureUnifiedMemoryCounter(all.data(), static_cast<uint32_t>(all.size())) == CUPTI_SUCCESS &&
          cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) == CUPTI_SUCCESS,
      "the counters of unified memory");
}

// A process that does 2000 launches for each byte it is sent and answers with its CPU time for one.
struct Launcher {
  int ask[2], answer[2];
  explicit Launcher(bool counters) {
    check(pipe(ask) == 0 && pipe(answer) == 0, "pipe");
    if (fork() != 0) return;
    close(ask[1]);
    const Gpu gpu;
    if (counters) record();
    CUdeviceptr p = 0;
    check(cuMemAlloc(&p, 1024) == CUDA_SUCCESS, "cuMemAlloc");
    for (char byte; read(ask[0], &byte, 1) == 1;) {
      constexpr int kLaunches = 2000;
      const double took = timed([&] {
                            for (int i = 0; i < kLaunches; ++i) run(gpu.linear, p, 1024);
                          }) /
                          kLaunches;
      check(write(answer[1], &took, sizeof took) == sizeof took, "write");
    }
    std::_Exit(0);
  }
  double turn() const {
    double took = 0;
    check(write(ask[1], "x", 1) == 1 && read(answer[0], &took, sizeof took) == sizeof took, "a turn");
    return took;
  }
};

}  // namespace

int main() {
  std::printf("CPU time, medians: without, with, with / without\n");
  {
    const Launcher plain(false), counters(true);
    compare("launch", [&] { return plain.turn(); }, [&] { return counters.turn(); });
    close(plain.ask[1]);
    close(counters.ask[1]);
  }
  const Gpu gpu;
  record();
  std::vector<uint64_t> own(kBytes / 8, 1);
  CUdeviceptr managed = 0, plain = 0;
  check(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS &&
            cuMemAlloc(&plain, kBytes) == CUDA_SUCCESS,
        "allocation");
  const auto sum = [](const uint64_t* data) {
    uint64_t total = 0;
    for (size_t i = 0; i < kBytes / 8; ++i) total += data[i];
    asm volatile("" : : "r"(total));
  };
  auto* host = reinterpret_cast<uint64_t*>(managed);
  for (size_t i = 0; i < kBytes / 8; ++i) host[i] = i;
  compare("load", [&] { return timed([&] { sum(own.data()); }); }, [&] { return timed([&] { sum(host); }); });
  for (const auto& [name, function] : {std::pair("kernel", gpu.linear), std::pair("strided", gpu.strided)}) {
    run(function, plain, kBytes);
    run(function, managed, kBytes);
    compare(
        name, [&] { return timed([&] { run(function, plain, kBytes); }); },
        [&] { return timed([&] { run(function, managed, kBytes); }); });
  }
  while (wait(nullptr) > 0) {
  }
  return 0;
}
