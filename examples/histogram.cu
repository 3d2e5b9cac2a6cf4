// SPDX-License-Identifier: Apache-2.0
// A 256-bin histogram of bytes, twice: with atomics on global memory alone, and
// with a copy of the bins in shared memory that each block adds up at the end.
// Usage: histogram [--n BYTES]
#include <vector>

#include "example.h"

constexpr int kBins = 256;

__global__ void histogramGlobal(const unsigned char* data, int n, unsigned* bins) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[data[i]], 1u);
}

__global__ void histogramShared(const unsigned char* data, int n, unsigned* bins) {
  __shared__ unsigned local[kBins];
  for (int i = threadIdx.x; i < kBins; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += blockDim.x)
    if (local[i] != 0) atomicAdd(&bins[i], local[i]);
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "A 256-bin histogram of bytes, with atomics on global and on shared memory",
                 "[--n BYTES]");
  const int n = option(argc, argv, "--n", 300007);
  std::vector<unsigned char> data(n);
  std::vector<unsigned> expected(kBins, 0);
  Random random(13);
  for (unsigned char& byte : data) {
    // The sum of two throws: the middle bins are the crowded ones.
    byte = static_cast<unsigned char>((random.next() % 128) + (random.next() % 129));
    ++expected[byte];
  }

  unsigned char* deviceData;
  unsigned* deviceBins;
  CHECK(cudaMalloc(&deviceData, n));
  CHECK(cudaMalloc(&deviceBins, 2 * kBins * sizeof(unsigned)));
  CHECK(cudaMemcpy(deviceData, data.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(deviceBins, 0, 2 * kBins * sizeof(unsigned)));
  const int blocks = (n + 256 * 16 - 1) / (256 * 16);
  histogramGlobal<<<blocks, 256>>>(deviceData, n, deviceBins);
  CHECK(cudaGetLastError());
  histogramShared<<<blocks, 256>>>(deviceData, n, deviceBins + kBins);
  CHECK(cudaGetLastError());
  std::vector<unsigned> bins(2 * kBins);
  CHECK(cudaMemcpy(bins.data(), deviceBins, bins.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(deviceData));
  CHECK(cudaFree(deviceBins));

  int wrong = 0;
  for (int i = 0; i < kBins; ++i) wrong += (bins[i] != expected[i]) + (bins[kBins + i] != expected[i]);
  std::printf("%d bytes, %d of %d bins wrong\n", n, wrong, 2 * kBins);
  return verdict("histogram", wrong == 0);
}
