// SPDX-License-Identifier: Apache-2.0
// Logs, atomics over links, banks of shared memory, arrays of special kinds,
// and what texture and surface objects are made of.
#include <cstring>

#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {

// --------------------------------------------------------------------- logs

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callbackFunc, void* userData,
                                     cudaLogsCallbackHandle* callback_out) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLogsRegisterCallback, reinterpret_cast<CUlogsCallback>(callbackFunc), userData,
                  reinterpret_cast<CUlogsCallbackHandle*>(callback_out));
}

cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLogsUnregisterCallback, reinterpret_cast<CUlogsCallbackHandle>(callback));
}

cudaError_t cudaLogsCurrent(cudaLogIterator* iterator_out, unsigned int flags) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLogsCurrent, iterator_out, flags);
}

cudaError_t cudaLogsDumpToFile(cudaLogIterator* iterator, const char* pathToFile, unsigned int flags) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLogsDumpToFile, iterator, pathToFile, flags);
}

cudaError_t cudaLogsDumpToMemory(cudaLogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLogsDumpToMemory, iterator, buffer, size, flags);
}

// ------------------------------------------------------------------- devices

cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int* capabilities, const enum cudaAtomicOperation* operations,
                                                unsigned int count, int device) {
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceGetHostAtomicCapabilities, capabilities,
                  reinterpret_cast<const CUatomicOperation*>(operations), count, device);
}

cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int* capabilities, const enum cudaAtomicOperation* operations,
                                               unsigned int count, int srcDevice, int dstDevice) {
  SONDE_TRY(checkDevice(srcDevice));
  SONDE_TRY(checkDevice(dstDevice));
  return SONDE_CU(cuDeviceGetP2PAtomicCapabilities, capabilities,
                  reinterpret_cast<const CUatomicOperation*>(operations), count, srcDevice, dstDevice);
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig* pConfig) {
  if (!pConfig) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUsharedconfig config{};
  SONDE_TRY(SONDE_CU(cuCtxGetSharedMemConfig, &config));
  *pConfig = static_cast<cudaSharedMemConfig>(config);
  return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxSetSharedMemConfig, static_cast<CUsharedconfig>(config));
}

cudaError_t cudaFuncSetSharedMemConfig(const void* func, enum cudaSharedMemConfig config) {
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  CUfunction function = nullptr;
  SONDE_TRY(SONDE_CU(cuKernelGetFunction, &function, kernel));
  return SONDE_CU(cuFuncSetSharedMemConfig, function, static_cast<CUsharedconfig>(config));
}

// -------------------------------------------------------------------- arrays

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements* memoryRequirements, cudaArray_t array,
                                           int device) {
  static_assert(sizeof(cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS));
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuArrayGetMemoryRequirements, reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(memoryRequirements),
                  driverArray(array), device);
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements* memoryRequirements,
                                                    cudaMipmappedArray_t mipmap, int device) {
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuMipmappedArrayGetMemoryRequirements,
                  reinterpret_cast<CUDA_ARRAY_MEMORY_REQUIREMENTS*>(memoryRequirements), driverArray(mipmap), device);
}

cudaError_t cudaArrayGetSparseProperties(struct cudaArraySparseProperties* sparseProperties, cudaArray_t array) {
  static_assert(sizeof(cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES));
  SONDE_TRY(initDriver());
  return SONDE_CU(cuArrayGetSparseProperties, reinterpret_cast<CUDA_ARRAY_SPARSE_PROPERTIES*>(sparseProperties),
                  driverArray(array));
}

cudaError_t cudaMipmappedArrayGetSparseProperties(struct cudaArraySparseProperties* sparseProperties,
                                                  cudaMipmappedArray_t mipmap) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuMipmappedArrayGetSparseProperties,
                  reinterpret_cast<CUDA_ARRAY_SPARSE_PROPERTIES*>(sparseProperties), driverArray(mipmap));
}

// ------------------------------------------------------ textures and surfaces

namespace {

cudaError_t fromDriverResource(const CUDA_RESOURCE_DESC& from, cudaResourceDesc* to) {
  *to = {};
  switch (static_cast<int>(from.resType)) {
    case CU_RESOURCE_TYPE_ARRAY:
      to->resType = cudaResourceTypeArray;
      to->res.array.array = reinterpret_cast<cudaArray_t>(from.res.array.hArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to->resType = cudaResourceTypeMipmappedArray;
      to->res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR:
      to->resType = cudaResourceTypeLinear;
      to->res.linear.devPtr = reinterpret_cast<void*>(from.res.linear.devPtr);
      to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      return fromArrayFormat(from.res.linear.format, from.res.linear.numChannels, &to->res.linear.desc);
    case CU_RESOURCE_TYPE_PITCH2D:
      to->resType = cudaResourceTypePitch2D;
      to->res.pitch2D.devPtr = reinterpret_cast<void*>(from.res.pitch2D.devPtr);
      to->res.pitch2D.width = from.res.pitch2D.width;
      to->res.pitch2D.height = from.res.pitch2D.height;
      to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      return fromArrayFormat(from.res.pitch2D.format, from.res.pitch2D.numChannels, &to->res.pitch2D.desc);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc* pResDesc, cudaTextureObject_t texObject) {
  if (!pResDesc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_RESOURCE_DESC from{};
  SONDE_TRY(SONDE_CU(cuTexObjectGetResourceDesc, &from, texObject));
  return fromDriverResource(from, pResDesc);
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc* pResDesc, cudaSurfaceObject_t surfObject) {
  if (!pResDesc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_RESOURCE_DESC from{};
  SONDE_TRY(SONDE_CU(cuSurfObjectGetResourceDesc, &from, surfObject));
  return fromDriverResource(from, pResDesc);
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc* pTexDesc, cudaTextureObject_t texObject) {
  if (!pTexDesc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_TEXTURE_DESC from{};
  SONDE_TRY(SONDE_CU(cuTexObjectGetTextureDesc, &from, texObject));
  cudaTextureDesc to{};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<cudaTextureAddressMode>(from.addressMode[i]);
  to.filterMode = static_cast<cudaTextureFilterMode>(from.filterMode);
  to.readMode = from.flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  to.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  to.sRGB = (from.flags & CU_TRSF_SRGB) != 0;
  to.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  to.seamlessCubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<cudaTextureFilterMode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  *pTexDesc = to;
  return cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc* pResViewDesc,
                                                 cudaTextureObject_t texObject) {
  static_assert(sizeof(cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC));
  if (!pResViewDesc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuTexObjectGetResourceViewDesc, reinterpret_cast<CUDA_RESOURCE_VIEW_DESC*>(pResViewDesc), texObject);
}

}  // namespace sonde::cudart::impl
