// SPDX-License-Identifier: Apache-2.0
//
// A library for CUDA_INJECTION64_PATH: notes that it was called, and that the
// driver already works then.
#include <cuda.h>

#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  int n = 0;
  setenv("SONDE_TEST_INJECTED", cuDeviceGetCount(&n) == CUDA_SUCCESS && n == 1 ? "yes" : "too early", 1);
  return 1;
}
