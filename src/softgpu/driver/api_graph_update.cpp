// SPDX-License-Identifier: Apache-2.0
//
// Executable graphs: changing them, as a whole or a node at a time.
#include <vector>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_nodes.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

namespace {

struct Refusal {
  CUgraphExecUpdateResult why = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  void *node = nullptr, *from = nullptr;
};

Refusal compareSteps(const std::vector<GraphExec::Step>& old, const std::vector<GraphExec::Step>& fresh,
                     cuuint64_t flags);

CUmemorytype kindAt(CUmemorytype type, CUdeviceptr address) {
  if (type != CU_MEMORYTYPE_UNIFIED) return type;
  const auto found = memory::Allocator::get().find(address);
  return found && found->kind != memory::Kind::pinned && found->kind != memory::Kind::registered ? CU_MEMORYTYPE_DEVICE
                                                                                                 : CU_MEMORYTYPE_HOST;
}

// Whether a step may become another of its type.
CUgraphExecUpdateResult compareWork(const NodeWork& was, const NodeWork& now, cuuint64_t flags) {
  switch (static_cast<int>(was.type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      if (!(was.context == now.context)) return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
      if (was.shape.cooperative != now.shape.cooperative) return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
      if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) &&
          (was.shape.hasPriority != now.shape.hasPriority || was.shape.priority != now.shape.priority))
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
      break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      if (kindAt(was.copy.srcMemoryType, was.copy.srcDevice) != kindAt(now.copy.srcMemoryType, now.copy.srcDevice) ||
          kindAt(was.copy.dstMemoryType, was.copy.dstDevice) != kindAt(now.copy.dstMemoryType, now.copy.dstDevice))
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      // Of sets in two dimensions only the address and the value may change.
      if ((was.set.height > 1 || now.set.height > 1) &&
          (was.set.height != now.set.height || was.set.width != now.set.width || was.set.pitch != now.set.pitch ||
           was.set.elementSize != now.set.elementSize))
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
      break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      if (was.conditionType != now.conditionType || was.bodies.size() != now.bodies.size())
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
      break;
    default: break;
  }
  return was.context == now.context ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

Refusal compareStep(const GraphExec::Step& old, const GraphExec::Step& fresh, cuuint64_t flags) {
  if (old.work.type != fresh.work.type) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, fresh.node};
  if (const auto why = compareWork(old.work, fresh.work, flags)) return {why, fresh.node};
  for (size_t i = 0; i < old.bodies.size(); ++i)
    if (const Refusal r = compareSteps(old.bodies[i], fresh.bodies[i], flags); r.why) return r;
  return {};
}

Refusal compareSteps(const std::vector<GraphExec::Step>& old, const std::vector<GraphExec::Step>& fresh,
                     cuuint64_t flags) {
  if (old.size() != fresh.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
  for (size_t i = 0; i < fresh.size(); ++i) {
    const auto &before = old[i].dependencies, &after = fresh[i].dependencies;
    if (before.size() != after.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, fresh[i].node};
    for (size_t d = 0; d < after.size(); ++d)
      if (before[d] != after[d])
        return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, fresh[i].node, fresh[after[d]].node};
    if (const Refusal r = compareStep(old[i], fresh[i], flags); r.why) return r;
  }
  return {};
}

// Steps stay those of the nodes that they were made from.
void takeSteps(std::vector<GraphExec::Step>& old, std::vector<GraphExec::Step>& fresh) {
  for (size_t i = 0; i < old.size(); ++i) {
    old[i].work = std::move(fresh[i].work);
    for (size_t b = 0; b < old[i].bodies.size(); ++b) takeSteps(old[i].bodies[b], fresh[i].bodies[b]);
  }
}

}  // namespace

DRIVER_API(cuGraphExecUpdate_v2)(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* info) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  *info = {};
  info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraphExec, exec)) return e;
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  std::vector<GraphExec::Step> fresh;
  std::vector<Condition> conditions;
  {
    std::lock_guard lock(graphLock());
    std::vector<size_t> last;
    conditions = graph->conditions;
    // Memory of a graph belongs to the one executable graph that was made of it.
    if (graph->memoryExec && graph->memoryExec != exec->id) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    if (!expandSteps(*graph, {}, fresh, last)) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  std::lock_guard lock(exec->mutex);
  if (const Refusal r = compareSteps(exec->steps, fresh, exec->flags); r.why) {
    info->result = r.why;
    info->errorNode = static_cast<CUgraphNode>(r.node);
    info->errorFromNode = static_cast<CUgraphNode>(r.from);
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  takeSteps(exec->steps, fresh);
  exec->conditions = std::move(conditions);
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

namespace {

// Changes one step by what `change` does to a copy of its work.
template <class F>
CUresult changeStep(CUgraphExec hExec, CUgraphNode hNode, CUgraphNodeType type, F&& change) {
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hExec, exec)) return e;
  std::lock_guard lock(exec->mutex);
  GraphExec::Step* step = exec->find(hNode);
  if (!step || step->work.type != type) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work = step->work;
  if (const CUresult e = change(work)) return e;
  if (!(work.context == step->work.context)) return CUDA_ERROR_INVALID_VALUE;
  step->work = std::move(work);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuGraphExecKernelNodeSetParams_v2)
(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  return changeStep(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL,
                    [&](NodeWork& w) { return kernelWork(*nodeParams, w); });
}
DRIVER_API(cuGraphExecMemcpyNodeSetParams)
(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return changeStep(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMCPY,
                    [&](NodeWork& w) { return copyWork(copyParams, ctx, w); });
}
DRIVER_API(cuGraphExecMemsetNodeSetParams)
(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return changeStep(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMSET,
                    [&](NodeWork& w) { return setWork(memsetParams, ctx, w); });
}
DRIVER_API(cuGraphExecHostNodeSetParams)
(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (!nodeParams || !nodeParams->fn) return CUDA_ERROR_INVALID_VALUE;
  return changeStep(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_HOST, [&](NodeWork& w) {
    w.host = *nodeParams;
    return CUDA_SUCCESS;
  });
}
// The child graph that the node was made with gives way to another of the same shape.
DRIVER_API(cuGraphExecChildGraphNodeSetParams)(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraphExec, exec)) return e;
  const Ref<GraphNode> node = HandleTable::find<GraphNode>(hNode);
  if (!node || node->work.type != CU_GRAPH_NODE_TYPE_GRAPH) return CUDA_ERROR_INVALID_VALUE;
  Ref<Graph> graph;
  if (const CUresult e = findGraph(childGraph, graph)) return e;
  std::vector<GraphExec::Step> old, fresh;
  {
    std::lock_guard lock(graphLock());
    std::vector<size_t> ignored;
    if (!expandSteps(*node->work.child, {}, old, ignored) || !expandSteps(*graph, {}, fresh, ignored))
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (old.size() != fresh.size()) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(exec->mutex);
  std::vector<GraphExec::Step*> steps;
  for (size_t i = 0; i < old.size(); i++) {
    GraphExec::Step* step = exec->find(old[i].node);
    if (!step || step->work.type != fresh[i].work.type || old[i].dependencies != fresh[i].dependencies ||
        !(step->work.context == fresh[i].work.context))
      return CUDA_ERROR_INVALID_VALUE;
    steps.push_back(step);
  }
  for (size_t i = 0; i < steps.size(); i++) {
    steps[i]->work = std::move(fresh[i].work);
    steps[i]->bodies = std::move(fresh[i].bodies);
  }
  return CUDA_SUCCESS;
}
DRIVER_API(cuGraphExecEventRecordNodeSetEvent)(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  return changeStep(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                    [&](NodeWork& w) { return eventWork(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, w); });
}
DRIVER_API(cuGraphExecEventWaitNodeSetEvent)(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  return changeStep(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                    [&](NodeWork& w) { return eventWork(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, w); });
}

DRIVER_API(cuGraphNodeSetEnabled)(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraphExec, exec)) return e;
  std::lock_guard lock(exec->mutex);
  GraphExec::Step* step = exec->find(hNode);
  if (!step || step->work.type > CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
  step->enabled = isEnabled != 0;
  return CUDA_SUCCESS;
}
DRIVER_API(cuGraphNodeGetEnabled)(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
  Ref<GraphExec> exec;
  if (const CUresult e = findExec(hGraphExec, exec)) return e;
  if (!isEnabled) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(exec->mutex);
  GraphExec::Step* step = exec->find(hNode);
  if (!step || step->work.type > CU_GRAPH_NODE_TYPE_MEMSET) return CUDA_ERROR_INVALID_VALUE;
  *isEnabled = step->enabled;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
