// SPDX-License-Identifier: Apache-2.0
//
// Graphs and their nodes.
#include <algorithm>
#include <cstring>

#include "platform/tools_api.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_nodes.h"
#include "softgpu/driver/message.h"

namespace sonde::softgpu::driver {

CUresult findGraph(CUgraph handle, Ref<Graph>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Graph>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult findNode(CUgraphNode handle, Ref<GraphNode>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<GraphNode>(handle);
  return out && out->graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult kernelWork(const CUDA_KERNEL_NODE_PARAMS& p, NodeWork& work) {
  Ref<Function> function;
  CUfunction f = p.func ? p.func : reinterpret_cast<CUfunction>(p.kern);
  if (const CUresult e = findFunction(f, function))
    return e == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : e;
  LaunchShape shape = work.shape;
  shape.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  shape.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  shape.dynamicShared = p.sharedMemBytes;
  if (const CUresult e = prepareLaunch(*function, shape)) return e;
  ParamBuffer packed;
  if (const CUresult e = packParams(function->info(), p.kernelParams, p.extra, packed)) return e;
  work.type = CU_GRAPH_NODE_TYPE_KERNEL;
  work.context = Ref<Context>(function->module()->context());
  work.function = std::move(function);
  work.shape = shape;
  work.params.assign(packed.view().begin(), packed.view().end());
  return CUDA_SUCCESS;
}

CUresult copyWork(const CUDA_MEMCPY3D* p, CUcontext ctx, NodeWork& work) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  Ref<Context> context;
  if (ctx)
    context = HandleTable::find<Context>(ctx);
  else if (work.context)
    context = work.context;
  else
    currentContext(context);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  CopyPlan plan;
  if (const CUresult e = planBox(*p, *context, plan)) return e;
  work.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  work.context = std::move(context);
  work.copy = *p;
  return CUDA_SUCCESS;
}

CUresult setWork(const CUDA_MEMSET_NODE_PARAMS* p, CUcontext ctx, NodeWork& work) {
  if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)) return CUDA_ERROR_INVALID_VALUE;
  Ref<Context> context;
  if (ctx)
    context = HandleTable::find<Context>(ctx);
  else if (work.context)
    context = work.context;
  else
    currentContext(context);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  SetPlan plan;
  if (const CUresult e = planFill(p->dst, p->pitch, p->elementSize, p->value, p->width, p->height, *context, plan))
    return e;
  work.type = CU_GRAPH_NODE_TYPE_MEMSET;
  work.context = std::move(context);
  work.set = *p;
  return CUDA_SUCCESS;
}

CUresult eventWork(CUevent event, CUgraphNodeType type, NodeWork& work) {
  Ref<Event> e = HandleTable::find<Event>(event);
  if (!e) return CUDA_ERROR_INVALID_VALUE;
  work.type = type;
  work.event = std::move(e);
  return CUDA_SUCCESS;
}

namespace {

CUresult refuseCopy() {
  say("a graph that allocates or frees memory cannot be copied; as a child it must be moved "
      "(CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

CUresult childWork(CUgraph handle, NodeWork& work) {
  Ref<Graph> child;
  if (const CUresult e = findGraph(handle, child)) return e;
  work.type = CU_GRAPH_NODE_TYPE_GRAPH;
  {
    std::lock_guard lock(graphLock());
    if (child->hasMemoryNodes()) return refuseCopy();
    work.child = child->clone();
  }
  if (!work.child) return CUDA_ERROR_OUT_OF_MEMORY;
  work.child->ownedByNode = true;
  return CUDA_SUCCESS;
}

CUresult movedChildWork(CUgraph handle, CUgraph parent, NodeWork& work) {
  Ref<Graph> child;
  if (const CUresult e = findGraph(handle, child)) return e;
  if (child->ownedByNode || handle == parent) return CUDA_ERROR_INVALID_VALUE;
  work.type = CU_GRAPH_NODE_TYPE_GRAPH;
  work.child = std::move(child);
  return CUDA_SUCCESS;
}

bool ordinary(const CUgraphEdgeData& edge) { return edge.type == 0 && edge.from_port == 0 && edge.to_port == 0; }

CUresult checkEdge(const CUgraphEdgeData& edge, CUgraphNodeType from, CUgraphNodeType to) {
  constexpr unsigned char none[sizeof edge.reserved] = {};
  if (std::memcmp(edge.reserved, none, sizeof none) != 0 || edge.to_port != 0) return CUDA_ERROR_INVALID_VALUE;
  if (ordinary(edge)) return CUDA_SUCCESS;
  const bool ports = edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
                     edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
  const bool kernels = from == CU_GRAPH_NODE_TYPE_KERNEL && to == CU_GRAPH_NODE_TYPE_KERNEL;
  return edge.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && ports && kernels ? CUDA_SUCCESS
                                                                                : CUDA_ERROR_INVALID_VALUE;
}

CUresult addNode(CUgraphNode* out, CUgraph hGraph, const CUgraphNode* dependencies, size_t count, NodeWork work,
                 const CUgraphEdgeData* edges) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  if (!out || (count && !dependencies)) return CUDA_ERROR_INVALID_VALUE;
  Ref<GraphNode> node;
  {
    std::lock_guard lock(graphLock());
    std::vector<GraphNode*> before;
    for (size_t i = 0; i < count; i++) {
      Ref<GraphNode> d = HandleTable::find<GraphNode>(dependencies[i]);
      if (!d || d->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
      if (std::find(before.begin(), before.end(), d.get()) != before.end()) return CUDA_ERROR_INVALID_VALUE;
      if (edges)
        if (const CUresult e = checkEdge(edges[i], d->work.type, work.type)) return e;
      before.push_back(d.get());
    }
    if (const CUresult e = claimMemory(*graph, work)) return e;
    node = graph->add(std::move(work), before);
    if (!node) return CUDA_ERROR_OUT_OF_MEMORY;
    if (node->work.child) node->work.child->ownedByNode = true;
    for (size_t i = 0; edges && i < count; i++)
      if (!ordinary(edges[i])) node->edges[before[i]] = edges[i];
  }
  reportGraph(SONDE_RESOURCE_GRAPH_NODE_CREATED, graph.get(), node.get(), nullptr);
  *out = static_cast<CUgraphNode>(node->handle());
  return CUDA_SUCCESS;
}

namespace {

CUresult nodeOf(CUgraphNode handle, CUgraphNodeType type, Ref<GraphNode>& node) {
  if (const CUresult e = findNode(handle, node)) return e;
  return node->work.type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUgraphNode handleOf(const Ref<GraphNode>& n) { return static_cast<CUgraphNode>(n->handle()); }

}  // namespace

DRIVER_API(cuGraphCreate)(CUgraph* phGraph, unsigned int flags) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!phGraph || flags) return CUDA_ERROR_INVALID_VALUE;
  auto graph = make<Graph>();
  if (!HandleTable::publish(graph.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  reportGraph(SONDE_RESOURCE_GRAPH_CREATED, graph.get(), nullptr, nullptr);
  *phGraph = static_cast<CUgraph>(graph->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphDestroy)(CUgraph hGraph) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  if (graph->ownedByNode) return CUDA_ERROR_INVALID_VALUE;
  reportGraph(SONDE_RESOURCE_GRAPH_DESTROY_STARTING, graph.get(), nullptr, nullptr);
  std::lock_guard lock(graphLock());
  graph->dissolve();
  return HandleTable::retire(graph.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuGraphClone)(CUgraph* phGraphClone, CUgraph originalGraph) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(originalGraph, graph)) return e;
  if (!phGraphClone) return CUDA_ERROR_INVALID_VALUE;
  Ref<Graph> copy;
  {
    std::lock_guard lock(graphLock());
    if (graph->hasMemoryNodes()) return refuseCopy();
    copy = graph->clone();
  }
  if (!copy) return CUDA_ERROR_OUT_OF_MEMORY;
  reportGraph(SONDE_RESOURCE_GRAPH_CLONED, copy.get(), nullptr, nullptr);
  *phGraphClone = static_cast<CUgraph>(copy->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphNodeFindInClone)(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hClonedGraph, graph)) return e;
  if (!phNode) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graphLock());
  for (auto& n : graph->nodes)
    if (n->original && n->original == hOriginalNode) {
      *phNode = handleOf(n);
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

// ------------------------------------------------------------------ nodes --

DRIVER_API(cuGraphAddKernelNode_v2)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  NodeWork work;
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = kernelWork(*nodeParams, work)) return e;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

DRIVER_API(cuGraphKernelNodeGetParams_v2)(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* p) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_KERNEL, node)) return e;
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graphLock());
  const NodeWork& w = node->work;
  node->paramPointers.clear();
  for (auto& param : w.function->info().params)
    node->paramPointers.push_back(const_cast<std::byte*>(w.params.data()) + param.offset);
  *p = {};
  p->func = static_cast<CUfunction>(w.function->handle());
  p->gridDimX = w.shape.grid.x;
  p->gridDimY = w.shape.grid.y;
  p->gridDimZ = w.shape.grid.z;
  p->blockDimX = w.shape.block.x;
  p->blockDimY = w.shape.block.y;
  p->blockDimZ = w.shape.block.z;
  p->sharedMemBytes = w.shape.dynamicShared;
  p->kernelParams = node->paramPointers.data();
  p->ctx = static_cast<CUcontext>(w.context->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphKernelNodeSetParams_v2)(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* p) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_KERNEL, node)) return e;
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work = node->work;
  if (const CUresult e = kernelWork(*p, work)) return e;
  std::lock_guard lock(graphLock());
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphKernelNodeGetAttribute)(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                          CUkernelNodeAttrValue* value_out) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_KERNEL, node)) return e;
  if (!value_out) return CUDA_ERROR_INVALID_VALUE;
  const LaunchShape& s = node->work.shape;
  switch (static_cast<int>(attr)) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: value_out->cooperative = s.cooperative; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value_out->priority = s.priority; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      value_out->clusterDim = {s.cluster.x, s.cluster.y, s.cluster.z};
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value_out->accessPolicyWindow = s.accessPolicy.value_or(CUaccessPolicyWindow{});
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      value_out->clusterSchedulingPolicyPreference =
          static_cast<CUclusterSchedulingPolicy>(std::max(0, s.clusterPolicy));
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value_out->sharedMemCarveout = static_cast<unsigned>(s.carveout);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: value_out->memSyncDomain = s.memSyncDomain; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: value_out->memSyncDomainMap = s.memSyncDomainMap; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

DRIVER_API(cuGraphKernelNodeSetAttribute)
(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue* value) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_KERNEL, node)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graphLock());
  LaunchShape& s = node->work.shape;
  switch (static_cast<int>(attr)) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: s.cooperative = value->cooperative != 0; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      s.hasPriority = true;
      s.priority = value->priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      s.cluster = {value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      return takeAccessPolicy(*node->work.context->device(), value->accessPolicyWindow, s.accessPolicy);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (!knownClusterPolicy(value->clusterSchedulingPolicyPreference)) return CUDA_ERROR_INVALID_VALUE;
      s.clusterPolicy = value->clusterSchedulingPolicyPreference;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (static_cast<int>(value->sharedMemCarveout) < -1 || static_cast<int>(value->sharedMemCarveout) > 100)
        return CUDA_ERROR_INVALID_VALUE;
      s.carveout = static_cast<int32_t>(value->sharedMemCarveout);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      if (value->memSyncDomain > CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE) return CUDA_ERROR_INVALID_VALUE;
      s.memSyncDomain = value->memSyncDomain;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: s.memSyncDomainMap = value->memSyncDomainMap; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

DRIVER_API(cuGraphAddMemcpyNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  NodeWork work;
  if (const CUresult e = copyWork(copyParams, ctx, work)) return e;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

DRIVER_API(cuGraphMemcpyNodeGetParams)(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, node)) return e;
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  *nodeParams = node->work.copy;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphMemcpyNodeSetParams)(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, node)) return e;
  NodeWork work = node->work;
  if (const CUresult e = copyWork(nodeParams, nullptr, work)) return e;
  std::lock_guard lock(graphLock());
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphAddMemsetNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  NodeWork work;
  if (const CUresult e = setWork(memsetParams, ctx, work)) return e;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

DRIVER_API(cuGraphMemsetNodeGetParams)(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_MEMSET, node)) return e;
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  *nodeParams = node->work.set;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphMemsetNodeSetParams)(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_MEMSET, node)) return e;
  NodeWork work = node->work;
  if (const CUresult e = setWork(nodeParams, nullptr, work)) return e;
  std::lock_guard lock(graphLock());
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphAddHostNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (!nodeParams || !nodeParams->fn) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work;
  work.type = CU_GRAPH_NODE_TYPE_HOST;
  work.host = *nodeParams;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

DRIVER_API(cuGraphHostNodeGetParams)(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_HOST, node)) return e;
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  *nodeParams = node->work.host;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphHostNodeSetParams)(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_HOST, node)) return e;
  if (!nodeParams || !nodeParams->fn) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graphLock());
  node->work.host = *nodeParams;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphAddEmptyNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies) {
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, {});
}

DRIVER_API(cuGraphAddChildGraphNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 CUgraph childGraph) {
  NodeWork work;
  if (const CUresult e = childWork(childGraph, work)) return e;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

DRIVER_API(cuGraphChildGraphNodeGetGraph)(CUgraphNode hNode, CUgraph* phGraph) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, CU_GRAPH_NODE_TYPE_GRAPH, node)) return e;
  if (!phGraph) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = static_cast<CUgraph>(node->work.child->handle());
  return CUDA_SUCCESS;
}

namespace {

CUresult addEventNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count, CUevent event,
                      CUgraphNodeType type) {
  NodeWork work;
  if (const CUresult e = eventWork(event, type, work)) return e;
  return addNode(out, graph, dependencies, count, std::move(work));
}
CUresult getEvent(CUgraphNode hNode, CUgraphNodeType type, CUevent* out) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, type, node)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<CUevent>(node->work.event->handle());
  return CUDA_SUCCESS;
}
CUresult setEvent(CUgraphNode hNode, CUgraphNodeType type, CUevent event) {
  Ref<GraphNode> node;
  if (const CUresult e = nodeOf(hNode, type, node)) return e;
  std::lock_guard lock(graphLock());
  return eventWork(event, type, node->work);
}

}  // namespace

DRIVER_API(cuGraphAddEventRecordNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUevent event) {
  return addEventNode(phGraphNode, hGraph, dependencies, numDependencies, event, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
}
DRIVER_API(cuGraphAddEventWaitNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUevent event) {
  return addEventNode(phGraphNode, hGraph, dependencies, numDependencies, event, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
}
DRIVER_API(cuGraphEventRecordNodeGetEvent)(CUgraphNode hNode, CUevent* event_out) {
  return getEvent(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}
DRIVER_API(cuGraphEventWaitNodeGetEvent)(CUgraphNode hNode, CUevent* event_out) {
  return getEvent(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}
DRIVER_API(cuGraphEventRecordNodeSetEvent)(CUgraphNode hNode, CUevent event) {
  return setEvent(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
DRIVER_API(cuGraphEventWaitNodeSetEvent)(CUgraphNode hNode, CUevent event) {
  return setEvent(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

}  // namespace sonde::softgpu::driver
