// SPDX-License-Identifier: Apache-2.0
//
// Counters against hardware counts (one launch each of 4 blocks of 256 threads
// on an H200, measured with Nsight Compute) and against numbers worked out by
// hand.
#include <fstream>
#include <sstream>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

std::string readFile(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Row {
  const char* kernel;
  char elements;  // 'f' float words, 'i' int words
  int pointers;   // 1: (q), 2: (p, q), 3: (q, p)
  uint64_t globalLoads, globalLoadSectors, globalStores, globalStoreSectors;
  uint64_t atoms, atomSectors, reds, redSectors;
  uint64_t sharedLoads, sharedLoadWavefronts, sharedLoadConflicts, sharedStoreWavefronts, sharedStoreConflicts,
      sharedAtoms;
  uint64_t localLoads, localLoadSectors;
};

// Columns of the measurement: t_requests and t_sectors of global ld, st, atom,
// red; shared ld instructions, wavefronts and conflicts; shared atoms; local ld.
constexpr Row kRows[] = {
    {"copy_f32", 'f', 2, 32, 128, 32, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"copy_f64", 'f', 2, 32, 256, 32, 256, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"copy_f128", 'f', 2, 32, 512, 32, 512, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"copy_u8", 'i', 2, 32, 32, 32, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"load_stride2", 'f', 2, 32, 256, 32, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"load_stride32", 'f', 2, 32, 1024, 32, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"load_misaligned1", 'f', 2, 32, 160, 32, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"load_broadcast", 'f', 2, 32, 32, 32, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"store_stride4", 'f', 2, 32, 128, 32, 512, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"shared_free", 'f', 2, 32, 128, 32, 128, 0, 0, 0, 0, 32, 32, 0, 32, 0, 0, 0, 0},
    {"shared_2way", 'f', 2, 32, 128, 32, 128, 0, 0, 0, 0, 32, 64, 32, 64, 32, 0, 0, 0},
    {"shared_32way", 'f', 2, 32, 128, 32, 128, 0, 0, 0, 0, 32, 1024, 992, 1024, 992, 0, 0, 0},
    {"shared_broadcast", 'f', 2, 32, 128, 32, 128, 0, 0, 0, 0, 32, 32, 0, 32, 0, 0, 0, 0},
    {"branch_uniform", 'f', 2, 32, 128, 32, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"branch_divergent", 'f', 2, 32, 128, 960, 3264, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"atomic_same", 'i', 3, 0, 0, 32, 128, 32, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"red_same", 'i', 1, 0, 0, 0, 0, 0, 0, 32, 32, 0, 0, 0, 0, 0, 0, 0, 0},
    {"shared_atomic_same", 'i', 1, 0, 0, 32, 128, 0, 0, 0, 0, 32, 32, 0, 4, 0, 32, 0, 0},
    {"local_array", 'i', 2, 1056, 5120, 32, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1024, 32768},
    {"shuffle_sum", 'f', 2, 32, 128, 32, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.kernel; }

class HardwareCounts : public testing::TestWithParam<Row> {};

TEST_P(HardwareCounts, AreCountedFromThePtx) {
  const Row& row = GetParam();
  static const std::string ptx = readFile(std::string(SONDE_TEST_DATA) + "/microkernels.ptx");
  Kernels k(ptx);
  constexpr size_t words = (1u << 20) / 4;
  DeviceArray<uint32_t> p(words), q(words);
  for (uint32_t i = 0; i < words; ++i) {
    const uint32_t v = i * 7 & 15;
    const auto f = static_cast<float>(v);
    if (row.elements == 'i')
      p[i] = v;
    else
      std::memcpy(&p[i], &f, 4);
  }
  k.level = CountLevel::requests;
  LaunchOutcome out;
  if (row.pointers == 1) out = k.run(row.kernel, {4}, {256}, q.address);
  if (row.pointers == 2) out = k.run(row.kernel, {4}, {256}, p.address, q.address);
  if (row.pointers == 3) out = k.run(row.kernel, {4}, {256}, q.address, p.address);
  ASSERT_EQ(out.error, 0) << out.message;
  using enum RawCounter;
  EXPECT_EQ(k.counter(blocks_launched), 4u);
  EXPECT_EQ(k.counter(warps_launched), 32u);
  EXPECT_EQ(k.counter(threads_launched), 1024u);
  EXPECT_EQ(k.counter(global_load_requests), row.globalLoads);
  EXPECT_EQ(k.counter(global_load_sectors), row.globalLoadSectors);
  EXPECT_EQ(k.counter(global_store_requests), row.globalStores);
  EXPECT_EQ(k.counter(global_store_sectors), row.globalStoreSectors);
  EXPECT_EQ(k.counter(global_atom_requests), row.atoms);
  EXPECT_EQ(k.counter(global_atom_sectors), row.atomSectors);
  EXPECT_EQ(k.counter(global_red_requests), row.reds);
  EXPECT_EQ(k.counter(global_red_sectors), row.redSectors);
  EXPECT_EQ(k.counter(shared_load_requests), row.sharedLoads);
  EXPECT_EQ(k.counter(shared_load_wavefronts), row.sharedLoadWavefronts);
  EXPECT_EQ(k.counter(shared_load_bank_conflicts), row.sharedLoadConflicts);
  EXPECT_EQ(k.counter(shared_store_wavefronts), row.sharedStoreWavefronts);
  EXPECT_EQ(k.counter(shared_store_bank_conflicts), row.sharedStoreConflicts);
  EXPECT_EQ(k.counter(shared_atom_requests), row.sharedAtoms);
  EXPECT_EQ(k.counter(local_load_requests), row.localLoads);
  EXPECT_EQ(k.counter(local_load_sectors), row.localLoadSectors);
}

INSTANTIATE_TEST_SUITE_P(H200, HardwareCounts, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.kernel); });

TEST(Counters, InstructionsByHand) {
  // One block of 40 threads: a full warp and one of 8 lanes.
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 4;
  cvt.rn.f32.u32 %f1, %r1;
  @%p1 add.f32 %f2, %f1, %f1;
  @%p1 bra $low;
  fma.rn.f32 %f3, %f1, %f1, %f1;
  fma.rn.f32 %f3, %f3, %f1, %f1;
$low:
  mul.f32 %f1, %f1, %f1;
  ret;
}
)");
  k.level = CountLevel::instructions;
  ASSERT_EQ(k.run("k", {1}, {40}).error, 0);
  using enum RawCounter;
  // Warp 0 runs all three blocks: 5 + 2 + 2; warp 1 (threads 32 to 39) has no
  // lane below 4 and does not diverge: 5 + 2 + 2.
  EXPECT_EQ(k.counter(inst_executed), 18u);
  // Warp 0: 5 * 32 + 2 * 28 + 2 * 32; warp 1: 9 * 8.
  EXPECT_EQ(k.counter(thread_inst_executed), 160u + 56u + 64u + 72u);
  // The add and the branch are predicated: they run in 4 lanes of warp 0 alone.
  EXPECT_EQ(k.counter(thread_inst_not_pred_off), 3u * 40u + 4u + 4u + 2u * 36u + 2u * 40u);
  EXPECT_EQ(k.counter(branch), 2u);
  EXPECT_EQ(k.counter(divergent_branch), 1u);
  EXPECT_EQ(k.counter(flop_sp_add), 4u);
  EXPECT_EQ(k.counter(flop_sp_fma), 72u);
  EXPECT_EQ(k.counter(flop_sp_mul), 40u);
  EXPECT_EQ(k.counter(inst_bit_convert), 40u);
  EXPECT_EQ(k.counter(inst_integer), 40u);       // setp
  EXPECT_EQ(k.counter(inst_misc), 40u);          // mov
  EXPECT_EQ(k.counter(inst_control), 4u + 40u);  // bra, ret
  EXPECT_EQ(k.counter(inst_fp_32), 4u + 72u + 40u);
}

TEST(Counters, LandOnTheSmThatRanTheBlock) {
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
  pmevent 3;
  pmevent.mask 0x81;
  ret;
}
)");
  k.level = CountLevel::instructions;
  ASSERT_EQ(k.run("k", {10}, {64}).error, 0);
  // Blocks go round the four SMs: 3, 3, 2, 2.
  ASSERT_EQ(k.counters.instances, 4u);
  const uint64_t blocks[] = {3, 3, 2, 2};
  for (uint32_t sm = 0; sm < 4; ++sm) {
    auto at = [&](RawCounter c) { return k.counters.values[sm * kRawCounterCount + static_cast<uint32_t>(c)]; };
    EXPECT_EQ(at(RawCounter::blocks_launched), blocks[sm]);
    EXPECT_EQ(at(RawCounter::warps_launched), blocks[sm] * 2);
    EXPECT_EQ(at(RawCounter::inst_executed), blocks[sm] * 2 * 3);
    EXPECT_EQ(at(RawCounter::prof_trigger_03), blocks[sm] * 2);
    EXPECT_EQ(at(RawCounter::prof_trigger_00), blocks[sm] * 2);
    EXPECT_EQ(at(RawCounter::prof_trigger_07), blocks[sm] * 2);
    EXPECT_EQ(at(RawCounter::prof_trigger_01), 0u);
  }
}

TEST(Counters, GenericAddressesCountForTheSpaceTheyHit) {
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<10>;
  .shared .align 8 .b8 s[128];
  .local .align 8 .b8 l[16];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.u32 [%rd3], %r1;
  mov.u64 %rd4, s;
  cvta.shared.u64 %rd5, %rd4;
  add.u64 %rd6, %rd5, %rd2;
  st.u32 [%rd6], %r1;
  ld.u32 %r2, [%rd6];
  mov.u64 %rd7, l;
  cvta.local.u64 %rd8, %rd7;
  st.u32 [%rd8], %r2;
  ld.u32 %r3, [%rd8];
  ret;
}
)");
  k.level = CountLevel::requests;
  DeviceArray<uint32_t> a(32);
  ASSERT_EQ(k.run("k", {1}, {32}, a.address).error, 0);
  using enum RawCounter;
  EXPECT_EQ(k.counter(global_store_requests), 1u);
  EXPECT_EQ(k.counter(global_store_sectors), 4u);
  EXPECT_EQ(k.counter(global_store_lines), 1u);
  EXPECT_EQ(k.counter(global_store_bytes), 128u);
  EXPECT_EQ(k.counter(gst_inst_32bit), 32u);
  EXPECT_EQ(k.counter(shared_store_requests), 1u);
  EXPECT_EQ(k.counter(shared_load_requests), 1u);
  EXPECT_EQ(k.counter(shared_load_wavefronts), 1u);
  EXPECT_EQ(k.counter(local_store_requests), 1u);
  EXPECT_EQ(k.counter(local_load_requests), 1u);
  EXPECT_EQ(k.counter(local_load_sectors), 4u);  // one word of each lane, side by side
}

}  // namespace
}  // namespace sonde::softgpu::exec
