/* SPDX-License-Identifier: Apache-2.0
 *
 * Occupancy for C++: kernels by name, and the search for a block size.
 * Included by cuda_runtime.h.
 */
#ifndef SONDE_SOFTGPU_CUDA_RUNTIME_OCCUPANCY_H_
#define SONDE_SOFTGPU_CUDA_RUNTIME_OCCUPANCY_H_

#include "cuda_runtime_api.h"

#if defined(__cplusplus)

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, T func, int blockSize,
                                                                                 size_t dynamicSMemSize) {
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, reinterpret_cast<const void*>(func),
                                                                  blockSize, dynamicSMemSize, cudaOccupancyDefault);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, T func,
                                                                                          int blockSize,
                                                                                          size_t dynamicSMemSize,
                                                                                          unsigned int flags) {
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, reinterpret_cast<const void*>(func),
                                                                  blockSize, dynamicSMemSize, flags);
}

/** The block size with most resident threads, largest first on a tie, and the
 * grid that fills the device with it. sharedFor(blockSize) is the dynamic
 * shared memory a block of that size needs. blockSizeLimit 0: no limit. */
template <class SharedFor, class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
    int* minGridSize, int* blockSize, T func, SharedFor sharedFor, int blockSizeLimit = 0, unsigned int flags = 0) {
  if (!minGridSize || !blockSize || !func) return cudaErrorInvalidValue;
  int device = 0, threadsPerSm = 0, warp = 0, perBlock = 0, sms = 0;
  struct cudaFuncAttributes attributes;
  cudaError_t error = ::cudaGetDevice(&device);
  if (!error) error = ::cudaDeviceGetAttribute(&threadsPerSm, cudaDevAttrMaxThreadsPerMultiProcessor, device);
  if (!error) error = ::cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device);
  if (!error) error = ::cudaDeviceGetAttribute(&perBlock, cudaDevAttrMaxThreadsPerBlock, device);
  if (!error) error = ::cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (!error) error = ::cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(func));
  if (error) return error;

  int limit = perBlock < attributes.maxThreadsPerBlock ? perBlock : attributes.maxThreadsPerBlock;
  if (blockSizeLimit > 0 && blockSizeLimit < limit) limit = blockSizeLimit;
  int bestThreads = 0, bestSize = 0, bestBlocks = 0;
  // Whole warps from the largest down; the limit itself comes first even when it is no multiple.
  for (int rounded = (limit + warp - 1) / warp * warp; rounded > 0; rounded -= warp) {
    const int size = rounded < limit ? rounded : limit;
    int blocks = 0;
    error = ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, reinterpret_cast<const void*>(func), size,
                                                                     sharedFor(size), flags);
    if (error) return error;
    if (blocks * size > bestThreads) {
      bestThreads = blocks * size;
      bestSize = size;
      bestBlocks = blocks;
    }
    if (bestThreads == threadsPerSm) break;
  }
  *minGridSize = bestBlocks * sms;
  *blockSize = bestSize;
  return cudaSuccess;
}

template <class SharedFor, class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* minGridSize, int* blockSize,
                                                                                  T func, SharedFor sharedFor,
                                                                                  int blockSizeLimit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(minGridSize, blockSize, func, sharedFor,
                                                                 blockSizeLimit, cudaOccupancyDefault);
}

namespace sonde_detail {
// The same dynamic shared memory for every block size.
struct FixedShared {
  size_t bytes;
  size_t operator()(int) const { return bytes; }
};
}  // namespace sonde_detail

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, T func,
                                                                               size_t dynamicSMemSize = 0,
                                                                               int blockSizeLimit = 0,
                                                                               unsigned int flags = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
      minGridSize, blockSize, func, sonde_detail::FixedShared{dynamicSMemSize}, blockSizeLimit, flags);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, T func,
                                                                      size_t dynamicSMemSize = 0,
                                                                      int blockSizeLimit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func, dynamicSMemSize, blockSizeLimit,
                                                     cudaOccupancyDefault);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, T* func,
                                                                             int numBlocks, int blockSize) {
  return ::cudaOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, reinterpret_cast<const void*>(func), numBlocks,
                                                     blockSize);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxPotentialClusterSize(int* clusterSize, T* func,
                                                                        const cudaLaunchConfig_t* config) {
  return ::cudaOccupancyMaxPotentialClusterSize(clusterSize, reinterpret_cast<const void*>(func), config);
}

template <class T>
static inline __host__ cudaError_t cudaOccupancyMaxActiveClusters(int* numClusters, T* func,
                                                                  const cudaLaunchConfig_t* config) {
  return ::cudaOccupancyMaxActiveClusters(numClusters, reinterpret_cast<const void*>(func), config);
}

#endif /* __cplusplus */

#endif /* SONDE_SOFTGPU_CUDA_RUNTIME_OCCUPANCY_H_ */
