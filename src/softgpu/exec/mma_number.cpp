// SPDX-License-Identifier: Apache-2.0
//
// The rounding here was found by comparing with recorded products of an H200
// (tests/matrix): into f32, up to 16 exact products and the addend are aligned
// to the largest exponent, cut to 25 fraction bits, summed, and the sum is cut
// to f32. PTX leaves order and rounding open; this is what one card does.
#include "softgpu/exec/mma_number.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sonde::softgpu::exec {

namespace {

constexpr int kNoExponent = -100000;   // of a zero: below every other

double small(uint32_t code, unsigned exponentBits, unsigned fractionBits) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  const auto exponent = static_cast<int>((code >> fractionBits) & ((1u << exponentBits) - 1));
  const uint32_t fraction = code & ((1u << fractionBits) - 1);
  const double sign = (code >> (exponentBits + fractionBits)) & 1 ? -1.0 : 1.0;
  if (exponent == (1 << exponentBits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - static_cast<int>(fractionBits));
  return sign * std::ldexp(fraction + (1u << fractionBits), exponent - bias - static_cast<int>(fractionBits));
}

// f16 by table: its 65536 values.
struct HalfTable {
  double value[65536];
  HalfTable() {
    for (uint32_t code = 0; code < 65536; ++code) value[code] = small(code, 5, 10);
  }
};

// The nearest f16 to a double, ties to even.
uint16_t toHalf(double v) {
  if (std::isnan(v)) return 0x7fff;
  const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  const double magnitude = std::fabs(v);
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24)));
  int exponent;
  std::frexp(magnitude, &exponent);   // magnitude in [2^(exponent-1), 2^exponent)
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 11 - exponent)));   // 1024 ... 2048
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 13) << 10) + units));
}

int exponentOf(double v) {   // of its leading bit; no product here is subnormal
  return v == 0 ? kNoExponent : static_cast<int>(std::bit_cast<uint64_t>(v) >> 52 & 0x7ff) - 1023;
}

double powerOfTwo(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

float towardsZero(double v) {
  const auto f = static_cast<float>(v);
  return std::fabs(static_cast<double>(f)) > std::fabs(v) ? std::bit_cast<float>(std::bit_cast<uint32_t>(f) - 1) : f;
}

// One pass of the matrix unit over the elements first, first + step ... of a and b,
// `run` at a time.
struct Selection {
  unsigned first, run, step, count;
  unsigned at(unsigned i) const { return first + i / run * step + i % run; }
};

float unitPass(const MatrixVector& a, const MatrixVector& b, const Selection& s, float addend) {
  if (a.special || b.special || !std::isfinite(addend)) {
    double sum = addend;
    for (unsigned i = 0; i < s.count; ++i) sum += a.real[s.at(i)] * b.real[s.at(i)];
    return static_cast<float>(sum);
  }
  int top = exponentOf(addend);
  for (unsigned i = 0; i < s.count; ++i) top = std::max(top, a.exponent[s.at(i)] + b.exponent[s.at(i)]);
  if (top < kNoExponent / 2) return addend;
  // Terms are below 2^27 units, so that their sum fits a 32-bit integer's double easily.
  const int unit = top - 25;
  const double scale = powerOfTwo(-unit);
  double sum = static_cast<int32_t>(addend * scale);
  for (unsigned i = 0; i < s.count; ++i)
    sum += static_cast<double>(static_cast<int32_t>(a.real[s.at(i)] * b.real[s.at(i)] * scale));
  return towardsZero(sum * powerOfTwo(unit));
}

}  // namespace

double matrixReal(uint64_t bits, MatrixType type) {
  static const HalfTable halves;
  const auto word = static_cast<uint32_t>(bits);
  switch (type) {
    case MatrixType::f64: return std::bit_cast<double>(bits);
    case MatrixType::f32: return std::bit_cast<float>(word);
    case MatrixType::tf32: return std::bit_cast<float>(word & 0xffffe000u);   // the upper 19 bits count
    case MatrixType::bf16: return std::bit_cast<float>(word << 16);
    case MatrixType::f16: return halves.value[word & 0xffff];
    case MatrixType::e5m2: return small(word, 5, 2);
    case MatrixType::e4m3:   // no infinities: the highest exponent holds numbers, too
      if ((word & 0x7f) == 0x7f) return NAN;
      if ((word & 0x78) == 0x78) return (word & 0x80 ? -1.0 : 1.0) * (256.0 + 32.0 * (word & 7));
      return small(word, 4, 3);
    default: return 0;
  }
}

int32_t matrixInteger(uint64_t bits, MatrixType type) {
  const auto word = static_cast<uint32_t>(bits);
  switch (type) {
    case MatrixType::s8: return static_cast<int8_t>(word);
    case MatrixType::u8: return static_cast<int32_t>(word & 0xff);
    case MatrixType::s4: return static_cast<int32_t>(word << 28) >> 28;
    case MatrixType::u4: return static_cast<int32_t>(word & 15);
    case MatrixType::b1: return static_cast<int32_t>(word & 1);
    default: return static_cast<int32_t>(word);
  }
}

void setElement(MatrixVector& vector, unsigned k, uint64_t bits, MatrixType type) {
  if (isIntegerMatrix(type)) {
    vector.integer[k] = matrixInteger(bits, type);
    return;
  }
  const double v = matrixReal(bits, type);
  vector.real[k] = v;
  vector.exponent[k] = exponentOf(v);
  vector.special |= !std::isfinite(v);
}

uint64_t matrixDot(const MatrixJob& job, const MatrixVector& a, const MatrixVector& b, double c) {
  if (job.a == MatrixType::f64) {
    double sum = c;
    for (unsigned k = 0; k < job.k; ++k) sum = std::fma(a.real[k], b.real[k], sum);
    return std::bit_cast<uint64_t>(sum);
  }
  if (job.d == MatrixType::f16) {
    double sum = c;
    for (unsigned k = 0; k < job.k; ++k) sum += a.real[k] * b.real[k];
    return toHalf(sum);
  }
  auto sum = static_cast<float>(c);
  if (job.m == 8 && job.k == 4) {
    // f16 m8n8k4 has no matrix unit of its own any more: a chain of fma, then the addend.
    auto products = static_cast<float>(a.real[0] * b.real[0]);
    for (unsigned k = 1; k < 4; ++k)
      products = std::fma(static_cast<float>(a.real[k]), static_cast<float>(b.real[k]), products);
    sum += products;
  } else if (job.a == MatrixType::e4m3 || job.a == MatrixType::e5m2) {
    // Widened to f16: the lower two of each four elements, then the upper two; the addend comes last.
    const float low = unitPass(a, b, {0, 2, 4, 16}, 0.0f);
    sum += unitPass(a, b, {2, 2, 4, 16}, low);
  } else {
    for (unsigned k = 0; k < job.k; k += 16) sum = unitPass(a, b, {k, 16, 16, std::min(16u, job.k - k)}, sum);
  }
  return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<uint32_t>(sum);
}

}  // namespace sonde::softgpu::exec
