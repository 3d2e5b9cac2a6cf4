// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/mma_tile.h"

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "softgpu/exec/mma_number.h"

namespace sonde::softgpu::exec {
namespace {

using Shape = TilePlan::Shape;

// Plain loops over arrays, which the compiler makes vectors of: once for
// AVX-512 and once for AVX2. Everything they call must be inlined into them.
#define SONDE_INLINE inline __attribute__((always_inline))
#define SONDE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,prefer-vector-width=512")))
#define SONDE_AVX2 __attribute__((target("avx2,fma,f16c")))

constexpr unsigned kSide = 32, kDepth = 32;

template <class T>
SONDE_INLINE T bits(auto value) {
  T out;
  static_assert(sizeof out == sizeof value);
  __builtin_memcpy(&out, &value, sizeof out);
  return out;
}

// 16-bit elements of a fragment, widened.
SONDE_INLINE void halves(uint32_t* __restrict raw, const void* fragment, const uint16_t* __restrict at, unsigned count,
                         bool dense) {
  if (!dense) {
    const auto* from = static_cast<const uint16_t*>(fragment);
    for (unsigned i = 0; i < count; ++i) raw[i] = from[at[i]];
    return;
  }
  const auto* from = static_cast<const uint32_t*>(fragment);
  for (unsigned r = 0; r < count / 64; ++r)
    for (unsigned l = 0; l < 32; ++l) {
      raw[64 * r + l] = from[32 * r + l] & 0xffffu;
      raw[64 * r + 32 + l] = from[32 * r + l] >> 16;
    }
}

// Elements as f32, which holds each exactly. False: an infinity or NaN is among them.
SONDE_INLINE bool decode(float* __restrict out, const void* fragment, const uint16_t* __restrict at, unsigned count,
                         MatrixType type, bool dense) {
  uint32_t raw[kSide * kDepth];
  uint32_t special = 0;
  if (type == MatrixType::f16) {
    halves(raw, fragment, at, count, dense);
    for (unsigned i = 0; i < count; ++i) {
      special |= (raw[i] & 0x7c00u) == 0x7c00u;
      const float magnitude = bits<float>((raw[i] & 0x7fffu) << 13) * 0x1p112f;
      out[i] = bits<float>(bits<uint32_t>(magnitude) | (raw[i] & 0x8000u) << 16);
    }
    return special == 0;
  }
  if (type == MatrixType::bf16) {
    halves(raw, fragment, at, count, dense);
    for (unsigned i = 0; i < count; ++i) raw[i] <<= 16;
  } else {
    const auto* from = static_cast<const uint32_t*>(fragment);
    const uint32_t mask = type == MatrixType::tf32 ? 0xffffe000u : 0xffffffffu;
    if (dense)
      for (unsigned i = 0; i < count; ++i) raw[i] = from[i] & mask;
    else
      for (unsigned i = 0; i < count; ++i) raw[i] = from[at[i]] & mask;
  }
  for (unsigned i = 0; i < count; ++i) {
    special |= (raw[i] & 0x7f800000u) == 0x7f800000u;
    out[i] = bits<float>(raw[i]);
  }
  return special == 0;
}

// What a set of numbers has in common: the largest magnitude, and a power of
// two that divides all of them.
struct Grain {
  float largest = 0;
  float unit = 0;  // 0: finer than 12 bits below the largest
};

SONDE_INLINE Grain grainOf(const float* __restrict v, unsigned count) {
  uint32_t top = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t magnitude = bits<uint32_t>(v[i]) & 0x7fffffffu;
    top = magnitude > top ? magnitude : top;
  }
  Grain g;
  g.largest = bits<float>(top);
  const int exponent = static_cast<int>(top >> 23) - 127;
  if (top == 0) {
    g.unit = 1;
    return g;
  }
  if (exponent < -100 || exponent > 100) return g;
  const float scale = bits<float>(static_cast<uint32_t>(127 + 11 - exponent) << 23);
  uint32_t all = 0, inexact = 0;
  for (unsigned i = 0; i < count; ++i) {
    const float scaled = v[i] * scale;
    const auto whole = static_cast<int32_t>(scaled);
    inexact |= static_cast<float>(whole) != scaled;
    all |= static_cast<uint32_t>(whole);
  }
  if (!inexact) g.unit = bits<float>(static_cast<uint32_t>(127 + exponent - 11 + std::countr_zero(all)) << 23);
  return g;
}

// Are all sums of these products exact in f32, in any order? Then the matrix
// unit's cutting and rounding change nothing.
SONDE_INLINE bool sumsAreExact(const Grain& a, const Grain& b, const float* __restrict c, unsigned count, unsigned k) {
  if (a.unit == 0 || b.unit == 0) return false;
  const float unit = a.unit * b.unit;
  const float limit = unit * 0x1p23f - static_cast<float>(k) * a.largest * b.largest;
  if (!(unit > 0x1p-100f && unit < 0x1p60f && limit > 0)) return false;
  const float scale = 1 / unit;
  uint32_t wrong = 0;
  for (unsigned i = 0; i < count; ++i) {
    const float magnitude = bits<float>(bits<uint32_t>(c[i]) & 0x7fffffffu);
    const bool large = !(magnitude <= limit);  // or not a number
    const float scaled = large ? 0.0f : c[i] * scale;
    // -0 may come out as such and is left to matrixDot.
    wrong |=
        large | (static_cast<float>(static_cast<int32_t>(scaled)) != scaled) | (bits<uint32_t>(c[i]) == 0x80000000u);
  }
  return wrong == 0;
}

// d = a * b + c as chains of fma along k; four rows at a time, so that the chains overlap. c may be null: zeros.
template <class T>
SONDE_INLINE void chains(const Shape& s, const T* __restrict a, const T* __restrict b, const T* __restrict c,
                         T* __restrict d) {
  constexpr unsigned kRows = 4;  // every m is a multiple of it
  for (unsigned row = 0; row < s.m; row += kRows) {
    T sum[kRows][kSide];
    for (unsigned r = 0; r < kRows; ++r)
      for (unsigned j = 0; j < s.n; ++j) sum[r][j] = c ? c[(row + r) * s.n + j] : T{0};
#pragma GCC unroll 16
    for (unsigned i = 0; i < s.k; ++i)
      for (unsigned r = 0; r < kRows; ++r) {
        const T left = a[(row + r) * s.k + i];
        for (unsigned j = 0; j < s.n; ++j) {
          if constexpr (sizeof(T) == sizeof(float))
            sum[r][j] = __builtin_fmaf(left, b[i * s.n + j], sum[r][j]);
          else
            sum[r][j] = __builtin_fma(left, b[i * s.n + j], sum[r][j]);
        }
      }
    for (unsigned r = 0; r < kRows; ++r)
      for (unsigned j = 0; j < s.n; ++j) d[(row + r) * s.n + j] = sum[r][j];
  }
}

// Are the sums of the products exact in f32, and addends and products of no finer unit than what one pass of the matrix
// unit keeps? Then nothing is cut but the last sum.
SONDE_INLINE bool productsAreExact(const Grain& a, const Grain& b, const float* __restrict c, unsigned count,
                                   unsigned k) {
  if (a.unit == 0 || b.unit == 0 || a.largest == 0 || b.largest == 0 || k > 16) return false;
  const float unit = a.unit * b.unit;
  if (!(unit > 0x1p-100f && unit < 0x1p60f && static_cast<float>(k) * a.largest * b.largest <= unit * 0x1p24f))
    return false;
  const int top =
      static_cast<int>(bits<uint32_t>(a.largest) >> 23) + static_cast<int>(bits<uint32_t>(b.largest) >> 23) - 254;
  if (top > 25 || top < -60) return false;
  const float scale = bits<float>(static_cast<uint32_t>(127 + 25 - top) << 23);
  const float limit = unit * 0x1p26f;  // a larger addend would cut products
  uint32_t wrong = 0;
  for (unsigned i = 0; i < count; ++i) {
    const float magnitude = bits<float>(bits<uint32_t>(c[i]) & 0x7fffffffu);
    const float scaled = magnitude * scale;
    wrong |= !(magnitude < limit) | (__builtin_truncf(scaled) != scaled) | (bits<uint32_t>(c[i]) == 0x80000000u);
  }
  return wrong == 0;
}

// d = a * b, and c added at last, cut to f32.
SONDE_INLINE void addLast(const Shape& s, const float* __restrict a, const float* __restrict b,
                          const float* __restrict c, float* __restrict d) {
  chains<float>(s, a, b, nullptr, d);
  for (unsigned i = 0; i < s.m * s.n; ++i) {
    const float addend = c[i], product = d[i], all = addend + product, part = all - addend;
    const float error = (addend - (all - part)) + (product - part);
    // Rounded away from zero: one back.
    const bool away = error != 0 && ((bits<uint32_t>(error) ^ bits<uint32_t>(all)) >> 31) != 0;
    d[i] = bits<float>(bits<uint32_t>(all) - (away ? 1u : 0u));
  }
}

// Exponents of f32, and their range; false: subnormals are among the numbers.
struct Range {
  int32_t low = 1000, high = kZeroExponent;
};
SONDE_INLINE bool smallExponents(int32_t* __restrict out, const float* __restrict v, unsigned count, Range& range) {
  int32_t low = 1000, high = kZeroExponent;
  uint32_t subnormal = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uint32_t magnitude = bits<uint32_t>(v[i]) & 0x7fffffffu;
    const auto e = static_cast<int32_t>(magnitude >> 23) - 127;
    subnormal |= (magnitude != 0) & (magnitude < 0x800000u);
    out[i] = magnitude == 0 ? kZeroExponent : e;
    const int32_t lower = magnitude == 0 ? 1000 : e;
    low = lower < low ? lower : low;
    high = out[i] > high ? out[i] : high;
  }
  range = {low, high};
  return subnormal == 0;
}

// One pass of the matrix unit for each 16 of k (mma_number.cpp, unitPass), where f32 and 32-bit integers are enough:
// products have at most 24 bits and are nowhere subnormal. False: they are not.
SONDE_INLINE bool narrowProduct(const Shape& s, const float* __restrict a, const float* __restrict b,
                                const float* __restrict c, float* __restrict d) {
  int32_t ea[kSide * kDepth], eb[kSide * kDepth];
  Range ra, rb;
  if (!smallExponents(ea, a, s.m * s.k, ra) || !smallExponents(eb, b, s.k * s.n, rb)) return false;
  if (ra.low + rb.low < -100 || ra.high + rb.high > 90) return false;
  uint32_t bad = 0;
  for (unsigned row = 0; row < s.m; ++row) {
    float value[kSide];
    for (unsigned j = 0; j < s.n; ++j) value[j] = c[row * s.n + j];
    for (unsigned first = 0; first < s.k; first += 16) {
      const unsigned end = s.k - first >= 16 ? first + 16 : s.k, middle = first + (end - first) / 2;
      int32_t top[kSide];
      for (unsigned j = 0; j < s.n; ++j) {
        const uint32_t magnitude = bits<uint32_t>(value[j]) & 0x7fffffffu;
        const auto e = static_cast<int32_t>(magnitude >> 23) - 127;
        const bool far = (magnitude != 0) & ((e < -100) | (e > 90));
        bad |= far;
        value[j] = far ? 0.0f : value[j];
        top[j] = (magnitude == 0) | far ? kZeroExponent : e;
      }
      for (unsigned i = first; i < end; ++i) {
        const int32_t left = ea[row * s.k + i];
        for (unsigned j = 0; j < s.n; ++j) {
          const int32_t e = left + eb[i * s.n + j];
          top[j] = e > top[j] ? e : top[j];
        }
      }
      // Terms are below 2^27 units: eight of them fit into an integer of 32 bits.
      float scale[kSide];
      int32_t lower[kSide], upper[kSide];
      for (unsigned j = 0; j < s.n; ++j) {
        const int32_t e = top[j] < kZeroExponent / 2 ? 0 : top[j] - 25;
        scale[j] = bits<float>(static_cast<uint32_t>(127 - e) << 23);
        lower[j] = static_cast<int32_t>(value[j] * scale[j]);
        upper[j] = 0;
      }
      for (unsigned i = first; i < middle; ++i) {
        const float left = a[row * s.k + i];
        for (unsigned j = 0; j < s.n; ++j) lower[j] += static_cast<int32_t>(left * b[i * s.n + j] * scale[j]);
      }
      for (unsigned i = middle; i < end; ++i) {
        const float left = a[row * s.k + i];
        for (unsigned j = 0; j < s.n; ++j) upper[j] += static_cast<int32_t>(left * b[i * s.n + j] * scale[j]);
      }
      for (unsigned j = 0; j < s.n; ++j) {
        const double sum = static_cast<double>(lower[j]) + static_cast<double>(upper[j]);
        const auto nearest = static_cast<float>(sum);
        const double over = std::fabs(static_cast<double>(nearest)) - std::fabs(sum);
        const float cut = bits<float>(bits<uint32_t>(nearest) - (over > 0 ? 1u : 0u));
        const int32_t e = top[j] < kZeroExponent / 2 ? 0 : top[j] - 25;
        value[j] = top[j] < kZeroExponent / 2 ? value[j] : cut * bits<float>(static_cast<uint32_t>(127 + e) << 23);
      }
    }
    for (unsigned j = 0; j < s.n; ++j) d[row * s.n + j] = value[j];
  }
  return bad == 0;
}

// Into f16: the sum is that of matrixDot, rounded once. d is f32 that rounds to the same f16.
SONDE_INLINE void halfProduct(const Shape& s, const float* __restrict a, const float* __restrict b,
                              const float* __restrict c, float* __restrict d) {
  double wide[kSide * kDepth];
  for (unsigned i = 0; i < s.k * s.n; ++i) wide[i] = b[i];
  for (unsigned row = 0; row < s.m; ++row) {
    double sum[kSide];
    for (unsigned j = 0; j < s.n; ++j) sum[j] = 0;
    for (unsigned i = 0; i < s.k; ++i) {
      const double left = a[row * s.k + i];
      for (unsigned j = 0; j < s.n; ++j) sum[j] += left * wide[i * s.n + j];
    }
    for (unsigned j = 0; j < s.n; ++j) {
      const double exact = c[row * s.n + j] + sum[j];
      const auto nearest = static_cast<float>(exact);
      const double back = nearest;
      // To odd: what is between two f32 goes to the one whose last bit is set.
      const uint32_t cut = bits<uint32_t>(nearest) - (std::fabs(back) > std::fabs(exact) ? 1u : 0u);
      d[row * s.n + j] = bits<float>(back == exact ? bits<uint32_t>(nearest) : cut | 1u);
    }
  }
}

SONDE_INLINE void exponents(int32_t* __restrict out, const float* __restrict v, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const double wide = v[i];
    const auto e = static_cast<int32_t>(bits<uint64_t>(wide) >> 52 & 0x7ff) - 1023;
    out[i] = v[i] == 0 ? kZeroExponent : e;
  }
}

// One pass of the matrix unit for each 16 of k (mma_number.cpp, unitPass).
SONDE_INLINE void cutProduct(const Shape& s, const float* __restrict a, const float* __restrict b,
                             const float* __restrict c, float* __restrict d) {
  int32_t ea[kSide * kDepth], eb[kSide * kDepth];
  double wide[kSide * kDepth];
  exponents(ea, a, s.m * s.k);
  exponents(eb, b, s.k * s.n);
  for (unsigned i = 0; i < s.k * s.n; ++i) wide[i] = b[i];
  for (unsigned row = 0; row < s.m; ++row) {
    float value[kSide];
    for (unsigned j = 0; j < s.n; ++j) value[j] = c[row * s.n + j];
    for (unsigned first = 0; first < s.k; first += 16) {
      const unsigned end = s.k - first >= 16 ? first + 16 : s.k;
      int32_t top[kSide];
      exponents(top, value, s.n);
      for (unsigned i = first; i < end; ++i) {
        const int32_t left = ea[row * s.k + i];
        for (unsigned j = 0; j < s.n; ++j) {
          const int32_t e = left + eb[i * s.n + j];
          top[j] = e > top[j] ? e : top[j];
        }
      }
      double scale[kSide], unit[kSide], sum[kSide];
      for (unsigned j = 0; j < s.n; ++j) {
        // Where all are zero the scale does not matter: the addend stays.
        const int64_t e = top[j] < kZeroExponent / 2 ? 0 : top[j] - 25;
        scale[j] = bits<double>((1023 - e) << 52);
        unit[j] = bits<double>((1023 + e) << 52);
        sum[j] = static_cast<double>(static_cast<int32_t>(value[j] * scale[j]));
      }
      for (unsigned i = first; i < end; ++i) {
        const double left = a[row * s.k + i];
        for (unsigned j = 0; j < s.n; ++j)
          sum[j] += static_cast<double>(static_cast<int32_t>(left * wide[i * s.n + j] * scale[j]));
      }
      for (unsigned j = 0; j < s.n; ++j) {
        const double exact = sum[j] * unit[j];
        const auto nearest = static_cast<float>(exact);
        const double over = std::fabs(static_cast<double>(nearest)) - std::fabs(exact);
        const uint32_t cut = bits<uint32_t>(nearest) - (over > 0 ? 1u : 0u);
        value[j] = top[j] < kZeroExponent / 2 ? value[j] : bits<float>(cut);
      }
    }
    for (unsigned j = 0; j < s.n; ++j) d[row * s.n + j] = value[j];
  }
}

SONDE_AVX2 void roundToHalf(const float* from, uint16_t* to, unsigned count) {
  for (unsigned i = 0; i < count; i += 8)
    _mm_store_si128(reinterpret_cast<__m128i*>(to + i),
                    _mm256_cvtps_ph(_mm256_load_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

SONDE_INLINE bool floats(const Shape& s, const void* fa, const void* fb, const void* fc, void* fd) {
  alignas(64) float a[kSide * kDepth], b[kSide * kDepth], c[kSide * kSide], d[kSide * kSide];
  if (!decode(a, fa, s.a, s.m * s.k, s.type, s.dense) || !decode(b, fb, s.b, s.k * s.n, s.type, s.dense)) return false;
  if (!decode(c, fc, s.c, s.m * s.n, s.halfAddend ? MatrixType::f16 : MatrixType::f32, s.dense)) return false;
  const Grain ga = grainOf(a, s.m * s.k), gb = grainOf(b, s.k * s.n);
  if (sumsAreExact(ga, gb, c, s.m * s.n, s.k))
    chains(s, a, b, c, d);
  else if (s.halfSum)
    halfProduct(s, a, b, c, d);
  else if (productsAreExact(ga, gb, c, s.m * s.n, s.k))
    addLast(s, a, b, c, d);
  else if (!narrowProduct(s, a, b, c, d))
    cutProduct(s, a, b, c, d);
  if (s.halfSum) {
    alignas(64) uint16_t half[kSide * kSide];
    roundToHalf(d, half, s.m * s.n);
    for (unsigned i = 0; i < s.dCount; ++i) static_cast<uint16_t*>(fd)[s.d[i]] = half[s.dElement[i]];
  } else if (s.dense) {
    std::memcpy(fd, d, s.m * s.n * sizeof(float));
  } else {
    for (unsigned i = 0; i < s.dCount; ++i) static_cast<uint32_t*>(fd)[s.d[i]] = bits<uint32_t>(d[s.dElement[i]]);
  }
  return true;
}

// 8-bit elements of a fragment, widened.
SONDE_INLINE void bytes(int32_t* __restrict out, const void* fragment, const uint16_t* __restrict at, unsigned count,
                        const Shape& s) {
  if (s.dense) {
    const auto* from = static_cast<const uint32_t*>(fragment);
    for (unsigned r = 0; r < count / 128; ++r)
      for (unsigned byte = 0; byte < 4; ++byte)
        for (unsigned l = 0; l < 32; ++l) {
          const uint32_t up = from[32 * r + l] << (24 - 8 * byte);
          out[128 * r + 32 * byte + l] =
              s.type == MatrixType::s8 ? static_cast<int32_t>(up) >> 24 : static_cast<int32_t>(up >> 24);
        }
  } else if (s.type == MatrixType::s8) {
    for (unsigned i = 0; i < count; ++i) out[i] = static_cast<const int8_t*>(fragment)[at[i]];
  } else {
    for (unsigned i = 0; i < count; ++i) out[i] = static_cast<const uint8_t*>(fragment)[at[i]];
  }
}

SONDE_INLINE void integers(const Shape& s, const void* fa, const void* fb, const void* fc, void* fd) {
  alignas(64) int32_t a[kSide * kDepth], b[kSide * kDepth], d[kSide * kSide];
  bytes(a, fa, s.a, s.m * s.k, s);
  bytes(b, fb, s.b, s.k * s.n, s);
  alignas(64) int32_t c[kSide * kSide];
  if (s.dense)
    std::memcpy(c, fc, s.m * s.n * sizeof c[0]);
  else
    for (unsigned i = 0; i < s.m * s.n; ++i) c[i] = static_cast<const int32_t*>(fc)[s.c[i]];
  for (unsigned row = 0; row < s.m; ++row) {
    int32_t sum[kSide];
    for (unsigned j = 0; j < s.n; ++j) sum[j] = 0;
    for (unsigned i = 0; i < s.k; ++i) {
      const int32_t left = a[row * s.k + i];
      for (unsigned j = 0; j < s.n; ++j) sum[j] += left * b[i * s.n + j];
    }
    for (unsigned j = 0; j < s.n; ++j) {
      const int32_t addend = c[row * s.n + j];
      const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(addend) + static_cast<uint32_t>(sum[j]));
      // Both of one sign, and the result of the other: beyond the end.
      const bool beyond = ((addend ^ wrapped) & (sum[j] ^ wrapped)) < 0;
      d[row * s.n + j] = s.satfinite && beyond ? (addend < 0 ? INT32_MIN : INT32_MAX) : wrapped;
    }
  }
  if (s.dense) {
    std::memcpy(fd, d, s.m * s.n * sizeof d[0]);
    return;
  }
  for (unsigned i = 0; i < s.dCount; ++i) static_cast<int32_t*>(fd)[s.d[i]] = d[s.dElement[i]];
}

// A chain of fma along k for each element.
SONDE_INLINE void doubles(const Shape& s, const void* fa, const void* fb, const void* fc, void* fd) {
  alignas(64) double a[kSide * kDepth], b[kSide * kDepth], c[kSide * kSide], d[kSide * kSide];
  auto take = [&](double* out, const void* fragment, const uint16_t* at, unsigned count)
                  __attribute__((always_inline)) {
                    if (s.dense)
                      std::memcpy(out, fragment, count * sizeof out[0]);
                    else
                      for (unsigned i = 0; i < count; ++i) out[i] = static_cast<const double*>(fragment)[at[i]];
                  };
  take(a, fa, s.a, s.m * s.k);
  take(b, fb, s.b, s.k * s.n);
  take(c, fc, s.c, s.m * s.n);
  chains(s, a, b, c, d);
  if (s.dense) {
    std::memcpy(fd, d, s.m * s.n * sizeof d[0]);
    return;
  }
  for (unsigned i = 0; i < s.dCount; ++i) static_cast<double*>(fd)[s.d[i]] = d[s.dElement[i]];
}

// Constant sides, so that the loops over columns are whole vectors.
template <unsigned M, unsigned N, unsigned K>
SONDE_INLINE bool sized(const Shape& given, const void* a, const void* b, const void* c, void* d) {
  Shape s = given;
  s.m = M;
  s.n = N;
  s.k = K;
  switch (s.type) {
    case MatrixType::f64: doubles(s, a, b, c, d); return true;
    case MatrixType::s8:
    case MatrixType::u8: integers(s, a, b, c, d); return true;
    default: return floats(s, a, b, c, d);
  }
}

SONDE_INLINE bool dispatch(const Shape& s, const void* a, const void* b, const void* c, void* d) {
  const unsigned key = s.m << 16 | s.n << 8 | s.k;
  switch (key) {
    case 16u << 16 | 16u << 8 | 16: return sized<16, 16, 16>(s, a, b, c, d);
    case 32u << 16 | 8u << 8 | 16: return sized<32, 8, 16>(s, a, b, c, d);
    case 8u << 16 | 32u << 8 | 16: return sized<8, 32, 16>(s, a, b, c, d);
    case 16u << 16 | 16u << 8 | 8: return sized<16, 16, 8>(s, a, b, c, d);
    case 16u << 16 | 8u << 8 | 8: return sized<16, 8, 8>(s, a, b, c, d);
    case 16u << 16 | 8u << 8 | 16: return sized<16, 8, 16>(s, a, b, c, d);
    case 16u << 16 | 8u << 8 | 32: return sized<16, 8, 32>(s, a, b, c, d);
    case 8u << 16 | 8u << 8 | 4: return sized<8, 8, 4>(s, a, b, c, d);
    default: return false;
  }
}

SONDE_AVX512 bool tile512(const Shape& s, const void* a, const void* b, const void* c, void* d) {
  return dispatch(s, a, b, c, d);
}
SONDE_AVX2 bool tile256(const Shape& s, const void* a, const void* b, const void* c, void* d) {
  return dispatch(s, a, b, c, d);
}

using Tile = bool (*)(const Shape&, const void*, const void*, const void*, void*);
Tile best() {
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return tile512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") ? tile256
                                                                                                           : nullptr;
}
Tile tile() {
  static const Tile chosen = best();
  return chosen;
}

bool knownShape(const MatrixJob& j) {
  const unsigned key = static_cast<unsigned>(j.m << 16 | j.n << 8 | j.k);
  const bool f16m8 = !j.wmma && j.m == 8 && j.k == 4 && j.a == MatrixType::f16;
  if (f16m8) return false;
  for (const unsigned known :
       {16u << 16 | 16u << 8 | 16, 32u << 16 | 8u << 8 | 16, 8u << 16 | 32u << 8 | 16, 16u << 16 | 16u << 8 | 8,
        16u << 16 | 8u << 8 | 8, 16u << 16 | 8u << 8 | 16, 16u << 16 | 8u << 8 | 32, 8u << 16 | 8u << 8 | 4})
    if (key == known) return true;
  return false;
}

// The position of an element as an index into the fragment seen as an array of such.
uint16_t position(const MatrixElement& e, MatrixType type) {
  return static_cast<uint16_t>(e.word * perRegister(type) + e.field);
}

}  // namespace

std::unique_ptr<TilePlan> TilePlan::make(const MatrixJob& job, const std::vector<MatrixElement>& a,
                                         const std::vector<MatrixElement>& b, const std::vector<MatrixElement>& c,
                                         const std::vector<MatrixElement>& d) {
  const bool wanted = job.a == MatrixType::f16 || job.a == MatrixType::bf16 || job.a == MatrixType::tf32 ||
                      job.a == MatrixType::f64 || job.a == MatrixType::s8 || job.a == MatrixType::u8;
  if (!tile() || !wanted || job.a != job.b || !knownShape(job)) return nullptr;
  auto plan = std::make_unique<TilePlan>();
  constexpr uint16_t missing = UINT16_MAX;
  plan->a_.assign(job.m * job.k, missing);
  plan->b_.assign(job.k * job.n, missing);
  plan->c_.assign(job.m * job.n, missing);
  for (const auto& e : a) plan->a_[e.row * job.k + e.column] = position(e, job.a);
  for (const auto& e : b) plan->b_[e.row * job.n + e.column] = position(e, job.b);
  for (const auto& e : c) plan->c_[e.row * job.n + e.column] = position(e, job.c);
  for (const auto* table : {&plan->a_, &plan->b_, &plan->c_})
    for (const uint16_t at : *table)
      if (at == missing) return nullptr;
  for (const auto& e : d) {
    plan->d_.push_back(position(e, job.d));
    plan->dElement_.push_back(static_cast<uint16_t>(e.row * job.n + e.column));
  }
  return plan;
}

bool TilePlan::multiply(const MatrixJob& job, const void* a, const void* b, const void* c, void* d) const {
  const Shape shape{job.m,
                    job.n,
                    job.k,
                    job.a,
                    a_.data(),
                    b_.data(),
                    c_.data(),
                    d_.data(),
                    dElement_.data(),
                    static_cast<unsigned>(d_.size()),
                    job.satfinite != 0,
                    job.d == MatrixType::f16,
                    job.c == MatrixType::f16,
                    job.wmma != 0};
  return tile()(shape, a, b, c, d);
}

}  // namespace sonde::softgpu::exec
