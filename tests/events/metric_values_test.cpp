// SPDX-License-Identifier: Apache-2.0
// Every metric of the table on a kernel whose value is worked out by hand: 4
// blocks of 256 threads, 32 warps, 1024 threads, on the first 4 SMs. Events are
// collected pass by pass, as a profiler without kernel replay does it.
#include <cmath>
#include <set>

#include "events_fixture.h"

namespace sonde::test {
namespace {

constexpr double kWarps = 32, kThreads = 1024, kSectors = 128;  // sectors: of a row of 1024 words

// The row of thread %r3 in p and q, and in one for every second word of q.
const std::string kRows =
    "mul.wide.u32 %rd3, %r3, 4; add.u64 %rd4, %rd3, %rd2; add.u64 %rd3, %rd3, %rd1;"
    "mul.wide.u32 %rd5, %r3, 8; add.u64 %rd5, %rd5, %rd2;\n";
constexpr double kRowsLength = 5;

struct Kernel {
  std::string body;
  std::string declarations;
};

// A coalesced load, a store to every second word, a reduction and an atomic.
const Kernel kGlobal = {kRows +
                            "ld.global.u32 %r5, [%rd3]; st.global.u32 [%rd5], %r5; red.global.add.u32 [%rd1], 1;"
                            "atom.global.add.u32 %r6, [%rd1], 1; st.global.u32 [%rd4], %r6;",
                        ""};
// Stores with a bank conflict of two ways, loads with one of four.
const Kernel kShared = {
    "and.b32 %r5, %r1, 31; mov.u32 %r6, s; shl.b32 %r7, %r5, 3; add.u32 %r7, %r7, %r6; st.shared.u32 [%r7], %r5;"
    "shl.b32 %r7, %r5, 4; add.u32 %r7, %r7, %r6; ld.shared.u32 %r8, [%r7];",
    ".shared .align 16 .b8 s[4096];\n"};
// The odd lanes skip an instruction; of the rest every other is predicated off.
const Kernel kDiverge = {
    "and.b32 %r5, %r1, 1; setp.ne.u32 %p1, %r5, 0; and.b32 %r6, %r1, 2; setp.ne.u32 %p2, %r6, 0;"
    "@%p1 bra L; @%p2 add.u32 %r7, %r3, 1;\nL:",
    ""};
// A local store and load, and a global load.
const Kernel kLocal = {".local .align 4 .b8 l[16];\n" + kRows +
                           "mov.u32 %r6, l; st.local.u32 [%r6], %r3; ld.local.u32 %r7, [%r6]; ld.local.u32 %r8, [%r6];"
                           "ld.global.u32 %r9, [%rd3];",
                       ""};
// L1: a miss and a hit. L2: a miss, and a hit of the load that passes L1 by.
// Stores: a miss and a hit in L2.
const Kernel kCaches = {kRows +
                            "ld.global.u32 %r5, [%rd3]; ld.global.u32 %r6, [%rd3]; ld.global.cg.u32 %r7, [%rd3];"
                            "st.global.u32 [%rd4], %r5; st.global.u32 [%rd4], %r6;",
                        ""};
// Per thread: single 1 add, 2 mul, 3 fma, 1 special; double 2 add, 1 mul, 1 fma.
const Kernel kFloat = {
    "mov.f32 %f1, 0f3F800000; add.f32 %f2, %f1, %f1; mul.f32 %f3, %f2, %f2; mul.f32 %f3, %f3, %f2;"
    "fma.rn.f32 %f4, %f3, %f2, %f1; fma.rn.f32 %f4, %f4, %f2, %f1; fma.rn.f32 %f4, %f4, %f2, %f1; sin.approx.f32 %f5, "
    "%f4;"
    "mov.f64 %fd1, 0d3FF0000000000000; add.f64 %fd2, %fd1, %fd1; add.f64 %fd2, %fd2, %fd1; mul.f64 %fd3, %fd2, %fd1;"
    "fma.rn.f64 %fd4, %fd3, %fd2, %fd1;",
    ""};
// Beside the frame: 2 integer, 2 conversions, 1 vote, 1 barrier, a branch.
const Kernel kClasses = {
    "add.u32 %r5, %r3, 1; setp.ne.u32 %p1, %r5, 0; cvt.u64.u32 %rd3, %r5; cvt.rn.f32.u32 %f1, %r5;"
    "vote.all.pred %p2, %p1; bar.sync 0; bra L;\nL:",
    ""};
// Three fma and no memory: of each block 8 warps of 10 instructions, issued 4
// a cycle, and 600 cycles to fill and drain.
const Kernel kCycles = {"fma.rn.f32 %f1, %f1, %f2, %f3; fma.rn.f32 %f2, %f1, %f2, %f3; fma.rn.f32 %f3, %f1, %f2, %f3;",
                        ""};
constexpr double kActive = 8 * (kFrame + 3) / 4 + 600;
// A word in each line of twice what L2 holds; see DirtyLinesGoToMemory.
const Kernel kNothing = {"", ""};

class MetricValues : public Events {
 protected:
  void SetUp() override {
    Events::SetUp();
    int sms = 0;
    CU_OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    smCount = sms;
    kepler = std::getenv("EVENTS_CAPABILITY") != nullptr;
  }
  CUpti_MetricID id(const std::string& name) {
    CUpti_MetricID m = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiMetricGetIdFromName(device, name.c_str(), &m)) << name;
    return m;
  }
  template <class T>
  T attribute(CUpti_MetricID m, CUpti_MetricAttribute which) {
    T value{};
    size_t bytes = sizeof value;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiMetricGetAttribute(m, which, &bytes, &value));
    EXPECT_EQ(sizeof value, bytes);
    return value;
  }
  struct Collected {
    uint32_t passes = 0;
    std::vector<CUpti_EventID> ids;
    std::vector<std::vector<uint64_t>> perInstance;
  };
  Collected collect(CUpti_MetricID m, CUfunction f, unsigned grid, std::initializer_list<uint64_t> arguments) {
    Collected c;
    CUpti_EventGroupSets* sets = nullptr;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiMetricCreateEventGroupSets(context, sizeof m, &m, &sets));
    if (!sets) return c;
    c.passes = sets->numSets;
    for (uint32_t s = 0; s < sets->numSets; ++s) {
      CUpti_EventGroupSet& set = sets->sets[s];
      uint32_t on = 1;
      for (uint32_t g = 0; g < set.numEventGroups; ++g)
        EXPECT_EQ(CUPTI_SUCCESS,
                  cuptiEventGroupSetAttribute(set.eventGroups[g], CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES,
                                              sizeof on, &on));
      EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetEnable(&set));
      launch(f, grid, 256, arguments);
      for (uint32_t g = 0; g < set.numEventGroups; ++g) {
        std::vector<uint64_t> v(4096);
        CUpti_EventID e[64];
        size_t vb = v.size() * 8, eb = sizeof e, got = 0;
        EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupReadAllEvents(set.eventGroups[g], CUPTI_EVENT_READ_FLAG_NONE, &vb,
                                                              v.data(), &eb, e, &got));
        const size_t n = vb / 8 / got;
        for (size_t i = 0; i < got; ++i) {
          c.ids.push_back(e[i]);
          c.perInstance.emplace_back();
          for (size_t k = 0; k < n; ++k) c.perInstance.back().push_back(v[k * got + i]);
        }
      }
      EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetDisable(&set));
    }
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetsDestroy(sets));
    return c;
  }
  // Of all instances (-1) or of one; the number whatever its kind.
  double evaluate(CUpti_MetricID m, const Collected& c, int instance, uint64_t durationNs) {
    std::vector<CUpti_EventID> ids = c.ids;
    std::vector<uint64_t> values;
    for (const auto& v : c.perInstance) {
      uint64_t sum = 0;
      for (size_t i = 0; i < v.size(); ++i) sum += instance < 0 || i == static_cast<size_t>(instance) ? v[i] : 0;
      values.push_back(sum);
    }
    CUpti_MetricValue result{};
    EXPECT_EQ(CUPTI_SUCCESS, cuptiMetricGetValue(device, m, ids.size() * sizeof ids[0], ids.data(),
                                                 values.size() * sizeof values[0], values.data(), durationNs, &result));
    switch (attribute<CUpti_MetricValueKind>(m, CUPTI_METRIC_ATTR_VALUE_KIND)) {
      case CUPTI_METRIC_VALUE_KIND_DOUBLE: return result.metricValueDouble;
      case CUPTI_METRIC_VALUE_KIND_PERCENT: return result.metricValuePercent;
      case CUPTI_METRIC_VALUE_KIND_UINT64: return static_cast<double>(result.metricValueUint64);
      case CUPTI_METRIC_VALUE_KIND_THROUGHPUT: return static_cast<double>(result.metricValueThroughput);
      case CUPTI_METRIC_VALUE_KIND_UTILIZATION_LEVEL: return result.metricValueUtilizationLevel;
      default: ADD_FAILURE() << "kind"; return 0;
    }
  }
  bool perInstance(CUpti_MetricID m) {
    return attribute<uint32_t>(m, CUPTI_METRIC_ATTR_EVALUATION_MODE) & CUPTI_METRIC_EVALUATION_MODE_PER_INSTANCE;
  }

  double smCount = 0;
  bool kepler = false;
};

enum class Kind { number, percent, count, rate, level };

struct Case {
  const char* metric;
  Kind kind;
  const Kernel* kernel;
  double value;
  uint64_t durationNs = 1000;
};

TEST_F(MetricValues, EveryMetricByHand) {
  using enum Kind;
  // Throughputs: bytes in 1000 ns, as bytes a second.
  const double perSecond = 1e6;
  const double issueRate = kepler ? 7 : 4, flopsSingle = kepler ? 384 : 256;
  const Case cases[] = {
      {"inst_executed", count, &kCycles, kWarps * (kFrame + 3)},
      // Two-way stores and four-way loads: 1 and 3 replays.
      {"inst_issued", count, &kShared, kWarps * (kFrame + 8 + 4)},
      {"ipc", number, &kCycles, 8 * 10 / kActive},
      {"issued_ipc", number, &kCycles, 8 * 10 / kActive},
      {"issue_slot_utilization", percent, &kCycles, 100 * 8 * 10 / (kActive * issueRate)},
      {"inst_per_warp", number, &kDiverge, kFrame + 6},
      {"inst_replay_overhead", number, &kShared, 4 / (kFrame + 8.0)},
      {"shared_replay_overhead", number, &kShared, 4 / (kFrame + 8.0)},
      {"achieved_occupancy", number, &kCycles, 8 / 64.0},
      {"sm_efficiency", percent, &kCycles, 100 * 4 / smCount},
      {"branch_efficiency", percent, &kDiverge, 0},
      {"warp_execution_efficiency", percent, &kDiverge, 100 * (12 * 32 + 16) / (13 * 32.0)},
      // Of the 16 lanes that come to the last instruction 8 run it.
      {"warp_nonpred_execution_efficiency", percent, &kDiverge, 100 * (11 * 32 + 16 + 8) / (13 * 32.0)},
      {"gld_transactions", count, &kGlobal, kSectors},
      {"gld_transactions_per_request", number, &kGlobal, 4},
      {"gld_efficiency", percent, &kGlobal, 100},
      {"gld_requested_throughput", rate, &kGlobal, 4 * kThreads * perSecond},
      {"gld_throughput", rate, &kGlobal, 32 * kSectors * perSecond},
      // Every second word: 8 sectors; the row: 4.
      {"gst_transactions", count, &kGlobal, kWarps * 12},
      {"gst_transactions_per_request", number, &kGlobal, 6},
      {"gst_efficiency", percent, &kGlobal, 100 * 256 / (12 * 32.0)},
      {"gst_requested_throughput", rate, &kGlobal, 8 * kThreads * perSecond},
      {"gst_throughput", rate, &kGlobal, 32 * 12 * kWarps * perSecond},
      {"shared_load_transactions", count, &kShared, kWarps * 4},
      {"shared_load_transactions_per_request", number, &kShared, 4},
      {"shared_load_throughput", rate, &kShared, 128 * 4 * kWarps * perSecond},
      {"shared_store_transactions", count, &kShared, kWarps * 2},
      {"shared_store_transactions_per_request", number, &kShared, 2},
      {"shared_store_throughput", rate, &kShared, 128 * 2 * kWarps * perSecond},
      // 256 bytes in six passes of 128.
      {"shared_efficiency", percent, &kShared, 100 * 256 / (6 * 128.0)},
      {"local_memory_overhead", percent, &kLocal, 75},
      {"local_load_requests", count, &kLocal, kWarps * 2},
      {"local_store_requests", count, &kLocal, kWarps},
      {"atomic_transactions", count, &kGlobal, kWarps * 2},
      {"l1_cache_global_hit_rate", percent, &kCaches, 100 / 3.0},
      // The store misses, the loads hit.
      {"l1_cache_local_hit_rate", percent, &kLocal, 200 / 3.0},
      {"tex_cache_hit_rate", percent, &kNothing, 0},  // see Textures
      {"tex_cache_transactions", count, &kNothing, 0},
      {"tex_cache_throughput", rate, &kNothing, 0},
      {"l2_read_transactions", count, &kCaches, 2 * kSectors},
      {"l2_write_transactions", count, &kCaches, 2 * kSectors},
      {"l2_read_throughput", rate, &kCaches, 32 * 2 * kSectors * perSecond},
      {"l2_write_throughput", rate, &kCaches, 32 * 2 * kSectors * perSecond},
      {"l2_l1_read_hit_rate", percent, &kCaches, 50},
      {"l2_write_hit_rate", percent, &kCaches, 50},
      {"dram_read_transactions", count, &kCaches, kSectors},
      {"dram_read_throughput", rate, &kCaches, 32 * kSectors * perSecond},
      {"dram_write_transactions", count, &kCaches, 0},  // see DirtyLinesGoToMemory
      {"dram_write_throughput", rate, &kCaches, 0},
      // 4096 bytes in 12 ns are 341 of 670 GB/s: 5.1 of 10. Of 288 GB/s they are more than all, of 4814 0.7.
      {"dram_utilization", level, &kCaches,
       kepler   ? 10.0
       : hopper ? 1.0
                : 5.0,
       12},
      {"flop_count_sp", count, &kFloat, kThreads * (1 + 2 + 2 * 3)},
      {"flop_count_sp_add", count, &kFloat, kThreads},
      {"flop_count_sp_mul", count, &kFloat, kThreads * 2},
      {"flop_count_sp_fma", count, &kFloat, kThreads * 3},
      {"flop_count_sp_special", count, &kFloat, kThreads},
      {"flop_count_dp", count, &kFloat, kThreads * (2 + 1 + 2)},
      {"flop_count_dp_add", count, &kFloat, kThreads * 2},
      {"flop_count_dp_mul", count, &kFloat, kThreads},
      {"flop_count_dp_fma", count, &kFloat, kThreads},
      {"flop_count_hp", count, &kFloat, 0},  // see HalfPrecision
      {"flop_count_hp_add", count, &kFloat, 0},
      {"flop_count_hp_mul", count, &kFloat, 0},
      {"flop_count_hp_fma", count, &kFloat, 0},
      {"flop_sp_efficiency", percent, &kCycles, 100 * 6 * kThreads / (smCount * kActive * flopsSingle)},
      {"flop_dp_efficiency", percent, &kCycles, 0},  // see DoublePrecisionEfficiency
      // The frame has the multiply-add, and three moves, two loads of parameters and the return.
      {"inst_integer", count, &kClasses, kThreads * (1 + 2)},
      {"inst_fp_32", count, &kFloat, kThreads * 7},
      {"inst_fp_64", count, &kFloat, kThreads * 4},
      {"inst_fp_16", count, &kFloat, 0},
      {"inst_bit_convert", count, &kClasses, kThreads * 2},
      {"inst_control", count, &kClasses, kThreads * 2},
      {"inst_compute_ld_st", count, &kGlobal, kThreads * (2 + 5)},
      {"inst_inter_thread_communication", count, &kClasses, kThreads},
      {"inst_misc", count, &kClasses, kThreads * (3 + 1)},
  };
  std::set<std::string> covered;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.metric);
    EXPECT_TRUE(covered.insert(c.metric).second);
    CUpti_MetricID m = id(c.metric);
    const CUpti_MetricValueKind kinds[] = {CUPTI_METRIC_VALUE_KIND_DOUBLE, CUPTI_METRIC_VALUE_KIND_PERCENT,
                                           CUPTI_METRIC_VALUE_KIND_UINT64, CUPTI_METRIC_VALUE_KIND_THROUGHPUT,
                                           CUPTI_METRIC_VALUE_KIND_UTILIZATION_LEVEL};
    EXPECT_EQ(kinds[static_cast<int>(c.kind)], attribute<CUpti_MetricValueKind>(m, CUPTI_METRIC_ATTR_VALUE_KIND));
    const CUdeviceptr p = buffer(1 << 16), q = buffer(1 << 16);
    const Collected got = collect(m, function(kernel(c.kernel->body, c.kernel->declarations), "k"), 4, {p, q});
    const double all = evaluate(m, got, -1, c.durationNs);
    EXPECT_NEAR(c.value, all, 1e-9 * std::max(1.0, c.value));
    if (!perInstance(m)) continue;
    // Four SMs did the same; the others, nothing.
    const double first = evaluate(m, got, 0, c.durationNs);
    if (c.kind == count) {
      EXPECT_DOUBLE_EQ(all / 4, first);
      EXPECT_DOUBLE_EQ(0, evaluate(m, got, 5, c.durationNs));
    } else if (std::string(c.metric) == "sm_efficiency") {
      EXPECT_DOUBLE_EQ(100, first);
    } else if (std::string(c.metric) == "flop_sp_efficiency") {
      EXPECT_DOUBLE_EQ(100 * 6 * 256 / (kActive * flopsSingle), first);
    } else {
      EXPECT_DOUBLE_EQ(all, first);  // a ratio
    }
  }
  // None is left out.
  uint32_t n = 0;
  CUPTI_OK(cuptiDeviceGetNumMetrics(device, &n));
  std::vector<CUpti_MetricID> ids(n);
  size_t bytes = n * sizeof ids[0];
  CUPTI_OK(cuptiDeviceEnumMetrics(device, &bytes, ids.data()));
  EXPECT_GE(n, 40u);
  for (CUpti_MetricID m : ids) {
    char name[100];
    bytes = sizeof name;
    CUPTI_OK(cuptiMetricGetAttribute(m, CUPTI_METRIC_ATTR_NAME, &bytes, name));
    EXPECT_TRUE(covered.count(name)) << name;
  }
}

TEST_F(MetricValues, MetricsOfSeveralPasses) {
  // Eight events of a domain that counts four at once.
  const CUdeviceptr p = buffer(1 << 16), q = buffer(1 << 16);
  CUfunction f = function(kernel(kCaches.body), "k");
  EXPECT_EQ(2u, collect(id("l2_l1_read_hit_rate"), f, 4, {p, q}).passes);
  EXPECT_EQ(1u, collect(id("ipc"), f, 4, {p, q}).passes);
  CUpti_EventGroupSets* sets = nullptr;
  CUPTI_OK(cuptiMetricGetRequiredEventGroupSets(context, id("l2_l1_read_hit_rate"), &sets));
  ASSERT_NE(nullptr, sets);
  EXPECT_EQ(2u, sets->numSets);
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
  sets = reinterpret_cast<CUpti_EventGroupSets*>(&sets);
  CUPTI_OK(cuptiMetricGetRequiredEventGroupSets(context, id("ipc"), &sets));
  EXPECT_EQ(nullptr, sets);  // grouped in any manner
  // Several metrics share their events: two hit rates have four domains' worth
  // of twelve events, not sixteen.
  CUpti_MetricID two[2] = {id("l2_l1_read_hit_rate"), id("l2_read_transactions")};
  CUPTI_OK(cuptiMetricCreateEventGroupSets(context, sizeof two, two, &sets));
  EXPECT_EQ(2u, sets->numSets);
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
}

TEST_F(MetricValues, DirtyLinesGoToMemory) {
  // One word in each line of twice the size of L2: the first half has to go.
  int bytes = 0;
  CU_OK(cuDeviceGetAttribute(&bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device));
  const unsigned lines = 2 * static_cast<unsigned>(bytes) / 128;
  const CUdeviceptr p = buffer(size_t{lines} * 128);
  CUfunction f =
      function(kernel("mul.wide.u32 %rd3, %r3, 128; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r3;"), "k");
  for (const char* name : {"dram_write_transactions", "dram_write_throughput"}) {
    const CUpti_MetricID m = id(name);
    const Collected got = collect(m, f, lines / 256, {p, 0});
    EXPECT_DOUBLE_EQ(lines / 2 * (name[11] == 't' && name[12] == 'h' ? 32e6 : 1), evaluate(m, got, -1, 1000)) << name;
  }
}

TEST_F(MetricValues, Textures) {
  // One block of 8 warps, each with two fetches of 10 sectors; the first misses.
  const CUtexObject texture = rows(buffer(8 * 512));
  const CUdeviceptr out = buffer(4096);
  CUfunction f = function(fetchBetween(), "k");
  const std::pair<const char*, double> wanted[] = {{"tex_cache_transactions", 16 * 10},
                                                   {"tex_cache_hit_rate", 100 * 15 / 16.0},
                                                   {"tex_cache_throughput", 32 * 16 * 10 * 1e6}};
  for (const auto& [name, value] : wanted) {
    const CUpti_MetricID m = id(name);
    EXPECT_DOUBLE_EQ(value, evaluate(m, collect(m, f, 1, {out, texture}), -1, 1000)) << name;
  }
  CU_OK(cuTexObjectDestroy(texture));
}

TEST_F(MetricValues, DoublePrecisionEfficiency) {
  // Per SM 256 threads with 2 fma: 9 instructions of 8 warps, issued 4 a cycle;
  // the pipes take 512 / 64 cycles.
  const CUpti_MetricID m = id("flop_dp_efficiency");
  CUfunction f = function(kernel("fma.rn.f64 %fd1, %fd1, %fd2, %fd3; fma.rn.f64 %fd2, %fd1, %fd2, %fd3;"), "k");
  EXPECT_DOUBLE_EQ(100 * 4 * 1024 / (smCount * (8 * 9 / 4 + 600) * 128), evaluate(m, collect(m, f, 4, {0, 0}), -1, 1));
}

TEST_F(MetricValues, HalfPrecision) {
  if (kepler) GTEST_SKIP() << "compute capability 3.5 has no half-precision arithmetic";
  // Per thread 1 add, 2 mul, 3 fma, and a packed fma that counts twice.
  std::string ptx = kernel(
      "cvt.rn.f16.u32 %h1, %r1; add.f16 %h2, %h1, %h1; mul.f16 %h2, %h2, %h1; mul.f16 %h2, %h2, %h1;"
      "fma.rn.f16 %h3, %h1, %h2, %h1; fma.rn.f16 %h3, %h3, %h2, %h1; fma.rn.f16 %h3, %h3, %h2, %h1;"
      "fma.rn.f16x2 %r5, %r6, %r7, %r8;");
  ptx.replace(ptx.find("sm_35"), 5, "sm_53");
  CUfunction f = function(ptx, "k");
  const std::pair<const char*, double> wanted[] = {{"flop_count_hp", 1 + 2 + 2 * 5},
                                                   {"flop_count_hp_add", 1},
                                                   {"flop_count_hp_mul", 2},
                                                   {"flop_count_hp_fma", 5},
                                                   {"inst_fp_16", 7}};
  for (const auto& [name, perThread] : wanted) {
    const CUpti_MetricID m = id(name);
    EXPECT_DOUBLE_EQ(kThreads * perThread, evaluate(m, collect(m, f, 4, {0, 0}), -1, 1)) << name;
  }
}

TEST_F(MetricValues, TotalsAreNormalised) {
  // What a client scales by the instances counted is the total already, with
  // and without values of all instances.
  CUpti_EventGroup g = group({"warps_launched"});
  uint64_t totals[2];
  for (uint32_t all : {0u, 1u}) {
    CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof all, &all));
    uint32_t counted = 0;
    size_t bytes = sizeof counted;
    CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &bytes, &counted));
    CUPTI_OK(cuptiEventGroupEnable(g));
    runEmpty(5, 256);
    std::vector<uint64_t> v(all ? counted : 1);
    bytes = v.size() * 8;
    CUPTI_OK(cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId("warps_launched"), &bytes, v.data()));
    uint64_t sum = 0;
    for (uint64_t x : v) sum += x;
    totals[all] = sum * instances(sm, CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT) / counted;
    CUPTI_OK(cuptiEventGroupDisable(g));
  }
  EXPECT_EQ(40u, totals[0]);
  EXPECT_EQ(40u, totals[1]);
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

}  // namespace
}  // namespace sonde::test
