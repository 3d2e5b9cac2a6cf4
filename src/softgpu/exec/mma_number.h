// SPDX-License-Identifier: Apache-2.0
//
// Elements of matrix operands as numbers, and the dot products of results.
#pragma once

#include <cstdint>

#include "softgpu/exec/mma_layout.h"

namespace sonde::softgpu::exec {

inline constexpr unsigned kMatrixDepth = 256;   // the longest k

// One row of a, or column of b, along k. Of floating-point elements `real` is
// the exact value and `exponent` that of its leading bit; of the others
// `integer` counts.
struct MatrixVector {
  double real[kMatrixDepth];
  int32_t exponent[kMatrixDepth];
  int32_t integer[kMatrixDepth];
  bool special;                       // holds an infinity or a NaN
};

void setElement(MatrixVector& vector, unsigned k, uint64_t bits, MatrixType type);
double matrixReal(uint64_t bits, MatrixType type);      // floating-point types
int32_t matrixInteger(uint64_t bits, MatrixType type);  // the others

// c + a . b in the rounding of a Hopper card's matrix units, as bits of job.d.
uint64_t matrixDot(const MatrixJob& job, const MatrixVector& a, const MatrixVector& b, double c);

}  // namespace sonde::softgpu::exec
