// SPDX-License-Identifier: Apache-2.0
// Enabling groups and reading their values.
#include <algorithm>
#include <map>
#include <set>

#include "core/events/event_system_impl.h"

namespace sonde::core::events {

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
    // Where the units cannot be shared out evenly, the last instance of some
    // events has none.
    const size_t instances = (units + e.event->subsetOf - 1) / e.event->subsetOf;
    s.now.resize(instances, 0);
    s.atKernelStart.resize(instances, 0);
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

Status EventSystem::checkReadable(const Group& g, const CUpti_EventID* id) {
  if (id && std::none_of(g.events.begin(), g.events.end(), [&](const Enabled& e) { return e.event->id == *id; }))
    return {CUPTI_ERROR_INVALID_EVENT_ID, "event " + std::to_string(*id) + " is not in the group"};
  if (!g.enabled) return {CUPTI_ERROR_INVALID_OPERATION, "the group is not enabled; only an enabled group can be read"};
  return {};
}

Status EventSystem::read(CUpti_EventGroup handle, const CUpti_EventID* id, std::vector<Reading>* readings) {
  std::lock_guard lock(mutex_);
  Status status;
  Group* g = group(handle, &status);
  if (!g) return status;
  if (status = checkReadable(*g, id); !status.ok()) return status;
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

}  // namespace sonde::core::events
