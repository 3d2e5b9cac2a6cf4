// SPDX-License-Identifier: Apache-2.0
//
// Products of small matrices of f32 as the matrix unit makes them: exactly where that is known to be the same, else
// with its cutting. Inlined into code for AVX-512 and for AVX2 (mma_tile.cpp).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "softgpu/exec/mma_number.h"
#include "softgpu/exec/mma_tile.h"

// Plain loops over arrays, which the compiler makes vectors of: once for
// AVX-512 and once for AVX2. Everything they call must be inlined into them.
#define SONDE_INLINE inline __attribute__((always_inline))

namespace sonde::softgpu::exec::tile_math {

using Shape = TilePlan::Shape;

inline constexpr unsigned kSide = 32, kDepth = 32;

template <class T>
SONDE_INLINE T bits(auto value) {
  T out;
  static_assert(sizeof out == sizeof value);
  __builtin_memcpy(&out, &value, sizeof out);
  return out;
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

}  // namespace sonde::softgpu::exec::tile_math
