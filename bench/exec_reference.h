// SPDX-License-Identifier: Apache-2.0
//
// The benchmarks' loops in plain C++, built with -O3 -march=native.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::bench {

void vadd(const float* a, const float* b, float* c, size_t n);
void saxpy(float a, const float* x, float* y, size_t n);
void matmul(const float* a, const float* b, float* c, size_t n);
void collatz(uint32_t* out, size_t n);

}  // namespace sonde::bench
