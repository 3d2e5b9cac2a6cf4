// SPDX-License-Identifier: Apache-2.0
// What nodes of graphs are made of, asked back in the runtime's terms; launch
// attributes of kernel nodes; copies from and to symbols in nodes that exist.
#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {
namespace {

bool isHost(CUmemorytype type) { return type == CU_MEMORYTYPE_HOST; }

cudaMemcpyKind kindOf(CUmemorytype from, CUmemorytype to) {
  if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (isHost(from)) return isHost(to) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return isHost(to) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

void* pointerOf(CUmemorytype type, const void* host, CUdeviceptr device) {
  return isHost(type) ? const_cast<void*>(host) : reinterpret_cast<void*>(device);
}

// The reverse of toDriverCopy.
cudaError_t fromDriverCopy(const CUDA_MEMCPY3D& from, cudaMemcpy3DParms* to) {
  *to = {};
  size_t source = 1, target = 1;
  if (from.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    SONDE_TRY(arrayElementSize(from.srcArray, &source));
    to->srcArray = reinterpret_cast<cudaArray_t>(from.srcArray);
  } else {
    to->srcPtr = {pointerOf(from.srcMemoryType, from.srcHost, from.srcDevice), from.srcPitch, from.WidthInBytes,
                  from.srcHeight};
  }
  if (from.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    SONDE_TRY(arrayElementSize(from.dstArray, &target));
    to->dstArray = reinterpret_cast<cudaArray_t>(from.dstArray);
  } else {
    to->dstPtr = {pointerOf(from.dstMemoryType, from.dstHost, from.dstDevice), from.dstPitch, from.WidthInBytes,
                  from.dstHeight};
  }
  to->srcPos = {from.srcXInBytes / source, from.srcY, from.srcZ};
  to->dstPos = {from.dstXInBytes / target, from.dstY, from.dstZ};
  const size_t element = from.srcMemoryType == CU_MEMORYTYPE_ARRAY ? source : target;
  to->extent = {from.WidthInBytes / element, from.Height, from.Depth};
  to->kind = kindOf(from.srcMemoryType, from.dstMemoryType);
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_KERNEL_NODE_PARAMS from{};
  SONDE_TRY(SONDE_CU(cuGraphKernelNodeGetParams, node, &from));
  *pNodeParams = {};
  pNodeParams->func = registry().nameOf(from.func, from.kern);
  pNodeParams->gridDim = dim3(from.gridDimX, from.gridDimY, from.gridDimZ);
  pNodeParams->blockDim = dim3(from.blockDimX, from.blockDimY, from.blockDimZ);
  pNodeParams->sharedMemBytes = from.sharedMemBytes;
  pNodeParams->kernelParams = from.kernelParams;
  pNodeParams->extra = from.extra;
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphKernelNodeCopyAttributes, hDst, hSrc);
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            cudaLaunchAttributeValue* value_out) {
  static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUkernelNodeAttrValue));
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphKernelNodeGetAttribute, hNode, static_cast<CUkernelNodeAttrID>(attr),
                  reinterpret_cast<CUkernelNodeAttrValue*>(value_out));
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            const cudaLaunchAttributeValue* value) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuGraphKernelNodeSetAttribute, hNode, static_cast<CUkernelNodeAttrID>(attr),
                  reinterpret_cast<const CUkernelNodeAttrValue*>(value));
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms* pNodeParams) {
  if (!pNodeParams) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_MEMCPY3D from{};
  SONDE_TRY(SONDE_CU(cuGraphMemcpyNodeGetParams, node, &from));
  cudaMemcpy3DParms to;
  SONDE_TRY(fromDriverCopy(from, &to));
  *pNodeParams = to;
  return cudaSuccess;
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams* params_out) {
  static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
  if (!params_out) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUDA_MEM_ALLOC_NODE_PARAMS from{};
  SONDE_TRY(SONDE_CU(cuGraphMemAllocNodeGetParams, node, &from));
  *params_out = {};
  params_out->poolProps.allocType = static_cast<cudaMemAllocationType>(from.poolProps.allocType);
  params_out->poolProps.handleTypes = static_cast<cudaMemAllocationHandleType>(from.poolProps.handleTypes);
  params_out->poolProps.location.type = static_cast<cudaMemLocationType>(from.poolProps.location.type);
  params_out->poolProps.location.id = from.poolProps.location.id;
  params_out->accessDescs = reinterpret_cast<const cudaMemAccessDesc*>(from.accessDescs);
  params_out->accessDescCount = from.accessDescCount;
  params_out->bytesize = from.bytesize;
  params_out->dptr = reinterpret_cast<void*>(from.dptr);
  return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* src,
                                                 size_t count, size_t offset, enum cudaMemcpyKind kind) {
  void* address = nullptr;
  SONDE_TRY(symbolRange(symbol, count, offset, &address));
  return impl::cudaGraphMemcpyNodeSetParams1D(node, address, src, count, kind);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* dst, const void* symbol, size_t count,
                                                   size_t offset, enum cudaMemcpyKind kind) {
  void* address = nullptr;
  SONDE_TRY(symbolRange(symbol, count, offset, &address));
  return impl::cudaGraphMemcpyNodeSetParams1D(node, dst, address, count, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                     const void* symbol, const void* src, size_t count, size_t offset,
                                                     enum cudaMemcpyKind kind) {
  void* address = nullptr;
  SONDE_TRY(symbolRange(symbol, count, offset, &address));
  return impl::cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, address, src, count, kind);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst,
                                                       const void* symbol, size_t count, size_t offset,
                                                       enum cudaMemcpyKind kind) {
  void* address = nullptr;
  SONDE_TRY(symbolRange(symbol, count, offset, &address));
  return impl::cudaGraphExecMemcpyNodeSetParams1D(hGraphExec, node, dst, address, count, kind);
}

}  // namespace sonde::cudart::impl
