// SPDX-License-Identifier: Apache-2.0
//
// What a wrong program gets: the driver's error, and where it happened.
#include "softgpu/exec/faults.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "device_fixture.h"
#include "platform/clock.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::exec {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

// st.global.u32 [p + 4 * tid] = tid, on line 12 of the text.
const std::string kStore = std::string(kHead) + R"(.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
)";

TEST(Faults, HostPointerIsAnIllegalAddress) {
  Kernels k(kStore);
  std::vector<uint32_t> host(64, 7);
  const LaunchOutcome r = k.run("k", {1}, {32}, reinterpret_cast<uint64_t>(host.data()));
  EXPECT_EQ(r.error, 700);
  EXPECT_EQ(r.fault.address, reinterpret_cast<uint64_t>(host.data()));
  EXPECT_EQ(r.fault.pos.line, 12u);
  EXPECT_THAT(r.message, AllOf(HasSubstr("outside the GPU's memory"), HasSubstr("kernel 'k'"),
                               HasSubstr("thread (0,0,0)"), HasSubstr("line 12")));
  for (uint32_t v : host) EXPECT_EQ(v, 7u);
}

TEST(Faults, HostMemoryThatTheDriverAllowsWorks) {
  Kernels k(kStore);
  std::vector<uint32_t> host(64, 7);
  k.hostAllowed = [&](uint64_t a, uint64_t n) {
    const auto begin = reinterpret_cast<uint64_t>(host.data());
    return a >= begin && a + n <= begin + 64 * 4;
  };
  const LaunchOutcome r = k.run("k", {1}, {32}, reinterpret_cast<uint64_t>(host.data()));
  EXPECT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(host[31], 31u);
  EXPECT_EQ(host[32], 7u);
}

TEST(Faults, NullAndUnmappedAddresses) {
  Kernels k(kStore);
  EXPECT_EQ(k.run("k", {1}, {32}, uint64_t{0}).error, 700);
  DeviceArray<uint32_t> a(1024);  // exactly one page; the next one is not mapped
  const LaunchOutcome r = k.run("k", {1}, {32}, a.address + 4096);
  EXPECT_EQ(r.error, 700);
  EXPECT_GE(r.fault.address, a.address + 4096);
  EXPECT_LT(r.fault.address, a.address + 4096 + 128);
  EXPECT_EQ(r.fault.pos.line, 12u);
  // And the engine still works.
  EXPECT_EQ(k.run("k", {1}, {32}, a.address).error, 0);
  EXPECT_EQ(a[31], 31u);
}

volatile std::sig_atomic_t kernelRuns = 1;

// As test frameworks and language runtimes do. Theirs is for their own crashes.
TEST(Faults, ASignalHandlerThatTheProgramInstallsLaterSeesItsOwnCrashesOnly) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Kernels k(kStore);
        DeviceArray<uint32_t> a(1024);
        if (k.run("k", {1}, {32}, a.address).error != 0) _exit(1);
        struct sigaction mine{};
        mine.sa_handler = [](int) { _exit(kernelRuns ? 5 : 2); };
        sigaction(SIGSEGV, &mine, nullptr);
        const uint64_t installed = platform::nowNs();
        while (platform::nowNs() < installed + kHandlersKeptNs) {
        }
        if (k.run("k", {1}, {32}, a.address + 4096).error != 700) _exit(3);
        kernelRuns = 0;
        raise(SIGSEGV);
        _exit(4);
      },
      testing::ExitedWithCode(2), "");
}

TEST(Faults, Misaligned) {
  Kernels k(kStore);
  DeviceArray<uint32_t> a(1024);
  const LaunchOutcome r = k.run("k", {1}, {32}, a.address + 2);
  EXPECT_EQ(r.error, 716);
  EXPECT_EQ(r.fault.address, a.address + 2);
}

TEST(Faults, OneThreadOfManyBlocks) {
  // Thread 5 of block (2,1) alone writes outside.
  Kernels k(std::string(kHead) + R"(.visible .entry k(.param .u64 p)
{
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ctaid.y;
  setp.eq.u32 %p1, %r1, 37;
  setp.eq.and.u32 %p2, %r2, 2, %p1;
  setp.eq.and.u32 %p3, %r3, 1, %p2;
  @%p3 st.global.u32 [%rd1], %r1;
  ret;
}
)");
  const LaunchOutcome r = k.run("k", {4, 2}, {64}, uint64_t{0x1000});
  EXPECT_EQ(r.error, 700);
  EXPECT_EQ(r.fault.block, (std::array<uint32_t, 3>{2, 1, 0}));
  EXPECT_EQ(r.fault.thread, (std::array<uint32_t, 3>{37, 0, 0}));
  EXPECT_EQ(r.fault.address, 0x1000u);
}

TEST(Faults, TrapAndSharedMemoryBounds) {
  Kernels k(std::string(kHead) + R"(.visible .entry trapping()
{
  trap;
}
.visible .entry beyond()
{
  .reg .b32 %r<4>;
  .shared .align 4 .b8 s[128];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 3;
  st.shared.u32 [%r2], %r1;
  ret;
}
)");
  EXPECT_EQ(k.run("trapping", {2}, {64}).error, 719);
  const LaunchOutcome r = k.run("beyond", {1}, {32});
  EXPECT_EQ(r.error, 700);
  EXPECT_EQ(r.fault.thread[0], 16u);  // 16 * 8 = 128
  EXPECT_THAT(r.message, HasSubstr("shared memory"));
}

TEST(Faults, DeadlockAtABarrierIsFound) {
  Kernels k(std::string(kHead) + R"(.visible .entry k()
{
  .reg .pred %p<4>;
  .reg .b32 %r<4>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra $two;
  bar.sync 1, 64;
  bra.uni $end;
$two:
  bar.sync 2, 96;
$end:
  ret;
}
)");
  // Four warps: warps 2 and 3 pass barrier 1; warps 0 and 1 wait for a third.
  const LaunchOutcome r = k.run("k", {1}, {128});
  EXPECT_EQ(r.error, 702);
  EXPECT_THAT(r.message, AllOf(HasSubstr("barrier 2 has 64 of 96 threads"),
                               HasSubstr("waiting warps: 0 (PTX line 14) 1 (PTX line 14)")));
}

// A block of 64 threads waits at an mbarrier that expects 65: nobody else can come.
TEST(Faults, DeadlockAtAnMbarrierIsFound) {
  Kernels k(std::string(kHead) + R"(.visible .entry k()
{
  .reg .pred %p<4>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  .shared .align 8 .b64 pad[2];
  .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $ready;
  mbarrier.init.shared.b64 [bar], 65;
$ready:
  bar.sync 0;
  mbarrier.arrive.shared.b64 %rd2, [bar];
$wait:
  mbarrier.test_wait.shared.b64 %p2, [bar], %rd2;
  @!%p2 bra $wait;
  ret;
}
)");
  const LaunchOutcome r = k.run("k", {3}, {64});
  EXPECT_EQ(r.error, 702);
  EXPECT_THAT(r.message, AllOf(HasSubstr("deadlock: the mbarrier at shared address 0x"), HasSubstr("64 of 65 arrivals"),
                               HasSubstr("waiting warps: 0 (PTX line 19) 1 (PTX line 19)")));
}

TEST(Faults, IntegerDivisionByZeroDoesNotTrap) {
  Kernels k(std::string(kHead) + R"(.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  sub.u32 %r2, %r1, %r1;
  div.u32 %r3, %r1, %r2;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
)");
  DeviceArray<uint32_t> a(32);
  EXPECT_EQ(k.run("k", {1}, {32}, a.address).error, 0);
  EXPECT_EQ(a[31], 31u);
}

TEST(Faults, UnsupportedInstructionNamesItself) {
  Kernels k(std::string(kHead) + R"(.visible .entry k(.param .u64 t)
{
  .reg .b32 %r<6>;
  .reg .f32 %f<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [t];
  sured.b.1d.add.u32.trap [%rd1, {%r1}], %r2;
  ret;
}
)");
  const LaunchOutcome r = k.run("k", {1}, {32}, uint64_t{0});
  EXPECT_NE(r.error, 0);
  EXPECT_THAT(r.message, AllOf(HasSubstr("line 10"), HasSubstr("sured.b.1d.add.u32.trap")));
}

TEST(Faults, PrintfAndAssert) {
  Kernels k(std::string(kHead) + R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 fn, .param .b64 n);
.global .align 1 .b8 fmt[] = {120,61,37,100,32,37,46,50,102,32,37,115,10,0};
.global .align 1 .b8 str[] = {104,105,0};
.global .align 1 .b8 cond[] = {105,32,60,32,51,0};
.visible .entry say()
{
  .local .align 8 .b8 depot[24];
  .reg .b32 %r<6>;
  .reg .f64 %d<3>;
  .reg .b64 %rd<8>;
  mov.u64 %rd1, depot;
  cvta.local.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  st.local.u32 [%rd1], %r1;
  mov.f64 %d1, 0d3FF8000000000000;
  st.local.f64 [%rd1+8], %d1;
  mov.u64 %rd3, str;
  st.local.u64 [%rd1+16], %rd3;
  mov.u64 %rd4, fmt;
  {
  .param .b64 p0;
  .param .b64 p1;
  .param .b32 q;
  st.param.b64 [p0], %rd4;
  st.param.b64 [p1], %rd2;
  call.uni (q), vprintf, (p0, p1);
  ld.param.b32 %r2, [q];
  }
  ret;
}
.visible .entry check()
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 3;
  @%p1 bra $ok;
  mov.u64 %rd1, cond;
  mov.u64 %rd2, str;
  {
  .param .b64 p0;
  .param .b64 p1;
  .param .b32 p2;
  .param .b64 p3;
  .param .b64 p4;
  st.param.b64 [p0], %rd1;
  st.param.b64 [p1], %rd2;
  st.param.b32 [p2], 42;
  st.param.b64 [p3], %rd2;
  st.param.b64 [p4], 1;
  call.uni __assertfail, (p0, p1, p2, p3, p4);
  }
$ok:
  ret;
}
)");
  EXPECT_EQ(k.run("say", {3}, {1}).error, 0);
  EXPECT_EQ(k.printed, "x=0 1.50 hi\nx=1 1.50 hi\nx=2 1.50 hi\n");
  k.printed.clear();
  const LaunchOutcome r = k.run("check", {1}, {4});
  EXPECT_EQ(r.error, 710) << r.message;
  EXPECT_EQ(k.printed, "hi:42: hi: block: [0,0,0], thread: [3,0,0] Assertion `i < 3` failed.\n");
}

TEST(Faults, DeviceHeap) {
  // Each thread gets a block of its own, writes it, reads it back and frees it;
  // a request beyond the heap gives a null pointer.
  Kernels k(std::string(kHead) + R"(
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.visible .entry k(.param .u64 out, .param .u64 bytes)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [bytes];
  mov.u32 %r1, %tid.x;
  {
  .param .b64 n;
  .param .b64 p;
  st.param.b64 [n], %rd2;
  call.uni (p), malloc, (n);
  ld.param.b64 %rd3, [p];
  }
  mov.u32 %r2, 0;
  setp.eq.u64 %p1, %rd3, 0;
  @%p1 bra $none;
  st.u32 [%rd3], %r1;
  bar.warp.sync -1;
  ld.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 1;
  {
  .param .b64 q;
  st.param.b64 [q], %rd3;
  call.uni free, (q);
  }
$none:
  mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd5, %rd1, %rd4;
  st.global.u32 [%rd5], %r2;
  ret;
}
)");
  memory::Allocator::get().setCapacity(0, uint64_t{1} << 30);
  DeviceArray<uint32_t> out(32);
  for (int round = 0; round < 3; ++round) {
    // 32 blocks of 200 KiB fit in 8 MiB, and again only if they were freed.
    const LaunchOutcome r = k.run("k", {1}, {32}, out.address, uint64_t{200} << 10);
    ASSERT_EQ(r.error, 0) << r.message;
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i + 1);
  }
  ASSERT_EQ(k.run("k", {1}, {32}, out.address, uint64_t{1} << 30).error, 0);
  EXPECT_EQ(out[5], 0u);
}

}  // namespace
}  // namespace sonde::softgpu::exec
