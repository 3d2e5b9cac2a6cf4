// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

struct LaunchShape {
  exec::Dim3 grid, block, cluster{0, 0, 0};
  uint32_t dynamicShared = 0;
  bool cooperative = false, hasPriority = false;
  int32_t priority = 0;
  int32_t carveout = -1;             // percent of shared memory asked for; -1: as the function has it
  std::shared_ptr<const SmSet> sms;  // null: all of the device
  AccessPolicy accessPolicy;         // none: the stream's
  int32_t clusterPolicy = -1;        // CUclusterSchedulingPolicy; -1: the function's
  // Of a graph's kernel node, for those who ask: hints without effect here.
  CUlaunchMemSyncDomain memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
  CUlaunchMemSyncDomainMap memSyncDomainMap{0, 1};
};

// A window of the attribute ACCESS_POLICY_WINDOW; one of no bytes is none.
CUresult takeAccessPolicy(const Device& device, const CUaccessPolicyWindow& window, AccessPolicy& policy);

// A value of CUclusterSchedulingPolicy.
bool knownClusterPolicy(int policy);
// The cluster that a launch has when its configuration says nothing of one: that of the kernel or of its function.
CUresult takeClusterOf(const Function& function, LaunchShape& shape);
// What records tell of a launch's clusters: the policy that holds, and what cuOccupancyMaxPotentialClusterSize and
// cuOccupancyMaxActiveClusters say, which is 0 where blocks stand alone. All 0: the device has no clusters.
struct ClusterFacts {
  uint32_t policy = 0, largest = 0, active = 0;
};
ClusterFacts clusterFacts(const Function& function, const LaunchPlan& plan);

// Copies the parameters of a launch into the kernel's packed form.
CUresult packParams(const exec::KernelInfo& info, void** kernelParams, void** extra, ParamBuffer& params);
// Checks the shape of a launch against the function and the device.
CUresult checkLaunchShape(const Function& function, const LaunchShape& shape);
// Checks a launch against the function and the device, and has its code made.
CUresult prepareLaunch(Function& function, LaunchShape& shape);
CUresult launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** kernelParams, void** extra);

}  // namespace sonde::softgpu::driver
