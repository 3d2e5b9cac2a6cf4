// SPDX-License-Identifier: Apache-2.0
//
// Lanes of a warp that go different ways and meet at .sync instructions; calls with registers; the local stack.
#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

const std::string kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

// The other half of the warp comes to a .sync instruction on its own way: values written before it are seen behind it.
TEST(Convergence, HalvesThatSynchroniseOnDifferentWays) {
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<5>;
  .shared .b32 s[32];
  mov.u32 %r1, %laneid;
  mov.u32 %r2, s;
  mad.lo.u32 %r3, %r1, 4, %r2;
  st.shared.u32 [%r3], 0;
  xor.b32 %r4, %r1, 16;
  mad.lo.u32 %r5, %r4, 4, %r2;
  bar.warp.sync -1;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra $low;
  add.u32 %r6, %r1, 1000;
  st.shared.u32 [%r3], %r6;
  bar.warp.sync -1;
  ld.shared.u32 %r7, [%r5];
  bar.warp.sync -1;
  add.u32 %r7, %r7, 7;
  bra $end;
$low:
  add.u32 %r6, %r1, 2000;
  st.shared.u32 [%r3], %r6;
  bar.warp.sync -1;
  ld.shared.u32 %r7, [%r5];
  bar.warp.sync -1;
$end:
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
)");
  DeviceArray<uint32_t> out(32);
  const LaunchOutcome r = k.run("k", {1}, {32}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(out[l], l < 16 ? 1000 + l + 16 : 2000 + l - 16 + 7);
}

// One lane waits for a flag that another warp sets much later; the others of its warp must not shuffle without it.
TEST(Convergence, ShuffleWaitsForALaneThatSpins) {
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 flag, .param .u64 out)
{
  .reg .pred %p<6>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [flag];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %laneid;
  setp.ge.u32 %p1, %r0, 32;
  @%p1 bra $setter;
  mov.u32 %r3, 5;
  setp.ne.u32 %p2, %r1, 3;
  @%p2 bra $meet;
$spin:
  ld.volatile.global.u32 %r3, [%rd1];
  setp.eq.u32 %p3, %r3, 0;
  @%p3 bra $spin;
$meet:
  shfl.sync.idx.b32 %r4, %r3, 3, 31, -1;
  ld.param.u64 %rd2, [out];
  mul.wide.u32 %rd3, %r0, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r4;
  ret;
$setter:
  mov.u32 %r5, 0;
$loop:
  nanosleep.u32 10;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p4, %r5, 100;
  @%p4 bra $loop;
  st.volatile.global.u32 [%rd1], 77;
  ret;
}
)");
  DeviceArray<uint32_t> flag(1), out(32);
  const LaunchOutcome r = k.run("k", {1}, {64}, flag.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(out[l], 77u) << l;
}

TEST(Convergence, MembersThatNeverComeDoNotHangTheWarp) {
  // The upper half synchronises twice, the lower half once: wrong, but it ends.
  Kernels k(kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<5>;
  mov.u32 %r1, %laneid;
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra $low;
  mov.u32 %r7, 1;
  bar.warp.sync -1;
  bar.warp.sync -1;
  bra $end;
$low:
  mov.u32 %r7, 2;
  bar.warp.sync -1;
$end:
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
)");
  DeviceArray<uint32_t> out(32);
  const LaunchOutcome r = k.run("k", {1}, {32}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(out[l], l < 16 ? 2u : 1u);
}

TEST(Calls, ParametersInRegistersAndAllocaPerLane) {
  Kernels k(kHead + R"(
.func (.reg .u32 %result) twice(.reg .u32 %a, .reg .u32 %b)
{
  .reg .pred %p<2>;
  setp.lt.u32 %p1, %a, 8;
  @%p1 bra $small;
  add.u32 %result, %a, %b;
  ret;
$small:
  mul.lo.u32 %result, %a, 100;
  ret;
}
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<12>;
  mov.u32 %r1, %laneid;
  call (%r2), twice, (%r1, 5);
  // Lane l takes 8 (l + 1) bytes, writes its number to the last word and reads it back after a second allocation.
  stacksave.u64 %rd4;
  add.u32 %r3, %r1, 1;
  mul.wide.u32 %rd5, %r3, 8;
  alloca.u64 %rd6, %rd5, 16;
  add.u64 %rd7, %rd6, %rd5;
  st.local.u32 [%rd7+-4], %r1;
  alloca.u64 %rd8, 64;
  st.local.u32 [%rd8], 12345;
  ld.local.u32 %r4, [%rd7+-4];
  stackrestore.u64 %rd4;
  alloca.u64 %rd9, 16, 16;
  setp.eq.u64 %p1, %rd9, %rd6;
  selp.b32 %r5, 1, 0, %p1;
  mad.lo.u32 %r6, %r4, 10, %r5;
  mad.lo.u32 %r7, %r2, 1000, %r6;
  ld.param.u64 %rd1, [out];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
)");
  DeviceArray<uint32_t> out(32);
  const LaunchOutcome r = k.run("k", {1}, {32}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(out[l], (l < 8 ? l * 100 : l + 5) * 1000 + l * 10 + 1) << l;
}

// Lanes 0 and 1 of each pair call different functions through a pointer; each waits for what the other writes.
// Both have local memory, which must stay their own.
constexpr const char* kPairs = R"(
.version 7.0
.target sm_70
.address_size 64
.func (.param .b32 r) turns(.param .b64 at, .param .b32 first)
{
  .local .align 8 .b8 mine[16];
  .reg .b64 a; .reg .b32 i, v, last; .reg .pred p;
  ld.param.u64 a, [at];
  ld.param.u32 i, [first];
  st.local.u32 [mine], i;
  add.u32 last, i, 20;
WAIT:
  ld.volatile.u32 v, [a];
  setp.ne.u32 p, v, i;
  @p bra WAIT;
  add.u32 v, v, 1;
  st.volatile.u32 [a], v;
  add.u32 i, i, 2;
  setp.lt.u32 p, i, last;
  @p bra WAIT;
  ld.local.u32 v, [mine];
  add.u32 v, v, 100;
  st.param.b32 [r], v;
  ret;
}
.func (.param .b32 r) ping(.param .b64 at)
{
  .local .align 8 .b8 pad[8];
  .reg .b64 a; .reg .b32 v;
  ld.param.u64 a, [at];
  st.local.u32 [pad], 7;
  { .param .b64 x; .param .b32 f; .param .b32 y;
    st.param.b64 [x], a; st.param.b32 [f], 0;
    call (y), turns, (x, f);
    ld.param.b32 v, [y]; }
  st.param.b32 [r], v;
  ret;
}
.func (.param .b32 r) pong(.param .b64 at)
{
  .reg .b64 a; .reg .b32 v;
  ld.param.u64 a, [at];
  { .param .b64 x; .param .b32 f; .param .b32 y;
    st.param.b64 [x], a; st.param.b32 [f], 1;
    call (y), turns, (x, f);
    ld.param.b32 v, [y]; }
  st.param.b32 [r], v;
  ret;
}
.visible .entry k(.param .u64 data, .param .u64 out)
{
  .reg .b64 a, o, f; .reg .b32 t, pair, v; .reg .pred odd;
  ld.param.u64 a, [data];
  ld.param.u64 o, [out];
  mov.u32 t, %tid.x;
  shr.u32 pair, t, 1;
  mad.wide.u32 a, pair, 4, a;
  mad.wide.u32 o, t, 4, o;
  and.b32 v, t, 1;
  setp.ne.u32 odd, v, 0;
  mov.u64 f, ping;
  @odd mov.u64 f, pong;
  { .param .b64 x; .param .b32 y;
    st.param.b64 [x], a;
    proto: .callprototype (.param .b32 _) _ (.param .b64 _);
    call (y), f, (x), proto;
    ld.param.b32 v, [y]; }
  st.u32 [o], v;
  ret;
}
)";

// Functions called by name on different ways: ping and pong wait for each other (odd lanes call one, even lanes the
// other), `await` for lanes that are in no function, `peek` for nobody, but a loop around it does.
std::string byName(const std::string& body) {
  const std::string all = kPairs;
  return all.substr(0, all.find(".visible .entry")) + R"(
.func (.param .b32 r) await(.param .b64 at)
{
  .reg .b64 a; .reg .b32 v; .reg .pred p;
  ld.param.u64 a, [at];
AGAIN:
  ld.volatile.u32 v, [a];
  setp.eq.u32 p, v, 0;
  @p bra AGAIN;
  mul.lo.u32 v, v, 3;
  st.param.b32 [r], v;
  ret;
}
.func (.reg .b32 %v) peek(.reg .b64 %a)
{
  ld.volatile.u32 %v, [%a];
  ret;
}
.visible .entry k(.param .u64 data, .param .u64 out)
{
  .reg .b64 a, o; .reg .b32 t, pair, v, w; .reg .pred odd, p;
  .shared .align 4 .b8 total[4];
  ld.param.u64 a, [data];
  ld.param.u64 o, [out];
  mov.u32 t, %tid.x;
  shr.u32 pair, t, 1;
  mad.wide.u32 a, pair, 4, a;
  mad.wide.u32 o, t, 4, o;
  and.b32 v, t, 1;
  setp.ne.u32 odd, v, 0;
  mov.u32 w, 1000;
)" + body +
         R"(
  add.u32 v, v, w;
  st.u32 [o], v;
  ret;
}
)";
}

constexpr const char* kCallPing = R"({ .param .b64 x; .param .b32 y;
    st.param.b64 [x], a;
    call (y), ping, (x);
    ld.param.b32 v, [y]; })";
constexpr const char* kCallPong = R"({ .param .b64 x; .param .b32 y;
    st.param.b64 [x], a;
    call (y), pong, (x);
    ld.param.b32 v, [y]; })";

TEST(ForwardProgress, FunctionsOnTwoWaysOfABranchWaitForEachOther) {
  for (const bool swapped : {false, true}) {
    Kernels k(byName(std::string("@") + (swapped ? "!" : "") + "odd bra OTHER;\n" + (swapped ? kCallPong : kCallPing) +
                     "\nadd.u32 w, w, t;\nbra JOIN;\nOTHER:\n" + (swapped ? kCallPing : kCallPong) + "\nJOIN:"));
    for (const unsigned threads : {32u, 64u}) {
      DeviceArray<uint32_t> data(32), out(64);
      const LaunchOutcome o = k.run("k", {1}, {threads}, data.address, out.address);
      ASSERT_EQ(o.error, 0) << o.message;
      for (unsigned pair = 0; pair < threads / 2; ++pair) EXPECT_EQ(data[pair], 20u) << pair;
      for (unsigned t = 0; t < threads; ++t)
        EXPECT_EQ(out[t], 1100 + t % 2 + (t % 2 == unsigned{swapped} ? t : 0)) << t;
    }
  }
}

// The barrier comes after both; every thread has added 1 by then.
TEST(ForwardProgress, ABarrierBehindFunctionsThatWait) {
  Kernels k(byName(std::string("mov.u32 w, total;\nsetp.eq.u32 p, t, 0;\n@p st.shared.u32 [w], 0;\nbar.sync 0;\n"
                               "@odd bra OTHER;\n") +
                   kCallPing + "\nbra JOIN;\nOTHER:\n" + kCallPong +
                   "\nJOIN:\nred.shared.add.u32 [w], 1;\nbar.sync 0;\nld.shared.u32 w, [w];"));
  DeviceArray<uint32_t> data(48), out(96);
  const LaunchOutcome o = k.run("k", {1}, {96}, data.address, out.address);
  ASSERT_EQ(o.error, 0) << o.message;
  for (unsigned t = 0; t < 96; ++t) EXPECT_EQ(out[t], 96 + 100 + t % 2) << t;
}

// Even lanes wait in a function for what odd lanes write behind the branch.
TEST(ForwardProgress, AFunctionWaitsForLanesThatAreInNone) {
  Kernels k(byName(R"(@odd bra OTHER;
  { .param .b64 x; .param .b32 y;
    st.param.b64 [x], a;
    call (y), await, (x);
    ld.param.b32 v, [y]; }
  bra JOIN;
OTHER:
  add.u32 v, t, 4;
  st.volatile.u32 [a], v;
JOIN:)"));
  DeviceArray<uint32_t> data(16), out(32);
  const LaunchOutcome o = k.run("k", {1}, {32}, data.address, out.address);
  ASSERT_EQ(o.error, 0) << o.message;
  for (unsigned t = 0; t < 32; ++t) EXPECT_EQ(out[t], 1000 + (t % 2 ? t + 4 : (t + 1 + 4) * 3)) << t;
}

TEST(ForwardProgress, ALoopAroundAFunctionThatLooks) {
  Kernels k(byName(R"(@odd bra OTHER;
LOOK:
  call (v), peek, (a);
  setp.eq.u32 p, v, 0;
  @p bra LOOK;
  bra JOIN;
OTHER:
  add.u32 v, t, 7;
  st.volatile.u32 [a], v;
JOIN:)"));
  DeviceArray<uint32_t> data(16), out(32);
  const LaunchOutcome o = k.run("k", {1}, {32}, data.address, out.address);
  ASSERT_EQ(o.error, 0) << o.message;
  for (unsigned t = 0; t < 32; ++t) EXPECT_EQ(out[t], 1000 + (t | 1) + 7) << t;
}

// What lanes count does not depend on whether their calls could have waited: all is there when they look.
TEST(ForwardProgress, CallsThatMayWaitAreCountedOnce) {
  Kernels k(byName(R"(@odd bra OTHER;
  { .param .b64 x; .param .b32 y;
    st.param.b64 [x], a;
    call (y), await, (x);
    ld.param.b32 v, [y]; }
OTHER:)"));
  DeviceArray<uint32_t> data(16, 5), out(32);
  k.level = CountLevel::instructions;
  const LaunchOutcome o = k.run("k", {1}, {32}, data.address, out.address);
  ASSERT_EQ(o.error, 0) << o.message;
  // 32 lanes: nine instructions, the branch and three behind it; 16 of them: three for the call and seven inside.
  EXPECT_EQ(k.counter(RawCounter::thread_inst_executed), 32u * 13 + 16 * 10);
  EXPECT_EQ(k.counter(RawCounter::inst_executed), 13u + 10);
  for (unsigned t = 0; t < 32; ++t) EXPECT_EQ(out[t], 1000 + (t % 2 ? 1u : 15u)) << t;
}

TEST(ForwardProgress, LanesThatCallDifferentFunctionsWaitForEachOther) {
  Kernels k(kPairs);
  DeviceArray<uint32_t> data(32), out(64);
  const LaunchOutcome o = k.run("k", {1}, {64}, data.address, out.address);
  ASSERT_EQ(o.error, 0) << o.message;
  for (unsigned pair = 0; pair < 32; ++pair) EXPECT_EQ(data[pair], 20u) << pair;
  for (unsigned t = 0; t < 64; ++t) EXPECT_EQ(out[t], 100 + t % 2) << t;
}

}  // namespace
}  // namespace sonde::softgpu::exec
