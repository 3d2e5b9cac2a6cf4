/* SPDX-License-Identifier: Apache-2.0
 *
 * Device variables and kernels by their C++ names: for code compiled as CUDA,
 * where a name in host code stands for the device's object. Included by
 * cuda_runtime.h.
 */
#ifndef SONDE_SOFTGPU_CUDA_RUNTIME_SYMBOLS_H_
#define SONDE_SOFTGPU_CUDA_RUNTIME_SYMBOLS_H_

#include "cuda_runtime_api.h"

#if defined(__cplusplus) && (defined(__CUDACC__) || defined(__CUDA__))

namespace sonde_detail {
// The host-side shadow whose address was registered for the variable.
template <class T>
inline const void* symbolOf(const T& symbol) {
  return reinterpret_cast<const void*>(&const_cast<char&>(reinterpret_cast<const volatile char&>(symbol)));
}
}  // namespace sonde_detail

template <class T>
static inline __host__ cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* src, size_t count, size_t offset = 0,
                                                      enum cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return ::cudaMemcpyToSymbol(sonde_detail::symbolOf(symbol), src, count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* src, size_t count,
                                                           size_t offset = 0,
                                                           enum cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                                           cudaStream_t stream = 0) {
  return ::cudaMemcpyToSymbolAsync(sonde_detail::symbolOf(symbol), src, count, offset, kind, stream);
}

template <class T>
static inline __host__ cudaError_t cudaMemcpyFromSymbol(void* dst, const T& symbol, size_t count, size_t offset = 0,
                                                        enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return ::cudaMemcpyFromSymbol(dst, sonde_detail::symbolOf(symbol), count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const T& symbol, size_t count,
                                                             size_t offset = 0,
                                                             enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                                             cudaStream_t stream = 0) {
  return ::cudaMemcpyFromSymbolAsync(dst, sonde_detail::symbolOf(symbol), count, offset, kind, stream);
}

template <class T>
static inline __host__ cudaError_t cudaGetSymbolAddress(void** devPtr, const T& symbol) {
  return ::cudaGetSymbolAddress(devPtr, sonde_detail::symbolOf(symbol));
}

template <class T>
static inline __host__ cudaError_t cudaGetSymbolSize(size_t* size, const T& symbol) {
  return ::cudaGetSymbolSize(size, sonde_detail::symbolOf(symbol));
}

template <class T>
static inline __host__ cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                                                  const cudaGraphNode_t* pDependencies,
                                                                  size_t numDependencies, const T& symbol,
                                                                  const void* src, size_t count, size_t offset,
                                                                  enum cudaMemcpyKind kind) {
  return ::cudaGraphAddMemcpyNodeToSymbol(pGraphNode, graph, pDependencies, numDependencies,
                                          sonde_detail::symbolOf(symbol), src, count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                                                    const cudaGraphNode_t* pDependencies,
                                                                    size_t numDependencies, void* dst, const T& symbol,
                                                                    size_t count, size_t offset,
                                                                    enum cudaMemcpyKind kind) {
  return ::cudaGraphAddMemcpyNodeFromSymbol(pGraphNode, graph, pDependencies, numDependencies, dst,
                                            sonde_detail::symbolOf(symbol), count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const T& symbol,
                                                                        const void* src, size_t count, size_t offset,
                                                                        enum cudaMemcpyKind kind) {
  return ::cudaGraphMemcpyNodeSetParamsToSymbol(node, sonde_detail::symbolOf(symbol), src, count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* dst,
                                                                          const T& symbol, size_t count, size_t offset,
                                                                          enum cudaMemcpyKind kind) {
  return ::cudaGraphMemcpyNodeSetParamsFromSymbol(node, dst, sonde_detail::symbolOf(symbol), count, offset, kind);
}

template <class T>
static inline __host__ cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                                            const T& symbol, const void* src,
                                                                            size_t count, size_t offset,
                                                                            enum cudaMemcpyKind kind) {
  return ::cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, node, sonde_detail::symbolOf(symbol), src, count, offset,
                                                    kind);
}

template <class T>
static inline __host__ cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec,
                                                                              cudaGraphNode_t node, void* dst,
                                                                              const T& symbol, size_t count,
                                                                              size_t offset, enum cudaMemcpyKind kind) {
  return ::cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, node, dst, sonde_detail::symbolOf(symbol), count, offset,
                                                      kind);
}

/** The form of before CUDA 12: the node that stands in the way, and why. */
static inline __host__ cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                                       cudaGraphNode_t* hErrorNode_out,
                                                       enum cudaGraphExecUpdateResult* updateResult_out) {
  cudaGraphExecUpdateResultInfo info = {};
  const cudaError_t error = ::cudaGraphExecUpdate(hGraphExec, hGraph, &info);
  if (hErrorNode_out) *hErrorNode_out = info.errorNode;
  if (updateResult_out) *updateResult_out = info.result;
  return error;
}

/** An object on the heap that the graph deletes when no reference is left. */
template <class T>
static inline __host__ cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, T* objectToWrap,
                                                        unsigned int initialRefcount, unsigned int flags) {
  return ::cudaUserObjectCreate(
      object_out, objectToWrap, [](void* object) { delete static_cast<T*>(object); }, initialRefcount, flags);
}

template <class T>
static inline __host__ cudaError_t cudaUserObjectCreate(cudaUserObject_t* object_out, T* objectToWrap,
                                                        unsigned int initialRefcount, cudaUserObjectFlags flags) {
  return cudaUserObjectCreate(object_out, objectToWrap, initialRefcount, static_cast<unsigned int>(flags));
}

template <class T>
static inline __host__ cudaError_t cudaFuncSetCacheConfig(T* func, enum cudaFuncCache cacheConfig) {
  return ::cudaFuncSetCacheConfig(reinterpret_cast<const void*>(func), cacheConfig);
}

template <class T>
static inline __host__ cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attr, T* entry) {
  return ::cudaFuncGetAttributes(attr, reinterpret_cast<const void*>(entry));
}

template <class T>
static inline __host__ cudaError_t cudaFuncSetAttribute(T* func, enum cudaFuncAttribute attr, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(func), attr, value);
}

template <class T>
static inline __host__ cudaError_t cudaFuncGetName(const char** name, T* func) {
  return ::cudaFuncGetName(name, reinterpret_cast<const void*>(func));
}

template <class T>
static inline __host__ cudaError_t cudaGetKernel(cudaKernel_t* kernelPtr, T* func) {
  return ::cudaGetKernel(kernelPtr, reinterpret_cast<const void*>(func));
}

#endif /* __CUDACC__ */

#endif /* SONDE_SOFTGPU_CUDA_RUNTIME_SYMBOLS_H_ */
