// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/device_heap.h"

#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::exec {

DeviceHeap& DeviceHeap::of(const void* device, uint64_t bytes) {
  static std::mutex* mutex = new std::mutex();
  static auto* heaps = new std::map<const void*, std::unique_ptr<DeviceHeap>>();
  std::lock_guard lock(*mutex);
  auto& heap = (*heaps)[device];
  if (!heap) heap.reset(new DeviceHeap(bytes));
  return *heap;
}

DeviceHeap::DeviceHeap(uint64_t bytes) {
  memory::Allocation arena;
  arena.bytes = bytes;
  arena.kind = memory::Kind::device;
  if (bytes && memory::Allocator::get().allocate(arena) == memory::AllocError::none) free_[arena.address] = bytes;
}

uint64_t DeviceHeap::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > (uint64_t{1} << 40)) return 0;
  bytes = (bytes + 15) / 16 * 16;
  std::lock_guard lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < bytes) continue;
    const uint64_t address = it->first, rest = it->second - bytes;
    free_.erase(it);
    if (rest) free_[address + bytes] = rest;
    used_[address] = bytes;
    return address;
  }
  return 0;
}

bool DeviceHeap::release(uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto it = used_.find(address);
  if (it == used_.end()) return false;
  uint64_t bytes = it->second;
  used_.erase(it);
  // Join with the neighbours.
  auto next = free_.lower_bound(address);
  if (next != free_.end() && next->first == address + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == address) {
      before->second += bytes;
      return true;
    }
  }
  free_[address] = bytes;
  return true;
}

}  // namespace sonde::softgpu::exec
