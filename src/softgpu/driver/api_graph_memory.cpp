// SPDX-License-Identifier: Apache-2.0
//
// Graph nodes that allocate and free, and conditional nodes.
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_memory.h"
#include "softgpu/driver/graph_nodes.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/pool.h"
#include "softgpu/exec/condition.h"

namespace sonde::softgpu::driver {

CUresult allocationWork(CUDA_MEM_ALLOC_NODE_PARAMS& p, NodeWork& work) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (p.bytesize == 0 || (p.accessDescCount && !p.accessDescs)) return CUDA_ERROR_INVALID_VALUE;
  PoolPlace place;
  if (const CUresult e = poolPlace(&p.poolProps.location, p.poolProps.allocType, place)) return e;
  if (p.poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    say("memory of graphs cannot be shared with other processes");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  for (size_t i = 0; i < p.accessDescCount; ++i) {
    const CUmemLocation& to = p.accessDescs[i].location;
    if (to.type != CU_MEM_LOCATION_TYPE_DEVICE || !Driver::get().device(to.id)) return CUDA_ERROR_INVALID_VALUE;
  }
  // Memory that is of no device counts against the one in use, as from a pool.
  const bool located = p.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  work.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  work.memory = GraphMemory::create(
      {place.kind, located ? place.device->ordinal : context->device()->ordinal, located, p.bytesize});
  if (!work.memory) return CUDA_ERROR_OUT_OF_MEMORY;
  work.context = std::move(context);
  p.dptr = work.memory->address();
  work.allocation = p;
  work.accesses =
      std::make_shared<const std::vector<CUmemAccessDesc>>(p.accessDescs, p.accessDescs + p.accessDescCount);
  work.allocation.accessDescs = p.accessDescCount ? work.accesses->data() : nullptr;
  return CUDA_SUCCESS;
}

CUresult freeWork(CUdeviceptr address, NodeWork& work) {
  if (!GraphMemory::find(address)) return CUDA_ERROR_INVALID_VALUE;
  work.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  work.freed = address;
  return CUDA_SUCCESS;
}

CUresult claimMemory(const Graph& graph, const NodeWork& work) {
  if (work.memory) work.memory->ownedBy(graph.id);
  if (work.type != CU_GRAPH_NODE_TYPE_MEM_FREE) return CUDA_SUCCESS;
  const auto memory = GraphMemory::find(work.freed);
  return memory && memory->freedBy(graph.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult conditionalWork(CUDA_CONDITIONAL_NODE_PARAMS& p, CUgraph hGraph, NodeWork& work) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  const bool known =
      p.type == CU_GRAPH_COND_TYPE_IF || p.type == CU_GRAPH_COND_TYPE_WHILE || p.type == CU_GRAPH_COND_TYPE_SWITCH;
  if (!known || p.size == 0 || (p.type == CU_GRAPH_COND_TYPE_IF && p.size > 2) ||
      (p.type == CU_GRAPH_COND_TYPE_WHILE && p.size != 1))
    return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard lock(graphLock());
    bool found = false;
    for (const Condition& c : graph->conditions) found |= c.handle == p.handle;
    // A condition may be looked at from within a body of its graph.
    if (!found && !graph->ownedByNode) return CUDA_ERROR_INVALID_VALUE;
  }
  work.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  work.condition = p.handle;
  work.conditionType = p.type;
  work.bodyHandles = std::make_shared<std::vector<CUgraph>>();
  for (unsigned i = 0; i < p.size; ++i) {
    auto body = make<Graph>();
    if (!HandleTable::publish(body.get())) return CUDA_ERROR_OUT_OF_MEMORY;
    body->ownedByNode = true;
    work.bodyHandles->push_back(static_cast<CUgraph>(body->handle()));
    work.bodies.push_back(std::move(body));
  }
  p.phGraph_out = work.bodyHandles->data();
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphAddMemAllocNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work;
  if (const CUresult e = allocationWork(*nodeParams, work)) return e;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

DRIVER_API(cuGraphAddMemFreeNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies, CUdeviceptr dptr) {
  NodeWork work;
  if (const CUresult e = freeWork(dptr, work)) return e;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

DRIVER_API(cuGraphMemAllocNodeGetParams)(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  Ref<GraphNode> node;
  if (const CUresult e = findNode(hNode, node)) return e;
  if (!params_out || node->work.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) return CUDA_ERROR_INVALID_VALUE;
  *params_out = node->work.allocation;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphMemFreeNodeGetParams)(CUgraphNode hNode, CUdeviceptr* dptr_out) {
  Ref<GraphNode> node;
  if (const CUresult e = findNode(hNode, node)) return e;
  if (!dptr_out || node->work.type != CU_GRAPH_NODE_TYPE_MEM_FREE) return CUDA_ERROR_INVALID_VALUE;
  *dptr_out = node->work.freed;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphConditionalHandleCreate)
(CUgraphConditionalHandle* pHandle_out, CUgraph hGraph, CUcontext ctx, unsigned int defaultLaunchValue,
 unsigned int flags) {
  Ref<Graph> graph;
  if (const CUresult e = findGraph(hGraph, graph)) return e;
  if (!pHandle_out || (flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT))) return CUDA_ERROR_INVALID_VALUE;
  if (ctx && !HandleTable::find<Context>(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  Condition condition;
  condition.handle = exec::createCondition();
  if (!condition.handle) return CUDA_ERROR_OUT_OF_MEMORY;
  condition.defaultValue = defaultLaunchValue;
  condition.assignDefault = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
  std::lock_guard lock(graphLock());
  graph->conditions.push_back(condition);
  *pHandle_out = condition.handle;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
