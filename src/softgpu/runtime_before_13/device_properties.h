// SPDX-License-Identifier: Apache-2.0
//
// cudaDeviceProp as CUDA 12 has it; that of CUDA 11 is its beginning.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>

namespace sonde::cudart {

struct OldDeviceProperties {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned int luidDeviceNodeMask;
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  size_t totalConstMem;
  int major, minor;
  size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
  int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2], maxTexture2DMipmap[2];
  int maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
  int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
  int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3];
  int maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount;
  int unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported;
  int singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
  int canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch;
  size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor;
  int accessPolicyMaxWindowSize;
  size_t reservedSharedMemPerBlock;
  // From here on CUDA 12.
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned int gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned int memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
  int reserved[63];
};
static_assert(sizeof(OldDeviceProperties) == 1032);

// Fills it from the current library's structure and the device's attributes;
// find(name): a function of that library.
inline cudaError_t describeDevice(int device, void* (*find)(const char*), OldDeviceProperties& p) {
  auto* properties = reinterpret_cast<cudaError_t (*)(cudaDeviceProp*, int)>(find("cudaGetDeviceProperties"));
  auto* attribute = reinterpret_cast<cudaError_t (*)(int*, cudaDeviceAttr, int)>(find("cudaDeviceGetAttribute"));
  if (!properties || !attribute) return cudaErrorNotSupported;
  cudaDeviceProp now{};
  if (const cudaError_t e = properties(&now, device)) return e;
  std::memset(&p, 0, sizeof p);
#define SONDE_SAME(field) std::memcpy(&p.field, &now.field, sizeof p.field)
  SONDE_SAME(name);
  SONDE_SAME(uuid);
  SONDE_SAME(luid);
  SONDE_SAME(luidDeviceNodeMask);
  SONDE_SAME(totalGlobalMem);
  SONDE_SAME(sharedMemPerBlock);
  SONDE_SAME(regsPerBlock);
  SONDE_SAME(warpSize);
  SONDE_SAME(memPitch);
  SONDE_SAME(maxThreadsPerBlock);
  SONDE_SAME(maxThreadsDim);
  SONDE_SAME(maxGridSize);
  SONDE_SAME(totalConstMem);
  SONDE_SAME(major);
  SONDE_SAME(minor);
  SONDE_SAME(textureAlignment);
  SONDE_SAME(texturePitchAlignment);
  SONDE_SAME(multiProcessorCount);
  SONDE_SAME(integrated);
  SONDE_SAME(canMapHostMemory);
  SONDE_SAME(maxTexture1D);
  SONDE_SAME(maxTexture1DMipmap);
  SONDE_SAME(maxTexture2D);
  SONDE_SAME(maxTexture2DMipmap);
  SONDE_SAME(maxTexture2DLinear);
  SONDE_SAME(maxTexture2DGather);
  SONDE_SAME(maxTexture3D);
  SONDE_SAME(maxTexture3DAlt);
  SONDE_SAME(maxTextureCubemap);
  SONDE_SAME(maxTexture1DLayered);
  SONDE_SAME(maxTexture2DLayered);
  SONDE_SAME(maxTextureCubemapLayered);
  SONDE_SAME(maxSurface1D);
  SONDE_SAME(maxSurface2D);
  SONDE_SAME(maxSurface3D);
  SONDE_SAME(maxSurface1DLayered);
  SONDE_SAME(maxSurface2DLayered);
  SONDE_SAME(maxSurfaceCubemap);
  SONDE_SAME(maxSurfaceCubemapLayered);
  SONDE_SAME(surfaceAlignment);
  SONDE_SAME(concurrentKernels);
  SONDE_SAME(ECCEnabled);
  SONDE_SAME(pciBusID);
  SONDE_SAME(pciDeviceID);
  SONDE_SAME(pciDomainID);
  SONDE_SAME(tccDriver);
  SONDE_SAME(asyncEngineCount);
  SONDE_SAME(unifiedAddressing);
  SONDE_SAME(memoryBusWidth);
  SONDE_SAME(l2CacheSize);
  SONDE_SAME(persistingL2CacheMaxSize);
  SONDE_SAME(maxThreadsPerMultiProcessor);
  SONDE_SAME(streamPrioritiesSupported);
  SONDE_SAME(globalL1CacheSupported);
  SONDE_SAME(localL1CacheSupported);
  SONDE_SAME(sharedMemPerMultiprocessor);
  SONDE_SAME(regsPerMultiprocessor);
  SONDE_SAME(managedMemory);
  SONDE_SAME(isMultiGpuBoard);
  SONDE_SAME(multiGpuBoardGroupID);
  SONDE_SAME(hostNativeAtomicSupported);
  SONDE_SAME(pageableMemoryAccess);
  SONDE_SAME(concurrentManagedAccess);
  SONDE_SAME(computePreemptionSupported);
  SONDE_SAME(canUseHostPointerForRegisteredMem);
  SONDE_SAME(cooperativeLaunch);
  SONDE_SAME(sharedMemPerBlockOptin);
  SONDE_SAME(pageableMemoryAccessUsesHostPageTables);
  SONDE_SAME(directManagedMemAccessFromHost);
  SONDE_SAME(maxBlocksPerMultiProcessor);
  SONDE_SAME(accessPolicyMaxWindowSize);
  SONDE_SAME(reservedSharedMemPerBlock);
  SONDE_SAME(hostRegisterSupported);
  SONDE_SAME(sparseCudaArraySupported);
  SONDE_SAME(hostRegisterReadOnlySupported);
  SONDE_SAME(timelineSemaphoreInteropSupported);
  SONDE_SAME(memoryPoolsSupported);
  SONDE_SAME(gpuDirectRDMASupported);
  SONDE_SAME(gpuDirectRDMAFlushWritesOptions);
  SONDE_SAME(gpuDirectRDMAWritesOrdering);
  SONDE_SAME(memoryPoolSupportedHandleTypes);
  SONDE_SAME(deferredMappingCudaArraySupported);
  SONDE_SAME(ipcEventSupported);
  SONDE_SAME(clusterLaunch);
  SONDE_SAME(unifiedFunctionPointers);
#undef SONDE_SAME
  // What is an attribute only, now.
  const struct {
    int* to;
    cudaDeviceAttr which;
  } asked[] = {{&p.clockRate, cudaDevAttrClockRate},
               {&p.memoryClockRate, cudaDevAttrMemoryClockRate},
               {&p.kernelExecTimeoutEnabled, cudaDevAttrKernelExecTimeout},
               {&p.computeMode, cudaDevAttrComputeMode},
               {&p.deviceOverlap, cudaDevAttrGpuOverlap},
               {&p.maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth},
               {&p.singleToDoublePrecisionPerfRatio, cudaDevAttrSingleToDoublePrecisionPerfRatio}};
  for (const auto& a : asked)
    if (attribute(a.to, a.which, device) != cudaSuccess) *a.to = 0;
  return cudaSuccess;
}

}  // namespace sonde::cudart
