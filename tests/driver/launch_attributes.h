// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

namespace sonde::test {

inline CUlaunchAttribute clusterOf(unsigned blocks) {
  CUlaunchAttribute a{};
  a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  a.value.clusterDim.x = blocks;
  a.value.clusterDim.y = a.value.clusterDim.z = 1;
  return a;
}

inline CUlaunchAttribute policyOf(CUclusterSchedulingPolicy policy) {
  CUlaunchAttribute a{};
  a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  a.value.clusterSchedulingPolicyPreference = policy;
  return a;
}

}  // namespace sonde::test
