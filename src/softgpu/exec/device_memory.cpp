// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/device_memory.h"

#include <sys/mman.h>

#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::exec {

namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kLocalGap = 64 * 1024;
uint64_t pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
}  // namespace

DeviceScratch& DeviceScratch::get() {
  static DeviceScratch* scratch = new DeviceScratch();
  return *scratch;
}

unsigned DeviceScratch::takeSlots(unsigned count) {
  std::lock_guard lock(mutex_);
  if (auto it = freeSlots_.find(count); it != freeSlots_.end()) {
    const unsigned s = it->second;
    freeSlots_.erase(it);
    return s;
  }
  slots_.resize(slots_.size() + count);
  return static_cast<unsigned>(slots_.size() - count);
}

void DeviceScratch::giveSlots(unsigned first, unsigned count) {
  std::lock_guard lock(mutex_);
  freeSlots_.emplace(count, first);
}

bool DeviceScratch::shared(unsigned slot, uint64_t bytes, uint64_t& base) {
  const auto& space = memory::AddressSpace::get();
  base = space.shared.base + slot * kSharedStride;
  if (bytes > kSharedStride - kPage || base + kSharedStride > space.shared.end()) return false;
  std::lock_guard lock(mutex_);
  Slot& s = slots_[slot];
  const uint64_t want = pages(bytes);
  if (want <= s.sharedMapped) return true;
  if (mprotect(space.deviceView(base), want, PROT_READ | PROT_WRITE) != 0) return false;
  s.sharedMapped = want;
  return true;
}

bool DeviceScratch::local(unsigned slot, uint64_t bytes, uint64_t& base) {
  const auto& space = memory::AddressSpace::get();
  std::lock_guard lock(mutex_);
  Slot& s = slots_[slot];
  if (bytes <= s.localBytes) {
    base = s.localBytes ? s.localBase : space.local.base;
    return true;
  }
  if (s.localBytes) freeLocal_.emplace(s.localBytes, s.localBase);
  s.localBytes = 0;
  uint64_t want = kPage;
  while (want < bytes) want *= 2;
  if (auto it = freeLocal_.find(want); it != freeLocal_.end()) {
    s.localBase = it->second;
    freeLocal_.erase(it);
  } else {
    if (!nextLocal_) nextLocal_ = space.local.base + kLocalGap;
    if (want > space.local.end() - nextLocal_ || space.local.end() - nextLocal_ - want < kLocalGap) return false;
    if (mprotect(space.deviceView(nextLocal_), want, PROT_READ | PROT_WRITE) != 0) return false;
    s.localBase = nextLocal_;
    nextLocal_ += want + kLocalGap;
  }
  s.localBytes = want;
  base = s.localBase;
  return true;
}

}  // namespace sonde::softgpu::exec
