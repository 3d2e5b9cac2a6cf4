// SPDX-License-Identifier: Apache-2.0
//
// Clusters: their registers, distributed shared memory, the cluster's barrier.
#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

const std::string kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

// %r0 thread, %r1 block in the grid, %r2 rank, %r3 blocks of the cluster, %rd9 &out[block * threads + thread].
std::string kernel(const std::string& body) {
  return kHead + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<10>;
  .reg .b32 %r<40>;
  .reg .b64 %rd<20>;
  .shared .align 16 .b32 box[128];
  mov.u32 %r0, %tid.x;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %ctaid.y;
  mov.u32 %r6, %nctaid.x;
  mad.lo.u32 %r1, %r5, %r6, %r4;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %cluster_nctarank;
  mov.u32 %r7, %ntid.x;
  mad.lo.u32 %r8, %r1, %r7, %r0;
  ld.param.u64 %rd8, [out];
  mul.wide.u32 %rd9, %r8, 4;
  add.u64 %rd9, %rd8, %rd9;
)" + body +
         "\n  st.global.u32 [%rd9], %r39;\n  ret;\n}\n";
}

constexpr char kBarrier[] = "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n";

TEST(Cluster, RegistersOfATwoDimensionalCluster) {
  Kernels k(kernel(R"(
  mov.u32 %r10, %clusterid.x;
  mov.u32 %r11, %clusterid.y;
  mov.u32 %r12, %cluster_ctaid.x;
  mov.u32 %r13, %cluster_ctaid.y;
  mov.u32 %r14, %nclusterid.x;
  mov.u32 %r15, %cluster_nctaid.y;
  mov.u32 %r39, %r10;
  mad.lo.u32 %r39, %r39, 10, %r11;
  mad.lo.u32 %r39, %r39, 10, %r12;
  mad.lo.u32 %r39, %r39, 10, %r13;
  mad.lo.u32 %r39, %r39, 10, %r2;
  mad.lo.u32 %r39, %r39, 10, %r3;
  mad.lo.u32 %r39, %r39, 10, %r14;
  mad.lo.u32 %r39, %r39, 10, %r15;)"));
  k.cluster = {2, 2};
  DeviceArray<uint32_t> out(24);
  const LaunchOutcome r = k.run("k", {6, 4}, {1}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t y = 0; y < 4; ++y)
    for (uint32_t x = 0; x < 6; ++x) {
      uint32_t want = 0;
      for (uint32_t digit : {x / 2, y / 2, x % 2, y % 2, x % 2 + 2 * (y % 2), 4u, 3u, 2u}) want = want * 10 + digit;
      EXPECT_EQ(out[y * 6 + x], want) << x << "," << y;
    }
}

TEST(Cluster, BlocksWriteAndReadEachOthersSharedMemory) {
  // Each thread writes into the next block's box, half of them by a 32-bit address and half by a generic one.
  const std::string body = R"(
  add.u32 %r10, %r2, 1;
  rem.u32 %r10, %r10, %r3;
  mov.u32 %r11, box;
  mad.lo.u32 %r11, %r0, 4, %r11;
  mapa.shared::cluster.u32 %r12, %r11, %r10;
  mad.lo.u32 %r13, %r2, 1000, %r0;
  cvt.u64.u32 %rd1, %r11;
  cvta.shared.u64 %rd1, %rd1;
  mapa.u64 %rd2, %rd1, %r10;
  and.b32 %r14, %r0, 1;
  setp.eq.u32 %p1, %r14, 0;
  @%p1 st.shared::cluster.u32 [%r12], %r13;
  @!%p1 st.u32 [%rd2], %r13;
)" + std::string(kBarrier) +
                           R"(
  ld.shared.u32 %r15, [%r11];
  ld.shared::cluster.u32 %r16, [%r12];
  ld.u32 %r17, [%rd2];
  getctarank.shared::cluster.u32 %r18, %r12;
  getctarank.u64 %r19, %rd2;
  getctarank.shared::cluster.u32 %r20, %r11;
  setp.ne.u32 %p2, %r16, %r17;
  @%p2 mov.u32 %r18, 99;
  setp.ne.u32 %p2, %r18, %r19;
  @%p2 mov.u32 %r18, 99;
  setp.ne.u32 %p2, %r20, %r2;
  @%p2 mov.u32 %r18, 99;
  mad.lo.u32 %r39, %r18, 100000, %r15;
)" + kBarrier;
  Kernels k(kernel(body));
  k.cluster = {4};
  DeviceArray<uint32_t> out(12 * 64);
  const LaunchOutcome r = k.run("k", {12}, {64}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t b = 0; b < 12; ++b)
    for (uint32_t t = 0; t < 64; ++t) {
      const uint32_t rank = b % 4, from = (rank + 3) % 4, to = (rank + 1) % 4;
      EXPECT_EQ(out[b * 64 + t], to * 100000 + from * 1000 + t) << b << " " << t;
    }
}

TEST(Cluster, AtomicsAndReductionsInTheFirstBlock) {
  Kernels k(kernel(R"(
  st.shared.u32 [box], 0;
)" + std::string(kBarrier) +
                   R"(
  mov.u32 %r10, box;
  mapa.shared::cluster.u32 %r11, %r10, 0;
  atom.shared::cluster.add.u32 %r12, [%r11], 1;
  red.shared::cluster.add.u32 [%r11+4], %r2;
)" + kBarrier + R"(
  ld.shared::cluster.u32 %r39, [%r11];
)" + kBarrier));
  k.cluster = {8};
  DeviceArray<uint32_t> out(16 * 48);
  const LaunchOutcome r = k.run("k", {16}, {48}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 16 * 48; ++i) EXPECT_EQ(out[i], 8u * 48);
}

TEST(Cluster, LanesThatHaveLeftAreNotWaitedFor) {
  // Lanes 20.. of each warp and the whole last block leave first; the others still meet, twice.
  Kernels k(kernel(R"(
  st.shared.u32 [box], 7;
  mov.u32 %r39, 5;
  and.b32 %r10, %r0, 31;
  setp.ge.u32 %p1, %r10, 20;
  setp.eq.or.u32 %p1, %r2, 3, %p1;
  @%p1 exit;
)" + std::string(kBarrier) +
                   kBarrier));
  k.cluster = {4};
  DeviceArray<uint32_t> out(4 * 64);
  const LaunchOutcome r = k.run("k", {4}, {64}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t b = 0; b < 4; ++b)
    for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[b * 64 + t], b == 3 || t % 32 >= 20 ? 0u : 5u);
}

TEST(Cluster, BarrierOfALaunchWithoutClusterIsThatOfTheBlock) {
  // Warp 1 writes after a while of its own, warp 0 reads after the barrier.
  Kernels k(kernel(R"(
  shr.u32 %r10, %r0, 5;
  mov.u32 %r11, 0;
  setp.eq.u32 %p1, %r10, 1;
  @%p1 st.shared.u32 [box], 41;
)" + std::string(kBarrier) +
                   R"(
  ld.shared.u32 %r39, [box];
  add.u32 %r39, %r39, %r3;
)"));
  DeviceArray<uint32_t> out(2 * 64);
  const LaunchOutcome r = k.run("k", {2}, {64}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], 42u);
}

TEST(Cluster, AnAddressThatNoBlockHasIsAnError) {
  Kernels k(kernel(R"(
  mov.u32 %r10, box;
  mapa.shared::cluster.u32 %r11, %r10, 2;
  ld.shared::cluster.u32 %r39, [%r11];
)"));
  k.cluster = {2};
  DeviceArray<uint32_t> out(4 * 32);
  LaunchOutcome r = k.run("k", {2}, {32}, out.address);
  EXPECT_EQ(r.error, 700);
  EXPECT_THAT(r.message, testing::HasSubstr("shared memory of a block of the cluster"));
  EXPECT_EQ(r.fault.address, 3u << 24);
  // Behind the end of the other block's shared memory.
  Kernels far(kernel(R"(
  mov.u32 %r10, box;
  mapa.shared::cluster.u32 %r11, %r10, 1;
  ld.shared::cluster.u32 %r39, [%r11+512];
)"));
  far.cluster = {2};
  r = far.run("k", {2}, {32}, out.address);
  EXPECT_EQ(r.error, 700);
  EXPECT_EQ(r.fault.address, (2u << 24) + 512);
}

TEST(Cluster, ADeadlockNamesTheBarrierAndTheWarps) {
  Kernels k(kernel(R"(
  mov.u32 %r39, 1;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra $other;
)" + std::string(kBarrier) +
                   R"(
  bra $end;
$other:
  bar.sync 3, 96;
$end:
)"));
  k.cluster = {2};
  DeviceArray<uint32_t> out(2 * 64);
  const LaunchOutcome r = k.run("k", {2}, {64}, out.address);
  EXPECT_EQ(r.error, 702);
  EXPECT_THAT(r.message, testing::HasSubstr("the cluster's barrier has 2 of 4 warps; waiting warps: 0"));
}

TEST(Cluster, AFaultInOneBlockEndsTheOthersThatWaitForIt) {
  Kernels k(kernel(R"(
  mov.u64 %rd1, 64;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 st.global.u32 [%rd1], %r2;
)" + std::string(kBarrier)));
  k.cluster = {2};
  DeviceArray<uint32_t> out(4 * 32);
  const LaunchOutcome r = k.run("k", {4}, {32}, out.address);
  EXPECT_EQ(r.error, 700);
  EXPECT_EQ(r.fault.address, 64u);
}

TEST(Cluster, RemoteAccessesCountAsSharedMemory) {
  Kernels k(kernel(R"(
  mov.u32 %r10, box;
  mad.lo.u32 %r10, %r0, 4, %r10;
  xor.b32 %r12, %r2, 1;
  mapa.shared::cluster.u32 %r11, %r10, %r12;
  st.shared::cluster.u32 [%r11], %r0;
)" + std::string(kBarrier) +
                   R"(
  ld.shared::cluster.u32 %r39, [%r11];
  setp.lt.u32 %p1, %r0, 8;
  @%p1 ld.shared::cluster.u32 %r39, [%r11];
)" + kBarrier));
  k.cluster = {2};
  k.level = CountLevel::requests;
  DeviceArray<uint32_t> out(4 * 64);
  const LaunchOutcome r = k.run("k", {4}, {64}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(k.counter(RawCounter::shared_store_requests), 8u);
  EXPECT_EQ(k.counter(RawCounter::shared_store_bytes), 8u * 128);
  EXPECT_EQ(k.counter(RawCounter::shared_store_wavefronts), 8u);
  EXPECT_EQ(k.counter(RawCounter::shared_load_requests), 8u + 4u);  // the second load: one warp of each block
  EXPECT_EQ(k.counter(RawCounter::shared_load_bytes), 8u * 128 + 4 * 8 * 4);
  EXPECT_EQ(k.counter(RawCounter::shared_load_bank_conflicts), 0u);
  EXPECT_EQ(k.counter(RawCounter::global_load_requests), 0u);
  EXPECT_EQ(k.counter(RawCounter::global_store_requests), 8u);
}

}  // namespace
}  // namespace sonde::softgpu::exec
