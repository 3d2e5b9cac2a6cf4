// SPDX-License-Identifier: Apache-2.0
//
// Kernels that never end, with SONDE_KERNEL_TIMEOUT=0.3.
#include "device_fixture.h"
#include "platform/clock.h"

namespace sonde::softgpu::exec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// wait: until *p is not 0. count: until a register is. walk: stores in a loop that has no end.
constexpr const char* kLoops = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry wait(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .pred %p1;
  ld.param.u64 %rd1, [p];
again:
  ld.volatile.global.u32 %r1, [%rd1];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
.visible .entry count(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .pred %p1;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, 1;
again:
  add.u32 %r1, %r1, 2;
  st.global.u32 [%rd1], %r1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra again;
  ret;
}
// Every lane leaves the loop at its own time, but for lane 7, which stays.
.visible .entry diverge(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .pred %p<3>;
  mov.u32 %r1, %laneid;
  add.u32 %r1, %r1, 100;
again:
  setp.eq.u32 %p1, %r1, 107;
  @%p1 bra again;
  sub.u32 %r1, %r1, 1;
  setp.gt.u32 %p2, %r1, 107;
  @%p2 bra again;
  ret;
}
.func (.reg .b32 %out) busy(.reg .b32 %in)
{
  .reg .pred %p1;
  mov.u32 %out, 0;
around:
  add.u32 %out, %out, %in;
  xor.b32 %out, %out, 5;
  sub.u32 %in, %in, 1;
  setp.ne.u32 %p1, %in, 0;
  @%p1 bra around;
  ret;
}
// A short loop around a long one of another function, which ends each time.
.visible .entry calls(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .pred %p1;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %laneid;
  add.u32 %r2, %r1, 12000;
again:
  call.uni (%r3), busy, (%r2);
  st.global.u32 [%rd1], %r3;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra again;
  ret;
}
.func tree(.reg .b32 %depth)
{
  .reg .b32 %r1;
  .reg .pred %p1;
  setp.eq.u32 %p1, %depth, 0;
  @%p1 bra leaf;
  sub.u32 %r1, %depth, 1;
  call.uni tree, (%r1);
  call.uni tree, (%r1);
leaf:
  ret;
}
// 2^40 calls without a loop.
.visible .entry recursion(.param .u64 p)
{
  .reg .b32 %r<2>;
  mov.u32 %r1, 40;
  call.uni tree, (%r1);
  ret;
}
.visible .entry short(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .reg .pred %p1;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, 0;
again:
  add.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 1000;
  @%p1 bra again;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

class TimeLimit : public testing::Test {
 protected:
  LaunchOutcome endless(const char* kernel, Dim3 grid, Dim3 block) {
    const uint64_t before = platform::nowNs();
    LaunchOutcome r = k_.run(kernel, grid, block, word_.address);
    const uint64_t passed = platform::nowNs() - before;
    EXPECT_GE(passed, 300'000'000u);
    EXPECT_LT(passed, 5'000'000'000u);
    EXPECT_EQ(r.error, 702);
    EXPECT_THAT(r.message, AllOf(HasSubstr(std::string("kernel '") + kernel + "'"), HasSubstr("SONDE_KERNEL_TIMEOUT"),
                                 HasSubstr("0.3 s"), HasSubstr("block (")));
    return r;
  }
  Kernels k_{kLoops};
  DeviceArray<uint32_t> word_{1, 0};
};

TEST_F(TimeLimit, WaitingForWhatNobodyWrites) {
  EXPECT_THAT(endless("wait", {1}, {32}).message, HasSubstr("line 11"));
  EXPECT_THAT(endless("wait", {3}, {128}).message, HasSubstr("line 11"));
}

TEST_F(TimeLimit, ALoopThatWaitsForNothing) {
  EXPECT_THAT(endless("count", {1}, {1}).message, HasSubstr("line 24"));
  EXPECT_THAT(endless("count", {2}, {64}).message, HasSubstr("line 24"));
}

TEST_F(TimeLimit, ALoopThatSomeLanesNeverLeave) { endless("diverge", {2}, {64}); }

TEST_F(TimeLimit, LoopsInFunctions) { endless("calls", {1}, {32}); }

TEST_F(TimeLimit, RecursionWithoutALoop) { endless("recursion", {1}, {32}); }

TEST_F(TimeLimit, OthersAreLeftAlone) {
  const LaunchOutcome r = k_.run("short", {1}, {64}, word_.address);
  EXPECT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(word_[0], 1000u);
}

}  // namespace
}  // namespace sonde::softgpu::exec
