// SPDX-License-Identifier: Apache-2.0
// The rules of the Event API (EVT-nnn) on the software GPU.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "events_fixture.h"

namespace sonde::test {
namespace {

// The tests run on more than one model: on that which CTest named.
TEST_F(Events, TheModelIsTheOneAskedFor) {
  const char* wanted = std::getenv("EVENTS_CAPABILITY");
  int major = 0, minor = 0;
  CU_OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CU_OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  EXPECT_EQ(wanted ? wanted : "9.0", std::to_string(major) + "." + std::to_string(minor));
}

TEST_F(Events, EVT_002_048_049_DomainListsAreCutToTheRoom) {
  uint32_t n = 0;
  CUPTI_OK(cuptiDeviceGetNumEventDomains(device, &n));
  ASSERT_GE(n, 5u);
  std::vector<CUpti_EventDomainID> all(n, 0);
  size_t bytes = n * sizeof(CUpti_EventDomainID) + 100;
  all.resize(n + 25);
  CUPTI_OK(cuptiDeviceEnumEventDomains(device, &bytes, all.data()));
  EXPECT_EQ(n * sizeof(CUpti_EventDomainID), bytes);
  CUpti_EventDomainID two[2] = {};
  bytes = sizeof two + 1;  // not a whole third
  CUPTI_OK(cuptiDeviceEnumEventDomains(device, &bytes, two));
  EXPECT_EQ(sizeof two, bytes);
  EXPECT_EQ(all[0], two[0]);
  EXPECT_EQ(all[1], two[1]);
  bytes = 0;
  CUPTI_OK(cuptiDeviceEnumEventDomains(device, &bytes, two));
  EXPECT_EQ(0u, bytes);
}

TEST_F(Events, EVT_046_047_050_ArgumentErrorsLeaveOutputsAlone) {
  uint32_t n = 77;
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetNumEventDomains(99, &n));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetNumEventDomains(-1, &n));
  EXPECT_EQ(77u, n);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetNumEventDomains(device, nullptr));
  size_t bytes = 4;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceEnumEventDomains(device, nullptr, &n));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceEnumEventDomains(device, &bytes, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceEnumEventDomains(99, &bytes, &n));
  EXPECT_EQ(4u, bytes);
}

TEST_F(Events, EVT_016_052_LongStringsAreCutWithoutTerminator) {
  char full[64];
  size_t bytes = sizeof full;
  CUPTI_OK(cuptiDeviceGetEventDomainAttribute(device, sm, CUPTI_EVENT_DOMAIN_ATTR_NAME, &bytes, full));
  EXPECT_STREQ("sm", full);
  EXPECT_EQ(3u, bytes);
  char cut[4] = {'x', 'x', 'x', 'x'};
  bytes = 2;
  CUPTI_OK(cuptiDeviceGetEventDomainAttribute(device, sm, CUPTI_EVENT_DOMAIN_ATTR_NAME, &bytes, cut));
  EXPECT_EQ(2u, bytes);
  EXPECT_EQ(0, std::memcmp(cut, "smxx", 4));
}

TEST_F(Events, EVT_017_018_InstanceCountsNeedADevice) {
  const uint32_t counted = instances(sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT);
  const uint32_t total = instances(sm, CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT);
  int sms = 0;
  CU_OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  EXPECT_EQ(static_cast<uint32_t>(sms), counted);
  EXPECT_GE(total, counted);
  uint32_t n = 5;
  size_t bytes = sizeof n;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventDomainGetAttribute(sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, &bytes, &n));
  EXPECT_EQ(5u, n);
}

TEST_F(Events, EVT_053_060_DomainAttributeErrors) {
  uint32_t n = 0;
  size_t bytes = sizeof n;
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID,
            cuptiDeviceGetEventDomainAttribute(device, 0xffffff, CUPTI_EVENT_DOMAIN_ATTR_NAME, &bytes, &n));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID,
            cuptiEventDomainGetAttribute(0xffffff, CUPTI_EVENT_DOMAIN_ATTR_NAME, &bytes, &n));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventDomainGetAttribute(sm, static_cast<CUpti_EventDomainAttribute>(77), &bytes, &n));
  bytes = 3;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventDomainGetAttribute(sm, CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD, &bytes, &n));
  EXPECT_EQ(3u, bytes);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainGetAttribute(sm, CUPTI_EVENT_DOMAIN_ATTR_NAME, nullptr, &n));
}

TEST_F(Events, EVT_014_EveryMethodOccurs) {
  auto methodOf = [&](const char* event) {
    CUpti_EventCollectionMethod m{};
    size_t bytes = sizeof m;
    EXPECT_EQ(CUPTI_SUCCESS,
              cuptiEventDomainGetAttribute(domainOf(event), CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD, &bytes, &m));
    return m;
  };
  EXPECT_EQ(CUPTI_EVENT_COLLECTION_METHOD_SM, methodOf("inst_executed"));
  EXPECT_EQ(CUPTI_EVENT_COLLECTION_METHOD_INSTRUMENTED, methodOf("gld_inst_32bit"));
  EXPECT_EQ(CUPTI_EVENT_COLLECTION_METHOD_PM, methodOf("l2_subp0_total_read_sector_queries"));
}

TEST_F(Events, EVT_054_057_DomainsOfAllDevices) {
  uint32_t n = 0;
  CUPTI_OK(cuptiGetNumEventDomains(&n));
  std::vector<CUpti_EventDomainID> ids(n);
  size_t bytes = n * sizeof ids[0];
  CUPTI_OK(cuptiEnumEventDomains(&bytes, ids.data()));
  EXPECT_EQ(n * sizeof ids[0], bytes);
  EXPECT_NE(ids.end(), std::find(ids.begin(), ids.end(), sm));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetNumEventDomains(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnumEventDomains(nullptr, ids.data()));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnumEventDomains(&bytes, nullptr));
}

TEST_F(Events, EVT_008_042_043_DeviceAttributes) {
  uint32_t maxEvent = 0, maxDomain = 0;
  size_t bytes = sizeof maxEvent;
  CUPTI_OK(cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_MAX_EVENT_ID, &bytes, &maxEvent));
  bytes = sizeof maxDomain;
  CUPTI_OK(cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_MAX_EVENT_DOMAIN_ID, &bytes, &maxDomain));
  EXPECT_GE(maxDomain, sm);
  EXPECT_GE(maxEvent, eventId("inst_executed"));
  for (auto attribute : {CUPTI_DEVICE_ATTR_GLOBAL_MEMORY_BANDWIDTH, CUPTI_DEVICE_ATTR_FLOP_SP_PER_CYCLE,
                         CUPTI_DEVICE_ATTR_MAX_L2_UNITS, CUPTI_DEVICE_ATTR_PCIE_GEN}) {
    uint64_t value = 0;
    bytes = sizeof value;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiDeviceGetAttribute(device, attribute, &bytes, &value)) << attribute;
    EXPECT_EQ(sizeof value, bytes);
    EXPECT_GT(value, 0u) << attribute;
    bytes = 4;
    EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, cuptiDeviceGetAttribute(device, attribute, &bytes, &value));
  }
  bytes = 8;
  uint64_t value = 9;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiDeviceGetAttribute(device, static_cast<CUpti_DeviceAttribute>(1000), &bytes, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_PCIE_GEN, nullptr, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetAttribute(50, CUPTI_DEVICE_ATTR_PCIE_GEN, &bytes, &value));
  EXPECT_EQ(9u, value);
}

TEST_F(Events, EVT_044_045_DeviceTimestampsGrow) {
  uint64_t a = 0, b = 0, since = 0;
  CUPTI_OK(cuptiDeviceGetTimestamp(context, &a));
  CUPTI_OK(cuptiDeviceGetTimestamp(context, &b));
  EXPECT_GE(b, a);
  CUPTI_OK(cuptiGetTimestamp(&since));
  EXPECT_LT(b, since);  // not the scale of cuptiGetTimestamp
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiDeviceGetTimestamp(nullptr, &a));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetTimestamp(context, nullptr));
}

TEST_F(Events, EVT_012_013_065_066_067_EventAttributes) {
  const CUpti_EventID id = eventId("gld_request");
  char text[256];
  size_t bytes = sizeof text;
  CUPTI_OK(cuptiEventGetAttribute(id, CUPTI_EVENT_ATTR_NAME, &bytes, text));
  EXPECT_STREQ("gld_request", text);
  EXPECT_EQ(sizeof "gld_request", bytes);
  CUpti_EventCategory category{};
  bytes = sizeof category;
  CUPTI_OK(cuptiEventGetAttribute(id, CUPTI_EVENT_ATTR_CATEGORY, &bytes, &category));
  EXPECT_EQ(CUPTI_EVENT_CATEGORY_MEMORY, category);
  for (auto which : {CUPTI_EVENT_ATTR_SHORT_DESCRIPTION, CUPTI_EVENT_ATTR_LONG_DESCRIPTION}) {
    bytes = sizeof text;
    CUPTI_OK(cuptiEventGetAttribute(id, which, &bytes, text));
    EXPECT_GT(bytes, 10u);
  }
  bytes = 3;
  std::memset(text, 'x', sizeof text);
  CUPTI_OK(cuptiEventGetAttribute(id, CUPTI_EVENT_ATTR_NAME, &bytes, text));
  EXPECT_EQ(0, std::memcmp(text, "gldx", 4));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGetAttribute(0xfffffff, CUPTI_EVENT_ATTR_NAME, &bytes, text));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetAttribute(id, CUPTI_EVENT_ATTR_NAME, nullptr, text));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGetAttribute(id, static_cast<CUpti_EventAttribute>(99), &bytes, text));
  bytes = 1;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGetAttribute(id, CUPTI_EVENT_ATTR_CATEGORY, &bytes, &category));
}

TEST_F(Events, EVT_068_069_070_LookUpByName) {
  CUpti_EventID id = 0;
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_NAME, cuptiEventGetIdFromName(device, "no_such_event", &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiEventGetIdFromName(42, "inst_executed", &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetIdFromName(device, nullptr, &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetIdFromName(device, "inst_executed", nullptr));
}

TEST_F(Events, EVT_071_072_074_CreateAndDestroy) {
  CUpti_EventGroup g = nullptr;
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEventGroupCreate(nullptr, &g, 0));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupCreate(context, nullptr, 0));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupCreate(context, &g, 1));
  EXPECT_EQ(nullptr, g);
  CUPTI_OK(cuptiEventGroupCreate(context, &g, 0));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupDestroy(g));  // gone
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupDestroy(nullptr));
}

TEST_F(Events, EVT_003_076_OneDomainPerGroup) {
  CUpti_EventGroup g = group({"inst_executed"});
  EXPECT_EQ(CUPTI_ERROR_NOT_COMPATIBLE, cuptiEventGroupAddEvent(g, eventId("gld_inst_32bit")));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupAddEvent(g, 0xfffffff));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupAddEvent(nullptr, eventId("inst_executed")));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_077_AFullGroupRefuses) {
  CUpti_EventGroup g = group({});
  const std::vector<CUpti_EventID> all = eventsOf(sm);
  size_t added = 0;
  CUptiResult last = CUPTI_SUCCESS;
  for (CUpti_EventID id : all) {
    last = cuptiEventGroupAddEvent(g, id);
    if (last) break;
    ++added;
  }
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, last);
  EXPECT_EQ(8u, added);
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_019_to_025_GroupAttributes) {
  CUpti_EventGroup g = group({"inst_executed", "warps_launched"});
  uint32_t n = 0;
  size_t bytes = sizeof n;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, &n));
  EXPECT_EQ(2u, n);
  CUpti_EventID ids[2] = {};
  bytes = sizeof ids;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_EVENTS, &bytes, ids));
  EXPECT_EQ(eventId("inst_executed"), ids[0]);
  EXPECT_EQ(eventId("warps_launched"), ids[1]);
  CUpti_EventDomainID domain = 0;
  bytes = sizeof domain;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID, &bytes, &domain));
  EXPECT_EQ(sm, domain);
  bytes = sizeof n;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &bytes, &n));
  EXPECT_EQ(instances(sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT), n);
  void* data = &n;
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, sizeof data, &data));
  void* back = nullptr;
  bytes = sizeof back;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, &bytes, &back));
  EXPECT_EQ(data, back);
  // EVT-094, EVT-095, EVT-091
  for (auto readOnly : {CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, CUPTI_EVENT_GROUP_ATTR_EVENTS,
                        CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID})
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetAttribute(g, readOnly, 4, &n));
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, 2, &n));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, 0, &data));
  bytes = 3;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, &n));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupGetAttribute(g, static_cast<CUpti_EventGroupAttribute>(50), &bytes, &n));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_073_075_079_081_EnabledGroupsDoNotChange) {
  CUpti_EventGroup g = group({"inst_executed"});
  CUPTI_OK(cuptiEventGroupEnable(g));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupAddEvent(g, eventId("warps_launched")));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupRemoveEvent(g, eventId("inst_executed")));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupRemoveAllEvents(g));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupDestroy(g));  // EVT-073
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupRemoveEvent(g, eventId("inst_executed")));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupRemoveEvent(g, eventId("inst_executed")));
  EXPECT_EQ(CUPTI_ERROR_NOT_READY, cuptiEventGroupEnable(g));  // EVT-083: empty
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_083_GroupsThatDoNotFitTogether) {
  const std::vector<CUpti_EventID> all = eventsOf(sm);
  CUpti_EventGroup a = group({}), b = group({});
  for (size_t i = 0; i < 5; ++i) {
    CUPTI_OK(cuptiEventGroupAddEvent(a, all[i]));
    CUPTI_OK(cuptiEventGroupAddEvent(b, all[5 + i]));
  }
  CUPTI_OK(cuptiEventGroupEnable(a));
  EXPECT_EQ(CUPTI_ERROR_NOT_COMPATIBLE, cuptiEventGroupEnable(b));
  CUPTI_OK(cuptiEventGroupDisable(a));
  CUPTI_OK(cuptiEventGroupEnable(b));
  CUPTI_OK(cuptiEventGroupDisable(b));
  CUPTI_OK(cuptiEventGroupDestroy(a));
  CUPTI_OK(cuptiEventGroupDestroy(b));
}

TEST_F(Events, EVT_030_031_101_KernelModeCountsTheLastKernel) {
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
  CUpti_EventGroup g = group({"warps_launched"});
  CUPTI_OK(cuptiEventGroupEnable(g));
  EXPECT_EQ(0u, read(g, "warps_launched"));
  runEmpty(4);
  runEmpty(2);
  EXPECT_EQ(16u, read(g, "warps_launched"));  // 2 blocks of 8 warps: the values of the second kernel alone
  EXPECT_EQ(0u, read(g, "warps_launched"));   // EVT-101: reading resets
  runEmpty(1);
  EXPECT_EQ(8u, read(g, "warps_launched"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_026_027_028_082_087_100_ContinuousModeAddsUp) {
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CUpti_EventGroup g = group({"warps_launched"});
  runEmpty(4);
  CUPTI_OK(cuptiEventGroupEnable(g));  // EVT-082: from zero
  runEmpty(4);
  runEmpty(2);
  EXPECT_EQ(48u, read(g, "warps_launched"));
  runEmpty(1);
  CUPTI_OK(cuptiEventGroupResetAllEvents(g));  // EVT-087
  EXPECT_EQ(0u, read(g, "warps_launched"));
  runEmpty(1);
  CUPTI_OK(cuptiEventGroupDisable(g));
  uint64_t value = 3;
  size_t bytes = sizeof value;
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION,  // EVT-100
            cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId("warps_launched"), &bytes, &value));
  EXPECT_EQ(3u, value);
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
}

TEST_F(Events, EVT_021_096_097_InstancesAddUpToTheTotal) {
  CUpti_EventGroup g = group({"warps_launched", "inst_executed"});
  uint32_t on = 1;
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
  CUPTI_OK(cuptiEventGroupEnable(g));
  runEmpty(5);
  const uint32_t n = instances(sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT);
  std::vector<uint64_t> values(n);
  size_t bytes = (n - 1) * 8;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId("warps_launched"), &bytes, values.data()));
  bytes = n * 8;
  CUPTI_OK(cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId("warps_launched"), &bytes, values.data()));
  EXPECT_EQ(n * 8, bytes);
  uint64_t sum = 0;
  for (uint64_t v : values) sum += v;
  EXPECT_EQ(40u, sum);
  // Five blocks go to five SMs, one each.
  EXPECT_EQ(5, std::count(values.begin(), values.end(), 8u));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_104_to_107_ReadAllIsInstanceMajor) {
  CUpti_EventGroup g = group({"warps_launched", "threads_launched", "sm_cta_launched"});
  uint32_t on = 1;
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
  CUPTI_OK(cuptiEventGroupEnable(g));
  runEmpty(3, 64);
  const uint32_t n = instances(sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT);
  std::vector<uint64_t> values(3 * n + 4, 99);
  CUpti_EventID ids[5] = {};
  size_t valueBytes = values.size() * 8, idBytes = sizeof ids, got = 0;
  CUPTI_OK(
      cuptiEventGroupReadAllEvents(g, CUPTI_EVENT_READ_FLAG_NONE, &valueBytes, values.data(), &idBytes, ids, &got));
  EXPECT_EQ(3u, got);
  EXPECT_EQ(3 * n * 8, valueBytes);
  EXPECT_EQ(3 * sizeof(CUpti_EventID), idBytes);
  EXPECT_EQ(99u, values[3 * n]);
  EXPECT_EQ(eventId("warps_launched"), ids[0]);
  int busy = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t ctas = values[3 * i + 2];
    EXPECT_EQ(2 * ctas, values[3 * i]);
    EXPECT_EQ(64 * ctas, values[3 * i + 1]);
    busy += ctas != 0;
  }
  EXPECT_EQ(3, busy);
  // EVT-111, EVT-109
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupReadAllEvents(g, CUPTI_EVENT_READ_FLAG_NONE, &valueBytes,
                                                                        values.data(), &idBytes, ids, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupReadAllEvents(g, static_cast<CUpti_ReadEventFlags>(1), &valueBytes, values.data(), &idBytes,
                                         ids, &got));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_113_to_115_PassesAreAsFewAsTheLimitsAllow) {
  std::vector<CUpti_EventID> ids = eventsOf(sm);
  ids.resize(17);                            // 8 + 8 + 1
  ids.push_back(eventId("gld_inst_32bit"));  // another domain: beside the first pass
  ids.push_back(ids[0]);                     // named twice, counted once
  CUpti_EventGroupSets* sets = nullptr;
  CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
  ASSERT_EQ(3u, sets->numSets);
  size_t total = 0;
  for (uint32_t s = 0; s < sets->numSets; ++s) {
    CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[s]));
    EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupSetsDestroy(sets));  // EVT-118
    CUPTI_OK(cuptiEventGroupSetDisable(&sets->sets[s]));
    for (uint32_t g = 0; g < sets->sets[s].numEventGroups; ++g) {
      uint32_t n = 0;
      size_t bytes = sizeof n;
      CUPTI_OK(
          cuptiEventGroupGetAttribute(sets->sets[s].eventGroups[g], CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, &n));
      total += n;
    }
  }
  EXPECT_EQ(18u, total);
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
  // EVT-116, EVT-119
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetsDestroy(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEventGroupSetsCreate(nullptr, 4, ids.data(), &sets));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetsCreate(context, 4, nullptr, &sets));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetsCreate(context, 4, ids.data(), nullptr));
  ids[0] = 0xfffffff;
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupSetsCreate(context, 4, ids.data(), &sets));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetEnable(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetDisable(nullptr));
}

TEST_F(Events, EVT_034_036_037_039_040_ReplayMode) {
  CUpti_EventGroup g = group({"inst_executed"});
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION,
            cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CUPTI_OK(cuptiEventGroupEnable(g));
  CUPTI_OK(cuptiDisableKernelReplayMode(context));
  uint64_t value = 0;
  size_t bytes = sizeof value;
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION,  // disabled by leaving replay mode
            cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId("inst_executed"), &bytes, &value));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiSetEventCollectionMode(nullptr, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
}

TEST_F(Events, GroupsOfADestroyedContextAnswerInvalidContext) {
  CUcontext other = nullptr;
  CU_OK(cuCtxCreate(&other, nullptr, 0, device));
  CUpti_EventGroup g = nullptr;
  CUPTI_OK(cuptiEventGroupCreate(other, &g, 0));
  CUPTI_OK(cuptiEventGroupAddEvent(g, eventId("inst_executed")));
  CUPTI_OK(cuptiEventGroupEnable(g));
  CU_OK(cuCtxDestroy(other));
  CU_OK(cuCtxSetCurrent(context));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEventGroupEnable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

// EVT-035, EVT-043 …: thread-safe.
TEST_F(Events, ThreadsEachWithTheirOwnGroups) {
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        CUpti_EventGroup g = nullptr;
        CUpti_EventID id = 0;
        failures += cuptiEventGroupCreate(context, &g, 0) != CUPTI_SUCCESS;
        failures += cuptiEventGetIdFromName(device, t % 2 ? "inst_executed" : "gld_inst_32bit", &id) != CUPTI_SUCCESS;
        failures += cuptiEventGroupAddEvent(g, id) != CUPTI_SUCCESS;
        failures += cuptiEventGroupEnable(g) != CUPTI_SUCCESS;
        failures += cuptiEventGroupDisable(g) != CUPTI_SUCCESS;
        failures += cuptiEventGroupDestroy(g) != CUPTI_SUCCESS;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(0, failures.load());
}

}  // namespace
}  // namespace sonde::test
