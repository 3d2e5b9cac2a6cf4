// SPDX-License-Identifier: Apache-2.0
//
// Devices whose kernels cannot fault (CONCURRENT_MANAGED_ACCESS is 0): what a
// kernel may use comes to the device as a whole when it is launched, and the CPU
// may not touch it until the program has waited. To what that applies is said
// by the attachment of each allocation.
#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "softgpu/memory/managed/events.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::memory {

bool ManagedMemory::closedToCpu(const Region& r) const {
  switch (r.attach) {
    case Attach::host: return false;
    case Attach::global: return !busy_.empty();
    case Attach::single: break;
  }
  return std::any_of(busy_.begin(), busy_.end(), [&](const Busy& b) { return b.stream == r.attachStream; });
}

// For kernels that run now on a device that is not concurrent.
bool ManagedMemory::visibleTo(const Region& r) const { return r.attach == Attach::global || closedToCpu(r); }

// What was protected against the CPU and is no longer closed to it.
void ManagedMemory::reopen() {
  for (auto& [address, r] : regions_) {
    if (!r.shut || closedToCpu(r)) continue;
    r.shut = false;
    mprotect(reinterpret_cast<void*>(address), r.pages * kPage, PROT_READ | PROT_WRITE);
  }
}

void ManagedMemory::launching(uint32_t device, uint32_t stream, uint32_t context) {
  if (device >= kMaxManagedDevices) return;
  const Processor who = processorOfDevice(device);
  std::lock_guard lock(lock_);
  if (traits_[who].concurrent) return;
  const auto known = std::find_if(busy_.begin(), busy_.end(), [&](const Busy& b) { return b.stream == stream; });
  if (known != busy_.end())
    known->place = ~uint64_t{0};
  else
    busy_.push_back({stream, context, ~uint64_t{0}});
  for (auto& [address, r] : regions_) {
    if (r.attach == Attach::host || (r.attach == Attach::single && r.attachStream != stream)) continue;
    for (uint64_t p = 0; p < r.pages; p = r.alignedEnd(p, kBlock)) {
      r.lastUse[r.blockOf(p)] = ++useCount_;
      move(r, p, r.alignedEnd(p, kBlock), {who, 0, 0, kCoherence, kCoherence, true});
    }
  }
}

void ManagedMemory::launched(uint32_t stream, uint64_t place) {
  std::lock_guard lock(lock_);
  for (Busy& b : busy_)
    if (b.stream == stream && b.place == ~uint64_t{0}) b.place = place;
}

void ManagedMemory::waited(uint32_t stream, uint64_t place) {
  std::lock_guard lock(lock_);
  std::erase_if(busy_, [&](const Busy& b) { return b.stream == stream && b.place <= place; });
  reopen();
}

void ManagedMemory::waitedForContext(uint32_t context) {
  std::lock_guard lock(lock_);
  std::erase_if(busy_, [&](const Busy& b) { return b.context == context && b.place != ~uint64_t{0}; });
  reopen();
}

bool ManagedMemory::attachable(uint64_t address, uint64_t bytes) {
  std::lock_guard lock(lock_);
  const Region* r = find(address);
  return r && r->address == address && (bytes == 0 || bytes == r->bytes);
}

void ManagedMemory::attach(uint64_t address, Attach attach, uint32_t stream) {
  std::lock_guard lock(lock_);
  Region* r = find(address);
  if (!r || r->arena) return;  // arenas are for devices that can fault: they look at no attachment
  r->attach = attach;
  r->attachStream = stream;
  reopen();
  if (!active() || attach != Attach::host) return;
  // Such a device cannot be stopped from using what it holds: it gives it back.
  auto leaves = [&](uint64_t p) {
    const uint8_t home = r->page[p].home;
    return home > kCpu + 1 && !traits_[home - 1].concurrent;
  };
  for (uint64_t p = 0; p < r->pages;) {
    while (p < r->pages && !leaves(p)) p++;
    const uint64_t from = p;
    while (p < r->pages && leaves(p)) p++;
    if (p > from) move(*r, from, p, {kCpu, 0, 0, kUser, kUser, true});
  }
}

}  // namespace sonde::softgpu::memory
