// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/handles.h"

#include <deque>
#include <mutex>

namespace sonde::softgpu::driver {
namespace {

struct alignas(32) Slot {
  std::atomic<uint32_t> busy{0};
  std::atomic<Type> type{Type::none};
  Object* object = nullptr;

  void lock() {
    while (busy.exchange(1, std::memory_order_acquire)) {
      while (busy.load(std::memory_order_relaxed)) __builtin_ia32_pause();
    }
  }
  void unlock() { busy.store(0, std::memory_order_release); }
};

constexpr size_t kSlots = 1 << 20;
Slot slots[kSlots];  // zero pages until used

struct FreeList {
  std::mutex mutex;
  size_t neverUsed = 0;
  std::deque<uint32_t> returned;  // first in, first out: a stale handle stays invalid for long
};
FreeList& freeList() {
  static FreeList* list = new FreeList();
  return *list;
}

Slot* slotOf(const void* handle) {
  const auto offset = reinterpret_cast<uintptr_t>(handle) - reinterpret_cast<uintptr_t>(&slots[0]);
  if (offset >= sizeof(slots) || offset % sizeof(Slot)) return nullptr;
  return &slots[offset / sizeof(Slot)];
}

}  // namespace

void* HandleTable::publish(Object* object) {
  FreeList& list = freeList();
  size_t index;
  {
    std::lock_guard lock(list.mutex);
    if (list.neverUsed < kSlots && (list.returned.size() < 1024 || list.neverUsed < 1024)) {
      index = list.neverUsed++;
    } else if (!list.returned.empty()) {
      index = list.returned.front();
      list.returned.pop_front();
    } else if (list.neverUsed < kSlots) {
      index = list.neverUsed++;
    } else {
      return nullptr;
    }
  }
  Slot& slot = slots[index];
  object->ref();
  object->handle_ = &slot;
  slot.lock();
  slot.object = object;
  slot.type.store(object->type(), std::memory_order_relaxed);
  slot.unlock();
  return &slot;
}

bool HandleTable::retire(Object* object) {
  Slot* slot = slotOf(object->handle_);
  if (!slot) return false;
  slot->lock();
  const bool was = slot->object == object;
  if (was) {
    slot->object = nullptr;
    slot->type.store(Type::none, std::memory_order_relaxed);
  }
  slot->unlock();
  if (!was) return false;
  {
    FreeList& list = freeList();
    std::lock_guard lock(list.mutex);
    list.returned.push_back(static_cast<uint32_t>(slot - slots));
  }
  object->unref();
  return true;
}

Object* HandleTable::findRaw(const void* handle, Type type) {
  Slot* slot = slotOf(handle);
  if (!slot) return nullptr;
  const Type now = slot->type.load(std::memory_order_relaxed);
  if (now == Type::none) return nullptr;
  if (type != Type::none && now != type && now != Type::greenContext) return nullptr;
  slot->lock();
  Object* object = slot->object;
  if (object && type != Type::none && object->type() != type) object = object->alias(type);
  if (object)
    object->ref();
  else
    object = nullptr;
  slot->unlock();
  return object;
}

Type HandleTable::typeOf(const void* handle) {
  Slot* slot = slotOf(handle);
  return slot ? slot->type.load(std::memory_order_relaxed) : Type::none;
}

}  // namespace sonde::softgpu::driver
