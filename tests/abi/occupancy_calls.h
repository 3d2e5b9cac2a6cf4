// SPDX-License-Identifier: Apache-2.0
// The functions of a cuda_occupancy.h, called with plain numbers, so that one
// program can ask two such headers. Each file that includes this one defines
// OCCUPANCY_NAME first.
#include <cuda_occupancy.h>

#include <cstddef>
#include <cstring>

struct OccupancyQuestion {
  // The device.
  int major, minor, regsPerBlock, regsPerMultiprocessor, maxThreads;
  size_t sharedPerBlock, sharedPerMultiprocessor, sharedOptin, reserved;
  // The kernel.
  int registers, barriers, virtualResources, optin;
  size_t staticShared, maxDynamic;
  // The launch.
  int cacheConfig, carveout, threads, blocks;
  size_t dynamicShared;
};
struct OccupancyAnswer {
  int error, active, factors, limits[6], registersPerBlock, potentialError, grid, block, availableError;
  size_t sharedPerBlock, available;
};

OccupancyAnswer OCCUPANCY_NAME(const OccupancyQuestion& q) {
  cudaOccDeviceProp p;
  p.computeMajor = q.major, p.computeMinor = q.minor;
  p.maxThreadsPerBlock = 1024, p.maxThreadsPerMultiprocessor = q.maxThreads;
  p.regsPerBlock = q.regsPerBlock, p.regsPerMultiprocessor = q.regsPerMultiprocessor;
  p.warpSize = 32, p.numSms = 10;
  p.sharedMemPerBlock = q.sharedPerBlock, p.sharedMemPerMultiprocessor = q.sharedPerMultiprocessor;
  p.sharedMemPerBlockOptin = q.sharedOptin, p.reservedSharedMemPerBlock = q.reserved;
  cudaOccFuncAttributes a;
  a.maxThreadsPerBlock = 1024, a.numRegs = q.registers, a.sharedSizeBytes = q.staticShared;
  a.shmemLimitConfig = q.optin != 0 ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
  a.maxDynamicSharedSizeBytes = q.maxDynamic;
  a.numBlockBarriers = q.barriers, a.virtualResourceCount = q.virtualResources;
  cudaOccDeviceState s;
  s.cacheConfig = static_cast<cudaOccCacheConfig>(q.cacheConfig), s.carveoutConfig = q.carveout;
  OccupancyAnswer answer;
  std::memset(&answer, 0, sizeof answer);
  cudaOccResult r;
  answer.error = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &a, &s, q.threads, q.dynamicShared);
  if (answer.error == CUDA_OCC_SUCCESS) {
    answer.active = r.activeBlocksPerMultiprocessor, answer.factors = static_cast<int>(r.limitingFactors);
    const int limits[] = {r.blockLimitRegs,   r.blockLimitSharedMem, r.blockLimitWarps,
                          r.blockLimitBlocks, r.blockLimitBarriers,  r.blockLimitVirtual};
    std::memcpy(answer.limits, limits, sizeof limits);
    answer.registersPerBlock = r.allocatedRegistersPerBlock, answer.sharedPerBlock = r.allocatedSharedMemPerBlock;
  }
  answer.potentialError = cudaOccMaxPotentialOccupancyBlockSize(&answer.grid, &answer.block, &p, &a, &s,
                                                                static_cast<size_t (*)(int)>(nullptr), q.dynamicShared);
  answer.availableError = cudaOccAvailableDynamicSMemPerBlock(&answer.available, &p, &a, &s, q.blocks, q.threads);
  return answer;
}
