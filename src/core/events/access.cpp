// SPDX-License-Identifier: Apache-2.0
#include "core/events/access.h"

#include <atomic>
#include <mutex>

#include "core/core.h"
#include "core/errors.h"

namespace sonde::core::events {
namespace {

struct Systems {
  explicit Systems(const SondePlatform& p) : platform(p), events(p), metrics(p, events), epoch(p.now()) {}
  const SondePlatform& platform;
  EventSystem events;
  MetricSystem metrics;
  uint64_t epoch;
};

std::atomic<Systems*> current{nullptr};  // made once, lives until the process ends
std::mutex makeMutex;

Systems* systems(Status* status) {
  const SondePlatform* p = requirePlatform();
  if (!p) {
    const char* why = resultMessage(CUPTI_ERROR_NOT_INITIALIZED);
    *status = {CUPTI_ERROR_NOT_INITIALIZED, why ? why : "there is no CUDA driver"};
    return nullptr;
  }
  if (!p->counterRead || !p->counterConfigure) {
    *status = {CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "this platform has no event counters"};
    return nullptr;
  }
  Systems* s = current.load(std::memory_order_acquire);
  if (s) return s;
  {
    std::lock_guard lock(makeMutex);
    s = current.load(std::memory_order_relaxed);
    if (s) return s;
    s = new Systems(*p);
    current.store(s, std::memory_order_release);
  }
  updateWanted();  // from now on we want to hear of contexts
  return s;
}

}  // namespace

EventSystem* eventSystem(Status* status) {
  Systems* s = systems(status);
  return s ? &s->events : nullptr;
}

MetricSystem* metricSystem(Status* status) {
  Systems* s = systems(status);
  return s ? &s->metrics : nullptr;
}

const SondePlatform* platform() { return &current.load(std::memory_order_acquire)->platform; }

uint64_t deviceEpoch() { return current.load(std::memory_order_acquire)->epoch; }

bool active() { return current.load(std::memory_order_acquire) != nullptr; }

void contextDestroyed(CUcontext context) {
  if (Systems* s = current.load(std::memory_order_acquire)) s->events.contextDestroyed(context);
}

}  // namespace sonde::core::events
