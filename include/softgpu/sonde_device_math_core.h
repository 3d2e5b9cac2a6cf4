/* SPDX-License-Identifier: Apache-2.0
 *
 * The elementary functions of device code, for float and double alike: plain
 * C++ on IEEE arithmetic with fused multiply-add. sonde_device_math.h gives
 * them their CUDA names; a test compiles them for the host and measures their
 * error. No vendor's library is involved.
 *
 * Pair<T> is an unevaluated sum high + low with about twice the precision.
 */
#ifndef SONDE_SOFTGPU_DEVICE_MATH_CORE_H_
#define SONDE_SOFTGPU_DEVICE_MATH_CORE_H_

#ifndef SONDE_MATH_FN
#define SONDE_MATH_FN static __inline__ __device__
#define SONDE_MATH_TABLE static constexpr __device__ const
#endif

namespace sonde_math {

#include "sonde_device_math_tables.h"

/* ------------------------------------------------------ types and bits -- */

template <typename T>
struct Pair {
  T high, low;
};

template <typename T>
struct Traits;
template <>
struct Traits<double> {
  using Bits = unsigned long long;
  using Int = long long;
  static constexpr int kMantissa = 52, kBias = 1023, kExponentMask = 0x7ff;
};
template <>
struct Traits<float> {
  using Bits = unsigned;
  using Int = int;
  static constexpr int kMantissa = 23, kBias = 127, kExponentMask = 0xff;
};

SONDE_MATH_FN unsigned long long bits(double x) { return __builtin_bit_cast(unsigned long long, x); }
SONDE_MATH_FN unsigned bits(float x) { return __builtin_bit_cast(unsigned, x); }
SONDE_MATH_FN double number(unsigned long long b) { return __builtin_bit_cast(double, b); }
SONDE_MATH_FN float number(unsigned b) { return __builtin_bit_cast(float, b); }

SONDE_MATH_FN double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
SONDE_MATH_FN float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
SONDE_MATH_FN double root(double x) { return __builtin_sqrt(x); }
SONDE_MATH_FN float root(float x) { return __builtin_sqrtf(x); }
SONDE_MATH_FN double absolute(double x) { return __builtin_fabs(x); }
SONDE_MATH_FN float absolute(float x) { return __builtin_fabsf(x); }
SONDE_MATH_FN double nearest(double x) { return __builtin_rint(x); }
SONDE_MATH_FN float nearest(float x) { return __builtin_rintf(x); }
SONDE_MATH_FN double withSign(double x, double sign) { return __builtin_copysign(x, sign); }
SONDE_MATH_FN float withSign(float x, float sign) { return __builtin_copysignf(x, sign); }
SONDE_MATH_FN bool signbitOf(double x) { return bits(x) >> 63; }
SONDE_MATH_FN bool signbitOf(float x) { return bits(x) >> 31; }
template <typename T>
SONDE_MATH_FN bool isNan(T x) {
  return x != x;
}
template <typename T>
SONDE_MATH_FN T infinity() {
  return (T)__builtin_inff();
}
template <typename T>
SONDE_MATH_FN T quietNan() {
  return (T)__builtin_nanf("");
}

#define SONDE_TABLE(name)                                                                       \
  template <typename T>                                                                         \
  struct name {                                                                                 \
    static SONDE_MATH_MEMBER constexpr decltype(auto) at(int i) { return (k##name##D[i]); }      \
    static constexpr int size = sizeof(k##name##D) / sizeof(double);                            \
  };                                                                                            \
  template <>                                                                                   \
  struct name<float> {                                                                          \
    static SONDE_MATH_MEMBER constexpr decltype(auto) at(int i) { return (k##name##F[i]); }      \
    static constexpr int size = sizeof(k##name##F) / sizeof(float);                             \
  };
#ifndef SONDE_MATH_MEMBER
#define SONDE_MATH_MEMBER __device__
#endif
SONDE_TABLE(Sin)
SONDE_TABLE(Cos)
SONDE_TABLE(Exp)
SONDE_TABLE(Log)
SONDE_TABLE(Atan)
SONDE_TABLE(Asin)
SONDE_TABLE(Erf)
SONDE_TABLE(Erfcx)
SONDE_TABLE(HalfPi)
SONDE_TABLE(Pi)
SONDE_TABLE(Ln2)
SONDE_TABLE(Ln10)
SONDE_TABLE(Log2e)
SONDE_TABLE(Log10e)
SONDE_TABLE(Log10of2)
SONDE_TABLE(TwoThirds)
SONDE_TABLE(TwoFifths)
#undef SONDE_TABLE

/* Horner's rule over a table. */
template <template <typename> class Table, typename T>
SONDE_MATH_FN T polynomial(T x) {
  T sum = Table<T>::at(Table<T>::size - 1);
#pragma unroll
  for (int i = Table<T>::size - 2; i >= 0; --i) sum = fused(sum, x, Table<T>::at(i));
  return sum;
}

/* ------------------------------------------------------ pair arithmetic -- */

template <typename T>
SONDE_MATH_FN Pair<T> quickSum(T a, T b) {  // |a| >= |b|
  T s = a + b;
  return {s, b - (s - a)};
}
template <typename T>
SONDE_MATH_FN Pair<T> sum(T a, T b) {
  T s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
template <typename T>
SONDE_MATH_FN Pair<T> product(T a, T b) {
  T p = a * b;
  return {p, fused(a, b, -p)};
}
template <typename T>
SONDE_MATH_FN Pair<T> add(Pair<T> a, Pair<T> b) {
  Pair<T> s = sum(a.high, b.high);
  return quickSum(s.high, s.low + (a.low + b.low));
}
template <typename T>
SONDE_MATH_FN Pair<T> multiply(Pair<T> a, Pair<T> b) {
  Pair<T> p = product(a.high, b.high);
  return quickSum(p.high, fused(a.high, b.low, fused(a.low, b.high, p.low)));
}
template <typename T>
SONDE_MATH_FN Pair<T> scale(Pair<T> a, T b) {
  Pair<T> p = product(a.high, b);
  return quickSum(p.high, fused(a.low, b, p.low));
}

/* --------------------------------------------------------------- scaling -- */

/* 2^n for exponents of normal numbers. */
template <typename T>
SONDE_MATH_FN T powerOfTwo(int n) {
  using Bits = typename Traits<T>::Bits;
  return number((Bits)(Bits)(n + Traits<T>::kBias) << Traits<T>::kMantissa);
}

/* x * 2^n, rounded once. */
template <typename T>
SONDE_MATH_FN T scaleBy(T x, int n) {
  constexpr int bias = Traits<T>::kBias;
  // Going down, one step must stay clear of the subnormals to round once.
  constexpr int step = bias - 1 - Traits<T>::kMantissa - 1;
  if (n > bias) {
    x *= powerOfTwo<T>(bias);
    n -= bias;
    if (n > bias) {
      x *= powerOfTwo<T>(bias);
      n -= bias;
      if (n > bias) n = bias;
    }
  } else if (n < 1 - bias) {
    x *= powerOfTwo<T>(-step);
    n += step;
    if (n < 1 - bias) {
      x *= powerOfTwo<T>(-step);
      n += step;
      if (n < 1 - bias) n = 1 - bias;
    }
  }
  return x * powerOfTwo<T>(n);
}

/* x = m * 2^e with 1 <= |m| < 2; x finite and not zero. */
template <typename T>
SONDE_MATH_FN T splitExponent(T x, int *e) {
  using Bits = typename Traits<T>::Bits;
  int offset = 0;
  if (absolute(x) < powerOfTwo<T>(1 - Traits<T>::kBias)) {
    x *= powerOfTwo<T>(Traits<T>::kMantissa + 2);
    offset = Traits<T>::kMantissa + 2;
  }
  Bits b = bits(x);
  *e = (int)(b >> Traits<T>::kMantissa & Traits<T>::kExponentMask) - Traits<T>::kBias - offset;
  b &= ~((Bits)Traits<T>::kExponentMask << Traits<T>::kMantissa);
  return number(b | (Bits)Traits<T>::kBias << Traits<T>::kMantissa);
}

/* ----------------------------------------------------------- exponential -- */

/* exp(r + low) - 1 for |r| <= ln(2)/2, with its tail. */
template <typename T>
SONDE_MATH_FN Pair<T> expm1Reduced(T start, T rest) {
  // The rest may be far above the last bit of the start.
  Pair<T> whole = sum(start, rest);
  T r = whole.high, low = fused(whole.low, whole.high, whole.low);
  T tail = fused(r * r, polynomial<Exp>(r), low);
  return quickSum(r, tail);
}

/* exp(high + low). */
template <typename T>
SONDE_MATH_FN T expPair(T high, T low) {
  if (isNan(high)) return high;
  constexpr T top = sizeof(T) == 8 ? (T)745.2 : (T)104.0;
  if (high > (sizeof(T) == 8 ? (T)709.8 : (T)88.8)) return infinity<T>();
  if (high < -top) return (T)0;
  T n = nearest(high * Log2e<T>::at(0));
  T r = fused(-n, Ln2<T>::at(0), high);
  Pair<T> e = expm1Reduced(r, fused(-n, Ln2<T>::at(1), low));
  return scaleBy((T)1 + (e.high + e.low), (int)n);
}

template <typename T>
SONDE_MATH_FN T exp(T x) {
  return expPair(x, (T)0);
}

template <typename T>
SONDE_MATH_FN T exp2(T x) {
  if (isNan(x)) return x;
  if (x >= (T)(Traits<T>::kBias + 1)) return infinity<T>();
  if (x < (T)(-Traits<T>::kBias - Traits<T>::kMantissa - 1)) return (T)0;
  T n = nearest(x);
  Pair<T> ln2 = {(T)0.693147180559945309417, sizeof(T) == 8 ? (T)2.3190468138462996e-17 : (T)-1.9046542999577680e-9};
  T f = x - n;
  Pair<T> r = product(f, ln2.high);
  Pair<T> e = expm1Reduced(r.high, fused(f, ln2.low, r.low));
  return scaleBy((T)1 + (e.high + e.low), (int)n);
}

template <typename T>
SONDE_MATH_FN T exp10(T x) {
  if (isNan(x)) return x;
  if (x > (sizeof(T) == 8 ? (T)308.3 : (T)38.6)) return infinity<T>();
  if (x < (sizeof(T) == 8 ? (T)-323.7 : (T)-45.5)) return (T)0;
  T n = nearest(x * (T)3.32192809488736234787);
  // x - n log10(2) is exact up to the low part; times ln(10) as a pair.
  T r = fused(-n, Log10of2<T>::at(0), x);
  Pair<T> p = product(r, Ln10<T>::at(0));
  T low = fused(r, Ln10<T>::at(1), fused(-n * Log10of2<T>::at(1), Ln10<T>::at(0), p.low));
  Pair<T> e = expm1Reduced(p.high, low);
  return scaleBy((T)1 + (e.high + e.low), (int)n);
}

template <typename T>
SONDE_MATH_FN T expm1(T x) {
  if (isNan(x) || x == 0) return x;
  if (x > (sizeof(T) == 8 ? (T)709.8 : (T)88.8)) return infinity<T>();
  if (x < (sizeof(T) == 8 ? (T)-40.0 : (T)-20.0)) return (T)-1;
  T n = nearest(x * Log2e<T>::at(0));
  T r = fused(-n, Ln2<T>::at(0), x);
  Pair<T> e = expm1Reduced(r, -n * Ln2<T>::at(1));
  if (n == 0) return e.high + e.low;
  // 2^n (1 + e) - 1; at the top 2^n itself would overflow.
  T half = powerOfTwo<T>((int)n - 1);
  if (n > 20) {  // the 1 is small by now, and half - 1/2 may not be exact
    Pair<T> s = sum(half, half * e.high);
    return (s.high + ((s.low + half * e.low) - (T)0.5)) * 2;
  }
  Pair<T> s = sum(half - (T)0.5, half * e.high);
  return (s.high + (s.low + half * e.low)) * 2;
}

/* ------------------------------------------------------------- logarithm -- */

/* ln(m) for m in [sqrt(1/2), sqrt(2)], as a pair. */
template <typename T>
SONDE_MATH_FN Pair<T> logReduced(T m) {
  T f = m - 1;  // exact
  Pair<T> d = quickSum((T)2, f);
  T s = f / d.high;
  // s as a pair: the remainder of the division.
  T low = fused(-s, d.low, fused(-s, d.high, f)) / d.high;
  T z = s * s;
  Pair<T> z2 = multiply(Pair<T>{s, low}, Pair<T>{s, low});
  T tail = polynomial<Log>(z);
  // 2 s + s^3 (2/3 + z (2/5 + z tail))
  Pair<T> c = product(z2.high, tail);
  c = add(Pair<T>{TwoFifths<T>::at(0), TwoFifths<T>::at(1)}, Pair<T>{c.high, c.low});
  c = multiply(c, z2);
  c = add(Pair<T>{TwoThirds<T>::at(0), TwoThirds<T>::at(1)}, c);
  c = multiply(c, multiply(z2, Pair<T>{s, low}));
  return add(Pair<T>{2 * s, 2 * low}, c);
}

/* ln(x) = e ln(2) + ln(m): returns ln(m) and e. x positive and finite. */
template <typename T>
SONDE_MATH_FN Pair<T> logParts(T x, int *e) {
  T m = splitExponent(x, e);
  if (m > (T)1.41421356237309504880) {
    m *= (T)0.5;
    *e += 1;
  }
  return logReduced(m);
}

/* ln(x) as a pair. */
template <typename T>
SONDE_MATH_FN Pair<T> logPair(T x) {
  int e;
  Pair<T> l = logParts(x, &e);
  // e * high part of ln(2) is exact.
  Pair<T> s = sum((T)e * Ln2<T>::at(0), l.high);
  return quickSum(s.high, s.low + fused((T)e, Ln2<T>::at(1), l.low));
}

template <typename T>
SONDE_MATH_FN bool logSpecial(T x, T *result) {
  if (x > 0 && x < infinity<T>()) return false;
  *result = isNan(x) ? x : x == 0 ? -infinity<T>() : x < 0 ? quietNan<T>() : x;
  return true;
}

/* For the logarithm alone half the work will do: the correction to f is small. */
template <typename T>
SONDE_MATH_FN T log(T x) {
  T special;
  if (logSpecial(x, &special)) return special;
  int e;
  T m = splitExponent(x, &e);
  if (m > (T)1.41421356237309504880) {
    m *= (T)0.5;
    e += 1;
  }
  T f = m - 1, s = f / (f + 2), z = s * s;
  T r = z * fused(z, fused(z, polynomial<Log>(z), TwoFifths<T>::at(0)), TwoThirds<T>::at(0));
  T half = (T)0.5 * f * f;
  // ln(1 + f) = f - (f^2/2 - s (f^2/2 + r))
  T k = (T)e;
  return fused(k, Ln2<T>::at(0), f - (half - fused(s, half + r, k * Ln2<T>::at(1))));
}

template <typename T>
SONDE_MATH_FN T log2(T x) {
  T special;
  if (logSpecial(x, &special)) return special;
  int e;
  Pair<T> l = multiply(logParts(x, &e), Pair<T>{Log2e<T>::at(0), Log2e<T>::at(1)});
  Pair<T> s = sum((T)e, l.high);
  return s.high + (s.low + l.low);
}

template <typename T>
SONDE_MATH_FN T log10(T x) {
  T special;
  if (logSpecial(x, &special)) return special;
  int e;
  Pair<T> l = multiply(logParts(x, &e), Pair<T>{Log10e<T>::at(0), Log10e<T>::at(1)});
  Pair<T> s = sum((T)e * Log10of2<T>::at(0), l.high);
  return s.high + (s.low + fused((T)e, Log10of2<T>::at(1), l.low));
}

template <typename T>
SONDE_MATH_FN T log1p(T x) {
  if (isNan(x) || x == 0 || x == infinity<T>()) return x;
  if (x <= -1) return x == -1 ? -infinity<T>() : quietNan<T>();
  if (absolute(x) < powerOfTwo<T>(-Traits<T>::kMantissa - 2)) return x;
  Pair<T> u = sum((T)1, x);
  Pair<T> l = logPair(u.high);
  // ln(u + low) = ln(u) + low / u; the next term is far below the last bit.
  return l.high + (l.low + u.low / u.high);
}

/* ----------------------------------------------------------------- power -- */

template <typename T>
SONDE_MATH_FN bool isInteger(T x) {
  return absolute(x) >= powerOfTwo<T>(Traits<T>::kMantissa) || nearest(x) == x;
}
template <typename T>
SONDE_MATH_FN bool isOddInteger(T x) {
  return absolute(x) < powerOfTwo<T>(Traits<T>::kMantissa + 1) && nearest(x) == x &&
         nearest(x * (T)0.5) != x * (T)0.5;
}

template <typename T>
SONDE_MATH_FN T pow(T x, T y) {
  if (x == 1 || y == 0) return 1;
  if (isNan(x) || isNan(y)) return x + y;
  T a = absolute(x);
  bool odd = isOddInteger(y);
  if (absolute(y) == infinity<T>()) {
    if (a == 1) return 1;
    return (a > 1) == (y > 0) ? infinity<T>() : (T)0;
  }
  if (a == 0 || a == infinity<T>()) {
    T r = (a == 0) == (y > 0) ? (T)0 : infinity<T>();
    return odd ? withSign(r, x) : r;
  }
  if (x < 0 && !isInteger(y)) return quietNan<T>();
  Pair<T> l = logPair(a);
  T r;
  T high = y * l.high;
  if (absolute(high) > (sizeof(T) == 8 ? (T)800 : (T)120)) {
    r = high > 0 ? infinity<T>() : (T)0;
  } else {
    Pair<T> p = product(y, l.high);
    r = expPair(p.high, fused(y, l.low, p.low));
  }
  return x < 0 && odd ? -r : r;
}

template <typename T>
SONDE_MATH_FN T cbrt(T x) {
  if (isNan(x) || x == 0 || absolute(x) == infinity<T>()) return x;
  int e;
  T m = splitExponent(absolute(x), &e);
  int third = (e + 3072) / 3 - 1024;
  m = scaleBy(m, e - 3 * third);  // in [1, 8)
  // A quadratic start, then two of Halley's steps, cubic each; the last in pairs.
  T y = fused(fused((T)-0.0204, m, (T)0.3230), m, (T)0.7182);
  for (int i = 0; i < 3; ++i) {
    T c = y * y * y;
    y = y * (c + 2 * m) / (2 * c + m);
  }
  Pair<T> square = product(y, y);
  Pair<T> cube = product(square.high, y);
  T error = ((m - cube.high) - (cube.low + square.low * y));
  y += error / (3 * y * y);
  return withSign(scaleBy(y, third), x);
}

/* ---------------------------------------------------------- trigonometry -- */

/* x - n pi/2 for |x| >= 2^22, from the bits of 2/pi. Returns n mod 4. */
SONDE_MATH_FN int reduceHuge(double x, Pair<double> *r) {
  unsigned long long b = bits(x);
  int e = (int)(b >> 52 & 0x7ff) - 1075;
  unsigned long long m = (b & 0xfffffffffffffull) | 1ull << 52;
  // |x| = m 2^e. Bits of 2/pi that only add multiples of 4 are left out: the
  // window of 192 bits begins at the first that counts (before the binary
  // point, with zeros, when e < 2).
  int first = e - 2;
  int word = first >> 6, shift = first & 63;
  unsigned long long w[4], window[3];
  for (int i = 0; i < 4; ++i) w[i] = word + i < 0 ? 0 : kTwoOverPi[word + i];
  for (int i = 0; i < 3; ++i) window[i] = shift ? w[i] << shift | w[i + 1] >> (64 - shift) : w[i];
  unsigned __int128 low = (unsigned __int128)m * window[2];
  unsigned __int128 middle = (unsigned __int128)m * window[1] + (unsigned long long)(low >> 64);
  unsigned long long high = m * window[0] + (unsigned long long)(middle >> 64);
  unsigned long long mid = (unsigned long long)middle, lo = (unsigned long long)low;
  // Two integer bits, then the fraction; to the nearest integer.
  int quadrant = (int)(high >> 62);
  unsigned long long f1 = high << 2 | mid >> 62, f2 = mid << 2 | lo >> 62;
  bool negative = f1 >> 63;
  if (negative) {
    quadrant += 1;
    f2 = ~f2 + 1;
    f1 = ~f1 + (f2 == 0);
  }
  double top = (double)(f1 & ~0x7ffull) * 0x1p-64;
  double rest = (double)(f1 & 0x7ffull) * 0x1p-64 + (double)f2 * 0x1p-128;
  Pair<double> fraction = quickSum(top, rest);
  Pair<double> p = multiply(fraction, Pair<double>{kHalfPiD[0], kHalfPiD[1]});
  if (negative != (x < 0)) p = {-p.high, -p.low};
  *r = p;
  return (x < 0 ? -quadrant : quadrant) & 3;
}

/* x - n pi/2 with |result| <= pi/4, as a pair. Returns n mod 4. x finite. */
SONDE_MATH_FN int reduce(double x, Pair<double> *r) {
  if (absolute(x) >= 0x1p22) return reduceHuge(x, r);
  double n = nearest(x * 0.63661977236758134308);
  double a = fused(-n, kHalfPiD[0], x);
  double b = fused(-n, kHalfPiD[1], a);
  double low = fused(-n, kHalfPiD[1], a - b);
  *r = quickSum(b, fused(-n, kHalfPiD[2], low));
  return (int)n & 3;
}

SONDE_MATH_FN int reduce(float x, Pair<float> *r) {
  if (absolute(x) > 32768.0f) {
    Pair<double> wide;
    int n = reduce((double)x, &wide);
    *r = quickSum((float)wide.high, (float)(wide.high - (float)wide.high));
    return n;
  }
  float n = nearest(x * 0.636619772f);
  float a = fused(-n, kHalfPiF[0], x);
  float b = fused(-n, kHalfPiF[1], a);
  float low = fused(-n, kHalfPiF[1], a - b);
  *r = quickSum(b, fused(-n, kHalfPiF[2], low));
  return (int)n & 3;
}

template <typename T>
SONDE_MATH_FN T sinReduced(Pair<T> r) {
  T z = r.high * r.high;
  return fused(r.high * z, polynomial<Sin>(z), r.low) + r.high;
}
template <typename T>
SONDE_MATH_FN T cosReduced(Pair<T> r) {
  T z = r.high * r.high;
  Pair<T> start = quickSum((T)1, (T)-0.5 * z);
  // cos(r + low) = cos(r) - r low
  return start.high + (start.low + fused(z * z, polynomial<Cos>(z), -r.high * r.low));
}
template <typename T>
SONDE_MATH_FN T sinQuadrant(Pair<T> r, int n) {
  T value = n & 1 ? cosReduced(r) : sinReduced(r);
  return n & 2 ? -value : value;
}

template <typename T>
SONDE_MATH_FN T sin(T x) {
  if (!(absolute(x) < infinity<T>())) return quietNan<T>();
  if (x == 0) return x;
  Pair<T> r;
  int n = reduce(x, &r);
  return sinQuadrant(r, n);
}
template <typename T>
SONDE_MATH_FN T cos(T x) {
  if (!(absolute(x) < infinity<T>())) return quietNan<T>();
  Pair<T> r;
  int n = reduce(x, &r);
  return sinQuadrant(r, n + 1);
}
template <typename T>
SONDE_MATH_FN void sincos(T x, T *s, T *c) {
  if (!(absolute(x) < infinity<T>())) {
    *s = *c = quietNan<T>();
    return;
  }
  Pair<T> r;
  int n = reduce(x, &r);
  *s = x == 0 ? x : sinQuadrant(r, n);
  *c = sinQuadrant(r, n + 1);
}
template <typename T>
SONDE_MATH_FN T tan(T x) {
  if (!(absolute(x) < infinity<T>())) return quietNan<T>();
  if (x == 0) return x;
  Pair<T> r;
  int n = reduce(x, &r);
  T s = sinReduced(r), c = cosReduced(r);
  return n & 1 ? -c / s : s / c;
}

/* The reduction by halves is exact; the factor pi comes as a pair. */
template <typename T>
SONDE_MATH_FN int reducePi(T x, Pair<T> *r) {
  // An even number of turns changes nothing: keep n small.
  T turns = absolute(x) >= powerOfTwo<T>(Traits<T>::kMantissa + 1) ? (T)0 : x;
  T n = nearest(2 * turns);
  T f = fused((T)-0.5, n, turns);
  *r = multiply(Pair<T>{f, 0}, Pair<T>{Pi<T>::at(0), Pi<T>::at(1)});
  return (int)((typename Traits<T>::Int)n & 3);
}
template <typename T>
SONDE_MATH_FN T sinpi(T x) {
  if (!(absolute(x) < infinity<T>())) return quietNan<T>();
  if (x == nearest(x)) return withSign((T)0, x);
  Pair<T> r;
  int n = reducePi(x, &r);
  return sinQuadrant(r, n);
}
template <typename T>
SONDE_MATH_FN T cospi(T x) {
  if (!(absolute(x) < infinity<T>())) return quietNan<T>();
  Pair<T> r;
  int n = reducePi(x, &r);
  T value = sinQuadrant(r, n + 1);
  return value == 0 ? (T)0 : value;
}

/* ---------------------------------------------- inverse trigonometry -- */

/* atan(q) for q >= 0 given as a quotient a / b, with pi/2 steps. */
template <typename T>
SONDE_MATH_FN T atanPositive(T a, T b) {
  // Reduce to |t| <= tan(pi/8).
  bool inverse = a > b;
  T numerator = inverse ? b : a, denominator = inverse ? a : b;
  Pair<T> offset = {0, 0};
  Pair<T> n = {numerator, 0}, d = {denominator, 0};
  if (numerator > (T)0.41421356237309504880 * denominator) {
    // atan(t) = pi/4 + atan((t - 1) / (t + 1))
    n = sum(numerator, -denominator);
    d = sum(numerator, denominator);
    offset = {HalfPi<T>::at(0) / 2, HalfPi<T>::at(1) / 2};
  }
  T t = n.high / d.high;
  T low = (fused(-t, d.high, n.high) + n.low - t * d.low) / d.high;
  T z = t * t;
  T tail = fused(t * z, polynomial<Atan>(z), low);
  if (inverse) {
    Pair<T> base = {HalfPi<T>::at(0) - offset.high, HalfPi<T>::at(1) - offset.low};
    Pair<T> s = sum(base.high, -t);
    return s.high + (s.low + (base.low - tail));
  }
  Pair<T> s = sum(offset.high, t);
  return s.high + (s.low + (offset.low + tail));
}

template <typename T>
SONDE_MATH_FN T atan(T x) {
  if (isNan(x) || x == 0) return x;
  if (absolute(x) == infinity<T>()) return withSign(HalfPi<T>::at(0), x);
  return withSign(atanPositive(absolute(x), (T)1), x);
}

template <typename T>
SONDE_MATH_FN T atan2(T y, T x) {
  if (isNan(x) || isNan(y)) return x + y;
  T a = absolute(y), b = absolute(x);
  T angle;
  if (a == 0) {
    angle = 0;
  } else if (b == 0 || (a == infinity<T>() && b != infinity<T>())) {
    return withSign(HalfPi<T>::at(0), y);
  } else if (b == infinity<T>()) {
    angle = a == infinity<T>() ? HalfPi<T>::at(0) / 2 : (T)0;
  } else {
    // Keep the quotient's parts away from the ends of the range.
    int ea, eb;
    splitExponent(a, &ea);
    splitExponent(b, &eb);
    if (ea - eb > Traits<T>::kMantissa + 4) return withSign(HalfPi<T>::at(0), y);
    if (eb - ea > Traits<T>::kMantissa + 30) {
      angle = signbitOf(x) ? (T)0 : a / b;
    } else {
      a = scaleBy(a, -eb);
      b = scaleBy(b, -eb);
      if (signbitOf(x)) {
        // pi - angle, without rounding the angle first where it matters little.
        T small = atanPositive(a, b);
        Pair<T> s = sum(2 * HalfPi<T>::at(0), -small);
        return withSign(s.high + (s.low + 2 * HalfPi<T>::at(1)), y);
      }
      angle = atanPositive(a, b);
    }
  }
  if (signbitOf(x)) angle = 2 * HalfPi<T>::at(0) - angle;
  return withSign(angle, y);
}

/* (asin(t) - t) / t for |t| <= 1/2, as a function of z = t^2. */
template <typename T>
SONDE_MATH_FN T asinTail(T z) {
  return z * polynomial<Asin>(z);
}
template <typename T>
SONDE_MATH_FN T asin(T x) {
  T a = absolute(x);
  if (!(a <= 1)) return quietNan<T>();
  if (a <= (T)0.5) return fused(x, asinTail(x * x), x);
  T z = (1 - a) * (T)0.5;
  T s = root(z);
  T low = s == 0 ? (T)0 : fused(-s, s, z) / (2 * s);
  Pair<T> m = sum(HalfPi<T>::at(0), -2 * s);
  return withSign(m.high + (m.low + (HalfPi<T>::at(1) - 2 * fused(s, asinTail(z), low))), x);
}
template <typename T>
SONDE_MATH_FN T acos(T x) {
  T a = absolute(x);
  if (!(a <= 1)) return quietNan<T>();
  if (a <= (T)0.5) {
    Pair<T> m = sum(HalfPi<T>::at(0), -x);
    return m.high + (m.low + fused(-x, asinTail(x * x), HalfPi<T>::at(1)));
  }
  T z = (1 - a) * (T)0.5;
  T s = root(z);
  T low = s == 0 ? (T)0 : fused(-s, s, z) / (2 * s);
  T tail = fused(s, asinTail(z), low);
  if (x > 0) return 2 * (s + tail);
  Pair<T> m = sum(2 * HalfPi<T>::at(0), -2 * s);
  return m.high + (m.low + 2 * (HalfPi<T>::at(1) - tail));
}

/* ------------------------------------------------------------ hyperbolic -- */

/* exp(a) / 2 without the overflow of exp(a); a is large. */
template <typename T>
SONDE_MATH_FN T halfExp(T a) {
  Pair<T> s = sum(a, -Ln2<T>::at(0));
  return expPair(s.high, s.low - Ln2<T>::at(1));
}
template <typename T>
SONDE_MATH_FN T sinh(T x) {
  T a = absolute(x);
  if (isNan(x) || a == infinity<T>() || x == 0) return x;
  T half = withSign((T)0.5, x);
  if (a > (sizeof(T) == 8 ? (T)40 : (T)20)) return withSign(halfExp(a), x);
  T t = expm1(a);
  return a < 1 ? half * (2 * t - t * t / (t + 1)) : half * (t + t / (t + 1));
}
template <typename T>
SONDE_MATH_FN T cosh(T x) {
  T a = absolute(x);
  if (isNan(x)) return x;
  if (a > (sizeof(T) == 8 ? (T)40 : (T)20)) return halfExp(a);
  // exp(a) / 2 as a pair, and its small companion.
  T n = nearest(a * Log2e<T>::at(0));
  T r = fused(-n, Ln2<T>::at(0), a);
  Pair<T> e = expm1Reduced(r, -n * Ln2<T>::at(1));
  T half = powerOfTwo<T>((int)n - 1);
  Pair<T> s = quickSum(half, half * e.high);
  return s.high + (fused(half, e.low, s.low) + (T)0.25 / s.high);
}
template <typename T>
SONDE_MATH_FN T tanh(T x) {
  T a = absolute(x);
  if (isNan(x) || x == 0) return x;
  if (a > (sizeof(T) == 8 ? (T)22 : (T)10)) return withSign((T)1, x);
  if (a < powerOfTwo<T>(-Traits<T>::kMantissa / 2 - 2)) return x;
  T t = expm1(2 * a);
  return withSign(a > (T)0.55 ? 1 - 2 / (t + 2) : t / (t + 2), x);
}
template <typename T>
SONDE_MATH_FN T asinh(T x) {
  T a = absolute(x);
  if (isNan(x) || a == infinity<T>() || x == 0) return x;
  if (a > powerOfTwo<T>(Traits<T>::kMantissa / 2 + 4)) return withSign(log(a) + (T)0.693147180559945309417, x);
  T square = a * a;
  return withSign(log1p(a + square / (1 + root(1 + square))), x);
}
template <typename T>
SONDE_MATH_FN T acosh(T x) {
  if (!(x >= 1)) return quietNan<T>();
  if (x == infinity<T>()) return x;
  if (x > powerOfTwo<T>(Traits<T>::kMantissa / 2 + 4)) return log(x) + (T)0.693147180559945309417;
  T t = x - 1;
  return log1p(t + root(fused(t, t, 2 * t)));
}
template <typename T>
SONDE_MATH_FN T atanh(T x) {
  T a = absolute(x);
  if (isNan(x) || x == 0) return x;
  if (a >= 1) return a == 1 ? withSign(infinity<T>(), x) : quietNan<T>();
  return withSign((T)0.5 * log1p(2 * a / (1 - a)), x);
}

/* ---------------------------------------------------------------- lengths -- */

template <typename T>
SONDE_MATH_FN T hypot(T x, T y) {
  T a = absolute(x), b = absolute(y);
  if (a == infinity<T>() || b == infinity<T>()) return infinity<T>();
  if (isNan(a) || isNan(b)) return a + b;
  if (a < b) {
    T t = a;
    a = b;
    b = t;
  }
  if (a == 0) return a;
  int e;
  splitExponent(a, &e);
  a = scaleBy(a, -e);
  b = scaleBy(b, -e);
  return scaleBy(root(fused(a, a, b * b)), e);
}

}  // namespace sonde_math

#endif /* SONDE_SOFTGPU_DEVICE_MATH_CORE_H_ */
