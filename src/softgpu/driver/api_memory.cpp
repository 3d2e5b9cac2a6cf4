// SPDX-License-Identifier: Apache-2.0
//
// Allocating, registering and asking about memory.
#include <atomic>
#include <string>

#include "platform/application_caller.h"
#include "platform/clock.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/pool.h"
#include "softgpu/driver/sync.h"
#include "softgpu/driver/tools.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

using memory::Allocation;
using memory::Allocator;
using memory::AllocError;
using memory::Kind;

CUresult toResult(AllocError error) {
  switch (error) {
    case AllocError::none: return CUDA_SUCCESS;
    case AllocError::outOfMemory: return CUDA_ERROR_OUT_OF_MEMORY;
    case AllocError::alreadyRegistered: return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    case AllocError::invalidValue:
    case AllocError::notFound: break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

uint32_t toolsKind(Kind kind) {
  switch (kind) {
    case Kind::device:
    case Kind::imported:
    case Kind::reserved: return SONDE_MEMORY_DEVICE;
    case Kind::deviceStatic: return SONDE_MEMORY_DEVICE_STATIC;
    case Kind::pinned:
    case Kind::registered: return SONDE_MEMORY_PINNED;
    case Kind::managed: return SONDE_MEMORY_MANAGED;
    case Kind::managedStatic: return SONDE_MEMORY_MANAGED_STATIC;
  }
  return SONDE_MEMORY_UNKNOWN;
}

namespace {

void reportMemory(Context& context, const Allocation& a, uint32_t kind, bool released, uint32_t streamId, bool async) {
  if (!tools::wants(SONDE_INTEREST_MEMORY)) return;
  SondeResource r{};
  r.size = sizeof r;
  r.event = SONDE_RESOURCE_DEVICE_MEMORY;
  r.context = context.handle();
  r.contextUid = context.uid();
  r.deviceId = context.device()->ordinal;
  r.address = a.address;
  r.bytes = a.bytes;
  r.memoryKind = kind;
  r.memoryOp = released ? 2 : 1;
  r.time = platform::nowNs();
  r.correlationId = currentCorrelation();
  r.streamId = streamId;
  r.isAsync = async;
  r.pool = reinterpret_cast<void*>(a.pool);
  if (const Ref<Pool> pool = a.pool != 0 ? HandleTable::find<Pool>(r.pool) : Ref<Pool>()) {
    r.poolReleaseThreshold = pool->releaseThreshold.load();
    r.poolReservedBytes = r.poolUsedBytes = pool->used.load();
  }
  r.pc = platform::applicationCaller();
  tools::reportResource(r);
}

}  // namespace

void reportMemory(Context& context, const Allocation& a, bool released, uint32_t streamId, bool async) {
  reportMemory(context, a, toolsKind(a.kind), released, streamId, async);
}

void reportArray(const Array& array, bool released) {
  Allocation a;
  a.address = array.address;
  a.bytes = array.pitch * array.rows() * array.slices();
  reportMemory(*array.context(), a, SONDE_MEMORY_ARRAY, released, 0, false);
}

void settleDevice(uint32_t device) {
  for (auto& context : Driver::get().contexts())
    if (context->device()->ordinal == device) context->synchronize();
}

// Once a process: programs that look for the largest size that fits ask often.
void sayOutOfMemory(uint32_t device, size_t bytes) {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  const uint64_t capacity = Allocator::get().capacity(device);
  const auto text = [](uint64_t n) { return std::to_string(n); };
  say("an allocation of " + text(bytes) + " bytes was refused: device " + text(device) + " has " + text(capacity) +
      " bytes, " + text(capacity - Allocator::get().used(device)) + " of them free");
}

CUresult allocateIn(Context& context, Kind kind, size_t bytes, uint32_t flags, uint64_t& address) {
  Allocation request;
  request.bytes = bytes;
  request.kind = kind;
  request.device = context.device()->ordinal;
  request.contextUid = context.uid();
  request.contextHandle = reinterpret_cast<uint64_t>(context.handle());
  request.flags = flags;
  if (const AllocError e = Allocator::get().allocate(request); e != AllocError::none) {
    if (e == AllocError::outOfMemory) sayOutOfMemory(request.device, bytes);
    return toResult(e);
  }
  address = request.address;
  reportMemory(context, request, false, 0, false);
  return CUDA_SUCCESS;
}

namespace {

// Work in flight anywhere on the device may use the memory: waits first.
CUresult freeKinds(uint64_t address, std::initializer_list<Kind> kinds) {
  const auto found = Allocator::get().find(address);
  if (!found || found->address != address || found->releasing) return CUDA_ERROR_INVALID_VALUE;
  bool ok = false;
  for (Kind k : kinds) ok |= k == found->kind;
  // Of a pool, which may be of any kind; not what an IPC handle gave (cuIpcCloseMemHandle).
  ok = found->pool ? std::find(kinds.begin(), kinds.end(), Kind::device) != kinds.end() : ok;
  if (!ok) return CUDA_ERROR_INVALID_VALUE;
  settleDevice(found->device);
  Ref<Context> context;
  currentContext(context);
  Allocation was;
  if (Allocator::get().release(address, &was) != AllocError::none) return CUDA_ERROR_INVALID_VALUE;
  poolReleased(was);
  if (context) reportMemory(*context, was, true, 0, false);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuMemGetInfo_v2)(size_t* free, size_t* total) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  const uint32_t device = context->device()->ordinal;
  const uint64_t capacity = Allocator::get().capacity(device);
  if (free) *free = capacity - Allocator::get().used(device);
  if (total) *total = capacity;
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemAlloc_v2)(CUdeviceptr* dptr, size_t bytesize) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!dptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuseWhileCapturing(*context)) return e;
  uint64_t address;
  if (const CUresult e = allocateIn(*context, Kind::device, bytesize, 0, address)) return e;
  *dptr = address;
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemAllocPitch_v2)
(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!dptr || !pPitch || WidthInBytes == 0 || Height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) return CUDA_ERROR_INVALID_VALUE;
  const size_t pitch = (WidthInBytes + 511) & ~size_t{511};
  size_t bytes;
  if (pitch < WidthInBytes || __builtin_mul_overflow(pitch, Height, &bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t address;
  if (const CUresult e = allocateIn(*context, Kind::device, bytes, 0, address)) return e;
  *dptr = address;
  *pPitch = pitch;
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemFree_v2)(CUdeviceptr dptr) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!dptr) return CUDA_SUCCESS;
  if (const CUresult e = refuseWhileCapturing(*context)) return e;
  if (const auto memory = GraphMemory::find(dptr)) {
    settleDevice(context->device()->ordinal);
    return memory->give() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  return freeKinds(dptr, {Kind::device, Kind::managed});
}

DRIVER_API(cuMemGetAddressRange_v2)(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  const auto found = Allocator::get().find(dptr);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  if (pbase) *pbase = found->address;
  if (psize) *psize = found->bytes;
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemHostAlloc)(void** pp, size_t bytesize, unsigned int Flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (!pp || bytesize == 0 || (Flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address;
  if (const CUresult e = allocateIn(*context, Kind::pinned, bytesize, Flags | CU_MEMHOSTALLOC_DEVICEMAP, address))
    return e;
  *pp = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemAllocHost_v2)(void** pp, size_t bytesize) { return cuMemHostAlloc_impl(pp, bytesize, 0); }

DRIVER_API(cuMemFreeHost)(void* p) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  const auto address = reinterpret_cast<uint64_t>(p);
  if (!p || GraphMemory::find(address)) return CUDA_ERROR_INVALID_VALUE;  // cuMemFree gives a graph's back
  return freeKinds(address, {Kind::pinned});
}

DRIVER_API(cuMemHostRegister_v2)(void* p, size_t bytesize, unsigned int Flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
  if (!p || bytesize == 0 || (Flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  Allocation request;
  request.address = reinterpret_cast<uint64_t>(p);
  request.bytes = bytesize;
  request.device = context->device()->ordinal;
  request.contextUid = context->uid();
  request.contextHandle = reinterpret_cast<uint64_t>(context->handle());
  request.flags = Flags;
  if (const AllocError e = Allocator::get().registerHost(request); e != AllocError::none) return toResult(e);
  reportMemory(*context, request, false, 0, false);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemHostUnregister)(void* p) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Allocator::get().find(reinterpret_cast<uint64_t>(p));
  if (!found || found->kind != Kind::registered || found->address != reinterpret_cast<uint64_t>(p))
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  settleDevice(found->device);
  if (Allocator::get().unregisterHost(reinterpret_cast<uint64_t>(p)) != AllocError::none)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  reportMemory(*context, *found, true, 0, false);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemHostGetDevicePointer_v2)(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pdptr || Flags) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Allocator::get().find(reinterpret_cast<uint64_t>(p));
  if (!found || (found->kind != Kind::pinned && found->kind != Kind::registered)) return CUDA_ERROR_INVALID_VALUE;
  *pdptr = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemHostGetFlags)(unsigned int* pFlags, void* p) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  const auto found = Allocator::get().find(reinterpret_cast<uint64_t>(p));
  if (!pFlags || !found || (found->kind != Kind::pinned && found->kind != Kind::registered))
    return CUDA_ERROR_INVALID_VALUE;
  *pFlags = found->flags;
  return CUDA_SUCCESS;
}

// ------------------------------------------------------ pointer attributes --

namespace {

CUresult pointerAttribute(void* data, int attribute, const Allocation* a, CUdeviceptr ptr) {
  auto put = [&](auto value) {
    using T = decltype(value);
    *static_cast<T*>(data) = value;
    return CUDA_SUCCESS;
  };
  const bool host = a && (a->kind == Kind::pinned || a->kind == Kind::registered);
  const bool managed = a && (a->kind == Kind::managed || a->kind == Kind::managedStatic);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return a ? put(reinterpret_cast<CUcontext>(a->contextHandle)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return a ? put(static_cast<unsigned>(host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE))
               : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return a ? put(ptr) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return host || managed ? put(reinterpret_cast<void*>(ptr)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return a ? put(static_cast<unsigned>(a->syncMemops)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return a ? put(static_cast<unsigned long long>(a->id)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(static_cast<unsigned>(managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(static_cast<int>(a ? static_cast<int>(a->device) : -2));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(static_cast<unsigned>(a && a->kind == Kind::device && !a->pool));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return a ? put(static_cast<CUdeviceptr>(a->address)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return a ? put(static_cast<size_t>(a->bytes)) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(static_cast<unsigned>(a != nullptr));
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: return put(static_cast<unsigned long long>(0));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put(static_cast<unsigned>(0));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(static_cast<unsigned>(a ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                         : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: return put(reinterpret_cast<CUmemoryPool>(a ? a->pool : 0));
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

void zeroAttribute(void* data, int attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<CUcontext*>(data) = nullptr; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *static_cast<unsigned*>(data) = 0; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *static_cast<CUdeviceptr*>(data) = 0; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: *static_cast<void**>(data) = nullptr; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *static_cast<unsigned long long*>(data) = 0; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *static_cast<size_t*>(data) = 0; break;
    default: break;
  }
}

}  // namespace

DRIVER_API(cuPointerGetAttribute)(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Allocator::get().find(ptr);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  return pointerAttribute(data, attribute, &*found, ptr);
}

// Unlike the single form, unknown pointers are no error here.
DRIVER_API(cuPointerGetAttributes)
(unsigned int numAttributes, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (numAttributes == 0 || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Allocator::get().find(ptr);
  for (unsigned i = 0; i < numAttributes; i++) {
    if (!data[i]) return CUDA_ERROR_INVALID_VALUE;
    if (pointerAttribute(data[i], attributes[i], found ? &*found : nullptr, ptr)) zeroAttribute(data[i], attributes[i]);
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuPointerSetAttribute)(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  return Allocator::get().setSyncMemops(ptr, *static_cast<const unsigned*>(value) != 0) ? CUDA_SUCCESS
                                                                                        : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace sonde::softgpu::driver
