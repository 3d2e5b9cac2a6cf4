// SPDX-License-Identifier: Apache-2.0
// Somebody else's tool, in the slot that the collector wants.
#include <cstdio>

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  std::printf("the other tool\n");
  std::fflush(stdout);
  return 1;
}
