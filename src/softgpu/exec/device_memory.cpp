// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/device_memory.h"

#include <sys/mman.h>

#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::exec {

namespace {
constexpr uint64_t kSharedStride = 512 * 1024;  // the largest block's shared memory and a gap
constexpr uint64_t kPage = 4096;
constexpr uint64_t kLocalGap = 64 * 1024;
uint64_t pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
}  // namespace

DeviceScratch& DeviceScratch::get() {
  static DeviceScratch* scratch = new DeviceScratch();
  return *scratch;
}

unsigned DeviceScratch::takeSlot() {
  std::lock_guard lock(mutex_);
  if (!freeSlots_.empty()) {
    const unsigned s = freeSlots_.back();
    freeSlots_.pop_back();
    return s;
  }
  slots_.emplace_back();
  return static_cast<unsigned>(slots_.size() - 1);
}

void DeviceScratch::giveSlot(unsigned slot) {
  std::lock_guard lock(mutex_);
  freeSlots_.push_back(slot);
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
