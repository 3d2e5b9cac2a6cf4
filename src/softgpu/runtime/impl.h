// SPDX-License-Identifier: Apache-2.0
// Shared by the files that implement runtime functions. The functions stand in
// namespace sonde::cudart::impl under their public names; entries_generated.cpp
// exports them.
#ifndef SONDE_SOFTGPU_RUNTIME_IMPL_H_
#define SONDE_SOFTGPU_RUNTIME_IMPL_H_

#include "softgpu/runtime/entry.h"

namespace sonde::cudart {

inline CUdeviceptr devicePointer(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// The array of a runtime array handle: the same object, another type.
inline CUarray driverArray(cudaArray_const_t array) { return reinterpret_cast<CUarray>(const_cast<cudaArray*>(array)); }
inline CUmipmappedArray driverArray(cudaMipmappedArray_const_t array) {
  return reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray*>(array));
}

// Element formats. cudaErrorInvalidChannelDescriptor: no such format.
cudaError_t toArrayFormat(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels);
cudaError_t fromArrayFormat(CUarray_format format, unsigned channels, cudaChannelFormatDesc* desc);
// Bytes of one element of an array.
cudaError_t arrayElementSize(CUarray array, size_t* size);

// A runtime 3D copy as the driver wants it.
cudaError_t toDriverCopy(const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to);

// The address of `count` bytes of a variable, from byte `offset` on.
cudaError_t symbolRange(const void* symbol, size_t count, size_t offset, void** address);

// A kernel from what the caller names it by; creates the context if need be.
cudaError_t resolveKernel(const void* function, CUkernel* kernel);
// Occupancy and launches accept a CUkernel in place of a CUfunction.
inline CUfunction asFunction(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

// Used by other files than their own.
namespace impl {
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src, size_t count,
                                           enum cudaMemcpyKind kind);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst,
                                               const void* src, size_t count, enum cudaMemcpyKind kind);
}  // namespace impl

}  // namespace sonde::cudart

#endif  // SONDE_SOFTGPU_RUNTIME_IMPL_H_
