// SPDX-License-Identifier: Apache-2.0
// Sum and inclusive prefix sum of 32-bit integers with warp shuffles.
// The scan is the classic three steps: blocks, block totals, add the offsets.
// Usage: reduction [--n ELEMENTS]
#include <vector>

#include "example.h"

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ unsigned warpSum(unsigned value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

__device__ unsigned warpInclusiveScan(unsigned value) {
  int lane = threadIdx.x % 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    unsigned before = __shfl_up_sync(0xffffffffu, value, offset);
    if (lane >= offset) value += before;
  }
  return value;
}

__global__ void sumKernel(const unsigned* in, unsigned* total, int n) {
  __shared__ unsigned partial[kWarps];
  unsigned sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  sum = warpSum(sum);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warpSum(threadIdx.x < kWarps ? partial[threadIdx.x] : 0u);
    if (threadIdx.x == 0) atomicAdd(total, sum);
  }
}

// Scans each block; writes the block's total when `totals` is given.
__global__ void scanBlocks(const unsigned* in, unsigned* out, unsigned* totals, int n) {
  __shared__ unsigned warpTotals[kWarps];
  int i = blockIdx.x * kThreads + threadIdx.x;
  int warp = threadIdx.x / 32;
  unsigned value = warpInclusiveScan(i < n ? in[i] : 0u);
  if (threadIdx.x % 32 == 31) warpTotals[warp] = value;
  __syncthreads();
  if (warp == 0) {
    unsigned sums = warpInclusiveScan(threadIdx.x < kWarps ? warpTotals[threadIdx.x] : 0u);
    if (threadIdx.x < kWarps) warpTotals[threadIdx.x] = sums;
  }
  __syncthreads();
  if (warp > 0) value += warpTotals[warp - 1];
  if (i < n) out[i] = value;
  if (totals != nullptr && threadIdx.x == kThreads - 1) totals[blockIdx.x] = value;
}

__global__ void addOffsets(unsigned* out, const unsigned* scannedTotals, int n) {
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += scannedTotals[blockIdx.x - 1];
}

static void scan(const unsigned* in, unsigned* out, int n) {
  int blocks = (n + kThreads - 1) / kThreads;
  if (blocks == 1) {
    scanBlocks<<<1, kThreads>>>(in, out, nullptr, n);
    CHECK(cudaGetLastError());
    return;
  }
  unsigned* totals;
  CHECK(cudaMalloc(&totals, blocks * sizeof(unsigned)));
  scanBlocks<<<blocks, kThreads>>>(in, out, totals, n);
  CHECK(cudaGetLastError());
  scan(totals, totals, blocks);
  addOffsets<<<blocks, kThreads>>>(out, totals, n);
  CHECK(cudaGetLastError());
  CHECK(cudaFree(totals));
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Sum and prefix sum of integers with warp shuffles", "[--n ELEMENTS]");
  int n = option(argc, argv, "--n", 200001);
  std::vector<unsigned> in(n), out(n);
  Random random(3);
  for (unsigned& x : in) x = random.next() % 1000;

  unsigned *deviceIn, *deviceOut, *deviceSum;
  CHECK(cudaMalloc(&deviceIn, n * sizeof(unsigned)));
  CHECK(cudaMalloc(&deviceOut, n * sizeof(unsigned)));
  CHECK(cudaMalloc(&deviceSum, sizeof(unsigned)));
  CHECK(cudaMemcpy(deviceIn, in.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(deviceSum, 0, sizeof(unsigned)));
  int blocks = (n + kThreads - 1) / kThreads;
  sumKernel<<<blocks < 64 ? blocks : 64, kThreads>>>(deviceIn, deviceSum, n);
  CHECK(cudaGetLastError());
  scan(deviceIn, deviceOut, n);
  unsigned sum = 0;
  CHECK(cudaMemcpy(&sum, deviceSum, sizeof(sum), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(out.data(), deviceOut, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(deviceIn));
  CHECK(cudaFree(deviceOut));
  CHECK(cudaFree(deviceSum));

  long wrong = 0;
  unsigned expected = 0;
  for (int i = 0; i < n; ++i) {
    expected += in[i];
    if (out[i] != expected) ++wrong;
  }
  std::printf("%d elements: sum %u (expected %u), %ld wrong prefixes\n", n, sum, expected, wrong);
  return verdict("reduction", wrong == 0 && sum == expected);
}
