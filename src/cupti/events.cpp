// SPDX-License-Identifier: Apache-2.0
// The Event API: devices, domains, events and collection modes. Groups are in
// event_groups.cpp.
#include <cupti.h>

#include <algorithm>

#include "core/device_facts.h"
#include "core/events/access.h"
#include "cupti/events_support.h"

using namespace sonde;
using namespace sonde::cupti;
using core::events::Catalogue;
using core::events::Domain;
using core::events::Event;
using core::events::EventSystem;
using core::events::Status;

namespace {

CUptiResult nullParameter(const char* name) { return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", name); }

// The event system, after the checks that every function begins with.
#define SONDE_EVENT_SYSTEM(var)                               \
  Status var##Status;                                         \
  EventSystem* var = core::events::eventSystem(&var##Status); \
  if (!var) return report(var##Status)

CUptiResult deviceCatalogue(EventSystem& system, CUdevice device, const Catalogue** catalogue) {
  return report(system.catalogue(static_cast<uint32_t>(device), catalogue));
}

CUptiResult domainAttribute(const Domain& domain, CUpti_EventDomainAttribute attribute, size_t* valueSize,
                            void* value) {
  switch (attribute) {
    case CUPTI_EVENT_DOMAIN_ATTR_NAME: return writeString(valueSize, value, domain.name);
    case CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD: return writeValue(valueSize, value, domain.method);
    case CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT:
    case CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT:
      return core::fail(
          CUPTI_ERROR_INVALID_PARAMETER,
          "how many instances a domain has depends on the device: ask cuptiDeviceGetEventDomainAttribute");
    default: return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is no attribute of an event domain", attribute);
  }
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiDeviceGetAttribute(CUdevice device, CUpti_DeviceAttribute attrib, size_t* valueSize,
                                             void* value) {
  SONDE_EVENT_SYSTEM(system);
  uint32_t devices = 0;
  if (Status s = system->deviceCount(&devices); !s.ok()) return report(s);
  if (device < 0 || static_cast<uint32_t>(device) >= devices)
    return core::fail(CUPTI_ERROR_INVALID_DEVICE, "there is no device %d (devices: %u)", device, devices);
  if (!valueSize) return nullParameter("valueSize");
  if (!value) return nullParameter("value");
  switch (static_cast<int>(attrib)) {
    case CUPTI_DEVICE_ATTR_MAX_EVENT_ID:
    case CUPTI_DEVICE_ATTR_MAX_EVENT_DOMAIN_ID: {
      const Catalogue* catalogue = nullptr;
      if (CUptiResult r = deviceCatalogue(*system, device, &catalogue)) return r;
      const size_t count =
          attrib == CUPTI_DEVICE_ATTR_MAX_EVENT_ID ? catalogue->events().size() : catalogue->domains().size();
      return writeValue(valueSize, value, static_cast<uint32_t>(count));
    }
    default: break;
  }
  for (const core::DeviceFact& fact : core::kDeviceFacts) {
    if (fact.attribute != attrib) continue;
    double number = 0;
    if (fact.name != nullptr &&
        core::events::platform()->deviceFact(static_cast<uint32_t>(device), fact.name, &number) != 0 &&
        attrib != CUPTI_DEVICE_ATTR_DEVICE_CLASS) {
      return core::fail(CUPTI_ERROR_NOT_SUPPORTED, "device %d does not tell its %s", device, fact.name);
    }
    if (fact.bytes == 4) return writeValue(valueSize, value, static_cast<uint32_t>(number));
    return writeValue(valueSize, value, static_cast<uint64_t>(number));
  }
  return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is no device attribute", static_cast<int>(attrib));
}

CUptiResult CUPTIAPI cuptiDeviceGetTimestamp(CUcontext context, uint64_t* timestamp) {
  SONDE_EVENT_SYSTEM(system);
  const SondePlatform* platform = core::events::platform();
  uint32_t device = 0;
  if (!context || platform->contextDevice(context, &device) != 0)
    return core::fail(CUPTI_ERROR_INVALID_CONTEXT, "this context is not alive");
  if (!timestamp) return nullParameter("timestamp");
  *timestamp = platform->now() - core::events::deviceEpoch();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceGetNumEventDomains(CUdevice device, uint32_t* numDomains) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  if (CUptiResult r = deviceCatalogue(*system, device, &catalogue)) return r;
  if (!numDomains) return nullParameter("numDomains");
  *numDomains = static_cast<uint32_t>(catalogue->domains().size());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceEnumEventDomains(CUdevice device, size_t* arraySizeBytes,
                                                 CUpti_EventDomainID* domainArray) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  if (CUptiResult r = deviceCatalogue(*system, device, &catalogue)) return r;
  if (!arraySizeBytes) return nullParameter("arraySizeBytes");
  if (!domainArray) return nullParameter("domainArray");
  std::vector<CUpti_EventDomainID> ids;
  for (const Domain& d : catalogue->domains()) ids.push_back(d.id);
  return writeList(arraySizeBytes, domainArray, ids);
}

CUptiResult CUPTIAPI cuptiDeviceGetEventDomainAttribute(CUdevice device, CUpti_EventDomainID eventDomain,
                                                        CUpti_EventDomainAttribute attrib, size_t* valueSize,
                                                        void* value) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  if (CUptiResult r = deviceCatalogue(*system, device, &catalogue)) return r;
  const Domain* domain = catalogue->domain(eventDomain);
  if (!domain)
    return core::fail(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, "device %d has no event domain %u", device, eventDomain);
  if (!valueSize) return nullParameter("valueSize");
  if (!value) return nullParameter("value");
  if (attrib == CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT || attrib == CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT) {
    uint32_t count = 0;
    if (Status s = system->instanceCount(static_cast<uint32_t>(device), *domain, &count); !s.ok()) return report(s);
    return writeValue(valueSize, value, count);
  }
  return domainAttribute(*domain, attrib, valueSize, value);
}

CUptiResult CUPTIAPI cuptiGetNumEventDomains(uint32_t* numDomains) {
  if (!numDomains) return nullParameter("numDomains");
  SONDE_EVENT_SYSTEM(system);
  std::vector<const Domain*> domains;
  if (Status s = system->allDomains(&domains); !s.ok()) return report(s);
  *numDomains = static_cast<uint32_t>(domains.size());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnumEventDomains(size_t* arraySizeBytes, CUpti_EventDomainID* domainArray) {
  if (!arraySizeBytes) return nullParameter("arraySizeBytes");
  if (!domainArray) return nullParameter("domainArray");
  SONDE_EVENT_SYSTEM(system);
  std::vector<const Domain*> domains;
  if (Status s = system->allDomains(&domains); !s.ok()) return report(s);
  std::vector<CUpti_EventDomainID> ids;
  for (const Domain* d : domains) ids.push_back(d->id);
  return writeList(arraySizeBytes, domainArray, ids);
}

CUptiResult CUPTIAPI cuptiEventDomainGetAttribute(CUpti_EventDomainID eventDomain, CUpti_EventDomainAttribute attrib,
                                                  size_t* valueSize, void* value) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  const Domain* domain = nullptr;
  if (Status s = system->domainById(eventDomain, &catalogue, &domain); !s.ok()) return report(s);
  if (!valueSize) return nullParameter("valueSize");
  if (!value) return nullParameter("value");
  return domainAttribute(*domain, attrib, valueSize, value);
}

CUptiResult CUPTIAPI cuptiEventDomainGetNumEvents(CUpti_EventDomainID eventDomain, uint32_t* numEvents) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  const Domain* domain = nullptr;
  if (Status s = system->domainById(eventDomain, &catalogue, &domain); !s.ok()) return report(s);
  if (!numEvents) return nullParameter("numEvents");
  *numEvents = static_cast<uint32_t>(domain->events.size());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEventDomainEnumEvents(CUpti_EventDomainID eventDomain, size_t* arraySizeBytes,
                                                CUpti_EventID* eventArray) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  const Domain* domain = nullptr;
  if (Status s = system->domainById(eventDomain, &catalogue, &domain); !s.ok()) return report(s);
  if (!arraySizeBytes) return nullParameter("arraySizeBytes");
  if (!eventArray) return nullParameter("eventArray");
  std::vector<CUpti_EventID> ids;
  for (size_t i : domain->events) ids.push_back(catalogue->events()[i].id);
  return writeList(arraySizeBytes, eventArray, ids);
}

CUptiResult CUPTIAPI cuptiEventGetAttribute(CUpti_EventID event, CUpti_EventAttribute attrib, size_t* valueSize,
                                            void* value) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  const Event* e = nullptr;
  if (Status s = system->eventById(event, &catalogue, &e); !s.ok()) return report(s);
  if (!valueSize) return nullParameter("valueSize");
  if (!value) return nullParameter("value");
  switch (attrib) {
    case CUPTI_EVENT_ATTR_NAME: return writeString(valueSize, value, e->name);
    case CUPTI_EVENT_ATTR_SHORT_DESCRIPTION: return writeString(valueSize, value, e->shortDescription);
    case CUPTI_EVENT_ATTR_LONG_DESCRIPTION: return writeString(valueSize, value, e->longDescription);
    case CUPTI_EVENT_ATTR_CATEGORY: return writeValue(valueSize, value, e->category);
    case CUPTI_EVENT_ATTR_PROFILING_SCOPE: return writeValue(valueSize, value, CUPTI_EVENT_PROFILING_SCOPE_CONTEXT);
    default: return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is no attribute of an event", attrib);
  }
}

CUptiResult CUPTIAPI cuptiEventGetIdFromName(CUdevice device, const char* eventName, CUpti_EventID* event) {
  SONDE_EVENT_SYSTEM(system);
  const Catalogue* catalogue = nullptr;
  if (CUptiResult r = deviceCatalogue(*system, device, &catalogue)) return r;
  if (!eventName) return nullParameter("eventName");
  const Event* e = catalogue->event(std::string_view(eventName));
  if (!e) return core::fail(CUPTI_ERROR_INVALID_EVENT_NAME, "device %d has no event \"%.100s\"", device, eventName);
  if (!event) return nullParameter("event");
  *event = e->id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSetEventCollectionMode(CUcontext context, CUpti_EventCollectionMode mode) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->setMode(context, mode));
}

CUptiResult CUPTIAPI cuptiEnableKernelReplayMode(CUcontext context) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->setReplay(context, true));
}

CUptiResult CUPTIAPI cuptiDisableKernelReplayMode(CUcontext context) {
  SONDE_EVENT_SYSTEM(system);
  return report(system->setReplay(context, false));
}

}  // extern "C"
