// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/memory.h"

#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/lifetimes.h"
#include "platform/nvidia/objects.h"

namespace sonde::platform::nvidia {
namespace {

#define CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

constexpr uint32_t kMemory[] = {CBID(cuMemAlloc_v2),
                                CBID(cuMemAllocPitch_v2),
                                CBID(cuMemAllocManaged),
                                CBID(cuMemAllocHost_v2),
                                CBID(cuMemHostAlloc),
                                CBID(cuMemAllocAsync),
                                CBID(cuMemAllocAsync_ptsz),
                                CBID(cuMemAllocFromPoolAsync),
                                CBID(cuMemAllocFromPoolAsync_ptsz),
                                CBID(cuMemFree_v2),
                                CBID(cuMemFreeHost),
                                CBID(cuMemFreeAsync),
                                CBID(cuMemFreeAsync_ptsz),
                                CBID(cuMemPoolCreate),
                                CBID(cuMemPoolDestroy),
                                CBID(cuMemPoolTrimTo),
                                CBID(cuStreamSynchronize),
                                CBID(cuStreamSynchronize_ptsz),
                                CBID(cuCtxSynchronize),
                                CBID(cuCtxSynchronize_v2),
                                CBID(cuEventSynchronize),
                                CBID(cuMemHostRegister_v2),
                                CBID(cuMemHostUnregister),
                                CBID(cuArrayCreate_v2),
                                CBID(cuArray3DCreate_v2),
                                CBID(cuArrayDestroy),
                                CBID(cuDevicePrimaryCtxReset),
                                CBID(cuDevicePrimaryCtxReset_v2)};
enum Operation : uint32_t { kAllocation = 1, kRelease = 2, kPoolCreated = 3, kPoolDestroyed = 4, kPoolTrimmed = 5 };
constexpr uint32_t kNone = 0xffffffff;

template <class Params>
const Params& as(const void* params) {
  return *static_cast<const Params*>(params);
}

// What a release does not say itself.
struct Allocation {
  uint64_t bytes;
  uint32_t kind;
  CUmemoryPool pool;
  uint32_t contextUid;
};
struct Known {
  std::mutex mutex;
  std::unordered_map<uint64_t, Allocation> allocations;
  std::unordered_set<CUmemoryPool> pools;
  std::unordered_set<CUmemoryPool> freed;  // into these memory came back since they were trimmed
};
Known& known() {
  static Known& k = *new Known;
  return k;
}

void fillPool(SondeResource& r, CUmemoryPool pool) {
  r.pool = pool;
  if (pool == nullptr || !own.cuMemPoolGetAttribute) return;
  auto ask = [pool](CUmemPool_attribute which) {
    cuuint64_t value = 0;
    own.cuMemPoolGetAttribute(pool, which, &value);
    return static_cast<uint64_t>(value);
  };
  r.poolReleaseThreshold = ask(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
  r.poolReservedBytes = ask(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  r.poolUsedBytes = ask(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
}

void tell(const SondeResource& r) {
  ListenerUse use;
  if (use && use->resource) use->resource(use->self, &r);
}

SondeResource start(const Context& context, uint32_t correlation) {
  SondeResource r = describe(context);
  r.event = SONDE_RESOURCE_DEVICE_MEMORY;
  r.time = platform::nowNs();
  r.correlationId = correlation;
  r.memoryKind = SONDE_MEMORY_DEVICE;
  return r;
}

void tellPool(const Context& context, CUmemoryPool pool, Operation operation, uint32_t correlation,
              uint64_t bytes = 0) {
  SondeResource r = start(context, correlation);
  r.memoryOp = operation;
  r.handle = pool;
  r.bytes = bytes;
  fillPool(r, pool);
  if (operation == kPoolCreated) r.poolUsedBytes = 0;
  tell(r);
}

// The pool of an allocation; one that nobody made is the device's own.
CUmemoryPool poolOf(uint32_t cbid, const void* params, const Context& context, uint32_t correlation) {
  CUmemoryPool pool = nullptr;
  if (cbid == CBID(cuMemAllocFromPoolAsync) || cbid == CBID(cuMemAllocFromPoolAsync_ptsz)) {
    pool = as<cuMemAllocFromPoolAsync_params>(params).pool;
  } else if (!own.cuDeviceGetMemPool ||
             own.cuDeviceGetMemPool(&pool, static_cast<CUdevice>(context.device)) != CUDA_SUCCESS) {
    return nullptr;
  }
  bool fresh;
  {
    std::lock_guard lock(known().mutex);
    fresh = known().pools.insert(pool).second;
  }
  if (fresh) tellPool(context, pool, kPoolCreated, correlation);
  return pool;
}

// A pool that holds more than its threshold is trimmed at the next
// synchronisation, as the driver's documentation says.
void trimPools(const Context& context, uint32_t correlation) {
  std::vector<CUmemoryPool> pools;
  {
    std::lock_guard lock(known().mutex);
    pools.assign(known().freed.begin(), known().freed.end());
    known().freed.clear();
  }
  for (CUmemoryPool pool : pools) {
    SondeResource state{};
    fillPool(state, pool);
    if (state.poolReservedBytes > state.poolReleaseThreshold)
      tellPool(context, pool, kPoolTrimmed, correlation, state.poolReleaseThreshold);
  }
}

uint64_t bytesOf(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  uint64_t element = 0;
  switch (static_cast<int>(d.Format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: element = 1; break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: element = 2; break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: element = 4; break;
    default: return 0;  // blocks or planes: not known
  }
  return element * d.NumChannels * d.Width * std::max<size_t>(d.Height, 1) * std::max<size_t>(d.Depth, 1);
}

// Of all that is still allocated when a primary context is reset, the arrays alone are told.
void arraysGo(CUdevice device, uint32_t correlation) {
  for (Context* context : liveContexts()) {
    if (!context->primary.load() || context->device != static_cast<uint32_t>(device)) continue;
    std::map<uint64_t, uint64_t> arrays;
    {
      std::lock_guard lock(known().mutex);
      for (const auto& [address, allocation] : known().allocations)
        if (allocation.kind == SONDE_MEMORY_ARRAY && allocation.contextUid == context->uid)
          arrays.emplace(address, allocation.bytes);
    }
    for (const auto& [address, bytes] : arrays) {
      SondeResource r = start(*context, correlation);
      r.memoryOp = kRelease;
      r.memoryKind = SONDE_MEMORY_ARRAY;
      r.address = address;
      r.bytes = bytes;
      tell(r);
    }
  }
}

}  // namespace

void forgetAllocations(const Context& context) {
  std::lock_guard lock(known().mutex);
  std::erase_if(known().allocations, [&](const auto& entry) { return entry.second.contextUid == context.uid; });
}

std::span<const uint32_t> memoryCallbacks() { return kMemory; }

void beforeMemory(uint32_t cbid, const void* params) {
  if (cbid == CBID(cuDevicePrimaryCtxReset) || cbid == CBID(cuDevicePrimaryCtxReset_v2))
    return arraysGo(as<cuDevicePrimaryCtxReset_v2_params>(params).dev, threadCalls.correlation);
  if (cbid != CBID(cuMemPoolDestroy)) return;
  const CUmemoryPool pool = as<cuMemPoolDestroy_params>(params).pool;
  const Context* context = currentContext();
  if (pool == nullptr || context == nullptr) return;
  {
    std::lock_guard lock(known().mutex);
    known().freed.erase(pool);
    if (known().pools.erase(pool) == 0) return;
  }
  tellPool(*context, pool, kPoolDestroyed, threadCalls.correlation);
}

void reportMemory(uint32_t cbid, bool perThread, const void* params, int32_t result, uint32_t correlation) {
  if (result != CUDA_SUCCESS || cbid == CBID(cuDevicePrimaryCtxReset) || cbid == CBID(cuDevicePrimaryCtxReset_v2))
    return;
  Context* context = currentContext();
  if (context == nullptr) return;
  switch (cbid) {
    case CBID(cuStreamSynchronize):
    case CBID(cuStreamSynchronize_ptsz):
    case CBID(cuCtxSynchronize):
    case CBID(cuCtxSynchronize_v2):
    case CBID(cuEventSynchronize): return trimPools(*context, correlation);
    default: break;
  }
  SondeResource r = start(*context, correlation);
  r.memoryOp = kAllocation;
  CUstream handle = nullptr;
  CUmemoryPool pool = nullptr;
  switch (cbid) {
    case CBID(cuMemAlloc_v2):
      r.address = *as<cuMemAlloc_v2_params>(params).dptr;
      r.bytes = as<cuMemAlloc_v2_params>(params).bytesize;
      break;
    case CBID(cuMemAllocPitch_v2): {
      const auto& p = as<cuMemAllocPitch_v2_params>(params);
      r.address = *p.dptr;
      r.bytes = *p.pPitch * p.Height;
      break;
    }
    case CBID(cuMemAllocManaged):
      r.address = *as<cuMemAllocManaged_params>(params).dptr;
      r.bytes = as<cuMemAllocManaged_params>(params).bytesize;
      r.memoryKind = SONDE_MEMORY_MANAGED;
      break;
    case CBID(cuMemAllocHost_v2):
      r.address = reinterpret_cast<uint64_t>(*as<cuMemAllocHost_v2_params>(params).pp);
      r.bytes = as<cuMemAllocHost_v2_params>(params).bytesize;
      r.memoryKind = SONDE_MEMORY_PINNED;
      break;
    case CBID(cuMemHostAlloc):
      r.address = reinterpret_cast<uint64_t>(*as<cuMemHostAlloc_params>(params).pp);
      r.bytes = as<cuMemHostAlloc_params>(params).bytesize;
      r.memoryKind = SONDE_MEMORY_PINNED;
      break;
    case CBID(cuMemHostRegister_v2):
      r.address = reinterpret_cast<uint64_t>(as<cuMemHostRegister_v2_params>(params).p);
      r.bytes = as<cuMemHostRegister_v2_params>(params).bytesize;
      r.memoryKind = SONDE_MEMORY_PINNED;
      break;
    case CBID(cuArrayCreate_v2): {
      const auto& p = as<cuArrayCreate_v2_params>(params);
      const CUDA_ARRAY_DESCRIPTOR& d = *p.pAllocateArray;
      CUDA_ARRAY3D_DESCRIPTOR flat{};
      flat.Width = d.Width, flat.Height = d.Height;
      flat.Format = d.Format, flat.NumChannels = d.NumChannels;
      r.address = reinterpret_cast<uint64_t>(*p.pHandle);  // the driver tells no other
      r.bytes = bytesOf(flat);
      r.memoryKind = SONDE_MEMORY_ARRAY;
      break;
    }
    case CBID(cuArray3DCreate_v2): {
      const auto& p = as<cuArray3DCreate_v2_params>(params);
      r.address = reinterpret_cast<uint64_t>(*p.pHandle);
      r.bytes = bytesOf(*p.pAllocateArray);
      r.memoryKind = SONDE_MEMORY_ARRAY;
      break;
    }
    case CBID(cuArrayDestroy):
      r.memoryOp = kRelease;
      r.memoryKind = SONDE_MEMORY_ARRAY;
      r.address = reinterpret_cast<uint64_t>(as<cuArrayDestroy_params>(params).hArray);
      break;
    case CBID(cuMemAllocAsync):
    case CBID(cuMemAllocAsync_ptsz):
      r.address = *as<cuMemAllocAsync_params>(params).dptr;
      r.bytes = as<cuMemAllocAsync_params>(params).bytesize;
      handle = as<cuMemAllocAsync_params>(params).hStream;
      r.isAsync = 1;
      break;
    case CBID(cuMemAllocFromPoolAsync):
    case CBID(cuMemAllocFromPoolAsync_ptsz):
      r.address = *as<cuMemAllocFromPoolAsync_params>(params).dptr;
      r.bytes = as<cuMemAllocFromPoolAsync_params>(params).bytesize;
      handle = as<cuMemAllocFromPoolAsync_params>(params).hStream;
      r.isAsync = 1;
      break;
    case CBID(cuMemPoolCreate): {
      const CUmemoryPool made = *as<cuMemPoolCreate_params>(params).pool;
      {
        std::lock_guard lock(known().mutex);
        known().pools.insert(made);
      }
      tellPool(*context, made, kPoolCreated, correlation);
      return;
    }
    case CBID(cuMemPoolTrimTo): {
      const auto& p = as<cuMemPoolTrimTo_params>(params);
      tellPool(*context, p.pool, kPoolTrimmed, correlation, p.minBytesToKeep);
      return;
    }
    case CBID(cuMemPoolDestroy): return;
    case CBID(cuMemFreeAsync):
    case CBID(cuMemFreeAsync_ptsz):
      r.memoryOp = kRelease;
      r.address = as<cuMemFreeAsync_params>(params).dptr;
      handle = as<cuMemFreeAsync_params>(params).hStream;
      r.isAsync = 1;
      break;
    case CBID(cuMemFree_v2):
      r.memoryOp = kRelease;
      r.address = as<cuMemFree_v2_params>(params).dptr;
      break;
    default:
      r.memoryOp = kRelease;
      r.memoryKind = SONDE_MEMORY_PINNED;
      r.address = reinterpret_cast<uint64_t>(as<cuMemFreeHost_params>(params).p);
      break;
  }
  if (r.address == 0) return;
  if (r.memoryOp == kAllocation) {
    if (r.isAsync) pool = poolOf(cbid, params, *context, correlation);
    std::lock_guard lock(known().mutex);
    known().allocations[r.address] = {r.bytes, r.memoryKind, pool, context->uid};
  } else {
    std::lock_guard lock(known().mutex);
    if (const auto at = known().allocations.find(r.address); at != known().allocations.end()) {
      r.bytes = at->second.bytes;
      r.memoryKind = at->second.kind;
      pool = at->second.pool;
      if (pool != nullptr && r.isAsync) known().freed.insert(pool);
      known().allocations.erase(at);
    }
  }
  fillPool(r, pool);
  if (r.isAsync) {
    r.streamId = findStream(*context, handle, perThread)->id;
  } else if (pool != nullptr) {
    r.contextUid = kNone;  // a pool belongs to the device
  }
  tell(r);
}

}  // namespace sonde::platform::nvidia
