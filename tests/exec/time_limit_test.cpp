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
    EXPECT_GE(platform::nowNs() - before, 300'000'000u);
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
  EXPECT_THAT(endless("count", {1}, {1}).message, HasSubstr("line 25"));
  EXPECT_THAT(endless("count", {2}, {64}).message, HasSubstr("line 25"));
}

TEST_F(TimeLimit, OthersAreLeftAlone) {
  const LaunchOutcome r = k_.run("short", {1}, {64}, word_.address);
  EXPECT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(word_[0], 1000u);
}

}  // namespace
}  // namespace sonde::softgpu::exec
