// SPDX-License-Identifier: Apache-2.0
// c = a + b, the smallest whole program: allocate, copy, launch, copy back, check.
// Usage: vector_add [--n ELEMENTS]
#include <vector>

#include "example.h"

__global__ void vectorAdd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Adds two vectors", "[--n ELEMENTS]");
  int n = option(argc, argv, "--n", 100003);
  size_t bytes = n * sizeof(float);
  std::vector<float> a(n), b(n), c(n, -1.0f);
  Random random(7);
  for (int i = 0; i < n; ++i) {
    a[i] = random.unit();
    b[i] = random.unit();
  }

  float *deviceA, *deviceB, *deviceC;
  CHECK(cudaMalloc(&deviceA, bytes));
  CHECK(cudaMalloc(&deviceB, bytes));
  CHECK(cudaMalloc(&deviceC, bytes));
  CHECK(cudaMemcpy(deviceA, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(deviceB, b.data(), bytes, cudaMemcpyHostToDevice));
  vectorAdd<<<(n + 255) / 256, 256>>>(deviceA, deviceB, deviceC, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), deviceC, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(deviceA));
  CHECK(cudaFree(deviceB));
  CHECK(cudaFree(deviceC));

  long wrong = 0;
  for (int i = 0; i < n; ++i)
    if (c[i] != a[i] + b[i]) ++wrong;  // one IEEE addition: exact
  std::printf("%d elements, %ld wrong\n", n, wrong);
  return verdict("vector_add", wrong == 0);
}
