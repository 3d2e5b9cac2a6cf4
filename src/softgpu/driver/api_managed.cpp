// SPDX-License-Identifier: Apache-2.0
//
// Managed memory: allocation, advice, prefetching, and what is known of a range.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/sync.h"
#include "softgpu/memory/allocator.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::driver {

using memory::Advice;
using memory::Allocator;
using memory::Kind;
using memory::ManagedMemory;
using memory::ManagedPage;
using memory::Processor;

bool managed::hostNodeExists(int id) {
  if (id <= 0) return id == 0;
  return access(("/sys/devices/system/node/node" + std::to_string(id)).c_str(), F_OK) == 0;
}

DRIVER_API(cuMemAllocManaged)(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!dptr || bytesize == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  const auto& model = context->device()->model;
  if (!model.unifiedMemory) return CUDA_ERROR_NOT_SUPPORTED;
  // What cannot fault must fit.
  if (!model.concurrentManaged && bytesize > model.memoryBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  managed::beforeAllocation(*context->device());
  uint64_t address;
  if (const CUresult e = allocateIn(*context, Kind::managed, bytesize, flags, address)) return e;
  *dptr = address;
  return CUDA_SUCCESS;
}

namespace {

CUresult managedRange(uint64_t address, size_t count) {
  const auto found = Allocator::get().find(address);
  if (!found || (found->kind != Kind::managed && found->kind != Kind::managedStatic) ||
      !found->contains(address, count))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

bool validLocation(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return Driver::get().device(location.id) != nullptr;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return managed::hostNodeExists(location.id);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return true;
    default: return false;
  }
}

Processor processorOf(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? memory::processorOfDevice(static_cast<uint32_t>(location.id))
                                                      : memory::kCpu;
}

CUmemLocation locationOf(CUdevice device) {
  CUmemLocation location{};
  location.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = device == CU_DEVICE_CPU ? 0 : device;
  return location;
}

// Both sides of a prefetch, and the device of an advice, must be able to fault.
bool concurrent(const CUmemLocation& location) {
  return location.type != CU_MEM_LOCATION_TYPE_DEVICE || Driver::get().device(location.id)->model.concurrentManaged;
}

}  // namespace

CUresult managed::planPrefetch(uint64_t address, size_t count, const CUmemLocation* location, const Context& context,
                               PrefetchPlan& plan) {
  if (count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (location && !validLocation(*location)) return CUDA_ERROR_INVALID_DEVICE;
  if ((location && !concurrent(*location)) || !context.device()->model.concurrentManaged)
    return CUDA_ERROR_INVALID_DEVICE;
  if (const CUresult e = managedRange(address, count)) return e;
  plan = {address, count, location ? processorOf(*location) : memory::kCpu};
  return CUDA_SUCCESS;
}

namespace {

CUresult prefetch(uint64_t address, size_t count, const CUmemLocation& location, CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  PrefetchPlan plan;
  if (const CUresult e = managed::planPrefetch(address, count, &location, *stream->context(), plan)) return e;
  if (const CUresult e = refuseCapturing(*stream)) return e;
  Command* command = stream->newCommand(CommandKind::prefetch);
  command->prefetch = plan;
  submit(*stream, command);
  return CUDA_SUCCESS;
}

CUresult advise(uint64_t address, size_t count, CUmem_advise advice, const CUmemLocation& location) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (count == 0 || advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  // Only these look at the location.
  const bool located = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
                       advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
  if (located && (!validLocation(location) || !concurrent(location))) return CUDA_ERROR_INVALID_DEVICE;
  // Nodes of the host's memory have a place, not a processor that accesses.
  if (located && advice != CU_MEM_ADVISE_SET_PREFERRED_LOCATION && location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
      location.type != CU_MEM_LOCATION_TYPE_HOST)
    return CUDA_ERROR_INVALID_DEVICE;
  if (const CUresult e = managedRange(address, count)) return e;
  const auto what = static_cast<Advice>(advice - CU_MEM_ADVISE_SET_READ_MOSTLY);
  ManagedMemory::get().advise(address, count, what, located ? processorOf(location) : memory::kCpu);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuMemPrefetchAsync)(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream) {
  if (dstDevice != CU_DEVICE_CPU && !Driver::get().device(dstDevice)) return CUDA_ERROR_INVALID_DEVICE;
  return prefetch(devPtr, count, locationOf(dstDevice), hStream);
}
DRIVER_API(cuMemPrefetchAsync_v2)
(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream) {
  if (!validLocation(location)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return prefetch(devPtr, count, location, hStream);
}
DRIVER_API(cuMemAdvise)(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return advise(devPtr, count, advice, locationOf(device));
}
DRIVER_API(cuMemAdvise_v2)(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
  return advise(devPtr, count, advice, location);
}

namespace {

// The host's memory is one place here, whichever node was asked for.
int32_t typeOf(CUdevice where) {
  return where == CU_DEVICE_INVALID ? CU_MEM_LOCATION_TYPE_INVALID
         : where == CU_DEVICE_CPU   ? CU_MEM_LOCATION_TYPE_HOST
                                    : CU_MEM_LOCATION_TYPE_DEVICE;
}

CUresult rangeAttribute(void* data, size_t bytes, int attribute, CUdeviceptr address, size_t count) {
  if (const CUresult e = managedRange(address, count)) return e;
  auto put32 = [&](int32_t value) {
    if (bytes != 4) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<int32_t*>(data) = value;
    return CUDA_SUCCESS;
  };
  auto& pages = ManagedMemory::get();
  // What all pages of the range agree on; otherwise "nothing".
  auto common = [&](uint8_t ManagedPage::* field) {
    std::optional<uint8_t> value;
    bool same = true;
    pages.visitPages(address, count, [&](const ManagedPage& page) {
      same = same && (!value || *value == page.*field);
      value = page.*field;
    });
    if (!same || !value || *value == 0) return CU_DEVICE_INVALID;
    return *value == memory::kCpu + 1 ? CU_DEVICE_CPU : static_cast<CUdevice>(*value - 2);
  };
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: {
      bool all = true;
      pages.visitPages(address, count, [&](const ManagedPage& page) { all = all && page.readMostly; });
      return put32(all);
    }
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: return put32(common(&ManagedPage::preferred));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: return put32(common(&ManagedPage::lastPrefetch));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return put32(typeOf(common(&ManagedPage::preferred)));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: return put32(typeOf(common(&ManagedPage::lastPrefetch)));
    // Of no meaning unless the type is a device.
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return put32(std::max(common(&ManagedPage::preferred), 0));
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return put32(std::max(common(&ManagedPage::lastPrefetch), 0));
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: {
      if (bytes == 0 || bytes % 4) return CUDA_ERROR_INVALID_VALUE;
      uint32_t mask = ~0u;
      pages.visitPages(address, count, [&](const ManagedPage& page) { mask &= page.accessedBy; });
      auto* out = static_cast<int32_t*>(data);
      for (size_t i = 0; i < bytes / 4; i++) {
        out[i] = CU_DEVICE_INVALID;
        if (mask == 0) continue;
        const int processor = __builtin_ctz(mask);
        mask &= mask - 1;
        out[i] = processor == memory::kCpu ? CU_DEVICE_CPU : processor - 1;
      }
      return CUDA_SUCCESS;
    }
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

DRIVER_API(cuMemRangeGetAttribute)
(void* data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!data || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return rangeAttribute(data, dataSize, attribute, devPtr, count);
}

DRIVER_API(cuMemRangeGetAttributes)
(void** data, size_t* dataSizes, CUmem_range_attribute* attributes, size_t numAttributes, CUdeviceptr devPtr,
 size_t count) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!data || !dataSizes || !attributes || numAttributes == 0 || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < numAttributes; i++)
    if (const CUresult e = rangeAttribute(data[i], dataSizes[i], attributes[i], devPtr, count)) return e;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
