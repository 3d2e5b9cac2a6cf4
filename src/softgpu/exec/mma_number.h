// SPDX-License-Identifier: Apache-2.0
//
// Elements of matrix operands as numbers, and the dot products of results.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softgpu/exec/mma_layout.h"

namespace sonde::softgpu::exec {

// One row of a, or column of b, along k, padded with zeros to a multiple of 8.
// Of floating-point elements `real` is the exact value and `exponent` that of
// its leading bit; of the others `integer` counts. Elements stand in the order
// in which the matrix unit takes them (positionOf).
struct MatrixLine {
  const double* real;
  const int32_t* exponent;
  const int32_t* integer;
  bool special;  // holds an infinity or a NaN
};

inline constexpr int32_t kZeroExponent = -100000;  // below every other

// Where element k of a line stands.
unsigned positionOf(unsigned k, MatrixType type);
double matrixReal(uint64_t bits, MatrixType type);      // floating-point types
int32_t matrixInteger(uint64_t bits, MatrixType type);  // the others
uint16_t matrixHalf(double v);                          // the nearest f16, ties to even
int32_t exponentOf(double v);                           // of a normal number or zero

// c + a . b in the rounding of a Hopper card's matrix units, as bits of job.d.
uint64_t matrixDot(const MatrixJob& job, const MatrixLine& a, const MatrixLine& b, double c);
// c + a . b over `count` (padded) elements of integers; of b1 the common bits.
int64_t matrixDot(const MatrixJob& job, const MatrixLine& a, const MatrixLine& b, int64_t c, unsigned count);

}  // namespace sonde::softgpu::exec
