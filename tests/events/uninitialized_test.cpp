// SPDX-License-Identifier: Apache-2.0
// Every function of the Event and Metric APIs where there is no driver at all:
// the code is NOT_INITIALIZED, a NULL that needs no driver to be seen comes
// first, and nothing is written.
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstring>

namespace sonde::test {
namespace {

constexpr CUptiResult kNone = CUPTI_ERROR_NOT_INITIALIZED;

// What outputs hold before and after.
struct Outputs {
  size_t bytes = 64, idBytes = 64, got = 64;
  uint32_t n = 77, ids[16] = {77};
  uint64_t values[8] = {77};
  void* pointer = &pointer;
  bool operator==(const Outputs& o) const {
    return bytes == o.bytes && idBytes == o.idBytes && got == o.got && n == o.n &&
           std::memcmp(ids, o.ids, sizeof ids) == 0 && std::memcmp(values, o.values, sizeof values) == 0;
  }
};

class WithoutDriver : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(out == Outputs{});
    EXPECT_EQ(&out.pointer, out.pointer);
  }
  Outputs out;
  int thing = 0;
  CUcontext context = reinterpret_cast<CUcontext>(&thing);
  CUpti_EventGroup group = &thing;
  CUpti_EventGroupSets** sets = reinterpret_cast<CUpti_EventGroupSets**>(&out.pointer);
};

// EVT-034, EVT-043, EVT-045, EVT-047, EVT-050, EVT-053, EVT-060, EVT-062,
// EVT-064, EVT-067, EVT-070.
TEST_F(WithoutDriver, EVT_034_043_045_047_050_053_060_062_064_067_070_DevicesAndEvents) {
  EXPECT_EQ(kNone, cuptiDeviceGetAttribute(0, CUPTI_DEVICE_ATTR_MAX_EVENT_ID, &out.bytes, out.values));
  EXPECT_EQ(kNone, cuptiDeviceGetTimestamp(context, out.values));
  EXPECT_EQ(kNone, cuptiDeviceGetNumEventDomains(0, &out.n));
  EXPECT_EQ(kNone, cuptiDeviceEnumEventDomains(0, &out.bytes, out.ids));
  EXPECT_EQ(kNone, cuptiDeviceGetEventDomainAttribute(0, 1, CUPTI_EVENT_DOMAIN_ATTR_NAME, &out.bytes, out.values));
  EXPECT_EQ(kNone, cuptiGetNumEventDomains(&out.n));
  EXPECT_EQ(kNone, cuptiEnumEventDomains(&out.bytes, out.ids));
  EXPECT_EQ(kNone, cuptiEventDomainGetAttribute(1, CUPTI_EVENT_DOMAIN_ATTR_NAME, &out.bytes, out.values));
  EXPECT_EQ(kNone, cuptiEventDomainGetNumEvents(1, &out.n));
  EXPECT_EQ(kNone, cuptiEventDomainEnumEvents(1, &out.bytes, out.ids));
  EXPECT_EQ(kNone, cuptiEventGetAttribute(1, CUPTI_EVENT_ATTR_NAME, &out.bytes, out.values));
  EXPECT_EQ(kNone, cuptiEventGetIdFromName(0, "inst_executed", &out.n));
  EXPECT_EQ(kNone, cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
  EXPECT_EQ(kNone, cuptiEnableKernelReplayMode(context));
  EXPECT_EQ(kNone, cuptiDisableKernelReplayMode(context));
}

// EVT-055, EVT-057: here NOT_INITIALIZED is not documented, the NULLs are.
TEST_F(WithoutDriver, EVT_055_057_NullsNeedNoDriver) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetNumEventDomains(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnumEventDomains(nullptr, out.ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnumEventDomains(&out.bytes, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetNumMetrics(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnumMetrics(nullptr, out.ids));
}

TEST_F(WithoutDriver, EVT_072_074_078_080_081_084_086_088_091_095_102_111_116_119_121_124_Groups) {
  EXPECT_EQ(kNone, cuptiEventGroupCreate(context, &out.pointer, 0));
  EXPECT_EQ(kNone, cuptiEventGroupDestroy(group));
  EXPECT_EQ(kNone, cuptiEventGroupAddEvent(group, 1));
  EXPECT_EQ(kNone, cuptiEventGroupRemoveEvent(group, 1));
  EXPECT_EQ(kNone, cuptiEventGroupRemoveAllEvents(group));
  EXPECT_EQ(kNone, cuptiEventGroupEnable(group));
  EXPECT_EQ(kNone, cuptiEventGroupDisable(group));
  EXPECT_EQ(kNone, cuptiEventGroupResetAllEvents(group));
  EXPECT_EQ(kNone, cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &out.bytes, out.values));
  EXPECT_EQ(kNone, cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_USER_DATA, 8, out.values));
  EXPECT_EQ(kNone, cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, 1, &out.bytes, out.values));
  EXPECT_EQ(kNone, cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &out.bytes, out.values, &out.idBytes,
                                                out.ids, &out.got));
  EXPECT_EQ(kNone, cuptiEventGroupSetsCreate(context, 4, out.ids, sets));
  EXPECT_EQ(kNone, cuptiEventGroupSetsDestroy(reinterpret_cast<CUpti_EventGroupSets*>(&thing)));
  CUpti_EventGroupSet set{1, &group};
  EXPECT_EQ(kNone, cuptiEventGroupSetEnable(&set));
  EXPECT_EQ(kNone, cuptiEventGroupSetDisable(&set));
}

TEST_F(WithoutDriver, Metrics) {
  CUpti_MetricValue value{};
  CUpti_MetricPropertyID property{};
  EXPECT_EQ(kNone, cuptiGetNumMetrics(&out.n));
  EXPECT_EQ(kNone, cuptiEnumMetrics(&out.bytes, out.ids));
  EXPECT_EQ(kNone, cuptiDeviceGetNumMetrics(0, &out.n));
  EXPECT_EQ(kNone, cuptiDeviceEnumMetrics(0, &out.bytes, out.ids));
  EXPECT_EQ(kNone, cuptiMetricGetAttribute(1, CUPTI_METRIC_ATTR_NAME, &out.bytes, out.values));
  EXPECT_EQ(kNone, cuptiMetricGetIdFromName(0, "ipc", &out.n));
  EXPECT_EQ(kNone, cuptiMetricGetNumEvents(1, &out.n));
  EXPECT_EQ(kNone, cuptiMetricEnumEvents(1, &out.bytes, out.ids));
  EXPECT_EQ(kNone, cuptiMetricGetNumProperties(1, &out.n));
  EXPECT_EQ(kNone, cuptiMetricEnumProperties(1, &out.bytes, &property));
  EXPECT_EQ(kNone, cuptiMetricGetRequiredEventGroupSets(context, 1, sets));
  EXPECT_EQ(kNone, cuptiMetricCreateEventGroupSets(context, 4, out.ids, sets));
  EXPECT_EQ(kNone, cuptiMetricGetValue(0, 1, 4, out.ids, 8, out.values, 1, &value));
  EXPECT_EQ(kNone, cuptiMetricGetValue2(1, 4, out.ids, 8, out.values, 0, nullptr, 0, nullptr, &value));
  EXPECT_EQ(0u, value.metricValueUint64);
}

}  // namespace
}  // namespace sonde::test
