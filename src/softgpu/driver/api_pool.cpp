// SPDX-License-Identifier: Apache-2.0
//
// Stream-ordered allocation and memory pools. A pool hands memory back to the
// device as soon as the stream has come to the free, so that what it reserves
// is what is in use.
#include <algorithm>

#include "platform/clock.h"
#include "platform/tools_api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/pool.h"
#include "softgpu/driver/sync.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver {

using memory::Allocation;
using memory::Allocator;
using memory::AllocError;

Pool::~Pool() = default;

namespace {

void reportPool(Pool& pool, uint32_t operation) {
  if (!tools::wants(SONDE_INTEREST_MEMORY)) return;
  SondeResource r{};
  r.size = sizeof r;
  r.event = SONDE_RESOURCE_DEVICE_MEMORY;
  r.deviceId = pool.device()->ordinal;
  r.handle = pool.handle();
  r.pool = pool.handle();
  r.memoryKind = SONDE_MEMORY_DEVICE;
  r.memoryOp = operation;
  r.time = platform::nowNs();
  r.correlationId = currentCorrelation();
  r.poolReleaseThreshold = pool.releaseThreshold.load();
  r.poolReservedBytes = r.poolUsedBytes = pool.used.load();
  tools::reportResource(r);
}

CUresult findPool(CUmemoryPool handle, Ref<Pool>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Pool>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult findDevice(int ordinal, Device*& device) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  device = Driver::get().device(ordinal);
  return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

Ref<Pool> defaultPool(Device& device) {
  std::lock_guard lock(device.poolMutex);
  if (!device.defaultPool) {
    auto pool = make<Pool>(&device, true);
    HandleTable::publish(pool.get());
    device.defaultPool = Ref<Object>(pool.get());
  }
  return Ref<Pool>(static_cast<Pool*>(device.defaultPool.get()));
}

Ref<Pool> currentPool(Device& device) {
  {
    std::lock_guard lock(device.poolMutex);
    if (device.currentPool) return Ref<Pool>(static_cast<Pool*>(device.currentPool.get()));
  }
  return defaultPool(device);
}

CUresult allocateFrom(Pool& pool, CUdeviceptr* dptr, size_t bytes, CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!dptr) return CUDA_ERROR_INVALID_VALUE;
  if (Capture* capture = stream->capture.load()) return captureAllocation(*capture, *stream, bytes, dptr);
  if (bytes == 0) {
    *dptr = 0;
    return CUDA_SUCCESS;
  }
  Context& context = *stream->context();
  Allocation request;
  request.bytes = bytes;
  request.device = pool.device()->ordinal;
  request.pool = reinterpret_cast<uint64_t>(pool.handle());
  request.contextUid = context.uid();
  request.contextHandle = reinterpret_cast<uint64_t>(context.handle());
  AllocError error = Allocator::get().allocate(request);
  if (error == AllocError::outOfMemory) {
    // Frees that streams have not come to yet may make room.
    settleDevice(request.device);
    error = Allocator::get().allocate(request);
  }
  if (error != AllocError::none) return toResult(error);
  const uint64_t used = pool.used.fetch_add(bytes) + bytes;
  uint64_t high = pool.usedHigh.load();
  while (used > high && !pool.usedHigh.compare_exchange_weak(high, used)) {
  }
  reportMemory(context, request, false, stream->id(), true);
  *dptr = request.address;
  return CUDA_SUCCESS;
}

}  // namespace

void poolReleased(const Allocation& was) {
  if (!was.pool) return;
  if (Ref<Pool> pool = HandleTable::find<Pool>(reinterpret_cast<void*>(was.pool))) pool->used.fetch_sub(was.bytes);
}

DRIVER_API(cuMemAllocAsync)(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  return allocateFrom(*currentPool(*stream->context()->device()), dptr, bytesize, hStream);
}

DRIVER_API(cuMemAllocFromPoolAsync)(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  if (p->importedFrom) return CUDA_ERROR_INVALID_VALUE;  // the process that has it allocates
  return allocateFrom(*p, dptr, bytesize, hStream);
}

DRIVER_API(cuMemFreeAsync)(CUdeviceptr dptr, CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!dptr) return CUDA_SUCCESS;
  if (Capture* capture = stream->capture.load()) return captureFree(*capture, *stream, dptr);
  if (const auto memory = GraphMemory::find(dptr)) return memory->give() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  const auto found = Allocator::get().find(dptr);
  // What another process shares by a pool is let go of in the same way; by an IPC handle it is closed.
  const bool imported = found && found->kind == memory::Kind::imported && found->pool;
  if (!found || found->address != dptr || (found->kind != memory::Kind::device && !imported))
    return CUDA_ERROR_INVALID_VALUE;
  Allocation what;
  if (!Allocator::get().markReleasing(dptr, &what)) return CUDA_ERROR_INVALID_VALUE;
  reportMemory(*stream->context(), what, true, stream->id(), true);
  Command* command = stream->newCommand(CommandKind::release);
  command->address = dptr;
  submit(*stream, command);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolCreate)(CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
      poolProps->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  Device* device;
  if (const CUresult e = findDevice(poolProps->location.id, device)) return e;
  auto created = make<Pool>(device, false);
  created->shareable = poolProps->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (!HandleTable::publish(created.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  reportPool(*created, 3);
  *pool = static_cast<CUmemoryPool>(created->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolDestroy)(CUmemoryPool pool) {
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  if (p->isDefault()) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(p->device()->poolMutex);
    if (p->device()->currentPool.get() == p.get()) p->device()->currentPool.reset();
  }
  reportPool(*p, 4);
  return HandleTable::retire(p.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuMemPoolTrimTo)(CUmemoryPool pool, size_t minBytesToKeep) {
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  reportPool(*p, 5);
  return CUDA_SUCCESS;  // nothing is held back that could be given
}

DRIVER_API(cuMemPoolSetAttribute)(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(attr)) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      p->reuse[attr - 1].store(*static_cast<int*>(value) != 0);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      p->releaseThreshold.store(*static_cast<cuuint64_t*>(value));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      p->usedHigh.store(p->used.load());
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

DRIVER_API(cuMemPoolGetAttribute)(CUmemoryPool pool, CUmemPool_attribute attr, void* value) {
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(attr)) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = p->reuse[attr - 1].load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *static_cast<cuuint64_t*>(value) = p->releaseThreshold.load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *static_cast<cuuint64_t*>(value) = p->used.load(); return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *static_cast<cuuint64_t*>(value) = p->usedHigh.load(); return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// Every device reaches every pool: the devices lie in one address range.
DRIVER_API(cuMemPoolSetAccess)(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  if (count && !map) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !Driver::get().device(map[i].location.id))
      return CUDA_ERROR_INVALID_DEVICE;
    if (map[i].location.id == static_cast<int>(p->device()->ordinal) &&
        map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolGetAccess)(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location) {
  Ref<Pool> p;
  if (const CUresult e = findPool(memPool, p)) return e;
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  *flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE && Driver::get().device(location->id)
               ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetDefaultMemPool)(CUmemoryPool* pool_out, CUdevice dev) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  if (!pool_out) return CUDA_ERROR_INVALID_VALUE;
  *pool_out = static_cast<CUmemoryPool>(defaultPool(*device)->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetMemPool)(CUmemoryPool* pool, CUdevice dev) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  *pool = static_cast<CUmemoryPool>(currentPool(*device)->handle());
  return CUDA_SUCCESS;
}

namespace {

CUresult setCurrentPool(CUdevice dev, CUmemoryPool pool) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  if (p->device() != device || p->importedFrom) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->poolMutex);
  device->currentPool = Ref<Object>(p.get());
  return CUDA_SUCCESS;
}

// Pools are of memory on devices: a device's attributes say that the host and managed memory have none.
CUresult poolPlace(const CUmemLocation* location, CUmemAllocationType type, Device*& device) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!location) return CUDA_ERROR_INVALID_VALUE;
  const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  if (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(location->type)) {
    case CU_MEM_LOCATION_TYPE_DEVICE: break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: return CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_NONE: return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult e = findDevice(location->id, device)) return e;
  return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuDeviceSetMemPool)(CUdevice dev, CUmemoryPool pool) { return setCurrentPool(dev, pool); }

DRIVER_API(cuMemGetDefaultMemPool)(CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type) {
  if (!pool_out) return CUDA_ERROR_INVALID_VALUE;
  Device* device;
  if (const CUresult e = poolPlace(location, type, device)) return e;
  *pool_out = static_cast<CUmemoryPool>(defaultPool(*device)->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetMemPool)(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  Device* device;
  if (const CUresult e = poolPlace(location, type, device)) return e;
  *pool = static_cast<CUmemoryPool>(currentPool(*device)->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemSetMemPool)(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  Device* device;
  if (const CUresult e = poolPlace(location, type, device)) return e;
  return setCurrentPool(location->id, pool);
}

}  // namespace sonde::softgpu::driver
