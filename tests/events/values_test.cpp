// SPDX-License-Identifier: Apache-2.0
// Event values of small kernels, each worked out by hand. Unless a test says
// otherwise, 4 blocks of 256 threads: 32 warps, 1024 threads.
#include "gpu.h"

namespace sonde::test {
namespace {

class EventValues : public Gpu {
 protected:
  using Values = std::map<std::string, uint64_t>;
  Values run(const std::string& body, std::initializer_list<const char*> events, unsigned grid = 4,
             unsigned block = 256, const std::string& declarations = "") {
    const CUdeviceptr p = buffer(1 << 20), q = buffer(1 << 20);
    return count(events, function(kernel(body, declarations), "k"), grid, block, {p, q});
  }
};

// Address of element i of the p array: %rd3 = p + index * bytes.
std::string address(const std::string& index, int bytes, const char* base = "%rd1", const char* to = "%rd3") {
  return "mul.wide.u32 " + std::string(to) + ", " + index + ", " + std::to_string(bytes) + "; add.u64 " + to + ", " +
         to + ", " + base + ";\n";
}

TEST_F(EventValues, LaunchCountsFollowFromTheGrid) {
  Values v = run("", {"warps_launched", "threads_launched", "sm_cta_launched"});
  EXPECT_EQ(v, (Values{{"warps_launched", 32}, {"threads_launched", 1024}, {"sm_cta_launched", 4}}));
  // 3 blocks of 40 threads: two warps each, the second with 8 lanes.
  v = run("", {"warps_launched", "threads_launched", "sm_cta_launched"}, 3, 40);
  EXPECT_EQ(v, (Values{{"warps_launched", 6}, {"threads_launched", 120}, {"sm_cta_launched", 3}}));
}

TEST_F(EventValues, StraightLineInstructions) {
  const Values v = run("add.u32 %r5, %r3, 1; xor.b32 %r5, %r5, %r1;",
                       {"inst_executed", "thread_inst_executed", "not_predicated_off_thread_inst_executed", "branch",
                        "divergent_branch"});
  EXPECT_EQ(v.at("inst_executed"), 32 * (kFrame + 2));
  EXPECT_EQ(v.at("thread_inst_executed"), 1024 * (kFrame + 2));
  EXPECT_EQ(v.at("not_predicated_off_thread_inst_executed"), 1024 * (kFrame + 2));
  EXPECT_EQ(v.at("branch"), 0u);
  EXPECT_EQ(v.at("divergent_branch"), 0u);
}

TEST_F(EventValues, PartialWarpCountsItsLanesAlone) {
  const Values v = run("", {"inst_executed", "thread_inst_executed"}, 1, 40);
  EXPECT_EQ(v.at("inst_executed"), 2 * kFrame);
  EXPECT_EQ(v.at("thread_inst_executed"), 40 * kFrame);
}

TEST_F(EventValues, PredicatedOffLanesAreActiveButWithoutEffect) {
  // setp, and an add that odd lanes skip.
  const Values v = run("and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @%p1 add.u32 %r6, %r3, 1;",
                       {"inst_executed", "thread_inst_executed", "not_predicated_off_thread_inst_executed"});
  EXPECT_EQ(v.at("inst_executed"), 32 * (kFrame + 3));
  EXPECT_EQ(v.at("thread_inst_executed"), 1024 * (kFrame + 3));
  EXPECT_EQ(v.at("not_predicated_off_thread_inst_executed"), 1024 * (kFrame + 2) + 512);
}

TEST_F(EventValues, UniformBranchDoesNotDiverge) {
  // Blocks 1 and 3 skip the add; all lanes of a warp agree.
  const Values v = run("and.b32 %r5, %r2, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra L; add.u32 %r6, %r3, 1;\nL:",
                       {"inst_executed", "branch", "divergent_branch"});
  EXPECT_EQ(v.at("branch"), 32u);
  EXPECT_EQ(v.at("divergent_branch"), 0u);
  EXPECT_EQ(v.at("inst_executed"), 32 * (kFrame + 3) + 16);
}

TEST_F(EventValues, OddLanesDiverge) {
  const Values v = run("and.b32 %r5, %r1, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra L; add.u32 %r6, %r3, 1;\nL:",
                       {"inst_executed", "thread_inst_executed", "branch", "divergent_branch"});
  EXPECT_EQ(v.at("branch"), 32u);
  EXPECT_EQ(v.at("divergent_branch"), 32u);
  // The add runs once per warp with the 16 even lanes; the ret after it once,
  // with all lanes together again.
  EXPECT_EQ(v.at("inst_executed"), 32 * (kFrame + 4));
  EXPECT_EQ(v.at("thread_inst_executed"), 1024 * (kFrame + 3) + 512);
}

TEST_F(EventValues, LoopWithUnevenTripCounts) {
  // Lane l of each warp goes round l + 1 times: 3 instructions a round, the
  // warp makes 32 rounds, lanes together 1 + 2 + … + 32 = 528.
  const Values v = run("and.b32 %r5, %r1, 31;\nL: setp.eq.u32 %p1, %r5, 0; sub.u32 %r5, %r5, 1; @!%p1 bra L;",
                       {"inst_executed", "thread_inst_executed", "branch", "divergent_branch"});
  EXPECT_EQ(v.at("branch"), 32 * 32u);
  EXPECT_EQ(v.at("divergent_branch"), 32 * 31u);  // in the last round the one lane left falls out
  EXPECT_EQ(v.at("inst_executed"), 32 * (kFrame + 1 + 3 * 32));
  EXPECT_EQ(v.at("thread_inst_executed"), 32 * (32 * (kFrame + 1) + 3 * 528));
}

struct Access {
  const char* name;
  const char* index;  // PTX that leaves the element index in %r5
  int bytes;          // element size
  const char* load;   // instruction
  uint64_t sectors;   // per warp
  uint64_t lines;
};

class GlobalAccess : public EventValues, public ::testing::WithParamInterface<Access> {};

TEST_P(GlobalAccess, LoadsTouchTheSectorsWorkedOutByHand) {
  const Access a = GetParam();
  const Values v = run(std::string(a.index) + address("%r5", a.bytes) + a.load,
                       {"gld_request", "global_load_sectors", "global_load_transactions", "gst_request"});
  EXPECT_EQ(v.at("gld_request"), 32u);
  EXPECT_EQ(v.at("gst_request"), 0u);
  EXPECT_EQ(v.at("global_load_sectors"), 32 * a.sectors);
  EXPECT_EQ(v.at("global_load_transactions"), 32 * a.lines);
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, GlobalAccess,
    ::testing::Values(
        Access{"Coalesced4", "mov.u32 %r5, %r3;", 4, "ld.global.u32 %r6, [%rd3];", 4, 1},
        Access{"Coalesced1", "mov.u32 %r5, %r3;", 1, "ld.global.u8 %r6, [%rd3];", 1, 1},
        Access{"Coalesced2", "mov.u32 %r5, %r3;", 2, "ld.global.u16 %h1, [%rd3];", 2, 1},
        Access{"Coalesced8", "mov.u32 %r5, %r3;", 8, "ld.global.u64 %rd5, [%rd3];", 8, 2},
        Access{"Coalesced16", "mov.u32 %r5, %r3;", 16, "ld.global.v4.u32 {%r6,%r7,%r8,%r9}, [%rd3];", 16, 4},
        Access{"Stride2", "shl.b32 %r5, %r3, 1;", 4, "ld.global.u32 %r6, [%rd3];", 8, 2},
        Access{"Stride8", "shl.b32 %r5, %r3, 3;", 4, "ld.global.u32 %r6, [%rd3];", 32, 8},
        Access{"Stride32", "shl.b32 %r5, %r3, 5;", 4, "ld.global.u32 %r6, [%rd3];", 32, 32},
        Access{"Misaligned", "add.u32 %r5, %r3, 1;", 4, "ld.global.u32 %r6, [%rd3];", 5, 2},
        Access{"Broadcast", "mov.u32 %r5, %r2;", 4, "ld.global.u32 %r6, [%rd3];", 1, 1},
        Access{"Reversed", "xor.b32 %r5, %r3, 31;", 4, "ld.global.u32 %r6, [%rd3];", 4, 1},
        // Lanes that go down, by ever larger steps; the last with two lanes to each word.
        Access{"ReversedSectors", "xor.b32 %r5, %r1, 31; and.b32 %r5, %r5, 31; shl.b32 %r5, %r5, 3;", 4,
               "ld.global.u32 %r6, [%rd3];", 32, 8},
        Access{"ReversedLines", "xor.b32 %r5, %r1, 31; and.b32 %r5, %r5, 31; shl.b32 %r5, %r5, 7;", 4,
               "ld.global.u32 %r6, [%rd3];", 32, 32},
        Access{"ReversedPages", "xor.b32 %r5, %r1, 31; and.b32 %r5, %r5, 31; shl.b32 %r5, %r5, 11;", 4,
               "ld.global.u32 %r6, [%rd3];", 32, 32},
        Access{"ReversedPairs", "xor.b32 %r5, %r1, 31; and.b32 %r5, %r5, 30; shl.b32 %r5, %r5, 11;", 4,
               "ld.global.u32 %r6, [%rd3];", 16, 16},
        // Lanes 0 … 15 read one word, lanes 16 … 31 another, 4 KiB apart.
        Access{"TwoPlaces", "shr.u32 %r5, %r3, 4; shl.b32 %r5, %r5, 10;", 4, "ld.global.u32 %r6, [%rd3];", 2, 2},
        // A permutation inside the warp's 128 bytes: still four sectors.
        Access{"Permuted", "mul.lo.u32 %r5, %r3, 5; and.b32 %r5, %r5, 31; and.b32 %r6, %r3, 992; or.b32 %r5, %r5, %r6;",
               4, "ld.global.u32 %r7, [%rd3];", 4, 1}),
    [](const auto& info) { return info.param.name; });

TEST_F(EventValues, StoresAndTheirSizes) {
  const Values v = run(address("%r3", 8) + "mov.u64 %rd5, 1; st.global.u64 [%rd3], %rd5;",
                       {"gst_request", "global_store_sectors", "gst_inst_64bit", "gst_inst_32bit"});
  EXPECT_EQ(
      v, (Values{{"gst_request", 32}, {"global_store_sectors", 256}, {"gst_inst_64bit", 1024}, {"gst_inst_32bit", 0}}));
}

TEST_F(EventValues, ARequestNeedsALane) {
  // Only block 0 stores.
  const Values v = run(address("%r3", 4) + "setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 [%rd3], %r3;",
                       {"gst_request", "global_store_sectors"});
  EXPECT_EQ(v, (Values{{"gst_request", 8}, {"global_store_sectors", 32}}));
}

struct Bank {
  const char* name;
  int shift;  // lane * 2^shift words
  uint64_t replays;
};
class BankConflicts : public EventValues, public ::testing::WithParamInterface<Bank> {};

TEST_P(BankConflicts, StrideMakesTheReplays) {
  const Bank b = GetParam();
  const std::string at = "and.b32 %r5, %r1, 31; shl.b32 %r5, %r5, " + std::to_string(b.shift + 2) +
                         "; mov.u32 %r6, s; add.u32 %r6, %r6, %r5;";
  const Values v = run(at + "st.shared.u32 [%r6], %r5; ld.shared.u32 %r7, [%r6];",
                       {"shared_load", "shared_store", "shared_load_replay", "shared_store_replay",
                        "l1_shared_load_transactions", "l1_shared_store_transactions"},
                       4, 256, ".shared .align 16 .b8 s[4096];\n");
  EXPECT_EQ(v.at("shared_load"), 32u);
  EXPECT_EQ(v.at("shared_store"), 32u);
  EXPECT_EQ(v.at("shared_load_replay"), 32 * b.replays);
  EXPECT_EQ(v.at("shared_store_replay"), 32 * b.replays);
  EXPECT_EQ(v.at("l1_shared_load_transactions"), 32 * (b.replays + 1));
  EXPECT_EQ(v.at("l1_shared_store_transactions"), 32 * (b.replays + 1));
}
INSTANTIATE_TEST_SUITE_P(Strides, BankConflicts,
                         ::testing::Values(Bank{"Free", 0, 0}, Bank{"TwoWay", 1, 1}, Bank{"FourWay", 2, 3},
                                           Bank{"EightWay", 3, 7}, Bank{"SixteenWay", 4, 15},
                                           Bank{"ThirtyTwoWay", 5, 31}),
                         [](const auto& info) { return info.param.name; });

TEST_F(EventValues, SharedBroadcastHasNoConflict) {
  const Values v = run("mov.u32 %r6, s; ld.shared.u32 %r7, [%r6];", {"shared_load", "shared_load_replay"}, 4, 256,
                       ".shared .align 16 .b8 s[128];\n");
  EXPECT_EQ(v, (Values{{"shared_load", 32}, {"shared_load_replay", 0}}));
}

TEST_F(EventValues, AtomicsAndReductions) {
  // An atom whose result nobody uses is a reduction, as compilers for cards
  // make it: the second atom counts as a red.
  const Values v =
      run(address("%r3", 4, "%rd2") +
              "atom.global.add.u32 %r5, [%rd1], 1; st.global.u32 [%rd3], %r5;"
              "red.global.add.u32 [%rd1], 1; atom.global.add.u32 %r6, [%rd1], 1;",
          {"atom_count", "gred_count", "atom_thread_count", "gred_thread_count", "gld_request", "gst_request"});
  EXPECT_EQ(v, (Values{{"atom_count", 32},
                       {"gred_count", 64},
                       {"atom_thread_count", 1024},
                       {"gred_thread_count", 2048},
                       {"gld_request", 0},
                       {"gst_request", 32}}));
}

TEST_F(EventValues, FloatingPointOperations) {
  const Values v =
      run("mov.f32 %f1, 0f3F800000; add.f32 %f2, %f1, %f1; mul.f32 %f3, %f2, %f1; fma.rn.f32 %f4, %f1, %f2, %f3;"
          "mov.f64 %fd1, 0d3FF0000000000000; fma.rn.f64 %fd2, %fd1, %fd1, %fd1; sin.approx.f32 %f5, %f1;",
          {"flops_sp_add", "flops_sp_mul", "flops_sp_fma", "flops_dp_fma", "flops_sp_special", "flops_dp_add"});
  EXPECT_EQ(v, (Values{{"flops_sp_add", 1024},
                       {"flops_sp_mul", 1024},
                       {"flops_sp_fma", 1024},
                       {"flops_dp_fma", 1024},
                       {"flops_sp_special", 1024},
                       {"flops_dp_add", 0}}));
}

TEST_F(EventValues, PmeventTriggers) {
  const Values v = run("pmevent 3; setp.eq.u32 %p1, %r2, 0; @%p1 pmevent 5;",
                       {"prof_trigger_03", "prof_trigger_05", "prof_trigger_00"});
  EXPECT_EQ(v, (Values{{"prof_trigger_00", 0}, {"prof_trigger_03", 32}, {"prof_trigger_05", 8}}));
}

TEST_F(EventValues, BarriersAreCountedPerWarp) {
  const Values v = run("bar.sync 0; bar.sync 0;", {"barrier_sync"});
  EXPECT_EQ(v, (Values{{"barrier_sync", 64}}));
}

TEST_F(EventValues, SameOnEveryRun) {
  const char* body = "and.b32 %r5, %r1, 7;\nL: setp.eq.u32 %p1, %r5, 0; sub.u32 %r5, %r5, 1; @!%p1 bra L;";
  const Values first = run(body, {"inst_executed", "thread_inst_executed", "active_cycles", "active_warps"});
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(first, run(body, {"inst_executed", "thread_inst_executed", "active_cycles", "active_warps"}));
}

}  // namespace
}  // namespace sonde::test
