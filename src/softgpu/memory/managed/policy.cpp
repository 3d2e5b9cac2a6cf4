// SPDX-License-Identifier: Apache-2.0
//
// What a fault, a prefetch or an advice makes of the pages. Everything that
// onFault reaches is async-signal-safe: no allocation, no library locks.
#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <mutex>

#include "platform/clock.h"
#include "softgpu/memory/address_space.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::memory {
namespace {

// CUpti_ActivityUnifiedMemoryCounterKind
enum : uint32_t {
  kHtoD = 1,
  kDtoH = 2,
  kCpuFault = 3,
  kGpuFault = 4,
  kThrashing = 5,
  kThrottling = 6,
  kRemoteMap = 7,
  kDtoD = 8
};
// CUpti_ActivityUnifiedMemoryMigrationCause
enum : uint32_t { kUser = 1, kCoherence = 2, kPrefetch = 3, kEviction = 4 };
// CUpti_ActivityUnifiedMemoryRemoteMapCause
enum : uint32_t { kMapThrashing = 2, kMapPolicy = 3, kMapOutOfMemory = 4 };
// CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU, …_THROTTLING_IN_CPU
constexpr uint32_t kInCpu = 1;

constexpr uint64_t kDensityPercent = 51;  // more than this: the whole subtree comes
constexpr uint64_t kBatchPages = 64;      // pages in a batch of a device's faults …
constexpr uint32_t kBatchRepeats = 4;     // … each of them reported by this many units

uint64_t now() { return platform::nowNs(); }

void sleepFor(uint64_t ns) {
  timespec t{static_cast<time_t>(ns / 1000000000u), static_cast<long>(ns % 1000000000u)};
  nanosleep(&t, nullptr);
}

}  // namespace

// Grows [first, end), which is to become resident on p, by the density rule.
void ManagedMemory::grow(const Region& r, Processor p, uint64_t& first, uint64_t& end, uint64_t faultFirst,
                         uint64_t faultEnd) const {
  for (uint64_t size = 2 * kBig; size <= kBlock; size *= 2) {
    const uint64_t from = r.alignedFirst(faultFirst, size), to = r.alignedEnd(faultFirst, size);
    if (faultEnd > to) continue;
    uint64_t full = 0;
    for (uint64_t at = from; at < to; at++)
      if (r.page[at].residentOn(p) || (at >= faultFirst && at < faultEnd)) full++;
    if (full * 100 > (to - from) * kDensityPercent) {
      first = from;
      end = to;
    }
  }
}

// Pages of [first, end) that are not on m.to go there.
void ManagedMemory::move(Region& r, uint64_t first, uint64_t end, const Move& m) {
  if (m.to != kCpu) {
    uint64_t need = 0;
    for (uint64_t p = first; p < end; p++) need += !r.page[p].residentOn(m.to);
    makeRoom(m.to, need, r, r.blockOf(first));
  }
  const uint64_t start = now();
  const size_t firstEvent = ringCount_;
  uint64_t moved = 0;
  for (uint64_t p = first; p < end;) {
    ManagedPage& page = r.page[p];
    const bool there = page.residentOn(m.to) && (!m.write || page.copies == 0);
    if (there) {
      p++;
      continue;
    }
    const uint8_t from = page.home;
    const bool transfers = from != 0 && !page.residentOn(m.to);
    auto causeOf = [&](uint64_t at) { return at >= m.faultFirst && at < m.faultEnd ? m.cause : m.otherCause; };
    const uint32_t cause = causeOf(p);
    const uint64_t runStart = p;
    const uint64_t block = r.blockOf(p);
    do {
      place(r.page[p], m.to, m.write);
      p++;
    } while (p < end && r.page[p].home == from && causeOf(p) == cause && r.blockOf(p) == block &&
             !(r.page[p].residentOn(m.to) && (!m.write || r.page[p].copies == 0)) &&
             (from != 0 && !r.page[p].residentOn(m.to)) == transfers);
    if (!transfers) continue;
    const uint32_t kind = from == kCpu + 1 ? kHtoD : m.to == kCpu ? kDtoH : kDtoD;
    const uint64_t bytes = (p - runStart) * kPage;
    moved += bytes;
    emit(kind, bytes, start, start, r.addressOf(runStart), static_cast<Processor>(from - 1), m.to, cause);
  }
  apply(r, first, end, m.to != kCpu);
  // The copies were made one after the other: each has its share of the time.
  const uint64_t took = std::max<uint64_t>(now() - start, ringCount_ - firstEvent);
  uint64_t at = start, done = 0;
  for (size_t i = firstEvent; i < ringCount_; i++) {
    SondeUnifiedMemory& e = ring_[(ringHead_ + i) % kRing];
    if (e.kind != kHtoD && e.kind != kDtoH && e.kind != kDtoD) continue;
    done += e.value;
    e.start = at;
    at = std::max(at + 1, start + took * done / std::max<uint64_t>(moved, 1));
    e.end = at;
  }
}

// Evicts the block that was used longest ago, until `pages` more fit.
void ManagedMemory::makeRoom(Processor p, uint64_t pages, const Region& keep, uint64_t keepBlock) {
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
    if (!victim) return;  // the block at hand alone is larger than the device
    const uint64_t to = victim->alignedEnd(victimPage, kBlock);
    const uint64_t start = now();
    for (uint64_t at = victimPage; at < to;) {
      const uint64_t from = at;
      while (at < to && victim->page[at].home == p + 1) {
        ManagedPage& page = victim->page[at++];
        place(page, kCpu, true);
      }
      if (at > from) emit(kDtoH, (at - from) * kPage, start, now(), victim->addressOf(from), p, kCpu, kEviction);
      while (at < to && victim->page[at].home != p + 1) {
        ManagedPage& page = victim->page[at++];
        if ((page.copies >> p & 1) == 0) continue;
        page.copies &= ~(1u << p);
        resident(p, -1);
      }
    }
    apply(*victim, victimPage, to, false);
  }
}

void ManagedMemory::mapRemotely(Region& r, uint64_t first, uint64_t end, Processor who, uint32_t cause) {
  for (uint64_t p = first; p < end; p++) r.page[p].remote |= 1u << who;
  apply(r, first, end, false);
  emit(kRemoteMap, (end - first) * kPage, now(), 0, r.addressOf(first), kCpu, who, cause);
}

// Counts a migration of the 64 KiB around page p to `who`. True: the region is
// (now) pinned to the CPU.
bool ManagedMemory::judge(Region& r, uint64_t p, Processor who, uint64_t time, uint64_t& throttle) {
  Chunk& c = r.chunkOf(p);
  if (c.pinned) return true;
  const ManagedPage& page = r.page[p];
  if (page.home == 0 || page.residentOn(who)) return false;
  if (page.readMostly) return false;
  if (time - c.lastMoveNs > limits_.lapseNs) c.moves = c.contenders = 0;
  c.lastMoveNs = time;
  c.contenders |= 1u << who | 1u << (page.home - 1);
  c.moves++;
  if (c.moves < limits_.detect) return false;
  const uint64_t first = r.alignedFirst(p, kBig), end = r.alignedEnd(p, kBig);
  if (c.moves == limits_.detect) {
    if (SondeUnifiedMemory* e = slot(kThrashing)) {
      e->value = (end - first) * kPage;
      e->address = r.addressOf(first);
      e->start = time;
      e->srcId = c.contenders >> 1;  // bit n: device n
      e->processors[0] = c.contenders >> 1;
      e->flags = c.contenders & 1u ? kInCpu : 0;
    }
  }
  if (c.moves >= limits_.pin) {
    c.pinned = true;
    return true;
  }
  throttle = limits_.throttleNs;
  return false;
}

// A fault of processor `who` on the pages [first, end).
void ManagedMemory::handle(Region& r, uint64_t first, uint64_t end, bool write, Processor who, uint64_t pc,
                           uint32_t faultsPerPage, uint64_t& throttle) {
  const uint64_t time = now();
  r.lastUse[r.blockOf(first)] = ++useCount_;
  const uint32_t access = write ? 2 : 1;
  const bool gpu = who != kCpu;
  if (gpu)
    emit(kGpuFault, faultsPerPage, time, time, r.addressOf(first), who, kCpu, access);
  else
    emit(kCpuFault, pc, time, 0, r.addressOf(first), kCpu, kCpu, access);
  const size_t faultEvent = ringCount_;  // one past it

  const bool pinned = judge(r, first, who, time, throttle);
  Move m{who, first, end, kCoherence, kPrefetch, write};
  const ManagedPage& page = r.page[first];
  uint64_t from = r.alignedFirst(first, kBig), to = r.alignedEnd(end - 1, kBig);
  const bool preferCpu = page.preferred == kCpu + 1;
  if (gpu && (pinned || preferCpu)) {
    // The page stays with (or comes to) the CPU and the device reaches over.
    m.to = kCpu;
    m.write = true;
    move(r, from, to, m);
    mapRemotely(r, from, to, who, pinned ? kMapThrashing : kMapPolicy);
  } else {
    if (write && page.copies != 0) {
      from = first;  // a write to duplicated pages ends the duplication of these alone
      to = end;
    } else {
      uint64_t growFirst = from, growEnd = to;
      grow(r, who, growFirst, growEnd, from, to);
      from = growFirst;
      to = growEnd;
    }
    // What has its place elsewhere, or is pinned, does not come along.
    auto stays = [&](uint64_t p) {
      const ManagedPage& other = r.page[p];
      if (p >= first && p < end) return false;
      if (gpu && (r.chunkOf(p).pinned || other.preferred == kCpu + 1)) return true;
      return other.preferred != 0 && other.preferred != who + 1 && other.home == other.preferred;
    };
    const uint64_t limit = room_[who] / 2;
    if (gpu && to - from > std::max(end - first, limit)) {
      from = first;
      to = end;
    }
    for (uint64_t p = from; p < to;) {
      while (p < to && stays(p)) p++;
      const uint64_t runStart = p;
      while (p < to && !stays(p)) p++;
      if (p > runStart) move(r, runStart, p, m);
    }
  }
  if (gpu && faultEvent > 0 && (eventKinds() >> kGpuFault & 1)) {
    SondeUnifiedMemory& e = ring_[(ringHead_ + faultEvent - 1) % kRing];
    if (e.kind == kGpuFault) e.end = std::max(now(), time + 1);
  }
}

bool ManagedMemory::onFault(uint64_t address, bool write, uint64_t pc, int device) {
  if (!active()) return false;
  const AddressSpace& space = AddressSpace::get();
  const bool onDevice = address >= space.all.base + static_cast<uint64_t>(space.deviceDelta);
  if (onDevice) address -= static_cast<uint64_t>(space.deviceDelta);
  if (!space.global.contains(address)) return false;
  const Processor who = !onDevice ? kCpu
                                  : processorOfDevice(device >= 0 ? static_cast<uint32_t>(device)
                                                                  : lastDevice_.load(std::memory_order_relaxed));
  uint64_t throttle = 0, page = 0;
  {
    std::lock_guard lock(lock_);
    Region* r = find(address);
    if (!r) return false;
    page = r->index(address);
    const uint8_t rights = onDevice ? r->page[page].deviceRights : r->page[page].hostRights;
    // Another thread's fault may have brought the page already.
    if ((rights & (write ? 2 : 1)) != 0) return true;
    handle(*r, page, page + 1, write, who, pc, 1, throttle);
  }
  if (throttle) {
    const uint64_t start = now();
    sleepFor(throttle);
    std::lock_guard lock(lock_);
    emit(kThrottling, 0, start, std::max(now(), start + 1), address / kPage * kPage, who, kCpu,
         who == kCpu ? kInCpu : 0);
  }
  return true;
}

void ManagedMemory::beforeDeviceWork(uint32_t device, uint64_t room) {
  if (!active() || device >= kMaxManagedDevices) return;
  std::lock_guard lock(lock_);
  room_[processorOfDevice(device)] = room / kPage;
  const bool other = lastDevice_.exchange(device, std::memory_order_relaxed) != device;
  if (!other) return;
  // Closing the device view here makes this device fault on what others hold.
  const Processor me = processorOfDevice(device);
  const AddressSpace& space = AddressSpace::get();
  for (auto& [address, r] : regions_)
    for (uint64_t p = 0; p < r.pages; p++) {
      ManagedPage& page = r.page[p];
      const bool mine = page.residentOn(me) || (page.remote >> me & 1) != 0;
      uint8_t host, rights;
      rightsOf(page, host, rights);
      if (!mine) rights = 0;
      if (page.deviceRights == rights) continue;
      page.deviceRights = rights;
      mprotect(space.deviceView(r.addressOf(p)), kPage,
               rights == 3   ? PROT_READ | PROT_WRITE
               : rights == 1 ? PROT_READ
                             : PROT_NONE);
    }
}

void ManagedMemory::touch(uint64_t address, uint64_t bytes, bool write, uint32_t device) {
  if (!active() || bytes == 0) return;
  const Processor who = processorOfDevice(device);
  std::lock_guard lock(lock_);
  // More than fits at once would be gone again before its turn: it faults then.
  if (bytes / kPage > room_[who] / 2) return;
  Region* r = find(address);
  if (!r) return;
  const uint64_t end = r->index(address + bytes - 1) + 1;
  for (uint64_t p = r->index(address); p < end;) {
    const uint8_t needed = write ? 2 : 1;
    if (r->page[p].deviceRights & needed) {
      p++;
      continue;
    }
    uint64_t to = p, limit = std::min(end, r->alignedEnd(p, kBlock));
    while (to < limit && to - p < kBatchPages && !(r->page[to].deviceRights & needed)) to++;
    uint64_t throttle = 0;
    handle(*r, p, to, write, who, 0, kBatchRepeats, throttle);
    p = to;
  }
}

void ManagedMemory::prefetch(uint64_t address, uint64_t bytes, Processor to) {
  std::lock_guard lock(lock_);
  Region* r = find(address);
  if (!r || bytes == 0) return;
  const uint64_t first = r->index(address), end = std::min(r->pages, r->index(address + bytes - 1) + 1);
  for (uint64_t p = first; p < end; p++) r->page[p].lastPrefetch = to + 1;
  if (!active()) return;
  for (uint64_t p = first; p < end;) {
    const uint64_t limit = std::min(end, r->alignedEnd(p, kBlock));
    r->lastUse[r->blockOf(p)] = ++useCount_;
    for (uint64_t at = p; at < limit; at++) {
      Chunk& c = r->chunkOf(at);
      c.pinned = false;
      c.moves = 0;
    }
    move(*r, p, limit, {to, p, limit, kUser, kUser, false});
    p = limit;
  }
}

void ManagedMemory::advise(uint64_t address, uint64_t bytes, Advice advice, Processor processor) {
  std::lock_guard lock(lock_);
  Region* r = find(address);
  if (!r || bytes == 0) return;
  const uint64_t first = r->index(address), end = std::min(r->pages, r->index(address + bytes - 1) + 1);
  const uint32_t bit = 1u << processor;
  for (uint64_t p = first; p < end; p++) {
    ManagedPage& page = r->page[p];
    switch (advice) {
      case Advice::setReadMostly: page.readMostly = true; break;
      case Advice::unsetReadMostly:
        page.readMostly = false;
        if (page.copies != 0) place(page, static_cast<Processor>(page.home - 1), true);
        break;
      case Advice::setPreferred: page.preferred = processor + 1; break;
      case Advice::unsetPreferred: page.preferred = 0; break;
      case Advice::setAccessedBy: page.accessedBy |= bit; break;
      case Advice::unsetAccessedBy:
        page.accessedBy &= ~bit;
        page.remote &= ~bit;
        break;
    }
  }
  if (!active()) return;
  if (advice == Advice::setAccessedBy && processor != kCpu) {
    for (uint64_t p = first; p < end;) {
      while (p < end && r->page[p].home != kCpu + 1) p++;
      const uint64_t from = p;
      while (p < end && r->page[p].home == kCpu + 1) p++;
      if (p > from) mapRemotely(*r, from, p, processor, kMapPolicy);
    }
  }
  apply(*r, first, end, true);
}

void ManagedMemory::returnAllToCpu() {
  if (!active()) return;
  std::lock_guard lock(lock_);
  for (auto& [address, r] : regions_)
    for (uint64_t p = 0; p < r.pages; p = r.alignedEnd(p, kBlock))
      move(r, p, r.alignedEnd(p, kBlock), {kCpu, 0, 0, kCoherence, kPrefetch, true});
}

}  // namespace sonde::softgpu::memory
