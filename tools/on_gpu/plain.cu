// SPDX-License-Identifier: Apache-2.0
//
// A program that knows nothing of CUPTI: for libraries that are injected.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

__global__ void add(const int* a, const int* b, int* c, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  constexpr int kCount = 50000;
  std::vector<int> a(kCount, 1), b(kCount, 2), c(kCount, 0);
  int *da, *db, *dc;
  for (int** p : {&da, &db, &dc})
    if (cudaMalloc(p, kCount * sizeof(int)) != cudaSuccess) return 1;
  cudaMemcpy(da, a.data(), kCount * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(db, b.data(), kCount * sizeof(int), cudaMemcpyHostToDevice);
  for (int i = 0; i < 5; ++i) add<<<(kCount + 255) / 256, 256>>>(da, db, dc, kCount);
  cudaMemcpy(c.data(), dc, kCount * sizeof(int), cudaMemcpyDeviceToHost);
  cudaDeviceSynchronize();
  std::printf("%d\n", c[kCount - 1]);
  for (int* p : {da, db, dc}) cudaFree(p);
  return c[kCount - 1] == 3 ? 0 : 1;
}
