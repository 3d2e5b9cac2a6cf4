// SPDX-License-Identifier: Apache-2.0
//
// Stream-ordered allocation and memory pools. A pool hands memory back to the
// device as soon as the stream has come to the free, so that what it reserves
// is what is in use. Pools of the host's memory and of managed memory are of
// the same sort; their memory is what cuMemHostAlloc and cuMemAllocManaged give.
#include <algorithm>
#include <map>
#include <tuple>

#include "platform/clock.h"
#include "platform/tools_api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/message.h"
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
  r.memoryKind = toolsKind(pool.kind());
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

bool onHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

// Default and current pools that are not of a device's own memory. Never goes.
using PlaceKey = std::tuple<memory::Kind, int, int>;
struct Elsewhere {
  std::mutex mutex;
  std::map<PlaceKey, Ref<Pool>> defaults, current;
};
Elsewhere& elsewhere() {
  static Elsewhere& all = *new Elsewhere;
  return all;
}

PlaceKey keyOf(const CUmemLocation& location, const PoolPlace& place) {
  const bool numbered = location.type == CU_MEM_LOCATION_TYPE_DEVICE || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
  return {place.kind, static_cast<int>(location.type), numbered ? location.id : 0};
}

Ref<Pool> defaultPool(const CUmemLocation& location, const PoolPlace& place) {
  std::lock_guard lock(elsewhere().mutex);
  Ref<Pool>& pool = elsewhere().defaults[keyOf(location, place)];
  if (!pool) {
    pool = make<Pool>(place.device, true, place.kind);
    pool->location = location;
    HandleTable::publish(pool.get());
  }
  return pool;
}

void forgetCurrent(const Pool& pool) {
  std::lock_guard lock(elsewhere().mutex);
  std::erase_if(elsewhere().current, [&](const auto& entry) { return entry.second.get() == &pool; });
}

CUresult allocateFrom(Pool& pool, CUdeviceptr* dptr, size_t bytes, CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!dptr) return CUDA_ERROR_INVALID_VALUE;
  if (Capture* capture = stream->capture.load()) return captureAllocation(*capture, *stream, pool, bytes, dptr);
  if (bytes == 0) {
    *dptr = 0;
    return CUDA_SUCCESS;
  }
  Context& context = *stream->context();
  if (pool.maxBytes != 0 && bytes > pool.maxBytes - std::min(pool.maxBytes, pool.used.load()))
    return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation request;
  request.bytes = bytes;
  request.kind = pool.kind();
  request.device = pool.kind() == memory::Kind::device ? pool.device()->ordinal : context.device()->ordinal;
  if (pool.kind() == memory::Kind::pinned) request.flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  if (pool.kind() == memory::Kind::managed) {
    request.flags = CU_MEM_ATTACH_GLOBAL;
    managed::beforeAllocation(*context.device());
  }
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

CUresult poolPlace(const CUmemLocation* location, CUmemAllocationType type, PoolPlace& place) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!location) return CUDA_ERROR_INVALID_VALUE;
  const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  if (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  place = {managed ? memory::Kind::managed : memory::Kind::pinned, Driver::get().device(0)};
  switch (static_cast<int>(location->type)) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (!managed) place.kind = memory::Kind::device;
      if (const CUresult e = findDevice(location->id, place.device)) return e;
      break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      if (!managed::hostNodeExists(location->id)) return CUDA_ERROR_INVALID_DEVICE;
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: break;
    case CU_MEM_LOCATION_TYPE_NONE:
      if (!managed) return CUDA_ERROR_INVALID_VALUE;
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  if (!place.device) return CUDA_ERROR_NO_DEVICE;
  return managed && !place.device->model.unifiedMemory ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

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
  if (!found || found->address != dptr || (found->kind != memory::Kind::device && !found->pool))
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
  if (!pool || !poolProps) return CUDA_ERROR_INVALID_VALUE;
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE &&
      poolProps->handleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  PoolPlace place;
  if (const CUresult e = poolPlace(&poolProps->location, poolProps->allocType, place)) return e;
  if (place.kind != memory::Kind::device && poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    say("only pools of a device's memory can be shared with other processes");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  auto created = make<Pool>(place.device, false, place.kind);
  created->location = poolProps->location;
  created->maxBytes = poolProps->maxSize;
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
  forgetCurrent(*p);
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
  const bool ofHost = p->kind() == memory::Kind::pinned;
  for (size_t i = 0; i < count; i++) {
    if (p->kind() != memory::Kind::device && onHost(map[i].location)) {
      if (map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
      continue;
    }
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !Driver::get().device(map[i].location.id))
      return CUDA_ERROR_INVALID_DEVICE;
    if (!ofHost && map[i].location.id == static_cast<int>(p->device()->ordinal) &&
        map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; ofHost && i < count; i++) {
    if (onHost(map[i].location)) continue;
    const uint64_t bit = uint64_t{1} << (map[i].location.id % 64);
    if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
      p->access.fetch_and(~bit);
    else
      p->access.fetch_or(bit);
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolGetAccess)(CUmemAccess_flags* flags, CUmemoryPool memPool, CUmemLocation* location) {
  Ref<Pool> p;
  if (const CUresult e = findPool(memPool, p)) return e;
  if (!flags || !location) return CUDA_ERROR_INVALID_VALUE;
  bool may = false;
  if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && Driver::get().device(location->id))
    may = p->kind() != memory::Kind::pinned || (p->access.load() >> (location->id % 64) & 1) != 0;
  else
    may = p->kind() != memory::Kind::device && onHost(*location);
  *flags = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
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
  if (p->device() != device || p->importedFrom || p->kind() != memory::Kind::device) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->poolMutex);
  device->currentPool = Ref<Object>(p.get());
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuDeviceSetMemPool)(CUdevice dev, CUmemoryPool pool) { return setCurrentPool(dev, pool); }

DRIVER_API(cuMemGetDefaultMemPool)(CUmemoryPool* pool_out, CUmemLocation* location, CUmemAllocationType type) {
  if (!pool_out) return CUDA_ERROR_INVALID_VALUE;
  PoolPlace place;
  if (const CUresult e = poolPlace(location, type, place)) return e;
  *pool_out = static_cast<CUmemoryPool>(
      (place.kind == memory::Kind::device ? defaultPool(*place.device) : defaultPool(*location, place))->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetMemPool)(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  PoolPlace place;
  if (const CUresult e = poolPlace(location, type, place)) return e;
  if (place.kind == memory::Kind::device) {
    *pool = static_cast<CUmemoryPool>(currentPool(*place.device)->handle());
    return CUDA_SUCCESS;
  }
  {
    std::lock_guard lock(elsewhere().mutex);
    if (const auto set = elsewhere().current.find(keyOf(*location, place)); set != elsewhere().current.end()) {
      *pool = static_cast<CUmemoryPool>(set->second->handle());
      return CUDA_SUCCESS;
    }
  }
  *pool = static_cast<CUmemoryPool>(defaultPool(*location, place)->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemSetMemPool)(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  PoolPlace place;
  if (const CUresult e = poolPlace(location, type, place)) return e;
  if (place.kind == memory::Kind::device) return setCurrentPool(location->id, pool);
  Ref<Pool> p;
  if (const CUresult e = findPool(pool, p)) return e;
  if (p->kind() != place.kind || keyOf(p->location, place) != keyOf(*location, place)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(elsewhere().mutex);
  elsewhere().current[keyOf(*location, place)] = std::move(p);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
