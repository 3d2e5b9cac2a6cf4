// SPDX-License-Identifier: Apache-2.0
#include "exec_kernels.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "softgpu/memory/address_space.h"

namespace sonde::bench {

using namespace softgpu;
using namespace softgpu::exec;

namespace {

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
// Reductions of every warp to three words; in the second kernel the code generator does not know that.
.visible .entry tally(.param .u64 p, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
$again:
  red.global.add.u32 [%rd1], 1;
  add.u32 %r2, %r2, 7;
  red.global.max.u32 [%rd1+64], %r2;
  red.global.add.u32 [%rd1+128], %r2;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $again;
  ret;
}
.visible .entry tally_anywhere(.param .u64 p, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  shr.u32 %r3, %r2, 20;
  mad.wide.u32 %rd1, %r3, 4, %rd1;
$again:
  red.global.add.u32 [%rd1], 1;
  add.u32 %r2, %r2, 7;
  red.global.max.u32 [%rd1+64], %r2;
  red.global.add.u32 [%rd1+128], %r2;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $again;
  ret;
}
// Tiles of 512 keys: merges by binary searches.
.visible .entry mergesort(.param .u64 in, .param .u64 out, .param .u32 n)
{
  .reg .pred %p<9>;
  .reg .b32 %r<57>;
  .reg .b64 %rd<32>;
  .shared .align 4 .b8 keys[2048];
  ld.param.u32 %r16, [n];
  ld.param.u64 %rd6, [in];
  ld.param.u64 %rd7, [out];
  cvta.to.global.u64 %rd1, %rd7;
  cvta.to.global.u64 %rd8, %rd6;
  mov.u32 %r17, %tid.x;
  mov.u32 %r18, %ctaid.x;
  shl.b32 %r19, %r18, 9;
  cvt.u64.u32 %rd2, %r19;
  mul.wide.u32 %rd9, %r19, 4;
  add.s64 %rd10, %rd8, %rd9;
  cvt.u64.u32 %rd3, %r17;
  mul.wide.u32 %rd11, %r17, 4;
  add.s64 %rd12, %rd10, %rd11;
  ld.global.u32 %r20, [%rd12];
  mul.lo.s32 %r21, %r17, 40503;
  mad.lo.s32 %r22, %r20, -1640531535, %r21;
  mov.u64 %rd13, keys;
  add.s64 %rd4, %rd13, %rd11;
  st.shared.u32 [%rd4], %r22;
  ld.global.u32 %r23, [%rd12+1024];
  mul.lo.s32 %r24, %r23, -2048144777;
  shl.b32 %r25, %r17, 7;
  xor.b32 %r26, %r24, %r25;
  st.shared.u32 [%rd4+1024], %r26;
  setp.lt.u32 %p1, %r16, 2;
  @%p1 bra $M9;
  mov.b32 %r50, 1;
  cvt.u32.u64 %r29, %rd3;
  mov.b32 %r28, 0;
  bra.uni $M2;
$M8:
  bar.sync 0;
  add.s32 %r46, %r53, %r2;
  mul.wide.u32 %rd24, %r46, 4;
  add.s64 %rd25, %rd5, %rd24;
  st.shared.u32 [%rd25], %r3;
  add.s32 %r47, %r56, %r2;
  mul.wide.u32 %rd26, %r47, 4;
  add.s64 %rd27, %rd5, %rd26;
  st.shared.u32 [%rd27], %r4;
  shl.b32 %r50, %r50, 1;
  setp.lt.u32 %p8, %r50, %r16;
  @%p8 bra $M2;
  bra.uni $M9;
$M2:
  add.s32 %r30, %r50, -1;
  and.b32 %r2, %r30, %r29;
  sub.s32 %r31, %r29, %r2;
  shl.b32 %r32, %r31, 1;
  mul.wide.u32 %rd14, %r32, 4;
  add.s64 %rd5, %rd13, %rd14;
  bar.sync 0;
  mul.wide.u32 %rd16, %r2, 4;
  add.s64 %rd17, %rd5, %rd16;
  ld.shared.u32 %r3, [%rd17];
  setp.eq.s32 %p2, %r50, 0;
  mov.u32 %r53, %r28;
  @%p2 bra $M5;
  mov.b32 %r53, 0;
  mov.u32 %r52, %r50;
$M4:
  add.s32 %r35, %r52, %r53;
  shr.u32 %r36, %r35, 1;
  add.s32 %r37, %r36, %r50;
  mul.wide.u32 %rd20, %r37, 4;
  add.s64 %rd21, %rd5, %rd20;
  ld.shared.u32 %r38, [%rd21];
  setp.lt.u32 %p3, %r38, %r3;
  add.s32 %r39, %r36, 1;
  selp.b32 %r53, %r39, %r53, %p3;
  selp.b32 %r52, %r52, %r36, %p3;
  setp.lt.u32 %p4, %r53, %r52;
  @%p4 bra $M4;
$M5:
  add.s32 %r33, %r2, %r50;
  mul.wide.u32 %rd18, %r33, 4;
  add.s64 %rd19, %rd5, %rd18;
  ld.shared.u32 %r4, [%rd19];
  mov.u32 %r56, %r28;
  @%p2 bra $M8;
  mov.b32 %r56, 0;
  mov.u32 %r54, %r50;
$M7:
  add.s32 %r42, %r54, %r56;
  shr.u32 %r43, %r42, 1;
  mul.wide.u32 %rd22, %r43, 4;
  add.s64 %rd23, %rd5, %rd22;
  ld.shared.u32 %r44, [%rd23];
  setp.gt.u32 %p6, %r44, %r4;
  add.s32 %r45, %r43, 1;
  selp.b32 %r56, %r56, %r45, %p6;
  selp.b32 %r54, %r43, %r54, %p6;
  setp.lt.u32 %p7, %r56, %r54;
  @%p7 bra $M7;
  bra.uni $M8;
$M9:
  shl.b64 %rd28, %rd2, 2;
  add.s64 %rd29, %rd1, %rd28;
  bar.sync 0;
  ld.shared.u32 %r48, [%rd4];
  shl.b64 %rd30, %rd3, 2;
  add.s64 %rd31, %rd29, %rd30;
  st.global.u32 [%rd31], %r48;
  ld.shared.u32 %r49, [%rd4+1024];
  st.global.u32 [%rd31+1024], %r49;
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

}  // namespace

uint64_t allocate(uint64_t bytes) {
  static uint64_t next = memory::AddressSpace::get().global.base + 4096;
  const uint64_t at = next, size = (bytes + 4095) / 4096 * 4096;
  next += size + 4096;
  std::byte* p = memory::AddressSpace::get().deviceView(at);
  if (mprotect(p, size, PROT_READ | PROT_WRITE) != 0) std::abort();
  std::memset(p, 1, size);
  return at;
}

Kernels::Kernels() {
  device_ = model::modelsFor("default").front();
  const std::string ptx = text();
  const std::string_view texts[] = {ptx};
  auto loaded = Program::load(texts, device_);
  if (!loaded.program) {
    std::fprintf(stderr, "%s\n", loaded.diagnostics.front().message.c_str());
    std::abort();
  }
  program_ = loaded.program;
  program_->bind({});
}

Kernels& Kernels::get() {
  static Kernels* kernels = new Kernels();
  return *kernels;
}

CounterValues Kernels::launch(const char* name, Dim3 grid, Dim3 block, CountLevel level,
                              const std::vector<std::byte>& params) {
  LaunchRequest r;
  CounterValues counters;
  r.program = program_.get();
  for (uint32_t k = 0; k < program_->kernels().size(); ++k)
    if (program_->kernels()[k].name == name) r.kernel = k;
  r.grid = grid;
  r.block = block;
  r.params = params;
  r.device = &device_;
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

}  // namespace sonde::bench
