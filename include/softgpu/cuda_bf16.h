/* SPDX-License-Identifier: Apache-2.0
 *
 * bfloat16: __nv_bfloat16 and __nv_bfloat162, their conversions, arithmetic,
 * comparisons and functions, on host and device. Operations are computed in
 * single precision (fma in double) and rounded to bfloat16, the same
 * everywhere.
 */
#ifndef __CUDA_BF16_H__
#define __CUDA_BF16_H__

#if defined(__cplusplus)

#include "cuda_runtime.h"

#include <cmath>
#include <cstring>

#if defined(__CUDA__)
#define SONDE_BF16_FN static __inline__ __host__ __device__
#define SONDE_BF16_MEMBER __host__ __device__
#else
#define SONDE_BF16_FN static inline
#define SONDE_BF16_MEMBER
#endif

struct __nv_bfloat16_raw {
  unsigned short x;
};
struct __nv_bfloat162_raw {
  unsigned short x, y;
};

namespace sonde_bfloat {

/* float to bfloat16, rounding: 0 nearest even, 1 zero, 2 up, 3 down. */
SONDE_BF16_FN unsigned short fromFloat(float value, int mode = 0) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  unsigned sign = bits >> 31, rest = bits & 0xffffu, result = bits >> 16;
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // the NaN that PTX gives
  bool up = mode == 0   ? rest > 0x8000u || (rest == 0x8000u && (result & 1))
            : mode == 2 ? rest != 0 && !sign
            : mode == 3 ? rest != 0 && sign
                        : false;
  return (unsigned short)(result + up);
}

SONDE_BF16_FN float toFloat(unsigned short value) {
  unsigned bits = (unsigned)value << 16;
  float result;
  __builtin_memcpy(&result, &bits, 4);
  return result;
}

/* double to bfloat16, rounded once: through a float rounded to odd. */
SONDE_BF16_FN unsigned short fromDouble(double value) {
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

}  // namespace sonde_bfloat

struct __nv_bfloat16 {
 protected:
  unsigned short __x;

 public:
  __nv_bfloat16() = default;
  SONDE_BF16_MEMBER __nv_bfloat16(const __nv_bfloat16_raw &raw) : __x(raw.x) {}
  SONDE_BF16_MEMBER __nv_bfloat16 &operator=(const __nv_bfloat16_raw &raw) {
    __x = raw.x;
    return *this;
  }
  SONDE_BF16_MEMBER operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{__x}; }
  SONDE_BF16_MEMBER __nv_bfloat16(float value) : __x(sonde_bfloat::fromFloat(value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(double value) : __x(sonde_bfloat::fromDouble(value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(short value) : __x(sonde_bfloat::fromFloat((float)value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(unsigned short value) : __x(sonde_bfloat::fromFloat((float)value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(int value) : __x(sonde_bfloat::fromDouble((double)value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(unsigned value) : __x(sonde_bfloat::fromDouble((double)value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(long value) : __x(sonde_bfloat::fromDouble((double)value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(unsigned long value) : __x(sonde_bfloat::fromDouble((double)value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(long long value) : __x(sonde_bfloat::fromDouble((double)value)) {}
  SONDE_BF16_MEMBER __nv_bfloat16(unsigned long long value) : __x(sonde_bfloat::fromDouble((double)value)) {}
  SONDE_BF16_MEMBER operator float() const { return sonde_bfloat::toFloat(__x); }
  SONDE_BF16_MEMBER explicit operator bool() const { return (__x & 0x7fff) != 0; }
#define SONDE_BF16_TO(T) \
  SONDE_BF16_MEMBER explicit operator T() const { return (T)sonde_bfloat::toFloat(__x); }
  SONDE_BF16_TO(char)
  SONDE_BF16_TO(signed char)
  SONDE_BF16_TO(unsigned char)
  SONDE_BF16_TO(short)
  SONDE_BF16_TO(unsigned short)
  SONDE_BF16_TO(int)
  SONDE_BF16_TO(unsigned)
  SONDE_BF16_TO(long)
  SONDE_BF16_TO(unsigned long)
  SONDE_BF16_TO(long long)
  SONDE_BF16_TO(unsigned long long)
#undef SONDE_BF16_TO
};

struct __align__(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  SONDE_BF16_MEMBER __nv_bfloat162(const __nv_bfloat16 &a, const __nv_bfloat16 &b) : x(a), y(b) {}
  SONDE_BF16_MEMBER __nv_bfloat162(const __nv_bfloat162_raw &raw) : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
  SONDE_BF16_MEMBER operator __nv_bfloat162_raw() const {
    return __nv_bfloat162_raw{static_cast<__nv_bfloat16_raw>(x).x, static_cast<__nv_bfloat16_raw>(y).x};
  }
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

/* ----------------------------------------------------------- conversions -- */

SONDE_BF16_FN __nv_bfloat16 sonde_bfloat_bits(unsigned short bits) { return __nv_bfloat16(__nv_bfloat16_raw{bits}); }
SONDE_BF16_FN unsigned short sonde_bits_bfloat(__nv_bfloat16 h) { return static_cast<__nv_bfloat16_raw>(h).x; }

SONDE_BF16_FN __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
SONDE_BF16_FN __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
SONDE_BF16_FN __nv_bfloat16 __float2bfloat16_rz(float a) { return sonde_bfloat_bits(sonde_bfloat::fromFloat(a, 1)); }
SONDE_BF16_FN __nv_bfloat16 __float2bfloat16_ru(float a) { return sonde_bfloat_bits(sonde_bfloat::fromFloat(a, 2)); }
SONDE_BF16_FN __nv_bfloat16 __float2bfloat16_rd(float a) { return sonde_bfloat_bits(sonde_bfloat::fromFloat(a, 3)); }
SONDE_BF16_FN __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
SONDE_BF16_FN float __bfloat162float(__nv_bfloat16 a) { return (float)a; }
SONDE_BF16_FN __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b)); }
SONDE_BF16_FN __nv_bfloat162 __float2bfloat162_rn(float a) { return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a)); }
SONDE_BF16_FN __nv_bfloat162 __float22bfloat162_rn(float2 a) { return __nv_bfloat162(__nv_bfloat16(a.x), __nv_bfloat16(a.y)); }
SONDE_BF16_FN float2 __bfloat1622float2(__nv_bfloat162 a) {
  float2 r;
  r.x = (float)a.x;
  r.y = (float)a.y;
  return r;
}
SONDE_BF16_FN float __low2float(__nv_bfloat162 a) { return (float)a.x; }
SONDE_BF16_FN float __high2float(__nv_bfloat162 a) { return (float)a.y; }
SONDE_BF16_FN __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
SONDE_BF16_FN __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
SONDE_BF16_FN __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat162(a, b); }
SONDE_BF16_FN __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
SONDE_BF16_FN __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
SONDE_BF16_FN __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
SONDE_BF16_FN __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
SONDE_BF16_FN __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.x); }
SONDE_BF16_FN __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
SONDE_BF16_FN __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }
SONDE_BF16_FN short __bfloat16_as_short(__nv_bfloat16 a) { return (short)sonde_bits_bfloat(a); }
SONDE_BF16_FN unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return sonde_bits_bfloat(a); }
SONDE_BF16_FN __nv_bfloat16 __short_as_bfloat16(short a) { return sonde_bfloat_bits((unsigned short)a); }
SONDE_BF16_FN __nv_bfloat16 __ushort_as_bfloat16(unsigned short a) { return sonde_bfloat_bits(a); }

/* Integers, saturating; NaN becomes 0. */
#define SONDE_BF16_TO_INTEGER(name, T, low, high)                                             \
  SONDE_BF16_FN T name##_rz(__nv_bfloat16 a) {                                                       \
    float x = (float)a;                                                                       \
    return x != x ? (T)0 : x <= (float)(low) ? (T)(low) : x >= (float)(high) ? (T)(high) : (T)x; \
  }                                                                                           \
  SONDE_BF16_FN T name##_rn(__nv_bfloat16 a) { return name##_rz(__nv_bfloat16(__builtin_rintf((float)a))); } \
  SONDE_BF16_FN T name##_ru(__nv_bfloat16 a) { return name##_rz(__nv_bfloat16(__builtin_ceilf((float)a))); } \
  SONDE_BF16_FN T name##_rd(__nv_bfloat16 a) { return name##_rz(__nv_bfloat16(__builtin_floorf((float)a))); }
SONDE_BF16_TO_INTEGER(__bfloat162int, int, -2147483647 - 1, 2147483647)
SONDE_BF16_TO_INTEGER(__bfloat162uint, unsigned, 0, 4294967295u)
SONDE_BF16_TO_INTEGER(__bfloat162short, short, -32768, 32767)
SONDE_BF16_TO_INTEGER(__bfloat162ushort, unsigned short, 0, 65535)
SONDE_BF16_TO_INTEGER(__bfloat162ll, long long, -9223372036854775807ll - 1, 9223372036854775807ll)
SONDE_BF16_TO_INTEGER(__bfloat162ull, unsigned long long, 0, 18446744073709551615ull)
#undef SONDE_BF16_TO_INTEGER
SONDE_BF16_FN __nv_bfloat16 __int2bfloat16_rn(int a) { return __nv_bfloat16(a); }
SONDE_BF16_FN __nv_bfloat16 __uint2bfloat16_rn(unsigned a) { return __nv_bfloat16(a); }
SONDE_BF16_FN __nv_bfloat16 __short2bfloat16_rn(short a) { return __nv_bfloat16(a); }
SONDE_BF16_FN __nv_bfloat16 __ushort2bfloat16_rn(unsigned short a) { return __nv_bfloat16(a); }
SONDE_BF16_FN __nv_bfloat16 __ll2bfloat16_rn(long long a) { return __nv_bfloat16(a); }
SONDE_BF16_FN __nv_bfloat16 __ull2bfloat16_rn(unsigned long long a) { return __nv_bfloat16(a); }

/* ------------------------------------------------------------- arithmetic -- */

#define SONDE_BF16_BINARY(name, operation) \
  SONDE_BF16_FN __nv_bfloat16 name(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((float)a operation(float) b); }
SONDE_BF16_BINARY(__hadd, +)
SONDE_BF16_BINARY(__hsub, -)
SONDE_BF16_BINARY(__hmul, *)
SONDE_BF16_BINARY(__hadd_rn, +)
SONDE_BF16_BINARY(__hsub_rn, -)
SONDE_BF16_BINARY(__hmul_rn, *)
#undef SONDE_BF16_BINARY
SONDE_BF16_FN __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) { return __nv_bfloat16((float)a / (float)b); }
SONDE_BF16_FN __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  // The product is exact in double; the sum is rounded there far below the
  // last bit of the result.
  return __nv_bfloat16((double)(float)a * (double)(float)b + (double)(float)c);
}
SONDE_BF16_FN __nv_bfloat16 __hneg(__nv_bfloat16 a) { return sonde_bfloat_bits(sonde_bits_bfloat(a) ^ 0x8000u); }
SONDE_BF16_FN __nv_bfloat16 __habs(__nv_bfloat16 a) { return sonde_bfloat_bits(sonde_bits_bfloat(a) & 0x7fffu); }
SONDE_BF16_FN __nv_bfloat16 sonde_bfloat_saturate(__nv_bfloat16 a) {
  float x = (float)a;
  return x > 0 ? (x > 1 ? __nv_bfloat16(1.0f) : a) : __nv_bfloat16(0.0f);  // NaN becomes 0
}
SONDE_BF16_FN __nv_bfloat16 __hadd_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return sonde_bfloat_saturate(__hadd(a, b)); }
SONDE_BF16_FN __nv_bfloat16 __hsub_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return sonde_bfloat_saturate(__hsub(a, b)); }
SONDE_BF16_FN __nv_bfloat16 __hmul_sat(__nv_bfloat16 a, __nv_bfloat16 b) { return sonde_bfloat_saturate(__hmul(a, b)); }
SONDE_BF16_FN __nv_bfloat16 __hfma_sat(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) { return sonde_bfloat_saturate(__hfma(a, b, c)); }
SONDE_BF16_FN __nv_bfloat16 __hfma_relu(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  __nv_bfloat16 r = __hfma(a, b, c);
  return (float)r < 0 ? __nv_bfloat16(0.0f) : r;
}

/* ------------------------------------------------------------ comparisons -- */

SONDE_BF16_FN bool __hisnan(__nv_bfloat16 a) { return (sonde_bits_bfloat(a) & 0x7fffu) > 0x7f80u; }
SONDE_BF16_FN int __hisinf(__nv_bfloat16 a) {
  unsigned short b = sonde_bits_bfloat(a);
  return b == 0x7f80u ? 1 : b == 0xff80u ? -1 : 0;
}
#define SONDE_BF16_COMPARE(name, operation)                                                            \
  SONDE_BF16_FN bool __h##name(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a operation(float) b; }             \
  SONDE_BF16_FN bool __h##name##u(__nv_bfloat16 a, __nv_bfloat16 b) {                                                \
    return __hisnan(a) || __hisnan(b) || (float)a operation(float) b;                                  \
  }
SONDE_BF16_COMPARE(eq, ==)
SONDE_BF16_COMPARE(lt, <)
SONDE_BF16_COMPARE(le, <=)
SONDE_BF16_COMPARE(gt, >)
SONDE_BF16_COMPARE(ge, >=)
#undef SONDE_BF16_COMPARE
SONDE_BF16_FN bool __hne(__nv_bfloat16 a, __nv_bfloat16 b) { return !__hisnan(a) && !__hisnan(b) && (float)a != (float)b; }
SONDE_BF16_FN bool __hneu(__nv_bfloat16 a, __nv_bfloat16 b) { return (float)a != (float)b; }
SONDE_BF16_FN __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
  if (__hisnan(a)) return __hisnan(b) ? sonde_bfloat_bits(0x7fff) : b;
  if (__hisnan(b)) return a;
  if ((float)a == (float)b) return sonde_bits_bfloat(a) & 0x8000u ? b : a;  // +0 above -0
  return (float)a > (float)b ? a : b;
}
SONDE_BF16_FN __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
  if (__hisnan(a)) return __hisnan(b) ? sonde_bfloat_bits(0x7fff) : b;
  if (__hisnan(b)) return a;
  if ((float)a == (float)b) return sonde_bits_bfloat(a) & 0x8000u ? a : b;
  return (float)a < (float)b ? a : b;
}
SONDE_BF16_FN __nv_bfloat16 __hmax_nan(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __hisnan(a) || __hisnan(b) ? sonde_bfloat_bits(0x7fff) : __hmax(a, b);
}
SONDE_BF16_FN __nv_bfloat16 __hmin_nan(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __hisnan(a) || __hisnan(b) ? sonde_bfloat_bits(0x7fff) : __hmin(a, b);
}

/* ----------------------------------------------------------------- pairs -- */

#define SONDE_BF162_BINARY(name, single)                            \
  SONDE_BF16_FN __nv_bfloat162 name(__nv_bfloat162 a, __nv_bfloat162 b) {                \
    return __nv_bfloat162(single(a.x, b.x), single(a.y, b.y));             \
  }
SONDE_BF162_BINARY(__hadd2, __hadd)
SONDE_BF162_BINARY(__hsub2, __hsub)
SONDE_BF162_BINARY(__hmul2, __hmul)
SONDE_BF162_BINARY(__hadd2_rn, __hadd)
SONDE_BF162_BINARY(__hsub2_rn, __hsub)
SONDE_BF162_BINARY(__hmul2_rn, __hmul)
SONDE_BF162_BINARY(__h2div, __hdiv)
SONDE_BF162_BINARY(__hadd2_sat, __hadd_sat)
SONDE_BF162_BINARY(__hsub2_sat, __hsub_sat)
SONDE_BF162_BINARY(__hmul2_sat, __hmul_sat)
SONDE_BF162_BINARY(__hmax2, __hmax)
SONDE_BF162_BINARY(__hmin2, __hmin)
SONDE_BF162_BINARY(__hmax2_nan, __hmax_nan)
SONDE_BF162_BINARY(__hmin2_nan, __hmin_nan)
#undef SONDE_BF162_BINARY
SONDE_BF16_FN __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return __nv_bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
SONDE_BF16_FN __nv_bfloat162 __hfma2_sat(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return __nv_bfloat162(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));
}
SONDE_BF16_FN __nv_bfloat162 __hfma2_relu(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return __nv_bfloat162(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));
}
SONDE_BF16_FN __nv_bfloat162 __hneg2(__nv_bfloat162 a) { return __nv_bfloat162(__hneg(a.x), __hneg(a.y)); }
SONDE_BF16_FN __nv_bfloat162 __habs2(__nv_bfloat162 a) { return __nv_bfloat162(__habs(a.x), __habs(a.y)); }
SONDE_BF16_FN __nv_bfloat162 __hisnan2(__nv_bfloat162 a) {
  return __nv_bfloat162(__nv_bfloat16(__hisnan(a.x) ? 1.0f : 0.0f), __nv_bfloat16(__hisnan(a.y) ? 1.0f : 0.0f));
}
#define SONDE_BF162_COMPARE(name)                                                                             \
  SONDE_BF16_FN __nv_bfloat162 __h##name##2(__nv_bfloat162 a, __nv_bfloat162 b) {                                                  \
    return __nv_bfloat162(__nv_bfloat16(__h##name(a.x, b.x) ? 1.0f : 0.0f), __nv_bfloat16(__h##name(a.y, b.y) ? 1.0f : 0.0f));      \
  }                                                                                                           \
  SONDE_BF16_FN bool __hb##name##2(__nv_bfloat162 a, __nv_bfloat162 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); } \
  SONDE_BF16_FN unsigned __h##name##2_mask(__nv_bfloat162 a, __nv_bfloat162 b) {                                            \
    return (__h##name(a.x, b.x) ? 0xffffu : 0u) | (__h##name(a.y, b.y) ? 0xffff0000u : 0u);                    \
  }
SONDE_BF162_COMPARE(eq)
SONDE_BF162_COMPARE(ne)
SONDE_BF162_COMPARE(lt)
SONDE_BF162_COMPARE(le)
SONDE_BF162_COMPARE(gt)
SONDE_BF162_COMPARE(ge)
#undef SONDE_BF162_COMPARE

/* -------------------------------------------------------------- operators -- */

#if !defined(__CUDA_NO_BFLOAT16_OPERATORS__)
#define SONDE_BF16_OPERATORS(T, add, subtract, times, over, negate)                \
  SONDE_BF16_FN T operator+(const T &a, const T &b) { return add(a, b); }          \
  SONDE_BF16_FN T operator-(const T &a, const T &b) { return subtract(a, b); }     \
  SONDE_BF16_FN T operator*(const T &a, const T &b) { return times(a, b); }        \
  SONDE_BF16_FN T operator/(const T &a, const T &b) { return over(a, b); }         \
  SONDE_BF16_FN T &operator+=(T &a, const T &b) { return a = add(a, b); }          \
  SONDE_BF16_FN T &operator-=(T &a, const T &b) { return a = subtract(a, b); }     \
  SONDE_BF16_FN T &operator*=(T &a, const T &b) { return a = times(a, b); }        \
  SONDE_BF16_FN T &operator/=(T &a, const T &b) { return a = over(a, b); }         \
  SONDE_BF16_FN T operator+(const T &a) { return a; }                              \
  SONDE_BF16_FN T operator-(const T &a) { return negate(a); }
SONDE_BF16_OPERATORS(__nv_bfloat16, __hadd, __hsub, __hmul, __hdiv, __hneg)
SONDE_BF16_OPERATORS(__nv_bfloat162, __hadd2, __hsub2, __hmul2, __h2div, __hneg2)
#undef SONDE_BF16_OPERATORS
SONDE_BF16_FN bool operator==(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __heq(a, b); }
SONDE_BF16_FN bool operator!=(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hneu(a, b); }
SONDE_BF16_FN bool operator<(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hlt(a, b); }
SONDE_BF16_FN bool operator<=(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hle(a, b); }
SONDE_BF16_FN bool operator>(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hgt(a, b); }
SONDE_BF16_FN bool operator>=(const __nv_bfloat16 &a, const __nv_bfloat16 &b) { return __hge(a, b); }
SONDE_BF16_FN __nv_bfloat16 &operator++(__nv_bfloat16 &a) { return a = __hadd(a, __nv_bfloat16(1.0f)); }
SONDE_BF16_FN __nv_bfloat16 &operator--(__nv_bfloat16 &a) { return a = __hsub(a, __nv_bfloat16(1.0f)); }
SONDE_BF16_FN bool operator==(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hbeq2(a, b); }
SONDE_BF16_FN bool operator!=(const __nv_bfloat162 &a, const __nv_bfloat162 &b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }
#endif

/* -------------------------------------------------------------- functions -- */

/* In single precision, rounded once more: within one unit in the last place. */
#define SONDE_BF16_FUNCTION(name, single)                                                    \
  SONDE_BF16_FN __nv_bfloat16 h##name(__nv_bfloat16 a) { return __nv_bfloat16(single((float)a)); }                \
  SONDE_BF16_FN __nv_bfloat162 h2##name(__nv_bfloat162 a) { return __nv_bfloat162(h##name(a.x), h##name(a.y)); }
SONDE_BF16_FUNCTION(sqrt, ::sqrtf)
SONDE_BF16_FUNCTION(exp, ::expf)
SONDE_BF16_FUNCTION(exp2, ::exp2f)
SONDE_BF16_FUNCTION(log, ::logf)
SONDE_BF16_FUNCTION(log2, ::log2f)
SONDE_BF16_FUNCTION(log10, ::log10f)
SONDE_BF16_FUNCTION(sin, ::sinf)
SONDE_BF16_FUNCTION(cos, ::cosf)
SONDE_BF16_FUNCTION(tanh, ::tanhf)
SONDE_BF16_FUNCTION(ceil, ::ceilf)
SONDE_BF16_FUNCTION(floor, ::floorf)
SONDE_BF16_FUNCTION(trunc, ::truncf)
SONDE_BF16_FUNCTION(rint, ::rintf)
#undef SONDE_BF16_FUNCTION
SONDE_BF16_FN __nv_bfloat16 hrsqrt(__nv_bfloat16 a) { return __nv_bfloat16(1.0 / std::sqrt((double)(float)a)); }
SONDE_BF16_FN __nv_bfloat162 h2rsqrt(__nv_bfloat162 a) { return __nv_bfloat162(hrsqrt(a.x), hrsqrt(a.y)); }
SONDE_BF16_FN __nv_bfloat16 hrcp(__nv_bfloat16 a) { return __nv_bfloat16(1.0f / (float)a); }
SONDE_BF16_FN __nv_bfloat162 h2rcp(__nv_bfloat162 a) { return __nv_bfloat162(hrcp(a.x), hrcp(a.y)); }
SONDE_BF16_FN __nv_bfloat16 hexp10(__nv_bfloat16 a) { return __nv_bfloat16(::exp2f((float)a * 3.32192809488736f)); }
SONDE_BF16_FN __nv_bfloat162 h2exp10(__nv_bfloat162 a) { return __nv_bfloat162(hexp10(a.x), hexp10(a.y)); }

#if defined(__CUDA__) && defined(__clang__)
/* ---------------------------------------------------------- device only -- */

#define SONDE_BF16_SHUFFLE(function, Lane)                                                            \
  SONDE_DEVICE __nv_bfloat162 function(unsigned mask, __nv_bfloat162 value, Lane lane, int width = 32) {            \
    return sonde_##function##_any<__nv_bfloat162>(mask, value, lane, width);                                 \
  }                                                                                                   \
  SONDE_DEVICE __nv_bfloat16 function(unsigned mask, __nv_bfloat16 value, Lane lane, int width = 32) {              \
    return function(mask, __nv_bfloat162(value, value), lane, width).x;                                      \
  }
SONDE_BF16_SHUFFLE(__shfl_sync, int)
SONDE_BF16_SHUFFLE(__shfl_up_sync, unsigned)
SONDE_BF16_SHUFFLE(__shfl_down_sync, unsigned)
SONDE_BF16_SHUFFLE(__shfl_xor_sync, int)
#undef SONDE_BF16_SHUFFLE

SONDE_DEVICE __nv_bfloat162 __ldg(const __nv_bfloat162 *pointer) {
  unsigned word = __ldg((const unsigned *)pointer);
  __nv_bfloat162 value;
  __builtin_memcpy(&value, &word, 4);
  return value;
}
SONDE_DEVICE __nv_bfloat16 __ldg(const __nv_bfloat16 *pointer) { return sonde_bfloat_bits(__ldg((const unsigned short *)pointer)); }

SONDE_DEVICE __nv_bfloat162 atomicAdd(__nv_bfloat162 *address, __nv_bfloat162 value) {
  unsigned *word = (unsigned *)address, old = *word, seen;
  do {
    seen = old;
    __nv_bfloat162 sum;
    __builtin_memcpy(&sum, &seen, 4);
    sum = __hadd2(sum, value);
    unsigned next;
    __builtin_memcpy(&next, &sum, 4);
    old = atomicCAS(word, seen, next);
  } while (old != seen);
  __nv_bfloat162 before;
  __builtin_memcpy(&before, &old, 4);
  return before;
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
SONDE_DEVICE __nv_bfloat16 atomicAdd(__nv_bfloat16 *address, __nv_bfloat16 value) {
  unsigned short *word = (unsigned short *)address, old = *word, seen;
  do {
    seen = old;
    old = atomicCAS(word, seen, sonde_bits_bfloat(__hadd(sonde_bfloat_bits(seen), value)));
  } while (old != seen);
  return sonde_bfloat_bits(old);
}
#endif
#endif /* device */

#endif /* __cplusplus */
#endif /* __CUDA_BF16_H__ */
