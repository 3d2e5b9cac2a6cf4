/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA runtime for C++: cuda_runtime_api.h and the overloads that take
 * typed pointers, kernels and device variables. Everything here forwards to
 * the C function of the same name; see there for meaning and errors.
 */
#ifndef __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_H__

#include "builtin_types.h"
#include "channel_descriptor.h"
#include "crt/host_config.h"
#include "crt/host_defines.h"
#include "cuda_runtime_api.h"
#include "driver_functions.h"
#include "library_types.h"
#include "vector_functions.h"

#if defined(__cplusplus)

#if defined(__CUDA__) && defined(__clang__)
/* Libraries ask CUDA_VERSION for the version of a clang that compiles CUDA. */
#include "cuda.h"
#endif

#if defined(__CUDA__) || defined(__CUDACC__)
/* Programs rely on these coming with the language of kernels; clang's <new> needs malloc. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#endif

#if defined(__CUDA__) || defined(__CUDACC__)
/* What clang calls for the configuration in <<<…>>>. */
extern "C" unsigned int __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem = 0,
                                                    struct CUstream_st* stream = 0);
#endif

#include <utility>

#include "cuda_runtime_occupancy.h"

/* ---------------------------------------------------------------- launches -- */

template <class T>
static inline __host__ cudaError_t cudaLaunchKernel(T* func, dim3 gridDim, dim3 blockDim, void** args,
                                                    size_t sharedMem = 0, cudaStream_t stream = 0) {
  return ::cudaLaunchKernel(reinterpret_cast<const void*>(func), gridDim, blockDim, args, sharedMem, stream);
}

template <class T>
static inline __host__ cudaError_t cudaLaunchCooperativeKernel(T* func, dim3 gridDim, dim3 blockDim, void** args,
                                                               size_t sharedMem = 0, cudaStream_t stream = 0) {
  return ::cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(func), gridDim, blockDim, args, sharedMem, stream);
}

namespace sonde_detail {
// The arguments, converted to the kernel's parameter types, live for the call.
template <class... Parameters>
inline cudaError_t launchWith(const cudaLaunchConfig_t* config, const void* kernel, Parameters... parameters) {
  void* pointers[sizeof...(Parameters) + 1] = {const_cast<void*>(static_cast<const volatile void*>(&parameters))...,
                                               nullptr};
  return ::cudaLaunchKernelExC(config, kernel, pointers);
}
}  // namespace sonde_detail

template <typename... Parameters, typename... Arguments>
static inline __host__ cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                                                      Arguments&&... args) {
  return sonde_detail::launchWith<Parameters...>(config, reinterpret_cast<const void*>(kernel),
                                                 static_cast<Parameters>(std::forward<Arguments>(args))...);
}

/** A library's kernel: the arguments must have exactly the parameters' types. */
template <typename... Arguments>
static inline __host__ cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, const cudaKernel_t kernel,
                                                      Arguments&&... args) {
  return sonde_detail::launchWith<std::decay_t<Arguments>...>(config, static_cast<const void*>(kernel),
                                                              std::forward<Arguments>(args)...);
}

/* ------------------------------------------------------------------ events -- */

static inline __host__ cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
  return ::cudaEventCreateWithFlags(event, flags);
}

/* ------------------------------------------------------------------ memory -- */

static inline __host__ cudaError_t cudaMallocHost(void** ptr, size_t size, unsigned int flags) {
  return ::cudaHostAlloc(ptr, size, flags);
}

template <class T>
static inline __host__ cudaError_t cudaMalloc(T** devPtr, size_t size) {
  return ::cudaMalloc((void**)(devPtr), size);
}

template <class T>
static inline __host__ cudaError_t cudaMallocHost(T** ptr, size_t size, unsigned int flags = 0) {
  return ::cudaHostAlloc((void**)(ptr), size, flags);
}

template <class T>
static inline __host__ cudaError_t cudaHostAlloc(T** ptr, size_t size, unsigned int flags) {
  return ::cudaHostAlloc((void**)(ptr), size, flags);
}

template <class T>
static inline __host__ cudaError_t cudaHostGetDevicePointer(T** pDevice, void* pHost, unsigned int flags) {
  return ::cudaHostGetDevicePointer((void**)(pDevice), pHost, flags);
}

template <class T>
static inline __host__ cudaError_t cudaMallocManaged(T** devPtr, size_t size,
                                                     unsigned int flags = cudaMemAttachGlobal) {
  return ::cudaMallocManaged((void**)(devPtr), size, flags);
}

template <class T>
static inline __host__ cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T* devPtr, size_t length = 0,
                                                            unsigned int flags = cudaMemAttachSingle) {
  return ::cudaStreamAttachMemAsync(stream, static_cast<void*>(devPtr), length, flags);
}

template <class T>
static inline __host__ cudaError_t cudaMallocPitch(T** devPtr, size_t* pitch, size_t width, size_t height) {
  return ::cudaMallocPitch((void**)(devPtr), pitch, width, height);
}

static inline __host__ cudaError_t cudaMallocAsync(void** ptr, size_t size, cudaMemPool_t memPool,
                                                   cudaStream_t stream) {
  return ::cudaMallocFromPoolAsync(ptr, size, memPool, stream);
}

template <class T>
static inline __host__ cudaError_t cudaMallocAsync(T** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream) {
  return ::cudaMallocFromPoolAsync((void**)(ptr), size, memPool, stream);
}

template <class T>
static inline __host__ cudaError_t cudaMallocAsync(T** ptr, size_t size, cudaStream_t stream) {
  return ::cudaMallocAsync((void**)(ptr), size, stream);
}

template <class T>
static inline __host__ cudaError_t cudaMallocFromPoolAsync(T** ptr, size_t size, cudaMemPool_t memPool,
                                                           cudaStream_t stream) {
  return ::cudaMallocFromPoolAsync((void**)(ptr), size, memPool, stream);
}

template <class T, class U>
static inline __host__ cudaError_t cudaMemcpyBatchAsync(T* const* dsts, U* const* srcs, const size_t* sizes,
                                                        size_t count, struct cudaMemcpyAttributes* attrs,
                                                        size_t* attrsIdxs, size_t numAttrs, cudaStream_t stream) {
  return ::cudaMemcpyBatchAsync(const_cast<void* const*>(reinterpret_cast<const void* const*>(dsts)),
                                reinterpret_cast<const void* const*>(srcs), sizes, count, attrs, attrsIdxs, numAttrs,
                                stream);
}

/** One set of attributes for all copies. */
template <class T, class U>
static inline __host__ cudaError_t cudaMemcpyBatchAsync(T* const* dsts, U* const* srcs, const size_t* sizes,
                                                        size_t count, struct cudaMemcpyAttributes attr,
                                                        cudaStream_t stream) {
  size_t first = 0;
  return cudaMemcpyBatchAsync(dsts, srcs, sizes, count, &attr, &first, 1, stream);
}

template <class T>
static inline __host__ cudaError_t cudaMemPrefetchBatchAsync(T** dptrs, size_t* sizes, size_t count,
                                                             struct cudaMemLocation* prefetchLocs,
                                                             size_t* prefetchLocIdxs, size_t numPrefetchLocs,
                                                             unsigned long long flags, cudaStream_t stream) {
  return ::cudaMemPrefetchBatchAsync((void**)(dptrs), sizes, count, prefetchLocs, prefetchLocIdxs,
                                     numPrefetchLocs, flags, stream);
}

/** One location for all ranges. */
template <class T>
static inline __host__ cudaError_t cudaMemPrefetchBatchAsync(T** dptrs, size_t* sizes, size_t count,
                                                             struct cudaMemLocation prefetchLocs,
                                                             unsigned long long flags, cudaStream_t stream) {
  size_t first = 0;
  return ::cudaMemPrefetchBatchAsync((void**)(dptrs), sizes, count, &prefetchLocs, &first, 1, flags,
                                     stream);
}

/* ---------------------------------------------------------------- libraries -- */

template <class T>
static inline __host__ cudaError_t cudaLibraryGetGlobal(T** dptr, size_t* bytes, cudaLibrary_t library,
                                                        const char* name) {
  return ::cudaLibraryGetGlobal((void**)(dptr), bytes, library, name);
}

template <class T>
static inline __host__ cudaError_t cudaLibraryGetManaged(T** dptr, size_t* bytes, cudaLibrary_t library,
                                                         const char* name) {
  return ::cudaLibraryGetManaged((void**)(dptr), bytes, library, name);
}

template <class T>
static inline __host__ cudaError_t cudaLibraryGetUnifiedFunction(T** fptr, cudaLibrary_t library, const char* symbol) {
  return ::cudaLibraryGetUnifiedFunction((void**)(fptr), library, symbol);
}

/* ------------------------------------------------------------------- graphs -- */

/** The form of before CUDA 12, with a log that this one leaves empty. */
static inline __host__ cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                                        cudaGraphNode_t* pErrorNode, char* pLogBuffer,
                                                        size_t bufferSize) {
  if (pErrorNode) *pErrorNode = 0;
  if (pLogBuffer && bufferSize) pLogBuffer[0] = 0;
  return ::cudaGraphInstantiate(pGraphExec, graph, 0);
}

#include "cuda_runtime_symbols.h"

#if defined(SONDE_CUDA_SOURCE_VERSION) && SONDE_CUDA_SOURCE_VERSION < 13000
#include "cuda_runtime_before_13.h"
#endif

#endif /* __cplusplus */

/* The language of kernels: built-in variables, device functions. */
#if (defined(__CUDA__) || defined(__CUDACC__)) && defined(__has_include)
#if __has_include("sonde_device.h")
#include "sonde_device.h"
#endif
#endif

#endif /* __CUDA_RUNTIME_H__ */
