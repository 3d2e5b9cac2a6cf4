// SPDX-License-Identifier: Apache-2.0
// Least-significant-digit radix sort of 32-bit keys, 4 bits a pass. Each block
// counts its digits, the counts are scanned digit by digit, and each block puts
// its keys where they belong, keeping equal digits in order.
// Usage: radix_sort [--n KEYS]
#include <algorithm>
#include <vector>

#include "example.h"

constexpr int kThreads = 256;
constexpr int kDigits = 16;

__global__ void countDigits(const unsigned* keys, int n, int shift, unsigned* counts) {
  __shared__ unsigned bins[kDigits];
  if (threadIdx.x < kDigits) bins[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) atomicAdd(&bins[keys[i] >> shift & (kDigits - 1)], 1u);
  __syncthreads();
  // Digit-major, so that one scan gives each block's first place for each digit.
  if (threadIdx.x < kDigits) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// Exclusive scan by one block, any length.
__global__ void scanCounts(unsigned* counts, int n) {
  __shared__ unsigned warpSums[kThreads / 32];
  unsigned carry = 0;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int first = 0; first < n; first += kThreads) {
    int i = first + threadIdx.x;
    unsigned own = i < n ? counts[i] : 0u, sum = own;
    for (int offset = 1; offset < 32; offset *= 2) {
      unsigned before = __shfl_up_sync(0xffffffffu, sum, offset);
      if (lane >= offset) sum += before;
    }
    if (lane == 31) warpSums[warp] = sum;
    __syncthreads();
    unsigned base = carry, total = 0;
    for (int w = 0; w < kThreads / 32; ++w) {
      if (w < warp) base += warpSums[w];
      total += warpSums[w];
    }
    if (i < n) counts[i] = base + sum - own;
    carry += total;
    __syncthreads();
  }
}

__global__ void scatter(const unsigned* in, unsigned* out, int n, int shift, const unsigned* places) {
  __shared__ unsigned char digits[kThreads];
  int i = blockIdx.x * kThreads + threadIdx.x;
  unsigned key = i < n ? in[i] : 0u;
  unsigned digit = i < n ? key >> shift & (kDigits - 1) : kDigits;
  digits[threadIdx.x] = static_cast<unsigned char>(digit);
  __syncthreads();
  if (i >= n) return;
  unsigned rank = 0;
  for (int before = 0; before < static_cast<int>(threadIdx.x); ++before) rank += digits[before] == digit;
  out[places[digit * gridDim.x + blockIdx.x] + rank] = key;
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Radix sort of 32-bit keys", "[--n KEYS]");
  const int n = option(argc, argv, "--n", 20011);
  std::vector<unsigned> keys(n);
  Random random(29);
  for (unsigned& key : keys) key = random.next();
  std::vector<unsigned> expected = keys;
  std::sort(expected.begin(), expected.end());

  const int blocks = (n + kThreads - 1) / kThreads;
  unsigned *a, *b, *counts;
  CHECK(cudaMalloc(&a, n * sizeof(unsigned)));
  CHECK(cudaMalloc(&b, n * sizeof(unsigned)));
  CHECK(cudaMalloc(&counts, blocks * kDigits * sizeof(unsigned)));
  CHECK(cudaMemcpy(a, keys.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
  for (int shift = 0; shift < 32; shift += 4) {
    countDigits<<<blocks, kThreads>>>(a, n, shift, counts);
    scanCounts<<<1, kThreads>>>(counts, blocks * kDigits);
    scatter<<<blocks, kThreads>>>(a, b, n, shift, counts);
    CHECK(cudaGetLastError());
    std::swap(a, b);
  }
  CHECK(cudaMemcpy(keys.data(), a, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(counts));

  long wrong = 0;
  for (int i = 0; i < n; ++i) wrong += keys[i] != expected[i];
  std::printf("%d keys, %ld out of place\n", n, wrong);
  return verdict("radix_sort", wrong == 0);
}
