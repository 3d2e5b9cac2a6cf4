// SPDX-License-Identifier: Apache-2.0
//
// Several devices, and reaching over: which pages a device maps where they are,
// what is evicted from it, and what its accesses from afar lead to.
#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "softgpu/memory/managed/events.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::memory {

void ManagedMemory::setDevice(uint32_t device, const ManagedDevice& what) {
  if (device >= kMaxManagedDevices) return;
  std::lock_guard lock(lock_);
  traits_[processorOfDevice(device)] = what;
}

void ManagedMemory::beforeDeviceWork(uint32_t device, uint64_t room) {
  if (device >= kMaxManagedDevices) return;
  std::lock_guard lock(lock_);
  const Processor me = processorOfDevice(device);
  room_[me] = room / kPage;
  lastDevice_.store(device, std::memory_order_relaxed);
  running_[me]++;
  uint32_t mask = 0;
  for (Processor p = 1; p <= kMaxManagedDevices; p++)
    if (running_[p] != 0) mask |= 1u << p;
  // Closing the view here makes this device fault on what others hold, and
  // touch anew what it reaches over to.
  const bool other = mask != viewMask_;
  viewMask_ = mask;
  for (auto& [address, r] : regions_) {
    if (!other && !r.counted) continue;
    if (r.counted)
      for (uint64_t p = 0; p < r.pages; p++) r.page[p].counted = false;
    r.counted = false;
    applyView(r, 0, r.pages, false);
  }
}

void ManagedMemory::afterDeviceWork(uint32_t device) {
  if (device >= kMaxManagedDevices) return;
  std::lock_guard lock(lock_);
  uint32_t& running = running_[processorOfDevice(device)];
  if (running != 0) running--;
}

// Pages of [first, end) that `who` reaches over to are touched for the first
// time by the work under way.
void ManagedMemory::countTouches(Region& r, uint64_t first, uint64_t end, Processor who) {
  for (uint64_t p = first; p < end; p++) {
    ManagedPage& page = r.page[p];
    if (!counts(page, who) || page.counted) continue;
    page.counted = r.counted = true;
    const uint64_t block = r.blockOf(p);
    if (++r.touches[block] < traits_[who].accessThreshold) continue;
    r.touches[block] = 0;
    r.lastUse[block] = ++useCount_;
    auto comes = [&](uint64_t at) { return counts(r.page[at], who) && !r.chunkOf(at).pinned; };
    for (uint64_t at = r.alignedFirst(p, kBlock), to = r.alignedEnd(p, kBlock); at < to;) {
      while (at < to && !comes(at)) at++;
      const uint64_t from = at;
      while (at < to && comes(at)) at++;
      if (at > from) move(r, from, at, {who, 0, 0, kAccessCounters, kAccessCounters, true});
    }
  }
  applyView(r, first, end, false);
}

void ManagedMemory::mapRemotely(Region& r, uint64_t first, uint64_t end, Processor who, uint32_t cause) {
  for (uint64_t p = first; p < end; p++) r.page[p].remote |= 1u << who;
  apply(r, first, end, false);
  emit(kRemoteMap, (end - first) * kPage, now(), 0, r.addressOf(first), who,
       static_cast<Processor>(r.page[first].home - 1), cause);
}

// Says which devices map the pages of [first, end), which have just come to
// where they are, from there. As on a card the source is the device that maps,
// the destination who has the memory.
void ManagedMemory::announceRemote(const Region& r, uint64_t first, uint64_t end, uint32_t cause) {
  for (uint64_t p = first; p < end;) {
    const ManagedPage& page = r.page[p];
    const uint64_t runStart = p;
    while (p < end && r.page[p].remote == page.remote && r.page[p].home == page.home) p++;
    for (uint32_t remote = page.remote; remote != 0; remote &= remote - 1)
      emit(kRemoteMap, (p - runStart) * kPage, now(), 0, r.addressOf(runStart),
           static_cast<Processor>(__builtin_ctz(remote)), static_cast<Processor>(page.home - 1), cause);
  }
}

// Evicts the block that was used longest ago, until `pages` more fit. False:
// they never will, the block at hand alone is larger than the device.
bool ManagedMemory::makeRoom(Processor p, uint64_t pages, const Region& keep, uint64_t keepBlock) {
  while (resident_[p] + pages > room_[p]) {
    Region* victim = nullptr;
    uint64_t victimPage = 0, oldest = ~uint64_t{0};
    for (auto& [address, r] : regions_)
      for (uint64_t at = 0; at < r.pages; at = r.alignedEnd(at, kBlock)) {
        const uint64_t block = r.blockOf(at);
        if (r.lastUse[block] >= oldest || (&r == &keep && block == keepBlock)) continue;
        const uint64_t to = r.alignedEnd(at, kBlock);
        if (std::any_of(&r.page[at], &r.page[to], [&](const ManagedPage& page) { return page.residentOn(p); })) {
          victim = &r;
          victimPage = at;
          oldest = r.lastUse[block];
        }
      }
    if (!victim) return false;
    const uint64_t to = victim->alignedEnd(victimPage, kBlock);
    const uint64_t start = now();
    for (uint64_t at = victimPage; at < to;) {
      const uint64_t from = at;
      while (at < to && victim->page[at].home == p + 1) {
        ManagedPage& page = victim->page[at++];
        place(page, kCpu, true);
      }
      if (at > from) {
        emit(kDtoH, (at - from) * kPage, start, now(), victim->addressOf(from), p, kCpu, kEviction);
        announceRemote(*victim, from, at, kMapEviction);
      }
      while (at < to && victim->page[at].home != p + 1) {
        ManagedPage& page = victim->page[at++];
        if ((page.copies >> p & 1) == 0) continue;
        page.copies &= ~(1u << p);
        resident(p, -1);
      }
    }
    apply(*victim, victimPage, to, false);
  }
  return true;
}

}  // namespace sonde::softgpu::memory
