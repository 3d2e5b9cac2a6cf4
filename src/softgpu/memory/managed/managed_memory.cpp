// SPDX-License-Identifier: Apache-2.0
//
// Allocations, residence and rights; what a fault makes of them is in policy.cpp.
#include "softgpu/memory/managed/managed_memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "platform/clock.h"
#include "softgpu/memory/address_space.h"
#include "softgpu/memory/managed/events.h"

namespace sonde::softgpu::memory {

ManagedMemory& ManagedMemory::get() {
  static ManagedMemory* memory = new ManagedMemory();
  return *memory;
}

ManagedMemory::ManagedMemory() {
  room_.fill(~uint64_t{0});
  pthread_atfork([] { get().lock_.lock(); }, [] { get().lock_.unlock(); },
                 [] {
                   get().hostFaults_.forgetInChild();
                   get().lock_.unlock();
                 });
}

uint64_t ManagedMemory::Region::alignedFirst(uint64_t p, uint64_t size) const {
  return index(std::max(address, addressOf(p) / size * size));
}
uint64_t ManagedMemory::Region::alignedEnd(uint64_t p, uint64_t size) const {
  return (std::min(end(), addressOf(p) / size * size + size) - address) / kPage;
}

ManagedMemory::Region* ManagedMemory::find(uint64_t address) {
  auto it = regions_.upper_bound(address);
  if (it == regions_.begin()) return nullptr;
  --it;
  return address < it->second.end() ? &it->second : nullptr;
}

bool ManagedMemory::add(uint64_t address, uint64_t bytes, bool populated, Attach attach, bool arena) {
  Region r;
  r.attach = attach;
  r.arena = arena;
  r.bytes = bytes;
  r.address = address / kPage * kPage;
  r.pages = (address + bytes - r.address + kPage - 1) / kPage;
  r.page.reset(new (std::nothrow) ManagedPage[r.pages]);
  r.chunk.reset(new (std::nothrow) Chunk[r.end() / kBig - r.address / kBig + 1]);
  const uint64_t blocks = r.end() / kBlock - r.address / kBlock + 1;
  r.lastUse.reset(new (std::nothrow) uint64_t[blocks]());
  r.touches.reset(new (std::nothrow) uint32_t[blocks]());
  if (!r.page || !r.chunk || !r.lastUse || !r.touches) return false;
  // The allocator maps both views readable and writable.
  for (uint64_t p = 0; p < r.pages; p++) {
    ManagedPage& page = r.page[p];
    page.hostRights = page.deviceRights = 3;
    if (populated) page.home = kCpu + 1;
  }
  std::lock_guard lock(lock_);
  if (active()) r.watched = hostFaults_.watch(r.address, r.pages * kPage);
  auto [it, fresh] = regions_.insert_or_assign(r.address, std::move(r));
  regionCount_.store(regions_.size(), std::memory_order_relaxed);
  if (active()) apply(it->second, 0, it->second.pages, true);
  return true;
}

void ManagedMemory::remove(uint64_t address) {
  std::map<uint64_t, Region>::node_type gone;  // freed outside of the lock
  std::lock_guard lock(lock_);
  auto it = regions_.find(address / kPage * kPage);
  if (it == regions_.end()) return;
  for (uint64_t p = 0; p < it->second.pages; p++) {
    const ManagedPage& page = it->second.page[p];
    for (Processor who = 1; who <= kMaxManagedDevices; who++)
      if (page.residentOn(who)) resident(who, -1);
  }
  gone = regions_.extract(it);
  regionCount_.store(regions_.size(), std::memory_order_relaxed);
}

void ManagedMemory::reset(uint64_t address, uint64_t bytes) {
  std::lock_guard lock(lock_);
  Region* r = find(address);
  if (!r) return;
  const uint64_t first = r->index(address), end = r->index(address + bytes);
  for (uint64_t p = first; p < end; p++) {
    ManagedPage& page = r->page[p];
    for (Processor who = 1; who <= kMaxManagedDevices && (page.home > kCpu + 1 || page.copies != 0); who++)
      if (page.residentOn(who)) resident(who, -1);
    ManagedPage fresh;
    fresh.hostRights = page.hostRights;
    fresh.deviceRights = page.deviceRights;
    page = fresh;
  }
  if (active()) apply(*r, first, end, true);
}

void ManagedMemory::activate(bool userfault, bool openFresh) {
  if (active()) return;
  if (userfault)
    hostFaults_.start({[] { return (get().eventKinds() >> 3 & 1) != 0; },  // CPU_PAGE_FAULT_COUNT
                       [](uint64_t address, bool write, uint64_t pc) { get().answerHostFault(address, write, pc); }});
  auto ring = std::make_unique<SondeUnifiedMemory[]>(kRing);
  std::lock_guard lock(lock_);
  if (active()) return;
  ring_ = std::move(ring);
  openFresh_ = openFresh && !hostFaults_.running();
  active_.store(true, std::memory_order_release);
  for (auto& [address, r] : regions_) {
    for (uint64_t p = 0; p < r.pages; p++) r.page[p].home = kCpu + 1;
    r.watched = hostFaults_.watch(r.address, r.pages * kPage);
    apply(r, 0, r.pages, true);
  }
}

// A page that the CPU had the right to may be back already, may never have been
// mapped, or the kernel took it away: it is mapped once more.
void ManagedMemory::answerHostFault(uint64_t address, bool write, uint64_t pc) {
  {
    std::lock_guard lock(lock_);
    if (Region* r = find(address)) {
      const uint8_t rights = r->page[r->index(address)].hostRights;
      if ((rights & (write ? 2 : 1)) != 0) {
        hostFaults_.setRights(address, kPage, rights, rights);
        return;
      }
    }
  }
  if (onFault(address, write, pc, -1)) return;
  // The CPU may not: the next try is a SIGSEGV of the thread, with the right
  // address, and EFAULT in a system call.
  std::lock_guard lock(lock_);
  Region* r = find(address);
  if (!r || !closedToCpu(*r)) return;
  r->shut = true;
  mprotect(reinterpret_cast<void*>(address), kPage, PROT_NONE);
}

// ------------------------------------------------------------------ rights --

// The device view is one for all devices: it is open for those that have work
// under way (viewMask_).
void ManagedMemory::rightsOf(const ManagedPage& page, uint8_t& host, uint8_t& device) const {
  host = device = 0;
  if (page.home == 0) {
    if (openFresh_) host = 3;
    return;
  }
  const bool duplicated = page.copies != 0;
  const uint8_t owner = duplicated ? 1 : 3;
  if (page.home == kCpu + 1)
    host = owner;
  else if (viewMask_ >> (page.home - 1) & 1)
    device = owner;
  if (page.copies & 1u) host = 1;
  if (page.copies & viewMask_) device |= 1;
  if (duplicated) return;
  for (uint32_t remote = page.remote & viewMask_; remote != 0; remote &= remote - 1)
    if (page.counted || !counts(page, static_cast<Processor>(__builtin_ctz(remote)))) device = 3;
}

void ManagedMemory::applyView(Region& r, uint64_t first, uint64_t end, bool host) {
  const AddressSpace& space = AddressSpace::get();
  for (uint64_t p = first; p < end;) {
    auto wanted = [&](uint64_t at) {
      uint8_t h, d;
      rightsOf(r.page[at], h, d);
      return host ? h : d;
    };
    auto now = [&](uint64_t at) -> uint8_t& { return host ? r.page[at].hostRights : r.page[at].deviceRights; };
    const uint8_t rights = wanted(p);
    if (now(p) == rights) {
      p++;
      continue;
    }
    uint64_t to = p;
    uint8_t before = 0;
    while (to < end && wanted(to) == rights) {
      before |= now(to);
      now(to++) = rights;
    }
    const uint64_t address = r.addressOf(p);
    if (host && r.watched) {
      hostFaults_.setRights(address, (to - p) * kPage, rights, before);
      p = to;
      continue;
    }
    void* where = host ? reinterpret_cast<void*>(address) : static_cast<void*>(space.deviceView(address));
    const int protection = rights == 3 ? PROT_READ | PROT_WRITE : rights == 1 ? PROT_READ : PROT_NONE;
    if (mprotect(where, (to - p) * kPage, protection) != 0) {
      openView(r, host);
      return;
    }
    p = to;
  }
}

// The process has as many mappings as it may have (vm.max_map_count): a view that cannot be protected by pages is open
// as a whole. Both views are on the same memory, so that this costs faults that would have been counted, nothing else.
void ManagedMemory::openView(Region& r, bool host) {
  void* where =
      host ? reinterpret_cast<void*>(r.address) : static_cast<void*>(AddressSpace::get().deviceView(r.address));
  if (mprotect(where, r.pages * kPage, PROT_READ | PROT_WRITE) != 0) return;
  for (uint64_t p = 0; p < r.pages; p++) (host ? r.page[p].hostRights : r.page[p].deviceRights) = 3;
}

void ManagedMemory::apply(Region& r, uint64_t first, uint64_t end, bool hostFirst) {
  applyView(r, first, end, hostFirst);
  applyView(r, first, end, !hostFirst);
}

// Pages that were open to the CPU before anybody touched them, and are about to
// go elsewhere: those that have contents by now are the CPU's.
void ManagedMemory::settle(Region& r, uint64_t first, uint64_t end) {
  if (!openFresh_) return;
  unsigned char there[kBlock / kPage];
  for (uint64_t p = first; p < end;) {
    if (r.page[p].home != 0) {
      p++;
      continue;
    }
    const uint64_t from = p;
    while (p < end && r.page[p].home == 0 && p - from < sizeof there) p++;
    if (mincore(reinterpret_cast<void*>(r.addressOf(from)), (p - from) * kPage, there) != 0) continue;
    for (uint64_t at = from; at < p; at++)
      if (there[at - from] & 1) r.page[at].home = kCpu + 1;
  }
}

void ManagedMemory::place(ManagedPage& page, Processor to, bool write) {
  const bool duplicate = page.readMostly && !write && page.home != 0;
  if (duplicate) {
    if (page.residentOn(to)) return;
    page.copies |= 1u << to;
    if (to != kCpu) resident(to, 1);
    return;
  }
  for (Processor who = 1; who <= kMaxManagedDevices; who++)
    if (page.residentOn(who)) resident(who, -1);
  page.home = to + 1;
  page.copies = 0;
  // Devices reach each other's memory; the CPU does not reach theirs.
  page.remote = page.readMostly ? 0 : page.accessedBy & ~1u & ~(1u << to);
  page.counted = false;
  if (to != kCpu) resident(to, 1);
}

// ------------------------------------------------------------------ events --

void ManagedMemory::setEvents(uint32_t kindMask, void (*wake)()) {
  wake_.store(wake, std::memory_order_relaxed);
  kindMask_.store(kindMask, std::memory_order_relaxed);
}

SondeUnifiedMemory* ManagedMemory::slot(uint32_t kind) {
  if ((kindMask_.load(std::memory_order_relaxed) >> kind & 1) == 0) return nullptr;
  if (ringCount_ == kRing) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  SondeUnifiedMemory* event = &ring_[(ringHead_ + ringCount_++) % kRing];
  *event = SondeUnifiedMemory{};
  event->size = sizeof *event;
  event->kind = kind;
  if (ringCount_ == 1)
    if (auto* wake = wake_.load(std::memory_order_relaxed)) wake();
  return event;
}

void ManagedMemory::emit(uint32_t kind, uint64_t value, uint64_t start, uint64_t end, uint64_t address, Processor from,
                         Processor to, uint32_t flags) {
  SondeUnifiedMemory* event = slot(kind);
  if (!event) return;
  event->value = value;
  event->start = start;
  event->end = end;
  event->address = address;
  const uint32_t cpu = kind == kRemoteMap || kind == kThrottling ? kCpuId : 0;
  event->srcId = from == kCpu ? cpu : from - 1u;
  event->dstId = kind == kThrottling ? 0 : to == kCpu ? cpu : to - 1u;
  event->flags = flags;
}

size_t ManagedMemory::takeEvents(SondeUnifiedMemory* out, size_t max) {
  std::lock_guard lock(lock_);
  const size_t n = std::min(max, ringCount_);
  for (size_t i = 0; i < n; i++) out[i] = ring_[(ringHead_ + i) % kRing];
  ringHead_ = (ringHead_ + n) % kRing;
  ringCount_ -= n;
  return n;
}

void ManagedMemory::setThrashing(const ThrashingLimits& limits) {
  std::lock_guard lock(lock_);
  limits_ = limits;
}

}  // namespace sonde::softgpu::memory
