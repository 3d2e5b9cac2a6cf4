// SPDX-License-Identifier: Apache-2.0
// Graphs: the handles are the driver's; node parameters are translated.
#include "softgpu/runtime/impl.h"

namespace sonde::cudart {

cudaError_t symbolRange(const void* symbol, size_t count, size_t offset, void** address) {
  SONDE_TRY(ensureContext());
  CUdeviceptr base = 0;
  size_t size = 0;
  SONDE_TRY(registry().variable(symbol, &base, &size));
  if (offset > size || count > size - offset) return cudaErrorInvalidValue;
  *address = reinterpret_cast<void*>(base + offset);
  return cudaSuccess;
}

namespace impl {
namespace {

cudaError_t toDriver(const cudaKernelNodeParams& from, CUDA_KERNEL_NODE_PARAMS* to) {
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(from.func, &kernel));
  to->func = nullptr;
  to->kern = kernel;
  to->gridDimX = from.gridDim.x;
  to->gridDimY = from.gridDim.y;
  to->gridDimZ = from.gridDim.z;
  to->blockDimX = from.blockDim.x;
  to->blockDimY = from.blockDim.y;
  to->blockDimZ = from.blockDim.z;
  to->sharedMemBytes = from.sharedMemBytes;
  to->kernelParams = from.kernelParams;
  to->extra = from.extra;
  return cudaSuccess;
}

CUDA_MEMSET_NODE_PARAMS toDriver(const cudaMemsetParams& from) {
  CUDA_MEMSET_NODE_PARAMS to{};
  to.dst = devicePointer(from.dst);
  to.pitch = from.pitch;
  to.value = from.value;
  to.elementSize = from.elementSize;
  to.width = from.width;
  to.height = from.height;
  return to;
}

CUDA_HOST_NODE_PARAMS toDriver(const cudaHostNodeParams& from) {
  CUDA_HOST_NODE_PARAMS to{};
  to.fn = from.fn;
  to.userData = from.userData;
  return to;
}

// A one-dimensional copy as a box.
cudaMemcpy3DParms copy1D(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<void*>(src), count, count, 1};
  copy.dstPtr = {dst, count, count, 1};
  copy.extent = {count, 1, 1};
  copy.kind = kind;
  return copy;
}

cudaError_t context(CUcontext* current) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxGetCurrent, current);
}

const CUgraphEdgeData* edges(const cudaGraphEdgeData* data) { return reinterpret_cast<const CUgraphEdgeData*>(data); }
CUgraphEdgeData* edges(cudaGraphEdgeData* data) { return reinterpret_cast<CUgraphEdgeData*>(data); }

}  // namespace

// ------------------------------------------------------------------ building

cudaError_t cudaGraphCreate(cudaGraph_t* pGraph, unsigned int flags) {
  if (!pGraph) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphCreate, pGraph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphDestroy, graph);
}

cudaError_t cudaGraphClone(cudaGraph_t* pGraphClone, cudaGraph_t originalGraph) {
  if (!pGraphClone) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphClone, pGraphClone, originalGraph);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaKernelNodeParams* pNodeParams) {
  if (!pGraphNode || !pNodeParams) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS params{};
  SONDE_TRY(toDriver(*pNodeParams, &params));
  return SONDE_CU(cuGraphAddKernelNode, pGraphNode, graph, pDependencies, numDependencies, &params);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaMemcpy3DParms* pCopyParams) {
  if (!pGraphNode || !pCopyParams) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  SONDE_TRY(context(&current));
  CUDA_MEMCPY3D params{};
  SONDE_TRY(toDriverCopy(*pCopyParams, &params));
  return SONDE_CU(cuGraphAddMemcpyNode, pGraphNode, graph, pDependencies, numDependencies, &params, current);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dst,
                                     const void* src, size_t count, enum cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = copy1D(dst, src, count, kind);
  return impl::cudaGraphAddMemcpyNode(pGraphNode, graph, pDependencies, numDependencies, &copy);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                           const void* symbol, const void* src, size_t count, size_t offset,
                                           enum cudaMemcpyKind kind) {
  void* address = nullptr;
  SONDE_TRY(symbolRange(symbol, count, offset, &address));
  return impl::cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies, numDependencies, address, src, count, kind);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                             const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dst,
                                             const void* symbol, size_t count, size_t offset,
                                             enum cudaMemcpyKind kind) {
  void* address = nullptr;
  SONDE_TRY(symbolRange(symbol, count, offset, &address));
  return impl::cudaGraphAddMemcpyNode1D(pGraphNode, graph, pDependencies, numDependencies, dst, address, count, kind);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaMemsetParams* pMemsetParams) {
  if (!pGraphNode || !pMemsetParams) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  SONDE_TRY(context(&current));
  CUDA_MEMSET_NODE_PARAMS params = toDriver(*pMemsetParams);
  return SONDE_CU(cuGraphAddMemsetNode, pGraphNode, graph, pDependencies, numDependencies, &params, current);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                 size_t numDependencies, const struct cudaHostNodeParams* pNodeParams) {
  if (!pGraphNode || !pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_HOST_NODE_PARAMS params = toDriver(*pNodeParams);
  return SONDE_CU(cuGraphAddHostNode, pGraphNode, graph, pDependencies, numDependencies, &params);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                  size_t numDependencies) {
  if (!pGraphNode) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphAddEmptyNode, pGraphNode, graph, pDependencies, numDependencies);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                       cudaGraph_t childGraph) {
  if (!pGraphNode) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphAddChildGraphNode, pGraphNode, graph, pDependencies, numDependencies, childGraph);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                        cudaEvent_t event) {
  if (!pGraphNode) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuGraphAddEventRecordNode, pGraphNode, graph, pDependencies, numDependencies, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t* pDependencies, size_t numDependencies, cudaEvent_t event) {
  if (!pGraphNode) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuGraphAddEventWaitNode, pGraphNode, graph, pDependencies, numDependencies, event);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edgeData, size_t numDependencies) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphAddDependencies, graph, from, to, edges(edgeData), numDependencies);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edgeData, size_t numDependencies) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphRemoveDependencies, graph, from, to, edges(edgeData), numDependencies);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphDestroyNode, node);
}

// ------------------------------------------------------------------- looking

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* pNode, cudaGraphNode_t originalNode, cudaGraph_t clonedGraph) {
  if (!pNode) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphNodeFindInClone, pNode, originalNode, clonedGraph);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* pType) {
  if (!pType) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUgraphNodeType type{};
  SONDE_TRY(SONDE_CU(cuGraphNodeGetType, node, &type));
  *pType = static_cast<cudaGraphNodeType>(type);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes) {
  if (!numNodes) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphGetNodes, graph, nodes, numNodes);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* pRootNodes, size_t* pNumRootNodes) {
  if (!pNumRootNodes) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphGetRootNodes, graph, pRootNodes, pNumRootNodes);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edgeData, size_t* numEdges) {
  if (!numEdges) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphGetEdges, graph, from, to, edges(edgeData), numEdges);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* pDependencies,
                                         cudaGraphEdgeData* edgeData, size_t* pNumDependencies) {
  if (!pNumDependencies) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphNodeGetDependencies, node, pDependencies, edges(edgeData), pNumDependencies);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* pDependentNodes,
                                           cudaGraphEdgeData* edgeData, size_t* pNumDependentNodes) {
  if (!pNumDependentNodes) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphNodeGetDependentNodes, node, pDependentNodes, edges(edgeData), pNumDependentNodes);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* pGraph) {
  if (!pGraph) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphChildGraphNodeGetGraph, node, pGraph);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS params{};
  SONDE_TRY(toDriver(*pNodeParams, &params));
  return SONDE_CU(cuGraphKernelNodeSetParams, node, &params);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_MEMCPY3D params{};
  SONDE_TRY(toDriverCopy(*pNodeParams, &params));
  return SONDE_CU(cuGraphMemcpyNodeSetParams, node, &params);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src, size_t count,
                                           enum cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = copy1D(dst, src, count, kind);
  return impl::cudaGraphMemcpyNodeSetParams(node, &copy);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUDA_MEMSET_NODE_PARAMS found{};
  SONDE_TRY(SONDE_CU(cuGraphMemsetNodeGetParams, node, &found));
  *pNodeParams = {
      reinterpret_cast<void*>(found.dst), found.pitch, found.value, found.elementSize, found.width, found.height};
  return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUDA_MEMSET_NODE_PARAMS params = toDriver(*pNodeParams);
  return SONDE_CU(cuGraphMemsetNodeSetParams, node, &params);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUDA_HOST_NODE_PARAMS found{};
  SONDE_TRY(SONDE_CU(cuGraphHostNodeGetParams, node, &found));
  pNodeParams->fn = found.fn;
  pNodeParams->userData = found.userData;
  return cudaSuccess;
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUDA_HOST_NODE_PARAMS params = toDriver(*pNodeParams);
  return SONDE_CU(cuGraphHostNodeSetParams, node, &params);
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  if (!event_out) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphEventRecordNodeGetEvent, node, event_out);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphEventRecordNodeSetEvent, node, event);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  if (!event_out) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphEventWaitNodeGetEvent, node, event_out);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphEventWaitNodeSetEvent, node, event);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  if (!path) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphDebugDotPrint, graph, path, flags);
}

// ------------------------------------------------------------------- running

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  if (!pGraphExec) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuGraphInstantiateWithFlags, pGraphExec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  return impl::cudaGraphInstantiate(pGraphExec, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long* flags) {
  if (!flags) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  cuuint64_t found = 0;
  SONDE_TRY(SONDE_CU(cuGraphExecGetFlags, graphExec, &found));
  *flags = found;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuGraphUpload, graphExec, stream);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuGraphLaunch, graphExec, stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphExecDestroy, graphExec);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo* resultInfo) {
  if (!resultInfo) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUgraphExecUpdateResultInfo found{};
  cudaError_t status = SONDE_CU(cuGraphExecUpdate, hGraphExec, hGraph, &found);
  resultInfo->result = static_cast<cudaGraphExecUpdateResult>(found.result);
  resultInfo->errorNode = found.errorNode;
  resultInfo->errorFromNode = found.errorFromNode;
  return status;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  CUDA_KERNEL_NODE_PARAMS params{};
  SONDE_TRY(toDriver(*pNodeParams, &params));
  return SONDE_CU(cuGraphExecKernelNodeSetParams, hGraphExec, node, &params);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  SONDE_TRY(context(&current));
  CUDA_MEMCPY3D params{};
  SONDE_TRY(toDriverCopy(*pNodeParams, &params));
  return SONDE_CU(cuGraphExecMemcpyNodeSetParams, hGraphExec, node, &params, current);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst,
                                               const void* src, size_t count, enum cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = copy1D(dst, src, count, kind);
  return impl::cudaGraphExecMemcpyNodeSetParams(hGraphExec, node, &copy);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  SONDE_TRY(context(&current));
  CUDA_MEMSET_NODE_PARAMS params = toDriver(*pNodeParams);
  return SONDE_CU(cuGraphExecMemsetNodeSetParams, hGraphExec, node, &params, current);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUDA_HOST_NODE_PARAMS params = toDriver(*pNodeParams);
  return SONDE_CU(cuGraphExecHostNodeSetParams, hGraphExec, node, &params);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                 cudaGraph_t childGraph) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphExecChildGraphNodeSetParams, hGraphExec, node, childGraph);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int isEnabled) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphNodeSetEnabled, hGraphExec, hNode, isEnabled);
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int* isEnabled) {
  if (!isEnabled) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphNodeGetEnabled, hGraphExec, hNode, isEnabled);
}

// ------------------------------------------------------- memory and objects

cudaError_t cudaDeviceGraphMemTrim(int device) {
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceGraphMemTrim, device);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void* value) {
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceGetGraphMemAttribute, device, static_cast<CUgraphMem_attribute>(attr), value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr, void* value) {
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceSetGraphMemAttribute, device, static_cast<CUgraphMem_attribute>(attr), value);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, void* ptr, cudaHostFn_t destroy,
                                 unsigned int initialRefcount, unsigned int flags) {
  if (!object_out) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuUserObjectCreate, object_out, ptr, destroy, initialRefcount, flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuUserObjectRetain, object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuUserObjectRelease, object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphRetainUserObject, graph, object, count, flags);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphReleaseUserObject, graph, object, count);
}

}  // namespace impl
}  // namespace sonde::cudart
