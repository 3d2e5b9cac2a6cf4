// SPDX-License-Identifier: Apache-2.0
//
// Primary and created contexts, and what is current.
#include <algorithm>

#include "platform/clock.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/sync.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver {
namespace {

constexpr unsigned kContextFlags = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
                                   CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE | CU_CTX_SYNC_MEMOPS;

bool validFlags(unsigned flags) {
  if (flags & ~kContextFlags) return false;
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return schedule == 0 || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD ||
         schedule == CU_CTX_SCHED_BLOCKING_SYNC;
}

CUresult findDevice(int ordinal, Device*& device) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  device = Driver::get().device(ordinal);
  return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

// A handle given by the caller, or the current context for NULL.
CUresult contextArgument(CUcontext handle, Ref<Context>& context) {
  if (!handle) return currentContext(context);
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  context = HandleTable::find<Context>(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  return context->destroyed.load() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUcontext handleOf(const StackedContext& entry) {
  if (entry.green) return static_cast<CUcontext>(entry.green->handle());
  return entry.context ? static_cast<CUcontext>(entry.context->handle()) : nullptr;
}

CUresult create(CUcontext* pctx, unsigned flags, CUdevice dev) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  if (!pctx || !validFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  Ref<Context> context;
  if (const CUresult e = createContext(device, flags, false, context)) return e;
  announceContext(*context);
  thread().contexts.push_back({context, nullptr});
  *pctx = static_cast<CUcontext>(context->handle());
  return CUDA_SUCCESS;
}

}  // namespace

CUresult primaryContext(Device* device, bool retain, Ref<Context>& out) {
  bool created = false;
  {
    std::lock_guard lock(device->primaryMutex);
    if (!device->primary) {
      if (const CUresult e = createContext(device, device->primaryFlags, true, device->primary)) return e;
      created = true;
    }
    if (retain) device->primaryUsers++;
    out = device->primary;
  }
  if (created) announceContext(*out);
  return CUDA_SUCCESS;
}

// ------------------------------------------------------- created contexts --

DRIVER_API(cuCtxCreate_v2)(CUcontext* pctx, unsigned int flags, CUdevice dev) { return create(pctx, flags, dev); }

DRIVER_API(cuCtxCreate_v3)
(CUcontext* pctx, CUexecAffinityParam* paramsArray, int numParams, unsigned int flags, CUdevice dev) {
  if (numParams < 0) return CUDA_ERROR_INVALID_VALUE;
  if (numParams > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(pctx, flags, dev);
}

DRIVER_API(cuCtxCreate_v4)(CUcontext* pctx, CUctxCreateParams* params, unsigned int flags, CUdevice dev) {
  if (params && params->numExecAffinityParams > 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (params && params->cigParams) return CUDA_ERROR_NOT_SUPPORTED;
  return create(pctx, flags, dev);
}

DRIVER_API(cuCtxDestroy_v2)(CUcontext ctx) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  Ref<Context> context = HandleTable::find<Context>(ctx);
  if (!context || context->primary()) return CUDA_ERROR_INVALID_CONTEXT;
  context->destroy();
  auto& stack = thread().contexts;
  if (!stack.empty() && stack.back().context == context) stack.pop_back();
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxPushCurrent_v2)(CUcontext ctx) {
  Ref<Context> context;
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (const CUresult e = contextArgument(ctx, context)) return e;
  thread().contexts.push_back({std::move(context), Ref<Object>(greenOf(ctx).get())});
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxPopCurrent_v2)(CUcontext* pctx) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  auto& stack = thread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (pctx) *pctx = handleOf(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxSetCurrent)(CUcontext ctx) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  auto& stack = thread().contexts;
  if (!ctx) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  Ref<Context> context;
  if (const CUresult e = contextArgument(ctx, context)) return e;
  StackedContext entry{std::move(context), Ref<Object>(greenOf(ctx).get())};
  if (stack.empty())
    stack.push_back(std::move(entry));
  else
    stack.back() = std::move(entry);
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetCurrent)(CUcontext* pctx) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  const auto& stack = thread().contexts;
  *pctx = stack.empty() ? nullptr : handleOf(stack.back());
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetDevice)(CUdevice* device) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context); e == CUDA_ERROR_NOT_INITIALIZED || !peekContext())
    return e ? e : CUDA_ERROR_INVALID_CONTEXT;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = static_cast<CUdevice>(peekContext()->device()->ordinal);
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetDevice_v2)(CUdevice* device, CUcontext ctx) {
  Ref<Context> context;
  if (const CUresult e = contextArgument(ctx, context)) return e;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = static_cast<CUdevice>(context->device()->ordinal);
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetApiVersion)(CUcontext ctx, unsigned int* version) {
  Ref<Context> context;
  if (const CUresult e = contextArgument(ctx, context)) return e;
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetId)(CUcontext ctx, unsigned long long* ctxId) {
  Ref<Context> context;
  if (const CUresult e = contextArgument(ctx, context)) return e;
  if (!ctxId) return CUDA_ERROR_INVALID_VALUE;
  const Ref<GreenContext> green = ctx ? greenOf(ctx) : Ref<GreenContext>(currentGreen());
  *ctxId = green ? green->uid() : context->uid();
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetFlags)(unsigned int* flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags.load();
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxSetFlags)(unsigned int flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!validFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  context->flags.store(flags);
  return CUDA_SUCCESS;
}

CUresult synchronizeContext(const Ref<Context>& context) {
  const uint64_t start = tools::wants(SONDE_INTEREST_SYNC) ? platform::nowNs() : 0;
  const CUresult result = context->synchronize();
  managed::waited(*context);
  if (start) reportSync(*context, nullptr, SONDE_SYNC_CONTEXT_SYNCHRONIZE, start, result);
  return result;
}

DRIVER_API(cuCtxSynchronize)() {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (const CUresult e = refuseWhileCapturing(*context)) return e;
  return synchronizeContext(context);
}

DRIVER_API(cuCtxSynchronize_v2)(CUcontext ctx) {
  Ref<Context> context;
  if (const CUresult e = contextArgument(ctx, context)) return e;
  if (const CUresult e = refuseWhileCapturing(*context)) return e;
  return synchronizeContext(context);
}

DRIVER_API(cuCtxSetLimit)(CUlimit limit, size_t value) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  std::lock_guard lock(context->objects);
  auto it = context->limits.find(limit);
  if (it == context->limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_STACK_SIZE) {
    if (value > (512u << 10)) return CUDA_ERROR_INVALID_VALUE;
    value = std::max<size_t>(1024, (value + 15) & ~size_t{15});
  }
  if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
  it->second = value;
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetLimit)(size_t* pvalue, CUlimit limit) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pvalue) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(context->objects);
  auto it = context->limits.find(limit);
  if (it == context->limits.end()) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *pvalue = it->second;
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxResetPersistingL2Cache)() {
  Ref<Context> context;
  return currentContext(context);
}

DRIVER_API(cuCtxGetCacheConfig)(CUfunc_cache* pconfig) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pconfig) return CUDA_ERROR_INVALID_VALUE;
  *pconfig = static_cast<CUfunc_cache>(context->cacheConfig.load());
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxSetCacheConfig)(CUfunc_cache config) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  context->cacheConfig.store(config);
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxGetSharedMemConfig)(CUsharedconfig* pConfig) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pConfig) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t config = context->sharedConfig.load();
  *pConfig = config ? static_cast<CUsharedconfig>(config) : CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxSetSharedMemConfig)(CUsharedconfig config) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (static_cast<unsigned>(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;  // the banks are four bytes wide, whatever is asked for
}

DRIVER_API(cuCtxGetStreamPriorityRange)(int* leastPriority, int* greatestPriority) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (leastPriority) *leastPriority = 0;
  if (greatestPriority) *greatestPriority = -5;
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxEnablePeerAccess)(CUcontext peerContext, unsigned int flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  Ref<Context> peer = HandleTable::find<Context>(peerContext);
  if (!peer || peer->destroyed.load()) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device() == context->device()) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard lock(context->objects);
  return context->peers.insert(peer.get()).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

DRIVER_API(cuCtxDisablePeerAccess)(CUcontext peerContext) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  Ref<Context> peer = HandleTable::find<Context>(peerContext);
  if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard lock(context->objects);
  return context->peers.erase(peer.get()) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

// ------------------------------------------------------- primary contexts --

DRIVER_API(cuDevicePrimaryCtxRetain)(CUcontext* pctx, CUdevice dev) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  Ref<Context> context;
  if (const CUresult e = primaryContext(device, true, context)) return e;
  *pctx = static_cast<CUcontext>(context->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxRelease_v2)(CUdevice dev) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  Ref<Context> last;
  {
    std::lock_guard lock(device->primaryMutex);
    if (device->primaryUsers == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--device->primaryUsers == 0) last = std::exchange(device->primary, {});
  }
  if (last) last->destroy();
  return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxReset_v2)(CUdevice dev) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  Ref<Context> old;
  bool users;
  {
    std::lock_guard lock(device->primaryMutex);
    old = std::exchange(device->primary, {});
    users = device->primaryUsers > 0;
    device->primaryFlags = 0;
  }
  if (!old) return CUDA_SUCCESS;
  old->destroy();
  // Who retained it goes on with the same, now empty, context state: the next
  // use makes a new one.
  if (users) {
    Ref<Context> fresh;
    if (const CUresult e = primaryContext(device, false, fresh)) return e;
    for (auto& entry : thread().contexts)
      if (entry.context == old) entry = {fresh, nullptr};
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxSetFlags_v2)(CUdevice dev, unsigned int flags) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  if (!validFlags(flags)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->primaryMutex);
  device->primaryFlags = flags;
  if (device->primary) device->primary->flags.store(flags);
  return CUDA_SUCCESS;
}

DRIVER_API(cuDevicePrimaryCtxGetState)(CUdevice dev, unsigned int* flags, int* active) {
  Device* device;
  if (const CUresult e = findDevice(dev, device)) return e;
  if (!flags && !active) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(device->primaryMutex);
  if (flags) *flags = device->primary ? device->primary->flags.load() : device->primaryFlags;
  if (active) *active = device->primary ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
