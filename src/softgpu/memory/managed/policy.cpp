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
#include "softgpu/memory/managed/events.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::memory {
namespace {

constexpr uint64_t kDensityPercent = 51;  // more than this: the whole subtree comes
constexpr uint64_t kBatchPages = 64;      // pages in a batch of a device's faults …
constexpr uint32_t kBatchRepeats = 4;     // … each of them reported by this many units

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

// Pages of [first, end) that are not on m.to go there. False: m.to has no room
// for them, and nothing was moved.
bool ManagedMemory::move(Region& r, uint64_t first, uint64_t end, const Move& m) {
  if (m.to != kCpu) settle(r, first, end);
  if (m.to != kCpu) {
    uint64_t need = 0;
    for (uint64_t p = first; p < end; p++) need += !r.page[p].residentOn(m.to);
    if (!makeRoom(m.to, need, r, r.blockOf(first))) return false;
  }
  const uint64_t start = now();
  const size_t firstEvent = ringCount_;
  uint64_t moved = 0, mapFirst = 0, mapEnd = 0;  // pages that devices map anew lie in [mapFirst, mapEnd)
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
    if (r.page[runStart].remote != 0) {
      if (mapEnd != runStart) {
        announceRemote(r, mapFirst, mapEnd, kMapPolicy);
        mapFirst = runStart;
      }
      mapEnd = p;
    }
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
  announceRemote(r, mapFirst, mapEnd, kMapPolicy);
  return true;
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
  // A walk through the region by one side is no fight.
  if (c.moves != 0 && c.lastMover == who) return false;
  c.lastMover = who;
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
  const bool elsewhere = page.preferred != 0 && page.preferred != who + 1 && (write || !page.readMostly);
  if (gpu && (pinned || elsewhere)) {
    // The page stays with (or comes to) the CPU, or the device that it is to be
    // on, and this device reaches over.
    m.to = pinned ? kCpu : static_cast<Processor>(page.preferred - 1);
    m.write = true;
    if (!move(r, from, to, m)) {
      m.to = kCpu;
      move(r, from, to, m);
    }
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
      if (!gpu) return false;
      if (r.chunkOf(p).pinned || other.preferred == kCpu + 1) return true;
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
      if (p > runStart && !move(r, runStart, p, m) && runStart <= first && first < p && !move(r, first, end, m)) {
        // Nothing is left to evict: the device reaches over. No move, no thrashing.
        uint64_t reach = end;
        while (reach < r.alignedEnd(end - 1, kBig) && r.page[reach].home <= kCpu + 1) reach++;
        m.to = kCpu;
        move(r, first, reach, m);
        mapRemotely(r, first, reach, who, kMapOutOfMemory);
        r.chunkOf(first).moves = 0;
      }
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
  uint64_t throttle = 0;
  bool closed = false;
  uint32_t closedBy = 0;
  auto resolve = [&]() -> bool {
    std::lock_guard lock(lock_);
    Region* r = find(address);
    if (!r) return false;
    const uint64_t page = r->index(address);
    const uint8_t rights = onDevice ? r->page[page].deviceRights : r->page[page].hostRights;
    // Another thread's fault may have brought the page already.
    if ((rights & (write ? 2 : 1)) != 0) return true;
    if (onDevice && !traits_[who].concurrent && !visibleTo(*r)) return false;
    if (!onDevice && closedToCpu(*r)) {
      closed = true;
      closedBy = r->attach == Attach::single ? r->attachStream : busy_.front().stream;
      return false;
    }
    if (onDevice && counts(r->page[page], who) && !r->page[page].counted)
      countTouches(*r, page, page + 1, who);
    else
      handle(*r, page, page + 1, write, who, pc, 1, throttle);
    if (onDevice && (viewMask_ >> who & 1) == 0) {  // work that was not announced
      viewMask_ |= 1u << who;
      applyView(*r, 0, r->pages, false);
    }
    return true;
  };
  if (!resolve()) {
    if (closed && refused_ != nullptr) refused_(address, closedBy);
    return false;
  }
  if (throttle != 0) holdBack(address / kPage * kPage, who, throttle);
  return true;
}

// Without the lock: who fights over a page waits here.
void ManagedMemory::holdBack(uint64_t page, Processor who, uint64_t ns) {
  const uint64_t start = now();
  sleepFor(ns);
  std::lock_guard lock(lock_);
  emit(kThrottling, 0, start, std::max(now(), start + 1), page, who, kCpu, who == kCpu ? kInCpu : 0);
}

void ManagedMemory::touch(uint64_t address, uint64_t bytes, bool write, uint32_t device) {
  if (!active() || bytes == 0) return;
  const Processor who = processorOfDevice(device);
  const uint8_t needed = write ? 2 : 1;
  for (uint64_t at = address, end = address + bytes; at < end;) {
    uint64_t throttle = 0, page = 0;
    {
      std::lock_guard lock(lock_);
      // More than fits at once would be gone again before its turn: it faults then.
      if (bytes / kPage > room_[who] / 2) return;
      Region* r = find(at);
      if (!r) return;
      const uint64_t last = std::min(r->index(address + bytes - 1) + 1, r->pages);
      uint64_t p = r->index(at);
      while (p < last && throttle == 0) {
        if (r->page[p].deviceRights & needed) {
          p++;
          continue;
        }
        if (counts(r->page[p], who) && !r->page[p].counted) {
          countTouches(*r, p, p + 1, who);
          p++;
          continue;
        }
        page = r->addressOf(p);
        uint64_t to = p, limit = std::min(last, r->alignedEnd(p, kBlock));
        while (to < limit && to - p < kBatchPages && !(r->page[to].deviceRights & needed) && !counts(r->page[to], who))
          to++;
        if (to == p) to++;
        handle(*r, p, to, write, who, 0, kBatchRepeats, throttle);
        p = to;
      }
      at = r->addressOf(p);
      if (p == last) end = at;
    }
    if (throttle != 0) holdBack(page, who, throttle);
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
      case Advice::setReadMostly:
        page.readMostly = true;
        page.remote = 0;  // copies instead
        break;
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
    auto reaches = [&](uint64_t p, uint8_t home) {
      const ManagedPage& page = r->page[p];
      return page.home == home && home != 0 && home != processor + 1 && !page.readMostly;
    };
    for (uint64_t p = first; p < end;) {
      while (p < end && !reaches(p, r->page[p].home)) p++;
      const uint64_t from = p;
      while (p < end && reaches(p, r->page[from].home)) p++;
      if (p > from) mapRemotely(*r, from, p, processor, kMapPolicy);
    }
  }
  apply(*r, first, end, true);
}

void ManagedMemory::returnAllToCpu() {
  if (!active()) return;
  std::lock_guard lock(lock_);
  if (std::all_of(resident_.begin() + 1, resident_.end(), [](uint64_t pages) { return pages == 0; })) return;
  for (auto& [address, r] : regions_)
    for (uint64_t p = 0; p < r.pages && !closedToCpu(r); p = r.alignedEnd(p, kBlock))
      move(r, p, r.alignedEnd(p, kBlock), {kCpu, 0, 0, kCoherence, kPrefetch, true});
}

}  // namespace sonde::softgpu::memory
