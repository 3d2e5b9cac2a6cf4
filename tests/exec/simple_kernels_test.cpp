// SPDX-License-Identifier: Apache-2.0
//
// Straight lines, branches, loops and barriers.
#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

constexpr const char* kVadd = R"(
.version 7.0
.target sm_70
.address_size 64
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
)";

TEST(SimpleKernels, VectorAddWritesExactlyTheElementsAsked) {
  Kernels k(kVadd);
  constexpr uint32_t n = 1000;  // the last warp is partly masked off
  DeviceArray<float> a(1024), b(1024), c(1024, -1.0f);
  for (uint32_t i = 0; i < n; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5f;
  }
  const LaunchOutcome out = k.run("vadd", {8}, {128}, a.address, b.address, c.address, n);
  ASSERT_EQ(out.error, 0) << out.message;
  for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(c[i], static_cast<float>(i) + 0.5f) << i;
  for (uint32_t i = n; i < 1024; ++i) ASSERT_EQ(c[i], -1.0f) << i;
}

TEST(SimpleKernels, KernelInfoComesFromThePtx) {
  Kernels k(kVadd);
  ASSERT_EQ(k.program->kernels().size(), 1u);
  const KernelInfo& info = k.program->kernels()[0];
  EXPECT_EQ(info.name, "vadd");
  EXPECT_EQ(info.paramBytes, 28u);
  ASSERT_EQ(info.params.size(), 4u);
  EXPECT_EQ(info.params[3].offset, 24u);
  EXPECT_EQ(info.params[3].size, 4u);
  EXPECT_EQ(info.staticSharedBytes, 0u);
  EXPECT_FALSE(info.usesBarrier);
  EXPECT_EQ(info.ptxTarget, 70u);
}

// Needs more registers than 1024 threads have: 80 loaded values, used after the last load, added and stored.
std::string manyRegisters(const std::string& hints) {
  std::string text =
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry wide(.param .u64 p) " + hints +
      "\n{\n.reg .b64 %rd<2>; .reg .b32 %r<81>; .reg .b32 %s;\nld.param.u64 %rd1, [p];\nmov.u32 %s, 0;\n";
  for (int i = 0; i < 80; ++i) text += "ld.u32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * i) + "];\n";
  for (int i = 0; i < 80; ++i) text += "add.u32 %s, %s, %r" + std::to_string(i) + ";\n";
  return text + "st.u32 [%rd1+320], %s;\nret;\n}\n";
}

TEST(SimpleKernels, RegistersKeepToTheDeclaredBlock) {
  const model::DeviceModel d = testDevice();
  const Kernels free(manyRegisters("")), bound(manyRegisters(".maxntid 1024")),
      two(manyRegisters(".maxntid 512 .minnctapersm 4"));
  EXPECT_GE(free.program->kernels()[0].registersPerThread, 80u);
  EXPECT_EQ(bound.program->kernels()[0].registersPerThread, 64u);  // 65536 / 1024
  EXPECT_EQ(two.program->kernels()[0].registersPerThread, 32u);    // 65536 / (4 * 512)
  Engine& engine = Engine::get();
  EXPECT_EQ(engine.occupancy(*free.program, 0, 1024, 0, d), 1u);  // an estimate forbids nothing
  EXPECT_EQ(engine.occupancy(*bound.program, 0, 1024, 0, d), 1u);
  EXPECT_EQ(engine.occupancy(*two.program, 0, 512, 0, d), 4u);
}

TEST(SimpleKernels, RegisterPlusConstantIsAValue) {
  Kernels k(R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  ld.u32 %r1, [%rd1];
  st.u32 [%rd1+4], %r1 + 1;
  add.u32 %r2, %r1+2, %r1 + -3;
  st.u32 [%rd1+8], %r2;
  mov.u64 %rd2, %rd1 + 12;
  st.u32 [%rd2], 9;
  ret;
}
)");
  DeviceArray<uint32_t> a(4);
  a[0] = 100;
  const LaunchOutcome out = k.run("k", {1}, {1}, a.address);
  ASSERT_EQ(out.error, 0) << out.message;
  EXPECT_EQ(a[1], 101u);
  EXPECT_EQ(a[2], 199u);  // 102 + 97
  EXPECT_EQ(a[3], 9u);
}

// The flag is the adder's carry: after a subtraction it is set when nothing was borrowed. As an H200 has it.
TEST(SimpleKernels, CarryBetweenAdditionsAndSubtractions) {
  Kernels k(R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<3>; .reg .b32 a, b, t, %r<5>;
  ld.param.u64 %rd1, [p];
  ld.u32 a, [%rd1];
  ld.u32 b, [%rd1+4];
  add.cc.u32 t, a, b;
  subc.u32 %r0, a, b;
  add.cc.u32 t, a, 0xffffffff;
  subc.u32 %r1, a, b;
  sub.cc.u32 t, b, a;
  subc.cc.u32 %r2, b, a;
  addc.u32 %r3, 0, 0;
  sub.cc.u32 t, a, b;
  madc.lo.u32 %r4, a, b, 0;
  st.u32 [%rd1], %r0;
  st.u32 [%rd1+4], %r1;
  st.u32 [%rd1+8], %r2;
  st.u32 [%rd1+12], %r3;
  st.u32 [%rd1+16], %r4;
  ret;
}
)");
  DeviceArray<uint32_t> a(5);
  a[0] = 5;
  a[1] = 3;
  const LaunchOutcome out = k.run("k", {1}, {1}, a.address);
  ASSERT_EQ(out.error, 0) << out.message;
  EXPECT_EQ(a[0], 1u);           // 5 + 3 carries nothing: 5 - 3 - 1
  EXPECT_EQ(a[1], 2u);           // 5 - 1 carries: 5 - 3
  EXPECT_EQ(a[2], 0xfffffffdu);  // 3 - 5 borrows: 3 - 5 - 1
  EXPECT_EQ(a[3], 0u);           // and borrows again
  EXPECT_EQ(a[4], 16u);          // 5 - 3 borrows nothing: 15 + 1
}

TEST(SimpleKernels, AVariableNamedWithoutAStateSpaceIsInItsOwn) {
  Kernels k(R"(
.version 7.0
.target sm_70
.address_size 64
.global .b32 number = 7;
.shared .b32 moduleShared;
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<3>; .reg .b32 %r<5>;
  .shared .b32 pad[3];
  .shared .b32 there;
  .local .b32 here;
  ld.param.u64 %rd1, [p];
  st.shared.u32 [there], 40;
  st.u32 [moduleShared], 41;
  st.u32 [here], 42;
  atom.add.u32 %r0, [there], 2;
  ld.u32 %r0, [there];
  ld.u32 %r1, [moduleShared];
  ld.local.u32 %r2, [here];
  ld.u32 %r3, [number];
  st.v4.u32 [%rd1], {%r0, %r1, %r2, %r3};
  ret;
}
)");
  DeviceArray<uint32_t> a(4);
  const LaunchOutcome out = k.run("k", {1}, {1}, a.address);
  ASSERT_EQ(out.error, 0) << out.message;
  EXPECT_EQ(a[0], 42u);
  EXPECT_EQ(a[1], 41u);
  EXPECT_EQ(a[2], 42u);
  EXPECT_EQ(a[3], 7u);
}

// c = a * b for square matrices, tiles of 16 in shared memory.
constexpr const char* kMatmul = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry matmul(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{
  .reg .pred %p<3>;
  .reg .b32 %r<40>;
  .reg .f32 %f<8>;
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
  mov.u32 %r24, 0;
  mov.u32 %r25, %r12;
  mov.u32 %r26, %r16;
$inner:
  ld.shared.f32 %f4, [%r25];
  ld.shared.f32 %f5, [%r26];
  fma.rn.f32 %f1, %f4, %f5, %f1;
  add.s32 %r25, %r25, 4;
  add.s32 %r26, %r26, 64;
  add.s32 %r24, %r24, 1;
  setp.lt.u32 %p1, %r24, 16;
  @%p1 bra $inner;
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
)";

TEST(SimpleKernels, TiledMatrixProduct) {
  Kernels k(kMatmul);
  constexpr uint32_t n = 64;
  DeviceArray<float> a(n * n), b(n * n), c(n * n, -1.0f);
  for (uint32_t i = 0; i < n * n; ++i) {
    a[i] = static_cast<float>(i % 7) - 3;
    b[i] = static_cast<float>(i % 5) - 2;
  }
  const LaunchOutcome out = k.run("matmul", {n / 16, n / 16}, {16, 16}, a.address, b.address, c.address, n);
  ASSERT_EQ(out.error, 0) << out.message;
  EXPECT_TRUE(k.program->kernels()[0].usesBarrier);
  EXPECT_EQ(k.program->kernels()[0].staticSharedBytes, 2048u);
  for (uint32_t y = 0; y < n; ++y)
    for (uint32_t x = 0; x < n; ++x) {
      float want = 0;
      for (uint32_t i = 0; i < n; ++i) want += a[y * n + i] * b[i * n + x];
      ASSERT_EQ(c[y * n + x], want) << y << "," << x;
    }
}

// out[i] = steps of the Collatz sequence from i + 1: every lane leaves the loop
// at its own time, with an if-else inside.
constexpr const char* kCollatz = R"(
.version 7.0
.target sm_70
.address_size 64
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

// A function takes the address of its parameter of 11 bytes, adds to it in a loop that begins at its first instruction,
// and calls another with what it has become: a copy that is its own.
TEST(SimpleKernels, TheAddressOfAFunctionsParameter) {
  Kernels k(R"(.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b32 out) pick(.param .align 4 .b8 s[11], .param .b32 at)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
AGAIN:
  mov.b64 %rd1, s;
  ld.param.u32 %r1, [at];
  cvta.local.u64 %rd2, %rd1;
  ld.u8 %r2, [%rd2];
  add.u32 %r2, %r2, 1;
  st.u8 [%rd2], %r2;
  setp.lt.u32 %p1, %r2, 40;
  @%p1 bra AGAIN;
  cvt.u64.u32 %rd3, %r1;
  add.u64 %rd3, %rd1, %rd3;
  ld.local.u8 %r3, [%rd3];
  ld.param.u8 %r4, [s];
  mad.lo.u32 %r5, %r2, 65536, %r3;
  mad.lo.u32 %r5, %r4, 256, %r5;
  st.param.b32 [out], %r5;
  ret;
}
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  add.u32 %r2, %r1, 7;
  rem.u32 %r3, %r1, 11;
  mov.u32 %r5, 0x04030201;
  {
  .param .align 4 .b8 s[11];
  .param .b32 at;
  .param .b32 out;
  st.param.b32 [s], %r2;
  st.param.b32 [s+4], %r5;
  st.param.b16 [s+8], 0x0605;
  st.param.b8 [s+10], %r1;
  st.param.b32 [at], %r3;
  call.uni (out), pick, (s, at);
  ld.param.b32 %r4, [out];
  }
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r4;
  ret;
}
)");
  DeviceArray<uint32_t> out(32);
  const LaunchOutcome r = k.run("k", {1}, {32}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t t = 0; t < 32; ++t) {
    const uint32_t bytes[] = {40, 0, 0, 0, 1, 2, 3, 4, 5, 6, t};
    EXPECT_EQ(out[t], 40u * 65536 + (t + 7) * 256 + bytes[t % 11]) << t;
  }
}

TEST(SimpleKernels, DivergentLoop) {
  Kernels k(kCollatz);
  constexpr uint32_t n = 256;
  DeviceArray<uint32_t> out(n);
  const LaunchOutcome r = k.run("collatz", {4}, {64}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t steps = 0;
    for (uint64_t v = i + 1; v != 1; ++steps) v = v % 2 ? 3 * v + 1 : v / 2;
    ASSERT_EQ(out[i], steps) << i;
  }
  EXPECT_EQ(out[26], 111u);  // the well-known 27
}

}  // namespace
}  // namespace sonde::softgpu::exec
