// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/address_space.h"

#include <sys/mman.h>

#include <new>

namespace sonde::softgpu::memory {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kShared = 4 * kGiB;
constexpr uint64_t kLocal = 28 * kGiB;
constexpr uint64_t kAlign = 4 * kGiB;  // so that 32-bit shared addresses never carry into the upper half

void* reserve(uint64_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

}  // namespace

AddressSpace::AddressSpace() {
  // Address-space limits (ulimit -v, sanitizers) make large reservations fail:
  // go down until one fits.
  for (uint64_t globalBytes = 256 * kGiB; globalBytes >= 4 * kGiB; globalBytes /= 2) {
    const uint64_t view = kShared + kLocal + globalBytes;
    void* p = reserve(2 * view + kAlign);
    if (!p) continue;
    const uint64_t base = (reinterpret_cast<uint64_t>(p) + kAlign - 1) & ~(kAlign - 1);
    shared = {base, kShared};
    local = {shared.end(), kLocal};
    global = {local.end(), globalBytes};
    all = {base, view};
    deviceDelta = static_cast<int64_t>(view);
    return;
  }
  throw std::bad_alloc();
}

const AddressSpace& AddressSpace::get() {
  static const AddressSpace* space = new AddressSpace();  // outlives static destructors
  return *space;
}

}  // namespace sonde::softgpu::memory
