// SPDX-License-Identifier: Apache-2.0
// Kernel launches, host functions, function attributes and occupancy.
#include <cstring>

#include "softgpu/runtime/impl.h"

namespace sonde::cudart {

cudaError_t resolveKernel(const void* function, CUkernel* kernel) {
  SONDE_TRY(ensureContext());
  return registry().kernel(function, kernel);
}

namespace {

// The driver answers "invalid value" for a bad shape; the runtime has a code of
// its own for that.
cudaError_t checkShape(dim3 grid, dim3 block) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0)
    return cudaErrorInvalidConfiguration;
  return cudaSuccess;
}

struct ShapeLimits {
  int grid[3] = {}, block[3] = {}, threads = 0;
};

// True when the launch breaks a limit of the device: what the driver called an
// invalid value was the configuration.
bool exceedsLimits(dim3 grid, dim3 block) {
  CUdevice device = 0;
  if (SONDE_CU(cuCtxGetDevice, &device) != cudaSuccess) return false;
  auto limit = [&](CUdevice_attribute attribute) {
    int value = 0;
    return SONDE_CU(cuDeviceGetAttribute, &value, attribute, device) == cudaSuccess ? static_cast<uint64_t>(value)
                                                                                    : ~0ull;
  };
  return static_cast<uint64_t>(block.x) * block.y * block.z > limit(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) ||
         block.x > limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) || block.y > limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) ||
         block.z > limit(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) || grid.x > limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
         grid.y > limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) || grid.z > limit(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
}

cudaError_t launchError(cudaError_t error, dim3 grid, dim3 block) {
  return error == cudaErrorInvalidValue && exceedsLimits(grid, block) ? cudaErrorInvalidConfiguration : error;
}

cudaError_t toDriver(const cudaLaunchConfig_t* config, const void* func, CUkernel* kernel, CUlaunchConfig* to) {
  if (!config) return cudaErrorInvalidValue;
  SONDE_TRY(resolveKernel(func, kernel));
  SONDE_TRY(checkShape(config->gridDim, config->blockDim));
  if (config->numAttrs > 0 && !config->attrs) return cudaErrorInvalidValue;
  *to = {};
  to->gridDimX = config->gridDim.x;
  to->gridDimY = config->gridDim.y;
  to->gridDimZ = config->gridDim.z;
  to->blockDimX = config->blockDim.x;
  to->blockDimY = config->blockDim.y;
  to->blockDimZ = config->blockDim.z;
  to->sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  to->hStream = config->stream;
  // The two attribute structures have one layout and the same identifiers.
  static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
  to->attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  to->numAttrs = config->numAttrs;
  return cudaSuccess;
}

}  // namespace

namespace impl {

cudaError_t cudaLaunchKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                             cudaStream_t stream) {
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  SONDE_TRY(checkShape(gridDim, blockDim));
  if (sharedMem > 0xffffffffu) return cudaErrorInvalidValue;
  return launchError(SONDE_CU(cuLaunchKernel, asFunction(kernel), gridDim.x, gridDim.y, gridDim.z, blockDim.x,
                              blockDim.y, blockDim.z, static_cast<unsigned>(sharedMem), stream, args, nullptr),
                     gridDim, blockDim);
}

cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                                        cudaStream_t stream) {
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  SONDE_TRY(checkShape(gridDim, blockDim));
  if (sharedMem > 0xffffffffu) return cudaErrorInvalidValue;
  return launchError(SONDE_CU(cuLaunchCooperativeKernel, asFunction(kernel), gridDim.x, gridDim.y, gridDim.z,
                              blockDim.x, blockDim.y, blockDim.z, static_cast<unsigned>(sharedMem), stream, args),
                     gridDim, blockDim);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  CUkernel kernel = nullptr;
  CUlaunchConfig to{};
  SONDE_TRY(toDriver(config, func, &kernel, &to));
  return launchError(SONDE_CU(cuLaunchKernelEx, &to, asFunction(kernel), args, nullptr), config->gridDim,
                     config->blockDim);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData) {
  if (!fn) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuLaunchHostFunc, stream, fn, userData);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attr, const void* func) {
  if (!attr) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  int device = 0;
  SONDE_TRY(currentDevice(&device));
  auto get = [&](CUfunction_attribute which, int* value) {
    return SONDE_CU(cuKernelGetAttribute, value, which, kernel, device);
  };
  cudaFuncAttributes found{};
  int shared = 0, constant = 0, local = 0;
  SONDE_TRY(get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &found.maxThreadsPerBlock));
  SONDE_TRY(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &shared));
  SONDE_TRY(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, &constant));
  SONDE_TRY(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &local));
  SONDE_TRY(get(CU_FUNC_ATTRIBUTE_NUM_REGS, &found.numRegs));
  SONDE_TRY(get(CU_FUNC_ATTRIBUTE_PTX_VERSION, &found.ptxVersion));
  SONDE_TRY(get(CU_FUNC_ATTRIBUTE_BINARY_VERSION, &found.binaryVersion));
  found.sharedSizeBytes = shared;
  found.constSizeBytes = constant;
  found.localSizeBytes = local;
  // Newer attributes; a driver without them leaves zero.
  get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &found.cacheModeCA);
  get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &found.maxDynamicSharedSizeBytes);
  get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &found.preferredShmemCarveout);
  get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &found.clusterDimMustBeSet);
  get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &found.requiredClusterWidth);
  get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &found.requiredClusterHeight);
  get(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &found.requiredClusterDepth);
  get(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &found.clusterSchedulingPolicyPreference);
  get(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &found.nonPortableClusterSizeAllowed);
  *attr = found;
  return cudaSuccess;
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device) {
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuKernelSetAttribute, static_cast<CUfunction_attribute>(attr), value,
                  reinterpret_cast<CUkernel>(kernel), device);
}

cudaError_t cudaFuncSetAttribute(const void* func, enum cudaFuncAttribute attr, int value) {
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  int device = 0;
  SONDE_TRY(currentDevice(&device));
  return SONDE_CU(cuKernelSetAttribute, static_cast<CUfunction_attribute>(attr), value, kernel, device);
}

cudaError_t cudaFuncSetCacheConfig(const void* func, enum cudaFuncCache cacheConfig) {
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  int device = 0;
  SONDE_TRY(currentDevice(&device));
  return SONDE_CU(cuKernelSetCacheConfig, kernel, static_cast<CUfunc_cache>(cacheConfig), device);
}

cudaError_t cudaFuncGetName(const char** name, const void* func) {
  if (!name) return cudaErrorInvalidValue;
  const char* found = registry().kernelName(func);
  if (!found) return cudaErrorInvalidDeviceFunction;
  *name = found;
  return cudaSuccess;
}

cudaError_t cudaFuncGetParamInfo(const void* func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  if (!paramOffset) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  return SONDE_CU(cuKernelGetParamInfo, kernel, paramIndex, paramOffset, paramSize);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* functionPtr, const void* symbolPtr) {
  if (!functionPtr) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(symbolPtr, &kernel));
  return SONDE_CU(cuKernelGetFunction, reinterpret_cast<CUfunction*>(functionPtr), kernel);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernelPtr, const void* entryFuncAddr) {
  if (!kernelPtr) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(entryFuncAddr, &kernel));
  *kernelPtr = reinterpret_cast<cudaKernel_t>(kernel);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, const void* func, int blockSize,
                                                                   size_t dynamicSMemSize, unsigned int flags) {
  if (!numBlocks) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  return SONDE_CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, numBlocks, asFunction(kernel), blockSize,
                  dynamicSMemSize, flags);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* func, int blockSize,
                                                          size_t dynamicSMemSize) {
  return impl::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, const void* func, int numBlocks,
                                                      int blockSize) {
  if (!dynamicSmemSize) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  SONDE_TRY(resolveKernel(func, &kernel));
  return SONDE_CU(cuOccupancyAvailableDynamicSMemPerBlock, dynamicSmemSize, asFunction(kernel), numBlocks, blockSize);
}

cudaError_t cudaOccupancyMaxActiveClusters(int* numClusters, const void* func, const cudaLaunchConfig_t* launchConfig) {
  if (!numClusters) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  CUlaunchConfig to{};
  SONDE_TRY(toDriver(launchConfig, func, &kernel, &to));
  return SONDE_CU(cuOccupancyMaxActiveClusters, numClusters, asFunction(kernel), &to);
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* clusterSize, const void* func,
                                                 const cudaLaunchConfig_t* launchConfig) {
  if (!clusterSize) return cudaErrorInvalidValue;
  CUkernel kernel = nullptr;
  CUlaunchConfig to{};
  SONDE_TRY(toDriver(launchConfig, func, &kernel, &to));
  return SONDE_CU(cuOccupancyMaxPotentialClusterSize, clusterSize, asFunction(kernel), &to);
}

}  // namespace impl
}  // namespace sonde::cudart
