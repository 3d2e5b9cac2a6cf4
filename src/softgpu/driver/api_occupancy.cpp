// SPDX-License-Identifier: Apache-2.0
//
// How many blocks and clusters of a kernel are on the device at once.
#include <algorithm>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/module.h"

namespace sonde::softgpu::driver {
namespace {

CUresult blocksPerSm(int* numBlocks, CUfunction func, int blockSize, size_t dynamicShared, unsigned flags) {
  Ref<Function> f;
  if (const CUresult e = findFunction(func, f)) return e;
  if (!numBlocks || blockSize <= 0 || (flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)))
    return CUDA_ERROR_INVALID_VALUE;
  const auto& model = f->module()->context()->device()->model;
  *numBlocks = static_cast<int>(exec::Engine::get().occupancy(f->module()->program(), f->index(),
                                                              static_cast<uint32_t>(blockSize), dynamicShared, model));
  return CUDA_SUCCESS;
}

// The largest block that gives the most resident threads.
CUresult bestBlock(int* minGridSize, int* blockSize, CUfunction func, CUoccupancyB2DSize sharedOf, size_t dynamicShared,
                   int limit, unsigned flags) {
  Ref<Function> f;
  if (const CUresult e = findFunction(func, f)) return e;
  if (!minGridSize || !blockSize || limit < 0 ||
      (flags & ~static_cast<unsigned>(CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)))
    return CUDA_ERROR_INVALID_VALUE;
  const auto& model = f->module()->context()->device()->model;
  const uint32_t most = std::min(model.maxThreadsPerBlock, f->info().maxThreadsPerBlock);
  const uint32_t largest = limit == 0 ? most : std::min(most, static_cast<uint32_t>(limit));
  uint32_t bestThreads = 0, bestSize = 0, bestBlocks = 0;
  for (uint32_t size = (largest + 31) / 32 * 32; size >= 32; size -= 32) {
    const uint32_t threads = std::min(size, largest);
    const size_t shared = sharedOf ? sharedOf(static_cast<int>(threads)) : dynamicShared;
    const uint32_t blocks = exec::Engine::get().occupancy(f->module()->program(), f->index(), threads, shared, model);
    if (blocks * threads > bestThreads) {
      bestThreads = blocks * threads;
      bestSize = threads;
      bestBlocks = blocks;
    }
    if (bestThreads == model.maxWarpsPerSm * 32) break;
  }
  *minGridSize = static_cast<int>(bestBlocks * model.smCount);
  *blockSize = static_cast<int>(bestSize);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuOccupancyMaxActiveBlocksPerMultiprocessor)
(int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize) {
  return blocksPerSm(numBlocks, func, blockSize, dynamicSMemSize, 0);
}
DRIVER_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)
(int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags) {
  return blocksPerSm(numBlocks, func, blockSize, dynamicSMemSize, flags);
}
DRIVER_API(cuOccupancyMaxPotentialBlockSize)
(int* minGridSize, int* blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
 size_t dynamicSMemSize, int blockSizeLimit) {
  return bestBlock(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}
DRIVER_API(cuOccupancyMaxPotentialBlockSizeWithFlags)
(int* minGridSize, int* blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize,
 size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags) {
  return bestBlock(minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, flags);
}

DRIVER_API(cuOccupancyAvailableDynamicSMemPerBlock)(size_t* dynamicSmemSize, CUfunction func, int numBlocks,
                                                    int blockSize) {
  Ref<Function> f;
  if (const CUresult e = findFunction(func, f)) return e;
  if (!dynamicSmemSize || numBlocks <= 0 || blockSize <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto& model = f->module()->context()->device()->model;
  // The most with which that many blocks still fit.
  size_t low = 0, high = model.sharedPerBlockOptin;
  while (low < high) {
    const size_t middle = (low + high + 1) / 2;
    if (exec::Engine::get().occupancy(f->module()->program(), f->index(), static_cast<uint32_t>(blockSize), middle,
                                      model) >= static_cast<uint32_t>(numBlocks))
      low = middle;
    else
      high = middle - 1;
  }
  *dynamicSmemSize = low;
  return CUDA_SUCCESS;
}

namespace {

// A cluster's blocks run on the SMs of one GPC.
constexpr uint64_t kSmsPerGpc = 16;

bool launchesClusters(const Device& device) {
  int64_t value = 0;
  return deviceAttribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, value) && value != 0;
}

// Clusters of `size` blocks that fit on the device at once.
uint64_t activeClusters(const Function& f, uint64_t threads, uint32_t dynamicShared, uint64_t size) {
  const model::DeviceModel& model = f.module()->context()->device()->model;
  const auto perBlock = static_cast<uint32_t>(std::min<uint64_t>(threads, UINT32_MAX));
  const uint64_t perSm =
      exec::Engine::get().occupancy(f.module()->program(), f.index(), perBlock, dynamicShared, model);
  return model.smCount / kSmsPerGpc * (kSmsPerGpc * perSm / size) + model.smCount % kSmsPerGpc * perSm / size;
}

// The largest cluster that fits; 0: not even one block does.
uint64_t largestCluster(const Function& f, uint64_t threads, uint32_t dynamicShared) {
  uint64_t size = f.nonPortableCluster.load() ? 16 : 8;
  while (size > 0 && activeClusters(f, threads, dynamicShared, size) == 0) size /= 2;
  return size;
}

uint64_t threadsOf(const CUlaunchConfig& config) {
  return uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
}

}  // namespace

bool knownClusterPolicy(int policy) {
  return policy >= CU_CLUSTER_SCHEDULING_POLICY_DEFAULT && policy <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
}

ClusterFacts clusterFacts(const Function& f, const LaunchPlan& plan) {
  if (!launchesClusters(*f.module()->context()->device())) return {};
  ClusterFacts facts;
  // Without a wish blocks are spread.
  const int policy = plan.clusterPolicy >= 0 ? plan.clusterPolicy : f.clusterPolicy.load(std::memory_order_relaxed);
  facts.policy = policy == CU_CLUSTER_SCHEDULING_POLICY_DEFAULT ? CU_CLUSTER_SCHEDULING_POLICY_SPREAD
                                                                : static_cast<uint32_t>(policy);
  const uint64_t size = plan.cluster.x ? plan.cluster.count() : 1;
  if (size == 1) return facts;
  // The last answer and what it is for, in one word: most kernels are launched the same way again and again.
  const uint64_t threads = plan.block.count();
  const uint64_t key = threads << 53 | uint64_t{plan.dynamicShared} << 33 | size << 28 |
                       uint64_t{f.nonPortableCluster.load(std::memory_order_relaxed) != 0} << 27;
  const bool keyFits = threads < 1u << 11 && plan.dynamicShared < 1u << 20 && size < 1u << 5;
  const uint64_t last = f.lastClusters.load(std::memory_order_relaxed);
  if (keyFits && last >> 27 == key >> 27) {
    facts.largest = last >> 22 & 31;
    facts.active = last & ((1u << 22) - 1);
    return facts;
  }
  const uint64_t largest = largestCluster(f, threads, plan.dynamicShared);
  const uint64_t active = activeClusters(f, threads, plan.dynamicShared, size);
  if (keyFits && active < 1u << 22) f.lastClusters.store(key | largest << 22 | active, std::memory_order_relaxed);
  facts.largest = static_cast<uint32_t>(largest);
  facts.active = static_cast<uint32_t>(active);
  return facts;
}

DRIVER_API(cuOccupancyMaxPotentialClusterSize)(int* clusterSize, CUfunction func, const CUlaunchConfig* config) {
  Ref<Function> f;
  if (const CUresult e = findFunction(func, f)) return e;
  if (!clusterSize || !config) return CUDA_ERROR_INVALID_VALUE;
  if (!launchesClusters(*f->module()->context()->device())) return CUDA_ERROR_NOT_SUPPORTED;
  const uint64_t size = largestCluster(*f, threadsOf(*config), config->sharedMemBytes);
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  *clusterSize = static_cast<int>(size);
  return CUDA_SUCCESS;
}

DRIVER_API(cuOccupancyMaxActiveClusters)(int* numClusters, CUfunction func, const CUlaunchConfig* config) {
  Ref<Function> f;
  if (const CUresult e = findFunction(func, f)) return e;
  if (!numClusters || !config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
  if (!launchesClusters(*f->module()->context()->device())) return CUDA_ERROR_NOT_SUPPORTED;
  LaunchShape shape;
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const CUlaunchAttribute& a = config->attrs[i];
    if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      shape.cluster = {a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z};
  }
  // As a launch with this configuration would have it.
  if (const CUresult e = takeClusterOf(*f, shape)) return e;
  const uint64_t size = shape.cluster.x ? shape.cluster.count() : 1;
  if (size == 0 || size > (f->nonPortableCluster.load() ? 16u : 8u)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  *numClusters = static_cast<int>(activeClusters(*f, threadsOf(*config), config->sharedMemBytes, size));
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
