// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions: what one of them multiplies, and which lane's register
// holds which element. A fragment is an array of 32-lane rows, one row for each
// register of the operand: 32-bit words, or doubles for f64.
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

enum class MatrixType : uint8_t { f16, bf16, tf32, f64, e4m3, e5m2, s8, u8, s4, u4, b1, f32, s32 };
enum class MatrixPart : uint8_t { a, b, c };  // c is d, too

// Compiled code holds these as constants: plain, and part of kAbiVersion.
struct MatrixJob {
  uint16_t m = 0, n = 0, k = 0;
  MatrixType a = MatrixType::f16, b = MatrixType::f16, c = MatrixType::f32, d = MatrixType::f32;
  uint8_t registersA = 0, registersB = 0, registersC = 0, registersD = 0;
  uint8_t wmma = 0;       // fragments of wmma: a layout of our own
  uint8_t satfinite = 0;  // integers: clamp instead of wrapping
  uint8_t andPopc = 0;    // b1: and instead of xor
  uint8_t columnA = 0;    // m8n8k4 f16, and memory operands: the layout named in the instruction
  uint8_t rowB = 0;
  uint8_t reserved = 0;  // no padding: jobs are compared as bytes
};

constexpr unsigned bitsOf(MatrixType t) {
  switch (t) {
    case MatrixType::f64: return 64;
    case MatrixType::tf32:
    case MatrixType::f32:
    case MatrixType::s32: return 32;
    case MatrixType::f16:
    case MatrixType::bf16: return 16;
    case MatrixType::e4m3:
    case MatrixType::e5m2:
    case MatrixType::s8:
    case MatrixType::u8: return 8;
    case MatrixType::s4:
    case MatrixType::u4: return 4;
    case MatrixType::b1: return 1;
  }
  return 0;
}
constexpr unsigned perRegister(MatrixType t) { return t == MatrixType::f64 ? 1 : 32 / bitsOf(t); }
constexpr bool isIntegerMatrix(MatrixType t) { return t >= MatrixType::s8 && t <= MatrixType::b1; }

struct MatrixPlace {
  uint16_t row = 0, column = 0;
  bool used = true;
};

// Element `index` of register `reg` in `lane`.
MatrixPlace matrixPlace(const MatrixJob& job, MatrixPart part, unsigned reg, unsigned lane, unsigned index);

}  // namespace sonde::softgpu::exec
