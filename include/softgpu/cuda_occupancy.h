/* SPDX-License-Identifier: Apache-2.0
 *
 * How many blocks of a kernel fit into a multiprocessor, worked out from facts
 * that the caller gives: no device is needed. Header only, C and C++.
 *
 * Partitioned global caching of compute capability 5 and 6 is taken as off.
 */
#ifndef __cuda_occupancy_h__
#define __cuda_occupancy_h__

#include <limits.h>
#include <stddef.h>

#define __CUDA_OCC_MAJOR__ 12
#define __CUDA_OCC_MINOR__ 1

#if defined(__CUDACC__)
#define __OCC_INLINE inline __host__ __device__
#else
#define __OCC_INLINE inline
#endif
#define SONDE_OCC static __OCC_INLINE __attribute__((unused))

/** What the functions return. */
typedef enum cudaOccError_enum {
  CUDA_OCC_SUCCESS = 0,
  CUDA_OCC_ERROR_INVALID_INPUT = 1,
  CUDA_OCC_ERROR_UNKNOWN_DEVICE = 2 /**< A compute capability that this header does not know. */
} cudaOccError;

/** Facts of a device. In C++ made from a cudaDeviceProp. Shared memory in bytes. */
typedef struct cudaOccDeviceProp {
  int computeMajor, computeMinor;
  int maxThreadsPerBlock, maxThreadsPerMultiprocessor;
  int regsPerBlock, regsPerMultiprocessor;
  int warpSize;
  size_t sharedMemPerBlock, sharedMemPerMultiprocessor;
  int numSms;
  size_t sharedMemPerBlockOptin, reservedSharedMemPerBlock;
#ifdef __cplusplus
  __OCC_INLINE cudaOccDeviceProp()
      : computeMajor(0),
        computeMinor(0),
        maxThreadsPerBlock(0),
        maxThreadsPerMultiprocessor(0),
        regsPerBlock(0),
        regsPerMultiprocessor(0),
        warpSize(0),
        sharedMemPerBlock(0),
        sharedMemPerMultiprocessor(0),
        numSms(0),
        sharedMemPerBlockOptin(0),
        reservedSharedMemPerBlock(0) {}
  template <typename DeviceProp>
  __OCC_INLINE cudaOccDeviceProp(const DeviceProp& p)
      : computeMajor(p.major),
        computeMinor(p.minor),
        maxThreadsPerBlock(p.maxThreadsPerBlock),
        maxThreadsPerMultiprocessor(p.maxThreadsPerMultiProcessor),
        regsPerBlock(p.regsPerBlock),
        regsPerMultiprocessor(p.regsPerMultiprocessor),
        warpSize(p.warpSize),
        sharedMemPerBlock(p.sharedMemPerBlock),
        sharedMemPerMultiprocessor(p.sharedMemPerMultiprocessor),
        numSms(p.multiProcessorCount),
        sharedMemPerBlockOptin(p.sharedMemPerBlockOptin),
        reservedSharedMemPerBlock(p.reservedSharedMemPerBlock) {}
#endif
} cudaOccDeviceProp;

/** Partitioned global caching: see above. */
typedef enum cudaOccPartitionedGCConfig_enum {
  PARTITIONED_GC_OFF,
  PARTITIONED_GC_ON,
  PARTITIONED_GC_ON_STRICT
} cudaOccPartitionedGCConfig;

/** Which limit of shared memory holds for a block: sharedMemPerBlock, or up to sharedMemPerBlockOptin. */
typedef enum cudaOccFuncShmemConfig_enum { FUNC_SHMEM_LIMIT_DEFAULT, FUNC_SHMEM_LIMIT_OPTIN } cudaOccFuncShmemConfig;

/** Facts of a kernel. In C++ made from a cudaFuncAttributes. */
typedef struct cudaOccFuncAttributes {
  int maxThreadsPerBlock;
  int numRegs; /**< Per thread. */
  size_t sharedSizeBytes;
  cudaOccPartitionedGCConfig partitionedGCConfig;
  cudaOccFuncShmemConfig shmemLimitConfig;
  size_t maxDynamicSharedSizeBytes;
  int numBlockBarriers;
  int virtualResourceCount;
#ifdef __cplusplus
  __OCC_INLINE cudaOccFuncAttributes()
      : maxThreadsPerBlock(0),
        numRegs(0),
        sharedSizeBytes(0),
        partitionedGCConfig(PARTITIONED_GC_OFF),
        shmemLimitConfig(FUNC_SHMEM_LIMIT_DEFAULT),
        maxDynamicSharedSizeBytes(0),
        numBlockBarriers(0),
        virtualResourceCount(0) {}
  template <typename FuncAttributes>
  __OCC_INLINE cudaOccFuncAttributes(const FuncAttributes& a)
      : maxThreadsPerBlock(a.maxThreadsPerBlock),
        numRegs(a.numRegs),
        sharedSizeBytes(a.sharedSizeBytes),
        partitionedGCConfig(PARTITIONED_GC_OFF),
        shmemLimitConfig(FUNC_SHMEM_LIMIT_OPTIN),
        maxDynamicSharedSizeBytes(a.maxDynamicSharedSizeBytes),
        numBlockBarriers(1),
        virtualResourceCount(0) {}
#endif
} cudaOccFuncAttributes;

/** The division between shared memory and first-level cache, as cudaFuncCache has it. */
typedef enum cudaOccCacheConfig_enum {
  CACHE_PREFER_NONE = 0x00,
  CACHE_PREFER_SHARED = 0x01,
  CACHE_PREFER_L1 = 0x02,
  CACHE_PREFER_EQUAL = 0x03
} cudaOccCacheConfig;

/** The same as percent of shared memory. */
typedef enum cudaOccCarveoutConfig_enum {
  SHAREDMEM_CARVEOUT_DEFAULT = -1,
  SHAREDMEM_CARVEOUT_MAX_SHARED = 100,
  SHAREDMEM_CARVEOUT_MAX_L1 = 0,
  SHAREDMEM_CARVEOUT_HALF = 50
} cudaOccCarveoutConfig;

/** What was chosen for the kernel. */
typedef struct cudaOccDeviceState {
  cudaOccCacheConfig cacheConfig;
  int carveoutConfig; /**< Percent, or a cudaOccCarveoutConfig. */
#ifdef __cplusplus
  __OCC_INLINE cudaOccDeviceState() : cacheConfig(CACHE_PREFER_NONE), carveoutConfig(SHAREDMEM_CARVEOUT_DEFAULT) {}
#endif
} cudaOccDeviceState;

/** What may be used up first; bits. */
typedef enum cudaOccLimitingFactor_enum {
  OCC_LIMIT_WARPS = 0x01,
  OCC_LIMIT_REGISTERS = 0x02,
  OCC_LIMIT_SHARED_MEMORY = 0x04,
  OCC_LIMIT_BLOCKS = 0x08,
  OCC_LIMIT_BARRIERS = 0x10,
  OCC_LIMIT_VIRTUAL_RESOURCES = 0x20
} cudaOccLimitingFactor;

/** Blocks that fit: by each limit alone (INT_MAX: it does not count here), and in all. */
typedef struct cudaOccResult {
  int activeBlocksPerMultiprocessor;
  unsigned int limitingFactors; /**< cudaOccLimitingFactor. */
  int blockLimitRegs, blockLimitSharedMem, blockLimitWarps, blockLimitBlocks, blockLimitBarriers, blockLimitVirtual;
  int allocatedRegistersPerBlock;
  size_t allocatedSharedMemPerBlock;
  cudaOccPartitionedGCConfig partitionedGCConfig;
} cudaOccResult;

/* A generation of multiprocessors. `shared`: the sizes that its shared memory can have, in KiB, up to a 0. */
typedef struct SondeOccGeneration {
  int blocks, partitions, maxRegisters, sharedUnit;
  int barriersPerBlock; /* for each block that fits; 0: not a limit that is known */
  int virtualResources;
  short shared[12];
} SondeOccGeneration;

SONDE_OCC cudaOccError sondeOccGeneration(const cudaOccDeviceProp* p, SondeOccGeneration* out) {
  static const short kNone[] = {0}, kVolta[] = {0, 8, 16, 32, 64, 96}, kTuring[] = {32, 64},
                     kAmpere[] = {0, 8, 16, 32, 64, 100, 132, 164}, kSmall[] = {0, 8, 16, 32, 64, 100},
                     kHopper[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};
  const short* shared = kNone;
  int i, count = 0;
#define SONDE_OCC_SHARED(table) (shared = (table), count = (int)(sizeof(table) / sizeof *(table)))
  out->blocks = 32;
  out->partitions = 4;
  out->maxRegisters = 256;
  out->sharedUnit = 128;
  out->barriersPerBlock = 2;
  out->virtualResources = 0;
  switch (p->computeMajor) {
    case 3:
    case 5:
    case 6:
      if (p->computeMajor == 3) out->blocks = 16;
      if (p->computeMajor == 6 && p->computeMinor == 0) out->partitions = 2;
      out->maxRegisters = 255;
      out->sharedUnit = 256;
      break;
    case 7:
      if (p->computeMinor == 5) out->blocks = 16;
      out->sharedUnit = 256;
      if (p->computeMinor == 5)
        SONDE_OCC_SHARED(kTuring);
      else
        SONDE_OCC_SHARED(kVolta);
      break;
    case 8:
      if (p->computeMinor != 0) out->blocks = p->computeMinor == 9 ? 24 : 16;
      if (p->computeMinor == 0 || p->computeMinor == 7)
        SONDE_OCC_SHARED(kAmpere);
      else
        SONDE_OCC_SHARED(kSmall);
      break;
    case 9: SONDE_OCC_SHARED(kHopper); break;
    case 10:
    case 11:
      if (p->computeMinor == (p->computeMajor == 10 ? 1 : 0)) out->blocks = 24, out->barriersPerBlock = 1;
      SONDE_OCC_SHARED(kHopper);
      break;
    case 12:
      out->blocks = 24;
      out->barriersPerBlock = 1;
      SONDE_OCC_SHARED(kSmall);
      break;
    default: return CUDA_OCC_ERROR_UNKNOWN_DEVICE;
  }
#undef SONDE_OCC_SHARED
  if (p->computeMajor < 9) out->barriersPerBlock = 0;
  if (p->computeMajor >= 10) out->virtualResources = 128;
  for (i = 0; i < count; ++i) out->shared[i] = shared[i];
  out->shared[count] = -1;
  return CUDA_OCC_SUCCESS;
}

/* The smallest size of shared memory that has room for `bytes`; 0: none has. */
SONDE_OCC size_t sondeOccSharedSize(const SondeOccGeneration* generation, size_t bytes, int* found) {
  int i;
  for (i = 0; generation->shared[i] >= 0; ++i) {
    if (bytes <= (size_t)generation->shared[i] * 1024) {
      *found = 1;
      return (size_t)generation->shared[i] * 1024;
    }
  }
  *found = 0;
  return 0;
}

/* Shared memory of a multiprocessor as it was chosen. */
SONDE_OCC cudaOccError sondeOccSharedChosen(const cudaOccDeviceProp* p, const SondeOccGeneration* generation,
                                            const cudaOccDeviceState* state, size_t* out) {
  const size_t all = p->sharedMemPerMultiprocessor;
  int percent = state->carveoutConfig, found = 0;
  if (p->computeMajor < 7) {
    /* 64 KiB, of which the cache takes 16 or 48. Only Kepler divides it. */
    const size_t low = all > 32 * 1024 ? all - 32 * 1024 : 0;
    *out = p->computeMajor != 3                       ? all
           : state->cacheConfig == CACHE_PREFER_L1    ? low
           : state->cacheConfig == CACHE_PREFER_EQUAL ? (all + low) / 2
                                                      : all;
    return CUDA_OCC_SUCCESS;
  }
  if (percent < SHAREDMEM_CARVEOUT_DEFAULT || percent > SHAREDMEM_CARVEOUT_MAX_SHARED) {
    return CUDA_OCC_ERROR_INVALID_INPUT;
  }
  if (percent == SHAREDMEM_CARVEOUT_DEFAULT) {
    percent = state->cacheConfig == CACHE_PREFER_L1      ? SHAREDMEM_CARVEOUT_MAX_L1
              : state->cacheConfig == CACHE_PREFER_EQUAL ? SHAREDMEM_CARVEOUT_HALF
                                                         : SHAREDMEM_CARVEOUT_MAX_SHARED;
  }
  *out = sondeOccSharedSize(generation, all * (size_t)percent / 100, &found);
  return found ? CUDA_OCC_SUCCESS : CUDA_OCC_ERROR_INVALID_INPUT;
}

/* The most shared memory that a block with `wanted` bytes may have. */
SONDE_OCC size_t sondeOccSharedOfBlock(const cudaOccDeviceProp* p, const cudaOccFuncAttributes* a, size_t wanted) {
  size_t most = p->sharedMemPerBlock;
  if (p->computeMajor >= 7 && a->shmemLimitConfig == FUNC_SHMEM_LIMIT_OPTIN && wanted > most) {
    most = p->sharedMemPerBlockOptin;
  }
  return p->computeMajor >= 8 ? most + p->reservedSharedMemPerBlock : most;
}

SONDE_OCC size_t sondeOccRoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

SONDE_OCC cudaOccError sondeOccCheck(const cudaOccDeviceProp* p, const cudaOccFuncAttributes* a) {
  const int ok = p->maxThreadsPerBlock > 0 && p->maxThreadsPerMultiprocessor > 0 && p->regsPerBlock > 0 &&
                 p->regsPerMultiprocessor > 0 && p->warpSize > 0 && p->sharedMemPerBlock > 0 &&
                 p->sharedMemPerMultiprocessor > 0 && p->numSms > 0 && a->maxThreadsPerBlock > 0 && a->numRegs >= 0;
  return ok ? CUDA_OCC_SUCCESS : CUDA_OCC_ERROR_INVALID_INPUT;
}

/** How many blocks of `blockSize` threads with `dynamicSmemSize` bytes of dynamic shared memory fit. */
SONDE_OCC cudaOccError cudaOccMaxActiveBlocksPerMultiprocessor(cudaOccResult* result,
                                                               const cudaOccDeviceProp* properties,
                                                               const cudaOccFuncAttributes* attributes,
                                                               const cudaOccDeviceState* state, int blockSize,
                                                               size_t dynamicSmemSize) {
  SondeOccGeneration generation;
  cudaOccError error;
  size_t shared, fixed, chosen = 0;
  int warps, registersPerWarp, blocks, found = 0;
  unsigned int factors = 0;
  if (!result || !properties || !attributes || !state || blockSize <= 0) return CUDA_OCC_ERROR_INVALID_INPUT;
  error = sondeOccCheck(properties, attributes);
  if (error == CUDA_OCC_SUCCESS) error = sondeOccGeneration(properties, &generation);
  if (error == CUDA_OCC_SUCCESS) error = sondeOccSharedChosen(properties, &generation, state, &chosen);
  if (error != CUDA_OCC_SUCCESS) return error;

  warps = (blockSize + properties->warpSize - 1) / properties->warpSize;
  result->blockLimitBlocks = generation.blocks;
  result->blockLimitWarps = blockSize > properties->maxThreadsPerBlock
                                ? 0
                                : properties->maxThreadsPerMultiprocessor / properties->warpSize / warps;

  /* Registers come in units of 256 for each warp, and each partition has its share of them. */
  registersPerWarp = (int)sondeOccRoundUp((size_t)attributes->numRegs * (size_t)properties->warpSize, 256);
  result->allocatedRegistersPerBlock = registersPerWarp * warps;
  if (attributes->numRegs > generation.maxRegisters ||
      (size_t)registersPerWarp * sondeOccRoundUp((size_t)warps, (size_t)generation.partitions) >
          (size_t)properties->regsPerBlock) {
    result->blockLimitRegs = 0;
  } else if (registersPerWarp == 0) {
    result->blockLimitRegs = INT_MAX;
  } else {
    const int warpsOfPartition = properties->regsPerMultiprocessor / generation.partitions / registersPerWarp;
    result->blockLimitRegs = warpsOfPartition * generation.partitions / warps;
  }
  if (properties->computeMajor == 6 && properties->computeMinor == 0 &&
      (size_t)registersPerWarp * sondeOccRoundUp((size_t)warps, 4) > (size_t)properties->regsPerBlock) {
    result->blockLimitRegs = 0; /* a kernel of 6.0 must also fit into the partitions of 6.1 */
  }

  fixed = attributes->sharedSizeBytes + properties->reservedSharedMemPerBlock;
  shared = sondeOccRoundUp(fixed + dynamicSmemSize, (size_t)generation.sharedUnit);
  result->allocatedSharedMemPerBlock = shared;
  if ((attributes->shmemLimitConfig != FUNC_SHMEM_LIMIT_DEFAULT &&
       dynamicSmemSize > attributes->maxDynamicSharedSizeBytes) ||
      shared > sondeOccSharedOfBlock(properties, attributes, fixed + attributes->maxDynamicSharedSizeBytes)) {
    result->blockLimitSharedMem = 0;
  } else {
    if (chosen < shared && properties->computeMajor < 7) chosen = properties->sharedMemPerMultiprocessor;
    if (chosen < shared && properties->computeMajor >= 7) {
      chosen = sondeOccSharedSize(&generation, shared, &found);
      if (!found) return CUDA_OCC_ERROR_INVALID_INPUT;
    }
    result->blockLimitSharedMem = shared > 0 ? (int)(chosen / shared) : INT_MAX;
  }

  result->blockLimitVirtual = generation.virtualResources > 0 && attributes->virtualResourceCount > 0
                                  ? generation.virtualResources / attributes->virtualResourceCount
                                  : INT_MAX;
  result->blockLimitBarriers = generation.barriersPerBlock > 0 && attributes->numBlockBarriers > 0
                                   ? generation.blocks * generation.barriersPerBlock / attributes->numBlockBarriers
                                   : INT_MAX;
  result->partitionedGCConfig = PARTITIONED_GC_OFF;

  {
    const int limits[] = {result->blockLimitWarps, result->blockLimitRegs, result->blockLimitSharedMem,
                          result->blockLimitBlocks};
    int i;
    blocks = result->blockLimitVirtual;
    for (i = 0; i < 4; ++i) blocks = limits[i] < blocks ? limits[i] : blocks;
    for (i = 0; i < 4; ++i) factors |= limits[i] == blocks ? 1u << i : 0;
    if (blocks == result->blockLimitVirtual) factors |= OCC_LIMIT_VIRTUAL_RESOURCES;
    /* Barriers come last: what limits without them is named too. */
    if (result->blockLimitBarriers <= blocks) {
      blocks = result->blockLimitBarriers;
      factors |= OCC_LIMIT_BARRIERS;
    }
  }
  result->activeBlocksPerMultiprocessor = blocks;
  result->limitingFactors = factors;
  return CUDA_OCC_SUCCESS;
}

/** The block size with most resident threads, the largest on a tie, and the grid that fills the device with it.
 *  `blockSizeToDynamicSMemSize`, where it is not NULL, gives the dynamic shared memory of each size. */
SONDE_OCC cudaOccError cudaOccMaxPotentialOccupancyBlockSize(
    int* minGridSize, int* blockSize, const cudaOccDeviceProp* properties, const cudaOccFuncAttributes* attributes,
    const cudaOccDeviceState* state, size_t (*blockSizeToDynamicSMemSize)(int), size_t dynamicSMemSize) {
  int most = 0, bestSize = 0, bestBlocks = 0, largest, aligned;
  if (!minGridSize || !blockSize || !properties || !attributes || !state) return CUDA_OCC_ERROR_INVALID_INPUT;
  if (sondeOccCheck(properties, attributes) != CUDA_OCC_SUCCESS) return CUDA_OCC_ERROR_INVALID_INPUT;
  largest = properties->maxThreadsPerBlock < attributes->maxThreadsPerBlock ? properties->maxThreadsPerBlock
                                                                            : attributes->maxThreadsPerBlock;
  for (aligned = (int)sondeOccRoundUp((size_t)largest, (size_t)properties->warpSize);
       aligned > 0 && most < properties->maxThreadsPerMultiprocessor; aligned -= properties->warpSize) {
    const int size = aligned < largest ? aligned : largest;
    const size_t shared = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
    cudaOccResult result;
    const cudaOccError error =
        cudaOccMaxActiveBlocksPerMultiprocessor(&result, properties, attributes, state, size, shared);
    if (error != CUDA_OCC_SUCCESS) return error;
    if (size * result.activeBlocksPerMultiprocessor > most) {
      bestSize = size;
      bestBlocks = result.activeBlocksPerMultiprocessor;
      most = size * bestBlocks;
    }
  }
  *minGridSize = bestBlocks * properties->numSms;
  *blockSize = bestSize;
  return CUDA_OCC_SUCCESS;
}

/** The dynamic shared memory that each of `numBlocks` blocks on a multiprocessor can have. */
SONDE_OCC cudaOccError cudaOccAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, const cudaOccDeviceProp* properties,
                                                           const cudaOccFuncAttributes* attributes,
                                                           const cudaOccDeviceState* state, int numBlocks,
                                                           int blockSize) {
  SondeOccGeneration generation;
  cudaOccResult result;
  cudaOccError error;
  size_t most, bytes, chosen = 0;
  int found = 0;
  if (!dynamicSmemSize || numBlocks <= 0) return CUDA_OCC_ERROR_INVALID_INPUT;
  error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, properties, attributes, state, blockSize, 0);
  if (error != CUDA_OCC_SUCCESS) return error;
  if (result.activeBlocksPerMultiprocessor < numBlocks) return CUDA_OCC_ERROR_INVALID_INPUT;
  error = sondeOccGeneration(properties, &generation);
  if (error == CUDA_OCC_SUCCESS) error = sondeOccSharedChosen(properties, &generation, state, &chosen);
  if (error != CUDA_OCC_SUCCESS) return error;
  if (chosen == 0) chosen = sondeOccSharedSize(&generation, 1, &found);
  most = sondeOccSharedOfBlock(properties, attributes, properties->sharedMemPerMultiprocessor);
  bytes = (numBlocks == 1 ? most : chosen) / (size_t)numBlocks;
  bytes = bytes / (size_t)generation.sharedUnit * (size_t)generation.sharedUnit;
  if (bytes > most) bytes = most;
  bytes -= attributes->sharedSizeBytes;
  *dynamicSmemSize = bytes < attributes->maxDynamicSharedSizeBytes ? bytes : attributes->maxDynamicSharedSizeBytes;
  return CUDA_OCC_SUCCESS;
}

#ifdef __cplusplus
/** The same with a fixed amount of dynamic shared memory. */
SONDE_OCC cudaOccError cudaOccMaxPotentialOccupancyBlockSize(int* minGridSize, int* blockSize,
                                                             const cudaOccDeviceProp* properties,
                                                             const cudaOccFuncAttributes* attributes,
                                                             const cudaOccDeviceState* state,
                                                             size_t dynamicSMemSize = 0) {
  return cudaOccMaxPotentialOccupancyBlockSize(minGridSize, blockSize, properties, attributes, state, NULL,
                                               dynamicSMemSize);
}
#endif

#undef SONDE_OCC

#endif /* __cuda_occupancy_h__ */
