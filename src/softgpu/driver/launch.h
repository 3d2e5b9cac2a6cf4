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
};

// A window of the attribute ACCESS_POLICY_WINDOW; one of no bytes is none.
CUresult takeAccessPolicy(const Device& device, const CUaccessPolicyWindow& window, AccessPolicy& policy);

// Copies the parameters of a launch into the kernel's packed form.
CUresult packParams(const exec::KernelInfo& info, void** kernelParams, void** extra, ParamBuffer& params);
// Checks the shape of a launch against the function and the device.
CUresult checkLaunchShape(const Function& function, const LaunchShape& shape);
// Checks a launch against the function and the device, and has its code made.
CUresult prepareLaunch(Function& function, LaunchShape& shape);
CUresult launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** kernelParams, void** extra);

}  // namespace sonde::softgpu::driver
