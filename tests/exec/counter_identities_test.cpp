// SPDX-License-Identifier: Apache-2.0
//
// What must hold between counters, on random kernels, and that values depend
// neither on the run nor on the number of host threads.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "device_fixture.h"
#include "softgpu/exec/cache_run.h"

namespace sonde::softgpu::exec {
namespace {

using enum RawCounter;

constexpr uint32_t kWords = 1 << 14;

model::DeviceModel device() {
  model::DeviceModel d = testDevice();
  d.smCount = 3;
  d.l1 = {4096, 128, 32, 4, 1};
  d.l2 = {5 * 4096, 128, 32, 8, 5};
  return d;
}

// A loop of random accesses; where they go depends on the thread and the trip
// alone, never on what memory holds.
std::string randomKernel(uint32_t seed) {
  std::mt19937 random(seed);
  auto pick = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  std::string body;
  const uint32_t accesses = 6 + pick(10);
  for (uint32_t i = 0; i < accesses; ++i) {
    // Element index: a row, a stride or a hash.
    const std::string mix = std::to_string(random() | 1);
    const uint32_t shape = pick(3);
    if (shape == 0) body += "  mad.lo.u32 %r6, %r4, " + std::to_string(pick(300)) + ", %r2;\n";
    if (shape == 1) body += "  mad.lo.u32 %r6, %r2, " + std::to_string(1 + pick(40)) + ", %r4;\n";
    if (shape == 2)
      body += "  mad.lo.u32 %r6, %r2, " + mix + ", %r4;\n  shr.u32 %r7, %r6, 13;\n  xor.b32 %r6, %r6, %r7;\n";
    const uint32_t bits[] = {8, 16, 32, 64};
    const uint32_t width = bits[pick(4)];
    body += "  and.b32 %r6, %r6, " + std::to_string(kWords * 4 / (width / 8) - 1) + ";\n  mul.wide.u32 %rd3, %r6, " +
            std::to_string(width / 8) + ";\n  add.u64 %rd3, %rd1, %rd3;\n";
    std::string guard = "  ";
    if (pick(3) == 0) {
      body += "  and.b32 %r8, %r2, " + std::to_string(pick(32)) + ";\n  setp.eq.u32 %p2, %r8, " +
              std::to_string(pick(2)) + ";\n";
      guard = "  @%p2 ";
    }
    const std::string t = std::to_string(width), reg = width == 64 ? "%rd5" : width == 32 ? "%r9" : "%h1";
    const std::string space = pick(4) == 0 ? "" : ".global";
    switch (pick(8)) {
      case 0: body += guard + "st" + space + ".b" + t + " [%rd3], " + reg + ";\n"; break;
      case 1: body += guard + "ld.global.cg.b" + t + " " + reg + ", [%rd3];\n"; break;
      case 2:
        if (width < 32) break;
        body += guard + "atom.global.add.u" + t + " " + reg + ", [%rd3], 1;\n";
        break;
      case 3:
        if (width < 32) break;
        body += guard + "red.global.add.u" + t + " [%rd3], 1;\n";
        break;
      case 4:
        body += "  and.b32 %r8, %r6, 60;\n  add.u32 %r8, %r10, %r8;\n" + guard + "st.local.u32 [%r8], %r6;\n";
        break;
      case 5:
        body += "  and.b32 %r8, %r4, 60;\n  add.u32 %r8, %r10, %r8;\n" + guard + "ld.local.u32 %r9, [%r8];\n";
        break;
      default: body += guard + "ld" + space + ".b" + t + " " + reg + ", [%rd3];\n";
    }
  }
  return R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<4>;
  .reg .b16 %h<2>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<6>;
  .local .align 4 .b8 mine[64];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r2, %r1, %r3, %r2;
  mov.u32 %r10, mine;
  mov.u32 %r9, 0;
  mov.u64 %rd5, 0;
  mov.b16 %h1, 0;
  mov.u32 %r4, 0;
  and.b32 %r5, %r2, )" +
         std::to_string(1 + pick(15)) + R"(;
$loop:
)" + body +
         R"(
  add.u32 %r4, %r4, 1;
  setp.le.u32 %p1, %r4, %r5;
  @%p1 bra $loop;
  ret;
}
)";
}

CounterValues count(Kernels& k, CountLevel level, uint32_t blocks = 23, uint32_t threads = 72) {
  static DeviceArray<uint32_t> p(kWords + 64);
  k.level = level;
  k.counters = {};
  const LaunchOutcome out = k.run("k", {blocks}, {threads}, p.address);
  EXPECT_EQ(out.error, 0) << out.message;
  return k.counters;
}

class RandomKernels : public testing::TestWithParam<uint32_t> {};

TEST_P(RandomKernels, KeepTheIdentities) {
  const std::string ptx = randomKernel(GetParam());
  SCOPED_TRACE(ptx);
  Kernels k(ptx, device());
  const CounterValues all = count(k, CountLevel::caches);
  auto c = [&](RawCounter r) { return k.counter(r); };
  EXPECT_EQ(c(blocks_launched), 23u);
  EXPECT_EQ(c(warps_launched), 23u * 3);
  EXPECT_EQ(c(threads_launched), 23u * 72);
  EXPECT_LE(c(thread_inst_executed), 32 * c(inst_executed));
  EXPECT_LE(c(thread_inst_not_pred_off), c(thread_inst_executed));
  EXPECT_GE(c(inst_issued), c(inst_executed));
  EXPECT_EQ(c(inst_integer) + c(inst_bit_convert) + c(inst_control) + c(inst_compute_ld_st) + c(inst_misc) +
                c(inst_fp_32) + c(inst_fp_64) + c(inst_fp_16) + c(inst_inter_thread),
            c(thread_inst_not_pred_off));
  EXPECT_LE(c(divergent_branch), c(branch));
  // What L1 was asked for is what the requests touch.
  EXPECT_EQ(c(l1_global_load_hit) + c(l1_global_load_miss), c(global_load_sectors));
  EXPECT_EQ(c(l1_local_load_hit) + c(l1_local_load_miss), c(local_load_sectors));
  EXPECT_EQ(c(l1_local_store_hit) + c(l1_local_store_miss), c(local_store_sectors));
  // L2 is asked for what L1 lacks, stores and atomics.
  const uint64_t atomics = c(global_atom_sectors) + c(global_red_sectors);
  EXPECT_EQ(c(l2_atomic_queries), atomics);
  EXPECT_EQ(c(l2_read_sector_queries), c(l1_global_load_miss) + c(l1_local_load_miss) + atomics);
  EXPECT_GE(c(l2_write_sector_queries), c(global_store_sectors));
  EXPECT_LE(c(l2_write_sector_queries), c(global_store_sectors) + c(local_store_sectors));
  EXPECT_EQ(c(dram_read_sectors), c(l2_read_sector_misses));
  EXPECT_LE(c(dram_write_sectors), c(l2_write_sector_queries) + atomics);
  for (uint32_t i = 0; i < all.instances; ++i) {
    EXPECT_EQ(k.counterOf(i, l2_read_sector_hits) + k.counterOf(i, l2_read_sector_misses),
              k.counterOf(i, l2_read_sector_queries));
    EXPECT_EQ(k.counterOf(i, l2_write_sector_hits) + k.counterOf(i, l2_write_sector_misses),
              k.counterOf(i, l2_write_sector_queries));
    if (i >= 3) {
      EXPECT_EQ(k.counterOf(i, inst_executed) + k.counterOf(i, l1_global_load_miss) + k.counterOf(i, elapsed_cycles),
                0u);
    }
  }
  // A deeper level counts the same as the ones before it.
  const CounterValues requests = count(k, CountLevel::requests);
  for (uint32_t sm = 0; sm < 3; ++sm)
    for (uint32_t i = 0; i < static_cast<uint32_t>(l1_global_load_hit); ++i)
      EXPECT_EQ(requests.values[sm * kRawCounterCount + i], all.values[sm * kRawCounterCount + i]) << "counter " << i;
  const CounterValues instructions = count(k, CountLevel::instructions);
  for (RawCounter r : {inst_executed, thread_inst_executed, branch, divergent_branch})
    EXPECT_EQ(instructions.values[static_cast<uint32_t>(r)], all.values[static_cast<uint32_t>(r)]);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomKernels, testing::Range(0u, 24u));

TEST(Determinism, TwentyRunsAreIdentical) {
  Kernels k(randomKernel(100), device());
  const CounterValues first = count(k, CountLevel::caches, 200);
  for (int i = 0; i < 20; ++i) ASSERT_EQ(count(k, CountLevel::caches, 200).values, first.values) << i;
}

uint64_t digest(const CounterValues& values) {
  uint64_t h = 14695981039346656037u;
  for (uint64_t v : values.values) h = (h ^ v) * 1099511628211u;
  return h;
}

// One warp per block whose log is longer than its buffer: 32 lines a trip.
constexpr const char* kLongBlocks = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r4, 0;
$loop:
  mad.lo.u32 %r3, %r1, 4099, %r4;
  mad.lo.u32 %r3, %r2, 77, %r3;
  and.b32 %r3, %r3, 511;
  mul.wide.u32 %rd2, %r3, 128;
  add.u64 %rd2, %rd1, %rd2;
  ld.global.u32 %r5, [%rd2];
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 36000;
  @%p1 bra $loop;
  ret;
}
)";

std::string digests() {
  std::string text;
  for (uint32_t seed = 200; seed < 204; ++seed) {
    Kernels k(randomKernel(seed), device());
    text += std::to_string(digest(count(k, CountLevel::caches, 500))) + " ";
  }
  Kernels k(kLongBlocks, device());
  const CounterValues values = count(k, CountLevel::caches, 7, 32);
  static_assert(36000u * 32 > CacheRun::kFullLog);
  EXPECT_EQ(k.counter(l1_global_load_hit) + k.counter(l1_global_load_miss), 7u * 36000 * 32);
  return text + std::to_string(digest(values));
}

// Runs in processes of its own: the engine reads SONDE_THREADS once.
TEST(Determinism, PrintDigests) { std::printf("digests: %s\n", digests().c_str()); }

TEST(Determinism, HostThreadsDoNotMatter) {
  char self[4096];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  ASSERT_GT(n, 0);
  self[n] = 0;
  std::string first;
  for (const char* threads : {"1", "2", "7"}) {
    const std::string command =
        std::string("SONDE_THREADS=") + threads + " '" + self + "' --gtest_filter=Determinism.PrintDigests";
    FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char line[1024];
    std::string found;
    while (std::fgets(line, sizeof line, pipe))
      if (std::string(line).starts_with("digests: ")) found = line;
    ASSERT_EQ(pclose(pipe), 0);
    ASSERT_FALSE(found.empty());
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << threads << " host threads";
  }
}

// --- reading while a kernel runs ---

// For each of n steps: waits until *go passes the step's number, then one pmevent.
constexpr const char* kSteps = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 go, .param .u32 n)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [go];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 0;
$step:
  ld.volatile.global.u32 %r3, [%rd1];
  setp.le.u32 %p1, %r3, %r2;
  @%p1 bra $step;
  pmevent 0;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p2, %r2, %r1;
  @%p2 bra $step;
  ret;
}
)";

TEST(Progress, CountersCanBeReadWhileAKernelRuns) {
  constexpr uint32_t kSteps_ = 20;
  DeviceArray<uint32_t> go(1);
  Kernels k(kSteps, device());
  CounterMonitor monitor;
  k.monitor = &monitor;
  k.level = CountLevel::caches;
  EXPECT_TRUE(monitor.read().values.empty());
  LaunchOutcome out;
  std::thread runner([&] { out = k.run("k", {1}, {32}, go.address, kSteps_); });
  CounterValues before;
  for (uint32_t step = 1; step <= kSteps_; ++step) {
    __atomic_store_n(&go[0], step, __ATOMIC_RELEASE);
    for (uint64_t triggers = 0; triggers != step;) {
      CounterValues now = monitor.read();
      if (now.values.empty()) continue;
      triggers = now.values[static_cast<uint32_t>(prof_trigger_00)];
      ASSERT_LE(triggers, step);
      ASSERT_GE(triggers, step - 1);
      for (size_t i = 0; i < before.values.size(); ++i)
        ASSERT_GE(now.values[i], before.values[i]) << i % kRawCounterCount;
      before = std::move(now);
    }
  }
  runner.join();
  ASSERT_EQ(out.error, 0) << out.message;
  const CounterValues last = monitor.read();
  EXPECT_EQ(last.values, k.counters.values);
  for (size_t i = 0; i < last.values.size(); ++i) EXPECT_GE(last.values[i], before.values[i]) << i % kRawCounterCount;
  EXPECT_EQ(k.counter(prof_trigger_00), kSteps_);
  EXPECT_EQ(k.counter(global_load_requests), k.counter(l1_global_load_miss));  // volatile: one sector, never in L1
}

}  // namespace
}  // namespace sonde::softgpu::exec
