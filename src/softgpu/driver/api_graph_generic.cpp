// SPDX-License-Identifier: Apache-2.0
//
// Nodes of any type through one parameter structure.
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_nodes.h"

namespace sonde::softgpu::driver {
namespace {

CUDA_KERNEL_NODE_PARAMS kernelParams(const CUgraphNodeParams& p) {
  const auto& k = p.kernel;
  CUDA_KERNEL_NODE_PARAMS out{};
  out.func = k.func;
  out.gridDimX = k.gridDimX;
  out.gridDimY = k.gridDimY;
  out.gridDimZ = k.gridDimZ;
  out.blockDimX = k.blockDimX;
  out.blockDimY = k.blockDimY;
  out.blockDimZ = k.blockDimZ;
  out.sharedMemBytes = k.sharedMemBytes;
  out.kernelParams = k.kernelParams;
  out.extra = k.extra;
  out.kern = k.kern;
  out.ctx = k.ctx;
  return out;
}

// Puts the parameters into `work`, which keeps what they do not say.
CUresult toWork(const CUgraphNodeParams& p, NodeWork& work) {
  switch (static_cast<int>(p.type)) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return kernelWork(kernelParams(p), work);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return copyWork(&p.memcpy.copyParams, p.memcpy.copyCtx, work);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& m = p.memset;
      const CUDA_MEMSET_NODE_PARAMS set{m.dst, m.pitch, m.value, m.elementSize, m.width, m.height};
      return setWork(&set, m.ctx, work);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      if (!p.host.fn) return CUDA_ERROR_INVALID_VALUE;
      work.type = CU_GRAPH_NODE_TYPE_HOST;
      work.host.fn = p.host.fn;
      work.host.userData = p.host.userData;
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return eventWork(p.eventWait.event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, work);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return eventWork(p.eventRecord.event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, work);
    case CU_GRAPH_NODE_TYPE_EMPTY: work.type = CU_GRAPH_NODE_TYPE_EMPTY; return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH: return childWork(p.graph.graph, work);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
      const auto& m = p.memOp;
      return memoryOpWork({m.ctx, m.count, m.paramArray, m.flags}, work);
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return freeWork(p.free.dptr, work);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

DRIVER_API(cuGraphAddNode_v2)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
 size_t numDependencies, CUgraphNodeParams* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work;
  switch (static_cast<int>(nodeParams->type)) {  // those with outputs
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS p{};
      p.poolProps = nodeParams->alloc.poolProps;
      p.accessDescs = nodeParams->alloc.accessDescs;
      p.accessDescCount = nodeParams->alloc.accessDescCount;
      p.bytesize = nodeParams->alloc.bytesize;
      if (const CUresult e = allocationWork(p, work)) return e;
      nodeParams->alloc.dptr = p.dptr;
      break;
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: {  // may be moved into the new node
      const auto& g = nodeParams->graph;
      if (g.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE && g.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
      const bool moved = g.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
      if (const CUresult e = moved ? movedChildWork(g.graph, hGraph, work) : childWork(g.graph, work)) return e;
      break;
    }
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      if (const CUresult e = conditionalWork(nodeParams->conditional, hGraph, work)) return e;
      break;
    default:
      if (const CUresult e = toWork(*nodeParams, work)) return e;
  }
  return addNode(phGraphNode, hGraph, dependencies, numDependencies, std::move(work), dependencyData);
}

DRIVER_API(cuGraphAddNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 CUgraphNodeParams* nodeParams) {
  return cuGraphAddNode_v2_impl(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}

DRIVER_API(cuGraphNodeSetParams)(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  Ref<GraphNode> node;
  if (const CUresult e = findNode(hNode, node)) return e;
  if (!nodeParams || nodeParams->type != node->work.type || nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
    return CUDA_ERROR_INVALID_VALUE;
  NodeWork work = node->work;
  if (const CUresult e = toWork(*nodeParams, work)) return e;
  std::lock_guard lock(graphLock());
  node->work = std::move(work);
  return CUDA_SUCCESS;
}

DRIVER_API(cuGraphExecNodeSetParams)(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<GraphExec> exec = HandleTable::find<GraphExec>(hGraphExec);
  if (!exec || !nodeParams) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(exec->mutex);
  GraphExec::Step* step = exec->find(hNode);
  if (!step || step->work.type != nodeParams->type) return CUDA_ERROR_INVALID_VALUE;
  NodeWork work = step->work;
  if (const CUresult e = toWork(*nodeParams, work)) return e;
  if (!(work.context == step->work.context)) return CUDA_ERROR_INVALID_VALUE;
  step->work = std::move(work);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
