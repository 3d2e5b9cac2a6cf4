// SPDX-License-Identifier: Apache-2.0
//
// Pages behind the two views of an address range (address_space.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::memory {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGuard = kPage;  // behind each allocation
constexpr uint64_t kArenaBytes = 64u << 20;
constexpr uint64_t kSlotAlign = 1024;  // of small allocations in arenas

constexpr uint64_t alignUp(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }
constexpr bool bothViews(Kind kind) {
  return kind == Kind::pinned || kind == Kind::managed || kind == Kind::managedStatic;
}

// mmap at a fixed place.
bool mapAt(void* where, uint64_t bytes, int protection, int flags, int fd, uint64_t offset = 0);
// Nothing there any more; the addresses stay reserved.
bool hide(void* where, uint64_t bytes);
// Fresh zero pages, in the views that the kind has. `keep`: where the file behind both views goes, for the caller to
// close.
bool mapPages(uint64_t address, uint64_t bytes, Kind kind, int* keep = nullptr);
void unmapPages(uint64_t address, uint64_t bytes, Kind kind);

}  // namespace sonde::softgpu::memory
