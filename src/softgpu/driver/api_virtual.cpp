// SPDX-License-Identifier: Apache-2.0
//
// Virtual memory management: reserved address ranges, physical memory, and the
// mapping of one into the other. Physical memory is a memory file; a mapping
// shows a part of it in the device's view.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

using memory::Allocation;
using memory::Allocator;

namespace {

constexpr uint64_t kGranularity = 2u << 20;
const std::string kFileName = "sonde-device-memory-";

class PhysicalMemory final : public Object {
 public:
  static constexpr Type kType = Type::physicalMemory;
  PhysicalMemory(int fd, uint64_t size, CUmemAllocationProp props, bool isImported)
      : Object(kType), descriptor(fd), bytes(size), properties(props), imported(isImported) {}
  ~PhysicalMemory() override {
    close(descriptor);
    if (!imported) Allocator::get().refund(static_cast<uint32_t>(properties.location.id), bytes);
  }
  const int descriptor;
  const uint64_t bytes;
  const CUmemAllocationProp properties;
  const bool imported;  // made by another process, or again in this one
};

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

CUresult findMemory(CUmemGenericAllocationHandle handle, Ref<PhysicalMemory>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<PhysicalMemory>(reinterpret_cast<void*>(handle));
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult checkProperties(const CUmemAllocationProp* prop) {
  if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
      prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
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
  // The name tells who imports the file whose memory it is.
  const int fd = memfd_create((kFileName + std::to_string(device)).c_str(), MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(size)) != 0) {
    if (fd >= 0) close(fd);
    Allocator::get().refund(device, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto memory = make<PhysicalMemory>(fd, size, *prop, false);
  if (!HandleTable::publish(memory.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(memory->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemRelease)(CUmemGenericAllocationHandle handle) {
  Ref<PhysicalMemory> memory;
  if (const CUresult e = findMemory(handle, memory)) return e;
  // What is mapped stays until it is unmapped.
  return HandleTable::retire(memory.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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

DRIVER_API(cuMemExportToShareableHandle)
(void* shareableHandle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
 unsigned long long flags) {
  Ref<PhysicalMemory> memory;
  if (const CUresult e = findMemory(handle, memory)) return e;
  if (!shareableHandle || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
      memory->properties.requestedHandleTypes != handleType)
    return CUDA_ERROR_INVALID_VALUE;
  const int fd = fcntl(memory->descriptor, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *static_cast<int*>(shareableHandle) = fd;
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemImportFromShareableHandle)
(CUmemGenericAllocationHandle* handle, void* osHandle, CUmemAllocationHandleType shHandleType) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const int given = static_cast<int>(reinterpret_cast<intptr_t>(osHandle));
  char name[128];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(given)).c_str(), name, sizeof name);
  const std::string prefix = "/memfd:" + kFileName;
  const std::string text(name, length > 0 ? static_cast<size_t>(length) : 0);
  struct stat status{};
  if (text.compare(0, prefix.size(), prefix) != 0 || fstat(given, &status) != 0) return CUDA_ERROR_INVALID_VALUE;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = std::atoi(text.c_str() + prefix.size());
  if (!Driver::get().device(prop.location.id)) return CUDA_ERROR_INVALID_DEVICE;
  const int fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  auto memory = make<PhysicalMemory>(fd, static_cast<uint64_t>(status.st_size), prop, true);
  if (!HandleTable::publish(memory.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(memory->handle());
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
