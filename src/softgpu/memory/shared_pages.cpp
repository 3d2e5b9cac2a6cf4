// SPDX-License-Identifier: Apache-2.0
//
// Device memory that several processes see. Plain device memory is private to
// the process until somebody asks for a handle: then its pages move into a
// memory file, which others map.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "softgpu/memory/allocator.h"
#include "softgpu/memory/pages.h"

namespace sonde::softgpu::memory {
namespace {

// The file with a copy of the pages, mapped in their place; -1: no memory.
int movePages(uint64_t address, uint64_t bytes) {
  const int fd = memfd_create("sonde-shared-memory", MFD_CLOEXEC);
  if (fd < 0) return -1;
  std::byte* device = AddressSpace::get().deviceView(address);
  bool ok = ftruncate(fd, static_cast<off_t>(bytes)) == 0;
  void* copy = ok ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  ok = copy != MAP_FAILED;
  if (ok) {
    static const std::byte zeros[kPage] = {};
    for (uint64_t at = 0; at < bytes; at += kPage)  // pages of zeros take no room
      if (std::memcmp(device + at, zeros, kPage) != 0)
        std::memcpy(static_cast<std::byte*>(copy) + at, device + at, kPage);
    munmap(copy, bytes);
    ok = mapAt(device, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd);
  }
  if (ok) return fd;
  close(fd);
  return -1;
}

}  // namespace

AllocError Allocator::share(uint64_t address, SharedPages& out) {
  std::unique_lock lock(mutex_);
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return AllocError::notFound;
  --it;
  const Allocation& allocation = it->second;
  auto range = ranges_.find(it->first);
  if (address >= allocation.end() || allocation.kind != Kind::device || range == ranges_.end() || allocation.releasing)
    return AllocError::notFound;
  Arena* arena = range->second.arena;
  const uint64_t first = arena ? arena->address : range->second.address;
  const uint64_t bytes = arena ? kArenaBytes : range->second.bytes - kGuard;
  int& fd = arena ? arena->fd : range->second.fd;
  if (fd < 0) fd = movePages(first, bytes);
  if (fd < 0) return AllocError::outOfMemory;
  out.fd = fd;
  out.offset = allocation.address - first;
  return AllocError::none;
}

AllocError Allocator::importPages(int fd, uint64_t offset, Allocation& request) {
  if (request.bytes == 0 || offset + request.bytes < offset) return AllocError::invalidValue;
  const uint64_t before = offset % kPage, bytes = alignUp(before + request.bytes, kPage);
  std::unique_lock lock(mutex_);
  Range range{};
  if (!takeRange(bytes + kGuard, kPage, range)) return AllocError::outOfMemory;
  if (!mapAt(AddressSpace::get().deviceView(range.address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
             fd, offset - before)) {
    giveRange(range);
    return AllocError::outOfMemory;
  }
  request.address = range.address + before;
  request.kind = Kind::imported;
  request.id = nextId_++;
  live_[request.address] = request;
  ranges_[request.address] = range;
  guarded_++;
  return AllocError::none;
}

}  // namespace sonde::softgpu::memory
