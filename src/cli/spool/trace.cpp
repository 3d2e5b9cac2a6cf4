// SPDX-License-Identifier: Apache-2.0
#include "cli/spool/trace.h"

#include <algorithm>
#include <tuple>

namespace sonde {
namespace {

template <typename E>
void sortEvents(std::vector<E>& events) {
  std::sort(events.begin(), events.end(), [](const E& a, const E& b) {
    return std::tie(a.start, a.process, a.record) < std::tie(b.start, b.process, b.record);
  });
}

// A driver call that lies within a runtime call of its thread was made by it.
void markNested(std::vector<ApiCall>& calls) {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> runtimeUntil;  // (process, thread) → end
  // Calls are in the order of their starts; at one start the longer is outside.
  std::vector<ApiCall*> order;
  order.reserve(calls.size());
  for (ApiCall& call : calls) order.push_back(&call);
  std::stable_sort(order.begin(), order.end(), [](const ApiCall* a, const ApiCall* b) {
    return std::make_tuple(a->start, !a->runtime) < std::make_tuple(b->start, !b->runtime);
  });
  for (ApiCall* call : order) {
    uint64_t& until = runtimeUntil[{call->process, call->threadId}];
    if (call->runtime) {
      until = std::max(until, call->end);
    } else {
      call->nested = call->start < until && call->end <= until;
    }
  }
}

template <typename E>
void earliest(const std::vector<E>& events, uint64_t& best) {
  for (const E& e : events)
    if (e.start != 0) {
      best = std::min(best, e.start);
      break;
    }
}

}  // namespace

StringId Trace::intern(std::string text) {
  if (text.empty()) return 0;
  const auto [it, isNew] = index_.try_emplace(text, static_cast<StringId>(strings.size()));
  if (isNew) strings.push_back(std::move(text));
  return it->second;
}

uint64_t Trace::records() const {
  uint64_t n = 0;
  for (const Process& p : processes) n += p.records;
  return n;
}

uint64_t Trace::dropped() const {
  uint64_t n = 0;
  for (const Process& p : processes) n += p.dropped;
  return n;
}

uint64_t Trace::damagedBytes() const {
  uint64_t n = 0;
  for (const Process& p : processes) n += p.damagedBytes;
  return n;
}

uint64_t Trace::unfinished() const {
  return static_cast<uint64_t>(
      std::count_if(gpuEvents.begin(), gpuEvents.end(), [](const GpuEvent& e) { return !e.finished; }));
}

uint64_t Trace::origin() const {
  uint64_t best = UINT64_MAX;
  earliest(apiCalls, best);
  earliest(gpuEvents, best);
  earliest(ranges, best);
  earliest(overheads, best);
  earliest(synchronizations, best);
  earliest(memoryOperations, best);
  earliest(unifiedMemory, best);
  earliest(launches, best);
  return best == UINT64_MAX ? 0 : best;
}

void Trace::finish() {
  sortEvents(apiCalls);
  sortEvents(gpuEvents);
  sortEvents(ranges);
  sortEvents(overheads);
  sortEvents(synchronizations);
  sortEvents(memoryOperations);
  sortEvents(unifiedMemory);
  sortEvents(launches);
  sortEvents(environment);
  markNested(apiCalls);
  const auto byId = [](const auto& a, const auto& b) { return std::tie(a.process, a.id) < std::tie(b.process, b.id); };
  const auto same = [](const auto& a, const auto& b) { return a.process == b.process && a.id == b.id; };
  std::stable_sort(devices.begin(), devices.end(), byId);
  devices.erase(std::unique(devices.begin(), devices.end(), same), devices.end());
  std::stable_sort(contexts.begin(), contexts.end(), byId);
  contexts.erase(std::unique(contexts.begin(), contexts.end(), same), contexts.end());
}

}  // namespace sonde
