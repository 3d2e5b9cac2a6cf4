// SPDX-License-Identifier: Apache-2.0
// Many copies, prefetches and discards in one call; pools by location. The
// structures have the driver's layouts.
#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {

static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
static_assert(sizeof(cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

namespace {

CUmemLocation* locations(cudaMemLocation* list) { return reinterpret_cast<CUmemLocation*>(list); }
// The driver's functions take lists that they do not change without saying so.
CUdeviceptr* addresses(void** list) { return reinterpret_cast<CUdeviceptr*>(list); }
CUdeviceptr* addresses(void* const* list) { return addresses(const_cast<void**>(list)); }
CUdeviceptr* addresses(const void* const* list) { return addresses(const_cast<void**>(list)); }

}  // namespace

cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs, const size_t* sizes, size_t count,
                                 struct cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
                                 cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemcpyBatchAsync, addresses(dsts), addresses(srcs), const_cast<size_t*>(sizes), count,
                  reinterpret_cast<CUmemcpyAttributes*>(attrs), attrsIdxs, numAttrs, stream);
}

cudaError_t cudaMemcpy3DBatchAsync(size_t numOps, struct cudaMemcpy3DBatchOp* opList, unsigned long long flags,
                                   cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemcpy3DBatchAsync, numOps, reinterpret_cast<CUDA_MEMCPY3D_BATCH_OP*>(opList), flags, stream);
}

cudaError_t cudaMemPrefetchBatchAsync(void** dptrs, size_t* sizes, size_t count, struct cudaMemLocation* prefetchLocs,
                                      size_t* prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                      cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPrefetchBatchAsync, addresses(dptrs), sizes, count, locations(prefetchLocs), prefetchLocIdxs,
                  numPrefetchLocs, flags, stream);
}

cudaError_t cudaMemDiscardBatchAsync(void** dptrs, size_t* sizes, size_t count, unsigned long long flags,
                                     cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemDiscardBatchAsync, addresses(dptrs), sizes, count, flags, stream);
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** dptrs, size_t* sizes, size_t count,
                                                struct cudaMemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                                size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemDiscardAndPrefetchBatchAsync, addresses(dptrs), sizes, count, locations(prefetchLocs),
                  prefetchLocIdxs, numPrefetchLocs, flags, stream);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* memPool, struct cudaMemLocation* location,
                                     enum cudaMemAllocationType type) {
  if (!memPool) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuMemGetDefaultMemPool, memPool, locations(location), static_cast<CUmemAllocationType>(type));
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* memPool, struct cudaMemLocation* location,
                              enum cudaMemAllocationType type) {
  if (!memPool) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuMemGetMemPool, memPool, locations(location), static_cast<CUmemAllocationType>(type));
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation* location, enum cudaMemAllocationType type,
                              cudaMemPool_t memPool) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuMemSetMemPool, locations(location), static_cast<CUmemAllocationType>(type), memPool);
}

}  // namespace sonde::cudart::impl
