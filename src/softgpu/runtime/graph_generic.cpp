// SPDX-License-Identifier: Apache-2.0
// Graph nodes of any type through one structure, nodes that allocate, and the
// values of conditional nodes.
#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {
namespace {

cudaError_t context(CUcontext* current) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxGetCurrent, current);
}

// The driver's structure for the runtime's: symbols become kernels, arrays and
// pointers what the driver calls them.
cudaError_t toDriver(const cudaGraphNodeParams& from, CUgraphNodeParams* to) {
  *to = {};
  to->type = static_cast<CUgraphNodeType>(from.type);
  switch (from.type) {
    case cudaGraphNodeTypeKernel: {
      CUkernel kernel = nullptr;
      SONDE_TRY(resolveKernel(from.kernel.func, &kernel));
      auto& k = to->kernel;
      k.kern = kernel;
      k.gridDimX = from.kernel.gridDim.x;
      k.gridDimY = from.kernel.gridDim.y;
      k.gridDimZ = from.kernel.gridDim.z;
      k.blockDimX = from.kernel.blockDim.x;
      k.blockDimY = from.kernel.blockDim.y;
      k.blockDimZ = from.kernel.blockDim.z;
      k.sharedMemBytes = from.kernel.sharedMemBytes;
      k.kernelParams = from.kernel.kernelParams;
      k.extra = from.kernel.extra;
      return cudaSuccess;
    }
    case cudaGraphNodeTypeMemcpy: {
      SONDE_TRY(context(&to->memcpy.copyCtx));
      return toDriverCopy(from.memcpy.copyParams, &to->memcpy.copyParams);
    }
    case cudaGraphNodeTypeMemset: {
      auto& m = to->memset;
      m.dst = devicePointer(from.memset.dst);
      m.pitch = from.memset.pitch;
      m.value = from.memset.value;
      m.elementSize = from.memset.elementSize;
      m.width = from.memset.width;
      m.height = from.memset.height;
      return context(&m.ctx);
    }
    case cudaGraphNodeTypeHost:
      to->host.fn = from.host.fn;
      to->host.userData = from.host.userData;
      return cudaSuccess;
    case cudaGraphNodeTypeGraph:
      to->graph.graph = from.graph.graph;
      return from.graph.ownership == cudaGraphChildGraphOwnershipClone ? cudaSuccess : cudaErrorNotSupported;
    case cudaGraphNodeTypeEmpty: return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent: to->eventWait.event = from.eventWait.event; return cudaSuccess;
    case cudaGraphNodeTypeEventRecord: to->eventRecord.event = from.eventRecord.event; return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
      to->alloc.poolProps.allocType = static_cast<CUmemAllocationType>(from.alloc.poolProps.allocType);
      to->alloc.poolProps.handleTypes = static_cast<CUmemAllocationHandleType>(from.alloc.poolProps.handleTypes);
      to->alloc.poolProps.location = {static_cast<CUmemLocationType>(from.alloc.poolProps.location.type),
                                      from.alloc.poolProps.location.id};
      to->alloc.bytesize = from.alloc.bytesize;
      return ensureContext();
    case cudaGraphNodeTypeMemFree: to->free.dptr = devicePointer(from.free.dptr); return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      to->conditional.handle = from.conditional.handle;
      to->conditional.type = static_cast<CUgraphConditionalNodeType>(from.conditional.type);
      to->conditional.size = from.conditional.size;
      return context(&to->conditional.ctx);
    default: return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t cudaGraphAddNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                             const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                             struct cudaGraphNodeParams* nodeParams) {
  if (!pGraphNode || !nodeParams) return cudaErrorInvalidValue;
  CUgraphNodeParams params;
  SONDE_TRY(toDriver(*nodeParams, &params));
  SONDE_TRY(SONDE_CU(cuGraphAddNode, pGraphNode, graph, pDependencies,
                     reinterpret_cast<const CUgraphEdgeData*>(dependencyData), numDependencies, &params));
  if (nodeParams->type == cudaGraphNodeTypeMemAlloc)
    nodeParams->alloc.dptr = reinterpret_cast<void*>(params.alloc.dptr);
  if (nodeParams->type == cudaGraphNodeTypeConditional)
    nodeParams->conditional.phGraph_out = params.conditional.phGraph_out;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams* nodeParams) {
  if (!nodeParams) return cudaErrorInvalidValue;
  CUgraphNodeParams params;
  SONDE_TRY(toDriver(*nodeParams, &params));
  return SONDE_CU(cuGraphNodeSetParams, node, &params);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams* nodeParams) {
  if (!nodeParams) return cudaErrorInvalidValue;
  CUgraphNodeParams params;
  SONDE_TRY(toDriver(*nodeParams, &params));
  return SONDE_CU(cuGraphExecNodeSetParams, graphExec, node, &params);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                     struct cudaMemAllocNodeParams* nodeParams) {
  if (!pGraphNode || !nodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = static_cast<CUmemAllocationType>(nodeParams->poolProps.allocType);
  params.poolProps.handleTypes = static_cast<CUmemAllocationHandleType>(nodeParams->poolProps.handleTypes);
  params.poolProps.location = {static_cast<CUmemLocationType>(nodeParams->poolProps.location.type),
                               nodeParams->poolProps.location.id};
  params.bytesize = nodeParams->bytesize;
  SONDE_TRY(SONDE_CU(cuGraphAddMemAllocNode, pGraphNode, graph, pDependencies, numDependencies, &params));
  nodeParams->dptr = reinterpret_cast<void*>(params.dptr);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dptr) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuGraphAddMemFreeNode, pGraphNode, graph, pDependencies, numDependencies, devicePointer(dptr));
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* dptr_out) {
  return SONDE_CU(cuGraphMemFreeNodeGetParams, node, static_cast<CUdeviceptr*>(dptr_out));
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* pHandle_out, cudaGraph_t graph,
                                             unsigned int defaultLaunchValue, unsigned int flags) {
  CUcontext current = nullptr;
  SONDE_TRY(context(&current));
  return SONDE_CU(cuGraphConditionalHandleCreate, reinterpret_cast<CUgraphConditionalHandle*>(pHandle_out), graph,
                  current, defaultLaunchValue, flags);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event) {
  return SONDE_CU(cuGraphExecEventRecordNodeSetEvent, hGraphExec, hNode, event);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event) {
  return SONDE_CU(cuGraphExecEventWaitNodeSetEvent, hGraphExec, hNode, event);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* instantiateParams) {
  if (!instantiateParams) return cudaErrorInvalidValue;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = instantiateParams->flags;
  params.hUploadStream = instantiateParams->uploadStream;
  const cudaError_t result = SONDE_CU(cuGraphInstantiateWithParams, pGraphExec, graph, &params);
  instantiateParams->errNode_out = params.hErrNode_out;
  instantiateParams->result_out = static_cast<cudaGraphInstantiateResult>(params.result_out);
  return result;
}

}  // namespace sonde::cudart::impl
