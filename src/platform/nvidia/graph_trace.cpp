// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/graph_trace.h"

#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <atomic>
#include <shared_mutex>
#include <unordered_map>

#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_ids.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/lifetimes.h"
#include "platform/nvidia/work.h"

namespace sonde::platform::nvidia {
namespace {

#define CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

constexpr uint32_t kGraphs[] = {CBID(cuGraphCreate),
                                CBID(cuGraphDestroy),
                                CBID(cuGraphClone),
                                CBID(cuGraphDestroyNode),
                                CBID(cuGraphAddKernelNode),
                                CBID(cuGraphAddKernelNode_v2),
                                CBID(cuGraphAddMemcpyNode),
                                CBID(cuGraphAddMemsetNode),
                                CBID(cuGraphAddHostNode),
                                CBID(cuGraphAddChildGraphNode),
                                CBID(cuGraphAddEmptyNode),
                                CBID(cuGraphAddEventRecordNode),
                                CBID(cuGraphAddEventWaitNode),
                                CBID(cuGraphAddExternalSemaphoresSignalNode),
                                CBID(cuGraphAddExternalSemaphoresWaitNode),
                                CBID(cuGraphAddMemAllocNode),
                                CBID(cuGraphAddMemFreeNode),
                                CBID(cuGraphAddBatchMemOpNode),
                                CBID(cuGraphAddNode),
                                CBID(cuGraphAddNode_v2),
                                CBID(cuGraphInstantiate),
                                CBID(cuGraphInstantiate_v2),
                                CBID(cuGraphInstantiateWithFlags),
                                CBID(cuGraphInstantiateWithParams),
                                CBID(cuGraphInstantiateWithParams_ptsz)};
// Captures are counted from the start, and what names a traced graph's node
// must be translated for ever.
constexpr uint32_t kAlways[] = {CBID(cuStreamBeginCapture),
                                CBID(cuStreamBeginCapture_ptsz),
                                CBID(cuStreamBeginCapture_v2),
                                CBID(cuStreamBeginCapture_v2_ptsz),
                                CBID(cuStreamBeginCaptureToGraph),
                                CBID(cuStreamBeginCaptureToGraph_ptsz),
                                CBID(cuStreamEndCapture),
                                CBID(cuStreamEndCapture_ptsz),
                                CBID(cuGraphExecDestroy),
                                CBID(cuGraphExecUpdate),
                                CBID(cuGraphExecUpdate_v2),
                                CBID(cuGraphExecKernelNodeSetParams),
                                CBID(cuGraphExecKernelNodeSetParams_v2),
                                CBID(cuGraphExecMemcpyNodeSetParams),
                                CBID(cuGraphExecMemsetNodeSetParams),
                                CBID(cuGraphExecHostNodeSetParams),
                                CBID(cuGraphExecEventRecordNodeSetEvent),
                                CBID(cuGraphExecEventWaitNodeSetEvent),
                                CBID(cuGraphExecExternalSemaphoresSignalNodeSetParams),
                                CBID(cuGraphExecExternalSemaphoresWaitNodeSetParams),
                                CBID(cuGraphExecBatchMemOpNodeSetParams),
                                CBID(cuGraphExecNodeSetParams),
                                CBID(cuGraphNodeSetEnabled),
                                CBID(cuGraphNodeGetEnabled)};

struct Traced {
  std::shared_mutex mutex;
  std::unordered_map<CUgraphExec, std::shared_ptr<TracedGraph>> graphs;
  std::atomic<size_t> count{0};
};
Traced& traced() {
  static Traced& t = *new Traced;
  return t;
}

std::atomic<int64_t> captures{0};

template <class Params>
const Params& as(const void* params) {
  return *static_cast<const Params*>(params);
}

std::shared_ptr<TracedGraph> find(CUgraphExec exec) {
  Traced& t = traced();
  if (t.count.load(std::memory_order_acquire) == 0) return nullptr;
  std::shared_lock lock(t.mutex);
  const auto at = t.graphs.find(exec);
  return at == t.graphs.end() ? nullptr : at->second;
}

bool wantsNodes() {
  constexpr uint64_t kWork = SONDE_INTEREST_KERNEL | SONDE_INTEREST_MEMCPY | SONDE_INTEREST_MEMSET;
  return (interest() & kWork) != 0 && (interest() & SONDE_INTEREST_GRAPH) == 0;
}

template <class F>
F original(uint32_t cbid) {
  return reinterpret_cast<F>(driverOriginal[cbid]);
}

// The call again, with another graph in the place of its own.
int32_t instantiateWith(uint32_t cbid, const void* params, CUgraph graph) {
  switch (cbid) {
    case CBID(cuGraphInstantiate):
    case CBID(cuGraphInstantiate_v2): {
      const auto& p = as<cuGraphInstantiate_v2_params>(params);
      return original<CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t)>(cbid)(
          p.phGraphExec, graph, p.phErrorNode, p.logBuffer, p.bufferSize);
    }
    case CBID(cuGraphInstantiateWithFlags): {
      const auto& p = as<cuGraphInstantiateWithFlags_params>(params);
      return original<CUresult (*)(CUgraphExec*, CUgraph, unsigned long long)>(cbid)(p.phGraphExec, graph, p.flags);
    }
    default: {
      const auto& p = as<cuGraphInstantiateWithParams_params>(params);
      return original<CUresult (*)(CUgraphExec*, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS*)>(cbid)(p.phGraphExec, graph,
                                                                                                 p.instantiateParams);
    }
  }
}

bool forTheDevice(uint32_t cbid, const void* params) {
  unsigned long long flags = 0;
  if (cbid == CBID(cuGraphInstantiateWithFlags)) flags = as<cuGraphInstantiateWithFlags_params>(params).flags;
  if (cbid == CBID(cuGraphInstantiateWithParams) || cbid == CBID(cuGraphInstantiateWithParams_ptsz)) {
    const auto* p = as<cuGraphInstantiateWithParams_params>(params).instantiateParams;
    if (p != nullptr) flags = p->flags;
  }
  return (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
}

void drop(CUgraph copy) {
  if (copy == nullptr) return;
  forgetGraph(copy);
  if (own.cuGraphDestroy) own.cuGraphDestroy(copy);
}

int32_t instantiate(uint32_t cbid, const void* params, FunctionRef<int32_t()> run) {
  const auto& p = as<cuGraphInstantiateWithFlags_params>(params);  // all begin so
  Context* context = currentContext();
  const bool nodes = wantsNodes() && context != nullptr && !forTheDevice(cbid, params);
  const bool told = (interest() & SONDE_INTEREST_RESOURCE) != 0;
  CUgraph copy = nullptr;
  if ((nodes || told) && p.hGraph != nullptr && p.phGraphExec != nullptr && own.cuGraphClone) {
    nodesOf(p.hGraph);  // numbered
    if (own.cuGraphClone(&copy, p.hGraph) != CUDA_SUCCESS) {
      copy = nullptr;
      if (nodes) debug("no records of a graph's nodes: the driver does not copy it");
    }
  }
  if (copy == nullptr) {
    const int32_t result = run();
    if (result == CUDA_SUCCESS && p.phGraphExec != nullptr)
      tellGraphExec(SONDE_RESOURCE_GRAPH_EXEC_CREATED, *p.phGraphExec, p.hGraph);
    return result;
  }
  const uint32_t id = graphIdOf(copy);
  tellClone(copy, p.hGraph);
  auto graph = std::make_shared<TracedGraph>();
  graph->context = context;
  graph->id = id;
  auto events = std::make_shared<EventSet>();
  int32_t result = CUDA_ERROR_UNKNOWN;
  bool isTraced = false;
  if (nodes) {
    std::string why;
    graph->current = events;
    graph->sets.push_back(events);
    if (instrumentGraph(copy, *graph, *events, &why)) {
      result = instantiateWith(cbid, params, copy);
      isTraced = result == CUDA_SUCCESS;
      if (!isTraced) why = "the driver does not instantiate its copy";
    }
    if (!isTraced) debug("no records of a graph's nodes: %s", why.c_str());
  }
  if (isTraced) {
    graph->copy = copy;
    Traced& t = traced();
    std::unique_lock lock(t.mutex);
    t.graphs[*p.phGraphExec] = graph;
    t.count.store(t.graphs.size(), std::memory_order_release);
  } else {
    drop(copy);
    result = run();  // with the application's own graph: its own errors
  }
  if (result == CUDA_SUCCESS) {
    nameGraphExec(*p.phGraphExec, id);
    tellGraphExec(SONDE_RESOURCE_GRAPH_EXEC_CREATED, *p.phGraphExec, p.hGraph);
  }
  return result;
}

int32_t destroyExec(CUgraphExec exec, FunctionRef<int32_t()> run) {
  tellGraphExec(SONDE_RESOURCE_GRAPH_EXEC_DESTROY_STARTING, exec, nullptr);
  const int32_t result = run();
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<TracedGraph> graph;
  {
    Traced& t = traced();
    std::unique_lock lock(t.mutex);
    if (const auto at = t.graphs.find(exec); at != t.graphs.end()) {
      graph = at->second;
      t.graphs.erase(at);
      t.count.store(t.graphs.size(), std::memory_order_release);
    }
  }
  forgetGraphExec(exec);
  return result;
}

void setEvents(CUgraphExec exec, TracedGraph& graph, const EventSet& events) {
  for (size_t i = 0; i < graph.eventNodes.size(); ++i)
    own.cuGraphExecEventRecordNodeSetEvent(exec, graph.eventNodes[i], events.events[i]);
}

// The application brings a new graph of the same shape: its copy gets event
// nodes in the same way.
int32_t updateExec(uint32_t cbid, const void* params, FunctionRef<int32_t()> run) {
  const auto& p = as<cuGraphExecUpdate_v2_params>(params);  // both begin so
  const std::shared_ptr<TracedGraph> graph = find(p.hGraphExec);
  if (graph == nullptr || p.hGraph == nullptr) return run();
  CUgraph copy = nullptr;
  if (own.cuGraphClone(&copy, p.hGraph) != CUDA_SUCCESS) return run();
  std::lock_guard lock(graph->mutex);
  TracedGraph other;
  other.context = graph->context;
  EventSet events = *graph->current;
  const size_t known = events.events.size();
  std::string why;
  int32_t result;
  if (!instrumentGraph(copy, other, events, &why) || other.eventNodes.size() != known ||
      other.nodes.size() != graph->nodes.size()) {
    result = run();  // the driver says that the shapes differ
  } else if (cbid == CBID(cuGraphExecUpdate_v2)) {
    result = original<CUresult (*)(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)>(cbid)(p.hGraphExec, copy,
                                                                                              p.resultInfo);
    // Nodes of the copy mean nothing to the application.
    if (result != CUDA_SUCCESS && p.resultInfo != nullptr) {
      auto mine = [&](CUgraphNode& node) {
        for (CUgraphNode candidate : nodesOf(p.hGraph)) {
          CUgraphNode twin = nullptr;
          if (own.cuGraphNodeFindInClone(&twin, candidate, copy) == CUDA_SUCCESS && twin == node) {
            node = candidate;
            return;
          }
        }
        node = nullptr;
      };
      mine(p.resultInfo->errorNode);
      mine(p.resultInfo->errorFromNode);
    }
  } else {
    const auto& v1 = as<cuGraphExecUpdate_params>(params);
    result = original<CUresult (*)(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*)>(cbid)(
        v1.hGraphExec, copy, v1.hErrorNode_out, v1.updateResult_out);
    if (result != CUDA_SUCCESS && v1.hErrorNode_out != nullptr) *v1.hErrorNode_out = nullptr;
  }
  for (size_t i = known; i < events.events.size(); ++i) graph->context->giveEvent(events.events[i]);
  if (result == CUDA_SUCCESS) {
    for (size_t i = 0; i < graph->nodes.size(); ++i) {
      TracedNode& node = graph->nodes[i];
      node.function = other.nodes[i].function;
      node.work = other.nodes[i].work;
    }
    setEvents(p.hGraphExec, *graph, *graph->current);
  }
  drop(copy);
  return result;
}

// One node of an executable graph is changed or asked about: exec, node, …
int32_t nodeCall(uint32_t cbid, const void* params, FunctionRef<int32_t()> run) {
  const auto& head = as<cuGraphNodeSetEnabled_params>(params);
  const std::shared_ptr<TracedGraph> graph = find(head.hGraphExec);
  CUgraphNode node = nullptr;
  if (graph == nullptr || !own.cuGraphNodeFindInClone ||
      own.cuGraphNodeFindInClone(&node, head.hNode, graph->copy) != CUDA_SUCCESS)
    return run();
  const CUgraphExec exec = head.hGraphExec;
  std::lock_guard lock(graph->mutex);
  TracedNode* known = nullptr;
  for (TracedNode& n : graph->nodes)
    if (n.handle == node) known = &n;
  int32_t result;
  TracedNode changed;
  bool isChanged = false;
  switch (cbid) {
    case CBID(cuGraphNodeSetEnabled):
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, unsigned)>(cbid)(exec, node, head.isEnabled);
      if (result == CUDA_SUCCESS && known != nullptr) known->enabled = head.isEnabled != 0;
      return result;
    case CBID(cuGraphNodeGetEnabled):
      return original<CUresult (*)(CUgraphExec, CUgraphNode, unsigned*)>(cbid)(
          exec, node, as<cuGraphNodeGetEnabled_params>(params).isEnabled);
    case CBID(cuGraphExecMemcpyNodeSetParams): {
      const auto& p = as<cuGraphExecMemcpyNodeSetParams_params>(params);
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D*, CUcontext)>(cbid)(
          exec, node, p.copyParams, p.ctx);
      if ((isChanged = result == CUDA_SUCCESS)) describeCopyNode(*p.copyParams, *graph->context, changed);
      break;
    }
    case CBID(cuGraphExecMemsetNodeSetParams): {
      const auto& p = as<cuGraphExecMemsetNodeSetParams_params>(params);
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, const CUDA_MEMSET_NODE_PARAMS*, CUcontext)>(cbid)(
          exec, node, p.memsetParams, p.ctx);
      if ((isChanged = result == CUDA_SUCCESS)) describeSetNode(*p.memsetParams, *graph->context, changed);
      break;
    }
    default: {  // one pointer or handle behind the node
      const auto& p = as<cuGraphExecKernelNodeSetParams_v2_params>(params);
      result = original<CUresult (*)(CUgraphExec, CUgraphNode, const void*)>(cbid)(exec, node, p.nodeParams);
      if (result != CUDA_SUCCESS) break;
      if (cbid == CBID(cuGraphExecKernelNodeSetParams_v2)) {
        describeKernelNode(*p.nodeParams, changed);
        isChanged = true;
      } else if (cbid == CBID(cuGraphExecKernelNodeSetParams)) {
        const auto& v1 = *as<cuGraphExecKernelNodeSetParams_params>(params).nodeParams;
        CUDA_KERNEL_NODE_PARAMS v2{};
        v2.func = v1.func;
        v2.gridDimX = v1.gridDimX, v2.gridDimY = v1.gridDimY, v2.gridDimZ = v1.gridDimZ;
        v2.blockDimX = v1.blockDimX, v2.blockDimY = v1.blockDimY, v2.blockDimZ = v1.blockDimZ;
        v2.sharedMemBytes = v1.sharedMemBytes;
        describeKernelNode(v2, changed);
        isChanged = true;
      } else if (cbid == CBID(cuGraphExecNodeSetParams)) {
        const CUgraphNodeParams& n = *as<cuGraphExecNodeSetParams_params>(params).nodeParams;
        isChanged = true;
        if (n.type == CU_GRAPH_NODE_TYPE_KERNEL) {
          CUDA_KERNEL_NODE_PARAMS v2{};
          v2.func = n.kernel.func, v2.kern = n.kernel.kern;
          v2.gridDimX = n.kernel.gridDimX, v2.gridDimY = n.kernel.gridDimY, v2.gridDimZ = n.kernel.gridDimZ;
          v2.blockDimX = n.kernel.blockDimX, v2.blockDimY = n.kernel.blockDimY, v2.blockDimZ = n.kernel.blockDimZ;
          v2.sharedMemBytes = n.kernel.sharedMemBytes;
          describeKernelNode(v2, changed);
        } else if (n.type == CU_GRAPH_NODE_TYPE_MEMCPY) {
          describeCopyNode(n.memcpy.copyParams, *graph->context, changed);
        } else {
          isChanged = false;
        }
      }
      break;
    }
  }
  if (isChanged && known != nullptr) {
    const int32_t launchType = static_cast<int32_t>(known->work.launchType);
    known->function = changed.function;
    known->work = changed.work;
    known->work.launchType = static_cast<uint32_t>(launchType);  // not among the parameters
  }
  return result;
}

}  // namespace

std::span<const uint32_t> graphCallbacks() { return kGraphs; }
std::span<const uint32_t> tracedGraphCallbacks() { return kAlways; }
bool tracedGraphsExist() { return traced().count.load() != 0; }
bool captureUnderWay() { return captures.load(std::memory_order_relaxed) > 0; }

TracedGraph::~TracedGraph() {
  drop(copy);
  if (context == nullptr || context->dead.load()) return;
  for (const auto& set : sets) context->giveEvents(set->events);
}

void tellClone(CUgraph copy, CUgraph original) {
  tellGraph(SONDE_RESOURCE_GRAPH_CLONED, copy, original);
  // In the order of the original, so that the numbers agree.
  for (CUgraphNode node : nodesOf(original)) {
    CUgraphNode twin = nullptr;
    if (!own.cuGraphNodeFindInClone || own.cuGraphNodeFindInClone(&twin, node, copy) != CUDA_SUCCESS) continue;
    noteGraphNode(copy, twin);
    tellGraphNode(SONDE_RESOURCE_GRAPH_NODE_CLONED, copy, twin, node);
  }
}

int32_t graphCall(uint32_t cbid, const void* params, FunctionRef<int32_t()> run) {
  switch (cbid) {
    case CBID(cuStreamBeginCapture):
    case CBID(cuStreamBeginCapture_ptsz):
    case CBID(cuStreamBeginCapture_v2):
    case CBID(cuStreamBeginCapture_v2_ptsz):
    case CBID(cuStreamBeginCaptureToGraph):
    case CBID(cuStreamBeginCaptureToGraph_ptsz): {
      captures.fetch_add(1);
      const int32_t result = run();
      if (result != CUDA_SUCCESS) captures.fetch_sub(1);
      return result;
    }
    case CBID(cuStreamEndCapture):
    case CBID(cuStreamEndCapture_ptsz): {
      const int32_t result = run();
      // These end it, too.
      if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
          result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
        if (captures.fetch_sub(1) <= 0) captures.fetch_add(1);  // begun before anybody looked
      }
      CUgraph* graph = as<cuStreamEndCapture_params>(params).phGraph;
      if (result == CUDA_SUCCESS && graph != nullptr && *graph != nullptr &&
          (interest() & SONDE_INTEREST_RESOURCE) != 0) {
        tellGraph(SONDE_RESOURCE_GRAPH_CREATED, *graph, nullptr);
        for (CUgraphNode node : nodesOf(*graph))
          tellGraphNode(SONDE_RESOURCE_GRAPH_NODE_CREATED, *graph, node, nullptr);
      }
      return result;
    }
    case CBID(cuGraphCreate): {
      const int32_t result = run();
      CUgraph* graph = as<cuGraphCreate_params>(params).phGraph;
      if (result == CUDA_SUCCESS && graph != nullptr) tellGraph(SONDE_RESOURCE_GRAPH_CREATED, *graph, nullptr);
      return result;
    }
    case CBID(cuGraphDestroy): {
      const CUgraph graph = as<cuGraphDestroy_params>(params).hGraph;
      if (graph != nullptr) tellGraph(SONDE_RESOURCE_GRAPH_DESTROY_STARTING, graph, nullptr);
      const int32_t result = run();
      if (result == CUDA_SUCCESS) forgetGraph(graph);
      return result;
    }
    case CBID(cuGraphClone): {
      const auto& p = as<cuGraphClone_params>(params);
      const int32_t result = run();
      if (result == CUDA_SUCCESS && (interest() & SONDE_INTEREST_RESOURCE) != 0)
        tellClone(*p.phGraphClone, p.originalGraph);
      return result;
    }
    case CBID(cuGraphDestroyNode): {
      const CUgraphNode node = as<cuGraphDestroyNode_params>(params).hNode;
      if (node != nullptr) tellGraphNode(SONDE_RESOURCE_GRAPH_NODE_DESTROY_STARTING, nullptr, node, nullptr);
      const int32_t result = run();
      if (result == CUDA_SUCCESS) forgetGraphNode(node);
      return result;
    }
    case CBID(cuGraphInstantiate):
    case CBID(cuGraphInstantiate_v2):
    case CBID(cuGraphInstantiateWithFlags):
    case CBID(cuGraphInstantiateWithParams):
    case CBID(cuGraphInstantiateWithParams_ptsz): return instantiate(cbid, params, run);
    case CBID(cuGraphExecDestroy): return destroyExec(as<cuGraphExecDestroy_params>(params).hGraphExec, run);
    case CBID(cuGraphExecUpdate):
    case CBID(cuGraphExecUpdate_v2): return updateExec(cbid, params, run);
    default: break;
  }
  for (const uint32_t always : kAlways)
    if (always == cbid) return nodeCall(cbid, params, run);
  // cuGraphAdd…Node: node, graph, …
  const auto& p = as<cuGraphAddEmptyNode_params>(params);
  const int32_t result = run();
  if (result == CUDA_SUCCESS && p.phGraphNode != nullptr) {
    noteGraphNode(p.hGraph, *p.phGraphNode);
    tellGraphNode(SONDE_RESOURCE_GRAPH_NODE_CREATED, p.hGraph, *p.phGraphNode, nullptr);
  }
  return result;
}

std::shared_ptr<TracedGraph> prepareGraphLaunch(CUgraphExec exec, std::shared_ptr<EventSet>* events) {
  std::shared_ptr<TracedGraph> graph = find(exec);
  if (graph == nullptr) return nullptr;
  std::lock_guard lock(graph->mutex);
  if (graph->current->busy) {  // an earlier launch still needs what it recorded
    std::shared_ptr<EventSet> next;
    for (const auto& set : graph->sets)
      if (!set->busy) next = set;
    if (next == nullptr) {
      next = std::make_shared<EventSet>();
      while (next->events.size() < graph->eventNodes.size()) {
        const CUevent event = graph->context->takeEvent();
        if (event == nullptr) {
          graph->context->giveEvents(next->events);
          return nullptr;
        }
        next->events.push_back(event);
      }
      graph->sets.push_back(next);
    }
    setEvents(exec, *graph, *next);
    graph->current = next;
  }
  *events = graph->current;
  return graph;
}

GraphLaunch* noteGraphLaunch(std::shared_ptr<TracedGraph> graph, std::shared_ptr<EventSet> events,
                             const SondeWork& like) {
  if (!wantsNodes()) return nullptr;
  auto* launch = new GraphLaunch;
  std::lock_guard lock(graph->mutex);
  ListenerUse use;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const TracedNode& node = graph->nodes[i];
    if (!node.enabled) continue;
    SondeWork work = node.work;
    work.size = sizeof work;
    work.correlationId = like.correlationId;
    work.deviceId = like.deviceId;
    work.contextUid = like.contextUid;
    work.context = like.context;
    work.streamId = like.streamId;
    work.graphId = graph->id;
    work.graphNodeId = node.id;
    if (work.kind == SONDE_WORK_KERNEL) {
      completeKernel(work, kernelInfo(node.function));
      work.gridId = nextGridId();
    }
    if ((interest() & interestFor(work.kind)) == 0) continue;
    if (use && use->workEnqueued) use->workEnqueued(use->self, &work);
    launch->works.push_back(work);
    launch->nodes.push_back(static_cast<uint32_t>(i));
  }
  events->busy = true;
  launch->graph = std::move(graph);
  launch->events = std::move(events);
  return launch;
}

void finishGraphLaunch(GraphLaunch* launch) {
  {
    std::lock_guard lock(launch->graph->mutex);
    launch->events->busy = false;
  }
  delete launch;
}

}  // namespace sonde::platform::nvidia
