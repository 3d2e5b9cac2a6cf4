// SPDX-License-Identifier: Apache-2.0
//
// Requests, sectors and passes of the instructions that move blocks of memory:
// asynchronous copies, matrices, shared memory of the cluster. One warp each;
// the numbers are worked out by hand.
#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

using enum RawCounter;

std::string warpKernel(const std::string& body) {
  return R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<3>;
  .reg .b32 %r<32>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<10>;
  .shared .align 128 .b8 s[4096];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
)" + body +
         "\nret;\n}\n";
}

class CopyCounters : public testing::Test {
 protected:
  void run(const std::string& body, CountLevel level = CountLevel::requests) {
    model::DeviceModel device = testDevice();
    device.l1.bytes = 16384;
    device.l2.bytes = 65536;
    kernels_ = std::make_unique<Kernels>(warpKernel(body), device);
    kernels_->level = level;
    kernels_->sourceLevel = true;
    const LaunchOutcome out = kernels_->run("k", {1}, {32}, memory_.address);
    ASSERT_EQ(out.error, 0) << out.message;
    // What the single instructions did is what was counted.
    uint64_t loads = 0, stores = 0, sectorsLoaded = 0, sectorsStored = 0, passes = 0, conflicts = 0;
    for (const InstructionCount& i : kernels_->instructions) {
      EXPECT_LE(i.global.ideal, i.global.transactions);
      const bool store = i.access == 2;
      if (i.access == 1 || i.access == 2 || i.access == 5) {
        (store ? stores : loads) += i.global.executed;
        (store ? sectorsStored : sectorsLoaded) += i.global.transactions;
      }
      if (i.access == 3 || i.access == 4) continue;
      passes += i.shared.transactions;
      conflicts += i.shared.transactions - i.shared.ideal;
    }
    EXPECT_EQ(loads, count(global_load_requests));
    EXPECT_EQ(stores, count(global_store_requests));
    EXPECT_EQ(sectorsLoaded, count(global_load_sectors));
    EXPECT_EQ(sectorsStored, count(global_store_sectors));
    EXPECT_EQ(passes, count(shared_load_wavefronts) + count(shared_store_wavefronts));
    EXPECT_EQ(conflicts, count(shared_load_bank_conflicts) + count(shared_store_bank_conflicts));
  }
  uint64_t count(RawCounter c) const { return kernels_->counter(c); }

 private:
  DeviceArray<uint32_t> memory_{4096};
  std::unique_ptr<Kernels> kernels_;
};

TEST_F(CopyCounters, AsynchronousCopiesLoadAndStore) {
  run(R"(
  mul.wide.u32 %rd2, %r1, 16;
  add.u64 %rd2, %rd2, %rd1;
  shl.b32 %r3, %r1, 4;
  add.u32 %r3, %r3, %r2;
  cp.async.cg.shared.global [%r3], [%rd2], 16;
  cp.async.wait_all;)");
  EXPECT_EQ(count(global_load_requests), 1u);
  EXPECT_EQ(count(global_load_bytes), 512u);
  EXPECT_EQ(count(global_load_sectors), 16u);
  EXPECT_EQ(count(global_load_lines), 4u);
  EXPECT_EQ(count(gld_inst_128bit), 32u);
  EXPECT_EQ(count(shared_store_requests), 1u);
  EXPECT_EQ(count(shared_store_bytes), 512u);
  EXPECT_EQ(count(shared_store_wavefronts), 4u);  // 16 bytes a lane: a quarter of the warp in a pass
  EXPECT_EQ(count(shared_store_bank_conflicts), 0u);
  EXPECT_EQ(count(shared_load_requests), 0u);
}

TEST_F(CopyCounters, WhatACopyFillsWithZerosIsNotLoaded) {
  // Lanes 16 to 31 read nothing; all store 4 bytes, 8 bytes apart: two words for every second bank.
  run(R"(
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd2, %rd2, %rd1;
  shl.b32 %r3, %r1, 3;
  add.u32 %r3, %r3, %r2;
  setp.lt.u32 %p1, %r1, 16;
  selp.b32 %r4, 4, 0, %p1;
  cp.async.ca.shared.global [%r3], [%rd2], 4, %r4;
  cp.async.wait_all;)");
  EXPECT_EQ(count(global_load_requests), 1u);
  EXPECT_EQ(count(global_load_bytes), 64u);
  EXPECT_EQ(count(global_load_sectors), 2u);
  EXPECT_EQ(count(gld_inst_32bit), 16u);
  EXPECT_EQ(count(shared_store_bytes), 128u);
  EXPECT_EQ(count(shared_store_wavefronts), 2u);
  EXPECT_EQ(count(shared_store_bank_conflicts), 1u);
}

TEST_F(CopyCounters, AsynchronousCopiesGoThroughTheCaches) {
  // The same 128 bytes three times: L1 keeps what .ca brought, .cg passes it by.
  const char* body = R"(
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd2, %rd2, %rd1;
  shl.b32 %r3, %r1, 2;
  add.u32 %r3, %r3, %r2;
  cp.async.ca.shared.global [%r3], [%rd2], 4;
  cp.async.ca.shared.global [%r3], [%rd2], 4;
  cp.async.wait_all;)";
  run(body, CountLevel::caches);
  EXPECT_EQ(count(l1_global_load_miss), 4u);
  EXPECT_EQ(count(l1_global_load_hit), 4u);
  EXPECT_EQ(count(l2_read_sector_queries), 4u);
  run(R"(
  mul.wide.u32 %rd2, %r1, 16;
  add.u64 %rd2, %rd2, %rd1;
  shl.b32 %r3, %r1, 4;
  add.u32 %r3, %r3, %r2;
  cp.async.cg.shared.global [%r3], [%rd2], 16;
  cp.async.cg.shared.global [%r3], [%rd2], 16;
  cp.async.wait_all;)",
      CountLevel::caches);
  EXPECT_EQ(count(l1_global_load_miss), 32u);
  EXPECT_EQ(count(l1_global_load_hit), 0u);
  EXPECT_EQ(count(l2_read_sector_queries), 32u);
  EXPECT_EQ(count(l2_read_sector_hits), 16u);
}

TEST_F(CopyCounters, MatrixRowsAreQuarterWarpAccesses) {
  // Four matrices, rows side by side: one pass for each matrix.
  run(R"(
  shl.b32 %r3, %r1, 4;
  add.u32 %r3, %r3, %r2;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];)");
  EXPECT_EQ(count(shared_load_requests), 1u);
  EXPECT_EQ(count(shared_load_bytes), 512u);
  EXPECT_EQ(count(shared_load_wavefronts), 4u);
  EXPECT_EQ(count(shared_load_bank_conflicts), 0u);
  // Rows 128 bytes apart: the eight rows of a matrix lie in the same four banks.
  run(R"(
  shl.b32 %r3, %r1, 7;
  add.u32 %r3, %r3, %r2;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r3];)");
  EXPECT_EQ(count(shared_load_wavefronts), 32u);
  EXPECT_EQ(count(shared_load_bank_conflicts), 28u);
  // One matrix stored; the addresses of lanes 8 to 31 mean nothing.
  run(R"(
  shl.b32 %r3, %r1, 4;
  add.u32 %r3, %r3, %r2;
  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r1};)");
  EXPECT_EQ(count(shared_store_requests), 1u);
  EXPECT_EQ(count(shared_store_bytes), 128u);
  EXPECT_EQ(count(shared_store_wavefronts), 1u);
}

TEST_F(CopyCounters, TilesOfMatricesFromGlobalMemory) {
  // 16 x 16 halves without gaps: 512 bytes.
  run(R"(
  mov.u32 %r3, 16;
  wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r4,%r5,%r6,%r7,%r8,%r9,%r10,%r11}, [%rd1], %r3;)");
  EXPECT_EQ(count(global_load_requests), 1u);
  EXPECT_EQ(count(global_load_bytes), 512u);
  EXPECT_EQ(count(global_load_sectors), 16u);
  EXPECT_EQ(count(global_load_lines), 4u);
  EXPECT_EQ(count(gld_inst_128bit), 32u);
  // Rows 128 bytes apart: a line for each.
  run(R"(
  mov.u32 %r3, 64;
  wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r4,%r5,%r6,%r7,%r8,%r9,%r10,%r11}, [%rd1], %r3;)");
  EXPECT_EQ(count(global_load_sectors), 16u);
  EXPECT_EQ(count(global_load_lines), 16u);
}

TEST_F(CopyCounters, TilesOfMatricesInSharedMemory) {
  // 16 x 16 floats: 1024 bytes, eight passes of 128; through a generic address, too.
  const std::string store =
      "wmma.store.d.sync.aligned.row.m16n16k16%s.f32 [%rd3], {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %r3;";
  for (const char* space : {".shared", ""}) {
    std::string instruction = store;
    instruction.replace(instruction.find("%s"), 2, space);
    run("mov.u32 %r3, 16; cvt.u64.u32 %rd3, %r2;\n" + std::string(*space ? "" : "cvta.shared.u64 %rd3, %rd3;\n") +
        instruction);
    EXPECT_EQ(count(shared_store_requests), 1u) << space;
    EXPECT_EQ(count(shared_store_bytes), 1024u) << space;
    EXPECT_EQ(count(shared_store_wavefronts), 8u) << space;
    EXPECT_EQ(count(shared_store_bank_conflicts), 0u) << space;
    EXPECT_EQ(count(global_store_requests), 0u) << space;
  }
}

TEST_F(CopyCounters, SharedMemoryOfTheClusterIsSharedMemory) {
  struct {
    const char* address;
    uint64_t passes;
  } const cases[] = {{"shl.b32 %r3, %r1, 2;", 1},  // a row
                     {"mov.u32 %r3, 0;", 1},       // one word for all
                     {"shl.b32 %r3, %r1, 4;", 4},  // 16 bytes apart: four words in every fourth bank
                     {"xor.b32 %r3, %r1, 5; shl.b32 %r3, %r3, 2;", 1}};
  for (const auto& c : cases) {
    run(std::string(c.address) + R"(
  add.u32 %r3, %r3, %r2;
  st.shared::cluster.u32 [%r3], %r1;
  ld.shared::cluster.u32 %r4, [%r3];
  atom.shared::cluster.add.u32 %r5, [%r3], 1;
  st.shared.u32 [%r2], %r5;)");
    EXPECT_EQ(count(shared_load_requests), 1u) << c.address;
    EXPECT_EQ(count(shared_load_bytes), 128u) << c.address;
    EXPECT_EQ(count(shared_load_wavefronts), c.passes) << c.address;
    EXPECT_EQ(count(shared_store_requests), 2u) << c.address;
    EXPECT_EQ(count(shared_store_wavefronts), c.passes + 1) << c.address;
    EXPECT_EQ(count(shared_atom_requests), 1u) << c.address;
    EXPECT_EQ(count(global_load_requests), 0u) << c.address;
    EXPECT_EQ(count(global_load_sectors), 0u) << c.address;
    EXPECT_EQ(count(global_store_sectors), 0u) << c.address;
  }
}

}  // namespace
}  // namespace sonde::softgpu::exec
