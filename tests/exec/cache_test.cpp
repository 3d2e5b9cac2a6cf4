// SPDX-License-Identifier: Apache-2.0
//
// The cache model by hand: L1 of 8 lines (2 sets of 4 ways), L2 of 32 lines in
// 2 slices (4 sets of 4 ways each), 4 SMs; all kernels start with empty caches.
#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

using enum RawCounter;

model::DeviceModel smallCaches() {
  model::DeviceModel d = testDevice();
  d.l1 = {1024, 128, 32, 4, 1};
  d.l2 = {4096, 128, 32, 4, 2};
  return d;
}

// One kernel k(p, n) for each body; %rd1: p + 4 * tid, %r2: n.
std::string kernelOf(const std::string& body) {
  return R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
  .reg .pred %p<4>;
  .reg .b16 %h<4>;
  .reg .b32 %r<10>;
  .reg .b64 %rd<10>;
  .local .align 4 .b8 mine[64];
  ld.param.u64 %rd2, [p];
  ld.param.u32 %r2, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd2, %rd3;
)" + body +
         "\n  ret;\n}\n";
}

// Two passes over n lines, from the first one on.
std::string twice(const std::string& access) {
  return kernelOf(R"(
  mov.u32 %r3, 0;
$pass:
  mov.u64 %rd4, %rd1;
  mov.u32 %r4, 0;
$line:
  )" + access + R"(
  add.u64 %rd4, %rd4, 128;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, %r2;
  @%p1 bra $line;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p2, %r3, 2;
  @%p2 bra $pass;)");
}

struct Caches : testing::Test {
  std::unique_ptr<Kernels> k;
  void run(const std::string& ptx, uint32_t n = 0, uint32_t blocks = 1, uint32_t threads = 32) {
    static DeviceArray<uint32_t> p(1 << 16);
    k = std::make_unique<Kernels>(ptx, smallCaches());
    k->level = CountLevel::caches;
    const LaunchOutcome out = k->run("k", {blocks}, {threads}, p.address, n);
    ASSERT_EQ(out.error, 0) << out.message;
    EXPECT_EQ(k->counter(l2_read_sector_hits) + k->counter(l2_read_sector_misses), k->counter(l2_read_sector_queries));
    EXPECT_EQ(k->counter(l2_write_sector_hits) + k->counter(l2_write_sector_misses),
              k->counter(l2_write_sector_queries));
  }
  void expectL1(uint64_t hit, uint64_t miss) {
    EXPECT_EQ(k->counter(l1_global_load_hit), hit);
    EXPECT_EQ(k->counter(l1_global_load_miss), miss);
  }
  void expectL2Reads(uint64_t hit, uint64_t miss) {
    EXPECT_EQ(k->counter(l2_read_sector_hits), hit);
    EXPECT_EQ(k->counter(l2_read_sector_misses), miss);
  }
  void expectL2Writes(uint64_t hit, uint64_t miss) {
    EXPECT_EQ(k->counter(l2_write_sector_hits), hit);
    EXPECT_EQ(k->counter(l2_write_sector_misses), miss);
  }
  void expectDram(uint64_t read, uint64_t written) {
    EXPECT_EQ(k->counter(dram_read_sectors), read);
    EXPECT_EQ(k->counter(dram_write_sectors), written);
  }
};

TEST_F(Caches, ALineReadAgainHits) {
  run(kernelOf("ld.global.u32 %r3, [%rd1]; ld.global.u32 %r4, [%rd1];"));
  expectL1(4, 4);
  expectL2Reads(0, 4);
  expectL2Writes(0, 0);
  expectDram(4, 0);
}

TEST_F(Caches, SectorsOfALineAreFetchedOneByOne) {
  // Lane 0's word, then all: one sector is there already.
  run(kernelOf("ld.global.u32 %r3, [%rd2]; ld.global.u32 %r4, [%rd1];"));
  expectL1(1, 4);
  expectL2Reads(0, 4);
}

TEST_F(Caches, LargeSectorsAreFetchedWhole) {
  static DeviceArray<uint32_t> p(64);
  Kernels fermi(kernelOf("ld.global.u32 %r3, [%rd2]; ld.global.u32 %r4, [%rd1];"), [] {
    model::DeviceModel d = smallCaches();
    d.l1.sectorBytes = 128;
    return d;
  }());
  fermi.level = CountLevel::caches;
  ASSERT_EQ(fermi.run("k", {1}, {32}, p.address, 0u).error, 0);
  EXPECT_EQ(fermi.counter(l1_global_load_miss), 1u);
  EXPECT_EQ(fermi.counter(l1_global_load_hit), 4u);
  EXPECT_EQ(fermi.counter(l2_read_sector_queries), 4u);
}

TEST_F(Caches, WorkingSetOfL1Fits) {
  run(twice("ld.global.u32 %r5, [%rd4];"), 8);
  expectL1(32, 32);
  expectL2Reads(0, 32);
}

TEST_F(Caches, WorkingSetLargerThanL1) {
  // 9 lines: the even ones, 5, do not fit into the 4 ways of their set.
  run(twice("ld.global.u32 %r5, [%rd4];"), 9);
  expectL1(4 * 4, 9 * 4 + 5 * 4);
  expectL2Reads(5 * 4, 9 * 4);
  expectDram(9 * 4, 0);
}

TEST_F(Caches, WorkingSetLargerThanL2) {
  // 33 lines: 32 fill L2, the last one makes 5 in its set of 4.
  run(twice("ld.global.u32 %r5, [%rd4];"), 33);
  expectL1(0, 2 * 33 * 4);
  expectL2Reads(28 * 4, (33 + 5) * 4);
  expectDram((33 + 5) * 4, 0);
}

TEST_F(Caches, StoresAreWrittenThroughAndAllocateInL2Only) {
  run(kernelOf("st.global.u32 [%rd1], %r1; ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd1], %r3;"));
  expectL1(0, 4);
  expectL2Reads(4, 0);
  expectL2Writes(4, 4);
  expectDram(0, 0);
}

TEST_F(Caches, DirtyLinesAreWrittenBackWhenTheyLeaveL2) {
  // First pass: the 33rd line drives one out. Second pass: 5 lines of one set
  // drive each other out, every time.
  run(twice("st.global.u32 [%rd4], %r1;"), 33);
  expectL2Writes(28 * 4, 38 * 4);
  expectDram(0, (1 + 5) * 4);
}

TEST_F(Caches, AtomicsAreDoneInL2AndDropTheCopyInL1) {
  run(
      kernelOf("ld.global.u32 %r3, [%rd1]; atom.global.add.u32 %r4, [%rd2], 1; st.local.u32 [mine], %r4; ld.global.u32 "
               "%r5, [%rd1];"));
  expectL1(3, 5);
  EXPECT_EQ(k->counter(l2_atomic_queries), 1u);
  expectL2Reads(1 + 1, 4);  // the atomic and the sector fetched anew
  expectL2Writes(0, 0);
}

TEST_F(Caches, AnAtomicFetchesItsSector) {
  run(kernelOf("red.global.add.u32 [%rd1], 1;"));
  EXPECT_EQ(k->counter(l2_atomic_queries), 4u);
  expectL2Reads(0, 4);
  expectDram(4, 0);
}

TEST_F(Caches, WideAccessesTouchMoreLines) {
  run(kernelOf(
      "mul.wide.u32 %rd5, %r1, 8; add.u64 %rd5, %rd2, %rd5; ld.global.u64 %rd6, [%rd5]; ld.global.u32 %r3, [%rd1];"));
  expectL1(4, 8);  // 256 bytes; then the first 128 again
  run(kernelOf("mul.wide.u32 %rd5, %r1, 16; add.u64 %rd5, %rd2, %rd5; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd5];"));
  expectL1(0, 16);
  EXPECT_EQ(k->counter(global_load_sectors), 16u);
}

TEST_F(Caches, NarrowAndScatteredAccesses) {
  // 32 bytes in one sector; then every lane a line of its own, of which L1 keeps 8.
  run(kernelOf("cvt.u64.u32 %rd5, %r1; add.u64 %rd5, %rd2, %rd5; ld.global.u8 %r3, [%rd5];"));
  expectL1(0, 1);
  run(
      kernelOf("mul.wide.u32 %rd5, %r1, 128; add.u64 %rd5, %rd2, %rd5; ld.global.u32 %r3, [%rd5]; ld.global.u32 %r3, "
               "[%rd5+4];"));
  expectL1(0, 64);
  expectL2Reads(32, 32);
}

TEST_F(Caches, PredicatedOffLanesAskForNothing) {
  run(kernelOf("setp.lt.u32 %p1, %r1, 8; @%p1 ld.global.u32 %r3, [%rd1];"));
  expectL1(0, 1);
  run(kernelOf("setp.gt.u32 %p1, %r1, 99; @%p1 ld.global.u32 %r3, [%rd1];"));
  expectL1(0, 0);
}

TEST_F(Caches, LoadsThatL1MayNotServe) {
  for (const char* op : {"ld.global.cg.u32", "ld.volatile.global.u32"}) {
    run(kernelOf(std::string(op) + " %r3, [%rd1]; " + op + " %r4, [%rd1];"));
    expectL1(0, 8);
    expectL2Reads(4, 4);
  }
}

TEST_F(Caches, BlocksOfAnSmShareItsL1) {
  // Blocks 0 and 4 run on SM 0.
  run(kernelOf("ld.global.u32 %r3, [%rd1];"), 0, 5);
  EXPECT_EQ(k->counterOf(0, l1_global_load_hit), 4u);
  for (uint32_t sm = 0; sm < 4; ++sm) EXPECT_EQ(k->counterOf(sm, l1_global_load_miss), 4u) << sm;
  for (uint32_t sm = 1; sm < 4; ++sm) EXPECT_EQ(k->counterOf(sm, l1_global_load_hit), 0u) << sm;
  expectL2Reads(12, 4);
}

TEST_F(Caches, SlicesAreTheInstancesOfL2) {
  // Consecutive lines take turns.
  run(twice("ld.global.u32 %r5, [%rd4];"), 2);
  for (uint32_t slice = 0; slice < 2; ++slice) {
    EXPECT_EQ(k->counterOf(slice, l2_read_sector_queries), 4u);
    EXPECT_EQ(k->counterOf(slice, dram_read_sectors), 4u);
  }
  EXPECT_EQ(k->counterOf(2, l2_read_sector_queries), 0u);
}

TEST_F(Caches, LocalMemoryIsWrittenBack) {
  run(kernelOf("st.local.u32 [mine+4], %r1; ld.local.u32 %r3, [mine+4]; st.local.u32 [mine+4], %r3;"));
  EXPECT_EQ(k->counter(l1_local_store_miss), 4u);
  EXPECT_EQ(k->counter(l1_local_store_hit), 4u);
  EXPECT_EQ(k->counter(l1_local_load_hit), 4u);
  EXPECT_EQ(k->counter(l1_local_load_miss), 0u);
  EXPECT_EQ(k->counter(l2_read_sector_queries) + k->counter(l2_write_sector_queries), 0u);
}

TEST_F(Caches, LocalLinesThatLeaveL1GoToL2) {
  // 9 words of each lane are 9 lines: the fifth even one drives word 0 out.
  std::string body;
  for (int i = 0; i < 9; ++i) body += "st.local.u32 [mine+" + std::to_string(4 * i) + "], %r1; ";
  run(kernelOf(body + "ld.local.u32 %r3, [mine];"));
  EXPECT_EQ(k->counter(l1_local_store_miss), 36u);
  EXPECT_EQ(k->counter(l1_local_load_miss), 4u);
  expectL2Writes(0, 8);  // word 0, and what reading it drives out
  expectL2Reads(4, 0);
}

TEST_F(Caches, KernelsStartWithEmptyCaches) {
  run(kernelOf("ld.global.u32 %r3, [%rd1];"));
  expectL1(0, 4);
  static DeviceArray<uint32_t> p(64);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(k->run("k", {1}, {32}, p.address, 0u).error, 0);
  expectL1(0, 12);
  expectL2Reads(0, 12);
}

TEST_F(Caches, ADeviceWithoutCaches) {
  static DeviceArray<uint32_t> p(64);
  Kernels bare(kernelOf(
      "ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd1], %r3; ld.global.u32 %r4, [%rd1]; st.local.u32 [mine], %r4;"));
  bare.level = CountLevel::caches;
  ASSERT_EQ(bare.run("k", {1}, {32}, p.address, 0u).error, 0);
  EXPECT_EQ(bare.counter(l1_global_load_miss), 8u);
  EXPECT_EQ(bare.counter(l2_read_sector_misses), 8u);
  EXPECT_EQ(bare.counter(dram_read_sectors), 8u);
  EXPECT_EQ(bare.counter(dram_write_sectors), 8u);  // 4 global, 4 local
}

// --- the cost model ---

TEST_F(Caches, CyclesByHand) {
  // 4 SMs at 1000 MHz; memory at 1000 MHz over 8 bits moves 2 bytes a ns.
  static DeviceArray<uint32_t> p(1 << 12);
  model::DeviceModel d = smallCaches();
  d.memoryClockMHz = 1000;
  d.attributes[37] = 8;
  Kernels one(kernelOf("ld.global.u32 %r3, [%rd1];"), d);
  one.level = CountLevel::requests;
  one.smClockMHz = 1000;
  ASSERT_EQ(one.run("k", {1}, {32}, p.address, 0u).error, 0);
  // 128 bytes take 64 ns, the way to memory 500, start and end 600 cycles.
  EXPECT_EQ(one.counterOf(0, active_cycles), 64u + 500 + 600);
  EXPECT_EQ(one.counterOf(1, active_cycles), 0u);
  EXPECT_EQ(one.counterOf(0, active_warps), 1164u);
  for (uint32_t sm = 0; sm < 4; ++sm) EXPECT_EQ(one.counterOf(sm, elapsed_cycles), 1164u);
  // At twice the clock memory takes twice the cycles.
  one.counters = {};
  one.smClockMHz = 2000;
  ASSERT_EQ(one.run("k", {1}, {32}, p.address, 0u).error, 0);
  EXPECT_EQ(one.counterOf(0, elapsed_cycles), 2 * (64u + 500) + 600);
  // Counting more changes nothing.
  one.counters = {};
  one.level = CountLevel::caches;
  ASSERT_EQ(one.run("k", {1}, {32}, p.address, 0u).error, 0);
  EXPECT_EQ(one.counterOf(0, elapsed_cycles), 2 * (64u + 500) + 600);
  // Without memory the clock does not matter: 8 instructions, 4 a cycle.
  Kernels none(kernelOf("add.u32 %r3, %r1, %r2; add.u32 %r3, %r3, %r2;"), d);
  none.level = CountLevel::requests;
  for (uint64_t clock : {500u, 1000u, 3000u}) {
    none.counters = {};
    none.smClockMHz = clock;
    ASSERT_EQ(none.run("k", {1}, {32}, p.address, 0u).error, 0);
    EXPECT_EQ(none.counter(inst_executed), 8u);
    EXPECT_EQ(none.counterOf(0, elapsed_cycles), 602u) << clock;
  }
}

}  // namespace
}  // namespace sonde::softgpu::exec
