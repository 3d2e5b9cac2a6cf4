// SPDX-License-Identifier: Apache-2.0
//
// Graph nodes that wait for, and write, values in memory.
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_nodes.h"
#include "softgpu/driver/memory_op.h"

namespace sonde::softgpu::driver {

CUresult memoryOpWork(const CUDA_BATCH_MEM_OP_NODE_PARAMS& p, NodeWork& work) {
  if (!p.paramArray || p.count == 0 || p.count >= kMemoryOpLimit || p.flags) return CUDA_ERROR_INVALID_VALUE;
  Ref<Context> context;
  if (p.ctx)
    context = HandleTable::find<Context>(p.ctx);
  else if (work.context)
    context = work.context;
  else
    currentContext(context);
  if (!context || context->destroyed.load()) return CUDA_ERROR_INVALID_CONTEXT;
  std::vector<MemoryOp> plan;
  if (const CUresult e = planMemoryOps({p.paramArray, p.count}, *context, plan)) return e;
  work.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  work.context = std::move(context);
  work.memoryOps.assign(p.paramArray, p.paramArray + p.count);
  return CUDA_SUCCESS;
}

namespace {

CUresult memoryOpNode(CUgraphNode handle, Ref<GraphNode>& node) {
  if (const CUresult e = findNode(handle, node)) return e;
  return node->work.type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

DRIVER_API(cuGraphAddBatchMemOpNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work;
  if (const CUresult e = memoryOpWork(*nodeParams, work)) return e;
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
}

// The array belongs to the node, until its parameters are set again.
DRIVER_API(cuGraphBatchMemOpNodeGetParams)(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams_out) {
  Ref<GraphNode> node;
  if (const CUresult e = memoryOpNode(hNode, node)) return e;
  if (!nodeParams_out) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(graphLock());
  NodeWork& w = node->work;
  *nodeParams_out = {static_cast<CUcontext>(w.context->handle()), static_cast<unsigned>(w.memoryOps.size()),
                     w.memoryOps.data(), 0};
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphBatchMemOpNodeSetParams)(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = memoryOpNode(hNode, node)) return e;
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work = node->work;
  if (const CUresult e = memoryOpWork(*nodeParams, work)) return e;
  std::lock_guard lock(graphLock());
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphExecBatchMemOpNodeSetParams)
(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<GraphExec> exec = HandleTable::find<GraphExec>(hGraphExec);
  if (!exec || !nodeParams) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(exec->mutex);
  GraphExec::Step* step = exec->find(hNode);
  if (!step || step->work.type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work = step->work;
  if (const CUresult e = memoryOpWork(*nodeParams, work)) return e;
  if (!(work.context == step->work.context)) return CUDA_ERROR_INVALID_VALUE;
  step->work = std::move(work);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
