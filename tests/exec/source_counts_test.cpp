// SPDX-License-Identifier: Apache-2.0
//
// Source-level counts: values worked out by hand, and sums that agree with the
// counters of the same run.
#include <fstream>
#include <numeric>
#include <sstream>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

using Traffic = InstructionCount::Traffic;

const InstructionCount* atLine(const Kernels& k, uint32_t ptxLine) {
  for (const auto& c : k.instructions)
    if (c.ptxLine == ptxLine) return &c;
  return nullptr;
}

void expectTraffic(const Traffic& t, uint64_t executed, uint64_t threads, uint64_t transactions, uint64_t ideal) {
  EXPECT_EQ(t.executed, executed);
  EXPECT_EQ(t.threads, threads);
  EXPECT_EQ(t.transactions, transactions);
  EXPECT_EQ(t.ideal, ideal);
}

TEST(SourceCounts, InstructionsAndBranchesByHand) {
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
$low:
  mul.f32 %f1, %f1, %f1;
  ret;
}
)");
  k.sourceLevel = true;
  ASSERT_EQ(k.run("k", {1}, {40}).error, 0);
  ASSERT_EQ(k.instructions.size(), 8u);
  const struct {
    uint32_t line, index;
    uint64_t executed, threads, on;
    uint8_t recordClass;
  } expected[] = {
      {9, 0, 2, 40, 40, 18}, {10, 1, 2, 40, 40, 3}, {11, 2, 2, 40, 40, 4}, {12, 3, 2, 40, 4, 1},
      {13, 4, 2, 40, 4, 5},  {14, 5, 2, 36, 36, 1}, {16, 6, 2, 40, 40, 1}, {17, 7, 2, 40, 40, 5},
  };
  for (const auto& e : expected) {
    SCOPED_TRACE(e.line);
    const InstructionCount* c = atLine(k, e.line);
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->index, e.index);
    EXPECT_EQ(c->executed, e.executed);
    EXPECT_EQ(c->threads, e.threads);
    EXPECT_EQ(c->onThreads, e.on);
    EXPECT_EQ(c->recordClass, e.recordClass);
    EXPECT_EQ(c->isBranch, e.line == 13);
    EXPECT_EQ(c->access, 0);
    EXPECT_TRUE(c->file.empty());
  }
  // Only in warp 0 do lanes go both ways: warp 1 has no lane below 4.
  EXPECT_EQ(atLine(k, 13)->diverged, 1u);
}

TEST(SourceCounts, GlobalAccessesByHand) {
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<10>;
  .reg .f32 %f<8>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  mul.wide.u32 %rd4, %r1, 64;
  add.u64 %rd5, %rd1, %rd4;
  ld.global.cg.u32 %r3, [%rd5];
  ld.global.u32 %r4, [%rd1];
  setp.lt.u32 %p1, %r1, 5;
  @%p1 st.global.u32 [%rd3], %r4;
  mul.wide.u32 %rd6, %r1, 16;
  add.u64 %rd7, %rd1, %rd6;
  ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%rd7];
  red.global.add.u32 [%rd1], 1;
  atom.global.add.u32 %r5, [%rd3+4096], 1;
  st.global.u32 [%rd3+8192], %r5;
  ret;
}
)");
  k.sourceLevel = true;
  DeviceArray<uint32_t> a(4096);
  ASSERT_EQ(k.run("k", {3}, {64}, a.address).error, 0);  // 6 warps
  auto line = [&](uint32_t n) -> const InstructionCount& {
    const InstructionCount* c = atLine(k, n);
    static const InstructionCount none;
    EXPECT_NE(c, nullptr) << n;
    return c ? *c : none;
  };
  // A row of 32 words: 4 sectors, as few as 128 bytes fill.
  expectTraffic(line(14).global, 6, 192, 24, 24);
  EXPECT_EQ(line(14).access, 1);
  EXPECT_TRUE(line(14).cached);
  EXPECT_EQ(line(14).accessBytes, 4);
  EXPECT_EQ(line(14).recordClass, 6);
  // 64 bytes apart: a sector for each lane, where 4 would hold the words.
  expectTraffic(line(17).global, 6, 192, 192, 24);
  EXPECT_FALSE(line(17).cached);
  // One word for all.
  expectTraffic(line(18).global, 6, 192, 6, 6);
  // Lanes 0 to 4 of the first warp of each block: 20 bytes in one sector.
  expectTraffic(line(20).global, 3, 15, 3, 3);
  EXPECT_EQ(line(20).access, 2);
  EXPECT_FALSE(line(20).cached);
  EXPECT_EQ(line(20).executed, 6u);
  EXPECT_EQ(line(20).threads, 192u);
  // 16 bytes a thread: 512 bytes, 16 sectors.
  expectTraffic(line(23).global, 6, 192, 96, 96);
  EXPECT_EQ(line(23).accessBytes, 16);
  // All lanes at one word; then a row.
  expectTraffic(line(24).global, 6, 192, 6, 6);
  EXPECT_EQ(line(24).access, 4);
  EXPECT_EQ(line(24).recordClass, 13);
  expectTraffic(line(25).global, 6, 192, 24, 24);
  EXPECT_EQ(line(25).access, 3);
  for (uint32_t n : {14u, 17u, 18u, 20u, 23u, 24u, 25u}) expectTraffic(line(n).shared, 0, 0, 0, 0);
}

TEST(SourceCounts, SharedAndGenericAccessesByHand) {
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<12>;
  .reg .b64 %rd<10>;
  .shared .align 8 .b8 s[8192];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, s;
  shl.b32 %r3, %r1, 3;
  add.u32 %r4, %r2, %r3;
  st.shared.u32 [%r4], %r1;
  ld.shared.u64 %rd2, [%r4];
  shl.b32 %r5, %r1, 7;
  add.u32 %r6, %r2, %r5;
  ld.shared.u32 %r7, [%r6];
  mov.u64 %rd3, s;
  cvta.shared.u64 %rd4, %rd3;
  mul.wide.u32 %rd5, %r1, 4;
  add.u64 %rd6, %rd4, %rd5;
  st.u32 [%rd6], %r7;
  add.u64 %rd7, %rd1, %rd5;
  st.u32 [%rd7], %r7;
  atom.shared.add.u32 %r8, [%r4], 1;
  st.global.u32 [%rd7], %r8;
  ret;
}
)");
  k.sourceLevel = true;
  DeviceArray<uint32_t> a(32);
  ASSERT_EQ(k.run("k", {2}, {32}, a.address).error, 0);  // 2 warps
  auto line = [&](uint32_t n) -> const InstructionCount& {
    const InstructionCount* c = atLine(k, n);
    static const InstructionCount none;
    EXPECT_NE(c, nullptr) << n;
    return c ? *c : none;
  };
  // Every second word: two words of each bank that is used.
  expectTraffic(line(14).shared, 2, 64, 4, 2);
  EXPECT_EQ(line(14).recordClass, 7);
  // 8 bytes go by half warps, without conflicts.
  expectTraffic(line(15).shared, 2, 64, 4, 4);
  EXPECT_EQ(line(15).accessBytes, 8);
  // All words in one bank.
  expectTraffic(line(18).shared, 2, 64, 64, 2);
  // Generic addresses, of shared and of global memory.
  expectTraffic(line(23).shared, 2, 64, 2, 2);
  expectTraffic(line(23).global, 0, 0, 0, 0);
  EXPECT_EQ(line(23).recordClass, 9);
  expectTraffic(line(25).global, 2, 64, 8, 8);
  expectTraffic(line(25).shared, 0, 0, 0, 0);
  expectTraffic(line(26).shared, 2, 64, 4, 2);
  EXPECT_EQ(line(26).recordClass, 14);
}

TEST(SourceCounts, NameLinesAndFunctions) {
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.file 1 "dir/code.cu"
.file 2 "dir/part.h"
.func (.reg .b32 dummy) unused() { ret; }
.visible .func helper(.param .b32 x)
{
  .loc 2 7 3
  ret;
}
.visible .entry k()
{
  .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
  .loc 1 12 1
  {
  .param .b32 a;
  st.param.b32 [a], %r1;
  call helper, (a);
  }
  .loc 1 13 1
  ret;
}
)");
  k.sourceLevel = true;
  ASSERT_EQ(k.run("k", {1}, {32}).error, 0);
  ASSERT_EQ(k.instructions.size(), 5u);
  const InstructionCount& inHelper = k.instructions[0];
  EXPECT_EQ(k.program->functionName(inHelper.function), "helper");
  EXPECT_EQ(k.program->kernelOf(inHelper.function), 1u);  // none: there is one kernel
  EXPECT_EQ(inHelper.file, "dir/part.h");
  EXPECT_EQ(inHelper.line, 7u);
  EXPECT_EQ(inHelper.executed, 1u);
  const InstructionCount& first = k.instructions[1];
  EXPECT_EQ(k.program->functionName(first.function), "k");
  EXPECT_EQ(k.program->kernelOf(first.function), 0u);
  EXPECT_TRUE(first.file.empty());
  EXPECT_EQ(first.ptxLine, 15u);
  EXPECT_EQ(k.instructions[2].line, 12u);
  EXPECT_EQ(k.instructions[3].line, 12u);
  EXPECT_EQ(k.instructions[3].file, "dir/code.cu");
  EXPECT_EQ(k.instructions[4].line, 13u);
}

TEST(SourceCounts, IndexedBranchesDiverge) {
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
  .reg .b32 %r<4>;
  mov.u32 %r1, %tid.x;
  and.b32 %r2, %r1, 1;
  ts: .branchtargets a, b;
  brx.idx %r2, ts;
a:
  add.u32 %r3, %r1, 1;
  bra.uni end;
b:
  add.u32 %r3, %r1, 2;
end:
  shr.u32 %r2, %r1, 5;
  same: .branchtargets c, d;
  brx.idx %r2, same;
c:
  add.u32 %r3, %r1, 1;
d:
  ret;
}
)");
  k.sourceLevel = true;
  k.level = CountLevel::instructions;
  ASSERT_EQ(k.run("k", {1}, {64}).error, 0);
  // Even and odd lanes part; whole warps do not.
  EXPECT_EQ(atLine(k, 10)->diverged, 2u);
  EXPECT_EQ(atLine(k, 10)->executed, 2u);
  EXPECT_EQ(atLine(k, 19)->diverged, 0u);
  EXPECT_EQ(k.counter(RawCounter::divergent_branch), 2u);
  EXPECT_EQ(k.counter(RawCounter::branch), 6u);
}

// The kernels of the hardware measurement: sums over instructions are the
// counters, whatever the number of blocks.
class SourceSums : public testing::TestWithParam<const char*> {};

TEST_P(SourceSums, AreTheCounters) {
  static const std::string ptx = [] {
    std::ifstream in(std::string(SONDE_TEST_DATA) + "/microkernels.ptx");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }();
  Kernels k(ptx);
  constexpr size_t words = (1u << 20) / 4;
  DeviceArray<uint32_t> p(words, 1), q(words, 1);
  k.level = CountLevel::requests;
  const std::string name = GetParam();
  const bool one = name == "red_same" || name == "shared_atomic_same";
  const LaunchOutcome plain = one ? k.run(name, {7}, {200}, q.address) : k.run(name, {7}, {200}, p.address, q.address);
  ASSERT_EQ(plain.error, 0) << plain.message;
  const CounterValues expected = k.counters;
  k.counters = {};
  k.sourceLevel = true;
  for (size_t i = 0; i < words; ++i) p[i] = q[i] = 1;
  const LaunchOutcome out = one ? k.run(name, {7}, {200}, q.address) : k.run(name, {7}, {200}, p.address, q.address);
  ASSERT_EQ(out.error, 0) << out.message;
  // The variant counts what the other does; the model's cycles depend on clocks.
  using enum RawCounter;
  for (uint32_t c = 0; c < kRawCounterCount; ++c) {
    const auto which = static_cast<RawCounter>(c);
    if (which == active_cycles || which == active_warps || which == elapsed_cycles) continue;
    for (uint32_t i = 0; i < expected.instances; ++i)
      EXPECT_EQ(k.counterOf(i, which), expected.values[size_t{i} * kRawCounterCount + c]) << "counter " << c;
  }
  auto sum = [&](auto&& of) {
    uint64_t n = 0;
    for (const auto& i : k.instructions) n += of(i);
    return n;
  };
  auto traffic = [&](uint8_t access, bool global, uint64_t Traffic::* field) {
    return sum([&](const auto& i) { return i.access == access ? (global ? i.global : i.shared).*field : 0; });
  };
  EXPECT_EQ(sum([](const auto& i) { return i.executed; }), k.counter(inst_executed));
  EXPECT_EQ(sum([](const auto& i) { return i.threads; }), k.counter(thread_inst_executed));
  EXPECT_EQ(sum([](const auto& i) { return i.onThreads; }), k.counter(thread_inst_not_pred_off));
  EXPECT_EQ(sum([](const auto& i) { return i.isBranch ? i.executed : 0; }), k.counter(branch));
  EXPECT_EQ(sum([](const auto& i) { return i.diverged; }), k.counter(divergent_branch));
  auto ofClass = [&](std::initializer_list<int> classes) {
    return sum([&](const auto& i) {
      return std::find(classes.begin(), classes.end(), i.recordClass) != classes.end() ? i.onThreads : 0;
    });
  };
  EXPECT_EQ(ofClass({1}), k.counter(inst_fp_32));
  EXPECT_EQ(ofClass({2}), k.counter(inst_fp_64));
  EXPECT_EQ(ofClass({3}), k.counter(inst_integer));
  EXPECT_EQ(ofClass({4}), k.counter(inst_bit_convert));
  EXPECT_EQ(ofClass({5}), k.counter(inst_control));
  EXPECT_EQ(ofClass({6, 7, 8, 9, 11, 13, 14}), k.counter(inst_compute_ld_st));
  EXPECT_EQ(ofClass({16}), k.counter(inst_inter_thread));
  EXPECT_EQ(ofClass({17, 18}), k.counter(inst_misc));
  EXPECT_EQ(traffic(1, true, &Traffic::executed), k.counter(global_load_requests));
  EXPECT_EQ(traffic(1, true, &Traffic::transactions), k.counter(global_load_sectors));
  EXPECT_EQ(traffic(2, true, &Traffic::executed), k.counter(global_store_requests));
  EXPECT_EQ(traffic(2, true, &Traffic::transactions), k.counter(global_store_sectors));
  EXPECT_EQ(traffic(3, true, &Traffic::executed), k.counter(global_atom_requests));
  EXPECT_EQ(traffic(3, true, &Traffic::transactions), k.counter(global_atom_sectors));
  EXPECT_EQ(traffic(3, true, &Traffic::threads), k.counter(global_atom_threads));
  EXPECT_EQ(traffic(4, true, &Traffic::executed), k.counter(global_red_requests));
  EXPECT_EQ(traffic(4, true, &Traffic::transactions), k.counter(global_red_sectors));
  EXPECT_EQ(traffic(1, false, &Traffic::executed), k.counter(shared_load_requests));
  EXPECT_EQ(traffic(1, false, &Traffic::transactions), k.counter(shared_load_wavefronts));
  EXPECT_EQ(traffic(2, false, &Traffic::executed), k.counter(shared_store_requests));
  EXPECT_EQ(traffic(2, false, &Traffic::transactions), k.counter(shared_store_wavefronts));
  EXPECT_EQ(traffic(3, false, &Traffic::executed) + traffic(4, false, &Traffic::executed),
            k.counter(shared_atom_requests));
  EXPECT_EQ(traffic(1, false, &Traffic::transactions) - traffic(1, false, &Traffic::ideal),
            k.counter(shared_load_bank_conflicts));
  EXPECT_EQ(traffic(2, false, &Traffic::transactions) - traffic(2, false, &Traffic::ideal),
            k.counter(shared_store_bank_conflicts));
  uint64_t bytes = 0;
  for (const auto& i : k.instructions) {
    EXPECT_LE(i.global.ideal, i.global.transactions);
    EXPECT_LE(i.shared.ideal, i.shared.transactions);
    if (i.access == 1) bytes += i.global.threads * i.accessBytes;
  }
  EXPECT_EQ(bytes, k.counter(global_load_bytes));
}

INSTANTIATE_TEST_SUITE_P(Kernels, SourceSums,
                         testing::Values("copy_f32", "copy_f64", "copy_f128", "copy_u8", "load_stride2",
                                         "load_stride32", "load_misaligned1", "load_broadcast", "store_stride4",
                                         "shared_free", "shared_2way", "shared_32way", "shared_broadcast",
                                         "branch_uniform", "branch_divergent", "atomic_same", "red_same",
                                         "shared_atomic_same", "local_array", "shuffle_sum"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sonde::softgpu::exec
