// SPDX-License-Identifier: Apache-2.0
//
// Small allocations side by side: slots of a power of two bytes, cut from
// arenas and kept by size when they are free. Each is longer than what lies in
// it by kGap at least, so that bytes just outside belong to no allocation.
// Managed memory resides by pages, so that its slots are of whole pages; an
// arena is one region of ManagedMemory.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "softgpu/memory/allocator.h"
#include "softgpu/memory/managed/managed_memory.h"
#include "softgpu/memory/pages.h"

namespace sonde::softgpu::memory {
namespace {

constexpr uint64_t kGap = 512;
constexpr uint64_t kLargestSlot = 256u << 10;
constexpr uint64_t kLargestManagedSlot = 2u << 20;

}  // namespace

bool Allocator::takeSlot(Kind kind, uint64_t bytes, Range& out) {
  const bool managed = kind == Kind::managed;
  const uint64_t largest = managed ? kLargestManagedSlot : kLargestSlot;
  if (bytes > largest - kGap) return false;
  Arenas& arenas = arenasOf(kind);
  const uint64_t slot = std::bit_ceil(std::max(bytes + kGap, managed ? kPage : kSlotAlign));
  const auto sizeClass = static_cast<size_t>(std::countr_zero(slot));
  if (arenas.free.size() <= sizeClass) arenas.free.resize(sizeClass + 1);
  auto& free = arenas.free[sizeClass];
  if (!free.empty()) {
    const uint64_t address = free.back();
    free.pop_back();
    out = {address, slot, -1, arenas.ofSlot.extract(address).mapped()};
    if (managed)
      ManagedMemory::get().reset(address, slot);  // its pages are zero since it was given back
    else
      std::memset(AddressSpace::get().deviceView(address), 0, slot);
    return true;
  }
  Arena* arena = arenas.all.empty() ? nullptr : &arenas.all.back();
  uint64_t offset = arena ? alignUp(arena->used, slot) : kArenaBytes;
  if (offset + slot > kArenaBytes) {
    Range range{};
    if (!takeRange(kArenaBytes + kGuard, largest, range)) return false;
    int fd = -1;
    if (!mapPages(range.address, kArenaBytes, kind, managed ? &fd : nullptr)) {
      giveRange(range);
      return false;
    }
    if (managed && !ManagedMemory::get().add(range.address, kArenaBytes, false, Attach::global, true)) {
      unmapPages(range.address, kArenaBytes, kind);
      close(fd);
      giveRange(range);
      return false;
    }
    arena = &arenas.all.emplace_back();
    arena->address = range.address;
    arena->fd = fd;
    offset = 0;
  }
  arena->used = offset + slot;
  out = {arena->address + offset, slot, -1, arena};
  return true;
}

void Allocator::giveSlot(Kind kind, const Range& range) {
  Arenas& arenas = arenasOf(kind);
  if (kind == Kind::managed) {
    ManagedMemory::get().reset(range.address, range.bytes);
    fallocate(range.arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(range.address - range.arena->address), static_cast<off_t>(range.bytes));
  }
  arenas.free[static_cast<size_t>(std::countr_zero(range.bytes))].push_back(range.address);
  arenas.ofSlot[range.address] = range.arena;
}

}  // namespace sonde::softgpu::memory
