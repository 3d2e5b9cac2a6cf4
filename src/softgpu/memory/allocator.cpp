// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "softgpu/memory/managed/managed_memory.h"
#include "softgpu/memory/pages.h"

namespace sonde::softgpu::memory {
namespace {

constexpr uint64_t kManagedBlock = 2u << 20;

bool onDevice(Kind kind) { return kind == Kind::device || kind == Kind::deviceStatic; }
constexpr uint32_t kAttachHost = 2;  // CU_MEM_ATTACH_HOST

bool isManaged(Kind kind) { return kind == Kind::managed || kind == Kind::managedStatic; }

// Managed pages need not all be on a device at once: what fits on the device
// and in the host's memory together.
uint64_t hostMemory() {
  static const uint64_t bytes =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// More than this many allocations with guard pages would use up the mappings
// that a process may have (65,530 by default; four for each of pinned memory).
constexpr uint32_t kGuardedAllocations = 6000;

}  // namespace

Allocator& Allocator::get() {
  static Allocator* allocator = new Allocator();  // outlives static destructors
  return *allocator;
}

Allocator::Allocator() {
  const Window& window = AddressSpace::get().global;
  // The first page stays unmapped: what lies before the window is local memory.
  free_[window.base + kGuard] = window.size - kGuard;
}

void Allocator::setCapacity(uint32_t device, uint64_t bytes) {
  std::unique_lock lock(mutex_);
  if (capacity_.size() <= device) {
    capacity_.resize(device + 1);
    used_.resize(device + 1);
  }
  capacity_[device] = bytes;
}

uint64_t Allocator::capacity(uint32_t device) const {
  std::shared_lock lock(mutex_);
  return device < capacity_.size() ? capacity_[device] : 0;
}

uint64_t Allocator::used(uint32_t device) const {
  std::shared_lock lock(mutex_);
  return device < used_.size() ? used_[device] : 0;
}

bool Allocator::takeRange(uint64_t bytes, uint64_t align, Range& out) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t start = alignUp(it->first, align), end = it->first + it->second;
    if (start >= end || end - start < bytes) continue;
    const uint64_t first = it->first;
    free_.erase(it);
    if (start > first) free_[first] = start - first;
    if (end > start + bytes) free_[start + bytes] = end - (start + bytes);
    out = {start, bytes};
    return true;
  }
  return false;
}

void Allocator::giveRange(Range range) {
  auto next = free_.lower_bound(range.address);
  if (next != free_.end() && range.address + range.bytes == next->first) {
    range.bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == range.address) {
      previous->second += range.bytes;
      return;
    }
  }
  free_[range.address] = range.bytes;
}

AllocError Allocator::allocate(Allocation& request, uint64_t align) {
  const Window& window = AddressSpace::get().global;
  if (request.bytes == 0) return AllocError::invalidValue;
  if (request.bytes > window.size || align > window.size) return AllocError::outOfMemory;
  const uint64_t pages = alignUp(request.bytes, kPage);
  std::unique_lock lock(mutex_);
  const bool charged = onDevice(request.kind);
  if (charged) {
    if (request.device >= capacity_.size()) return AllocError::invalidValue;
    if (request.bytes > capacity_[request.device] - used_[request.device]) return AllocError::outOfMemory;
  }
  if (isManaged(request.kind)) {
    if (request.device >= capacity_.size()) return AllocError::invalidValue;
    if (request.bytes > capacity_[request.device] + hostMemory()) return AllocError::outOfMemory;
    // As the real driver groups pages: within one 2 MiB block if they fit.
    while (align < request.bytes && align < kManagedBlock) align *= 2;
  }
  Range range{};
  const bool managed = request.kind == Kind::managed;  // slots are aligned as managed memory is
  const bool mayBeSmall = request.kind == Kind::device || request.kind == Kind::pinned || (managed && managedArenas_);
  if (mayBeSmall && guarded_ >= kGuardedAllocations && (managed || align <= kSlotAlign) &&
      takeSlot(request.kind, request.bytes, range)) {
    request.address = range.address;
    request.id = nextId_++;
    live_[request.address] = request;
    ranges_[request.address] = range;
    if (charged) used_[request.device] += request.bytes;
    return AllocError::none;
  }
  if (!takeRange(pages + kGuard, std::max(align, kPage), range)) return AllocError::outOfMemory;
  if (!mapPages(range.address, pages, request.kind)) {
    giveRange(range);
    return AllocError::outOfMemory;
  }
  // Module variables get a residence when their initial values are there.
  if (request.kind == Kind::managed &&
      !ManagedMemory::get().add(range.address, request.bytes, false,
                                request.flags == kAttachHost ? Attach::host : Attach::global)) {
    unmapPages(range.address, pages, request.kind);
    giveRange(range);
    return AllocError::outOfMemory;
  }
  // Plain device memory ends as close to its guard page as alignment allows.
  uint64_t offset = 0;
  if (request.kind == Kind::device && align < kPage) offset = pages - alignUp(request.bytes, align);
  request.address = range.address + offset;
  request.id = nextId_++;
  live_[request.address] = request;
  ranges_[request.address] = range;
  guarded_++;
  if (charged) used_[request.device] += request.bytes;
  return AllocError::none;
}

AllocError Allocator::releaseLocked(uint64_t address, Allocation* was) {
  auto it = live_.find(address);
  auto range = ranges_.find(address);
  if (it == live_.end() || range == ranges_.end() || it->second.kind == Kind::reserved) return AllocError::notFound;
  const Allocation allocation = it->second;
  if (isManaged(allocation.kind) && !range->second.arena) ManagedMemory::get().remove(range->second.address);
  if (range->second.arena) {
    giveSlot(allocation.kind, range->second);
  } else {
    unmapPages(range->second.address, range->second.bytes - kGuard, allocation.kind);
    if (range->second.fd >= 0) close(range->second.fd);  // who has mapped it keeps the pages
    giveRange(range->second);
    guarded_--;
  }
  if (onDevice(allocation.kind)) used_[allocation.device] -= allocation.bytes;
  ranges_.erase(range);
  live_.erase(it);
  if (was) *was = allocation;
  return AllocError::none;
}

AllocError Allocator::release(uint64_t address, Allocation* was) {
  std::unique_lock lock(mutex_);
  return releaseLocked(address, was);
}

std::vector<Allocation> Allocator::releaseContext(uint32_t contextUid) {
  std::unique_lock lock(mutex_);
  std::vector<Allocation> gone;
  for (const auto& [address, allocation] : live_)
    if (allocation.contextUid == contextUid && ranges_.count(address)) gone.push_back(allocation);
  for (const auto& allocation : gone) releaseLocked(allocation.address, nullptr);
  for (auto it = registered_.begin(); it != registered_.end();) {
    if (it->second.contextUid == contextUid) {
      it = registered_.erase(it);
      registeredCount_.fetch_sub(1, std::memory_order_release);
    } else {
      ++it;
    }
  }
  return gone;
}

AllocError Allocator::registerHost(Allocation& request) {
  if (request.bytes == 0 || request.address == 0 || request.address + request.bytes < request.address)
    return AllocError::invalidValue;
  const Window& all = AddressSpace::get().all;
  if (request.address < all.end() && request.address + request.bytes > all.base) return AllocError::invalidValue;
  std::unique_lock lock(mutex_);
  auto next = registered_.lower_bound(request.address);
  if (next != registered_.end() && next->first < request.address + request.bytes) return AllocError::alreadyRegistered;
  if (next != registered_.begin() && std::prev(next)->second.end() > request.address)
    return AllocError::alreadyRegistered;
  request.kind = Kind::registered;
  request.id = nextId_++;
  registered_[request.address] = request;
  registeredCount_.fetch_add(1, std::memory_order_release);
  return AllocError::none;
}

AllocError Allocator::unregisterHost(uint64_t address) {
  std::unique_lock lock(mutex_);
  if (registered_.erase(address) == 0) return AllocError::notFound;
  registeredCount_.fetch_sub(1, std::memory_order_release);
  return AllocError::none;
}

std::optional<Allocation> Allocator::find(uint64_t address) const {
  std::shared_lock lock(mutex_);
  const auto& map = AddressSpace::get().global.contains(address) ? live_ : registered_;
  auto it = map.upper_bound(address);
  if (it == map.begin()) return std::nullopt;
  --it;
  if (address >= it->second.end()) return std::nullopt;
  return it->second;
}

bool Allocator::setSyncMemops(uint64_t address, bool value) {
  std::unique_lock lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return false;
  --it;
  if (address >= it->second.end()) return false;
  it->second.syncMemops = value;
  return true;
}

bool Allocator::markReleasing(uint64_t address, Allocation* what) {
  std::unique_lock lock(mutex_);
  auto it = live_.find(address);
  if (it == live_.end() || it->second.releasing || !ranges_.count(address)) return false;
  it->second.releasing = true;
  *what = it->second;
  return true;
}

bool Allocator::hostRangeAllowed(uint64_t address, uint64_t bytes) const {
  const auto allocation = find(address);
  return allocation && allocation->kind == Kind::registered && allocation->contains(address, bytes);
}

AllocError Allocator::reserveRange(uint64_t bytes, uint64_t align, uint64_t* address) {
  if (bytes == 0 || bytes % kPage || (align & (align - 1))) return AllocError::invalidValue;
  std::unique_lock lock(mutex_);
  Range range{};
  if (!takeRange(bytes + kGuard, std::max(align, kPage), range)) return AllocError::outOfMemory;
  ranges_[range.address] = range;
  *address = range.address;
  return AllocError::none;
}

AllocError Allocator::releaseRange(uint64_t address, uint64_t bytes) {
  std::unique_lock lock(mutex_);
  auto it = ranges_.find(address);
  if (it == ranges_.end() || it->second.bytes != bytes + kGuard) return AllocError::invalidValue;
  auto inside = live_.lower_bound(address);
  if (inside != live_.end() && inside->first < address + bytes) return AllocError::invalidValue;
  giveRange(it->second);
  ranges_.erase(it);
  return AllocError::none;
}

bool Allocator::reserved(uint64_t address, uint64_t bytes) const {
  std::shared_lock lock(mutex_);
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) return false;
  --it;
  const auto live = live_.find(it->first);
  if (live != live_.end() && live->second.kind != Kind::reserved) return false;
  const uint64_t size = it->second.bytes - kGuard;
  return address - it->first <= size && bytes <= size - (address - it->first);
}

void Allocator::adopt(const Allocation& allocation) {
  std::unique_lock lock(mutex_);
  Allocation copy = allocation;
  copy.id = nextId_++;
  live_[copy.address] = copy;
}

bool Allocator::abandon(uint64_t address) {
  std::unique_lock lock(mutex_);
  return live_.erase(address) != 0;
}

bool Allocator::charge(uint32_t device, uint64_t bytes) {
  std::unique_lock lock(mutex_);
  if (device >= capacity_.size() || bytes > capacity_[device] - used_[device]) return false;
  used_[device] += bytes;
  return true;
}

void Allocator::refund(uint32_t device, uint64_t bytes) {
  std::unique_lock lock(mutex_);
  used_[device] -= bytes;
}

}  // namespace sonde::softgpu::memory
