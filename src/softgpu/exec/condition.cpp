// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/condition.h"

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace sonde::softgpu::exec {

namespace {

constexpr uint32_t kSlots = 1u << 16;

// A handle is generation << 32 | slot; a slot without a condition has generation 0.
struct Slot {
  std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> value{0};
};

struct Conditions {
  std::array<Slot, kSlots> slots;
  std::mutex mutex;
  std::vector<uint32_t> freed;
  uint32_t used = 0, generation = 0;
};

Conditions& all() {
  static auto* c = new Conditions;
  return *c;
}

Slot* find(uint64_t handle) {
  const auto slot = static_cast<uint32_t>(handle);
  const auto generation = static_cast<uint32_t>(handle >> 32);
  if (slot >= kSlots || generation == 0) return nullptr;
  Slot& s = all().slots[slot];
  return s.generation.load(std::memory_order_acquire) == generation ? &s : nullptr;
}

}  // namespace

uint64_t createCondition() {
  Conditions& c = all();
  std::lock_guard lock(c.mutex);
  uint32_t slot;
  if (!c.freed.empty()) {
    slot = c.freed.back();
    c.freed.pop_back();
  } else if (c.used < kSlots) {
    slot = c.used++;
  } else {
    return 0;
  }
  if (++c.generation == 0) ++c.generation;
  c.slots[slot].value.store(0);
  c.slots[slot].generation.store(c.generation, std::memory_order_release);
  return uint64_t{c.generation} << 32 | slot;
}

void destroyCondition(uint64_t handle) {
  Slot* s = find(handle);
  if (!s) return;
  Conditions& c = all();
  std::lock_guard lock(c.mutex);
  s->generation.store(0);
  c.freed.push_back(static_cast<uint32_t>(handle));
}

bool setCondition(uint64_t handle, uint32_t value) {
  Slot* s = find(handle);
  if (s) s->value.store(value, std::memory_order_release);
  return s != nullptr;
}

uint32_t conditionValue(uint64_t handle) {
  const Slot* s = find(handle);
  return s ? s->value.load(std::memory_order_acquire) : 0;
}

}  // namespace sonde::softgpu::exec
