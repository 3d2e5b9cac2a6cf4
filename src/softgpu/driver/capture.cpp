// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/capture.h"

#include <algorithm>
#include <map>

#include "platform/tools_api.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_nodes.h"
#include "softgpu/driver/pool.h"
#include "softgpu/driver/sync.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

// One capture, from begin to end. Lives until its origin stream ends it.
class Capture {
 public:
  uint64_t id = 0;
  Ref<Stream> origin;
  ThreadState* thread = nullptr;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  Ref<Graph> graph;
  bool ownGraph = true;
  bool invalid = false;
  // What the next node of each stream depends on.
  std::map<Stream*, std::vector<GraphNode*>> ends;
  std::vector<Ref<Stream>> streams;
  std::vector<GraphNode*> made;
  std::vector<CUgraphNode> handles;  // for cuStreamGetCaptureInfo
};

namespace {

struct Captures {
  // Recursive: a listener that is told of a node may ask about the capture.
  std::recursive_mutex mutex;
  std::vector<Capture*> active;
  std::atomic<uint32_t> count{0};
  uint64_t lastId = 0;
};
Captures& captures() {
  static Captures* c = new Captures();
  return *c;
}

void join(Capture& capture, Stream& stream, std::vector<GraphNode*> ends) {
  capture.ends[&stream] = std::move(ends);
  capture.streams.emplace_back(&stream);
  stream.capture.store(&capture);
}

// Adds a node after what the stream has come to. With the captures' lock held.
CUresult append(Capture& capture, Stream& stream, NodeWork work) {
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Ref<GraphNode> node;
  {
    std::lock_guard lock(graphLock());
    if (const CUresult e = claimMemory(*capture.graph, work)) return e;
    node = capture.graph->add(std::move(work), capture.ends[&stream]);
  }
  if (!node) return CUDA_ERROR_OUT_OF_MEMORY;
  capture.made.push_back(node.get());
  capture.ends[&stream] = {node.get()};
  reportGraph(SONDE_RESOURCE_GRAPH_NODE_CREATED, capture.graph.get(), node.get(), nullptr);
  return CUDA_SUCCESS;
}

// The address that the API would name for bytes the host reaches here.
uint64_t addressOf(const std::byte* p) {
  const auto& space = memory::AddressSpace::get();
  const uint64_t raw = reinterpret_cast<uint64_t>(p), device = raw - static_cast<uint64_t>(space.deviceDelta);
  return space.global.contains(device) ? device : raw;
}

CUmemorytype typeOf(uint32_t kind) {
  return kind == SONDE_MEMORY_PAGEABLE ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
}

}  // namespace

CUresult refuseCapturing(Stream& stream) {
  if (captures().count.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  std::lock_guard lock(captures().mutex);
  if (Capture* capture = stream.capture.load()) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult refuseCapturing(std::span<const Ref<Stream>> streams) {
  if (captures().count.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (const Ref<Stream>& stream : streams)
    if (const CUresult e = refuseCapturing(*stream)) result = e;
  return result;
}

CUresult refuseCaptured(Event& event) {
  if (captures().count.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  std::lock_guard lock(captures().mutex);
  std::lock_guard eventLock(event.captureMutex);
  for (Capture* capture : captures().active)
    if (event.capturedIn && event.capturedIn.get() == capture->graph.get()) {
      capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return CUDA_SUCCESS;
}

// The legacy stream would order itself after blocking streams: with one of
// them capturing, that cannot be done.
CUresult refuseImplicit(Context& context) {
  if (captures().count.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  std::lock_guard lock(captures().mutex);
  for (Capture* capture : captures().active)
    for (auto& stream : capture->streams)
      if (stream->context() == &context && stream->blocking()) {
        capture->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
      }
  return CUDA_SUCCESS;
}

CUresult refuseWhileCapturing(Context&) {
  if (captures().count.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  ThreadState& self = thread();
  if (self.captureMode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  std::lock_guard lock(captures().mutex);
  bool refused = false;
  for (Capture* capture : captures().active) {
    const bool mine = capture->thread == &self && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    const bool anybody =
        self.captureMode == CU_STREAM_CAPTURE_MODE_GLOBAL && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!mine && !anybody) continue;
    capture->invalid = true;
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

void abandonCapture(Stream& stream) {
  if (captures().count.load(std::memory_order_acquire) == 0) return;
  std::lock_guard lock(captures().mutex);
  Capture* capture = stream.capture.load();
  if (!capture) return;
  // Another stream of the capture may go; work of it that nothing waits for is found at the end.
  if (capture->origin.get() == &stream)
    capture->invalid = true;
  else
    capture->ends.erase(&stream);
}

CUresult captureHostFunction(Capture& capture, Stream& stream, CUhostFn fn, void* user) {
  std::lock_guard lock(captures().mutex);
  NodeWork work;
  work.type = CU_GRAPH_NODE_TYPE_HOST;
  work.host.fn = fn;
  work.host.userData = user;
  return append(capture, stream, std::move(work));
}

CUresult captureKernel(Capture& capture, Stream& stream, Command* command) {
  NodeWork work;
  work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  work.context = Ref<Context>(stream.context());
  LaunchPlan& plan = command->launch;
  work.function = plan.function;
  work.shape.grid = plan.grid;
  work.shape.block = plan.block;
  work.shape.cluster = plan.cluster;
  work.shape.dynamicShared = plan.dynamicShared;
  work.shape.cooperative = plan.cooperative;
  work.shape.carveout = plan.carveout;
  work.shape.clusterPolicy = plan.clusterPolicy;
  work.shape.accessPolicy = plan.accessPolicy;
  work.shape.hasPriority = true;
  work.shape.priority = plan.priority;
  work.shape.sms = plan.sms;
  work.params.assign(plan.params.view().begin(), plan.params.view().end());
  stream.giveBack(command);
  std::lock_guard lock(captures().mutex);
  return append(capture, stream, std::move(work));
}

CUresult captureCopy(Capture& capture, Stream& stream, Command* command) {
  const CopyPlan& plan = command->copy;
  NodeWork work;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.context = Ref<Context>(stream.context());
  CUDA_MEMCPY3D& c = work.copy;
  c.WidthInBytes = plan.width;
  c.Height = plan.height;
  c.Depth = plan.depth;
  c.srcMemoryType = typeOf(plan.fromKind);
  c.srcDevice = addressOf(plan.from);
  c.srcHost = reinterpret_cast<const void*>(addressOf(plan.from));
  c.srcPitch = plan.fromPitch;
  c.srcHeight = plan.fromPitch ? plan.fromSlice / plan.fromPitch : 0;
  c.dstMemoryType = typeOf(plan.toKind);
  c.dstDevice = addressOf(plan.to);
  c.dstHost = reinterpret_cast<void*>(addressOf(plan.to));
  c.dstPitch = plan.toPitch;
  c.dstHeight = plan.toPitch ? plan.toSlice / plan.toPitch : 0;
  stream.giveBack(command);
  std::lock_guard lock(captures().mutex);
  return append(capture, stream, std::move(work));
}

CUresult captureSet(Capture& capture, Stream& stream, Command* command) {
  const SetPlan& plan = command->set;
  NodeWork work;
  work.type = CU_GRAPH_NODE_TYPE_MEMSET;
  work.context = Ref<Context>(stream.context());
  work.set.dst = addressOf(plan.to);
  work.set.pitch = plan.pitch;
  work.set.value = plan.value;
  work.set.elementSize = plan.elementBytes;
  work.set.width = plan.width;
  work.set.height = plan.height;
  stream.giveBack(command);
  std::lock_guard lock(captures().mutex);
  return append(capture, stream, std::move(work));
}

CUresult captureMemoryOps(Capture& capture, Stream& stream, std::span<const CUstreamBatchMemOpParams> ops) {
  NodeWork work;
  work.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  work.context = Ref<Context>(stream.context());
  work.memoryOps.assign(ops.begin(), ops.end());
  std::lock_guard lock(captures().mutex);
  return append(capture, stream, std::move(work));
}

CUresult captureAllocation(Capture& capture, Stream& stream, const Pool& pool, size_t bytes, CUdeviceptr* address) {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType =
      pool.kind() == memory::Kind::managed ? CU_MEM_ALLOCATION_TYPE_MANAGED : CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = pool.location;
  params.poolProps.maxSize = pool.maxBytes;
  params.bytesize = bytes;
  NodeWork work;
  if (const CUresult e = allocationWork(params, work)) return e;
  std::lock_guard lock(captures().mutex);
  if (const CUresult e = append(capture, stream, std::move(work))) return e;
  *address = params.dptr;
  return CUDA_SUCCESS;
}

CUresult captureFree(Capture& capture, Stream& stream, CUdeviceptr address) {
  NodeWork work;
  if (const CUresult e = freeWork(address, work)) return e;
  std::lock_guard lock(captures().mutex);
  return append(capture, stream, std::move(work));
}

CUresult captureEventRecord(Capture& capture, Stream& stream, Event& event, unsigned flags) {
  std::lock_guard lock(captures().mutex);
  if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (flags & CU_EVENT_RECORD_EXTERNAL) {
    NodeWork work;
    work.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    work.event = Ref<Event>(&event);
    return append(capture, stream, std::move(work));
  }
  std::lock_guard eventLock(event.captureMutex);
  event.capturedIn = Ref<Object>(capture.graph.get());
  event.capturedNodes.assign(capture.ends[&stream].begin(), capture.ends[&stream].end());
  return CUDA_SUCCESS;
}

CUresult captureWaitEvent(Stream& stream, Event& event, unsigned flags, bool& handled) {
  handled = false;
  if (captures().count.load(std::memory_order_acquire) == 0) return CUDA_SUCCESS;
  std::lock_guard lock(captures().mutex);
  Capture* mine = stream.capture.load();
  Capture* theirs = nullptr;
  std::vector<GraphNode*> nodes;
  {
    std::lock_guard eventLock(event.captureMutex);
    for (Capture* c : captures().active)
      if (event.capturedIn && event.capturedIn.get() == c->graph.get()) theirs = c;
    for (void* n : event.capturedNodes) nodes.push_back(static_cast<GraphNode*>(n));
  }
  if (!mine && !theirs) return CUDA_SUCCESS;
  handled = true;
  if (mine && !theirs) {
    if (flags & CU_EVENT_WAIT_EXTERNAL) {
      NodeWork work;
      work.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
      work.event = Ref<Event>(&event);
      return append(*mine, stream, std::move(work));
    }
    mine->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (theirs->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (mine && mine != theirs) {
    mine->invalid = theirs->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!mine) {
    if (stream.role() == Stream::Role::legacyDefault) {
      theirs->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    join(*theirs, stream, std::move(nodes));
    return CUDA_SUCCESS;
  }
  auto& ends = mine->ends[&stream];
  for (GraphNode* n : nodes)
    if (std::find(ends.begin(), ends.end(), n) == ends.end()) ends.push_back(n);
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------ entry points --

namespace {

CUresult begin(CUstream hStream, CUstreamCaptureMode mode, Ref<Graph> graph, std::vector<GraphNode*> after) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (stream->role() == Stream::Role::legacyDefault) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard lock(captures().mutex);
  if (stream->capture.load()) return CUDA_ERROR_ILLEGAL_STATE;
  auto* capture = new Capture();
  capture->id = ++captures().lastId;
  capture->origin = stream;
  capture->thread = &thread();
  capture->mode = mode;
  capture->ownGraph = !graph;
  if (!graph) {
    graph = make<Graph>();
    HandleTable::publish(graph.get());
    reportGraph(SONDE_RESOURCE_GRAPH_CREATED, graph.get(), nullptr, nullptr);
  }
  capture->graph = std::move(graph);
  join(*capture, *stream, std::move(after));
  captures().active.push_back(capture);
  captures().count.fetch_add(1, std::memory_order_release);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuStreamBeginCapture_v2)(CUstream hStream, CUstreamCaptureMode mode) { return begin(hStream, mode, {}, {}); }

DRIVER_API(cuStreamBeginCaptureToGraph)
(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies, const CUgraphEdgeData*, size_t numDependencies,
 CUstreamCaptureMode mode) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  if (numDependencies && !dependencies) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> after;
  for (size_t i = 0; i < numDependencies; i++) {
    Ref<GraphNode> n;
    if (findNode(dependencies[i], n) || n->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
    after.push_back(n.get());
  }
  return begin(hStream, mode, std::move(graph), std::move(after));
}

DRIVER_API(cuStreamEndCapture)(CUstream hStream, CUgraph* phGraph) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Captures& all = captures();
  std::unique_lock lock(all.mutex);
  Capture* capture = stream->capture.load();
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (!(capture->origin == stream)) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (!phGraph && capture->ownGraph) return CUDA_ERROR_INVALID_VALUE;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != &thread())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  // Everything that was made must lead to what the origin ends with.
  CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  if (!result) {
    const auto& ends = capture->ends[stream.get()];
    for (GraphNode* n : capture->made)
      if (n->dependents.empty() && std::find(ends.begin(), ends.end(), n) == ends.end())
        result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  for (auto& s : capture->streams) s->capture.store(nullptr);
  std::erase(all.active, capture);
  all.count.fetch_sub(1, std::memory_order_release);
  lock.unlock();
  Ref<Graph> graph = std::move(capture->graph);
  const bool own = capture->ownGraph;
  delete capture;
  if (result) {
    if (own) {
      std::lock_guard graphGuard(graphLock());
      graph->dissolve();
      HandleTable::retire(graph.get());
    }
    if (phGraph) *phGraph = nullptr;
    return result;
  }
  if (phGraph) *phGraph = static_cast<CUgraph>(graph->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamIsCapturing)(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!captureStatus) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(captures().mutex);
  Capture* capture = stream->capture.load();
  *captureStatus = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
                   : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

namespace {

CUresult captureInfo(CUstream hStream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                     const CUgraphNode** dependencies, const CUgraphEdgeData** edges, size_t* count) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(captures().mutex);
  Capture* capture = stream->capture.load();
  if (!capture) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  *status = capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (capture->invalid) return CUDA_SUCCESS;
  if (id) *id = capture->id;
  if (graph) *graph = static_cast<CUgraph>(capture->graph->handle());
  const auto& ends = capture->ends[stream.get()];
  capture->handles.clear();
  for (GraphNode* n : ends) capture->handles.push_back(static_cast<CUgraphNode>(n->handle()));
  if (dependencies) *dependencies = capture->handles.data();
  if (edges) *edges = nullptr;
  if (count) *count = capture->handles.size();
  return CUDA_SUCCESS;
}

CUresult updateDependencies(CUstream hStream, CUgraphNode* dependencies, size_t count, unsigned flags) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if ((count && !dependencies) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(captures().mutex);
  Capture* capture = stream->capture.load();
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  std::vector<GraphNode*> nodes;
  for (size_t i = 0; i < count; i++) {
    Ref<GraphNode> n;
    if (findNode(dependencies[i], n) || n->graph != capture->graph.get()) return CUDA_ERROR_INVALID_VALUE;
    nodes.push_back(n.get());
  }
  auto& ends = capture->ends[stream.get()];
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) ends.clear();
  for (GraphNode* n : nodes)
    if (std::find(ends.begin(), ends.end(), n) == ends.end()) ends.push_back(n);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuStreamGetCaptureInfo_v2)
(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out, CUgraph* graph_out,
 const CUgraphNode** dependencies_out, size_t* numDependencies_out) {
  return captureInfo(hStream, captureStatus_out, id_out, graph_out, dependencies_out, nullptr, numDependencies_out);
}
DRIVER_API(cuStreamGetCaptureInfo_v3)
(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out, CUgraph* graph_out,
 const CUgraphNode** dependencies_out, const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out) {
  return captureInfo(hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                     numDependencies_out);
}
DRIVER_API(cuStreamUpdateCaptureDependencies)
(CUstream hStream, CUgraphNode* dependencies, size_t numDependencies, unsigned int flags) {
  return updateDependencies(hStream, dependencies, numDependencies, flags);
}
DRIVER_API(cuStreamUpdateCaptureDependencies_v2)
(CUstream hStream, CUgraphNode* dependencies, const CUgraphEdgeData*, size_t numDependencies, unsigned int flags) {
  return updateDependencies(hStream, dependencies, numDependencies, flags);
}

DRIVER_API(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode* mode) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(thread().captureMode, *mode);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
