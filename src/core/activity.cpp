// SPDX-License-Identifier: Apache-2.0
// Switching kinds on and off, and reporting what exists already.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/core.h"
#include "core/delivery.h"
#include "core/device_facts.h"
#include "core/errors.h"
#include "core/no_platform.h"
#include "core/records.h"
#include "core/source_level.h"
#include "core/strings.h"
#include "core/work.h"

namespace sonde::core {
namespace {

enum class Support { kYes, kNotYet, kFollowsAnother, kNoSuchKind };

Support supportOf(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMSET:
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DEVICE:
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_NAME:
    case CUPTI_ACTIVITY_KIND_MARKER:
    case CUPTI_ACTIVITY_KIND_MARKER_DATA:
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
    case CUPTI_ACTIVITY_KIND_FUNCTION:
    case CUPTI_ACTIVITY_KIND_MODULE:
    case CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE:
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
    case CUPTI_ACTIVITY_KIND_STREAM:
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    case CUPTI_ACTIVITY_KIND_MEMORY:
    case CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API:
    case CUPTI_ACTIVITY_KIND_MEMORY2:
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
    case CUPTI_ACTIVITY_KIND_PREEMPTION:
    case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR:
    case CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS:
    case CUPTI_ACTIVITY_KIND_SHARED_ACCESS:
    case CUPTI_ACTIVITY_KIND_BRANCH:
    case CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION:
    case CUPTI_ACTIVITY_KIND_OPENACC_DATA:
    case CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH:
    case CUPTI_ACTIVITY_KIND_OPENACC_OTHER:
    case CUPTI_ACTIVITY_KIND_OPENMP:
    case CUPTI_ACTIVITY_KIND_JIT: return Support::kYes;
    case CUPTI_ACTIVITY_KIND_CDP_KERNEL: return Support::kFollowsAnother;
    case CUPTI_ACTIVITY_KIND_DEVICE_GRAPH_TRACE: return Support::kNoSuchKind;
    default: return kind == 0 || kind >= kKindCount ? Support::kNoSuchKind : Support::kNotYet;
  }
}

CUptiResult checkKind(uint32_t kind, bool enabling) {
  switch (supportOf(kind)) {
    case Support::kYes: return CUPTI_SUCCESS;
    case Support::kFollowsAnother:
      if (!enabling) return fail(CUPTI_ERROR_INVALID_KIND, "%s cannot be switched off by itself", kindName(kind));
      return fail(CUPTI_ERROR_NOT_COMPATIBLE, "%s follows CONCURRENT_KERNEL and cannot be enabled by itself",
                  kindName(kind));
    case Support::kNotYet:
      return fail(CUPTI_ERROR_NOT_SUPPORTED, "activity kind %s is not supported; docs/COVERAGE.md lists those that are",
                  kindName(kind));
    case Support::kNoSuchKind: break;
  }
  return fail(CUPTI_ERROR_INVALID_KIND, "%u is not an activity kind that can be enabled", kind);
}

// The API tables follow the two API kinds. The registry lock is held.
void setApiTable(Client& client, uint32_t kind, bool on) {
  const uint32_t domain = kind == CUPTI_ACTIVITY_KIND_DRIVER    ? CUPTI_CB_DOMAIN_DRIVER_API
                          : kind == CUPTI_ACTIVITY_KIND_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API
                                                                : 0;
  if (domain == 0) return;
  auto& table = client.apiRecordOn[domain];
  table.assign(table.size(), on);
  table[0] = 0;
}

void setKind(Client& client, uint32_t kind, bool on) {
  std::lock_guard lock(registryMutex());
  const uint64_t bit = kindBit(kind);
  const uint64_t kinds = on ? client.kinds.load() | bit : client.kinds.load() & ~bit;
  uint64_t any = kinds;
  if (const ContextTable* table = client.contexts.load()) {
    for (const ContextKinds& entry : *table) any |= entry.on;
  }
  client.kinds.store(kinds);
  client.anyKinds.store(any);
  setApiTable(client, kind, (any & bit) != 0);
}

void setKindOfContext(Client& client, uint32_t kind, CUcontext context, bool on) {
  std::lock_guard lock(registryMutex());
  const ContextTable* table = client.contexts.load();
  auto next = table != nullptr ? std::make_unique<ContextTable>(*table) : std::make_unique<ContextTable>();
  ContextKinds* entry = nullptr;
  for (ContextKinds& e : *next) {
    if (e.context == context) entry = &e;
  }
  if (entry == nullptr) {
    next->push_back({context, 0, 0});
    entry = &next->back();
  }
  const uint64_t bit = kindBit(kind);
  entry->on = on ? entry->on | bit : entry->on & ~bit;
  entry->off = on ? entry->off & ~bit : entry->off | bit;
  uint64_t any = client.kinds.load();
  for (const ContextKinds& e : *next) any |= e.on;
  const bool was = (client.anyKinds.load() & bit) != 0;
  client.contexts.store(next.get());
  client.anyKinds.store(any);
  client.contextTables.push_back(std::move(next));
  if (was != ((any & bit) != 0)) setApiTable(client, kind, !was);
}

struct Existing {
  Client* client;
  uint32_t kind;
  bool again;
};

void visitExisting(void* self, const SondeResource* resource) {
  const auto& existing = *static_cast<const Existing*>(self);
  Client& client = *existing.client;
  const SondePlatform& platform = *attachedPlatform();
  ThreadState& thread = threadState();
  auto report = [&](uint32_t id, auto&& make) {
    if (!client.kindOn(existing.kind, static_cast<CUcontext>(resource->context))) return;
    if (client.reportOnce(existing.kind, id) || existing.again) client.append(thread, make());
  };
  if (existing.kind == CUPTI_ACTIVITY_KIND_CONTEXT && resource->event == SONDE_RESOURCE_CONTEXT_CREATED) {
    report(resource->contextUid, [&] { return contextRecord(platform, *resource); });
  } else if (existing.kind == CUPTI_ACTIVITY_KIND_STREAM && resource->event == SONDE_RESOURCE_STREAM_CREATED) {
    report(resource->contextUid << 20 ^ resource->id, [&] { return streamRecord(*resource); });
  } else if (existing.kind == CUPTI_ACTIVITY_KIND_MODULE && resource->event == SONDE_RESOURCE_MODULE_LOADED) {
    report(resource->id, [&] { return moduleRecord(*resource); });
  } else if (existing.kind == CUPTI_ACTIVITY_KIND_FUNCTION && resource->event == SONDE_RESOURCE_FUNCTION_LOADED) {
    report(resource->id, [&] { return functionRecord(*resource); });
  }
}

void reportDevices(Client& client, const SondePlatform& platform, bool again) {
  uint32_t count = 0;
  if (platform.deviceCount(&count) != 0) return;
  ThreadState& thread = threadState();
  for (uint32_t device = 0; device < count; ++device) {
    if (client.reportOnce(CUPTI_ACTIVITY_KIND_DEVICE, device) || again) {
      client.append(thread, deviceRecord(platform, device));
    }
  }
}

// Every attribute the driver knows, then those of the profiling interface.
void reportDeviceAttributes(Client& client, const SondePlatform& platform, bool again) {
  uint32_t count = 0;
  if (platform.deviceCount(&count) != 0) return;
  ThreadState& thread = threadState();
  for (uint32_t device = 0; device < count; ++device) {
    if (!client.reportOnce(CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE, device) && !again) continue;
    CUpti_ActivityDeviceAttribute record{};
    record.kind = CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE;
    record.deviceId = device;
    record.flags = CUPTI_ACTIVITY_FLAG_DEVICE_ATTRIBUTE_CUDEVICE;
    for (int attribute = 1; attribute < CU_DEVICE_ATTRIBUTE_MAX; ++attribute) {
      int64_t value = 0;
      if (platform.deviceAttribute(device, attribute, &value) != 0) continue;
      record.attribute.cu = static_cast<CUdevice_attribute>(attribute);
      record.value.vInt64 = value;
      client.append(thread, record);
    }
    record.flags = CUPTI_ACTIVITY_FLAG_NONE;
    for (const DeviceFact& fact : kDeviceFacts) {
      double value = 0;
      if (fact.name != nullptr && platform.deviceFact(device, fact.name, &value) != 0) continue;
      record.attribute.cupti = fact.attribute;
      record.value.vUint64 = static_cast<uint64_t>(value);
      client.append(thread, record);
    }
  }
}

void reportEnvironment(Client& client, const SondePlatform& platform) {
  if (platform.clockInfo == nullptr) return;
  uint32_t count = 0;
  if (platform.deviceCount(&count) != 0) return;
  ThreadState& thread = threadState();
  for (uint32_t device = 0; device < count; ++device) {
    SondeClockInfo info{};
    info.size = sizeof info;
    if (platform.clockInfo(device, &info) != 0) continue;
    CUpti_ActivityEnvironment record{};
    record.kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
    record.deviceId = device;
    record.timestamp = client.toClientTime(now());
    record.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_SPEED;
    record.data.speed.smClock = info.smClockMHz;
    record.data.speed.memoryClock = info.memoryClockMHz;
    record.data.speed.pcieLinkGen = info.pcieLinkGen;
    record.data.speed.pcieLinkWidth = info.pcieLinkWidth;
    record.data.speed.clocksThrottleReasons = static_cast<CUpti_EnvironmentClocksThrottleReason>(info.throttleReasons);
    client.append(thread, record);
    record.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE;
    std::memset(&record.data, 0, sizeof record.data);
    record.data.temperature.gpuTemperature = info.temperatureC;
    client.append(thread, record);
    record.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_POWER;
    std::memset(&record.data, 0, sizeof record.data);
    record.data.power.power = info.powerMilliwatts;
    record.data.power.powerLimit = info.powerLimitMilliwatts;
    client.append(thread, record);
    if (info.fanSpeedPercent == ~0u) continue;  // no fan, no record
    record.environmentKind = CUPTI_ACTIVITY_ENVIRONMENT_COOLING;
    std::memset(&record.data, 0, sizeof record.data);
    record.data.cooling.fanSpeed = info.fanSpeedPercent;
    client.append(thread, record);
  }
}

}  // namespace

void reportExisting(Client* client, uint32_t kind, bool again) {
  const SondePlatform* platform = attachedPlatform();
  if (platform == nullptr) return;
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_DEVICE: reportDevices(*client, *platform, again); break;
    case CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE: reportDeviceAttributes(*client, *platform, again); break;
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT: reportEnvironment(*client, *platform); break;
    case CUPTI_ACTIVITY_KIND_CONTEXT:
    case CUPTI_ACTIVITY_KIND_STREAM:
    case CUPTI_ACTIVITY_KIND_MODULE:
    case CUPTI_ACTIVITY_KIND_FUNCTION: {
      Existing existing{client, kind, again};
      platform->enumerate(visitExisting, &existing);
      break;
    }
    default: break;
  }
}

CUptiResult enableKind(Client* client, uint32_t kind, CUcontext context, bool dumpExisting) {
  if (const CUptiResult bad = checkKind(kind, true); bad != CUPTI_SUCCESS) return bad;
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return noPlatform(client);
  if ((isSourceLevelKind(kind) || kind == CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR) && !platformCountsInstructions()) {
    return fail(CUPTI_ERROR_NOT_SUPPORTED,
                "activity kind %s needs a GPU that counts instructions; of those here only the software GPU does",
                kindName(kind));
  }
  if (kind == CUPTI_ACTIVITY_KIND_PREEMPTION && !platformCountsInstructions()) {
    return fail(
        CUPTI_ERROR_NOT_SUPPORTED,
        "activity kind PREEMPTION needs a GPU that tells of suspended blocks; of those here only the software GPU "
        "does");
  }
  // CUDA 13 wants the counters chosen first; the 6.5 manual says nothing of an order.
  if (kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER && !client->manual6050 &&
      std::none_of(std::begin(client->unifiedMemory), std::end(client->unifiedMemory),
                   [](const std::atomic<uint32_t>& kinds) { return kinds.load() != 0; })) {
    return fail(CUPTI_ERROR_NOT_READY,
                "no counter of unified memory is configured: call cuptiActivityConfigureUnifiedMemoryCounter first");
  }
  if (context != nullptr) {
    setKindOfContext(*client, kind, context, true);
  } else {
    setKind(*client, kind, true);
  }
  updateWanted();
  startDelivery();
  reportExisting(client, kind, dumpExisting);
  if (kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT) startSampling(*client);
  return CUPTI_SUCCESS;
}

CUptiResult disableKind(Client* client, uint32_t kind, CUcontext context) {
  if (const CUptiResult bad = checkKind(kind, false); bad != CUPTI_SUCCESS) return bad;
  if (requirePlatform() == nullptr) return noPlatform(client);
  // What has happened until now is recorded, also where the platform has not told it yet.
  if (kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) collectFinishedWork();
  if (context != nullptr) {
    setKindOfContext(*client, kind, context, false);
  } else {
    setKind(*client, kind, false);
  }
  updateWanted();
  // From here on nobody tells when memory is released, or that its address was given away again.
  if (kind == CUPTI_ACTIVITY_KIND_MEMORY && (client->anyKinds.load() & kindBit(kind)) == 0)
    allocationsGo(threadState(), *client, 0);
  if (kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT && (client->anyKinds.load() & kindBit(kind)) == 0) stopSampling(*client);
  return CUPTI_SUCCESS;
}

CUptiResult pushExternalId(Client* client, CUpti_ExternalCorrelationKind kind, uint64_t id) {
  ThreadState& thread = threadState();
  const uint32_t generation = client->generation.load();
  std::vector<ExternalId>& stack = thread.external[client->index];
  if (thread.externalGeneration[client->index] != generation) stack.clear();
  thread.externalGeneration[client->index] = generation;
  stack.push_back({kind, id});
  return CUPTI_SUCCESS;
}

CUptiResult popExternalId(Client* client, CUpti_ExternalCorrelationKind kind, uint64_t* last) {
  ThreadState& thread = threadState();
  std::vector<ExternalId>& stack = thread.external[client->index];
  if (thread.externalGeneration[client->index] == client->generation.load()) {
    for (size_t i = stack.size(); i-- > 0;) {
      if (stack[i].kind != kind) continue;
      if (last != nullptr) *last = stack[i].id;
      stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(i));
      return CUPTI_SUCCESS;
    }
  }
  return fail(CUPTI_ERROR_QUEUE_EMPTY, "this thread pushed no external correlation id of kind %d that is left to pop",
              static_cast<int>(kind));
}

}  // namespace sonde::core
