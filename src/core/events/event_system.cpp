// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "core/events/event_system_impl.h"

namespace sonde::core::events {

EventSystem::EventSystem(const SondePlatform& platform) : platform_(platform) {}

EventSystem::~EventSystem() {
  for (CUpti_EventGroupSets* s : sets_) {
    for (uint32_t i = 0; i < s->numSets; ++i) delete[] s->sets[i].eventGroups;
    delete[] s->sets;
    delete s;
  }
}

// ----------------------------------------------------------------- devices --

EventSystem::Device* EventSystem::device(uint32_t id, Status* status) {
  uint32_t count = 0;
  if (platform_.deviceCount(&count) != 0 || id >= count) {
    *status = {CUPTI_ERROR_INVALID_DEVICE,
               "there is no device " + std::to_string(id) + " (devices: " + std::to_string(count) + ")"};
    return nullptr;
  }
  auto& slot = devices_[id];
  if (!slot) {
    slot = std::make_unique<Device>();
    slot->id = id;
    const char* text = nullptr;
    if (!platform_.counterRead || platform_.deviceString(id, "counters", &text) != 0 || !text) {
      slot->failure = "device " + std::to_string(id) + " has no event counters";
    } else {
      auto counterIndex = [this](std::string_view name) {
        for (uint32_t i = 0;; ++i) {
          const char* known = platform_.counterName(i);
          if (!known) return -1;
          if (name == known) return static_cast<int>(i);
        }
      };
      try {
        slot->catalogue = Catalogue::parse(text, counterIndex, ids_);
      } catch (const std::exception& e) {
        slot->failure = e.what();
      }
    }
  }
  if (!slot->failure.empty()) {
    *status = {CUPTI_ERROR_NOT_SUPPORTED, slot->failure};
    return nullptr;
  }
  return slot.get();
}

Status EventSystem::catalogue(uint32_t id, const Catalogue** result) {
  std::lock_guard lock(mutex_);
  Status status;
  if (Device* d = device(id, &status)) *result = &d->catalogue;
  return status;
}

Status EventSystem::deviceCount(uint32_t* count) {
  if (platform_.deviceCount(count) != 0) return {CUPTI_ERROR_NOT_INITIALIZED, "the driver answers no device query"};
  return {};
}

uint32_t EventSystem::instances(Device& device, const Event& event) const {
  uint32_t n = 0;
  if (event.counters.empty() || platform_.counterInstances(device.id, event.counters[0], &n) != 0) return 0;
  return (n + event.subsetOf - 1) / event.subsetOf;  // all events of a domain have as many
}

Status EventSystem::instanceCount(uint32_t id, const Domain& domain, uint32_t* count) {
  std::lock_guard lock(mutex_);
  Status status;
  Device* d = device(id, &status);
  if (!d) return status;
  *count = domain.events.empty() ? 0 : instances(*d, d->catalogue.events()[domain.events[0]]);
  return {};
}

Status EventSystem::allDomains(std::vector<const Domain*>* domains) {
  std::lock_guard lock(mutex_);
  uint32_t count = 0;
  if (platform_.deviceCount(&count) != 0) return {CUPTI_ERROR_NOT_INITIALIZED, "the driver answers no device query"};
  std::set<CUpti_EventDomainID> seen;
  for (uint32_t id = 0; id < count; ++id) {
    Status ignored;  // a device without counters has no domains
    if (Device* d = device(id, &ignored))
      for (const Domain& domain : d->catalogue.domains())
        if (seen.insert(domain.id).second) domains->push_back(&domain);
  }
  return {};
}

Status EventSystem::domainById(CUpti_EventDomainID id, const Catalogue** catalogue, const Domain** domain) {
  std::lock_guard lock(mutex_);
  uint32_t count = 0;
  platform_.deviceCount(&count);
  for (uint32_t i = 0; i < count; ++i) {
    Status ignored;
    Device* d = device(i, &ignored);
    const Domain* found = d ? d->catalogue.domain(id) : nullptr;
    if (!found) continue;
    *catalogue = &d->catalogue;
    *domain = found;
    return {};
  }
  return {CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, "no device has an event domain " + std::to_string(id)};
}

Status EventSystem::eventById(CUpti_EventID id, const Catalogue** catalogue, const Event** event) {
  std::lock_guard lock(mutex_);
  uint32_t count = 0;
  platform_.deviceCount(&count);
  for (uint32_t i = 0; i < count; ++i) {
    Status ignored;
    Device* d = device(i, &ignored);
    const Event* found = d ? d->catalogue.event(id) : nullptr;
    if (!found) continue;
    *catalogue = &d->catalogue;
    *event = found;
    return {};
  }
  return {CUPTI_ERROR_INVALID_EVENT_ID, "no device has an event " + std::to_string(id)};
}

// ---------------------------------------------------------------- contexts --

EventSystem::Context* EventSystem::context(CUcontext handle, Status* status) {
  uint32_t deviceId = 0;
  if (!handle || platform_.contextDevice(handle, &deviceId) != 0) {
    *status = {CUPTI_ERROR_INVALID_CONTEXT, handle ? "this context is not alive" : "the context is NULL"};
    return nullptr;
  }
  auto& slot = contexts_[handle];
  if (!slot) {
    Device* d = device(deviceId, status);
    if (!d) {
      contexts_.erase(handle);
      return nullptr;
    }
    slot = std::make_unique<Context>();
    slot->handle = handle;
    slot->device = d;
  }
  return slot.get();
}

void EventSystem::contextDestroyed(CUcontext handle) {
  std::lock_guard lock(mutex_);
  const auto it = contexts_.find(handle);
  if (it == contexts_.end()) return;
  it->second->destroyed = true;
  for (Group* g : it->second->enabled) g->enabled = false;
  it->second->enabled.clear();
  // Groups keep a pointer to their context until the client destroys them; a
  // new context at the same address must not be taken for the old one.
  auto node = contexts_.extract(it);
  bool inUse = false;
  for (auto& [key, g] : groups_) inUse |= g->context == node.mapped().get();
  if (inUse) {
    // Keyed by its own storage, which no live context handle can equal.
    node.key() = reinterpret_cast<CUcontext>(node.mapped().get());
    contexts_.insert(std::move(node));
  }
}

Status EventSystem::setMode(CUcontext handle, CUpti_EventCollectionMode mode) {
  std::lock_guard lock(mutex_);
  Status status;
  Context* c = context(handle, &status);
  if (!c) return status;
  if (c->replay)
    return {CUPTI_ERROR_INVALID_OPERATION,
            "kernel replay is on and fixes the collection mode; call cuptiDisableKernelReplayMode first"};
  if (mode != CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS && mode != CUPTI_EVENT_COLLECTION_MODE_KERNEL)
    return {CUPTI_ERROR_NOT_SUPPORTED, "there is no collection mode " + std::to_string(static_cast<int>(mode))};
  if (mode == CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS) {
    double deviceClass = 0;
    if (platform_.deviceFact(c->device->id, "device_class", &deviceClass) == 0 &&
        static_cast<int>(deviceClass) != CUPTI_DEVICE_ATTR_DEVICE_CLASS_TESLA)
      return {CUPTI_ERROR_NOT_SUPPORTED, "continuous collection needs a device of the Tesla class"};
  }
  c->mode = mode;
  return c->enabled.empty() ? Status{} : configure(*c);
}

Status EventSystem::setReplay(CUcontext handle, bool on) {
  std::lock_guard lock(mutex_);
  Status status;
  Context* c = context(handle, &status);
  if (!c) return status;
  // Counters of a platform are exact and all collectable in one execution, so
  // replay needs no repetition: it lifts the limits on what is counted at once.
  c->mode = CUPTI_EVENT_COLLECTION_MODE_KERNEL;
  c->replay = on;
  if (!on) {
    for (Group* g : c->enabled) g->enabled = false;
    c->enabled.clear();
  }
  return configure(*c);
}

}  // namespace sonde::core::events
