// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/work.h"

#include <cupti_runtime_cbid.h>
#include <generated_cuda_runtime_api_meta.h>

#include <algorithm>
#include <shared_mutex>
#include <unordered_map>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/harvester.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/lifetimes.h"

namespace sonde::platform::nvidia {
uint64_t interestFor(uint32_t kind) {
  switch (kind) {
    case SONDE_WORK_KERNEL: return SONDE_INTEREST_KERNEL;
    case SONDE_WORK_MEMCPY:
    case SONDE_WORK_MEMCPY_PEER: return SONDE_INTEREST_MEMCPY;
    case SONDE_WORK_MEMSET: return SONDE_INTEREST_MEMSET;
    case SONDE_WORK_EVENT_RECORD: return SONDE_INTEREST_EVENT_RECORD;
    case SONDE_WORK_GRAPH: return SONDE_INTEREST_GRAPH;
    default: return 0;
  }
}

namespace {

// A capture from before the hooks may be under way.
std::atomic<bool> captureUnknown{true};

bool capturing(const Context& context, CUstream handle) {
  if (!mayCapture() || !own.cuStreamIsCapturing) return false;
  if (!captureUnderWay()) {
    const Stream* stream = rememberedStream(context, handle);
    if (stream != nullptr && stream->captureKnown.load(std::memory_order_relaxed)) return false;
  }
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error: the null stream while another one captures; work cannot be
  // enqueued then either.
  return own.cuStreamIsCapturing(handle, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

struct Place {
  uint32_t kind = SONDE_MEMORY_PAGEABLE;
  uint32_t device = 0;
};

// `graph`: whose memory may not be there yet.
Place placeOf(const void* address, const TracedGraph* graph = nullptr) {
  Place place;
  if (graph != nullptr) {
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    for (const auto& [first, bytes] : graph->allocations)
      if (at - first < bytes) return {SONDE_MEMORY_DEVICE, graph->context->device};
  }
  if (!own.cuPointerGetAttributes) return place;
  unsigned type = 0, managed = 0;
  int ordinal = 0;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void* values[] = {&type, &managed, &ordinal};
  if (own.cuPointerGetAttributes(3, which, values, reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS)
    return place;
  if (ordinal >= 0) place.device = static_cast<uint32_t>(ordinal);
  if (managed) {
    place.kind = SONDE_MEMORY_MANAGED;
  } else if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) {
    place.kind = SONDE_MEMORY_DEVICE;
  } else if (type == CU_MEMORYTYPE_ARRAY) {
    place.kind = SONDE_MEMORY_ARRAY;
  } else if (type == CU_MEMORYTYPE_HOST) {
    place.kind = SONDE_MEMORY_PINNED;
  }
  return place;
}

bool isHost(uint32_t kind) { return kind == SONDE_MEMORY_PAGEABLE || kind == SONDE_MEMORY_PINNED; }

// A CUpti_ActivityMemcpyKind.
uint32_t copyKind(uint32_t from, uint32_t to) {
  const bool fromArray = from == SONDE_MEMORY_ARRAY, toArray = to == SONDE_MEMORY_ARRAY;
  if (isHost(from)) return toArray ? 3 : isHost(to) ? 9 : 1;
  if (fromArray) return toArray ? 5 : isHost(to) ? 4 : 6;
  return toArray ? 7 : isHost(to) ? 2 : 8;
}

}  // namespace

uint64_t nextGridId() {
  static std::atomic<uint64_t> grids{0};
  return grids.fetch_add(1, std::memory_order_relaxed) + 1;
}

void completeKernel(SondeWork& work, const KernelInfo& kernel) {
  work.name = kernel.name;
  work.moduleId = kernel.moduleId;
  work.functionId = kernel.functionId;
  work.registersPerThread = kernel.registers;
  work.staticSharedMemory = kernel.staticShared;
  work.sharedMemoryExecuted = kernel.staticShared + work.dynamicSharedMemory;
  work.localMemoryPerThread = kernel.localPerThread;
  work.channelType = 1;  // compute
  work.sharedMemoryOptin = kernel.optin();
  if (work.cluster[0] == 0) std::copy_n(kernel.cluster, 3, work.cluster);
}

namespace {

void completeCopy(WorkCall& call, const Context& context, const TracedGraph* graph = nullptr) {
  SondeWork& work = call.work;
  work.channelType = 2;  // asynchronous copy
  if (call.destination != nullptr) {
    const Place to = placeOf(call.destination, graph);
    work.dstMemoryKind = to.kind;
    work.dstDeviceId = to.device;
  }
  if (work.kind == SONDE_WORK_MEMSET) return;
  if (call.source != nullptr) {
    const Place from = placeOf(call.source, graph);
    work.srcMemoryKind = from.kind;
    work.srcDeviceId = from.device;
  }
  if (work.kind == SONDE_WORK_MEMCPY && !isHost(work.srcMemoryKind) && !isHost(work.dstMemoryKind) &&
      call.source != nullptr && call.destination != nullptr && work.srcDeviceId != work.dstDeviceId) {
    work.kind = SONDE_WORK_MEMCPY_PEER;
    work.srcContextUid = work.dstContextUid = context.uid;
  }
  work.copyKind = work.kind == SONDE_WORK_MEMCPY_PEER ? 10 : copyKind(work.srcMemoryKind, work.dstMemoryKind);
  work.copyCount = 1;
  // Between device memories the call returns before the copy is done.
  if (!isHost(work.srcMemoryKind) && !isHost(work.dstMemoryKind)) call.synchronous = false;
}

uint32_t memoryKindOf(CUmemorytype type) {
  return type == CU_MEMORYTYPE_ARRAY    ? SONDE_MEMORY_ARRAY
         : type == CU_MEMORYTYPE_DEVICE ? SONDE_MEMORY_DEVICE
                                        : SONDE_MEMORY_UNKNOWN;
}

const void* addressOf(CUmemorytype type, const void* host, CUdeviceptr device) {
  switch (type) {
    case CU_MEMORYTYPE_ARRAY: return nullptr;
    case CU_MEMORYTYPE_HOST: return host;
    default: return reinterpret_cast<const void*>(device);
  }
}

}  // namespace

void describeKernelNode(const CUDA_KERNEL_NODE_PARAMS& p, TracedNode& node) {
  SondeWork& work = node.work;
  work.kind = SONDE_WORK_KERNEL;
  node.function = p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern);
  const uint32_t grid[3] = {p.gridDimX, p.gridDimY, p.gridDimZ};
  const uint32_t block[3] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  std::copy_n(grid, 3, work.grid);
  std::copy_n(block, 3, work.block);
  work.dynamicSharedMemory = p.sharedMemBytes;
}

void describeCopyNode(const CUDA_MEMCPY3D& p, const TracedGraph& graph, TracedNode& node) {
  WorkCall call;
  call.work.kind = SONDE_WORK_MEMCPY;
  call.work.isAsync = 1;
  call.work.bytes = p.WidthInBytes * std::max<size_t>(p.Height, 1) * std::max<size_t>(p.Depth, 1);
  call.work.srcMemoryKind = memoryKindOf(p.srcMemoryType);
  call.work.dstMemoryKind = memoryKindOf(p.dstMemoryType);
  call.source = addressOf(p.srcMemoryType, p.srcHost, p.srcDevice);
  call.destination = addressOf(p.dstMemoryType, p.dstHost, p.dstDevice);
  completeCopy(call, *graph.context, &graph);
  node.work = call.work;
}

void describeSetNode(const CUDA_MEMSET_NODE_PARAMS& p, const TracedGraph& graph, TracedNode& node) {
  WorkCall call;
  call.work.kind = SONDE_WORK_MEMSET;
  call.work.isAsync = 1;
  call.work.bytes = static_cast<uint64_t>(p.elementSize) * p.width * std::max<size_t>(p.height, 1);
  call.work.setValue = p.value;
  call.destination = reinterpret_cast<const void*>(p.dst);
  completeCopy(call, *graph.context, &graph);
  node.work = call.work;
}

bool mayCapture() { return captureUnderWay() || captureUnknown.load(std::memory_order_relaxed); }

void noteAttached() {
  int count = 0;  // before cuInit there can be no capture
  captureUnknown.store(!own.cuDeviceGetCount || own.cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED);
}

void describeItem(const Stream& stream, const Item& item, SondeWork* out) {
  SondeWork& work = *out;
  const Context& context = *stream.context;
  work = {};
  work.size = sizeof work;
  work.kind = item.kind;
  work.correlationId = item.correlationId;
  work.deviceId = context.device;
  work.contextUid = context.uid;
  work.context = context.handle;
  work.streamId = stream.id;
  work.listenerWord = item.listenerWord;
  work.listenerWord3 = item.listenerWord3;
  work.isAsync = item.isAsync;
  work.channelType = 2;  // asynchronous copy
  switch (item.kind) {
    case SONDE_WORK_KERNEL:
      std::copy_n(item.launch.grid, 3, work.grid);
      std::copy_n(item.launch.block, 3, work.block);
      std::copy_n(item.launch.cluster, 3, work.cluster);
      work.dynamicSharedMemory = item.launch.dynamicShared;
      work.launchType = item.launch.launchType;
      work.priority = item.launch.priority;
      work.gridId = item.launch.gridId;
      completeKernel(work, *item.kernel);
      tellFacts(work, item.launch.facts, context);
      break;
    case SONDE_WORK_GRAPH:
      work.graphId = item.graph.id;
      work.extraId = item.graph.id;
      break;
    default:
      work.copyKind = item.copyKind;
      work.srcMemoryKind = item.srcMemoryKind;
      work.dstMemoryKind = item.dstMemoryKind;
      work.bytes = item.copy.bytes;
      work.setValue = item.copy.value;
      work.srcDeviceId = item.copy.srcDevice;
      work.dstDeviceId = item.copy.dstDevice;
      work.srcContextUid = work.dstContextUid = context.uid;
      work.copyCount = 1;
      break;
  }
}

namespace {

// What another core read last is here when the launch is done. Never faults, whatever the address.
void fetchAhead(const void* address, size_t bytes) {
  if (address == nullptr) return;
  for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(static_cast<const char*>(address) + at, 1);
}

}  // namespace

void PendingWork::prepare(uint32_t cbid, bool perThread, const void* params) {
  if (!describeCall(cbid, params, call_)) return;
  Context* context = currentContext(true);
  if (context == nullptr) return;
  CUstream handle = call_.stream;
  if (handle == nullptr) handle = perThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  call_.stream = handle;
  if (capturing(*context, handle)) return;
  context_ = context;
  stream_ = findStream(*context, handle, perThread);
  // A wait for an event of such a capture draws the stream into it.
  if (stream_->captureKnown.load(std::memory_order_relaxed) == call_.orderOnly)
    stream_->captureKnown.store(!call_.orderOnly, std::memory_order_relaxed);
  if (call_.orderOnly) return;
  if (call_.work.kind == SONDE_WORK_EVENT_RECORD) {
    wanted_ = true;
    return;
  }
  wanted_ = (interest() & interestFor(call_.work.kind)) != 0;
  if (call_.exec != nullptr) {
    graph_ = prepareGraphLaunch(call_.exec, &events_);
    wanted_ = wanted_ || graph_ != nullptr;
  }
  if (!wanted_) return;
  if (call_.work.kind == SONDE_WORK_MEMCPY) completeCopy(call_, *context);
  prepareTiming(*context);
  // Behind the launch every moment counts: the event is ready before it.
  after_ = takeThreadEvent(*context);
  fetchAhead(after_, 512);
  // Something came since the last item whose end tells nothing: the stream has
  // to say itself when it gets here.
  other_ = stream_->legacy     ? context->blockingWork.load(std::memory_order_relaxed)
           : stream_->blocking ? context->legacyWork.load(std::memory_order_relaxed)
                               : 0;
  if (!stream_->unordered.load(std::memory_order_relaxed) &&
      other_ == stream_->seenOther.load(std::memory_order_relaxed))
    return;
  before_ = takeThreadEvent(*context);
  if (before_ != nullptr && own.cuEventRecord(before_, handle) != CUDA_SUCCESS) {
    context->giveEvent(before_);
    before_ = nullptr;
  }
}

bool PendingWork::needsBegin() const {
  // A kernel's `queued`, which only latency time stamps show; a copy may have been synchronous.
  return wanted_ && (call_.work.kind != SONDE_WORK_KERNEL || (interest() & SONDE_INTEREST_LATENCY) != 0);
}

void PendingWork::finish(int32_t result, uint64_t called, uint32_t correlation) {
  if (context_ == nullptr) return;
  const uint64_t returned = wanted_ ? platform::nowNs() : 0;
  if (called == 0) called = returned;
  Context& context = *context_;
  if (result != CUDA_SUCCESS) {
    context.giveEvent(before_);
    context.giveEvent(after_);
    return;
  }
  SondeWork& work = call_.work;
  const bool instant = work.kind == SONDE_WORK_EVENT_RECORD;
  if (!instant) {
    if (stream_->legacy) {
      context.legacyWork.fetch_add(1, std::memory_order_relaxed);
    } else if (stream_->blocking) {
      context.blockingWork.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (!wanted_) {
    stream_->unordered.store(true, std::memory_order_relaxed);
    return;
  }
  Item item{};
  if (!instant) {
    item.after = after_;
    if (item.after != nullptr && own.cuEventRecord(item.after, call_.stream) != CUDA_SUCCESS) {
      context.giveEvent(item.after);
      item.after = nullptr;
    }
    item.before = before_;
  }
  work.size = sizeof work;
  work.correlationId = correlation;
  work.deviceId = context.device;
  work.contextUid = context.uid;
  work.context = context.handle;
  work.streamId = stream_->id;
  const KernelInfo* kernel = nullptr;
  const LaunchFacts* facts = nullptr;
  if (work.kind == SONDE_WORK_KERNEL) {
    kernel = &kernelInfo(call_.function);
    facts = launchFacts(work, call_.wishes, stream_->window.load(std::memory_order_relaxed), *kernel, call_.stream);
    work.gridId = nextGridId();
    if (work.priority == 0) work.priority = stream_->priority;
  } else if (work.kind == SONDE_WORK_MEMSET) {
    completeCopy(call_, context);
  }
  GraphLaunch* launch = graph_ != nullptr ? noteGraphLaunch(std::move(graph_), std::move(events_), work) : nullptr;
  {
    ListenerUse use;
    if (use && use->workEnqueued) use->workEnqueued(use->self, &work);
    if (instant) {
      work.queued = work.submitted = work.start = work.end = returned;
      if (use && use->workCompleted) use->workCompleted(use->self, &work);
      return;
    }
  }
  item.called = called;
  item.returned = returned;
  item.listenerWord = work.listenerWord;
  item.listenerWord3 = work.listenerWord3;
  item.correlationId = correlation;
  item.kind = static_cast<uint8_t>(work.kind);
  item.synchronous = call_.synchronous;
  item.isAsync = work.isAsync != 0;
  switch (work.kind) {
    case SONDE_WORK_KERNEL:
      item.kernel = kernel;
      std::copy_n(work.grid, 3, item.launch.grid);
      std::copy_n(work.block, 3, item.launch.block);
      std::copy_n(work.cluster, 3, item.launch.cluster);
      item.launch.dynamicShared = work.dynamicSharedMemory;
      item.launch.launchType = work.launchType;
      item.launch.priority = work.priority;
      item.launch.gridId = work.gridId;
      item.launch.facts = facts;
      break;
    case SONDE_WORK_GRAPH: item.graph = {work.graphId, launch}; break;
    default:
      item.copyKind = static_cast<uint8_t>(work.copyKind);
      item.srcMemoryKind = static_cast<uint8_t>(work.srcMemoryKind);
      item.dstMemoryKind = static_cast<uint8_t>(work.dstMemoryKind);
      item.copy.bytes = work.bytes;
      item.copy.value = work.setValue;
      item.copy.srcDevice = work.srcDeviceId;
      item.copy.dstDevice = work.dstDeviceId;
      break;
  }
  enqueue(*stream_, item, other_);
}

const char* launchedKernel(uint32_t cbid, const void* params) {
  WorkCall call;
  if (!describeCall(cbid, params, call) || call.function == nullptr) return nullptr;
  return kernelInfo(call.function).name;
}

const char* launchedStub(uint32_t cbid, const void* params) {
  const void* stub = nullptr;
  switch (cbid) {
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_ptsz_v7000:
      stub = static_cast<const cudaLaunchKernel_v7000_params*>(params)->func;
      break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_v9000:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchCooperativeKernel_ptsz_v9000:
      stub = static_cast<const cudaLaunchCooperativeKernel_v9000_params*>(params)->func;
      break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060:
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_ptsz_v11060:
      stub = static_cast<const cudaLaunchKernelExC_v11060_params*>(params)->func;
      break;
    default: return nullptr;
  }
  static std::shared_mutex& mutex = *new std::shared_mutex;
  static auto& names = *new std::unordered_map<const void*, const char*>;
  {
    std::shared_lock lock(mutex);
    if (const auto at = names.find(stub); at != names.end()) return at->second;
  }
  auto* getName = reinterpret_cast<cudaError_t (*)(const char**, const void*)>(
      runtimeOriginal[CUPTI_RUNTIME_TRACE_CBID_cudaFuncGetName_v12030]);
  CUcontext current = nullptr;
  // Asking makes the runtime set itself up: only where it has.
  if (getName == nullptr || own.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current == nullptr) return nullptr;
  ThreadCalls& thread = threadCalls;
  const bool inDriver = thread.inDriver, inRuntime = thread.inRuntime;
  thread.inDriver = thread.inRuntime = true;  // what it calls is no call of the application
  const char* name = nullptr;
  const cudaError_t error = getName(&name, stub);
  thread.inDriver = inDriver;
  thread.inRuntime = inRuntime;
  if (error != cudaSuccess || name == nullptr) return nullptr;
  name = keep(name);
  std::unique_lock lock(mutex);
  return names.emplace(stub, name).first->second;
}

}  // namespace sonde::platform::nvidia
