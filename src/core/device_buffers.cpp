// SPDX-License-Identifier: Apache-2.0
#include "core/device_buffers.h"

#include <algorithm>
#include <new>

namespace sonde::core {
namespace {

uint64_t slots(uint64_t bytes) {
  return std::max<uint64_t>(bytes / DeviceBuffers::kSlotBytes + (bytes % DeviceBuffers::kSlotBytes != 0), 1);
}

void giveBack(std::atomic<uint64_t>& used) {
  // Work of an earlier life of the client has nothing to give back.
  uint64_t now = used.load(std::memory_order_relaxed);
  while (now != 0 && !used.compare_exchange_weak(now, now - 1, std::memory_order_relaxed)) {
  }
}

}  // namespace

void DeviceBuffers::configure(const Settings& settings) {
  std::lock_guard lock(mutex_);
  settings_ = settings;
}

void DeviceBuffers::reset() {
  std::lock_guard lock(mutex_);
  for (Pool& pool : pools_) {
    pool.context = 0;
    pool.used = pool.capacity = pool.done = pool.cdpUsed = pool.cdpCapacity = 0;
    pool.buffers = 0;
  }
}

void DeviceBuffers::adopt(Pool& pool, uint32_t contextUid) {
  std::lock_guard lock(mutex_);
  if (pool.context.load() == contextUid) return;
  if (pool.used.load() != 0 || pool.cdpUsed.load() != 0) return;  // shared with a live context
  const uint64_t perBuffer = slots(settings_.bytes);
  pool.buffers = std::min(settings_.preAllocate, settings_.limit);
  pool.slotsPerBuffer = perBuffer;
  pool.capacity = pool.buffers * perBuffer;
  pool.cdpCapacity = slots(settings_.cdpBytes);
  pool.done = 0;
  pool.context.store(contextUid, std::memory_order_release);
}

DeviceBuffers::Pool& DeviceBuffers::poolOf(uint32_t contextUid) {
  Pool& pool = pools_[contextUid % kPools];
  if (pool.context.load(std::memory_order_acquire) != contextUid) adopt(pool, contextUid);
  return pool;
}

bool DeviceBuffers::take(uint32_t contextUid, bool must) {
  Pool& pool = poolOf(contextUid);
  const uint64_t before = pool.used.fetch_add(1, std::memory_order_relaxed);
  if (before < pool.capacity.load(std::memory_order_relaxed)) return true;
  {
    std::lock_guard lock(mutex_);
    while (before >= pool.capacity.load() && pool.buffers < settings_.limit) {
      const uint64_t perBuffer = slots(settings_.bytes);
      ++pool.buffers;
      pool.slotsPerBuffer = perBuffer;
      pool.capacity.fetch_add(perBuffer);
    }
    if (before < pool.capacity.load()) return true;
  }
  if (must) return true;
  giveBack(pool.used);
  return false;
}

bool DeviceBuffers::release(uint32_t contextUid) {
  Pool& pool = pools_[contextUid % kPools];
  giveBack(pool.used);
  const uint64_t perBuffer = pool.slotsPerBuffer.load(std::memory_order_relaxed);
  return (pool.done.fetch_add(1, std::memory_order_relaxed) + 1) % perBuffer == 0;
}

bool DeviceBuffers::takeCdp(uint32_t contextUid) {
  Pool& pool = poolOf(contextUid);
  if (pool.cdpUsed.fetch_add(1) < pool.cdpCapacity.load()) return true;
  giveBack(pool.cdpUsed);
  return false;
}

void DeviceBuffers::releaseCdp(uint32_t contextUid) { giveBack(pools_[contextUid % kPools].cdpUsed); }

void DeviceBuffers::forgetInChild() {
  new (&mutex_) std::mutex;
  for (Pool& pool : pools_) pool.used = pool.cdpUsed = 0;
}

uint64_t DeviceBuffers::buffers(uint32_t contextUid) {
  std::lock_guard lock(mutex_);
  const Pool& pool = pools_[contextUid % kPools];
  return pool.context.load() == contextUid ? pool.buffers : 0;
}

}  // namespace sonde::core
