// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/lifetimes.h"

#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <atomic>
#include <initializer_list>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/harvester.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/launch_facts.h"
#include "platform/nvidia/memory.h"
#include "platform/nvidia/uvm_tools.h"
#include "platform/nvidia/work.h"

namespace sonde::platform::nvidia {
namespace {

std::atomic<uint64_t> wanted{0};
constexpr uint64_t kWorkInterest =
    SONDE_INTEREST_KERNEL | SONDE_INTEREST_MEMCPY | SONDE_INTEREST_MEMSET | SONDE_INTEREST_GRAPH;

#define CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

constexpr uint32_t kLifetimes[] = {CBID(cuInit),
                                   CBID(cuDriverGetVersion),
                                   CBID(cuCtxCreate),
                                   CBID(cuCtxCreate_v2),
                                   CBID(cuCtxCreate_v3),
                                   CBID(cuCtxCreate_v4),
                                   CBID(cuDevicePrimaryCtxRetain),
                                   CBID(cuCtxDestroy),
                                   CBID(cuCtxDestroy_v2),
                                   CBID(cuDevicePrimaryCtxRelease),
                                   CBID(cuDevicePrimaryCtxRelease_v2),
                                   CBID(cuDevicePrimaryCtxReset),
                                   CBID(cuDevicePrimaryCtxReset_v2),
                                   CBID(cuStreamCreate),
                                   CBID(cuStreamCreateWithPriority),
                                   CBID(cuStreamDestroy),
                                   CBID(cuStreamDestroy_v2),
                                   CBID(cuModuleLoad),
                                   CBID(cuModuleLoadData),
                                   CBID(cuModuleLoadDataEx),
                                   CBID(cuModuleLoadFatBinary),
                                   CBID(cuModuleUnload),
                                   CBID(cuLibraryUnload),
                                   CBID(cuFuncSetAttribute),
                                   CBID(cuKernelSetAttribute),
                                   CBID(cuStreamSetAttribute),
                                   CBID(cuStreamSetAttribute_ptsz),
                                   CBID(cuStreamCopyAttributes),
                                   CBID(cuStreamCopyAttributes_ptsz)};
constexpr uint32_t kSyncs[] = {CBID(cuCtxSynchronize),         CBID(cuCtxSynchronize_v2), CBID(cuStreamSynchronize),
                               CBID(cuStreamSynchronize_ptsz), CBID(cuEventSynchronize),  CBID(cuStreamWaitEvent),
                               CBID(cuStreamWaitEvent_ptsz)};

template <class Params>
const Params& as(const void* params) {
  return *static_cast<const Params*>(params);
}

void tell(const SondeResource& event) {
  if ((wanted.load(std::memory_order_relaxed) & SONDE_INTEREST_RESOURCE) == 0) return;
  ListenerUse use;
  if (use && use->resource) use->resource(use->self, &event);
}

void contextGoes(Context* context) {
  if (context == nullptr) return;
  SondeResource event = describe(*context);
  event.event = SONDE_RESOURCE_CONTEXT_DESTROY_STARTING;
  tell(event);
  retire(*context);
  forgetAllocations(*context);
  forgetContext(context->handle);
}

void primaryContextsGo(CUdevice device, bool onlyIfInactive) {
  if (onlyIfInactive) {
    auto* state =
        reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(driverOriginal[CBID(cuDevicePrimaryCtxGetState)]);
    unsigned flags = 0;
    int active = 1;
    if (state == nullptr || state(device, &flags, &active) != CUDA_SUCCESS || active) return;
  }
  for (Context* context : liveContexts())
    if (context->primary.load() && context->device == static_cast<uint32_t>(device)) contextGoes(context);
}

void moduleCame(CUmodule* module) {
  if (module == nullptr || *module == nullptr) return;
  Context* context = currentContext();
  if (context == nullptr) return;
  SondeResource event = describe(*context);
  event.event = SONDE_RESOURCE_MODULE_LOADED;
  event.handle = *module;
  event.id = event.moduleId = moduleId(*module);
  tell(event);
}

// Records tell of the attribute, and it is another one now.
bool kernelIsOther(CUfunction function, CUfunction_attribute attribute, int value) {
  switch (static_cast<int>(attribute)) {
    // Some programs set this one before each launch.
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return kernelInfo(function).maxDynamicShared != static_cast<uint32_t>(value);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: return true;
    default: return false;
  }
}

void streamHasWindow(CUstream handle, bool perThread) {
  Context* context = currentContext();
  if (context == nullptr) return;
  Stream* stream = findStream(*context, handle, perThread);
  stream->window.store(windowOfStream(stream->handle));
}

}  // namespace

uint64_t interest() { return wanted.load(std::memory_order_relaxed); }

void setInterest(uint64_t bits) {
  wanted.store(bits, std::memory_order_seq_cst);
  uint8_t handling[kCbidCount] = {};
  auto mark = [&](const auto& list, uint8_t bit) {
    for (uint32_t cbid : list) handling[cbid] |= bit;
  };
  mark(kLifetimes, kHandleLifetime);
  mark(tracedGraphCallbacks(), kHandleGraph);
  if (bits & (kWorkInterest | SONDE_INTEREST_RESOURCE)) mark(graphCallbacks(), kHandleGraph);
  if (bits & kWorkInterest) {
    mark(workCallbacks(), kHandleWork);
    mark(orderCallbacks(), kHandleOrder);
  }
  if (bits & SONDE_INTEREST_EVENT_RECORD) mark(eventRecordCallbacks(), kHandleWork);
  if (bits & SONDE_INTEREST_SYNC) mark(kSyncs, kHandleSync);
  if (bits & SONDE_INTEREST_MEMORY) mark(memoryCallbacks(), kHandleMemory);
  for (uint32_t cbid = 0; cbid < kCbidCount; ++cbid)
    if (flagOf(driverHandling[cbid]) != handling[cbid]) setFlag(driverHandling[cbid], handling[cbid]);
  if (bits & (kWorkInterest | SONDE_INTEREST_UNIFIED_MEMORY)) startHarvester();
  hookRuntimes();
}

SondeResource describe(const Context& context) {
  SondeResource r{};
  r.size = sizeof r;
  r.event = SONDE_RESOURCE_CONTEXT_CREATED;
  r.context = r.handle = context.handle;
  r.contextUid = r.id = context.uid;
  r.deviceId = context.device;
  return r;
}

SondeResource describe(const Stream& stream) {
  SondeResource r = describe(*stream.context);
  r.event = SONDE_RESOURCE_STREAM_CREATED;
  r.handle = stream.handle;
  r.id = stream.id;
  r.flags = (stream.legacy ? 1u : 0u) | (stream.blocking ? 0u : 2u);
  r.priority = stream.priority;
  return r;
}

void reportContext(Context& context) { tell(describe(context)); }

void beforeLifetime(uint32_t cbid, const void* params) {
  switch (cbid) {
    // The first things that a runtime does.
    case CBID(cuInit):
    case CBID(cuDriverGetVersion): hookRuntimes(); break;
    case CBID(cuCtxDestroy):
    case CBID(cuCtxDestroy_v2): contextGoes(findContext(as<cuCtxDestroy_v2_params>(params).ctx, false)); break;
    case CBID(cuDevicePrimaryCtxReset):
    case CBID(cuDevicePrimaryCtxReset_v2):
      primaryContextsGo(as<cuDevicePrimaryCtxReset_v2_params>(params).dev, false);
      break;
    case CBID(cuStreamDestroy):
    case CBID(cuStreamDestroy_v2): {
      const CUstream handle = as<cuStreamDestroy_v2_params>(params).hStream;
      for (Context* context : liveContexts())
        for (Stream* stream : liveStreams(*context)) {
          if (stream->handle != handle || stream->dead.load()) continue;
          SondeResource event = describe(*stream);
          event.event = SONDE_RESOURCE_STREAM_DESTROY_STARTING;
          tell(event);
        }
      break;
    }
    case CBID(cuModuleUnload): {
      const CUmodule module = as<cuModuleUnload_params>(params).hmod;
      if (Context* context = currentContext(); context != nullptr && module != nullptr) {
        SondeResource event = describe(*context);
        event.event = SONDE_RESOURCE_MODULE_UNLOAD_STARTING;
        event.handle = module;
        event.id = event.moduleId = moduleId(module);
        tell(event);
      }
      break;
    }
    default: break;
  }
}

void afterLifetime(uint32_t cbid, const void* params, int32_t result) {
  switch (cbid) {
    case CBID(cuModuleUnload):
    case CBID(cuLibraryUnload): forgetKernels(); return;
    case CBID(cuStreamDestroy):
    case CBID(cuStreamDestroy_v2):
      if (result == CUDA_SUCCESS) forgetStream(as<cuStreamDestroy_v2_params>(params).hStream);
      return;
    default: break;
  }
  if (result != CUDA_SUCCESS) return;
  switch (cbid) {
    case CBID(cuInit): {
      SondeResource event{};
      event.size = sizeof event;
      event.event = SONDE_RESOURCE_INIT_FINISHED;
      tell(event);
      unifiedMemoryDriverIsUp();
      break;
    }
    case CBID(cuCtxCreate):
    case CBID(cuCtxCreate_v2):
    case CBID(cuCtxCreate_v3):
    case CBID(cuCtxCreate_v4):
    case CBID(cuDevicePrimaryCtxRetain): {
      CUcontext* made = as<cuDevicePrimaryCtxRetain_params>(params).pctx;  // the first parameter of all of them
      Context* context = made != nullptr ? findContext(*made, true) : nullptr;
      if (context == nullptr) break;
      if (cbid == CBID(cuDevicePrimaryCtxRetain)) context->primary.store(true);
      if (interest() & (kWorkInterest | SONDE_INTEREST_UNIFIED_MEMORY)) prepareTiming(*context);
      unifiedMemoryDriverIsUp();
      break;
    }
    case CBID(cuDevicePrimaryCtxRelease):
    case CBID(cuDevicePrimaryCtxRelease_v2):
      primaryContextsGo(as<cuDevicePrimaryCtxRelease_v2_params>(params).dev, true);
      break;
    case CBID(cuStreamCreate):
    case CBID(cuStreamCreateWithPriority): {
      CUstream* made = as<cuStreamCreate_params>(params).phStream;
      Context* context = currentContext();
      if (made != nullptr && context != nullptr)
        if (const Stream* stream = findStream(*context, *made, false)) tell(describe(*stream));
      break;
    }
    case CBID(cuModuleLoad):
    case CBID(cuModuleLoadData):
    case CBID(cuModuleLoadDataEx):
    case CBID(cuModuleLoadFatBinary): moduleCame(as<cuModuleLoad_params>(params).module); break;
    case CBID(cuFuncSetAttribute): {
      const auto& p = as<cuFuncSetAttribute_params>(params);
      if (kernelIsOther(p.hfunc, p.attrib, p.value)) kernelChanged(p.hfunc);
      break;
    }
    case CBID(cuKernelSetAttribute): {
      const auto& p = as<cuKernelSetAttribute_params>(params);
      const auto function = reinterpret_cast<CUfunction>(p.kernel);
      if (kernelIsOther(function, p.attrib, p.val)) kernelChanged(function);
      break;
    }
    case CBID(cuStreamSetAttribute):
    case CBID(cuStreamSetAttribute_ptsz): {
      const auto& p = as<cuStreamSetAttribute_params>(params);
      if (p.attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
        streamHasWindow(p.hStream, cbid == CBID(cuStreamSetAttribute_ptsz));
      break;
    }
    case CBID(cuStreamCopyAttributes):
    case CBID(cuStreamCopyAttributes_ptsz):
      streamHasWindow(as<cuStreamCopyAttributes_params>(params).dstStream, cbid == CBID(cuStreamCopyAttributes_ptsz));
      break;
    default: break;
  }
}

void reportSync(uint32_t cbid, bool perThread, const void* params, int32_t result, uint64_t started,
                uint32_t correlation) {
  constexpr uint32_t kNone = 0xffffffff;
  Context* context = currentContext();
  if (context == nullptr) return;
  SondeSync sync{};
  sync.size = sizeof sync;
  sync.context = context->handle;
  sync.contextUid = context->uid;
  sync.streamId = kNone;
  sync.start = started;
  sync.end = platform::nowNs();
  sync.correlationId = correlation;
  sync.returnValue = result;
  CUstream handle = nullptr;
  CUevent event = nullptr;
  switch (cbid) {
    case CBID(cuCtxSynchronize):
    case CBID(cuCtxSynchronize_v2): sync.kind = SONDE_SYNC_CONTEXT_SYNCHRONIZE; break;
    case CBID(cuEventSynchronize):
      sync.kind = SONDE_SYNC_EVENT_SYNCHRONIZE;
      event = as<cuEventSynchronize_params>(params).hEvent;
      break;
    case CBID(cuStreamSynchronize):
    case CBID(cuStreamSynchronize_ptsz):
      sync.kind = SONDE_SYNC_STREAM_SYNCHRONIZE;
      handle = as<cuStreamSynchronize_params>(params).hStream;
      break;
    default:
      sync.kind = SONDE_SYNC_STREAM_WAIT_EVENT;
      handle = as<cuStreamWaitEvent_params>(params).hStream;
      event = as<cuStreamWaitEvent_params>(params).hEvent;
      break;
  }
  if (sync.kind == SONDE_SYNC_STREAM_SYNCHRONIZE || sync.kind == SONDE_SYNC_STREAM_WAIT_EVENT) {
    if (result == CUDA_SUCCESS) {
      const Stream* stream = findStream(*context, handle, perThread);
      sync.stream = handle;
      sync.streamId = stream->id;
    }
  }
  if (event != nullptr && result == CUDA_SUCCESS) sync.eventId = objectId(event);
  ListenerUse use;
  if (use && use->synchronized) use->synchronized(use->self, &sync);
}

}  // namespace sonde::platform::nvidia
