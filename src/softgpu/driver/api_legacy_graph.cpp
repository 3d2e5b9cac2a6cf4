// SPDX-License-Identifier: Apache-2.0
//
// First versions of the functions of graphs and captures (CUDA 10 and 11).
#include <cstring>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_nodes.h"

#undef cuGraphAddKernelNode
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphInstantiate
#undef cuGraphInstantiate_v2
#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuStreamBeginCapture
#undef cuStreamGetCaptureInfo

namespace sonde::softgpu::driver {

CUresult cuGraphAddKernelNode_v2_impl(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                      size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS* nodeParams);
CUresult cuGraphExecKernelNodeSetParams_v2_impl(CUgraphExec hGraphExec, CUgraphNode hNode,
                                                const CUDA_KERNEL_NODE_PARAMS* nodeParams);
CUresult cuGraphExecUpdate_v2_impl(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* info);
CUresult cuGraphInstantiateWithParams_impl(CUgraphExec* phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS* p);
CUresult cuGraphKernelNodeGetParams_v2_impl(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* p);
CUresult cuGraphKernelNodeSetParams_v2_impl(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* p);
CUresult cuStreamBeginCapture_v2_impl(CUstream hStream, CUstreamCaptureMode mode);
CUresult cuStreamGetCaptureInfo_v2_impl(CUstream hStream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                        const CUgraphNode** dependencies, size_t* numDependencies);

namespace {

// Without `kern` and `ctx`, which came later at the end.
CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = old.func;
  p.gridDimX = old.gridDimX;
  p.gridDimY = old.gridDimY;
  p.gridDimZ = old.gridDimZ;
  p.blockDimX = old.blockDimX;
  p.blockDimY = old.blockDimY;
  p.blockDimZ = old.blockDimZ;
  p.sharedMemBytes = old.sharedMemBytes;
  p.kernelParams = old.kernelParams;
  p.extra = old.extra;
  return p;
}

CUresult instantiate(CUgraphExec* out, CUgraph hGraph, CUgraphNode* errorNode, char* log, size_t logBytes) {
  CUDA_GRAPH_INSTANTIATE_PARAMS p{};
  const CUresult result = cuGraphInstantiateWithParams_impl(out, hGraph, &p);
  if (errorNode) *errorNode = p.hErrNode_out;
  if (log && logBytes) {
    const char* text = p.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE ? "the graph has a cycle" : "";
    std::strncpy(log, result ? text : "", logBytes - 1);
    log[logBytes - 1] = 0;
  }
  return result;
}

}  // namespace

DRIVER_API(cuStreamBeginCapture)(CUstream hStream) {
  return cuStreamBeginCapture_v2_impl(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}
DRIVER_API(cuStreamGetCaptureInfo)(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out) {
  return cuStreamGetCaptureInfo_v2_impl(hStream, captureStatus_out, id_out, nullptr, nullptr, nullptr);
}

DRIVER_API(cuGraphAddKernelNode)
(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies, size_t numDependencies,
 const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS p = widen(*nodeParams);
  return cuGraphAddKernelNode_v2_impl(phGraphNode, hGraph, dependencies, numDependencies, &p);
}
DRIVER_API(cuGraphKernelNodeGetParams)(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  CUDA_KERNEL_NODE_PARAMS p;
  if (const CUresult e = cuGraphKernelNodeGetParams_v2_impl(hNode, nodeParams ? &p : nullptr)) return e;
  *nodeParams = {p.func,      p.gridDimX,  p.gridDimY,       p.gridDimZ,     p.blockDimX,
                 p.blockDimY, p.blockDimZ, p.sharedMemBytes, p.kernelParams, p.extra};
  return CUDA_SUCCESS;
}
DRIVER_API(cuGraphKernelNodeSetParams)(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS p = widen(*nodeParams);
  return cuGraphKernelNodeSetParams_v2_impl(hNode, &p);
}
DRIVER_API(cuGraphExecKernelNodeSetParams)
(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (!nodeParams) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS p = widen(*nodeParams);
  return cuGraphExecKernelNodeSetParams_v2_impl(hGraphExec, hNode, &p);
}

DRIVER_API(cuGraphInstantiate)
(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize) {
  return instantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
DRIVER_API(cuGraphInstantiate_v2)
(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize) {
  return instantiate(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

DRIVER_API(cuGraphExecUpdate)
(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out, CUgraphExecUpdateResult* updateResult_out) {
  if (!updateResult_out) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult result = cuGraphExecUpdate_v2_impl(hGraphExec, hGraph, &info);
  if (result && result != CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) return result;
  if (hErrorNode_out) *hErrorNode_out = info.errorNode;
  *updateResult_out = info.result;
  return result;
}

// What launch attributes a node has; not its kernel, shape or parameters.
DRIVER_API(cuGraphKernelNodeCopyAttributes)(CUgraphNode dst, CUgraphNode src) {
  Ref<GraphNode> to, from;
  if (const CUresult e = findNode(dst, to)) return e;
  if (const CUresult e = findNode(src, from)) return e;
  std::lock_guard lock(graphLock());
  if (to->work.type != CU_GRAPH_NODE_TYPE_KERNEL || from->work.type != CU_GRAPH_NODE_TYPE_KERNEL ||
      !(to->work.context == from->work.context))
    return CUDA_ERROR_INVALID_VALUE;
  LaunchShape& shape = to->work.shape;
  const LaunchShape& other = from->work.shape;
  shape.cooperative = other.cooperative;
  shape.hasPriority = other.hasPriority;
  shape.priority = other.priority;
  shape.cluster = other.cluster;
  shape.carveout = other.carveout;
  shape.clusterPolicy = other.clusterPolicy;
  shape.accessPolicy = other.accessPolicy;
  shape.memSyncDomain = other.memSyncDomain;
  shape.memSyncDomainMap = other.memSyncDomainMap;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
