// SPDX-License-Identifier: Apache-2.0
// The Metric API: enumeration, properties, and values worked out by hand.
#include <set>

#include "core/events/expression.h"
#include "gpu.h"

namespace sonde::test {
namespace {

using core::events::Expression;

double valueOf(const char* text, std::map<std::string, double> values = {}) {
  const Expression e = Expression::parse(text);
  return e.evaluate([&](size_t i) { return values.at(e.names()[i]); });
}

TEST(Expression, FollowsThePrecedenceOfArithmetic) {
  EXPECT_EQ(7, valueOf("1 + 2 * 3"));
  EXPECT_EQ(9, valueOf("(1 + 2) * 3"));
  EXPECT_EQ(-4, valueOf("1 - 2 - 3"));
  EXPECT_EQ(2.5, valueOf("10 / 2 / 2"));
  EXPECT_EQ(3, valueOf("min(a, b) + max(1, 0)", {{"a", 5}, {"b", 2}}));
  EXPECT_EQ(0, valueOf("1 / x", {{"x", 0}}));  // a ratio of what did not happen
}

TEST(Expression, SaysWhereItIsWrong) {
  for (const auto& [text, reason] : std::map<std::string, std::string>{{"1 +", "column 4: expected a number or a name"},
                                                                       {"(1", "column 3: expected ')'"},
                                                                       {"1 2", "column 3: expected end of formula"},
                                                                       {"", "column 1: expected a number or a name"},
                                                                       {"min(1)", "column 6: expected ','"}}) {
    try {
      Expression::parse(text);
      ADD_FAILURE() << text << " was accepted";
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string::npos, std::string(e.what()).find(reason)) << e.what();
    }
  }
  EXPECT_THROW(Expression::parse(std::string(100000, '(')), std::invalid_argument);
}

TEST(Expression, KnowsSumsOfCounters) {
  std::vector<int64_t> c;
  EXPECT_TRUE(Expression::parse("a - b + 2 * a").linear(c));
  EXPECT_EQ((std::vector<int64_t>{3, -1}), c);
  for (const char* text : {"a * b", "a / 2", "a + 1", "max(a, b)"})
    EXPECT_FALSE(Expression::parse(text).linear(c)) << text;
}

class Metrics : public Gpu {
 protected:
  CUpti_MetricID id(const char* name) {
    CUpti_MetricID m = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiMetricGetIdFromName(device, name, &m)) << name;
    return m;
  }
  CUpti_MetricValue value(const char* name, const std::string& body, uint64_t durationNs = 1000,
                          const std::string& declarations = "") {
    const CUpti_MetricID m = id(name);
    uint32_t n = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiMetricGetNumEvents(m, &n));
    std::vector<CUpti_EventID> ids(n);
    size_t bytes = n * sizeof ids[0];
    EXPECT_EQ(CUPTI_SUCCESS, cuptiMetricEnumEvents(m, &bytes, ids.data()));
    // Pass by pass, as a profiler without replay does it.
    CUpti_EventGroupSets* sets = nullptr;
    EXPECT_EQ(CUPTI_SUCCESS,
              cuptiMetricCreateEventGroupSets(context, sizeof m, const_cast<CUpti_MetricID*>(&m), &sets));
    std::vector<CUpti_EventID> gotIds;
    std::vector<uint64_t> gotValues;
    const CUdeviceptr p = buffer(1 << 20), q = buffer(1 << 20);
    for (uint32_t s = 0; sets && s < sets->numSets; ++s) {
      EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetEnable(&sets->sets[s]));
      launch(function(kernel(body, declarations), "k"), 4, 256, {p, q});
      for (uint32_t g = 0; g < sets->sets[s].numEventGroups; ++g) {
        uint64_t v[16];
        CUpti_EventID e[16];
        size_t vb = sizeof v, eb = sizeof e, got = 0;
        EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupReadAllEvents(sets->sets[s].eventGroups[g], CUPTI_EVENT_READ_FLAG_NONE,
                                                              &vb, v, &eb, e, &got));
        gotIds.insert(gotIds.end(), e, e + got);
        gotValues.insert(gotValues.end(), v, v + got);
      }
      EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetDisable(&sets->sets[s]));
    }
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetsDestroy(sets));
    CUpti_MetricValue result{};
    EXPECT_EQ(CUPTI_SUCCESS,
              cuptiMetricGetValue(device, m, gotIds.size() * sizeof gotIds[0], gotIds.data(),
                                  gotValues.size() * sizeof gotValues[0], gotValues.data(), durationNs, &result))
        << name;
    return result;
  }
};

const std::string kLoad = "mul.wide.u32 %rd3, %r5, 4; add.u64 %rd3, %rd3, %rd1; ld.global.u32 %r6, [%rd3];";

TEST_F(Metrics, AtLeastFortyUnderTheirNames) {
  uint32_t n = 0;
  CUPTI_OK(cuptiDeviceGetNumMetrics(device, &n));
  EXPECT_GE(n, 40u);
  std::vector<CUpti_MetricID> ids(n);
  size_t bytes = n * sizeof ids[0];
  CUPTI_OK(cuptiDeviceEnumMetrics(device, &bytes, ids.data()));
  EXPECT_EQ(n * sizeof ids[0], bytes);
  std::set<std::string> names;
  for (CUpti_MetricID m : ids) {
    char text[256];
    for (auto attribute :
         {CUPTI_METRIC_ATTR_SHORT_DESCRIPTION, CUPTI_METRIC_ATTR_LONG_DESCRIPTION, CUPTI_METRIC_ATTR_NAME}) {
      bytes = sizeof text;
      CUPTI_OK(cuptiMetricGetAttribute(m, attribute, &bytes, text));
      EXPECT_GT(bytes, 3u);
    }
    names.insert(text);
    CUpti_MetricID again = 0;
    CUPTI_OK(cuptiMetricGetIdFromName(device, text, &again));
    EXPECT_EQ(m, again);
  }
  EXPECT_EQ(n, names.size());
  for (const char* known : {"ipc", "achieved_occupancy", "branch_efficiency", "warp_execution_efficiency",
                            "gld_efficiency", "gst_efficiency", "gld_transactions_per_request", "shared_efficiency",
                            "l2_l1_read_hit_rate", "dram_read_throughput", "flop_count_sp", "flop_count_dp"})
    EXPECT_TRUE(names.count(known)) << known;
}

TEST_F(Metrics, GlobalLoadEfficiency) {
  EXPECT_DOUBLE_EQ(100, value("gld_efficiency", "mov.u32 %r5, %r3;" + kLoad).metricValuePercent);
  EXPECT_DOUBLE_EQ(50, value("gld_efficiency", "shl.b32 %r5, %r3, 1;" + kLoad).metricValuePercent);
  EXPECT_DOUBLE_EQ(12.5, value("gld_efficiency", "shl.b32 %r5, %r3, 5;" + kLoad).metricValuePercent);
  EXPECT_DOUBLE_EQ(32, value("gld_transactions_per_request", "shl.b32 %r5, %r3, 5;" + kLoad).metricValueDouble);
  EXPECT_EQ(32u * 8, value("gld_transactions", "shl.b32 %r5, %r3, 1;" + kLoad).metricValueUint64);
}

TEST_F(Metrics, BranchAndWarpEfficiency) {
  const std::string diverge = "and.b32 %r5, %r1, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra L; add.u32 %r6, %r3, 1;\nL:";
  EXPECT_DOUBLE_EQ(0, value("branch_efficiency", diverge).metricValuePercent);
  EXPECT_DOUBLE_EQ(100, value("branch_efficiency", "add.u32 %r6, %r3, 1;").metricValuePercent);  // no branch at all
  EXPECT_DOUBLE_EQ(100, value("branch_efficiency", "bra L;\nL:").metricValuePercent);
  // 10 instructions with all lanes, one with half of them.
  EXPECT_DOUBLE_EQ(100.0 * (10 * 32 + 16) / (11 * 32), value("warp_execution_efficiency", diverge).metricValuePercent);
  EXPECT_DOUBLE_EQ(11, value("inst_per_warp", diverge).metricValueDouble);
}

TEST_F(Metrics, Throughput) {
  // 32 warps * 4 sectors * 32 bytes = 4096 bytes in 1000 ns.
  EXPECT_EQ(4096000000u, value("gld_throughput", "mov.u32 %r5, %r3;" + kLoad, 1000).metricValueThroughput);
  EXPECT_EQ(2048000000u, value("gld_requested_throughput", "mov.u32 %r5, %r3;" + kLoad, 2000).metricValueThroughput);
}

TEST_F(Metrics, FloatingPointOperations) {
  const std::string body = "mov.f32 %f1, 0f3F800000; add.f32 %f2, %f1, %f1; fma.rn.f32 %f3, %f1, %f2, %f2;";
  EXPECT_EQ(1024u * 3, value("flop_count_sp", body).metricValueUint64);
  EXPECT_EQ(1024u, value("flop_count_sp_fma", body).metricValueUint64);
  EXPECT_EQ(0u, value("flop_count_dp", body).metricValueUint64);
}

TEST_F(Metrics, PropertiesReplaceTheDevice) {
  const CUpti_MetricID m = id("gld_throughput");
  uint32_t n = 0;
  CUPTI_OK(cuptiMetricGetNumProperties(m, &n));
  ASSERT_EQ(1u, n);
  CUpti_MetricPropertyID property{};
  size_t bytes = sizeof property;
  CUPTI_OK(cuptiMetricEnumProperties(m, &bytes, &property));
  EXPECT_EQ(CUPTI_METRIC_PROPERTY_KERNEL_GPU_TIME, property);
  CUpti_EventID event = eventId("global_load_sectors");
  uint64_t sectors = 100, time = 50;
  CUpti_MetricValue v{};
  CUPTI_OK(cuptiMetricGetValue2(m, sizeof event, &event, sizeof sectors, &sectors, sizeof property, &property,
                                sizeof time, &time, &v));
  EXPECT_EQ(64000000000u, v.metricValueThroughput);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiMetricGetValue2(m, sizeof event, &event, sizeof sectors, &sectors, 0, nullptr, 0, nullptr, &v));
}

TEST_F(Metrics, Errors) {
  CUpti_MetricID m = id("ipc");
  CUpti_MetricID none = 0xffffff;
  uint32_t n = 7;
  EXPECT_EQ(CUPTI_ERROR_INVALID_METRIC_ID, cuptiMetricGetNumEvents(none, &n));
  EXPECT_EQ(7u, n);
  EXPECT_EQ(CUPTI_ERROR_INVALID_METRIC_NAME, cuptiMetricGetIdFromName(device, "nothing", &none));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetNumMetrics(99, &n));
  CUpti_EventID only = eventId("inst_executed");
  uint64_t v = 5;
  CUpti_MetricValue value{};
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiMetricGetValue(device, m, sizeof only, &only, sizeof v, &v, 1, &value));
  CUpti_EventID both[2] = {only, eventId("active_cycles")};
  uint64_t overflowed[2] = {5, CUPTI_EVENT_OVERFLOW};
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_VALUE,
            cuptiMetricGetValue(device, m, sizeof both, both, sizeof overflowed, overflowed, 1, &value));
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiMetricGetValue(device, m, sizeof both, both, sizeof(uint64_t), overflowed, 1, &value));
}

}  // namespace
}  // namespace sonde::test
