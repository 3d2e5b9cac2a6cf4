/* SPDX-License-Identifier: Apache-2.0
 *
 * Forms of runtime functions that CUDA 13 took away, as overloads: for sources
 * written before, compiled with -DSONDE_CUDA_SOURCE_VERSION=12000. Included by
 * cuda_runtime.h.
 */
#ifndef SONDE_SOFTGPU_CUDA_RUNTIME_BEFORE_13_H_
#define SONDE_SOFTGPU_CUDA_RUNTIME_BEFORE_13_H_

#include "cuda_runtime_api.h"

#if defined(__cplusplus)

namespace sonde_detail {
// A device, or cudaCpuDeviceId for the host.
inline cudaMemLocation locationOf(int device) {
  cudaMemLocation location = {};
  location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return location;
}
}  // namespace sonde_detail

static inline __host__ cudaError_t cudaMemAdvise(const void* devPtr, size_t count, cudaMemoryAdvise advice,
                                                 int device) {
  return ::cudaMemAdvise(devPtr, count, advice, sonde_detail::locationOf(device));
}

static inline __host__ cudaError_t cudaMemPrefetchAsync(const void* devPtr, size_t count, int dstDevice,
                                                        cudaStream_t stream = 0) {
  return ::cudaMemPrefetchAsync(devPtr, count, sonde_detail::locationOf(dstDevice), 0, stream);
}

static inline __host__ cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                                     size_t* numEdges) {
  return ::cudaGraphGetEdges(graph, from, to, nullptr, numEdges);
}

static inline __host__ cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                                                size_t* numDependencies) {
  return ::cudaGraphNodeGetDependencies(node, dependencies, nullptr, numDependencies);
}

static inline __host__ cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                                                  size_t* numDependents) {
  return ::cudaGraphNodeGetDependentNodes(node, dependents, nullptr, numDependents);
}

static inline __host__ cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                            const cudaGraphNode_t* to, size_t numDependencies) {
  return ::cudaGraphAddDependencies(graph, from, to, nullptr, numDependencies);
}

static inline __host__ cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                               const cudaGraphNode_t* to, size_t numDependencies) {
  return ::cudaGraphRemoveDependencies(graph, from, to, nullptr, numDependencies);
}

static inline __host__ cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                    const cudaGraphNode_t* dependencies, size_t numDependencies,
                                                    cudaGraphNodeParams* parameters) {
  return ::cudaGraphAddNode(node, graph, dependencies, nullptr, numDependencies, parameters);
}

/* Whole-thread names of before CUDA 4, which lived until 12. */
static inline __host__ cudaError_t cudaThreadSynchronize() { return ::cudaDeviceSynchronize(); }
static inline __host__ cudaError_t cudaThreadExit() { return ::cudaDeviceReset(); }
static inline __host__ cudaError_t cudaThreadGetLimit(size_t* value, cudaLimit limit) {
  return ::cudaDeviceGetLimit(value, limit);
}
static inline __host__ cudaError_t cudaThreadSetLimit(cudaLimit limit, size_t value) {
  return ::cudaDeviceSetLimit(limit, value);
}
static inline __host__ cudaError_t cudaThreadGetCacheConfig(cudaFuncCache* config) {
  return ::cudaDeviceGetCacheConfig(config);
}
static inline __host__ cudaError_t cudaThreadSetCacheConfig(cudaFuncCache config) {
  return ::cudaDeviceSetCacheConfig(config);
}

#endif /* __cplusplus */

#endif /* SONDE_SOFTGPU_CUDA_RUNTIME_BEFORE_13_H_ */
