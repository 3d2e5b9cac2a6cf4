// SPDX-License-Identifier: Apache-2.0
// A library that allocates on behalf of the program.
#include <cuda_runtime_api.h>

extern "C" __attribute__((visibility("default"))) int allocateInLibrary(void** memory, size_t bytes) {
  const cudaError_t error = cudaMalloc(memory, bytes);
  return error == cudaSuccess ? 0 : 1;  // not the last thing that it does: no jump
}
