// SPDX-License-Identifier: Apache-2.0
// Devices: choosing one, its attributes and properties, limits, peers, version.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {
namespace {

// SONDE_CUDA_VERSION=12.9: the toolkit that libcudart and libcupti say they belong to.
int reportedVersion() {
  const char* text = std::getenv("SONDE_CUDA_VERSION");
  int major = 0, minor = 0;
  char rest = 0;
  if (text == nullptr || std::sscanf(text, "%d.%d%c", &major, &minor, &rest) != 2 || major < 5 || minor < 0 ||
      minor > 9)
    return CUDART_VERSION;
  return std::min(major * 1000 + minor * 10, CUDART_VERSION);
}

}  // namespace

cudaError_t cudaDriverGetVersion(int* driverVersion) {
  if (!driverVersion) return cudaErrorInvalidValue;
  *driverVersion = 0;  // no driver: 0 and success, as documented
  if (initDriver() == cudaErrorInsufficientDriver) return cudaSuccess;
  return SONDE_CU(cuDriverGetVersion, driverVersion);
}

cudaError_t cudaRuntimeGetVersion(int* runtimeVersion) {
  if (!runtimeVersion) return cudaErrorInvalidValue;
  static const int reported = reportedVersion();
  *runtimeVersion = reported;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return cudaErrorInvalidValue;
  cudaError_t status = deviceCount(count);
  if (status != cudaSuccess) *count = 0;
  return status == cudaSuccess && *count == 0 ? cudaErrorNoDevice : status;
}

cudaError_t cudaSetDevice(int device) {
  SONDE_TRY(checkDevice(device));
  return usePrimaryContext(device);
}

cudaError_t cudaGetDevice(int* device) {
  if (!device) return cudaErrorInvalidValue;
  return currentDevice(device);
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags) {
  if (flags != 0 && flags != cudaInitDeviceFlagsAreValid) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  CUdevice handle = 0;
  SONDE_TRY(SONDE_CU(cuDeviceGet, &handle, device));
  if (flags == cudaInitDeviceFlagsAreValid)
    SONDE_TRY(SONDE_CU(cuDevicePrimaryCtxSetFlags, handle, deviceFlags & cudaDeviceMask));
  CUcontext context = nullptr;
  return primaryContext(device, &context);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  if (flags & ~static_cast<unsigned>(cudaDeviceMask)) return cudaErrorInvalidValue;
  int device = 0;
  SONDE_TRY(currentDevice(&device));
  CUdevice handle = 0;
  SONDE_TRY(SONDE_CU(cuDeviceGet, &handle, device));
  return SONDE_CU(cuDevicePrimaryCtxSetFlags, handle, flags);
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  if (!flags) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUcontext current = nullptr;
  SONDE_TRY(SONDE_CU(cuCtxGetCurrent, &current));
  if (current) return SONDE_CU(cuCtxGetFlags, flags);
  int active = 0, device = 0;
  SONDE_TRY(currentDevice(&device));
  return SONDE_CU(cuDevicePrimaryCtxGetState, device, flags, &active);
}

cudaError_t cudaSetValidDevices(int* device_arr, int len) {
  if (!device_arr || len < 0) return cudaErrorInvalidValue;
  for (int i = 0; i < len; ++i) SONDE_TRY(checkDevice(device_arr[i]));
  if (len > 0) threadState().device = device_arr[0];
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxSynchronize);
}

cudaError_t cudaDeviceReset() {
  SONDE_TRY(initDriver());
  return resetCurrentDevice();
}

cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attr, int device) {
  if (!value) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  CUdevice handle = 0;
  SONDE_TRY(SONDE_CU(cuDeviceGet, &handle, device));
  return SONDE_CU(cuDeviceGetAttribute, value, static_cast<CUdevice_attribute>(attr), handle);
}

namespace {

// Which driver attribute fills which integer of cudaDeviceProp.
struct PropertyField {
  CUdevice_attribute attribute;
  size_t offset;
  bool wide;  // a size_t
};

#define SONDE_INT(attribute, member) {CU_DEVICE_ATTRIBUTE_##attribute, offsetof(cudaDeviceProp, member), false}
#define SONDE_SIZE(attribute, member) {CU_DEVICE_ATTRIBUTE_##attribute, offsetof(cudaDeviceProp, member), true}
#define SONDE_ITEM(attribute, member, index) \
  {CU_DEVICE_ATTRIBUTE_##attribute, offsetof(cudaDeviceProp, member) + (index) * sizeof(int), false}

constexpr PropertyField kProperties[] = {
    SONDE_SIZE(MAX_SHARED_MEMORY_PER_BLOCK, sharedMemPerBlock),
    SONDE_INT(MAX_REGISTERS_PER_BLOCK, regsPerBlock),
    SONDE_INT(WARP_SIZE, warpSize),
    SONDE_SIZE(MAX_PITCH, memPitch),
    SONDE_INT(MAX_THREADS_PER_BLOCK, maxThreadsPerBlock),
    SONDE_ITEM(MAX_BLOCK_DIM_X, maxThreadsDim, 0),
    SONDE_ITEM(MAX_BLOCK_DIM_Y, maxThreadsDim, 1),
    SONDE_ITEM(MAX_BLOCK_DIM_Z, maxThreadsDim, 2),
    SONDE_ITEM(MAX_GRID_DIM_X, maxGridSize, 0),
    SONDE_ITEM(MAX_GRID_DIM_Y, maxGridSize, 1),
    SONDE_ITEM(MAX_GRID_DIM_Z, maxGridSize, 2),
    SONDE_SIZE(TOTAL_CONSTANT_MEMORY, totalConstMem),
    SONDE_INT(COMPUTE_CAPABILITY_MAJOR, major),
    SONDE_INT(COMPUTE_CAPABILITY_MINOR, minor),
    SONDE_SIZE(TEXTURE_ALIGNMENT, textureAlignment),
    SONDE_SIZE(TEXTURE_PITCH_ALIGNMENT, texturePitchAlignment),
    SONDE_INT(MULTIPROCESSOR_COUNT, multiProcessorCount),
    SONDE_INT(INTEGRATED, integrated),
    SONDE_INT(CAN_MAP_HOST_MEMORY, canMapHostMemory),
    SONDE_INT(MAXIMUM_TEXTURE1D_WIDTH, maxTexture1D),
    SONDE_INT(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, maxTexture1DMipmap),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_WIDTH, maxTexture2D, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_HEIGHT, maxTexture2D, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, maxTexture2DMipmap, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, maxTexture2DMipmap, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, maxTexture2DLinear, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, maxTexture2DLinear, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_LINEAR_PITCH, maxTexture2DLinear, 2),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_GATHER_WIDTH, maxTexture2DGather, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_GATHER_HEIGHT, maxTexture2DGather, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE3D_WIDTH, maxTexture3D, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE3D_HEIGHT, maxTexture3D, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE3D_DEPTH, maxTexture3D, 2),
    SONDE_ITEM(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, maxTexture3DAlt, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, maxTexture3DAlt, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, maxTexture3DAlt, 2),
    SONDE_INT(MAXIMUM_TEXTURECUBEMAP_WIDTH, maxTextureCubemap),
    SONDE_ITEM(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, maxTexture1DLayered, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, maxTexture1DLayered, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, maxTexture2DLayered, 0),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, maxTexture2DLayered, 1),
    SONDE_ITEM(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, maxTexture2DLayered, 2),
    SONDE_ITEM(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, maxTextureCubemapLayered, 0),
    SONDE_ITEM(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, maxTextureCubemapLayered, 1),
    SONDE_INT(MAXIMUM_SURFACE1D_WIDTH, maxSurface1D),
    SONDE_ITEM(MAXIMUM_SURFACE2D_WIDTH, maxSurface2D, 0),
    SONDE_ITEM(MAXIMUM_SURFACE2D_HEIGHT, maxSurface2D, 1),
    SONDE_ITEM(MAXIMUM_SURFACE3D_WIDTH, maxSurface3D, 0),
    SONDE_ITEM(MAXIMUM_SURFACE3D_HEIGHT, maxSurface3D, 1),
    SONDE_ITEM(MAXIMUM_SURFACE3D_DEPTH, maxSurface3D, 2),
    SONDE_ITEM(MAXIMUM_SURFACE1D_LAYERED_WIDTH, maxSurface1DLayered, 0),
    SONDE_ITEM(MAXIMUM_SURFACE1D_LAYERED_LAYERS, maxSurface1DLayered, 1),
    SONDE_ITEM(MAXIMUM_SURFACE2D_LAYERED_WIDTH, maxSurface2DLayered, 0),
    SONDE_ITEM(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, maxSurface2DLayered, 1),
    SONDE_ITEM(MAXIMUM_SURFACE2D_LAYERED_LAYERS, maxSurface2DLayered, 2),
    SONDE_INT(MAXIMUM_SURFACECUBEMAP_WIDTH, maxSurfaceCubemap),
    SONDE_ITEM(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, maxSurfaceCubemapLayered, 0),
    SONDE_ITEM(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, maxSurfaceCubemapLayered, 1),
    SONDE_SIZE(SURFACE_ALIGNMENT, surfaceAlignment),
    SONDE_INT(CONCURRENT_KERNELS, concurrentKernels),
    SONDE_INT(ECC_ENABLED, ECCEnabled),
    SONDE_INT(PCI_BUS_ID, pciBusID),
    SONDE_INT(PCI_DEVICE_ID, pciDeviceID),
    SONDE_INT(PCI_DOMAIN_ID, pciDomainID),
    SONDE_INT(TCC_DRIVER, tccDriver),
    SONDE_INT(ASYNC_ENGINE_COUNT, asyncEngineCount),
    SONDE_INT(UNIFIED_ADDRESSING, unifiedAddressing),
    SONDE_INT(GLOBAL_MEMORY_BUS_WIDTH, memoryBusWidth),
    SONDE_INT(L2_CACHE_SIZE, l2CacheSize),
    SONDE_INT(MAX_PERSISTING_L2_CACHE_SIZE, persistingL2CacheMaxSize),
    SONDE_INT(MAX_THREADS_PER_MULTIPROCESSOR, maxThreadsPerMultiProcessor),
    SONDE_INT(STREAM_PRIORITIES_SUPPORTED, streamPrioritiesSupported),
    SONDE_INT(GLOBAL_L1_CACHE_SUPPORTED, globalL1CacheSupported),
    SONDE_INT(LOCAL_L1_CACHE_SUPPORTED, localL1CacheSupported),
    SONDE_SIZE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, sharedMemPerMultiprocessor),
    SONDE_INT(MAX_REGISTERS_PER_MULTIPROCESSOR, regsPerMultiprocessor),
    SONDE_INT(MANAGED_MEMORY, managedMemory),
    SONDE_INT(MULTI_GPU_BOARD, isMultiGpuBoard),
    SONDE_INT(MULTI_GPU_BOARD_GROUP_ID, multiGpuBoardGroupID),
    SONDE_INT(HOST_NATIVE_ATOMIC_SUPPORTED, hostNativeAtomicSupported),
    SONDE_INT(PAGEABLE_MEMORY_ACCESS, pageableMemoryAccess),
    SONDE_INT(CONCURRENT_MANAGED_ACCESS, concurrentManagedAccess),
    SONDE_INT(COMPUTE_PREEMPTION_SUPPORTED, computePreemptionSupported),
    SONDE_INT(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, canUseHostPointerForRegisteredMem),
    SONDE_INT(COOPERATIVE_LAUNCH, cooperativeLaunch),
    SONDE_SIZE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, sharedMemPerBlockOptin),
    SONDE_INT(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, pageableMemoryAccessUsesHostPageTables),
    SONDE_INT(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, directManagedMemAccessFromHost),
    SONDE_INT(MAX_BLOCKS_PER_MULTIPROCESSOR, maxBlocksPerMultiProcessor),
    SONDE_INT(MAX_ACCESS_POLICY_WINDOW_SIZE, accessPolicyMaxWindowSize),
    SONDE_SIZE(RESERVED_SHARED_MEMORY_PER_BLOCK, reservedSharedMemPerBlock),
    SONDE_INT(HOST_REGISTER_SUPPORTED, hostRegisterSupported),
    SONDE_INT(SPARSE_CUDA_ARRAY_SUPPORTED, sparseCudaArraySupported),
    SONDE_INT(READ_ONLY_HOST_REGISTER_SUPPORTED, hostRegisterReadOnlySupported),
    SONDE_INT(TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, timelineSemaphoreInteropSupported),
    SONDE_INT(MEMORY_POOLS_SUPPORTED, memoryPoolsSupported),
    SONDE_INT(GPU_DIRECT_RDMA_SUPPORTED, gpuDirectRDMASupported),
    SONDE_INT(GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, gpuDirectRDMAFlushWritesOptions),
    SONDE_INT(GPU_DIRECT_RDMA_WRITES_ORDERING, gpuDirectRDMAWritesOrdering),
    SONDE_INT(MEMPOOL_SUPPORTED_HANDLE_TYPES, memoryPoolSupportedHandleTypes),
    SONDE_INT(DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, deferredMappingCudaArraySupported),
    SONDE_INT(IPC_EVENT_SUPPORTED, ipcEventSupported),
    SONDE_INT(CLUSTER_LAUNCH, clusterLaunch),
    SONDE_INT(UNIFIED_FUNCTION_POINTERS, unifiedFunctionPointers),
    SONDE_INT(NUMA_CONFIG, deviceNumaConfig),
    SONDE_INT(NUMA_ID, deviceNumaId),
    SONDE_INT(HOST_NUMA_ID, hostNumaId),
};

#undef SONDE_INT
#undef SONDE_SIZE
#undef SONDE_ITEM

}  // namespace

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device) {
  if (!prop) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  CUdevice handle = 0;
  SONDE_TRY(SONDE_CU(cuDeviceGet, &handle, device));
  cudaDeviceProp found{};
  SONDE_TRY(SONDE_CU(cuDeviceGetName, found.name, sizeof found.name, handle));
  CUuuid uuid{};
  if (SONDE_CU(cuDeviceGetUuid, &uuid, handle) == cudaSuccess) std::memcpy(&found.uuid, &uuid, sizeof uuid);
  SONDE_CU(cuDeviceGetLuid, found.luid, &found.luidDeviceNodeMask, handle);
  SONDE_TRY(SONDE_CU(cuDeviceTotalMem, &found.totalGlobalMem, handle));
  for (const PropertyField& field : kProperties) {
    int value = 0;
    // An attribute that this driver does not know leaves its field zero.
    if (SONDE_CU(cuDeviceGetAttribute, &value, field.attribute, handle) != cudaSuccess) continue;
    char* target = reinterpret_cast<char*>(&found) + field.offset;
    if (field.wide) {
      size_t wide = static_cast<unsigned>(value);
      std::memcpy(target, &wide, sizeof wide);
    } else {
      std::memcpy(target, &value, sizeof value);
    }
  }
  *prop = found;
  return cudaSuccess;
}

cudaError_t cudaChooseDevice(int* device, const struct cudaDeviceProp* prop) {
  if (!device || !prop) return cudaErrorInvalidValue;
  int count = 0, best = 0;
  long bestScore = -1;
  SONDE_TRY(deviceCount(&count));
  if (count == 0) return cudaErrorNoDevice;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp have{};
    SONDE_TRY(impl::cudaGetDeviceProperties(&have, i));
    long score = 0;
    if (prop->major == 0 || have.major > prop->major || (have.major == prop->major && have.minor >= prop->minor))
      score += 4;
    if (have.totalGlobalMem >= prop->totalGlobalMem) score += 2;
    if (prop->name[0] && std::strncmp(prop->name, have.name, sizeof have.name) == 0) score += 8;
    if (have.multiProcessorCount >= prop->multiProcessorCount) score += 1;
    if (score > bestScore) {
      bestScore = score;
      best = i;
    }
  }
  *device = best;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* pciBusId) {
  if (!device || !pciBusId) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUdevice found = 0;
  cudaError_t status = SONDE_CU(cuDeviceGetByPCIBusId, &found, pciBusId);
  if (status == cudaSuccess) *device = found;
  return status;
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  if (!pciBusId || len <= 0) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceGetPCIBusId, pciBusId, len, device);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxSetLimit, static_cast<CUlimit>(limit), value);
}

cudaError_t cudaDeviceGetLimit(size_t* pValue, enum cudaLimit limit) {
  if (!pValue) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxGetLimit, pValue, static_cast<CUlimit>(limit));
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache* pCacheConfig) {
  if (!pCacheConfig) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUfunc_cache config{};
  SONDE_TRY(SONDE_CU(cuCtxGetCacheConfig, &config));
  *pCacheConfig = static_cast<cudaFuncCache>(config);
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxSetCacheConfig, static_cast<CUfunc_cache>(cacheConfig));
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxResetPersistingL2Cache);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
                                               enum cudaFlushGPUDirectRDMAWritesScope scope) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuFlushGPUDirectRDMAWrites, static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                  static_cast<CUflushGPUDirectRDMAWritesScope>(scope));
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* maxWidthInElements, const cudaChannelFormatDesc* fmtDesc,
                                                 int device) {
  if (!maxWidthInElements || !fmtDesc) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  CUarray_format format{};
  unsigned channels = 0;
  SONDE_TRY(toArrayFormat(*fmtDesc, &format, &channels));
  return SONDE_CU(cuDeviceGetTexture1DLinearMaxWidth, maxWidthInElements, format, channels, device);
}

// ------------------------------------------------------------------- peers

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device, int peerDevice) {
  if (!canAccessPeer) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  SONDE_TRY(checkDevice(peerDevice));
  return SONDE_CU(cuDeviceCanAccessPeer, canAccessPeer, device, peerDevice);
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  SONDE_TRY(checkDevice(peerDevice));
  SONDE_TRY(ensureContext());
  int own = 0;
  SONDE_TRY(currentDevice(&own));
  if (own == peerDevice) return cudaErrorInvalidDevice;
  CUcontext peer = nullptr;
  SONDE_TRY(primaryContext(peerDevice, &peer));
  return SONDE_CU(cuCtxEnablePeerAccess, peer, flags);
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
  SONDE_TRY(checkDevice(peerDevice));
  SONDE_TRY(ensureContext());
  CUcontext peer = nullptr;
  SONDE_TRY(primaryContext(peerDevice, &peer));
  return SONDE_CU(cuCtxDisablePeerAccess, peer);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice) {
  if (!value) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(srcDevice));
  SONDE_TRY(checkDevice(dstDevice));
  return SONDE_CU(cuDeviceGetP2PAttribute, value, static_cast<CUdevice_P2PAttribute>(attr), srcDevice, dstDevice);
}

// ---------------------------------------------------------------- profiler

cudaError_t cudaProfilerStart() {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuProfilerStart);
}

cudaError_t cudaProfilerStop() {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuProfilerStop);
}

}  // namespace sonde::cudart::impl
