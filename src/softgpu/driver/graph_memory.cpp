// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/graph_memory.h"

#include <algorithm>
#include <map>

#include "softgpu/driver/copy.h"
#include "softgpu/driver/managed.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {
namespace {

struct Usage {
  uint64_t used = 0, usedHigh = 0, reserved = 0, reservedHigh = 0;
};

struct Book {
  std::mutex mutex;
  std::map<CUdeviceptr, std::weak_ptr<GraphMemory>> all;
  std::map<uint32_t, Usage> usage;  // by device
};
Book& book() {
  static auto* b = new Book;
  return *b;
}

CUresult checkDevice(CUdevice device) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  return Driver::get().device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

std::shared_ptr<GraphMemory> GraphMemory::create(const Request& wanted) {
  memory::Allocation request;
  request.bytes = wanted.bytes;
  request.kind = wanted.kind;
  request.device = wanted.device;
  if (wanted.kind == memory::Kind::pinned) request.flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  if (wanted.kind == memory::Kind::managed) {
    request.flags = CU_MEM_ATTACH_GLOBAL;
    if (const Device* device = Driver::get().device(static_cast<int>(wanted.device)))
      managed::beforeAllocation(*device);
  }
  if (memory::Allocator::get().allocate(request) != memory::AllocError::none) return nullptr;
  std::shared_ptr<GraphMemory> made(new GraphMemory(wanted, request.address));
  std::lock_guard lock(book().mutex);
  book().all[made->address_] = made;
  return made;
}

std::shared_ptr<GraphMemory> GraphMemory::find(CUdeviceptr address) {
  std::lock_guard lock(book().mutex);
  const auto it = book().all.find(address);
  return it == book().all.end() ? nullptr : it->second.lock();
}

GraphMemory::~GraphMemory() {
  {
    std::lock_guard lock(book().mutex);
    book().all.erase(address_);
  }
  settleDevice(request_.device);
  memory::Allocator::get().release(address_);
}

bool GraphMemory::take() {
  std::shared_ptr<GraphMemory> self = find(address_);
  std::lock_guard lock(book().mutex);
  if (inUse_) return false;
  inUse_ = true;
  self_ = std::move(self);
  if (!request_.counted) return true;
  Usage& u = book().usage[request_.device];
  u.used += request_.bytes;
  u.usedHigh = std::max(u.usedHigh, u.used);
  u.reserved = std::max(u.reserved, u.used);
  u.reservedHigh = std::max(u.reservedHigh, u.reserved);
  return true;
}

bool GraphMemory::give() {
  std::shared_ptr<GraphMemory> self;  // may be the last: released after the lock
  std::lock_guard lock(book().mutex);
  if (!inUse_) return false;
  inUse_ = false;
  self = std::move(self_);
  if (request_.counted) book().usage[request_.device].used -= request_.bytes;
  return true;
}

bool GraphMemory::freedBy(uint32_t graphId) {
  std::lock_guard lock(book().mutex);
  const bool inOwner = graphId == owner_;
  if (freed_ == Freed::inOwner || (inOwner && freed_ == Freed::elsewhere)) return false;
  freed_ = inOwner ? Freed::inOwner : Freed::elsewhere;
  return true;
}

bool GraphMemory::inUse() const {
  std::lock_guard lock(book().mutex);
  return inUse_;
}

DRIVER_API(cuDeviceGetGraphMemAttribute)(CUdevice device, CUgraphMem_attribute attr, void* value) {
  if (const CUresult e = checkDevice(device)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(book().mutex);
  const Usage& u = book().usage[static_cast<uint32_t>(device)];
  auto* out = static_cast<cuuint64_t*>(value);
  switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *out = u.used; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *out = u.usedHigh; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *out = u.reserved; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *out = u.reservedHigh; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

// Only the high-water marks can be set, and only to zero.
DRIVER_API(cuDeviceSetGraphMemAttribute)(CUdevice device, CUgraphMem_attribute attr, void* value) {
  if (const CUresult e = checkDevice(device)) return e;
  if (!value || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(book().mutex);
  Usage& u = book().usage[static_cast<uint32_t>(device)];
  switch (attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: u.usedHigh = u.used; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: u.reservedHigh = u.reserved; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGraphMemTrim)(CUdevice device) {
  if (const CUresult e = checkDevice(device)) return e;
  std::lock_guard lock(book().mutex);
  Usage& u = book().usage[static_cast<uint32_t>(device)];
  u.reserved = u.used;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
