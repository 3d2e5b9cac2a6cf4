// SPDX-License-Identifier: Apache-2.0
//
// The engine: launch latency and throughput in thread instructions per second
// (counted by the counting variant), plain and counting, against the same loops
// in C++.
#include <benchmark/benchmark.h>

#include "exec_kernels.h"
#include "exec_reference.h"

namespace sonde::bench {
namespace {

using namespace softgpu::exec;

uint64_t threadInstructions(const CounterValues& c) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < c.instances; ++i)
    n += c.values[i * kRawCounterCount + static_cast<uint32_t>(RawCounter::thread_inst_executed)];
  return n;
}

template <class... A>
void kernel(benchmark::State& state, const char* name, Dim3 grid, Dim3 block, A... args) {
  const auto level = static_cast<CountLevel>(state.range(0));
  const uint64_t n = threadInstructions(Kernels::get().run(name, grid, block, CountLevel::instructions, args...));
  Kernels::get().run(name, grid, block, level, args...);
  for (auto _ : state) Kernels::get().run(name, grid, block, level, args...);
  state.counters["thread_inst/s"] = benchmark::Counter(
      static_cast<double>(n), benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

void Launch(benchmark::State& s) { kernel(s, "empty", {1}, {32}); }
void LaunchManyBlocks(benchmark::State& s) { kernel(s, "empty", {10000}, {256}); }

constexpr uint32_t kN = 16u << 20;
void Vadd(benchmark::State& s) {
  static const uint64_t a = allocate(4u * kN), b = allocate(4u * kN), c = allocate(4u * kN);
  kernel(s, "vadd", {kN / 256}, {256}, a, b, c, kN);
}
void Saxpy(benchmark::State& s) {
  static const uint64_t x = allocate(4u * kN), y = allocate(4u * kN);
  kernel(s, "saxpy", {kN / 256}, {256}, 2.0f, x, y, kN);
}
// Every lane reads a line of its own.
constexpr uint32_t kG = 4u << 20;
void Gather(benchmark::State& s) {
  static const uint64_t x = allocate(4u * kG), y = allocate(4u * kG);
  kernel(s, "gather", {kG / 256}, {256}, x, y, kG - 1);
}
constexpr uint32_t kM = 512;
void Matmul(benchmark::State& s) {
  static const uint64_t a = allocate(4u * kM * kM), b = allocate(4u * kM * kM), c = allocate(4u * kM * kM);
  kernel(s, "matmul", {kM / 16, kM / 16}, {16, 16}, a, b, c, kM);
}
// One block of so many threads: 1000 barriers.
void Barriers(benchmark::State& s) {
  static const uint64_t out = allocate(4096);
  const auto threads = static_cast<uint32_t>(s.range(1));
  kernel(s, "barriers", {1}, {threads}, out, 1000u);
}
constexpr uint32_t kC = 2u << 20;
void Collatz(benchmark::State& s) {
  static const uint64_t out = allocate(4u * kC);
  kernel(s, "collatz", {kC / 256}, {256}, out);
}

// 32 Mi atomic operations.
void Tally(benchmark::State& s) {
  static const uint64_t words = allocate(4096);
  kernel(s, "tally", {64}, {256}, words, uint32_t{682});
}
void TallyAnywhere(benchmark::State& s) {
  static const uint64_t words = allocate(4096);
  kernel(s, "tally_anywhere", {64}, {256}, words, uint32_t{682});
}

void CppVadd(benchmark::State& s) {
  std::vector<float> a(kN, 1), b(kN, 2), c(kN);
  for (auto _ : s) vadd(a.data(), b.data(), c.data(), kN);
}
void CppSaxpy(benchmark::State& s) {
  std::vector<float> x(kN, 1), y(kN, 2);
  for (auto _ : s) saxpy(2.0f, x.data(), y.data(), kN);
}
void CppMatmul(benchmark::State& s) {
  std::vector<float> a(kM * kM, 1), b(kM * kM, 2), c(kM * kM);
  for (auto _ : s) matmul(a.data(), b.data(), c.data(), kM);
}
void CppCollatz(benchmark::State& s) {
  std::vector<uint32_t> out(kC);
  for (auto _ : s) collatz(out.data(), kC);
}

// Argument 0: plain, 2: counting requests, sectors and bank conflicts, 3: with
// the cache model of the default device, 4: each instruction, as source-level
// records need it.
BENCHMARK(Launch)->Arg(0)->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMicrosecond);
BENCHMARK(LaunchManyBlocks)->Arg(0)->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(Vadd)->Arg(0)->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Saxpy)->Arg(0)->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Gather)->Arg(0)->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Matmul)->Arg(0)->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Barriers)->Args({0, 64})->Args({0, 256})->Args({0, 1024})->Unit(benchmark::kMicrosecond);
BENCHMARK(Collatz)->Arg(0)->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(Tally)->Arg(0)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(TallyAnywhere)->Arg(0)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(CppVadd)->Unit(benchmark::kMillisecond);
BENCHMARK(CppSaxpy)->Unit(benchmark::kMillisecond);
BENCHMARK(CppMatmul)->Unit(benchmark::kMillisecond);
BENCHMARK(CppCollatz)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sonde::bench

BENCHMARK_MAIN();
