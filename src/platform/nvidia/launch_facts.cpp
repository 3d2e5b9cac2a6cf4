// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/launch_facts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "platform/nvidia/calls.h"

namespace sonde::platform::nvidia {
namespace {

using WindowKey = std::array<uint64_t, 4>;
using ShapeKey = std::array<uint32_t, 8>;  // block, dynamic shared memory, cluster, policy asked for

struct Fit {
  uint32_t largest = 0, active = 0;
};

struct Kept {
  std::mutex mutex;
  std::map<WindowKey, CUaccessPolicyWindow> windows;
  std::map<std::pair<WindowKey, std::array<uint32_t, 3>>, LaunchFacts> facts;
  // A kernel whose attributes change gets another object: nothing here becomes stale.
  std::map<std::pair<const KernelInfo*, ShapeKey>, Fit> fits;
};
Kept& kept() {
  static Kept& k = *new Kept;
  return k;
}

WindowKey keyOf(const CUaccessPolicyWindow& w) {
  uint32_t ratio;
  std::memcpy(&ratio, &w.hitRatio, sizeof ratio);
  return {reinterpret_cast<uint64_t>(w.base_ptr), w.num_bytes, ratio,
          uint64_t{static_cast<uint32_t>(w.hitProp)} << 32 | static_cast<uint32_t>(w.missProp)};
}

// What the driver's occupancy functions say of this launch.
Fit fitOf(const KernelInfo& kernel, const SondeWork& work, int32_t policy, CUstream stream) {
  const auto asked = static_cast<uint32_t>(std::max(policy, 0));
  const ShapeKey shape{work.block[0],   work.block[1],   work.block[2],   work.dynamicSharedMemory,
                       work.cluster[0], work.cluster[1], work.cluster[2], asked};
  {
    std::lock_guard lock(kept().mutex);
    if (const auto at = kept().fits.find({&kernel, shape}); at != kept().fits.end()) return at->second;
  }
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim.x = work.cluster[0];
  attributes[0].value.clusterDim.y = work.cluster[1];
  attributes[0].value.clusterDim.z = work.cluster[2];
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  attributes[1].value.clusterSchedulingPolicyPreference = static_cast<CUclusterSchedulingPolicy>(asked);
  CUlaunchConfig config{};
  config.gridDimX = work.grid[0], config.gridDimY = work.grid[1], config.gridDimZ = work.grid[2];
  config.blockDimX = work.block[0], config.blockDimY = work.block[1], config.blockDimZ = work.block[2];
  config.sharedMemBytes = work.dynamicSharedMemory;
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = policy > 0 ? 2 : 1;
  Fit fit;
  int value = 0;
  if (own.cuOccupancyMaxPotentialClusterSize &&
      own.cuOccupancyMaxPotentialClusterSize(&value, kernel.real, &config) == CUDA_SUCCESS)
    fit.largest = static_cast<uint32_t>(value);
  if (own.cuOccupancyMaxActiveClusters &&
      own.cuOccupancyMaxActiveClusters(&value, kernel.real, &config) == CUDA_SUCCESS)
    fit.active = static_cast<uint32_t>(value);
  std::lock_guard lock(kept().mutex);
  return kept().fits.emplace(std::pair{&kernel, shape}, fit).first->second;
}

}  // namespace

const CUaccessPolicyWindow* keepWindow(const CUaccessPolicyWindow* window) {
  if (window == nullptr || window->num_bytes == 0) return nullptr;
  std::lock_guard lock(kept().mutex);
  return &kept().windows.emplace(keyOf(*window), *window).first->second;
}

const CUaccessPolicyWindow* windowOfStream(CUstream stream) {
  CUstreamAttrValue value{};
  if (!own.cuStreamGetAttribute) return nullptr;
  OutsideCapture outside;
  if (own.cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value) != CUDA_SUCCESS)
    return nullptr;
  return keepWindow(&value.accessPolicyWindow);
}

const LaunchFacts* launchFacts(SondeWork& work, const LaunchWishes& wishes, const CUaccessPolicyWindow* ofStream,
                               const KernelInfo& kernel, CUstream stream) {
  if (work.cluster[0] == 0 && kernel.cluster[0] != 0) std::copy_n(kernel.cluster, 3, work.cluster);
  const CUaccessPolicyWindow* window =
      wishes.window != nullptr && wishes.window->num_bytes != 0 ? wishes.window : ofStream;
  const int32_t policy = wishes.clusterPolicy >= 0 ? wishes.clusterPolicy : kernel.clusterPolicy;
  const bool clusters = uint64_t{work.cluster[0]} * work.cluster[1] * work.cluster[2] > 1;
  if (window == nullptr && policy <= CU_CLUSTER_SCHEDULING_POLICY_SPREAD && !clusters) return nullptr;
  LaunchFacts facts{};
  if (window != nullptr) facts.window = *window;
  facts.clusterPolicy = static_cast<uint32_t>(std::max(policy, 0));
  if (clusters) {
    const Fit fit = fitOf(kernel, work, policy, stream);
    facts.largestCluster = fit.largest;
    facts.activeClusters = fit.active;
  }
  std::lock_guard lock(kept().mutex);
  const std::array<uint32_t, 3> numbers{facts.clusterPolicy, facts.largestCluster, facts.activeClusters};
  return &kept().facts.emplace(std::pair{keyOf(facts.window), numbers}, facts).first->second;
}

void tellFacts(SondeWork& work, const LaunchFacts* facts, const Context& context) {
  if (facts != nullptr) {
    if (facts->window.num_bytes != 0) work.accessPolicy = &facts->window;
    work.maxPotentialClusterSize = facts->largestCluster;
    work.maxActiveClusters = facts->activeClusters;
  }
  if (!context.launchesClusters) return;
  // Without a wish blocks are spread.
  work.clusterSchedulingPolicy =
      std::max<uint32_t>(facts != nullptr ? facts->clusterPolicy : 0, CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
}

void describeNodeFacts(CUgraphNode node, CUfunction function, const Context& context, SondeWork& work) {
  LaunchWishes wishes;
  CUkernelNodeAttrValue window{}, policy{};
  if (own.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &window) == CUDA_SUCCESS)
    wishes.window = &window.accessPolicyWindow;
  if (own.cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &policy) ==
          CUDA_SUCCESS &&
      policy.clusterSchedulingPolicyPreference != CU_CLUSTER_SCHEDULING_POLICY_DEFAULT)
    wishes.clusterPolicy = policy.clusterSchedulingPolicyPreference;
  tellFacts(work, launchFacts(work, wishes, nullptr, kernelInfo(function), nullptr), context);
}

}  // namespace sonde::platform::nvidia
