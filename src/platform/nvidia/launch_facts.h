// SPDX-License-Identifier: Apache-2.0
//
// What records tell of a kernel's launch beyond its shape: how its clusters are
// placed and fit on the device, and its window of the L2 cache.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "platform/nvidia/objects.h"
#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

// Lives for good; equal ones are one object.
struct LaunchFacts {
  CUaccessPolicyWindow window;  // of no bytes: none
  uint32_t clusterPolicy;       // CUclusterSchedulingPolicy; 0: the device's own
  uint32_t largestCluster, activeClusters;
};

// What the launch itself asks for.
struct LaunchWishes {
  const CUaccessPolicyWindow* window = nullptr;
  int32_t clusterPolicy = -1;  // -1: nothing
};

// A window that lives for good; nullptr for nullptr and for one of no bytes.
const CUaccessPolicyWindow* keepWindow(const CUaccessPolicyWindow* window);
// That of a stream, as the driver has it.
const CUaccessPolicyWindow* windowOfStream(CUstream stream);

// `work` has the launch's shape, and gets the kernel's own cluster where the
// launch has none. nullptr: there is nothing to tell, as of most launches.
const LaunchFacts* launchFacts(SondeWork& work, const LaunchWishes& wishes, const CUaccessPolicyWindow* ofStream,
                               const KernelInfo& kernel, CUstream stream);
void tellFacts(SondeWork& work, const LaunchFacts* facts, const Context& context);

// The facts of a kernel node of a graph, put into `work`, which has its shape.
void describeNodeFacts(CUgraphNode node, CUfunction function, const Context& context, SondeWork& work);

}  // namespace sonde::platform::nvidia
