// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/graph_trace.h"

#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <atomic>
#include <shared_mutex>
#include <unordered_map>

#include "platform/nvidia/calibration.h"
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
                                CBID(cuGraphExecChildGraphNodeSetParams),
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

}  // namespace

std::shared_ptr<TracedGraph> tracedGraph(CUgraphExec exec) {
  Traced& t = traced();
  if (t.count.load(std::memory_order_acquire) == 0) return nullptr;
  std::shared_lock lock(t.mutex);
  const auto at = t.graphs.find(exec);
  return at == t.graphs.end() ? nullptr : at->second;
}

namespace {

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

}  // namespace

void dropCopy(CUgraph copy) {
  if (copy == nullptr) return;
  forgetGraph(copy);
  if (own.cuGraphDestroy) own.cuGraphDestroy(copy);
}

namespace {

void remember(CUgraphExec exec, std::shared_ptr<TracedGraph> graph) {
  Traced& t = traced();
  std::unique_lock lock(t.mutex);
  t.graphs[exec] = std::move(graph);
  t.count.store(t.graphs.size(), std::memory_order_release);
}

// With stamps in the application's graph for as long as this takes.
int32_t instantiateStamped(CUgraph original, TracedGraph& graph, FunctionRef<int32_t()> run, std::string* why) {
  int32_t result = CUDA_ERROR_UNKNOWN;
  GraphChanges changes;
  stampDelays(*graph.context);  // measured before there is work
  if ((graph.ring = takeRing(*graph.context)) == nullptr) {
    *why = "there is no memory for its stamps";
  } else if (stampGraph(original, graph, changes, why)) {
    result = run();
    if (result != CUDA_SUCCESS) *why = "the driver does not instantiate it with stamps";
  }
  changes.undo();
  if (result != CUDA_SUCCESS) graph.ring = nullptr;
  return result;
}

int32_t instantiate(uint32_t cbid, const void* params, FunctionRef<int32_t()> run) {
  const auto& p = as<cuGraphInstantiateWithFlags_params>(params);  // all begin so
  Context* context = currentContext();
  const bool usable = p.hGraph != nullptr && p.phGraphExec != nullptr;
  const bool nodes = usable && wantsNodes() && context != nullptr;
  const bool told = (interest() & SONDE_INTEREST_RESOURCE) != 0;
  CUgraph copy = nullptr;
  std::string why;
  if ((nodes || told) && usable && own.cuGraphClone) {
    nodesOf(p.hGraph);  // numbered
    if (own.cuGraphClone(&copy, p.hGraph) != CUDA_SUCCESS) {
      copy = nullptr;
      why = "the driver does not copy it";
    }
  }
  uint32_t id = 0;
  if (copy != nullptr) {
    id = graphIdOf(copy);
    tellClone(copy, p.hGraph);
  }
  auto graph = std::make_shared<TracedGraph>();
  graph->context = context;
  auto events = std::make_shared<EventSet>();
  int32_t result = CUDA_ERROR_UNKNOWN;
  if (forTheDevice(cbid, params)) why = "the device launches it";
  if (nodes && why.empty() && instrumentGraph(copy, *graph, *events, &why)) {
    result = instantiateWith(cbid, params, copy);
    if (result == CUDA_SUCCESS) {
      graph->copy = copy;
    } else {
      why = "the driver does not instantiate its copy";
    }
  }
  if (graph->copy == nullptr) {
    if (context != nullptr) context->giveEvents(events->events);
    dropCopy(copy);
    const bool stamped = nodes && !forTheDevice(cbid, params) && hasConditions(p.hGraph);
    if (stamped) {
      graph = std::make_shared<TracedGraph>();
      graph->context = context;
      events = std::make_shared<EventSet>();
      result = instantiateStamped(p.hGraph, *graph, run, &why);
    }
    if (!stamped || result != CUDA_SUCCESS) result = run();  // with the application's own graph: its own errors
    if (nodes && result == CUDA_SUCCESS && graph->ring == nullptr) {
      debug("no times of a graph's nodes: %s", why.c_str());
      graph = std::make_shared<TracedGraph>();
      graph->context = context;
      events = std::make_shared<EventSet>();
      describeGraph(p.hGraph, *graph);
    }
  }
  if (result != CUDA_SUCCESS || !usable) return result;
  if (id != 0) nameGraphExec(*p.phGraphExec, id);
  if (nodes && !graph->nodes.empty()) {
    graph->id = id != 0 ? id : graphExecIdOf(*p.phGraphExec);
    graph->current = events;
    graph->sets.push_back(events);
    remember(*p.phGraphExec, std::move(graph));
  }
  tellGraphExec(SONDE_RESOURCE_GRAPH_EXEC_CREATED, *p.phGraphExec, p.hGraph);
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

}  // namespace

std::span<const uint32_t> graphCallbacks() { return kGraphs; }
std::span<const uint32_t> tracedGraphCallbacks() { return kAlways; }
bool tracedGraphsExist() { return traced().count.load() != 0; }
bool captureUnderWay() { return captures.load(std::memory_order_relaxed) > 0; }

TracedGraph::~TracedGraph() {
  dropCopy(copy);
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
    case CBID(cuGraphExecUpdate_v2): return updateGraphExec(cbid, params, run);
    default: break;
  }
  for (const uint32_t always : kAlways)
    if (always == cbid) return graphNodeCall(cbid, params, run);
  // cuGraphAdd…Node: node, graph, …
  const auto& p = as<cuGraphAddEmptyNode_params>(params);
  const int32_t result = run();
  if (result == CUDA_SUCCESS && p.phGraphNode != nullptr) {
    noteGraphNode(p.hGraph, *p.phGraphNode);
    const CUgraphNodeParams* made = cbid == CBID(cuGraphAddNode)      ? as<cuGraphAddNode_params>(params).nodeParams
                                    : cbid == CBID(cuGraphAddNode_v2) ? as<cuGraphAddNode_v2_params>(params).nodeParams
                                                                      : nullptr;
    if (made != nullptr && made->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
      noteBodies(p.hGraph, *p.phGraphNode, made->conditional.phGraph_out, made->conditional.size);
    tellGraphNode(SONDE_RESOURCE_GRAPH_NODE_CREATED, p.hGraph, *p.phGraphNode, nullptr);
  }
  return result;
}

std::shared_ptr<TracedGraph> prepareGraphLaunch(CUgraphExec exec, std::shared_ptr<EventSet>* events) {
  std::shared_ptr<TracedGraph> graph = tracedGraph(exec);
  if (graph == nullptr) return nullptr;
  std::lock_guard lock(graph->mutex);
  if (graph->current->busy && graph->copy != nullptr) {  // an earlier launch still needs what it recorded
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

SondeWork nodeWork(const TracedGraph& graph, const TracedNode& node, const SondeWork& like) {
  SondeWork work = node.work;
  work.size = sizeof work;
  work.correlationId = like.correlationId;
  work.deviceId = like.deviceId;
  work.contextUid = like.contextUid;
  work.context = like.context;
  work.streamId = node.lane == 0 ? like.streamId : graph.lanes[node.lane];
  work.graphId = graph.id;
  work.graphNodeId = node.id;
  if (work.kind == SONDE_WORK_KERNEL) {
    completeKernel(work, kernelInfo(node.function));
    work.gridId = nextGridId();
  }
  return work;
}

GraphLaunch* noteGraphLaunch(std::shared_ptr<TracedGraph> graph, std::shared_ptr<EventSet> events,
                             const SondeWork& like) {
  if (!wantsNodes()) return nullptr;
  auto* launch = new GraphLaunch;
  std::lock_guard lock(graph->mutex);
  ListenerUse use;
  launch->like = like;
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    const TracedNode& node = graph->nodes[i];
    if (!node.enabled || node.inBody) continue;
    SondeWork work = nodeWork(*graph, node, like);
    if ((interest() & interestFor(work.kind)) == 0) continue;
    if (use && use->workEnqueued) use->workEnqueued(use->self, &work);
    launch->like.listenerWord3 = work.listenerWord3;
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
