// SPDX-License-Identifier: Apache-2.0
#include "core/events/event_system.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace sonde::core::events {

struct EventSystem::Device {
  uint32_t id = 0;
  Catalogue catalogue;
  std::string failure;  // why there is none
};

struct EventSystem::Context {
  CUcontext handle = nullptr;
  Device* device = nullptr;
  CUpti_EventCollectionMode mode = CUPTI_EVENT_COLLECTION_MODE_KERNEL;
  bool replay = false;
  bool destroyed = false;
  std::vector<Group*> enabled;
};

// Cumulative values of one event and where the last kernel began.
struct EventSystem::Snapshot {
  std::vector<int64_t> now, atKernelStart;
  uint64_t kernels = 0;
};

struct EventSystem::Enabled {
  const Event* event = nullptr;
  std::vector<int64_t> base;
  uint64_t baseKernels = 0;
};

struct EventSystem::Group {
  Context* context = nullptr;
  const Domain* domain = nullptr;
  std::vector<Enabled> events;
  bool profileAll = false;
  bool enabled = false;
  void* userData = nullptr;
  const void* client = nullptr;
};

namespace {

Status invalidParameter(const char* text) { return {CUPTI_ERROR_INVALID_PARAMETER, text}; }

std::string quoted(const std::string& name) { return "\"" + name + "\""; }

}  // namespace

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
      auto ordinal = [this](std::string_view name) {
        auto it = ordinals_.find(name);
        if (it == ordinals_.end()) it = ordinals_.emplace(name, static_cast<uint32_t>(ordinals_.size() + 1)).first;
        return it->second;
      };
      try {
        slot->catalogue = Catalogue::parse(text, counterIndex, ordinal);
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
  return n / event.subsetOf + (n % event.subsetOf > event.subsetIndex ? 1 : 0);
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

// ------------------------------------------------------------------ groups --

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

Status EventSystem::create(CUcontext handle, CUpti_EventGroup* result) {
  std::lock_guard lock(mutex_);
  Status status;
  Context* c = context(handle, &status);
  if (!c) return status;
  if (!result) return invalidParameter("eventGroup is NULL");
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
  if (g->enabled) return {CUPTI_ERROR_INVALID_OPERATION, "the group is enabled; disable it before removing events"};
  const auto it = std::find_if(g->events.begin(), g->events.end(), [&](const Enabled& e) { return e.event->id == id; });
  if (it == g->events.end())
    return {CUPTI_ERROR_INVALID_EVENT_ID, "event " + std::to_string(id) + " is not in the group"};
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

Status EventSystem::info(CUpti_EventGroup handle, GroupInfo* info) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  info->profileAll = g->profileAll;
  info->enabled = g->enabled;
  info->userData = g->userData;
  for (const Enabled& e : g->events) info->events.push_back(e.event->id);
  if (g->domain) {
    info->domain = g->domain->id;
    info->instances = instances(*g->context->device, *g->events[0].event);
  }
  return {};
}

// -------------------------------------------------------------- collection --

Status EventSystem::configure(Context& c) {
  std::set<uint32_t> counters;
  for (Group* g : c.enabled)
    for (const Enabled& e : g->events) counters.insert(e.event->counters.begin(), e.event->counters.end());
  const std::vector<uint32_t> list(counters.begin(), counters.end());
  const uint32_t mode = list.empty()                                   ? SONDE_COUNTER_MODE_OFF
                        : c.mode == CUPTI_EVENT_COLLECTION_MODE_KERNEL ? SONDE_COUNTER_MODE_KERNEL
                                                                       : SONDE_COUNTER_MODE_CONTINUOUS;
  if (const int32_t error = platform_.counterConfigure(c.handle, mode, list.data(), static_cast<uint32_t>(list.size())))
    return {CUPTI_ERROR_HARDWARE, "the device refused to count (driver error " + std::to_string(error) + ")"};
  return {};
}

// One reading of the platform for all events of the group, so that they are of
// one moment.
Status EventSystem::snapshot(Group& g, std::vector<Snapshot>* snapshots) {
  const uint32_t device = g.context->device->id;
  std::vector<uint32_t> counters;
  for (const Enabled& e : g.events) counters.insert(counters.end(), e.event->counters.begin(), e.event->counters.end());
  std::sort(counters.begin(), counters.end());
  counters.erase(std::unique(counters.begin(), counters.end()), counters.end());
  uint32_t units = 0;
  if (platform_.counterInstances(device, counters[0], &units) != 0 || units == 0)
    return {CUPTI_ERROR_HARDWARE, "domain " + quoted(g.domain->name) + " has no counters on this device"};
  std::vector<uint64_t> totals(counters.size() * units), starts(counters.size() * units);
  uint32_t got = units;
  uint64_t kernels = 0;
  if (const int32_t error =
          platform_.counterRead(g.context->handle, counters.data(), static_cast<uint32_t>(counters.size()),
                                totals.data(), starts.data(), &got, &kernels))
    return {CUPTI_ERROR_HARDWARE, "the counters of domain " + quoted(g.domain->name) +
                                      " could not be read (driver error " + std::to_string(error) + ")"};
  for (const Enabled& e : g.events) {
    Snapshot s;
    s.kernels = kernels;
    for (uint32_t unit = e.event->subsetIndex; unit < units; unit += e.event->subsetOf) {
      int64_t now = 0, start = 0;
      for (size_t i = 0; i < e.event->counters.size(); ++i) {
        const auto at = std::lower_bound(counters.begin(), counters.end(), e.event->counters[i]) - counters.begin();
        const size_t index = static_cast<size_t>(at) * units + unit;
        now += e.event->coefficients[i] * static_cast<int64_t>(totals[index]);
        start += e.event->coefficients[i] * static_cast<int64_t>(starts[index]);
      }
      s.now.push_back(now);
      s.atKernelStart.push_back(start);
    }
    snapshots->push_back(std::move(s));
  }
  return {};
}

Status EventSystem::rebase(Group& g) {
  std::vector<Snapshot> snapshots;
  if (Status status = snapshot(g, &snapshots); !status.ok()) return status;
  for (size_t i = 0; i < g.events.size(); ++i) {
    g.events[i].base = std::move(snapshots[i].now);
    g.events[i].baseKernels = snapshots[i].kernels;
  }
  return {};
}

Status EventSystem::checkEnable(std::span<Group* const> groups, const void* client) {
  for (Group* g : groups) {
    if (g->context->destroyed) return {CUPTI_ERROR_INVALID_CONTEXT, "the group's context was destroyed"};
    if (g->events.empty()) return {CUPTI_ERROR_NOT_READY, "the group has no events; add some before enabling it"};
  }
  // What runs on the same devices already.
  std::map<std::pair<Device*, const Domain*>, size_t> load;
  for (auto& [key, other] : groups_) {
    if (!other->enabled) continue;
    for (Group* g : groups)
      if (g->context->device == other->context->device && other->client != client)
        return {CUPTI_ERROR_HARDWARE_BUSY,
                "another client counts events on device " + std::to_string(other->context->device->id)};
    if (!other->context->replay) load[{other->context->device, other->domain}] += other->events.size();
  }
  for (Group* g : groups) {
    if (g->enabled || g->context->replay) continue;
    size_t& events = load[{g->context->device, g->domain}];
    events += g->events.size();
    if (events > g->domain->maxEvents)
      return {CUPTI_ERROR_NOT_COMPATIBLE,
              "domain " + quoted(g->domain->name) + " counts at most " + std::to_string(g->domain->maxEvents) +
                  " events at once, and with the groups that are enabled it would be " + std::to_string(events) +
                  "; collect them in several passes or with kernel replay"};
  }
  return {};
}

Status EventSystem::enable(std::span<const CUpti_EventGroup> handles, const void* client) {
  std::lock_guard lock(mutex_);
  Status status;
  std::vector<Group*> groups;
  for (CUpti_EventGroup handle : handles) {
    Group* g = group(handle, &status);
    if (!g) return status;
    groups.push_back(g);
  }
  if (status = checkEnable(groups, client); !status.ok()) return status;
  std::vector<Group*> added;
  std::set<Context*> contexts;
  for (Group* g : groups) {
    contexts.insert(g->context);
    if (g->enabled) continue;
    g->enabled = true;
    g->client = client;
    g->context->enabled.push_back(g);
    added.push_back(g);
  }
  for (Context* c : contexts)
    if (status.ok()) status = configure(*c);
  for (Group* g : groups)
    if (status.ok()) status = rebase(*g);
  if (status.ok()) return status;
  for (Group* g : added) {
    g->enabled = false;
    std::erase(g->context->enabled, g);
  }
  for (Context* c : contexts) (void)configure(*c);
  return status;
}

Status EventSystem::disable(std::span<const CUpti_EventGroup> handles) {
  std::lock_guard lock(mutex_);
  Status status;
  for (CUpti_EventGroup handle : handles) {
    Group* g = group(handle, &status);
    if (!g) return status;
    if (!g->enabled) continue;
    g->enabled = false;
    std::erase(g->context->enabled, g);
    if (status = configure(*g->context); !status.ok()) return status;
  }
  return status;
}

Status EventSystem::reset(CUpti_EventGroup handle) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g || !g->enabled) return status;  // a disabled group has no counts
  return rebase(*g);
}

Status EventSystem::read(CUpti_EventGroup handle, const CUpti_EventID* id, std::vector<Reading>* readings) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  if (id && std::none_of(g->events.begin(), g->events.end(), [&](const Enabled& e) { return e.event->id == *id; }))
    return {CUPTI_ERROR_INVALID_EVENT_ID, "event " + std::to_string(*id) + " is not in the group"};
  if (!g->enabled)
    return {CUPTI_ERROR_INVALID_OPERATION, "the group is not enabled; only an enabled group can be read"};
  const uint64_t widest =
      g->domain->counterBits >= 64 ? CUPTI_EVENT_OVERFLOW - 1 : (uint64_t{1} << g->domain->counterBits) - 1;
  std::vector<Snapshot> snapshots;
  if (status = snapshot(*g, &snapshots); !status.ok()) return status;
  for (size_t index = 0; index < g->events.size(); ++index) {
    Enabled& e = g->events[index];
    Snapshot& s = snapshots[index];
    if (id && e.event->id != *id) continue;
    const bool fromKernel = g->context->mode == CUPTI_EVENT_COLLECTION_MODE_KERNEL && s.kernels > e.baseKernels;
    Reading r;
    r.event = e.event;
    bool overflow = false;
    uint64_t total = 0;
    for (size_t i = 0; i < s.now.size(); ++i) {
      const int64_t base = fromKernel ? s.atKernelStart[i] : e.base[i];
      const uint64_t value = static_cast<uint64_t>(std::max<int64_t>(0, s.now[i] - base));
      overflow |= value > widest;
      total += value;
      if (g->profileAll) r.perInstance.push_back(value > widest ? CUPTI_EVENT_OVERFLOW : value);
    }
    if (!g->profileAll) r.perInstance.push_back(overflow ? CUPTI_EVENT_OVERFLOW : total);
    e.base = std::move(s.now);
    e.baseKernels = s.kernels;
    readings->push_back(std::move(r));
  }
  return {};
}

// -------------------------------------------------------------------- sets --

Status EventSystem::createSets(CUcontext handle, const CUpti_EventID* array, size_t count,
                               CUpti_EventGroupSets** result) {
  std::lock_guard lock(mutex_);
  Status status;
  Context* c = context(handle, &status);
  if (!c) return status;
  if (!array) return invalidParameter("eventIdArray is NULL");
  if (!result) return invalidParameter("eventGroupPasses is NULL");
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
