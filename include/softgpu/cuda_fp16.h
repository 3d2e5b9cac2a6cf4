/* SPDX-License-Identifier: Apache-2.0
 *
 * Half precision: __half and __half2, their conversions, arithmetic,
 * comparisons and functions, on host and device. Each operation rounds once
 * to half. Device arithmetic uses the half instructions; the host computes in
 * single precision, which rounds to the same value for + - * / and sqrt.
 */
#ifndef __CUDA_FP16_H__
#define __CUDA_FP16_H__

#if defined(__cplusplus)

#include "cuda_runtime.h"

#include <cmath>
#include <cstring>

#if defined(__CUDA__)
#define SONDE_HALF_FN static __inline__ __host__ __device__
#define SONDE_HALF_MEMBER __host__ __device__
#else
#define SONDE_HALF_FN static inline
#define SONDE_HALF_MEMBER
#endif

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};

namespace sonde_half {

/* float to half, rounding: 0 nearest even, 1 zero, 2 up, 3 down. */
SONDE_HALF_FN unsigned short fromFloat(float value, int mode = 0) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  unsigned sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;  // the NaN that PTX gives
  if (magnitude == 0x7f800000u) return (unsigned short)(sign | 0x7c00u);
  unsigned result, rest, half;
  if (magnitude >= 0x38800000u) {  // normal half, or too large
    result = (magnitude - 0x38000000u) >> 13;
    rest = magnitude & 0x1fffu;
    half = 0x1000u;
  } else {  // subnormal half: a whole number of 2^-24
    unsigned shift = 126u - (magnitude >> 23);
    unsigned mantissa = (magnitude & 0x7fffffu) | (magnitude >> 23 ? 0x800000u : 0u);
    if (shift > 25) {
      result = 0;
      rest = magnitude != 0;
      half = 2;
    } else {
      result = mantissa >> shift;
      rest = mantissa & ((1u << shift) - 1);
      half = 1u << (shift - 1);
    }
  }
  bool up = mode == 0   ? rest > half || (rest == half && (result & 1))
            : mode == 2 ? rest != 0 && !sign
            : mode == 3 ? rest != 0 && sign
                        : false;
  result += up;
  if (result > 0x7c00u) result = 0x7c00u;
  if (result == 0x7c00u && (mode == 1 || (mode == 2 && sign) || (mode == 3 && !sign))) result = 0x7bffu;
  return (unsigned short)(sign | result);
}

SONDE_HALF_FN float toFloat(unsigned short half) {
  unsigned sign = (unsigned)(half & 0x8000u) << 16, exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu, bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000u | mantissa << 13;
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  } else {
    float value = (float)mantissa * 5.9604644775390625e-8f;  // 2^-24
    __builtin_memcpy(&bits, &value, 4);
    bits |= sign;
  }
  float result;
  __builtin_memcpy(&result, &bits, 4);
  return result;
}

/* double to half, rounded once: through a float rounded to odd. */
SONDE_HALF_FN unsigned short fromDouble(double value) {
  float nearest = (float)value;
  unsigned bits;
  __builtin_memcpy(&bits, &nearest, 4);
  if ((bits & 0x7fffffffu) < 0x7f800000u && (double)nearest != value) {
    bool away = (nearest < 0 ? -(double)nearest : (double)nearest) > (value < 0 ? -value : value);
    if (away) --bits;  // now truncated
    bits |= 1;
    __builtin_memcpy(&nearest, &bits, 4);
  }
  return fromFloat(nearest);
}

}  // namespace sonde_half

struct __half {
 protected:
  unsigned short __x;

 public:
  __half() = default;
  SONDE_HALF_MEMBER __half(const __half_raw &raw) : __x(raw.x) {}
  SONDE_HALF_MEMBER __half &operator=(const __half_raw &raw) {
    __x = raw.x;
    return *this;
  }
  SONDE_HALF_MEMBER operator __half_raw() const { return __half_raw{__x}; }
  SONDE_HALF_MEMBER __half(float value) : __x(sonde_half::fromFloat(value)) {}
  SONDE_HALF_MEMBER __half(double value) : __x(sonde_half::fromDouble(value)) {}
  SONDE_HALF_MEMBER __half(short value) : __x(sonde_half::fromFloat((float)value)) {}
  SONDE_HALF_MEMBER __half(unsigned short value) : __x(sonde_half::fromFloat((float)value)) {}
  SONDE_HALF_MEMBER __half(int value) : __x(sonde_half::fromDouble((double)value)) {}
  SONDE_HALF_MEMBER __half(unsigned value) : __x(sonde_half::fromDouble((double)value)) {}
  SONDE_HALF_MEMBER __half(long value) : __x(sonde_half::fromDouble((double)value)) {}
  SONDE_HALF_MEMBER __half(unsigned long value) : __x(sonde_half::fromDouble((double)value)) {}
  SONDE_HALF_MEMBER __half(long long value) : __x(sonde_half::fromDouble((double)value)) {}
  SONDE_HALF_MEMBER __half(unsigned long long value) : __x(sonde_half::fromDouble((double)value)) {}
  SONDE_HALF_MEMBER operator float() const { return sonde_half::toFloat(__x); }
  SONDE_HALF_MEMBER explicit operator bool() const { return (__x & 0x7fff) != 0; }
#define SONDE_HALF_TO(T) \
  SONDE_HALF_MEMBER explicit operator T() const { return (T)sonde_half::toFloat(__x); }
  SONDE_HALF_TO(char)
  SONDE_HALF_TO(signed char)
  SONDE_HALF_TO(unsigned char)
  SONDE_HALF_TO(short)
  SONDE_HALF_TO(unsigned short)
  SONDE_HALF_TO(int)
  SONDE_HALF_TO(unsigned)
  SONDE_HALF_TO(long)
  SONDE_HALF_TO(unsigned long)
  SONDE_HALF_TO(long long)
  SONDE_HALF_TO(unsigned long long)
#undef SONDE_HALF_TO
};

struct __align__(4) __half2 {
  __half x, y;
  __half2() = default;
  SONDE_HALF_MEMBER __half2(const __half &a, const __half &b) : x(a), y(b) {}
  SONDE_HALF_MEMBER __half2(const __half2_raw &raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  SONDE_HALF_MEMBER operator __half2_raw() const {
    return __half2_raw{static_cast<__half_raw>(x).x, static_cast<__half_raw>(y).x};
  }
};

typedef __half half;
typedef __half2 half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
typedef __half nv_half;
typedef __half2 nv_half2;

/* ----------------------------------------------------------- conversions -- */

SONDE_HALF_FN __half sonde_half_bits(unsigned short bits) { return __half(__half_raw{bits}); }
SONDE_HALF_FN unsigned short sonde_bits_half(__half h) { return static_cast<__half_raw>(h).x; }

SONDE_HALF_FN __half __float2half(float a) { return __half(a); }
SONDE_HALF_FN __half __float2half_rn(float a) { return __half(a); }
SONDE_HALF_FN __half __float2half_rz(float a) { return sonde_half_bits(sonde_half::fromFloat(a, 1)); }
SONDE_HALF_FN __half __float2half_ru(float a) { return sonde_half_bits(sonde_half::fromFloat(a, 2)); }
SONDE_HALF_FN __half __float2half_rd(float a) { return sonde_half_bits(sonde_half::fromFloat(a, 3)); }
SONDE_HALF_FN __half __double2half(double a) { return __half(a); }
SONDE_HALF_FN float __half2float(__half a) { return (float)a; }
SONDE_HALF_FN __half2 __floats2half2_rn(float a, float b) { return __half2(__half(a), __half(b)); }
SONDE_HALF_FN __half2 __float2half2_rn(float a) { return __half2(__half(a), __half(a)); }
SONDE_HALF_FN __half2 __float22half2_rn(float2 a) { return __half2(__half(a.x), __half(a.y)); }
SONDE_HALF_FN float2 __half22float2(__half2 a) {
  float2 r;
  r.x = (float)a.x;
  r.y = (float)a.y;
  return r;
}
SONDE_HALF_FN float __low2float(__half2 a) { return (float)a.x; }
SONDE_HALF_FN float __high2float(__half2 a) { return (float)a.y; }
SONDE_HALF_FN __half2 __half2half2(__half a) { return __half2(a, a); }
SONDE_HALF_FN __half2 __halves2half2(__half a, __half b) { return __half2(a, b); }
SONDE_HALF_FN __half2 make_half2(__half a, __half b) { return __half2(a, b); }
SONDE_HALF_FN __half __low2half(__half2 a) { return a.x; }
SONDE_HALF_FN __half __high2half(__half2 a) { return a.y; }
SONDE_HALF_FN __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
SONDE_HALF_FN __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
SONDE_HALF_FN __half2 __lowhigh2highlow(__half2 a) { return __half2(a.y, a.x); }
SONDE_HALF_FN __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
SONDE_HALF_FN __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }
SONDE_HALF_FN short __half_as_short(__half a) { return (short)sonde_bits_half(a); }
SONDE_HALF_FN unsigned short __half_as_ushort(__half a) { return sonde_bits_half(a); }
SONDE_HALF_FN __half __short_as_half(short a) { return sonde_half_bits((unsigned short)a); }
SONDE_HALF_FN __half __ushort_as_half(unsigned short a) { return sonde_half_bits(a); }

/* Integers, saturating; NaN becomes 0. */
#define SONDE_HALF_TO_INTEGER(name, T, low, high)                                             \
  SONDE_HALF_FN T name##_rz(__half a) {                                                       \
    float x = (float)a;                                                                       \
    return x != x ? (T)0 : x <= (float)(low) ? (T)(low) : x >= (float)(high) ? (T)(high) : (T)x; \
  }                                                                                           \
  SONDE_HALF_FN T name##_rn(__half a) { return name##_rz(__half(__builtin_rintf((float)a))); } \
  SONDE_HALF_FN T name##_ru(__half a) { return name##_rz(__half(__builtin_ceilf((float)a))); } \
  SONDE_HALF_FN T name##_rd(__half a) { return name##_rz(__half(__builtin_floorf((float)a))); }
SONDE_HALF_TO_INTEGER(__half2int, int, -2147483647 - 1, 2147483647)
SONDE_HALF_TO_INTEGER(__half2uint, unsigned, 0, 4294967295u)
SONDE_HALF_TO_INTEGER(__half2short, short, -32768, 32767)
SONDE_HALF_TO_INTEGER(__half2ushort, unsigned short, 0, 65535)
SONDE_HALF_TO_INTEGER(__half2ll, long long, -9223372036854775807ll - 1, 9223372036854775807ll)
SONDE_HALF_TO_INTEGER(__half2ull, unsigned long long, 0, 18446744073709551615ull)
#undef SONDE_HALF_TO_INTEGER
SONDE_HALF_FN __half __int2half_rn(int a) { return __half(a); }
SONDE_HALF_FN __half __uint2half_rn(unsigned a) { return __half(a); }
SONDE_HALF_FN __half __short2half_rn(short a) { return __half(a); }
SONDE_HALF_FN __half __ushort2half_rn(unsigned short a) { return __half(a); }
SONDE_HALF_FN __half __ll2half_rn(long long a) { return __half(a); }
SONDE_HALF_FN __half __ull2half_rn(unsigned long long a) { return __half(a); }

/* ------------------------------------------------------------- arithmetic -- */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 530
#define SONDE_HALF_BINARY(name, instruction, operation)                                                      \
  SONDE_HALF_FN __half name(__half a, __half b) {                                                            \
    unsigned short r;                                                                                        \
    __asm__(instruction " %0, %1, %2;" : "=h"(r) : "h"(sonde_bits_half(a)), "h"(sonde_bits_half(b)));        \
    return sonde_half_bits(r);                                                                               \
  }
#else
#define SONDE_HALF_BINARY(name, instruction, operation) \
  SONDE_HALF_FN __half name(__half a, __half b) { return __half((float)a operation(float) b); }
#endif
SONDE_HALF_BINARY(__hadd, "add.f16", +)
SONDE_HALF_BINARY(__hsub, "sub.f16", -)
SONDE_HALF_BINARY(__hmul, "mul.f16", *)
SONDE_HALF_BINARY(__hadd_rn, "add.rn.f16", +)
SONDE_HALF_BINARY(__hsub_rn, "sub.rn.f16", -)
SONDE_HALF_BINARY(__hmul_rn, "mul.rn.f16", *)
#undef SONDE_HALF_BINARY
SONDE_HALF_FN __half __hdiv(__half a, __half b) { return __half((float)a / (float)b); }
SONDE_HALF_FN __half __hfma(__half a, __half b, __half c) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 530
  unsigned short r;
  __asm__("fma.rn.f16 %0, %1, %2, %3;"
          : "=h"(r) : "h"(sonde_bits_half(a)), "h"(sonde_bits_half(b)), "h"(sonde_bits_half(c)));
  return sonde_half_bits(r);
#else
  // The product of two halves and the sum with a third are exact in double.
  return __half((double)(float)a * (double)(float)b + (double)(float)c);
#endif
}
SONDE_HALF_FN __half __hneg(__half a) { return sonde_half_bits(sonde_bits_half(a) ^ 0x8000u); }
SONDE_HALF_FN __half __habs(__half a) { return sonde_half_bits(sonde_bits_half(a) & 0x7fffu); }
SONDE_HALF_FN __half sonde_half_saturate(__half a) {
  float x = (float)a;
  return x > 0 ? (x > 1 ? __half(1.0f) : a) : __half(0.0f);  // NaN becomes 0
}
SONDE_HALF_FN __half __hadd_sat(__half a, __half b) { return sonde_half_saturate(__hadd(a, b)); }
SONDE_HALF_FN __half __hsub_sat(__half a, __half b) { return sonde_half_saturate(__hsub(a, b)); }
SONDE_HALF_FN __half __hmul_sat(__half a, __half b) { return sonde_half_saturate(__hmul(a, b)); }
SONDE_HALF_FN __half __hfma_sat(__half a, __half b, __half c) { return sonde_half_saturate(__hfma(a, b, c)); }
SONDE_HALF_FN __half __hfma_relu(__half a, __half b, __half c) {
  __half r = __hfma(a, b, c);
  return (float)r < 0 ? __half(0.0f) : r;
}

/* ------------------------------------------------------------ comparisons -- */

SONDE_HALF_FN bool __hisnan(__half a) { return (sonde_bits_half(a) & 0x7fffu) > 0x7c00u; }
SONDE_HALF_FN int __hisinf(__half a) {
  unsigned short b = sonde_bits_half(a);
  return b == 0x7c00u ? 1 : b == 0xfc00u ? -1 : 0;
}
#define SONDE_HALF_COMPARE(name, operation)                                                            \
  SONDE_HALF_FN bool __h##name(__half a, __half b) { return (float)a operation(float) b; }             \
  SONDE_HALF_FN bool __h##name##u(__half a, __half b) {                                                \
    return __hisnan(a) || __hisnan(b) || (float)a operation(float) b;                                  \
  }
SONDE_HALF_COMPARE(eq, ==)
SONDE_HALF_COMPARE(lt, <)
SONDE_HALF_COMPARE(le, <=)
SONDE_HALF_COMPARE(gt, >)
SONDE_HALF_COMPARE(ge, >=)
#undef SONDE_HALF_COMPARE
SONDE_HALF_FN bool __hne(__half a, __half b) { return !__hisnan(a) && !__hisnan(b) && (float)a != (float)b; }
SONDE_HALF_FN bool __hneu(__half a, __half b) { return (float)a != (float)b; }
SONDE_HALF_FN __half __hmax(__half a, __half b) {
  if (__hisnan(a)) return __hisnan(b) ? sonde_half_bits(0x7fff) : b;
  if (__hisnan(b)) return a;
  if ((float)a == (float)b) return sonde_bits_half(a) & 0x8000u ? b : a;  // +0 above -0
  return (float)a > (float)b ? a : b;
}
SONDE_HALF_FN __half __hmin(__half a, __half b) {
  if (__hisnan(a)) return __hisnan(b) ? sonde_half_bits(0x7fff) : b;
  if (__hisnan(b)) return a;
  if ((float)a == (float)b) return sonde_bits_half(a) & 0x8000u ? a : b;
  return (float)a < (float)b ? a : b;
}
SONDE_HALF_FN __half __hmax_nan(__half a, __half b) {
  return __hisnan(a) || __hisnan(b) ? sonde_half_bits(0x7fff) : __hmax(a, b);
}
SONDE_HALF_FN __half __hmin_nan(__half a, __half b) {
  return __hisnan(a) || __hisnan(b) ? sonde_half_bits(0x7fff) : __hmin(a, b);
}

/* ----------------------------------------------------------------- pairs -- */

#define SONDE_HALF2_BINARY(name, single)                            \
  SONDE_HALF_FN __half2 name(__half2 a, __half2 b) {                \
    return __half2(single(a.x, b.x), single(a.y, b.y));             \
  }
SONDE_HALF2_BINARY(__hadd2, __hadd)
SONDE_HALF2_BINARY(__hsub2, __hsub)
SONDE_HALF2_BINARY(__hmul2, __hmul)
SONDE_HALF2_BINARY(__hadd2_rn, __hadd)
SONDE_HALF2_BINARY(__hsub2_rn, __hsub)
SONDE_HALF2_BINARY(__hmul2_rn, __hmul)
SONDE_HALF2_BINARY(__h2div, __hdiv)
SONDE_HALF2_BINARY(__hadd2_sat, __hadd_sat)
SONDE_HALF2_BINARY(__hsub2_sat, __hsub_sat)
SONDE_HALF2_BINARY(__hmul2_sat, __hmul_sat)
SONDE_HALF2_BINARY(__hmax2, __hmax)
SONDE_HALF2_BINARY(__hmin2, __hmin)
SONDE_HALF2_BINARY(__hmax2_nan, __hmax_nan)
SONDE_HALF2_BINARY(__hmin2_nan, __hmin_nan)
#undef SONDE_HALF2_BINARY
SONDE_HALF_FN __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
SONDE_HALF_FN __half2 __hfma2_sat(__half2 a, __half2 b, __half2 c) {
  return __half2(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));
}
SONDE_HALF_FN __half2 __hfma2_relu(__half2 a, __half2 b, __half2 c) {
  return __half2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));
}
SONDE_HALF_FN __half2 __hneg2(__half2 a) { return __half2(__hneg(a.x), __hneg(a.y)); }
SONDE_HALF_FN __half2 __habs2(__half2 a) { return __half2(__habs(a.x), __habs(a.y)); }
SONDE_HALF_FN __half2 __hisnan2(__half2 a) {
  return __half2(__half(__hisnan(a.x) ? 1.0f : 0.0f), __half(__hisnan(a.y) ? 1.0f : 0.0f));
}
#define SONDE_HALF2_COMPARE(name)                                                                             \
  SONDE_HALF_FN __half2 __h##name##2(__half2 a, __half2 b) {                                                  \
    return __half2(__half(__h##name(a.x, b.x) ? 1.0f : 0.0f), __half(__h##name(a.y, b.y) ? 1.0f : 0.0f));      \
  }                                                                                                           \
  SONDE_HALF_FN bool __hb##name##2(__half2 a, __half2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); } \
  SONDE_HALF_FN unsigned __h##name##2_mask(__half2 a, __half2 b) {                                            \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                    \
  }
SONDE_HALF2_COMPARE(eq)
SONDE_HALF2_COMPARE(ne)
SONDE_HALF2_COMPARE(lt)
SONDE_HALF2_COMPARE(le)
SONDE_HALF2_COMPARE(gt)
SONDE_HALF2_COMPARE(ge)
#undef SONDE_HALF2_COMPARE

/* -------------------------------------------------------------- operators -- */

#if !defined(__CUDA_NO_HALF_OPERATORS__)
#define SONDE_HALF_OPERATORS(T, add, subtract, times, over, negate)                \
  SONDE_HALF_FN T operator+(const T &a, const T &b) { return add(a, b); }          \
  SONDE_HALF_FN T operator-(const T &a, const T &b) { return subtract(a, b); }     \
  SONDE_HALF_FN T operator*(const T &a, const T &b) { return times(a, b); }        \
  SONDE_HALF_FN T operator/(const T &a, const T &b) { return over(a, b); }         \
  SONDE_HALF_FN T &operator+=(T &a, const T &b) { return a = add(a, b); }          \
  SONDE_HALF_FN T &operator-=(T &a, const T &b) { return a = subtract(a, b); }     \
  SONDE_HALF_FN T &operator*=(T &a, const T &b) { return a = times(a, b); }        \
  SONDE_HALF_FN T &operator/=(T &a, const T &b) { return a = over(a, b); }         \
  SONDE_HALF_FN T operator+(const T &a) { return a; }                              \
  SONDE_HALF_FN T operator-(const T &a) { return negate(a); }
SONDE_HALF_OPERATORS(__half, __hadd, __hsub, __hmul, __hdiv, __hneg)
SONDE_HALF_OPERATORS(__half2, __hadd2, __hsub2, __hmul2, __h2div, __hneg2)
#undef SONDE_HALF_OPERATORS
SONDE_HALF_FN bool operator==(const __half &a, const __half &b) { return __heq(a, b); }
SONDE_HALF_FN bool operator!=(const __half &a, const __half &b) { return __hneu(a, b); }
SONDE_HALF_FN bool operator<(const __half &a, const __half &b) { return __hlt(a, b); }
SONDE_HALF_FN bool operator<=(const __half &a, const __half &b) { return __hle(a, b); }
SONDE_HALF_FN bool operator>(const __half &a, const __half &b) { return __hgt(a, b); }
SONDE_HALF_FN bool operator>=(const __half &a, const __half &b) { return __hge(a, b); }
SONDE_HALF_FN __half &operator++(__half &a) { return a = __hadd(a, __half(1.0f)); }
SONDE_HALF_FN __half &operator--(__half &a) { return a = __hsub(a, __half(1.0f)); }
SONDE_HALF_FN bool operator==(const __half2 &a, const __half2 &b) { return __hbeq2(a, b); }
SONDE_HALF_FN bool operator!=(const __half2 &a, const __half2 &b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }
#endif

/* -------------------------------------------------------------- functions -- */

/* In single precision, rounded once more: within one unit in the last place. */
#define SONDE_HALF_FUNCTION(name, single)                                                    \
  SONDE_HALF_FN __half h##name(__half a) { return __half(single((float)a)); }                \
  SONDE_HALF_FN __half2 h2##name(__half2 a) { return __half2(h##name(a.x), h##name(a.y)); }
SONDE_HALF_FUNCTION(sqrt, ::sqrtf)
SONDE_HALF_FUNCTION(exp, ::expf)
SONDE_HALF_FUNCTION(exp2, ::exp2f)
SONDE_HALF_FUNCTION(log, ::logf)
SONDE_HALF_FUNCTION(log2, ::log2f)
SONDE_HALF_FUNCTION(log10, ::log10f)
SONDE_HALF_FUNCTION(sin, ::sinf)
SONDE_HALF_FUNCTION(cos, ::cosf)
SONDE_HALF_FUNCTION(tanh, ::tanhf)
SONDE_HALF_FUNCTION(ceil, ::ceilf)
SONDE_HALF_FUNCTION(floor, ::floorf)
SONDE_HALF_FUNCTION(trunc, ::truncf)
SONDE_HALF_FUNCTION(rint, ::rintf)
#undef SONDE_HALF_FUNCTION
SONDE_HALF_FN __half hrsqrt(__half a) { return __half(1.0 / std::sqrt((double)(float)a)); }
SONDE_HALF_FN __half2 h2rsqrt(__half2 a) { return __half2(hrsqrt(a.x), hrsqrt(a.y)); }
SONDE_HALF_FN __half hrcp(__half a) { return __half(1.0f / (float)a); }
SONDE_HALF_FN __half2 h2rcp(__half2 a) { return __half2(hrcp(a.x), hrcp(a.y)); }
SONDE_HALF_FN __half hexp10(__half a) { return __half(::exp2f((float)a * 3.32192809488736f)); }
SONDE_HALF_FN __half2 h2exp10(__half2 a) { return __half2(hexp10(a.x), hexp10(a.y)); }

#if defined(__CUDA__) && defined(__clang__)
/* ---------------------------------------------------------- device only -- */

#define SONDE_HALF_SHUFFLE(function, Lane)                                                            \
  SONDE_DEVICE __half2 function(unsigned mask, __half2 value, Lane lane, int width = 32) {            \
    return sonde_##function##_any<__half2>(mask, value, lane, width);                                 \
  }                                                                                                   \
  SONDE_DEVICE __half function(unsigned mask, __half value, Lane lane, int width = 32) {              \
    return function(mask, __half2(value, value), lane, width).x;                                      \
  }
SONDE_HALF_SHUFFLE(__shfl_sync, int)
SONDE_HALF_SHUFFLE(__shfl_up_sync, unsigned)
SONDE_HALF_SHUFFLE(__shfl_down_sync, unsigned)
SONDE_HALF_SHUFFLE(__shfl_xor_sync, int)
#undef SONDE_HALF_SHUFFLE

SONDE_DEVICE __half2 __ldg(const __half2 *pointer) {
  unsigned word = __ldg((const unsigned *)pointer);
  __half2 value;
  __builtin_memcpy(&value, &word, 4);
  return value;
}
SONDE_DEVICE __half __ldg(const __half *pointer) { return sonde_half_bits(__ldg((const unsigned short *)pointer)); }

SONDE_DEVICE __half2 atomicAdd(__half2 *address, __half2 value) {
  unsigned *word = (unsigned *)address, old = *word, seen;
  do {
    seen = old;
    __half2 sum;
    __builtin_memcpy(&sum, &seen, 4);
    sum = __hadd2(sum, value);
    unsigned next;
    __builtin_memcpy(&next, &sum, 4);
    old = atomicCAS(word, seen, next);
  } while (old != seen);
  __half2 before;
  __builtin_memcpy(&before, &old, 4);
  return before;
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
SONDE_DEVICE __half atomicAdd(__half *address, __half value) {
  unsigned short *word = (unsigned short *)address, old = *word, seen;
  do {
    seen = old;
    old = atomicCAS(word, seen, sonde_bits_half(__hadd(sonde_half_bits(seen), value)));
  } while (old != seen);
  return sonde_half_bits(old);
}
#endif
#endif /* device */

#endif /* __cplusplus */
#endif /* __CUDA_FP16_H__ */
