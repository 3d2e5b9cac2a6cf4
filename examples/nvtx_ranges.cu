// SPDX-License-Identifier: Apache-2.0
// Ranges and marks that a profiler shows beside the GPU's work: each phase of
// a small iteration (Jacobi's method for a row of heated cells) is a range.
// Without a profiler the annotations do nothing.
// Usage: nvtx_ranges [--n CELLS] [--iterations COUNT]
#include <nvtx3/nvToolsExt.h>

#include <vector>

#include "example.h"

// Ends its range when it goes out of scope.
class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
};

__global__ void relax(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = i == 0 || i == n - 1 ? in[i] : 0.5f * (in[i - 1] + in[i + 1]);
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Ranges and marks that a profiler shows", "[--n CELLS] [--iterations COUNT]");
  const int n = option(argc, argv, "--n", 5000, 3);
  const int iterations = option(argc, argv, "--iterations", 20);
  std::vector<float> cells(n, 0.0f), expected, next(n);
  float *a, *b;
  {
    Range range("set up");
    cells.front() = 100.0f;
    cells.back() = 50.0f;
    expected = cells;
    CHECK(cudaMalloc(&a, n * sizeof(float)));
    CHECK(cudaMalloc(&b, n * sizeof(float)));
    CHECK(cudaMemcpy(a, cells.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  }
  {
    Range range("iterate");
    for (int i = 0; i < iterations; ++i) {
      if (i == iterations / 2) nvtxMarkA("half way");
      relax<<<(n + 255) / 256, 256>>>(a, b, n);
      CHECK(cudaGetLastError());
      float* t = a;
      a = b;
      b = t;
    }
    CHECK(cudaDeviceSynchronize());
  }
  long wrong = 0;
  {
    Range range("check");
    CHECK(cudaMemcpy(cells.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < iterations; ++i) {
      for (int k = 0; k < n; ++k)
        next[k] = k == 0 || k == n - 1 ? expected[k] : 0.5f * (expected[k - 1] + expected[k + 1]);
      expected.swap(next);
    }
    for (int k = 0; k < n; ++k) wrong += cells[k] != expected[k];  // sums and halves: the same roundings
  }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  std::printf("%d cells, %d iterations: %ld wrong\n", n, iterations, wrong);
  return verdict("nvtx_ranges", wrong == 0);
}
