// SPDX-License-Identifier: Apache-2.0
//
// The rounding here was found by comparing with recorded products of an H200
// (tests/matrix): into f32, up to 16 exact products and the addend are aligned
// to the largest exponent, cut to 25 fraction bits, summed, and the sum is cut
// to f32. PTX leaves order and rounding open; this is what one card does.
#include "softgpu/exec/mma_number.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace sonde::softgpu::exec {

namespace {

double small(uint32_t code, unsigned exponentBits, unsigned fractionBits) {
  const int bias = (1 << (exponentBits - 1)) - 1;
  const auto exponent = static_cast<int>((code >> fractionBits) & ((1u << exponentBits) - 1));
  const uint32_t fraction = code & ((1u << fractionBits) - 1);
  const double sign = (code >> (exponentBits + fractionBits)) & 1 ? -1.0 : 1.0;
  if (exponent == (1 << exponentBits) - 1) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - static_cast<int>(fractionBits));
  return sign * std::ldexp(fraction + (1u << fractionBits), exponent - bias - static_cast<int>(fractionBits));
}

}  // namespace

uint16_t matrixHalf(double v) {
  if (std::isnan(v)) return 0x7fff;
  const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  const double magnitude = std::fabs(v);
  if (magnitude >= 65520.0) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14)
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24)));
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 11 - exponent)));  // 1024 ... 2048
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 13) << 10) + units));
}

namespace {

double powerOfTwo(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

float towardsZero(double v) {
  const auto f = static_cast<float>(v);
  return std::fabs(static_cast<double>(f)) > std::fabs(v) ? std::bit_cast<float>(std::bit_cast<uint32_t>(f) - 1) : f;
}

// The three inner loops, for any host and for AVX2. count is a multiple of 8.
struct Loops {
  int (*top)(const int32_t* a, const int32_t* b, unsigned count);                 // largest sum of exponents
  double (*cut)(const double* a, const double* b, unsigned count, double scale);  // sum of trunc(a * b * scale)
  double (*chain)(const double* a, const double* b, unsigned count, double c);    // fma after fma
  double (*exact)(const double* a, const double* b, unsigned count);
  int64_t (*integers)(const int32_t* a, const int32_t* b, unsigned count);
};

const Loops kPlain{
    [](const int32_t* a, const int32_t* b, unsigned count) {
      int top = 2 * kZeroExponent;
      for (unsigned i = 0; i < count; ++i) top = std::max(top, a[i] + b[i]);
      return top;
    },
    [](const double* a, const double* b, unsigned count, double scale) {
      double sum = 0;
      for (unsigned i = 0; i < count; ++i) sum += static_cast<double>(static_cast<int32_t>(a[i] * b[i] * scale));
      return sum;
    },
    [](const double* a, const double* b, unsigned count, double c) {
      for (unsigned i = 0; i < count; ++i) c = std::fma(a[i], b[i], c);
      return c;
    },
    [](const double* a, const double* b, unsigned count) {
      double sum = 0;
      for (unsigned i = 0; i < count; ++i) sum += a[i] * b[i];
      return sum;
    },
    [](const int32_t* a, const int32_t* b, unsigned count) {
      int64_t sum = 0;
      for (unsigned i = 0; i < count; ++i) sum += a[i] * b[i];
      return sum;
    },
};

#define SONDE_AVX2 __attribute__((target("avx2,fma")))

SONDE_AVX2 int topAvx2(const int32_t* a, const int32_t* b, unsigned count) {
  __m256i top = _mm256_set1_epi32(2 * kZeroExponent);
  for (unsigned i = 0; i < count; i += 8)
    top = _mm256_max_epi32(top, _mm256_add_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)),
                                                 _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i))));
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return _mm_cvtsi128_si32(half);
}
SONDE_AVX2 double horizontal(__m256d v) {
  const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}
SONDE_AVX2 double cutAvx2(const double* a, const double* b, unsigned count, double scale) {
  const __m256d s = _mm256_set1_pd(scale);
  __m256d sum = _mm256_setzero_pd();
  for (unsigned i = 0; i < count; i += 4) {
    const __m256d p = _mm256_mul_pd(_mm256_mul_pd(_mm256_loadu_pd(a + i), _mm256_loadu_pd(b + i)), s);
    sum = _mm256_add_pd(sum, _mm256_round_pd(p, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
  }
  return horizontal(sum);
}
SONDE_AVX2 double chainAvx2(const double* a, const double* b, unsigned count, double c) {
  for (unsigned i = 0; i < count; ++i) c = std::fma(a[i], b[i], c);
  return c;
}
SONDE_AVX2 int64_t integersAvx2(const int32_t* a, const int32_t* b, unsigned count) {
  __m256i sum = _mm256_setzero_si256();  // at most 256 products of 16 bits
  for (unsigned i = 0; i < count; i += 8)
    sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)),
                                                   _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i))));
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  return _mm_cvtsi128_si32(half);
}

const Loops kAvx2{topAvx2, cutAvx2, chainAvx2, kPlain.exact, integersAvx2};

const Loops& loops() {
  static const Loops& best = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? kAvx2 : kPlain;
  return best;
}

// One pass of the matrix unit over `count` elements from `first` on.
float unitPass(const Loops& loop, const MatrixLine& a, const MatrixLine& b, unsigned first, unsigned count,
               float addend) {
  if (a.special || b.special || !std::isfinite(addend))
    return static_cast<float>(addend + loop.exact(a.real + first, b.real + first, count));
  const int top = std::max(exponentOf(addend), loop.top(a.exponent + first, b.exponent + first, count));
  if (top < kZeroExponent / 2) return addend;
  const int unit = top - 25;  // terms are below 2^27 units
  const double scale = powerOfTwo(-unit);
  const double sum = std::trunc(addend * scale) + loop.cut(a.real + first, b.real + first, count, scale);
  return towardsZero(sum * powerOfTwo(unit));
}

}  // namespace

unsigned positionOf(unsigned k, MatrixType type) {
  // 8-bit formats are widened to f16: the lower two of each four elements come in
  // a first pass, the upper two in a second.
  if (type != MatrixType::e4m3 && type != MatrixType::e5m2) return k;
  return k / 4 * 2 + k % 2 + (k % 4 >= 2 ? 16 : 0);
}

int32_t exponentOf(double v) {
  return v == 0 ? kZeroExponent : static_cast<int32_t>(std::bit_cast<uint64_t>(v) >> 52 & 0x7ff) - 1023;
}

double matrixReal(uint64_t bits, MatrixType type) {
  const auto word = static_cast<uint32_t>(bits);
  switch (type) {
    case MatrixType::f64: return std::bit_cast<double>(bits);
    case MatrixType::f32: return std::bit_cast<float>(word);
    case MatrixType::tf32: return std::bit_cast<float>(word & 0xffffe000u);  // the upper 19 bits count
    case MatrixType::bf16: return std::bit_cast<float>(word << 16);
    case MatrixType::f16: {
      if ((word & 0x7c00) == 0x7c00) return small(word, 5, 10);
      // The fields moved into an f32 make a value 2^112 too small, subnormals included.
      const float v = std::bit_cast<float>((word & 0x7fff) << 13) * 0x1p112f;
      return word & 0x8000 ? -v : v;
    }
    case MatrixType::e5m2: return small(word, 5, 2);
    case MatrixType::e4m3:  // no infinities: the highest exponent holds numbers, too
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

uint64_t matrixDot(const MatrixJob& job, const MatrixLine& a, const MatrixLine& b, double c) {
  const Loops& loop = loops();
  if (job.a == MatrixType::f64) return std::bit_cast<uint64_t>(loop.chain(a.real, b.real, job.k, c));
  if (job.d == MatrixType::f16) return matrixHalf(c + loop.exact(a.real, b.real, job.k));
  auto sum = static_cast<float>(c);
  if (job.m == 8 && job.k == 4) {
    // f16 m8n8k4 has no matrix unit of its own any more: a chain of fma, then the addend.
    auto products = static_cast<float>(a.real[0] * b.real[0]);
    for (unsigned k = 1; k < 4; ++k)
      products = std::fma(static_cast<float>(a.real[k]), static_cast<float>(b.real[k]), products);
    sum += products;
  } else if (job.a == MatrixType::e4m3 || job.a == MatrixType::e5m2) {
    sum += unitPass(loop, a, b, 16, 16, unitPass(loop, a, b, 0, 16, 0.0f));  // the addend comes last
  } else {
    for (unsigned k = 0; k < job.k; k += 16) sum = unitPass(loop, a, b, k, job.k - k >= 16 ? 16 : 8, sum);
  }
  return std::isnan(sum) ? 0x7fffffffu : std::bit_cast<uint32_t>(sum);
}

int64_t matrixDot(const MatrixJob& job, const MatrixLine& a, const MatrixLine& b, int64_t c, unsigned count) {
  if (job.a == MatrixType::b1 && !job.andPopc) {
    for (unsigned k = 0; k < count; ++k) c += a.integer[k] ^ b.integer[k];
    return c;
  }
  return c + loops().integers(a.integer, b.integer, count);  // of bits, the product is their and
}

}  // namespace sonde::softgpu::exec
