// SPDX-License-Identifier: Apache-2.0
//
// Virtual memory management: reserved address ranges, physical memory, and the
// mapping of one into the other. Physical memory is a memory file; a mapping
// shows a part of it in the device's view.
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/physical_memory.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

using memory::Allocation;
using memory::Allocator;

namespace {

constexpr uint64_t kGranularity = 2u << 20;

struct Mapping {
  uint64_t bytes = 0;
  Ref<PhysicalMemory> memory;
  int access = 0;  // CUmemAccess_flags
};

struct Mappings {
  std::mutex mutex;
  std::map<uint64_t, Mapping> byAddress;
};
Mappings& mappings() {
  static Mappings* m = new Mappings();
  return *m;
}

CUresult checkProperties(const CUmemAllocationProp* prop) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return Driver::get().device(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// Tells the allocator what lies at a mapping, so that copies and attributes
// find it. `flags` is the access.
void publish(uint64_t address, const Mapping& m) {
  Allocation a;
  a.address = address;
  a.bytes = m.bytes;
  a.kind = memory::Kind::reserved;
  a.device = static_cast<uint32_t>(m.memory->properties.location.id);
  a.flags = static_cast<uint32_t>(m.access);
  Allocator::get().adopt(a);
}

}  // namespace

DRIVER_API(cuMemGetAllocationGranularity)
(size_t* granularity, const CUmemAllocationProp* prop, CUmemAllocationGranularity_flags option) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!granularity || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = checkProperties(prop)) return e;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemAddressReserve)
(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!ptr || size == 0 || size % kGranularity || (alignment & (alignment - 1)) || flags)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  const auto error = Allocator::get().reserveRange(size, std::max<uint64_t>(alignment, kGranularity), &address);
  if (error != memory::AllocError::none) return toResult(error);
  *ptr = address;  // `addr` is a wish
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemAddressFree)(CUdeviceptr ptr, size_t size) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  return toResult(Allocator::get().releaseRange(ptr, size));
}

DRIVER_API(cuMemCreate)
(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop, unsigned long long flags) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!handle || size == 0 || size % kGranularity || flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = checkProperties(prop)) return e;
  const auto device = static_cast<uint32_t>(prop->location.id);
  if (!Allocator::get().charge(device, size)) return CUDA_ERROR_OUT_OF_MEMORY;
  Ref<PhysicalMemory> memory = PhysicalMemory::create(size, *prop);
  if (!memory) {
    Allocator::get().refund(device, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return memory->addHandle(handle);
}

DRIVER_API(cuMemRelease)(CUmemGenericAllocationHandle handle) {
  Ref<PhysicalMemory> memory;
  if (const CUresult e = findMemory(handle, memory)) return e;
  // What is mapped stays until it is unmapped.
  return memory->dropHandle() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Counts another handle to what is mapped at this address; the value is that of the others.
DRIVER_API(cuMemRetainAllocationHandle)(CUmemGenericAllocationHandle* handle, void* addr) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  const auto address = reinterpret_cast<uint64_t>(addr);
  Mappings& all = mappings();
  std::lock_guard lock(all.mutex);
  auto it = all.byAddress.upper_bound(address);
  if (it == all.byAddress.begin()) return CUDA_ERROR_INVALID_VALUE;
  --it;
  if (address - it->first >= it->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  return it->second.memory->addHandle(handle);
}

DRIVER_API(cuMemMap)
(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags) {
  Ref<PhysicalMemory> memory;
  if (const CUresult e = findMemory(handle, memory)) return e;
  if (size == 0 || size % kGranularity || ptr % kGranularity || offset || flags || size > memory->bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (!Allocator::get().reserved(ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  Mappings& all = mappings();
  std::lock_guard lock(all.mutex);
  auto next = all.byAddress.lower_bound(ptr);
  if (next != all.byAddress.end() && next->first < ptr + size) return CUDA_ERROR_INVALID_VALUE;
  if (next != all.byAddress.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second.bytes > ptr) return CUDA_ERROR_INVALID_VALUE;
  }
  void* where = memory::AddressSpace::get().deviceView(ptr);
  if (mmap(where, size, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memory->descriptor, 0) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  Mapping& m = all.byAddress[ptr];
  m.bytes = size;
  m.memory = memory;
  publish(ptr, m);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemUnmap)(CUdeviceptr ptr, size_t size) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  Mappings& all = mappings();
  std::lock_guard lock(all.mutex);
  // Whole mappings only.
  uint64_t at = ptr;
  while (at < ptr + size) {
    auto it = all.byAddress.find(at);
    if (it == all.byAddress.end()) return CUDA_ERROR_INVALID_VALUE;
    at += it->second.bytes;
  }
  if (at != ptr + size || size == 0) return CUDA_ERROR_INVALID_VALUE;
  settleDevice(static_cast<uint32_t>(all.byAddress[ptr].memory->properties.location.id));
  void* where = memory::AddressSpace::get().deviceView(ptr);
  mmap(where, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  for (at = ptr; at < ptr + size;) {
    auto it = all.byAddress.find(at);
    at += it->second.bytes;
    Allocator::get().abandon(it->first);
    all.byAddress.erase(it);
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemSetAccess)(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!desc || count == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
  int access = 0;
  for (size_t i = 0; i < count; i++) {
    if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (!Driver::get().device(desc[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    access = std::max(access, static_cast<int>(desc[i].flags));
  }
  Mappings& all = mappings();
  std::lock_guard lock(all.mutex);
  uint64_t at = ptr;
  while (at < ptr + size) {
    auto it = all.byAddress.find(at);
    if (it == all.byAddress.end()) return CUDA_ERROR_INVALID_VALUE;
    at += it->second.bytes;
  }
  if (at != ptr + size) return CUDA_ERROR_INVALID_VALUE;
  const int protection = access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? PROT_READ | PROT_WRITE
                         : access == CU_MEM_ACCESS_FLAGS_PROT_READ    ? PROT_READ
                                                                      : PROT_NONE;
  if (mprotect(memory::AddressSpace::get().deviceView(ptr), size, protection) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  for (at = ptr; at < ptr + size;) {
    Mapping& m = all.byAddress[at];
    m.access = access;
    publish(at, m);
    at += m.bytes;
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetAccess)(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || !Driver::get().device(location->id))
    return CUDA_ERROR_INVALID_VALUE;
  Mappings& all = mappings();
  std::lock_guard lock(all.mutex);
  auto it = all.byAddress.upper_bound(ptr);
  if (it == all.byAddress.begin()) return CUDA_ERROR_INVALID_VALUE;
  --it;
  if (ptr >= it->first + it->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  *flags = static_cast<unsigned long long>(it->second.access);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetAllocationPropertiesFromHandle)(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  Ref<PhysicalMemory> memory;
  if (const CUresult e = findMemory(handle, memory)) return e;
  if (!prop) return CUDA_ERROR_INVALID_VALUE;
  *prop = memory->properties;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
