// SPDX-License-Identifier: Apache-2.0
//
// Exchange between lanes, atomics, spin locks, calls and local memory.
#include <cstring>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

const std::string kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

// A kernel `k(out)` for one warp: the body leaves its result in %r1 and the
// lane's number is in %lane.
std::string oneWarp(const std::string& body, const std::string& before = "") {
  return kHead + before + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<10>;
  .reg .b32 %r<40>;
  .reg .b32 %lane;
  .reg .f32 %f<10>;
  .reg .b64 %rd<20>;
  mov.u32 %lane, %laneid;
)" + body +
         R"(
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %lane, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
)";
}

std::vector<uint32_t> runWarp(const std::string& ptx, uint32_t threads = 32) {
  Kernels k(ptx);
  DeviceArray<uint32_t> out(32, 0xdeadbeef);
  const LaunchOutcome r = k.run("k", {1}, {threads}, out.address);
  EXPECT_EQ(r.error, 0) << r.message;
  return {out.data(), out.data() + 32};
}

TEST(WarpOps, ShuffleModes) {
  auto r = runWarp(oneWarp("  shfl.sync.bfly.b32 %r1, %lane, 5, 31, -1;"));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], l ^ 5);
  // up by 3 within segments of 8: the first three of each keep their value.
  r = runWarp(oneWarp("  shfl.sync.up.b32 %r1, %lane, 3, 0x1800, -1;"));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], l % 8 < 3 ? l : l - 3);
  // down by 2 with the predicate: false for the last two.
  r = runWarp(oneWarp("  shfl.sync.down.b32 %r2|%p1, %lane, 2, 31, -1;\n  selp.b32 %r1, %r2, 99, %p1;"));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], l < 30 ? l + 2 : 99);
  // idx with a lane-dependent index: reverse.
  r = runWarp(
      oneWarp("  sub.u32 %r2, 31, %lane;\n  mul.lo.u32 %r3, %lane, 10;\n  shfl.sync.idx.b32 %r1, %r3, %r2, 31, -1;"));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], (31 - l) * 10);
}

TEST(WarpOps, VoteAndActiveMask) {
  auto r = runWarp(oneWarp("  setp.lt.u32 %p1, %lane, 10;\n  vote.sync.ballot.b32 %r1, %p1, -1;"));
  for (uint32_t v : r) EXPECT_EQ(v, 0x3ffu);
  // 20 threads: the others do not exist, and the predicate holds for all there are.
  r = runWarp(
      oneWarp("  setp.lt.u32 %p1, %lane, 20;\n  vote.sync.all.pred %p2, %p1, 0xfffff;\n  selp.b32 %r2, 1, 0, %p2;\n"
              "  activemask.b32 %r3;\n  mad.lo.u32 %r1, %r2, 0x1000000, %r3;"),
      20);
  EXPECT_EQ(r[0], 0x1000000u + 0xfffffu);
  EXPECT_EQ(r[20], 0xdeadbeefu);
  r = runWarp(
      oneWarp("  setp.eq.u32 %p1, %lane, 7;\n  vote.sync.any.pred %p2, %p1, -1;\n  vote.sync.uni.pred %p3, %p1, -1;\n"
              "  selp.b32 %r2, 1, 0, %p2;\n  selp.b32 %r3, 2, 0, %p3;\n  or.b32 %r1, %r2, %r3;"));
  EXPECT_EQ(r[3], 1u);
}

// Lane l has l - 16; lanes 7 and 30 a NaN.
TEST(WarpOps, ReduxOfSingles) {
  model::DeviceModel d = testDevice();
  d.ccMajor = 10;
  d.ccMinor = 0;
  auto reduced = [&](const std::string& operation, const std::string& members = "-1") {
    Kernels k(R"(.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .f32 %f<5>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %laneid;
  sub.s32 %r2, %r1, 16;
  cvt.rn.f32.s32 %f1, %r2;
  setp.eq.u32 %p1, %r1, 7;
  setp.eq.or.u32 %p1, %r1, 30, %p1;
  @%p1 mov.f32 %f1, 0fFFC00001;
  redux.sync.)" + operation +
                  ".f32 %f2, %f1, " + members + R"(;
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.f32 [%rd1], %f2;
  ret;
}
)",
              d);
    DeviceArray<float> out(32, -1.0f);
    const LaunchOutcome r = k.run("k", {1}, {32}, out.address);
    EXPECT_EQ(r.error, 0) << r.message;
    for (int l = 1; l < 32; ++l) EXPECT_EQ(0, std::memcmp(out.data(), out.data() + l, 4)) << l;
    return out[0];
  };
  EXPECT_EQ(reduced("min"), -16.0f);
  EXPECT_EQ(reduced("max"), 15.0f);
  EXPECT_EQ(reduced("min.abs"), 0.0f);
  EXPECT_EQ(reduced("max.abs"), 16.0f);
  for (const char* operation : {"min.NaN", "max.abs.NaN"}) {
    const float nan = reduced(operation);
    uint32_t bits;
    std::memcpy(&bits, &nan, 4);
    EXPECT_EQ(bits, 0x7fffffffu) << operation;
  }
}

TEST(WarpOps, MatchReduxElect) {
  auto r = runWarp(oneWarp("  and.b32 %r2, %lane, 3;\n  match.any.sync.b32 %r1, %r2, -1;"));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], 0x11111111u << (l & 3));
  r = runWarp(oneWarp("  redux.sync.add.u32 %r1, %lane, 0xff;"));
  EXPECT_EQ(r[0], 28u);
  r = runWarp(oneWarp("  sub.s32 %r2, 5, %lane;\n  redux.sync.min.s32 %r1, %r2, -1;"));
  EXPECT_EQ(static_cast<int32_t>(r[9]), -26);
  r = runWarp(oneWarp("  elect.sync %r2|%p1, 0xf0;\n  selp.b32 %r1, %r2, 100, %p1;"));
  EXPECT_EQ(r[4], 4u);
  EXPECT_EQ(r[5], 100u);
}

TEST(WarpOps, DivergentBallotSeesOnlyTheLanesThatAreThere) {
  auto r = runWarp(oneWarp(R"(
  setp.lt.u32 %p1, %lane, 8;
  @%p1 bra $low;
  activemask.b32 %r1;
  bra.uni $join;
$low:
  activemask.b32 %r1;
  add.u32 %r1, %r1, 0;
$join:
  activemask.b32 %r2;
  setp.ne.u32 %p2, %r2, -1;
  selp.b32 %r1, 0, %r1, %p2;
)"));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], l < 8 ? 0xffu : 0xffffff00u);
}

TEST(WarpOps, LanesTakeALockOneAfterTheOther) {
  // Each lane spins on a lock that another lane of its warp may hold.
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 lock, .param .u64 counter)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [lock];
  ld.param.u64 %rd2, [counter];
$try:
  atom.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $try;
  membar.gl;
  ld.volatile.global.u32 %r2, [%rd2];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%rd2], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%rd1], 0;
  ret;
}
)");
  DeviceArray<uint32_t> lock(1), counter(1);
  const LaunchOutcome r = k.run("k", {6}, {96}, lock.address, counter.address);
  ASSERT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(counter[0], 6u * 96u);
  EXPECT_EQ(lock[0], 0u);
}

TEST(WarpOps, AtomicsOfEveryKind) {
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<10>;
  .reg .f32 %f<4>;
  .reg .f64 %d<4>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  red.global.add.u32 [%rd1], 1;
  red.global.max.s32 [%rd1+4], %r1;
  sub.s32 %r2, 0, %r1;
  atom.global.min.s32 %r3, [%rd1+8], %r2;
  shl.b32 %r4, 1, %r1;
  atom.global.or.b32 %r3, [%rd1+12], %r4;
  atom.global.inc.u32 %r3, [%rd1+16], 9;
  atom.global.dec.u32 %r3, [%rd1+20], 9;
  cvt.rn.f32.u32 %f1, %r1;
  red.global.add.f32 [%rd1+24], %f1;
  cvt.rn.f64.u32 %d1, %r1;
  atom.global.add.f64 %d2, [%rd1+32], %d1;
  cvt.u64.u32 %rd2, %r1;
  atom.global.add.u64 %rd3, [%rd1+40], %rd2;
  mov.b32 %r5, 0x3c003c00;
  red.global.add.noftz.f16x2 [%rd1+48], %r5;
  ret;
}
)");
  DeviceArray<uint32_t> m(64);
  m[20 / 4] = 3;
  const LaunchOutcome r = k.run("k", {1}, {32}, m.address);
  ASSERT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(m[0], 32u);
  EXPECT_EQ(m[1], 31u);
  EXPECT_EQ(static_cast<int32_t>(m[2]), -31);
  EXPECT_EQ(m[3], 0xffffffffu);
  EXPECT_EQ(m[4], 2u);  // 32 increments modulo 10
  EXPECT_EQ(m[5], 1u);  // from 3: after 4 steps 9, then 28 more steps of a cycle of 10: 9 - 8
  float f;
  std::memcpy(&f, &m[6], 4);
  EXPECT_EQ(f, 496.0f);
  double d;
  std::memcpy(&d, &m[8], 8);
  EXPECT_EQ(d, 496.0);
  uint64_t u;
  std::memcpy(&u, &m[10], 8);
  EXPECT_EQ(u, 496u);
  EXPECT_EQ(m[12], 0x50005000u);  // 32 in both halves
}

TEST(WarpOps, CallsRecursionAndIndirectCalls) {
  const std::string functions = R"(
.func (.param .b32 result) fib(.param .b32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  ld.param.b32 %r1, [n];
  setp.lt.u32 %p1, %r1, 2;
  @%p1 bra $small;
  sub.u32 %r2, %r1, 1;
  {
  .param .b32 a0;
  .param .b32 r0;
  st.param.b32 [a0], %r2;
  call.uni (r0), fib, (a0);
  ld.param.b32 %r3, [r0];
  }
  sub.u32 %r4, %r1, 2;
  {
  .param .b32 a1;
  .param .b32 r1;
  st.param.b32 [a1], %r4;
  call.uni (r1), fib, (a1);
  ld.param.b32 %r5, [r1];
  }
  add.u32 %r6, %r3, %r5;
  st.param.b32 [result], %r6;
  ret;
$small:
  st.param.b32 [result], %r1;
  ret;
}
.func (.param .b32 result) twice(.param .b32 n)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [n];
  shl.b32 %r2, %r1, 1;
  st.param.b32 [result], %r2;
  ret;
}
.func (.param .b32 result) square(.param .b32 n)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [n];
  mul.lo.u32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
)";
  auto r = runWarp(oneWarp(R"(
  and.b32 %r2, %lane, 15;
  {
  .param .b32 a;
  .param .b32 b;
  st.param.b32 [a], %r2;
  call (b), fib, (a);
  ld.param.b32 %r1, [b];
  }
)",
                           functions));
  const uint32_t fib[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610};
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], fib[l & 15]) << l;

  r = runWarp(oneWarp(R"(
  and.b32 %r2, %lane, 1;
  setp.eq.u32 %p1, %r2, 0;
  mov.u64 %rd10, twice;
  mov.u64 %rd11, square;
  selp.b64 %rd12, %rd10, %rd11, %p1;
  {
  .param .b32 a;
  .param .b32 b;
  st.param.b32 [a], %lane;
  proto : .callprototype (.param .b32 _) _ (.param .b32 _);
  call (b), %rd12, (a), proto;
  ld.param.b32 %r1, [b];
  }
)",
                      functions));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], l % 2 ? l * l : 2 * l) << l;
}

TEST(WarpOps, LocalMemoryIsEachThreadsOwn) {
  auto r = runWarp(oneWarp(R"(
  .local .align 4 .b8 depot[64];
  mov.u64 %rd10, depot;
  cvta.local.u64 %rd11, %rd10;
  mul.lo.u32 %r2, %lane, 3;
  and.b32 %r3, %lane, 15;
  mul.wide.u32 %rd12, %r3, 4;
  add.u64 %rd13, %rd10, %rd12;
  st.local.u32 [%rd13], %r2;
  add.u64 %rd14, %rd11, %rd12;
  ld.u32 %r4, [%rd14];
  st.local.u32 [depot], %r4;
  ld.local.u32 %r1, [depot];
  isspacep.local %p1, %rd14;
  selp.b32 %r5, 1000, 0, %p1;
  add.u32 %r1, %r1, %r5;
)"));
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], 1000 + 3 * l);
}

TEST(WarpOps, VectorAccessesAndNarrowTypes) {
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .b16 %h<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 16;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4];
  add.u64 %rd5, %rd2, %rd3;
  st.global.v4.u32 [%rd5], {%r5, %r4, %r3, %r2};
  cvt.u64.u32 %rd6, %r1;
  add.u64 %rd7, %rd1, %rd6;
  ld.global.s8 %r6, [%rd7];
  st.global.u8 [%rd7+4096], %r6;
  ret;
}
)");
  DeviceArray<uint32_t> in(2048), out(256);
  for (uint32_t i = 0; i < 128; ++i) in[i] = i * 0x01010101u;
  const LaunchOutcome r = k.run("k", {1}, {32}, in.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], (i / 4 * 4 + 3 - i % 4) * 0x01010101u);
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(in[1024 + i], in[i]);
}

TEST(WarpOps, BarrierVariants) {
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 40;
  bar.red.popc.u32 %r2, 0, %p1;
  bar.red.and.pred %p2, 0, %p1;
  bar.red.or.pred %p3, 0, %p1;
  selp.b32 %r3, 1000, 0, %p2;
  selp.b32 %r4, 2000, 0, %p3;
  add.u32 %r5, %r2, %r3;
  add.u32 %r5, %r5, %r4;
  // warps 0 and 1 meet at barrier 3, warps 2 and 3 only arrive at barrier 4
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra $pair;
  bar.arrive 4, 128;
  bra.uni $end;
$pair:
  bar.sync 3, 64;
  bar.sync 4, 128;
$end:
  bar.sync 0;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}
)");
  DeviceArray<uint32_t> out(128);
  const LaunchOutcome r = k.run("k", {3}, {128}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], 2040u) << i;
}

TEST(WarpOps, MbarrierPhases) {
  // Warp 0 waits for the phase that all 64 threads complete by arriving; then
  // everybody reads what thread 63 wrote before it arrived.
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  .shared .align 8 .b64 bar;
  .shared .align 4 .b32 value;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $ready;
  mbarrier.init.shared.b64 [bar], 64;
$ready:
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 63;
  @%p1 bra $arrive;
  mov.u32 %r2, 77;
  st.shared.u32 [value], %r2;
$arrive:
  mbarrier.arrive.shared.b64 %rd2, [bar];
$wait:
  mbarrier.try_wait.shared.b64 %p2, [bar], %rd2;
  @!%p2 bra $wait;
  ld.shared.u32 %r3, [value];
  // Phase 0 is over, phase 1 is not.
  mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0;
  selp.b32 %r4, 100, 0, %p3;
  mbarrier.test_wait.parity.shared.b64 %p3, [bar], 1;
  selp.b32 %r5, 1000, 0, %p3;
  add.u32 %r3, %r3, %r4;
  add.u32 %r3, %r3, %r5;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd4, %rd1, %rd3;
  st.global.u32 [%rd4], %r3;
  ret;
}
)");
  DeviceArray<uint32_t> out(64);
  const LaunchOutcome r = k.run("k", {2}, {64}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 177u) << i;
}

TEST(WarpOps, CooperativeGridWaitsForAllItsBlocks) {
  // Each block adds one and waits until all 40 have: more blocks than threads.
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 counter, .param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [counter];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %nctaid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $meet;
  red.release.gpu.global.add.u32 [%rd1], 1;
$wait:
  ld.acquire.gpu.global.u32 %r4, [%rd1];
  setp.lt.u32 %p2, %r4, %r3;
  @%p2 bra $wait;
$meet:
  bar.sync 0;
  ld.volatile.global.u32 %r5, [%rd1];
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r5;
  ret;
}
)");
  for (bool cooperative : {true, false}) {
    DeviceArray<uint32_t> counter(1), out(40);
    k.cooperative = cooperative;
    const LaunchOutcome r = k.run("k", {40}, {64}, counter.address, out.address);
    ASSERT_EQ(r.error, 0) << r.message;
    for (uint32_t i = 0; i < 40; ++i) EXPECT_EQ(out[i], 40u) << i;
  }
}

TEST(WarpOps, LanesLeaveInTheMiddle) {
  // Lanes below 8 exit at once; of the rest the odd ones go round a loop with a
  // continue until their own count, and lane 20 returns out of it.
  auto r = runWarp(oneWarp(R"(
  setp.lt.u32 %p1, %lane, 8;
  @%p1 exit;
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
  and.b32 %r3, %lane, 1;
  setp.eq.u32 %p2, %r3, 0;
$loop:
  add.u32 %r2, %r2, 1;
  setp.gt.u32 %p3, %r2, %lane;
  @%p3 bra $out;
  and.b32 %r4, %r2, 1;
  setp.eq.u32 %p4, %r4, 0;
  @%p4 bra $loop;
  setp.eq.u32 %p5, %lane, 20;
  setp.eq.and.u32 %p6, %r2, 11, %p5;
  @%p6 ret;
  @%p2 add.u32 %r1, %r1, %r2;
  @!%p2 add.u32 %r1, %r1, 1;
  bra.uni $loop;
$out:
)"));
  for (uint32_t l = 0; l < 32; ++l) {
    uint32_t sum = 0;
    for (uint32_t i = 1; i <= l; i += 2) sum += l % 2 ? 1 : i;
    EXPECT_EQ(r[l], l < 8 || l == 20 ? 0xdeadbeef : sum) << l;
  }
}

TEST(WarpOps, IndexedBranch) {
  auto r = runWarp(oneWarp(R"(
  and.b32 %r2, %lane, 3;
  mov.u32 %r1, 0;
  $targets: .branchtargets $a, $b, $c, $d;
  brx.idx %r2, $targets;
$d:
  add.u32 %r1, %r1, 1000;
$c:
  add.u32 %r1, %r1, 100;
  bra.uni $end;
$b:
  add.u32 %r1, %r1, 10;
$a:
  add.u32 %r1, %r1, 1;
$end:
)"));
  const uint32_t want[] = {1, 11, 100, 1100};
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(r[l], want[l & 3]) << l;
}

TEST(WarpOps, ParametersByAddress) {
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 out, .param .align 4 .b8 table[32])
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  mov.b64 %rd2, table;
  cvta.param.u64 %rd3, %rd2;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 7;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd5, %rd3, %rd4;
  ld.u32 %r3, [%rd5];
  mul.wide.u32 %rd6, %r1, 4;
  add.u64 %rd7, %rd1, %rd6;
  st.global.u32 [%rd7], %r3;
  ret;
}
)");
  DeviceArray<uint32_t> out(32);
  struct Table {
    uint32_t v[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  } t;
  const LaunchOutcome r = k.run("k", {1}, {32}, out.address, t);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], t.v[i & 7]) << i;
}

// Thread 0 makes the barrier anew as soon as it has seen the phase end; the warps that wait see the end too.
TEST(WarpOps, AnEndedPhaseIsSeenThoughTheBarrierIsMadeAnew) {
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .pred %p<4>;
  .shared .align 8 .b64 bar;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra ready;
  mbarrier.init.shared.b64 [bar], 256;
ready:
  bar.sync 0;
  mbarrier.arrive.shared.b64 %rd2, [bar];
again:
  mbarrier.try_wait.shared.b64 %p2, [bar], %rd2;
  @!%p2 bra again;
  @%p1 bra done;
  mbarrier.init.shared.b64 [bar], 256;
done:
  bar.sync 0;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd3, %rd1, %rd3;
  st.global.u32 [%rd3], 7;
  ret;
}
)");
  DeviceArray<uint32_t> out(256, 0);
  const LaunchOutcome r = k.run("k", {1}, {256}, out.address);
  EXPECT_EQ(r.error, 0) << r.message;
  for (size_t i = 0; i < 256; ++i) ASSERT_EQ(out[i], 7u) << i;
}

}  // namespace
}  // namespace sonde::softgpu::exec
