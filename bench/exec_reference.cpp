// SPDX-License-Identifier: Apache-2.0
#include "exec_reference.h"

#include <algorithm>

namespace sonde::bench {

void vadd(const float* a, const float* b, float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

void saxpy(float a, const float* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

void matmul(const float* a, const float* b, float* c, size_t n) {
  constexpr size_t tile = 16;
  std::fill(c, c + n * n, 0.0f);
  for (size_t y = 0; y < n; y += tile)
    for (size_t k = 0; k < n; k += tile)
      for (size_t i = y; i < y + tile; ++i)
        for (size_t j = k; j < k + tile; ++j) {
          const float v = a[i * n + j];
          for (size_t x = 0; x < n; ++x) c[i * n + x] += v * b[j * n + x];
        }
}

void collatz(uint32_t* out, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    uint32_t v = static_cast<uint32_t>(i) + 1, steps = 0;
    for (; v != 1; ++steps) v = v & 1 ? v * 3 + 1 : v >> 1;
    out[i] = steps;
  }
}

}  // namespace sonde::bench
