// SPDX-License-Identifier: Apache-2.0
//
// The engine: launch latency and throughput in thread instructions per second
// (counted by the counting variant), plain and counting, against the same loops
// in C++.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "exec_reference.h"
#include "softgpu/exec/engine.h"
#include "softgpu/memory/address_space.h"

namespace sonde::bench {
namespace {

using namespace softgpu;
using namespace softgpu::exec;

constexpr const char* kPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry empty()
{
  ret;
}
.visible .entry vadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra $L__end;
  cvta.to.global.u64 %rd4, %rd1;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd4, %rd5;
  ld.global.f32 %f1, [%rd6];
  cvta.to.global.u64 %rd7, %rd2;
  add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f2, [%rd8];
  add.f32 %f3, %f1, %f2;
  cvta.to.global.u64 %rd9, %rd3;
  add.s64 %rd10, %rd9, %rd5;
  st.global.f32 [%rd10], %f3;
$L__end:
  ret;
}
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<8>;
  ld.param.f32 %f1, [a];
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra $L__end;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd1, %rd5;
  ld.global.f32 %f2, [%rd6];
  add.s64 %rd7, %rd2, %rd5;
  ld.global.f32 %f3, [%rd7];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%rd7], %f4;
$L__end:
  ret;
}
.visible .entry gather(.param .u64 x, .param .u64 y, .param .u32 mask)
{
  .reg .b32 %r<8>;
  .reg .f32 %f<2>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r2, [mask];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  mul.lo.u32 %r6, %r1, -1640531535;
  and.b32 %r6, %r6, %r2;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd6, %rd2, %rd5;
  st.global.f32 [%rd6], %f1;
  ret;
}
.visible .entry matmul(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{
  .reg .pred %p<3>;
  .reg .b32 %r<40>;
  .reg .f32 %f<40>;
  .reg .b64 %rd<16>;
  .shared .align 4 .b8 As[1024];
  .shared .align 4 .b8 Bs[1024];
  ld.param.u64 %rd1, [pa];
  ld.param.u64 %rd2, [pb];
  ld.param.u64 %rd3, [pc];
  ld.param.u32 %r1, [pn];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ctaid.y;
  shl.b32 %r6, %r5, 4;
  add.s32 %r6, %r6, %r3;
  shl.b32 %r7, %r4, 4;
  add.s32 %r7, %r7, %r2;
  mov.u32 %r8, As;
  mov.u32 %r9, Bs;
  shl.b32 %r10, %r3, 6;
  shl.b32 %r11, %r2, 2;
  add.s32 %r12, %r8, %r10;
  add.s32 %r13, %r12, %r11;
  add.s32 %r14, %r9, %r10;
  add.s32 %r15, %r14, %r11;
  add.s32 %r16, %r9, %r11;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r20, 0;
$tile:
  mad.lo.s32 %r21, %r6, %r1, %r20;
  add.s32 %r21, %r21, %r2;
  mul.wide.u32 %rd4, %r21, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.f32 %f2, [%rd5];
  st.shared.f32 [%r13], %f2;
  add.s32 %r22, %r20, %r3;
  mad.lo.s32 %r23, %r22, %r1, %r7;
  mul.wide.u32 %rd6, %r23, 4;
  add.s64 %rd7, %rd2, %rd6;
  ld.global.f32 %f3, [%rd7];
  st.shared.f32 [%r15], %f3;
  bar.sync 0;
  INNER
  bar.sync 0;
  add.s32 %r20, %r20, 16;
  setp.lt.u32 %p2, %r20, %r1;
  @%p2 bra $tile;
  mad.lo.s32 %r30, %r6, %r1, %r7;
  mul.wide.u32 %rd8, %r30, 4;
  add.s64 %rd9, %rd3, %rd8;
  st.global.f32 [%rd9], %f1;
  ret;
}
.visible .entry barriers(.param .u64 out, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, 0;
$again:
  bar.sync 0;
  xor.b32 %r2, %r2, %r3;
  add.s32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, %r1;
  @%p1 bra $again;
  mov.u32 %r4, %tid.x;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r2;
  ret;
}
.visible .entry collatz(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  add.u32 %r5, %r4, 1;
  mov.u32 %r6, 0;
$head:
  setp.eq.u32 %p1, %r5, 1;
  @%p1 bra $done;
  and.b32 %r7, %r5, 1;
  setp.eq.u32 %p2, %r7, 0;
  @%p2 bra $even;
  mad.lo.u32 %r5, %r5, 3, 1;
  bra.uni $next;
$even:
  shr.u32 %r5, %r5, 1;
$next:
  add.u32 %r6, %r6, 1;
  bra.uni $head;
$done:
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
  ret;
}
)";

std::string text() {
  std::string ptx = kPtx, inner;
  for (int i = 0; i < 16; ++i)
    inner += "ld.shared.f32 %f4, [%r12+" + std::to_string(4 * i) + "];\n  ld.shared.f32 %f5, [%r16+" +
             std::to_string(64 * i) + "];\n  fma.rn.f32 %f1, %f4, %f5, %f1;\n  ";
  return ptx.replace(ptx.find("INNER"), 5, inner);
}

uint64_t allocate(uint64_t bytes) {
  static uint64_t next = memory::AddressSpace::get().global.base + 4096;
  const uint64_t at = next, size = (bytes + 4095) / 4096 * 4096;
  next += size + 4096;
  std::byte* p = memory::AddressSpace::get().deviceView(at);
  if (mprotect(p, size, PROT_READ | PROT_WRITE) != 0) std::abort();
  std::memset(p, 1, size);
  return at;
}

// Beyond the levels there are: counts for each instruction.
constexpr auto kSourceLevel = static_cast<CountLevel>(4);

struct Bench {
  model::DeviceModel device;
  std::shared_ptr<Program> program;
  Bench() {
    device = model::modelsFor("default").front();
    const std::string ptx = text();
    const std::string_view texts[] = {ptx};
    auto loaded = Program::load(texts, device);
    if (!loaded.program) {
      std::fprintf(stderr, "%s\n", loaded.diagnostics.front().message.c_str());
      std::abort();
    }
    program = loaded.program;
    program->bind({});
  }
  static Bench& get() {
    static Bench* b = new Bench();
    return *b;
  }
  template <class... A>
  CounterValues run(const char* name, Dim3 grid, Dim3 block, CountLevel level, A... args) {
    std::vector<std::byte> params;
    auto put = [&](auto v) {
      const size_t at = (params.size() + sizeof v - 1) / sizeof v * sizeof v;
      params.resize(at + sizeof v);
      std::memcpy(params.data() + at, &v, sizeof v);
    };
    (put(args), ...);
    LaunchRequest r;
    CounterValues counters;
    r.program = program.get();
    for (uint32_t k = 0; k < program->kernels().size(); ++k)
      if (program->kernels()[k].name == name) r.kernel = k;
    r.grid = grid;
    r.block = block;
    r.params = params;
    r.device = &device;
    std::vector<InstructionCount> instructions;
    if (level == kSourceLevel) {
      r.instructions = &instructions;
    } else {
      r.count = level;
      if (level != CountLevel::off) r.counters = &counters;
    }
    const LaunchOutcome out = Engine::get().run(r);
    if (out.error) {
      std::fprintf(stderr, "%s\n", out.message.c_str());
      std::abort();
    }
    return counters;
  }
};

uint64_t threadInstructions(const CounterValues& c) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < c.instances; ++i)
    n += c.values[i * kRawCounterCount + static_cast<uint32_t>(RawCounter::thread_inst_executed)];
  return n;
}

template <class... A>
void kernel(benchmark::State& state, const char* name, Dim3 grid, Dim3 block, A... args) {
  const auto level = static_cast<CountLevel>(state.range(0));
  const uint64_t n = threadInstructions(Bench::get().run(name, grid, block, CountLevel::instructions, args...));
  Bench::get().run(name, grid, block, level, args...);
  for (auto _ : state) Bench::get().run(name, grid, block, level, args...);
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
BENCHMARK(CppVadd)->Unit(benchmark::kMillisecond);
BENCHMARK(CppSaxpy)->Unit(benchmark::kMillisecond);
BENCHMARK(CppMatmul)->Unit(benchmark::kMillisecond);
BENCHMARK(CppCollatz)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sonde::bench

BENCHMARK_MAIN();
