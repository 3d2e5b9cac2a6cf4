// SPDX-License-Identifier: Apache-2.0
#include "core/core.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "core/delivery.h"
#include "core/errors.h"
#include "core/events/access.h"
#include "core/strings.h"
#include "core/unified_memory.h"
#include "core/work.h"
#include "platform/find_platform.h"

namespace sonde::core {

std::atomic<uint32_t> wantedCalls[3][kMaxCbids];
std::atomic<uint32_t> wantedEvents[kDomainCount][64];
std::atomic<uint32_t> wantedKinds[kKindCount];

namespace {

std::atomic<const SondePlatform*> attached{nullptr};
std::atomic<const SondePlatform*> provided{nullptr};
std::atomic<uint32_t> currentProcess{0};

std::mutex& attachMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// Without a platform: the same scale, the host's real-time clock.
uint64_t hostNow() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t (*clockFunction())(void) {
  const SondePlatform* p = attached.load(std::memory_order_acquire);
  return p != nullptr ? p->now : hostNow;
}

// A forked child has no delivery thread, and must not deliver what the parent
// will deliver.
void beforeFork() {
  lockSampling();
  registryMutex().lock();
  lockThreads();
  lockDelivery();
  lockWork();
  lockStrings();
}
void afterForkInParent() {
  unlockStrings();
  unlockWork();
  unlockDelivery();
  unlockThreads();
  registryMutex().unlock();
  unlockSampling();
}
void afterForkInChild() {
  currentProcess.store(static_cast<uint32_t>(getpid()));
  if (tlsThreadState != nullptr) {
    for (uint32_t i = 0; i < kMaxClients; ++i) {
      if (ThreadQueue* queue = std::exchange(tlsThreadState->queue[i], nullptr)) queue->release(ThreadQueue::kThread);
    }
  }
  restartDeliveryInChild();
  forgetOtherThreads();
  forgetWork();
  unlockStrings();
  unlockWork();
  unlockDelivery();
  unlockThreads();
  registryMutex().unlock();
  unlockSampling();
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    if (clients()[i].inUse() && clients()[i].buffers.load() != nullptr) {
      startDelivery();
      break;
    }
  }
}

uint64_t interestOf(uint64_t kinds) {
  auto on = [kinds](std::initializer_list<uint32_t> list) {
    for (uint32_t kind : list) {
      if (kinds & kindBit(kind)) return true;
    }
    return false;
  };
  uint64_t interest = 0;
  if (on({CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM, CUPTI_ACTIVITY_KIND_MODULE,
          CUPTI_ACTIVITY_KIND_FUNCTION, CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE,
          CUPTI_ACTIVITY_KIND_ENVIRONMENT})) {
    interest |= SONDE_INTEREST_RESOURCE;
  }
  if (on({CUPTI_ACTIVITY_KIND_OVERHEAD})) interest |= SONDE_INTEREST_RESOURCE;  // new contexts cost room
  if (on({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION})) interest |= SONDE_INTEREST_SYNC;
  if (on({CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS,
          CUPTI_ACTIVITY_KIND_SHARED_ACCESS, CUPTI_ACTIVITY_KIND_BRANCH, CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION})) {
    interest |= SONDE_INTEREST_KERNEL;
  }
  if (on({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2})) interest |= SONDE_INTEREST_MEMCPY;
  if (on({CUPTI_ACTIVITY_KIND_MEMSET})) interest |= SONDE_INTEREST_MEMSET;
  if (on({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_JIT})) interest |= SONDE_INTEREST_OVERHEAD;
  if (on({CUPTI_ACTIVITY_KIND_CUDA_EVENT})) interest |= SONDE_INTEREST_EVENT_RECORD;
  if (on({CUPTI_ACTIVITY_KIND_GRAPH_TRACE})) interest |= SONDE_INTEREST_GRAPH;
  if (on({CUPTI_ACTIVITY_KIND_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL})) {
    interest |= SONDE_INTEREST_MEMORY;
    if (on({CUPTI_ACTIVITY_KIND_MEMORY}))
      interest |= SONDE_INTEREST_RESOURCE;  // contexts that go take their memory along
  }
  if (on({CUPTI_ACTIVITY_KIND_PREEMPTION})) interest |= SONDE_INTEREST_PREEMPTION;
  if (on({CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER})) interest |= SONDE_INTEREST_UNIFIED_MEMORY;
  return interest;
}

// The registry lock is held.
void computeWanted() {
  uint32_t kindMask[kKindCount] = {};
  uint64_t kinds = 0;
  bool latency = false, byContext = false, crc = false;
  uint32_t used = 0;
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    const Client& client = clients()[i];
    if (!client.inUse()) continue;
    used |= 1u << i;
    const uint64_t any = client.anyKinds.load();
    kinds |= any;
    latency = latency || client.latencyTimestamps.load();
    crc = crc || client.computeCrc.load() != nullptr;
    byContext = byContext || client.contexts.load() != nullptr;
    for (uint32_t kind = 1; kind < kKindCount; ++kind) {
      if (any & kindBit(kind)) kindMask[kind] |= 1u << i;
    }
  }
  for (uint32_t kind = 0; kind < kKindCount; ++kind) wantedKinds[kind].store(kindMask[kind], std::memory_order_relaxed);

  const SondePlatform* p = attached.load();
  for (uint32_t domain = 1; domain <= 2; ++domain) {
    uint32_t bytes = 0;
    volatile uint8_t* enabled = p != nullptr ? p->enabledCallbacks(domain, &bytes) : nullptr;
    for (uint32_t cbid = 0; cbid < cbidCount(domain); ++cbid) {
      uint32_t wanted = 0;
      for (uint32_t mask = used; mask != 0; mask &= mask - 1) {
        const auto i = static_cast<uint32_t>(__builtin_ctz(mask));
        const Client& client = clients()[i];
        if (client.subscription.load() != nullptr && client.callbackOn[domain][cbid] != 0) wanted |= 1u << i;
        if (client.apiRecordOn[domain][cbid] != 0) wanted |= 0x10000u << i;
      }
      wantedCalls[domain][cbid].store(wanted, std::memory_order_relaxed);
      if (cbid < bytes) __atomic_store_n(&enabled[cbid], static_cast<uint8_t>(wanted != 0), __ATOMIC_RELAXED);
    }
  }
  uint64_t interest = interestOf(kinds);
  if (crc) interest |= SONDE_INTEREST_RESOURCE;               // modules that are loaded
  if (byContext) interest |= SONDE_INTEREST_RESOURCE;         // the settings go with their context
  if (events::active()) interest |= SONDE_INTEREST_RESOURCE;  // contexts that go take their event groups along
  for (uint32_t domain = CUPTI_CB_DOMAIN_RESOURCE; domain < kDomainCount; ++domain) {
    for (uint32_t cbid = 0; cbid < cbidCount(domain); ++cbid) {
      uint32_t wanted = 0;
      for (uint32_t mask = used; mask != 0; mask &= mask - 1) {
        const auto i = static_cast<uint32_t>(__builtin_ctz(mask));
        const Client& client = clients()[i];
        if (client.subscription.load() != nullptr && client.callbackOn[domain][cbid] != 0) wanted |= 1u << i;
      }
      wantedEvents[domain][cbid].store(wanted, std::memory_order_relaxed);
      if (wanted != 0 && domain == CUPTI_CB_DOMAIN_RESOURCE) interest |= SONDE_INTEREST_RESOURCE;
      if (wanted != 0 && domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) interest |= SONDE_INTEREST_SYNC;
    }
  }
  if (latency && (interest & (SONDE_INTEREST_KERNEL | SONDE_INTEREST_MEMCPY)) != 0) interest |= SONDE_INTEREST_LATENCY;
  if (p != nullptr) p->setInterest(interest);
}

}  // namespace

std::mutex& registryMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

uint32_t cbidCount(uint32_t domain) {
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API: return kDriverCbidCount;
    case CUPTI_CB_DOMAIN_RUNTIME_API: return kRuntimeCbidCount;
    case CUPTI_CB_DOMAIN_RESOURCE: return CUPTI_CBID_RESOURCE_SIZE;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE: return CUPTI_CBID_SYNCHRONIZE_SIZE;
    case CUPTI_CB_DOMAIN_NVTX: return kNvtxCbidCount;
    case CUPTI_CB_DOMAIN_STATE: return CUPTI_CBID_STATE_SIZE;
    default: return 0;
  }
}

void updateWanted() {
  {
    std::lock_guard lock(registryMutex());
    computeWanted();
  }
  updateUnifiedMemory();
}

const SondePlatform* attachedPlatform() { return attached.load(std::memory_order_acquire); }

void providePlatform(const SondePlatform* platform) { provided.store(platform); }

const SondePlatform* requirePlatform() {
  if (const SondePlatform* p = attached.load(std::memory_order_acquire)) return p;
  {
    std::lock_guard lock(attachMutex());
    if (attached.load() != nullptr) return attached.load();
    const SondePlatform* p = provided.load();
    const char* why = "";
    if (p == nullptr) p = platform::findPlatform(&why);
    if (p == nullptr) {
      fail(CUPTI_ERROR_UNKNOWN, "%s", why);
      return nullptr;
    }
    static const bool once = [] { return pthread_atfork(beforeFork, afterForkInParent, afterForkInChild) == 0; }();
    (void)once;
    if (const int32_t error = p->attach(listener()); error != 0) {
      const char* more = platform::attachFailure(p);
      if (*more != 0) {
        fail(CUPTI_ERROR_UNKNOWN, "%s", more);
      } else {
        fail(CUPTI_ERROR_UNKNOWN,
             "the driver refuses to be profiled (CUresult %d): another profiling library is attached", error);
      }
      return nullptr;
    }
    attached.store(p, std::memory_order_release);
  }
  updateWanted();
  return attached.load();
}

namespace {
template <class Field>
bool has(const SondePlatform* p, const Field& field) {
  return reinterpret_cast<const char*>(&field + 1) <= reinterpret_cast<const char*>(p) + p->size;
}
}  // namespace

void collectFinishedWork() {
  const SondePlatform* p = attached.load(std::memory_order_acquire);
  if (p != nullptr && has(p, p->collect) && p->collect != nullptr) p->collect();
}

bool platformKeepsPending() {
  const SondePlatform* p = attached.load(std::memory_order_acquire);
  return p != nullptr && has(p, p->pendingWork) && p->pendingWork != nullptr;
}

void detachUnusedPlatform() {
  const SondePlatform* p = attached.load(std::memory_order_acquire);
  if (p == nullptr || !has(p, p->detachWhenUnused) || p->detachWhenUnused == 0) return;
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    if (clients()[i].inUse()) return;
  }
  std::lock_guard lock(attachMutex());
  p = attached.load();
  if (p == nullptr) return;
  p->detach();
  attached.store(nullptr);
}

uint64_t now() { return clockFunction()(); }

uint32_t processId() {
  uint32_t id = currentProcess.load(std::memory_order_relaxed);
  if (id == 0) {
    id = static_cast<uint32_t>(getpid());
    currentProcess.store(id, std::memory_order_relaxed);
  }
  return id;
}

void keepForEver(const void* object) {
  static std::mutex& mutex = *new std::mutex;
  static std::vector<const void*>& kept = *new std::vector<const void*>;
  std::lock_guard lock(mutex);
  kept.push_back(object);
}

void warn(const char* format, ...) {
  static const bool enabled = [] {
    const char* text = std::getenv("SONDE_DEBUG");
    return text != nullptr && text[0] != 0 && text[0] != '0';
  }();
  if (!enabled) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "sonde: %s\n", text);
}

}  // namespace sonde::core
