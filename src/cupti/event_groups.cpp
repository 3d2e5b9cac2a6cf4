// SPDX-License-Identifier: Apache-2.0
// The Event API: groups, group sets, and reading values.
#include <cupti.h>

#include "core/core.h"
#include "core/events/access.h"
#include "cupti/events_support.h"

using namespace sonde;
using namespace sonde::cupti;
using core::events::EventSystem;
using core::events::Reading;
using core::events::Status;

namespace {

CUptiResult nullParameter(const char* name) { return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", name); }

#define SONDE_EVENT_SYSTEM(var)                               \
  Status var##Status;                                         \
  EventSystem* var = core::events::eventSystem(&var##Status); \
  if (!var) return report(var##Status)

// Which client calls: groups of another one make the device busy.
#define SONDE_CALLER() static_cast<const void*>(core::callingClient(__builtin_return_address(0)))

CUptiResult badFlags(CUpti_ReadEventFlags flags) {
  return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "flags is %d; only CUPTI_EVENT_READ_FLAG_NONE can be used", flags);
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiEventGroupCreate(CUcontext context, CUpti_EventGroup* eventGroup, uint32_t flags) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->create(context, eventGroup, flags));
}

CUptiResult CUPTIAPI cuptiEventGroupDestroy(CUpti_EventGroup eventGroup) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->destroy(eventGroup));
}

CUptiResult CUPTIAPI cuptiEventGroupAddEvent(CUpti_EventGroup eventGroup, CUpti_EventID event) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->add(eventGroup, event));
}

CUptiResult CUPTIAPI cuptiEventGroupRemoveEvent(CUpti_EventGroup eventGroup, CUpti_EventID event) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->remove(eventGroup, event));
}

CUptiResult CUPTIAPI cuptiEventGroupRemoveAllEvents(CUpti_EventGroup eventGroup) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->removeAll(eventGroup));
}

CUptiResult CUPTIAPI cuptiEventGroupEnable(CUpti_EventGroup eventGroup) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->enable({&eventGroup, 1}, SONDE_CALLER()));
}

CUptiResult CUPTIAPI cuptiEventGroupDisable(CUpti_EventGroup eventGroup) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->disable({&eventGroup, 1}));
}

CUptiResult CUPTIAPI cuptiEventGroupResetAllEvents(CUpti_EventGroup eventGroup) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->reset(eventGroup));
}

CUptiResult CUPTIAPI cuptiEventGroupGetAttribute(CUpti_EventGroup eventGroup, CUpti_EventGroupAttribute attrib,
                                                 size_t* valueSize, void* value) {
  SONDE_EVENT_SYSTEM(system);
  if (!valueSize) return nullParameter("valueSize");
  if (!value) return nullParameter("value");
  EventSystem::GroupInfo info;
  if (Status s = system->info(eventGroup, &info); !s.ok()) return report(s);
  switch (attrib) {
    case CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID: return writeValue(valueSize, value, info.domain);
    case CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES:
      return writeValue(valueSize, value, uint32_t{info.profileAll});
    case CUPTI_EVENT_GROUP_ATTR_USER_DATA: return writeValue(valueSize, value, info.userData);
    case CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS:
      return writeValue(valueSize, value, static_cast<uint32_t>(info.events.size()));
    case CUPTI_EVENT_GROUP_ATTR_EVENTS: {
      const size_t bytes = info.events.size() * sizeof(CUpti_EventID);
      if (*valueSize < bytes)
        return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
                          "the group's %zu event ids need %zu bytes, there is room for %zu", info.events.size(), bytes,
                          *valueSize);
      return writeList(valueSize, static_cast<CUpti_EventID*>(value), info.events);
    }
    case CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT: return writeValue(valueSize, value, info.instances);
    case CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE:
      return writeValue(valueSize, value, CUPTI_EVENT_PROFILING_SCOPE_CONTEXT);
    default: return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is no attribute of an event group", attrib);
  }
}

CUptiResult CUPTIAPI cuptiEventGroupSetAttribute(CUpti_EventGroup eventGroup, CUpti_EventGroupAttribute attrib,
                                                 size_t valueSize, void* value) {
  SONDE_EVENT_SYSTEM(system);
  if (valueSize == 0) return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "valueSize is 0");
  if (!value) return nullParameter("value");
  switch (attrib) {
    case CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES: {
      if (valueSize < sizeof(uint32_t))
        return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the value needs %zu bytes, %zu were given",
                          sizeof(uint32_t), valueSize);
      uint32_t on = 0;
      std::memcpy(&on, value, sizeof on);
      return report(system->setProfileAll(eventGroup, on != 0));
    }
    case CUPTI_EVENT_GROUP_ATTR_USER_DATA: {
      if (valueSize < sizeof(void*))
        return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the value needs %zu bytes, %zu were given",
                          sizeof(void*), valueSize);
      void* data = nullptr;
      std::memcpy(&data, value, sizeof data);
      return report(system->setUserData(eventGroup, data));
    }
    case CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID:
    case CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS:
    case CUPTI_EVENT_GROUP_ATTR_EVENTS:
    case CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT:
    case CUPTI_EVENT_GROUP_ATTR_PROFILING_SCOPE:
      return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "attribute %d of an event group can only be read", attrib);
    default: return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is no attribute of an event group", attrib);
  }
}

CUptiResult CUPTIAPI cuptiEventGroupReadEvent(CUpti_EventGroup eventGroup, CUpti_ReadEventFlags flags,
                                              CUpti_EventID event, size_t* eventValueBufferSizeBytes,
                                              uint64_t* eventValueBuffer) {
  SONDE_EVENT_SYSTEM(system);
  EventSystem::GroupInfo info;
  if (Status s = system->readable(eventGroup, &event, &info); !s.ok()) return report(s);
  if (!eventValueBufferSizeBytes) return nullParameter("eventValueBufferSizeBytes");
  if (!eventValueBuffer) return nullParameter("eventValueBuffer");
  if (flags != CUPTI_EVENT_READ_FLAG_NONE) return badFlags(flags);
  // A buffer that is too small must not lose counts: checked before reading.
  const size_t bytes = sizeof(uint64_t) * (info.profileAll ? info.instances : 1);
  if (*eventValueBufferSizeBytes < bytes)
    return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the values need %zu bytes, there is room for %zu",
                      bytes, *eventValueBufferSizeBytes);
  std::vector<Reading> readings;
  if (Status s = system->read(eventGroup, &event, &readings); !s.ok()) return report(s);
  return writeList(eventValueBufferSizeBytes, eventValueBuffer, readings[0].perInstance);
}

CUptiResult CUPTIAPI cuptiEventGroupReadAllEvents(CUpti_EventGroup eventGroup, CUpti_ReadEventFlags flags,
                                                  size_t* eventValueBufferSizeBytes, uint64_t* eventValueBuffer,
                                                  size_t* eventIdArraySizeBytes, CUpti_EventID* eventIdArray,
                                                  size_t* numEventIdsRead) {
  SONDE_EVENT_SYSTEM(system);
  EventSystem::GroupInfo info;
  if (Status s = system->readable(eventGroup, nullptr, &info); !s.ok()) return report(s);
  if (!eventValueBufferSizeBytes) return nullParameter("eventValueBufferSizeBytes");
  if (!eventValueBuffer) return nullParameter("eventValueBuffer");
  if (!eventIdArraySizeBytes) return nullParameter("eventIdArraySizeBytes");
  if (!eventIdArray) return nullParameter("eventIdArray");
  if (!numEventIdsRead) return nullParameter("numEventIdsRead");
  if (flags != CUPTI_EVENT_READ_FLAG_NONE) return badFlags(flags);
  const size_t events = info.events.size();
  const size_t valueBytes = sizeof(uint64_t) * events * (info.profileAll ? info.instances : 1);
  if (*eventValueBufferSizeBytes < valueBytes)
    return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the values need %zu bytes, there is room for %zu",
                      valueBytes, *eventValueBufferSizeBytes);
  if (*eventIdArraySizeBytes < events * sizeof(CUpti_EventID))
    return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the event ids need %zu bytes, there is room for %zu",
                      events * sizeof(CUpti_EventID), *eventIdArraySizeBytes);
  std::vector<Reading> readings;
  if (Status s = system->read(eventGroup, nullptr, &readings); !s.ok()) return report(s);
  // All events of the first instance, then all of the second, and so on.
  std::vector<uint64_t> values;
  std::vector<CUpti_EventID> ids;
  for (const Reading& r : readings) ids.push_back(r.event->id);
  for (size_t i = 0; i < readings[0].perInstance.size(); ++i)
    for (const Reading& r : readings) values.push_back(r.perInstance[i]);
  writeList(eventValueBufferSizeBytes, eventValueBuffer, values);
  writeList(eventIdArraySizeBytes, eventIdArray, ids);
  *numEventIdsRead = ids.size();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEventGroupSetsCreate(CUcontext context, size_t eventIdArraySizeBytes,
                                               CUpti_EventID* eventIdArray, CUpti_EventGroupSets** eventGroupPasses) {
  SONDE_EVENT_SYSTEM(system);
  return report(
      system->createSets(context, eventIdArray, eventIdArraySizeBytes / sizeof(CUpti_EventID), eventGroupPasses));
}

CUptiResult CUPTIAPI cuptiEventGroupSetsDestroy(CUpti_EventGroupSets* eventGroupSets) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->destroySets(eventGroupSets));
}

CUptiResult CUPTIAPI cuptiEventGroupSetEnable(CUpti_EventGroupSet* eventGroupSet) {
  SONDE_EVENT_SYSTEM(system);
  if (!eventGroupSet) return nullParameter("eventGroupSet");
  if (eventGroupSet->numEventGroups != 0 && !eventGroupSet->eventGroups) return nullParameter("the set's eventGroups");
  return report(system->enable({eventGroupSet->eventGroups, eventGroupSet->numEventGroups}, SONDE_CALLER()));
}

CUptiResult CUPTIAPI cuptiEventGroupSetDisable(CUpti_EventGroupSet* eventGroupSet) {
  SONDE_EVENT_SYSTEM(system);
  if (!eventGroupSet) return nullParameter("eventGroupSet");
  if (eventGroupSet->numEventGroups != 0 && !eventGroupSet->eventGroups) return nullParameter("the set's eventGroups");
  return report(system->disable({eventGroupSet->eventGroups, eventGroupSet->numEventGroups}));
}

}  // extern "C"
