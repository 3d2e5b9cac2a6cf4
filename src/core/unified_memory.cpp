// SPDX-License-Identifier: Apache-2.0
#include "core/unified_memory.h"

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "core/core.h"
#include "core/errors.h"
#include "core/no_platform.h"
#include "core/pass.h"

namespace sonde::core {
namespace {

constexpr uint32_t kCounterKinds = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT;
constexpr uint32_t kCounterKinds6050 = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT + 1;

std::mutex& configureMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
uint32_t told[kMaxUnifiedMemoryDevices] = {};  // what the platform knows

uint32_t deviceCount(const SondePlatform& platform) {
  uint32_t count = 0;
  if (platform.deviceCount(&count) != 0) return 0;
  return std::min(count, kMaxUnifiedMemoryDevices);
}

CUptiResult notSupported(const SondePlatform& platform, const Client& client, bool device, uint32_t ordinal) {
  // The 6.5 manual knows one code for both.
  const CUptiResult code = client.manual6050 ? CUPTI_ERROR_NOT_SUPPORTED
                           : device          ? CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE
                                             : CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED;
  if (!device) return fail(code, "this platform has no counters of unified memory");
  // An older platform ends before this.
  if (platform.size >= offsetof(SondePlatform, unifiedMemoryFailure) + sizeof platform.unifiedMemoryFailure &&
      platform.unifiedMemoryFailure != nullptr) {
    return fail(code, "%s", platform.unifiedMemoryFailure());
  }
  return fail(code,
              "device %u has no counters of unified memory: its model has none, or SONDE_MANAGED=resident switched "
              "them off",
              ordinal);
}

}  // namespace

CUptiResult configureUnifiedMemory(Client* client, const CUpti_ActivityUnifiedMemoryCounterConfig* config,
                                   uint32_t count) {
  if (config == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "config is NULL");
  if (count == 0) return fail(CUPTI_ERROR_INVALID_PARAMETER, "count is 0: give at least one configuration");
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return noPlatform(client);
  const uint32_t devices = deviceCount(*platform);
  if (devices == 0) return fail(CUPTI_ERROR_NOT_INITIALIZED, "the driver is not initialised: call cuInit first");
  for (uint32_t i = 0; i < count; ++i) {
    const CUpti_ActivityUnifiedMemoryCounterConfig& c = config[i];
    const auto scope = static_cast<uint32_t>(c.scope), kind = static_cast<uint32_t>(c.kind);
    if (scope != CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE &&
        scope != CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "config[%u].scope: %u is not a scope", i, scope);
    }
    if (kind == 0 || kind >= (client->manual6050 ? kCounterKinds6050 : kCounterKinds)) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "config[%u].kind: %u is not a counter of unified memory", i, kind);
    }
    if (scope == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE && c.deviceId >= devices) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "config[%u].deviceId: there is no device %u", i, c.deviceId);
    }
    if (c.enable > 1) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "config[%u].enable: %u is neither 0 nor 1", i, c.enable);
    }
  }
  if (platform->unifiedMemoryConfigure == nullptr) return notSupported(*platform, *client, false, 0);
  auto concerns = [](const CUpti_ActivityUnifiedMemoryCounterConfig& c, uint32_t device) {
    return c.scope == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES || c.deviceId == device;
  };
  const uint64_t start = now();
  bool setUp = false;
  {
    std::lock_guard lock(configureMutex());
    for (uint32_t device = 0; device < devices; ++device) {
      uint32_t kinds = client->unifiedMemory[device].load();
      for (uint32_t i = 0; i < count; ++i) {
        if (!concerns(config[i], device)) continue;
        kinds = config[i].enable != 0 ? kinds | 1u << config[i].kind : kinds & ~(1u << config[i].kind);
      }
      // Whether the device can is known only by asking.
      if (kinds != 0 && platform->unifiedMemoryConfigure(device, kinds | told[device]) != 0) {
        return notSupported(*platform, *client, true, device);
      }
      setUp = setUp || (kinds != 0 && told[device] == 0);
      if (kinds != 0) told[device] |= kinds;
    }
    for (uint32_t device = 0; device < devices; ++device) {
      for (uint32_t i = 0; i < count; ++i) {
        if (!concerns(config[i], device)) continue;
        const uint32_t bit = 1u << config[i].kind;
        if (config[i].enable != 0) {
          client->unifiedMemory[device].fetch_or(bit);
        } else {
          client->unifiedMemory[device].fetch_and(~bit);
        }
      }
    }
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t bit = 1u << config[i].kind;
      if (config[i].enable != 0 && config[i].scope == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES) {
        client->unifiedMemoryOfAll.fetch_or(bit);
      } else {
        client->unifiedMemoryOfAll.fetch_and(~bit);
      }
    }
  }
  if (setUp) reportOverhead(*client, threadState(), CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT, start);
  updateUnifiedMemory();
  return CUPTI_SUCCESS;
}

void updateUnifiedMemory() {
  const SondePlatform* platform = attachedPlatform();
  if (platform == nullptr || platform->unifiedMemoryConfigure == nullptr) return;
  const uint64_t start = now();
  uint32_t setUp = 0;  // for whom
  {
    std::lock_guard lock(configureMutex());
    for (uint32_t device = 0; device < kMaxUnifiedMemoryDevices; ++device) {
      uint32_t wanted = 0, clients = 0;
      forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER].load(std::memory_order_relaxed),
                    [&](Client& client) {
                      const uint32_t kinds = client.unifiedMemory[device].load();
                      wanted |= kinds;
                      if (kinds != 0) clients |= 1u << client.index;
                    });
      if (wanted == told[device] || platform->unifiedMemoryConfigure(device, wanted) != 0) continue;
      if (told[device] == 0) setUp |= clients;
      told[device] = wanted;
    }
  }
  forEachClient(setUp, [&](Client& client) {
    reportOverhead(client, threadState(), CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT, start);
  });
}

namespace {

// Whether an event is one of this device. The CPU has the id 0, like the first
// device: which of the two a field means depends on the kind.
bool isOf(const SondeUnifiedMemory& event, uint32_t device) {
  switch (event.kind) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD: return event.dstId == device;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP:
      // The source is who maps, the destination where the memory is.
      return event.srcId == CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID ? event.dstId == device : event.srcId == device;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT: return event.srcId == device;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD:
      return event.srcId == device || event.dstId == device;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING:
      return (event.processors[device / 64] >> (device % 64) & 1) != 0;
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING:
      return (event.flags & CUPTI_ACTIVITY_FLAG_THROTTLING_IN_CPU) != 0 || event.srcId == device;
    default: return true;  // a fault of the CPU concerns no device in particular
  }
}

}  // namespace

void recordUnifiedMemory(const SondeUnifiedMemory& event) {
  const uint32_t bit = 1u << event.kind;
  ThreadState& thread = threadState();
  forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER].load(std::memory_order_relaxed),
                [&](Client& client) {
                  bool on = false;
                  for (uint32_t device = 0; device < kMaxUnifiedMemoryDevices; ++device) {
                    if ((client.unifiedMemory[device].load(std::memory_order_relaxed) & bit) == 0) continue;
                    on = on || isOf(event, device);
                  }
                  if (!on) return;
                  CUpti_ActivityUnifiedMemoryCounter3 r{};
                  r.kind = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
                  r.counterKind = static_cast<CUpti_ActivityUnifiedMemoryCounterKind>(event.kind);
                  r.value = event.value;
                  r.start = client.toClientTime(event.start);
                  r.end = event.end != 0 ? client.toClientTime(event.end) : 0;
                  r.address = event.address;
                  r.srcId = event.srcId;
                  r.dstId = event.dstId;
                  r.streamId = event.streamId;
                  r.processId = processId();
                  r.flags = event.flags;
                  for (unsigned i = 0; i < 5; ++i) r.processors[i] = event.processors[i];
                  // The 6.5 form names the scope; it is made from this record.
                  if (client.layouts.load()->version[CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER] == 1) {
                    r.pad = (client.unifiedMemoryOfAll.load(std::memory_order_relaxed) & bit) != 0
                                ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES
                                : CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
                  }
                  client.append(thread, r);
                });
}

}  // namespace sonde::core
