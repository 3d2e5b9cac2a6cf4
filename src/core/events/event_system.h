// SPDX-License-Identifier: Apache-2.0
//
// Event groups and their collection on top of the raw counters of a platform.
//
// Counting never stops for a reader: the platform's totals only grow, and each
// enabled event keeps a base line. So groups of different clients, metrics and
// the source-level records can share the same counters.
//
// All functions may be called from any thread; one lock protects everything,
// and no code of a client runs under it.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "core/events/catalogue.h"
#include "core/events/status.h"
#include "platform/tools_api.h"

namespace sonde::core::events {

// One enabled event's reading.
struct Reading {
  const Event* event = nullptr;
  std::vector<uint64_t> perInstance;  // CUPTI_EVENT_OVERFLOW where the counter was too narrow
};

class EventSystem {
 public:
  // `platform` outlives the object.
  explicit EventSystem(const SondePlatform& platform);
  ~EventSystem();

  // Devices. The catalogue of a device is read at first use and kept.
  Status catalogue(uint32_t device, const Catalogue** result);
  Status deviceCount(uint32_t* count);
  Status instanceCount(uint32_t device, const Domain& domain, uint32_t* count);
  // Every domain of every device, each id once, in device order.
  Status allDomains(std::vector<const Domain*>* domains);
  Status domainById(CUpti_EventDomainID id, const Catalogue** catalogue, const Domain** domain);
  Status eventById(CUpti_EventID id, const Catalogue** catalogue, const Event** event);

  // Contexts.
  Status setMode(CUcontext context, CUpti_EventCollectionMode mode);
  Status setReplay(CUcontext context, bool on);
  void contextDestroyed(CUcontext context);

  // Groups. `client` tells who asks: another client's enabled group makes the
  // device busy.
  Status create(CUcontext context, CUpti_EventGroup* group, uint32_t flags);
  Status destroy(CUpti_EventGroup group);
  Status add(CUpti_EventGroup group, CUpti_EventID event);
  Status remove(CUpti_EventGroup group, CUpti_EventID event);
  Status removeAll(CUpti_EventGroup group);
  // All or none: on failure no group of the list has changed.
  Status enable(std::span<const CUpti_EventGroup> groups, const void* client);
  Status disable(std::span<const CUpti_EventGroup> groups);
  Status reset(CUpti_EventGroup group);
  Status setProfileAll(CUpti_EventGroup group, bool on);
  Status setUserData(CUpti_EventGroup group, void* data);

  struct GroupInfo {
    CUpti_EventDomainID domain = 0;
    bool profileAll = false;
    void* userData = nullptr;
    std::vector<CUpti_EventID> events;
    uint32_t instances = 0;
  };
  Status info(CUpti_EventGroup group, GroupInfo* info);
  // The same of a group that read() would read.
  Status readable(CUpti_EventGroup group, const CUpti_EventID* event, GroupInfo* info);

  // Reads and resets one event, or all when `event` is null. When the group
  // does not profile all instances the reading is one number, their sum.
  Status read(CUpti_EventGroup group, const CUpti_EventID* event, std::vector<Reading>* readings);

  // A smallest number of passes. The caller owns the result and gives it back
  // with destroySets().
  Status createSets(CUcontext context, const CUpti_EventID* events, size_t count, CUpti_EventGroupSets** sets);
  Status destroySets(CUpti_EventGroupSets* sets);

 private:
  struct Device;
  struct Context;
  struct Enabled;
  struct Group;
  struct Snapshot;

  Device* device(uint32_t id, Status* status);
  Context* context(CUcontext handle, Status* status);
  Group* group(CUpti_EventGroup handle, Status* status);
  static Status checkReadable(const Group& group, const CUpti_EventID* event);
  void describe(const Group& group, GroupInfo* info) const;
  Status createLocked(Context& context, Group** group);
  Status addLocked(Group& group, const Event& event, bool checkRoom);
  Status checkEnable(std::span<Group* const> groups, const void* client);
  Status configure(Context& context);
  Status snapshot(Group& group, std::vector<Snapshot>* snapshots);
  Status rebase(Group& group);
  uint32_t instances(Device& device, const Event& event) const;

  const SondePlatform& platform_;
  std::mutex mutex_;
  std::map<uint32_t, std::unique_ptr<Device>> devices_;
  std::map<CUcontext, std::unique_ptr<Context>> contexts_;
  std::map<CUpti_EventGroup, std::unique_ptr<Group>> groups_;
  std::set<CUpti_EventGroupSets*> sets_;
  IdAllocator ids_;
};

}  // namespace sonde::core::events
