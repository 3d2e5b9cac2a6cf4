// SPDX-License-Identifier: Apache-2.0
//
// Small allocations side by side: slots of a power of two bytes, cut from
// arenas and kept by size when they are free. Each is longer than what lies in
// it by kGap at least, so that bytes just outside belong to no allocation.
#include <algorithm>
#include <bit>
#include <cstring>

#include "softgpu/memory/allocator.h"
#include "softgpu/memory/pages.h"

namespace sonde::softgpu::memory {
namespace {

constexpr uint64_t kGap = 512;
constexpr uint64_t kLargestSlot = 256u << 10;

}  // namespace

bool Allocator::takeSlot(Kind kind, uint64_t bytes, Range& out) {
  if (bytes > kLargestSlot - kGap) return false;
  Arenas& arenas = arenas_[kind == Kind::pinned];
  const uint64_t slot = std::bit_ceil(std::max(bytes + kGap, kSlotAlign));
  const auto sizeClass = static_cast<size_t>(std::countr_zero(slot));
  if (arenas.free.size() <= sizeClass) arenas.free.resize(sizeClass + 1);
  auto& free = arenas.free[sizeClass];
  if (!free.empty()) {
    const uint64_t address = free.back();
    free.pop_back();
    out = {address, slot, -1, arenas.ofSlot.extract(address).mapped()};
    std::memset(AddressSpace::get().deviceView(address), 0, slot);
    return true;
  }
  Arena* arena = arenas.all.empty() ? nullptr : &arenas.all.back();
  uint64_t offset = arena ? alignUp(arena->used, slot) : kArenaBytes;
  if (offset + slot > kArenaBytes) {
    Range range{};
    if (!takeRange(kArenaBytes + kGuard, kLargestSlot, range)) return false;
    if (!mapPages(range.address, kArenaBytes, kind)) {
      giveRange(range);
      return false;
    }
    arena = &arenas.all.emplace_back();
    arena->address = range.address;
    offset = 0;
  }
  arena->used = offset + slot;
  out = {arena->address + offset, slot, -1, arena};
  return true;
}

void Allocator::giveSlot(Kind kind, const Range& range) {
  Arenas& arenas = arenas_[kind == Kind::pinned];
  arenas.free[static_cast<size_t>(std::countr_zero(range.bytes))].push_back(range.address);
  arenas.ofSlot[range.address] = range.arena;
}

}  // namespace sonde::softgpu::memory
