// SPDX-License-Identifier: Apache-2.0
// The workload in two annotated regions; what Caliper records of it is said in
// the environment (CALI_…).
#include <caliper/cali.h>

#include "workload.h"

int main() {
  // The services for managed memory and events need a driver that is initialised, not a context.
  int devices = 0;
  WORKLOAD_OK(cudaGetDeviceCount(&devices));
  CALI_MARK_BEGIN("first");
  bool right = workload();
  CALI_MARK_END("first");
  CALI_MARK_BEGIN("second");
  right = workload() && right;
  CALI_MARK_END("second");
  std::fprintf(stderr, "results: %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
