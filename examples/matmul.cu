// SPDX-License-Identifier: Apache-2.0
// C = A B with tiles in shared memory, any sizes (edges are padded with zeros).
// Usage: matmul [--m ROWS] [--n COLUMNS] [--k INNER] [--repeat TIMES]
#include <vector>

#include "example.h"

constexpr int kTile = 16;
constexpr int kMost = 32768;  // of rows and columns: their product must fit into an int

__global__ void matmulTiled(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tileA[kTile][kTile];
  __shared__ float tileB[kTile][kTile];
  int column = blockIdx.x * kTile + threadIdx.x;
  int row = blockIdx.y * kTile + threadIdx.y;
  float sum = 0.0f;
  for (int first = 0; first < k; first += kTile) {
    int inner = first + threadIdx.x;
    tileA[threadIdx.y][threadIdx.x] = row < m && inner < k ? a[row * k + inner] : 0.0f;
    inner = first + threadIdx.y;
    tileB[threadIdx.y][threadIdx.x] = inner < k && column < n ? b[inner * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += tileA[threadIdx.y][i] * tileB[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "C = A B with tiles in shared memory",
                 "[--m ROWS] [--n COLUMNS] [--k INNER] [--repeat TIMES]");
  int m = option(argc, argv, "--m", 130, 1, kMost);
  int n = option(argc, argv, "--n", 100, 1, kMost);
  int k = option(argc, argv, "--k", 144, 1, kMost);
  int repeat = option(argc, argv, "--repeat", 3);
  std::vector<float> a(m * k), b(k * n), c(m * n);
  Random random(11);
  for (float& x : a) x = random.unit() - 0.5f;
  for (float& x : b) x = random.unit() - 0.5f;

  float *deviceA, *deviceB, *deviceC;
  CHECK(cudaMalloc(&deviceA, a.size() * sizeof(float)));
  CHECK(cudaMalloc(&deviceB, b.size() * sizeof(float)));
  CHECK(cudaMalloc(&deviceC, c.size() * sizeof(float)));
  CHECK(cudaMemcpy(deviceA, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(deviceB, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));

  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  dim3 block(kTile, kTile);
  dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  // Once untimed: the first launch also loads the code.
  matmulTiled<<<grid, block>>>(deviceA, deviceB, deviceC, m, n, k);
  CHECK(cudaEventRecord(start));
  for (int i = 0; i < repeat; ++i) matmulTiled<<<grid, block>>>(deviceA, deviceB, deviceC, m, n, k);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0.0f;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  CHECK(cudaMemcpy(c.data(), deviceC, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaFree(deviceA));
  CHECK(cudaFree(deviceB));
  CHECK(cudaFree(deviceC));

  // |error| of a sum of k products, each below 1/4: k roundings of at most k/4 * 2^-24.
  double bound = 0.25 * k * k * std::ldexp(1.0, -24);
  double worst = 0.0;
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = 0.0;
      for (int i = 0; i < k; ++i) sum += static_cast<double>(a[row * k + i]) * b[i * n + column];
      worst = larger(worst, std::fabs(sum - c[row * n + column]));
    }
  std::printf("%d x %d x %d: %.3f ms a product, %.2f GFLOP/s, worst error %.2e (bound %.2e)\n", m, n, k,
              milliseconds / repeat, 2e-6 * m * n * k * repeat / milliseconds, worst, bound);
  return verdict("matmul", worst <= bound);
}
