// SPDX-License-Identifier: Apache-2.0
//
// Accesses of random sizes, spaces and guards at addresses that the test chose:
// what source-level counts say, against a count of the test's own.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

using Traffic = InstructionCount::Traffic;

void expectTraffic(const Traffic& t, uint64_t executed, uint64_t threads, uint64_t transactions, uint64_t ideal) {
  EXPECT_EQ(t.executed, executed);
  EXPECT_EQ(t.threads, threads);
  EXPECT_EQ(t.transactions, transactions);
  EXPECT_EQ(t.ideal, ideal);
}

struct Expected {
  uint64_t executed = 0, threads = 0, transactions = 0, ideal = 0;
};

// What a request of one warp costs. `at`: byte addresses of the lanes that make it, by lane.
Expected globalRequest(const std::map<uint32_t, uint32_t>& at, uint32_t bytes) {
  std::set<uint32_t> sectors, wanted;
  for (const auto& [lane, address] : at)
    for (uint32_t b = 0; b < bytes; ++b) {
      sectors.insert((address + b) / 32);
      wanted.insert(address + b);
    }
  return {1, at.size(), sectors.size(), (wanted.size() + 31) / 32};
}

Expected sharedRequest(const std::map<uint32_t, uint32_t>& at, uint32_t bytes) {
  Expected e{1, at.size(), 0, 0};
  const uint32_t together = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  for (uint32_t first = 0; first < 32; first += together) {
    std::map<uint32_t, std::set<uint32_t>> words;  // of each bank
    for (const auto& [lane, address] : at)
      if (lane >= first && lane < first + together)
        for (uint32_t w = address / 4; w <= (address + bytes - 1) / 4; ++w) words[w % 32].insert(w);
    size_t most = 0;
    for (const auto& [bank, distinct] : words) most = std::max(most, distinct.size());
    e.transactions += most;
    e.ideal += most != 0;
  }
  return e;
}

class ChosenAddresses : public testing::TestWithParam<uint32_t> {};

TEST_P(ChosenAddresses, CostWhatAnIndependentCountSays) {
  std::mt19937 random(GetParam());
  auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  constexpr uint32_t kAccesses = 24, kThreads = 80, kWarps = 3, kBlocks = 2, kOff = 0x80000000u, kBytes = 8192;
  static constexpr struct {
    const char *load, *store;
    uint32_t bytes;
  } kForms[] = {{"ld%.u8 %r9, ", "st%.u8 @, %r9", 1},
                {"ld%.u16 %h1, ", "st%.u16 @, %h1", 2},
                {"ld%.u32 %r9, ", "st%.u32 @, %r9", 4},
                {"ld%.u64 %rd9, ", "st%.u64 @, %rd9", 8},
                {"ld%.v2.f64 {%fd1, %fd2}, ", "st%.v2.f64 @, {%fd1, %fd2}", 16}};
  struct Access {
    uint32_t bytes;
    bool shared;
  };
  std::vector<Access> accesses;
  DeviceArray<uint32_t> table(size_t{kAccesses} * kBlocks * kThreads);
  std::string body;
  for (uint32_t a = 0; a < kAccesses; ++a) {
    const auto& form = kForms[pick(5)];
    const bool shared = pick(2), load = pick(2), generic = pick(3) == 0;
    accesses.push_back({form.bytes, shared});
    // A pattern for all warps: a row from anywhere, strides, halves, few places, or anywhere.
    const uint32_t pattern = pick(5), step = 1 + pick(40), from = pick(64), off = pick(3);
    for (uint32_t t = 0; t < kBlocks * kThreads; ++t) {
      const uint32_t lane = t % kThreads % 32;
      const uint32_t element = pattern == 0   ? from + lane
                               : pattern == 1 ? from + lane * step
                               : pattern == 2 ? (lane < 16 ? from : from + step * 7) + lane % 16
                               : pattern == 3 ? pick(3) * 17
                                              : pick(1 << 20);
      uint32_t& entry = table[a * kBlocks * kThreads + t];
      entry = element * form.bytes % kBytes;
      if (off == 1 && pick(3) == 0) entry |= kOff;
      if (off == 2 && t % kThreads >= 20) entry |= kOff;
    }
    std::string text = load ? std::string(form.load) + "@" : form.store;
    text.replace(text.find('%'), 1, generic ? "" : shared ? ".shared" : ".global");
    text.replace(text.find('@'), 1, shared && !generic ? "[%r7]" : "[%rd7]");
    body += "ld.global.u32 %r5, [%rd3+" + std::to_string(a * kBlocks * kThreads * 4) +
            "]; and.b32 %r6, %r5, 65535; setp.lt.s32 %p1, %r5, 0; cvt.u64.u32 %rd7, %r6; add.u64 %rd7, %rd7, " +
            (shared ? "%rd6" : "%rd2") + "; add.u32 %r7, %r6, %r4; \n@!%p1 " + text + ";\n";
  }
  Kernels k(R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 table, .param .u64 data)
{
  .reg .pred %p<2>; .reg .b16 %h<2>; .reg .b32 %r<12>; .reg .b64 %rd<12>; .reg .f64 %fd<3>;
  .shared .align 16 .b8 s[8192];
  ld.param.u64 %rd1, [table]; ld.param.u64 %rd2, [data];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 80, %r1;
  mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd3, %rd1;
  mov.u32 %r4, s; mov.u64 %rd5, s; cvta.shared.u64 %rd6, %rd5;
)" + body + "ret;\n}\n");
  ASSERT_TRUE(k.program) << body;
  k.sourceLevel = true;
  DeviceArray<uint32_t> data(kBytes / 4);
  ASSERT_EQ(k.run("k", {kBlocks}, {kThreads}, table.address, data.address).error, 0);
  const uint32_t base = static_cast<uint32_t>(data.address) % 4096;
  ASSERT_EQ(base, 0u);  // so that offsets tell sectors
  constexpr uint32_t kBefore = 10, kOfEach = 7;
  for (uint32_t a = 0; a < kAccesses; ++a) {
    SCOPED_TRACE("access " + std::to_string(a) + "\n" + body);
    Expected expected;
    for (uint32_t block = 0; block < kBlocks; ++block)
      for (uint32_t warp = 0; warp < kWarps; ++warp) {
        std::map<uint32_t, uint32_t> at;
        for (uint32_t lane = 0; lane < 32 && warp * 32 + lane < kThreads; ++lane) {
          const uint32_t entry = table[(a * kBlocks + block) * kThreads + warp * 32 + lane];
          if (!(entry & kOff)) at[lane] = entry;
        }
        if (at.empty()) continue;
        const Expected e =
            accesses[a].shared ? sharedRequest(at, accesses[a].bytes) : globalRequest(at, accesses[a].bytes);
        expected.executed += e.executed;
        expected.threads += e.threads;
        expected.transactions += e.transactions;
        expected.ideal += e.ideal;
      }
    const auto found = std::find_if(k.instructions.begin(), k.instructions.end(),
                                    [&](const auto& i) { return i.index == kBefore + a * kOfEach + kOfEach - 1; });
    ASSERT_NE(found, k.instructions.end());
    EXPECT_EQ(found->accessBytes, accesses[a].bytes);
    EXPECT_EQ(found->executed, uint64_t{kBlocks} * kWarps);
    EXPECT_EQ(found->threads, uint64_t{kBlocks} * kThreads);
    EXPECT_EQ(found->onThreads, expected.threads);
    expectTraffic(accesses[a].shared ? found->shared : found->global, expected.executed, expected.threads,
                  expected.transactions, expected.ideal);
    expectTraffic(accesses[a].shared ? found->global : found->shared, 0, 0, 0, 0);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, ChosenAddresses, testing::Range(0u, 20u));

}  // namespace
}  // namespace sonde::softgpu::exec
