// SPDX-License-Identifier: Apache-2.0
// The workload, and nothing of any client: for those that the driver injects.
#include "workload.h"

int main() {
  const bool right = workload();
  std::printf("results: %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
