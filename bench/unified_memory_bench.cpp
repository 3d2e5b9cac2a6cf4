// SPDX-License-Identifier: Apache-2.0
// Managed memory: what a fault with its migration costs, what an access to a
// resident page costs, and what a program without managed memory pays for it.
// Times are one access's or one launch's; argument 1 is with every counter of
// unified memory recorded. SONDE_USERFAULTFD=0 measures the way of signals.
#include <benchmark/benchmark.h>
#include <cuda.h>
#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr size_t kPage = 4096, kBig = 65536, kBlock = 2u << 20;

// One kernel for all: each thread adds 1 to its element of p.
constexpr const char* kPtx = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .entry increment(.param .u64 p)
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
)";

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "unified_memory_bench: %s failed\n", what);
  std::exit(1);
}

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *size = 1u << 20;
  *buffer = static_cast<uint8_t*>(std::malloc(*size));
  *maxNumRecords = 0;
}
void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) { std::free(buffer); }

struct Gpu {
  CUcontext context = nullptr;
  CUfunction increment = nullptr;
  Gpu() {
    CUmodule module;
    check(cuInit(0) == CUDA_SUCCESS && cuCtxCreate_v4(&context, nullptr, 0, 0) == CUDA_SUCCESS, "cuCtxCreate");
    check(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS, "cuModuleLoadData");
    check(cuModuleGetFunction(&increment, module, "increment") == CUDA_SUCCESS, "cuModuleGetFunction");
  }
  void run(CUdeviceptr p, unsigned blocks) const {
    void* parameters[] = {&p};
    check(cuLaunchKernel(increment, blocks, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS &&
              cuCtxSynchronize() == CUDA_SUCCESS,
          "increment");
  }
};
const Gpu& gpu() {
  static const Gpu one;
  return one;
}

// Pages have a residence from the first of these on.
void record(bool on) {
  gpu();
  std::vector<CUpti_ActivityUnifiedMemoryCounterConfig> all;
  for (int kind = 1; kind < CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT; ++kind) {
    CUpti_ActivityUnifiedMemoryCounterConfig c{};
    c.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES;
    c.kind = static_cast<CUpti_ActivityUnifiedMemoryCounterKind>(kind);
    c.enable = 1;
    all.push_back(c);
  }
  static const bool registered = cuptiActivityRegisterCallbacks(requested, completed) == CUPTI_SUCCESS;
  check(registered &&
            cuptiActivityConfigureUnifiedMemoryCounter(all.data(), static_cast<uint32_t>(all.size())) == CUPTI_SUCCESS,
        "cuptiActivityConfigureUnifiedMemoryCounter");
  if (on)
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
  else
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
}

CUdeviceptr allocate(size_t bytes, bool managed) {
  gpu();
  CUdeviceptr p = 0;
  check((managed ? cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL) : cuMemAlloc(&p, bytes)) == CUDA_SUCCESS,
        "allocation");
  return p;
}

volatile char* host(CUdeviceptr p) { return reinterpret_cast<volatile char*>(p); }

void prefetch(CUdeviceptr p, size_t bytes) {
  check(cuMemPrefetchAsync_v2(p, bytes, CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, 0, nullptr) == CUDA_SUCCESS &&
            cuCtxSynchronize() == CUDA_SUCCESS,
        "cuMemPrefetchAsync");
}

// The tenth, the middle and the ninetieth of a hundred.
void distribution(benchmark::State& state, std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  for (const auto& [name, part] : {std::pair("p10_us", 10), {"median_us", 50}, {"p90_us", 90}})
    state.counters[name] = values[(values.size() - 1) * static_cast<size_t>(part) / 100];
}

// ---------------------------------------------------------------- no managed --

// First of all: nothing of unified memory has been switched on yet.
void launchBefore(benchmark::State& state) {
  const CUdeviceptr p = allocate(kBig, false);
  gpu().run(p, 1);
  for (auto _ : state) gpu().run(p, 1);
  cuMemFree(p);
}
BENCHMARK(launchBefore)->UseRealTime();
void launchRecording(benchmark::State& state) {
  record(true);
  launchBefore(state);
}
BENCHMARK(launchRecording)->UseRealTime();

// -------------------------------------------------------------------- faults --

// The CPU touches one byte of 64 KiB that are on the device; the iteration's
// time is the touch alone. One 64 KiB region of each 2 MiB block, so that no
// neighbour comes along.
void faultOfTheCpu(benchmark::State& state) {
  record(state.range(0) != 0);
  constexpr size_t kBlocks = 64;
  const CUdeviceptr p = allocate(kBlocks * kBlock, true);
  std::vector<double> times;
  size_t at = kBlocks;
  for (auto _ : state) {
    if (at == kBlocks) {
      prefetch(p, kBlocks * kBlock);
      at = 0;
    }
    const auto start = std::chrono::steady_clock::now();
    host(p + at++ * kBlock)[0] = 1;
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(took);
    times.push_back(took * 1e6);
  }
  distribution(state, times);
  cuMemFree(p);
}
BENCHMARK(faultOfTheCpu)->Arg(0)->Arg(1)->UseManualTime()->Iterations(1024);

// A block of a kernel touches 1 KiB in 64 KiB that are with the CPU; the
// launch itself is in the time (launchBefore).
void faultOfAKernel(benchmark::State& state) {
  record(state.range(0) != 0);
  constexpr size_t kBlocks = 64;
  const CUdeviceptr p = allocate(kBlocks * kBlock, true);
  std::vector<double> times;
  size_t at = kBlocks;
  for (auto _ : state) {
    if (at == kBlocks) {
      for (size_t i = 0; i < kBlocks * kBlock; i += kPage) host(p + i)[0] = 1;
      at = 0;
    }
    const auto start = std::chrono::steady_clock::now();
    gpu().run(p + at++ * kBlock, 1);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(took);
    times.push_back(took * 1e6);
  }
  distribution(state, times);
  cuMemFree(p);
}
BENCHMARK(faultOfAKernel)->Arg(0)->Arg(1)->UseManualTime()->Iterations(1024);

// ------------------------------------------------------------------ resident --

// The CPU reads 16 MiB again and again: its own memory (0) or managed (1).
void residentLoads(benchmark::State& state) {
  record(true);
  constexpr size_t kBytes = 16u << 20;
  std::vector<uint64_t> own(kBytes / 8, 1);
  const CUdeviceptr p = state.range(0) != 0 ? allocate(kBytes, true) : 0;
  uint64_t* data = p != 0 ? reinterpret_cast<uint64_t*>(p) : own.data();
  for (size_t i = 0; i < kBytes / 8; ++i) data[i] = i;
  for (auto _ : state) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kBytes / 8; ++i) sum += data[i];
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(kBytes));
  if (p != 0) cuMemFree(p);
}
BENCHMARK(residentLoads)->Arg(0)->Arg(1);

// A kernel over 16 MiB of plain device memory (0) or of managed memory that is there (1).
void residentKernel(benchmark::State& state) {
  record(true);
  constexpr size_t kBytes = 16u << 20;
  const bool managed = state.range(0) != 0;
  const CUdeviceptr p = allocate(kBytes, managed);
  if (managed) prefetch(p, kBytes);
  gpu().run(p, kBytes / 1024);
  for (auto _ : state) gpu().run(p, kBytes / 1024);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(kBytes));
  cuMemFree(p);
}
BENCHMARK(residentKernel)->Arg(0)->Arg(1)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
