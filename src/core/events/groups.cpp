// SPDX-License-Identifier: Apache-2.0
// Event groups and their sets: what they hold, and in how many passes it fits.
#include <algorithm>
#include <map>
#include <set>

#include "core/events/event_system_impl.h"

namespace sonde::core::events {

EventSystem::Group* EventSystem::group(CUpti_EventGroup handle, Status* status) {
  const auto it = groups_.find(handle);
  if (it == groups_.end()) {
    *status = invalidParameter(handle ? "this is no live event group" : "the event group is NULL");
    return nullptr;
  }
  return it->second.get();
}

Status EventSystem::createLocked(Context& c, Group** result) {
  auto g = std::make_unique<Group>();
  g->context = &c;
  *result = g.get();
  groups_.emplace(g.get(), std::move(g));
  return {};
}

Status EventSystem::create(CUcontext handle, CUpti_EventGroup* result, uint32_t flags) {
  std::lock_guard lock(mutex_);
  Status status;
  Context* c = context(handle, &status);
  if (!c) return status;
  if (!result) return invalidParameter("eventGroup is NULL");
  if (flags != 0)
    return {CUPTI_ERROR_INVALID_PARAMETER, "flags is " + std::to_string(flags) + "; it is reserved and must be 0"};
  Group* g = nullptr;
  status = createLocked(*c, &g);
  if (status.ok()) *result = g;
  return status;
}

Status EventSystem::destroy(CUpti_EventGroup handle) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  if (g->enabled) return {CUPTI_ERROR_INVALID_OPERATION, "the group is enabled; disable it first"};
  Context* c = g->context;
  groups_.erase(handle);
  if (c->destroyed) {
    bool inUse = false;
    for (auto& [key, other] : groups_) inUse |= other->context == c;
    if (!inUse) contexts_.erase(reinterpret_cast<CUcontext>(c));
  }
  return {};
}

Status EventSystem::addLocked(Group& g, const Event& event, bool checkRoom) {
  const Domain& domain = g.context->device->catalogue.domains()[event.domain];
  if (g.domain && g.domain != &domain)
    return {CUPTI_ERROR_NOT_COMPATIBLE, "event " + quoted(event.name) + " is of domain " + quoted(domain.name) +
                                            ", the group's events are of domain " + quoted(g.domain->name) +
                                            "; use one group per domain"};
  for (const Enabled& e : g.events)
    if (e.event == &event) return {};
  if (checkRoom && g.events.size() >= domain.maxEvents)
    return {CUPTI_ERROR_MAX_LIMIT_REACHED, "domain " + quoted(domain.name) + " counts at most " +
                                               std::to_string(domain.maxEvents) + " events at once"};
  g.events.push_back(Enabled{&event, {}, 0});
  g.domain = &domain;
  return {};
}

Status EventSystem::add(CUpti_EventGroup handle, CUpti_EventID id) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  const Event* event = g->context->device->catalogue.event(id);
  if (!event)
    return {CUPTI_ERROR_INVALID_EVENT_ID,
            "device " + std::to_string(g->context->device->id) + " has no event " + std::to_string(id)};
  if (g->enabled) return {CUPTI_ERROR_INVALID_OPERATION, "the group is enabled; disable it before adding events"};
  return addLocked(*g, *event, true);
}

Status EventSystem::remove(CUpti_EventGroup handle, CUpti_EventID id) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  const auto it = std::find_if(g->events.begin(), g->events.end(), [&](const Enabled& e) { return e.event->id == id; });
  if (it == g->events.end())
    return {CUPTI_ERROR_INVALID_EVENT_ID, "event " + std::to_string(id) + " is not in the group"};
  if (g->enabled) return {CUPTI_ERROR_INVALID_OPERATION, "the group is enabled; disable it before removing events"};
  g->events.erase(it);
  if (g->events.empty()) g->domain = nullptr;
  return {};
}

Status EventSystem::removeAll(CUpti_EventGroup handle) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  if (g->enabled) return {CUPTI_ERROR_INVALID_OPERATION, "the group is enabled; disable it before removing events"};
  g->events.clear();
  g->domain = nullptr;
  return {};
}

Status EventSystem::setProfileAll(CUpti_EventGroup handle, bool on) {
  std::lock_guard lock(mutex_);
  Status status;
  if (Group* g = group(handle, &status)) g->profileAll = on;
  return status;
}

Status EventSystem::setUserData(CUpti_EventGroup handle, void* data) {
  std::lock_guard lock(mutex_);
  Status status;
  if (Group* g = group(handle, &status)) g->userData = data;
  return status;
}

void EventSystem::describe(const Group& g, GroupInfo* info) const {
  info->profileAll = g.profileAll;
  info->userData = g.userData;
  for (const Enabled& e : g.events) info->events.push_back(e.event->id);
  if (g.domain) {
    info->domain = g.domain->id;
    info->instances = instances(*g.context->device, *g.events[0].event);
  }
}

Status EventSystem::info(CUpti_EventGroup handle, GroupInfo* info) {
  std::lock_guard lock(mutex_);
  Status status;
  if (Group* g = group(handle, &status)) describe(*g, info);
  return status;
}

Status EventSystem::readable(CUpti_EventGroup handle, const CUpti_EventID* id, GroupInfo* info) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  if (status = checkReadable(*g, id); status.ok()) describe(*g, info);
  return status;
}

Status EventSystem::createSets(CUcontext handle, const CUpti_EventID* array, size_t count,
                               CUpti_EventGroupSets** result) {
  std::lock_guard lock(mutex_);
  Status status;
  Context* c = context(handle, &status);
  if (!c) return status;
  if (!array && count != 0) return invalidParameter("eventIdArray is NULL");
  const std::span<const CUpti_EventID> ids(array, count);
  // Domains count side by side, so the number of passes is that of the fullest
  // domain: its events divided by what it counts at once, rounded up.
  std::vector<std::pair<const Domain*, std::vector<const Event*>>> byDomain;
  for (CUpti_EventID id : ids) {
    const Event* event = c->device->catalogue.event(id);
    if (!event)
      return {CUPTI_ERROR_INVALID_EVENT_ID,
              "device " + std::to_string(c->device->id) + " has no event " + std::to_string(id)};
    const Domain* domain = &c->device->catalogue.domains()[event->domain];
    auto it = std::find_if(byDomain.begin(), byDomain.end(), [&](const auto& p) { return p.first == domain; });
    if (it == byDomain.end()) it = byDomain.insert(byDomain.end(), {domain, {}});
    if (std::find(it->second.begin(), it->second.end(), event) == it->second.end()) it->second.push_back(event);
  }
  if (!array) return invalidParameter("eventIdArray is NULL");
  if (!result) return invalidParameter("eventGroupPasses is NULL");
  size_t passes = 0;
  for (const auto& [domain, events] : byDomain) {
    const size_t limit = c->replay ? events.size() : domain->maxEvents;
    passes = std::max(passes, (events.size() + limit - 1) / limit);
  }
  std::vector<std::vector<Group*>> groups(passes);
  for (const auto& [domain, events] : byDomain) {
    const size_t limit = c->replay ? events.size() : domain->maxEvents;
    for (size_t i = 0; i < events.size(); ++i) {
      std::vector<Group*>& pass = groups[i / limit];
      if (i % limit == 0) {
        Group* g = nullptr;
        if (status = createLocked(*c, &g); !status.ok()) return status;
        pass.push_back(g);
      }
      if (status = addLocked(*pass.back(), *events[i], false); !status.ok()) return status;
    }
  }
  auto* sets = new CUpti_EventGroupSets{};
  sets->numSets = static_cast<uint32_t>(passes);
  sets->sets = new CUpti_EventGroupSet[passes]{};
  for (size_t p = 0; p < passes; ++p) {
    sets->sets[p].numEventGroups = static_cast<uint32_t>(groups[p].size());
    sets->sets[p].eventGroups = new CUpti_EventGroup[groups[p].size()];
    std::copy(groups[p].begin(), groups[p].end(), sets->sets[p].eventGroups);
  }
  sets_.insert(sets);
  *result = sets;
  return {};
}

Status EventSystem::destroySets(CUpti_EventGroupSets* sets) {
  std::lock_guard lock(mutex_);
  if (!sets_.count(sets))
    return invalidParameter(sets ? "these are no live event group sets" : "the event group sets are NULL");
  for (uint32_t i = 0; i < sets->numSets; ++i)
    for (uint32_t k = 0; k < sets->sets[i].numEventGroups; ++k) {
      const auto it = groups_.find(sets->sets[i].eventGroups[k]);
      if (it != groups_.end() && it->second->enabled)
        return {CUPTI_ERROR_INVALID_OPERATION, "a group of set " + std::to_string(i) + " is enabled; disable it first"};
    }
  for (uint32_t i = 0; i < sets->numSets; ++i) {
    for (uint32_t k = 0; k < sets->sets[i].numEventGroups; ++k) groups_.erase(sets->sets[i].eventGroups[k]);
    delete[] sets->sets[i].eventGroups;
  }
  delete[] sets->sets;
  sets_.erase(sets);
  delete sets;
  return {};
}

}  // namespace sonde::core::events
