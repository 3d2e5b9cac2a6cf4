// SPDX-License-Identifier: Apache-2.0
// Every documented error of the functions of the Event API, in the documented
// order of checks: calls with several mistakes answer the first in the list,
// and no failure writes anything. A group that is NULL or none comes first, for
// without it the rest cannot be asked. NOT_INITIALIZED: uninitialized_test.cpp.
#include <cstring>

#include "events_fixture.h"

namespace sonde::test {
namespace {

constexpr CUpti_EventID kNoEvent = 0xfffffff;
constexpr CUpti_EventDomainID kNoDomain = 0xffffff;
constexpr CUdevice kNoDevice = 99;

class Arguments : public Events {
 protected:
  void TearDown() override {
    EXPECT_EQ(8u, bytes);
    EXPECT_EQ(8u, idBytes);
    EXPECT_EQ(7u, got);
    for (uint64_t v : value) EXPECT_EQ(7u, v);
    for (uint32_t v : ids) EXPECT_EQ(7u, v);
    Events::TearDown();
  }
  // Outputs that stay as they are.
  size_t bytes = 8, idBytes = 8, got = 7;
  uint64_t value[2] = {7, 7};
  uint32_t ids[2] = {7, 7};
  CUcontext dead = reinterpret_cast<CUcontext>(&ids);
};

TEST_F(Arguments, EVT_043_DeviceAttribute) {
  const auto none = static_cast<CUpti_DeviceAttribute>(0);
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetAttribute(kNoDevice, none, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetAttribute(-1, none, &bytes, value));
  for (int attribute : {0, -1, 24, 0x7fffffff})
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
              cuptiDeviceGetAttribute(device, static_cast<CUpti_DeviceAttribute>(attribute), &bytes, value))
        << attribute;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_MAX_EVENT_ID, nullptr, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_MAX_EVENT_ID, &bytes, nullptr));
  // No attribute, and no room for one: the attribute is the first.
  size_t none0 = 0;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetAttribute(device, none, &none0, value));
  // One byte less than each needs.
  for (int attribute = CUPTI_DEVICE_ATTR_MAX_EVENT_ID; attribute <= CUPTI_DEVICE_ATTR_MAX_L2_UNITS; ++attribute) {
    const bool narrow = attribute <= 2 || attribute == 4 || attribute == 10;
    size_t room = (narrow ? 4 : 8) - 1;
    EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
              cuptiDeviceGetAttribute(device, static_cast<CUpti_DeviceAttribute>(attribute), &room, value))
        << attribute;
    EXPECT_EQ(narrow ? 3u : 7u, room);
    room = 100;
    uint64_t wide[2] = {~0ull, ~0ull};
    EXPECT_EQ(CUPTI_SUCCESS,
              cuptiDeviceGetAttribute(device, static_cast<CUpti_DeviceAttribute>(attribute), &room, wide));
    EXPECT_EQ(narrow ? 4u : 8u, room) << attribute;
    EXPECT_EQ(~0ull, wide[1]);
    EXPECT_EQ(narrow ? 0xffffffffu : wide[0] >> 32, wide[0] >> 32);
  }
}

TEST_F(Arguments, EVT_045_DeviceTimestamp) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiDeviceGetTimestamp(nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiDeviceGetTimestamp(dead, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetTimestamp(context, nullptr));
}

TEST_F(Arguments, EVT_047_050_DomainsOfADevice) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceGetNumEventDomains(kNoDevice, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetNumEventDomains(device, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceEnumEventDomains(kNoDevice, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiDeviceEnumEventDomains(kNoDevice, &bytes, ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceEnumEventDomains(device, nullptr, ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceEnumEventDomains(device, &bytes, nullptr));
}

TEST_F(Arguments, EVT_053_060_DomainAttributes) {
  const auto none = static_cast<CUpti_EventDomainAttribute>(2);  // the number between the two counts
  const auto method = CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD;
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE,
            cuptiDeviceGetEventDomainAttribute(kNoDevice, kNoDomain, none, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID,
            cuptiDeviceGetEventDomainAttribute(device, kNoDomain, none, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, cuptiDeviceGetEventDomainAttribute(device, 0, none, &bytes, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetEventDomainAttribute(device, sm, method, nullptr, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetEventDomainAttribute(device, sm, method, &bytes, nullptr));
  size_t room = 3;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiDeviceGetEventDomainAttribute(device, sm, none, &room, value));
  for (auto attribute : {method, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT})
    EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
              cuptiDeviceGetEventDomainAttribute(device, sm, attribute, &room, value));
  EXPECT_EQ(3u, room);
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, cuptiEventDomainGetAttribute(kNoDomain, none, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainGetAttribute(sm, method, nullptr, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainGetAttribute(sm, method, &bytes, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainGetAttribute(sm, none, &room, value));
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, cuptiEventDomainGetAttribute(sm, method, &room, value));
  EXPECT_EQ(3u, room);
}

TEST_F(Arguments, EVT_062_064_EventsOfADomain) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, cuptiEventDomainGetNumEvents(kNoDomain, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainGetNumEvents(sm, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, cuptiEventDomainEnumEvents(kNoDomain, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainEnumEvents(sm, nullptr, ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainEnumEvents(sm, &bytes, nullptr));
}

TEST_F(Arguments, EVT_067_069_070_EventAttributesAndNames) {
  const CUpti_EventID event = eventId("inst_executed");
  const auto none = static_cast<CUpti_EventAttribute>(99);
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGetAttribute(kNoEvent, none, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetAttribute(event, CUPTI_EVENT_ATTR_CATEGORY, nullptr, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetAttribute(event, CUPTI_EVENT_ATTR_CATEGORY, &bytes, nullptr));
  size_t room = 3;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetAttribute(event, none, &room, value));
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGetAttribute(event, CUPTI_EVENT_ATTR_CATEGORY, &room, value));
  EXPECT_EQ(3u, room);
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiEventGetIdFromName(kNoDevice, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiEventGetIdFromName(kNoDevice, "no such event", ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_NAME, cuptiEventGetIdFromName(device, "no such event", nullptr));
  for (const char* name : {"no such event", "", "INST_EXECUTED", "inst_executed ", "ipc"})
    EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_NAME, cuptiEventGetIdFromName(device, name, ids)) << name;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetIdFromName(device, nullptr, ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGetIdFromName(device, "inst_executed", nullptr));
}

TEST_F(Arguments, EVT_034_038_041_Modes) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT,
            cuptiSetEventCollectionMode(nullptr, static_cast<CUpti_EventCollectionMode>(7)));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiSetEventCollectionMode(dead, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  // Not even the mode it has, and before the mode is looked at.
  for (int mode : {0, 1, 7})
    EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION,
              cuptiSetEventCollectionMode(context, static_cast<CUpti_EventCollectionMode>(mode)));
  CUPTI_OK(cuptiEnableKernelReplayMode(context));  // twice is once
  CUPTI_OK(cuptiDisableKernelReplayMode(context));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
  CUPTI_OK(cuptiDisableKernelReplayMode(context));  // off already
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEnableKernelReplayMode(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiDisableKernelReplayMode(dead));
}

TEST_F(Arguments, EVT_071_072_074_CreateAndDestroy) {
  CUpti_EventGroup g = &bytes;
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEventGroupCreate(nullptr, nullptr, 1));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEventGroupCreate(dead, &g, 0));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupCreate(context, nullptr, 0));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupCreate(context, &g, 1));  // reserved
  EXPECT_EQ(&bytes, g);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupDestroy(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupDestroy(&bytes));
}

TEST_F(Arguments, EVT_075_078_079_080_081_AddAndRemove) {
  const CUpti_EventID first = eventsOf(sm)[0], other = eventId("gld_inst_32bit");
  CUpti_EventGroup g = group({});
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupAddEvent(nullptr, first));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupAddEvent(&bytes, first));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupAddEvent(g, kNoEvent));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupAddEvent(g, 0));
  for (CUpti_EventID id : eventsOf(sm)) {
    if (cuptiEventGroupAddEvent(g, id) != CUPTI_SUCCESS) break;
  }
  // Full, and of another domain: the domain is the first.
  EXPECT_EQ(CUPTI_ERROR_NOT_COMPATIBLE, cuptiEventGroupAddEvent(g, other));
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiEventGroupAddEvent(g, eventsOf(sm)[8]));
  CUPTI_OK(cuptiEventGroupEnable(g));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupAddEvent(g, kNoEvent));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupAddEvent(g, other));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupAddEvent(g, eventsOf(sm)[8]));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupRemoveEvent(g, kNoEvent));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupRemoveEvent(g, eventsOf(sm)[8]));  // exists, not in there
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupRemoveEvent(g, first));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupRemoveAllEvents(g));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiEventGroupDisable(g));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupRemoveEvent(nullptr, first));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupRemoveAllEvents(nullptr));
  // Empty again, it takes events of any domain.
  CUPTI_OK(cuptiEventGroupRemoveAllEvents(g));
  CUPTI_OK(cuptiEventGroupAddEvent(g, other));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Arguments, EVT_083_084_086_088_EnableDisableReset) {
  CUpti_EventGroup empty = group({});
  EXPECT_EQ(CUPTI_ERROR_NOT_READY, cuptiEventGroupEnable(empty));
  CUPTI_OK(cuptiEventGroupDisable(empty));         // nothing to stop
  CUPTI_OK(cuptiEventGroupResetAllEvents(empty));  // being disabled is no error
  for (CUpti_EventGroup g : {CUpti_EventGroup{}, CUpti_EventGroup{&bytes}}) {
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupEnable(g));
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupDisable(g));
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupResetAllEvents(g));
  }
  CUPTI_OK(cuptiEventGroupDestroy(empty));
}

TEST_F(Arguments, EVT_091_094_095_GroupAttributes) {
  CUpti_EventGroup g = group({"inst_executed", "warps_launched"});
  const auto none = static_cast<CUpti_EventGroupAttribute>(50);
  size_t room = 3;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupGetAttribute(g, none, &room, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, nullptr, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupGetAttribute(nullptr, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, value));
  for (auto attribute : {CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES,
                         CUPTI_EVENT_GROUP_ATTR_USER_DATA, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS,
                         CUPTI_EVENT_GROUP_ATTR_EVENTS, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT})
    EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, cuptiEventGroupGetAttribute(g, attribute, &room, value))
        << attribute;
  room = 7;  // one id fits, two do not
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_EVENTS, &room, value));
  EXPECT_EQ(7u, room);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetAttribute(g, none, 8, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, 8, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, 0, value));
  // Read-only, and too small: it cannot be written at all.
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, 1, value));
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, 7, value));
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
            cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, 3, value));
  // Neither took effect.
  void* data = &data;
  room = sizeof data;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, &room, &data));
  EXPECT_EQ(nullptr, data);
  uint32_t all = 5;
  room = sizeof all;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, &room, &all));
  EXPECT_EQ(0u, all);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupSetAttribute(nullptr, CUPTI_EVENT_GROUP_ATTR_USER_DATA, 8, value));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Arguments, EVT_099_100_102_109_110_111_Reading) {
  CUpti_EventGroup g = group({"inst_executed", "warps_launched"});
  const CUpti_EventID in = eventId("inst_executed"), out = eventId("branch");
  const auto flags = CUPTI_EVENT_READ_FLAG_NONE, bad = static_cast<CUpti_ReadEventFlags>(1);
  auto readAll = [&](CUpti_ReadEventFlags f, size_t* vb, uint64_t* v, size_t* ib, uint32_t* i, size_t* n) {
    return cuptiEventGroupReadAllEvents(g, f, vb, v, ib, i, n);
  };
  // Disabled: only the event is looked at before.
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupReadEvent(g, bad, out, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupReadEvent(g, flags, kNoEvent, &bytes, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupReadEvent(g, bad, in, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, readAll(bad, nullptr, nullptr, nullptr, nullptr, nullptr));
  CUPTI_OK(cuptiEventGroupEnable(g));
  runEmpty(2, 64);
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupReadEvent(g, bad, out, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupReadEvent(nullptr, flags, in, &bytes, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupReadEvent(g, flags, in, nullptr, value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupReadEvent(g, flags, in, &bytes, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupReadEvent(g, bad, in, &bytes, value));
  size_t room = 7;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, cuptiEventGroupReadEvent(g, flags, in, &room, value));
  EXPECT_EQ(7u, room);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, readAll(flags, nullptr, value, &idBytes, ids, &got));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, readAll(flags, &bytes, nullptr, &idBytes, ids, &got));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, readAll(flags, &bytes, value, nullptr, ids, &got));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, readAll(flags, &bytes, value, &idBytes, nullptr, &got));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, readAll(flags, &bytes, value, &idBytes, ids, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupReadAllEvents(nullptr, flags, &bytes, value, &idBytes, ids, &got));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, readAll(bad, &bytes, value, &idBytes, ids, &got));
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, readAll(flags, &bytes, value, &idBytes, ids, &got));
  size_t enough = 16;
  room = 7;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, readAll(flags, &enough, value, &room, ids, &got));
  // None of the failures has read, and so reset, anything.
  EXPECT_EQ(4u, read(g, "warps_launched"));
  EXPECT_EQ(4 * kFrame, read(g, "inst_executed"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Arguments, EVT_116_118_119_121_124_Sets) {
  CUpti_EventGroupSets* sets = reinterpret_cast<CUpti_EventGroupSets*>(&bytes);
  uint32_t wrong[2] = {eventId("inst_executed"), kNoEvent};
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEventGroupSetsCreate(nullptr, 8, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiEventGroupSetsCreate(dead, 8, wrong, &sets));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupSetsCreate(context, 8, wrong, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID, cuptiEventGroupSetsCreate(context, 8, wrong, &sets));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetsCreate(context, 8, nullptr, &sets));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetsCreate(context, 4, wrong, nullptr));
  EXPECT_EQ(reinterpret_cast<CUpti_EventGroupSets*>(&bytes), sets);
  // EVT-115: bytes, not a count; what is left of the last one is not looked at.
  CUPTI_OK(cuptiEventGroupSetsCreate(context, 7, wrong, &sets));
  ASSERT_EQ(1u, sets->numSets);
  CUpti_EventGroupSet* set = &sets->sets[0];
  ASSERT_EQ(1u, set->numEventGroups);
  CUPTI_OK(cuptiEventGroupSetEnable(set));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiEventGroupSetsDestroy(sets));
  CUPTI_OK(cuptiEventGroupSetDisable(set));
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetsDestroy(sets));  // gone
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetsDestroy(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetEnable(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetDisable(nullptr));
  CUpti_EventGroupSet broken{1, nullptr};
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetEnable(&broken));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetDisable(&broken));
}

// EVT-123: the groups before one that cannot be disabled are.
TEST_F(Arguments, EVT_123_DisablingStopsWhereItFails) {
  CUpti_EventGroup both[2] = {group({"inst_executed"}), &bytes};
  CUPTI_OK(cuptiEventGroupEnable(both[0]));
  CUpti_EventGroupSet set{2, both};
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupSetDisable(&set));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION,
            cuptiEventGroupReadEvent(both[0], CUPTI_EVENT_READ_FLAG_NONE, eventId("inst_executed"), &bytes, value));
  CUPTI_OK(cuptiEventGroupDestroy(both[0]));
}

}  // namespace
}  // namespace sonde::test
