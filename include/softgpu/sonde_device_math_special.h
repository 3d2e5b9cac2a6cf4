/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of numbers, remainders, and the special functions: error function,
 * normal distribution, gamma. See sonde_device_math_core.h.
 */
#ifndef SONDE_SOFTGPU_DEVICE_MATH_SPECIAL_H_
#define SONDE_SOFTGPU_DEVICE_MATH_SPECIAL_H_

#include "sonde_device_math_core.h"

namespace sonde_math {

/* ---------------------------------------------------- parts of a number -- */

template <typename T>
SONDE_MATH_FN T ldexp(T x, int n) {
  if (x == 0 || !(absolute(x) < infinity<T>())) return x;
  return scaleBy(x, n);
}
template <typename T>
SONDE_MATH_FN T frexp(T x, int *e) {
  if (x == 0 || !(absolute(x) < infinity<T>())) {
    *e = 0;
    return x;
  }
  T m = splitExponent(x, e);
  *e += 1;
  return m * (T)0.5;
}
template <typename T>
SONDE_MATH_FN T truncate(T x) {
  return sizeof(T) == 8 ? (T)__builtin_trunc(x) : (T)__builtin_truncf((float)x);
}
template <typename T>
SONDE_MATH_FN T modf(T x, T *whole) {
  *whole = truncate(x);
  if (absolute(x) == infinity<T>()) return withSign((T)0, x);
  return withSign(x - *whole, x);
}
template <typename T>
SONDE_MATH_FN T logb(T x) {
  if (isNan(x)) return x;
  if (x == 0) return -infinity<T>();
  if (absolute(x) == infinity<T>()) return infinity<T>();
  int e;
  splitExponent(x, &e);
  return (T)e;
}
template <typename T>
SONDE_MATH_FN int ilogb(T x) {
  if (x == 0 || isNan(x)) return -2147483647 - 1;
  if (absolute(x) == infinity<T>()) return 2147483647;
  int e;
  splitExponent(x, &e);
  return e;
}
template <typename T>
SONDE_MATH_FN T roundAway(T x) {
  T t = truncate(x);
  return withSign(absolute(x - t) >= (T)0.5 ? absolute(t) + 1 : absolute(t), x);
}
/* Saturating, as PTX converts. */
template <typename I, typename T>
SONDE_MATH_FN I toInteger(T x) {
  constexpr T limit = (T)9223372036854775808.0;
  if (isNan(x)) return (I)(-9223372036854775807ll - 1);
  if (x >= limit) return (I)9223372036854775807ll;
  if (x <= -limit) return (I)(-9223372036854775807ll - 1);
  return (I)x;
}
template <typename T>
SONDE_MATH_FN T fdim(T x, T y) {
  if (isNan(x) || isNan(y)) return x + y;
  return x > y ? x - y : (T)0;
}
template <typename T>
SONDE_MATH_FN T nextafter(T x, T y) {
  using Bits = typename Traits<T>::Bits;
  if (isNan(x) || isNan(y)) return x + y;
  if (x == y) return y;
  if (x == 0) return withSign(number((Bits)1), y);
  Bits b = bits(x);
  b += (x < y) == (x > 0) ? (Bits)1 : (Bits)-1;
  return number(b);
}

/* Exact long division of significands. *quotient receives the low bits of the
 * integral quotient rounded toward zero. */
template <typename T>
SONDE_MATH_FN T remainderToZero(T x, T y, unsigned *quotient) {
  using Bits = typename Traits<T>::Bits;
  T a = absolute(x), b = absolute(y);
  *quotient = 0;
  if (a < b) return x;
  int ea, eb;
  T ma = splitExponent(a, &ea), mb = splitExponent(b, &eb);
  constexpr Bits one = (Bits)1 << Traits<T>::kMantissa;
  Bits na = (bits(ma) & (one - 1)) | one, nb = (bits(mb) & (one - 1)) | one;
  unsigned q = 0;
  for (int i = ea - eb; i >= 0; --i) {
    q <<= 1;
    if (na >= nb) {
      na -= nb;
      q |= 1;
    }
    if (i > 0) na <<= 1;
  }
  *quotient = q;
  // The value of na is na * 2^(eb - mantissa): exact, as it is below y.
  T r = (T)(typename Traits<T>::Int)na;
  r = r == 0 ? (T)0 : scaleBy(r, eb - Traits<T>::kMantissa);
  return withSign(r, x);
}
template <typename T>
SONDE_MATH_FN T fmod(T x, T y) {
  if (isNan(x) || isNan(y) || y == 0 || absolute(x) == infinity<T>()) return quietNan<T>();
  unsigned q;
  return remainderToZero(x, y, &q);
}
template <typename T>
SONDE_MATH_FN T remquo(T x, T y, int *quotient) {
  if (isNan(x) || isNan(y) || y == 0 || absolute(x) == infinity<T>()) {
    *quotient = 0;
    return quietNan<T>();
  }
  unsigned q = 0;
  T r = absolute(remainderToZero(absolute(x), absolute(y), &q)), b = absolute(y);
  // Round the quotient to nearest, ties to even.
  T half = b * (T)0.5;
  bool up = half * 2 == b ? r > half || (r == half && (q & 1)) : 2 * r > b || (2 * r == b && (q & 1));
  if (up) {
    r -= b;
    ++q;
  }
  bool negative = signbitOf(x) != signbitOf(y);
  *quotient = negative ? -(int)(q & 0x7fffffff) : (int)(q & 0x7fffffff);
  if (r == 0) return withSign((T)0, x);
  return signbitOf(x) ? -r : r;
}
template <typename T>
SONDE_MATH_FN T remainder(T x, T y) {
  int q;
  return remquo(x, y, &q);
}

/* -------------------------------------------------------- error function -- */

/* exp(x^2) erfc(x) for x >= 0. */
template <typename T>
SONDE_MATH_FN T erfcxPositive(T x) {
  if (x > powerOfTwo<T>(Traits<T>::kMantissa / 2 + 2)) return (T)0.56418958354775628695 / x;
  if (x > 50) {  // beyond the fitted range: 1 / (x sqrt(pi)) (1 - 1/(2 x^2) + 3/(4 x^4))
    T z = 1 / (x * x);
    return (T)0.56418958354775628695 / x * fused(fused((T)0.75, z, (T)-0.5), z, (T)1);
  }
  T q = (x - 4) / (x + 4);
  return polynomial<Erfcx>(q) / fused((T)2, x, (T)1);
}
/* exp(-x^2), with the rounding of x^2 made good. */
template <typename T>
SONDE_MATH_FN T gauss(T x) {
  Pair<T> square = product(x, x);
  return expPair(-square.high, -square.low);
}
template <typename T>
SONDE_MATH_FN T erfc(T x) {
  if (isNan(x)) return x;
  T a = absolute(x);
  if (a < (T)0.5) return 1 - fused(x, polynomial<Erf>(x * x), x);
  T tail = a > (sizeof(T) == 8 ? (T)27.3 : (T)10.1) ? (T)0 : gauss(a) * erfcxPositive(a);
  return x > 0 ? tail : 2 - tail;
}
template <typename T>
SONDE_MATH_FN T erf(T x) {
  if (isNan(x)) return x;
  T a = absolute(x);
  if (a < (T)0.95) return fused(x, polynomial<Erf>(x * x), x);
  if (a > (T)6.1) return withSign((T)1, x);
  return withSign(1 - gauss(a) * erfcxPositive(a), x);
}
template <typename T>
SONDE_MATH_FN T erfcx(T x) {
  if (isNan(x)) return x;
  if (x >= 0) return erfcxPositive(x);
  if (x < (sizeof(T) == 8 ? (T)-26.7 : (T)-9.4)) return infinity<T>();
  Pair<T> square = product(x, x);
  return 2 * expPair(square.high, square.low) - erfcxPositive(-x);
}

/* Solves erfc(y) = p for 0 < p <= 1 by Halley's method, which triples the
 * number of right digits; the start is the leading term of the asymptote. */
SONDE_MATH_FN double erfcinvLower(double p) {
  double t = root(-2.0 * log(p * 0.5));
  double y = 0.70710678118654752440 *
             (t - fused(0.27061, t, 2.30753) / fused(fused(0.04481, t, 0.99229), t, 1.0));
  for (int i = 0; i < 3; ++i) {
    // erfc(y) - p relative to the derivative -2/sqrt(pi) exp(-y^2)
    double error = erfc(y) - p;
    double step = error / (1.12837916709551257390 * gauss(y));
    y += step / fused(y, step, 1.0);
  }
  return y;
}
SONDE_MATH_FN double erfinv(double x) {
  double a = absolute(x);
  if (!(a <= 1)) return quietNan<double>();
  if (a == 1) return withSign(infinity<double>(), x);
  if (a > 0.5) return withSign(erfcinvLower(1 - a), x);
  if (a < 1e-9) return x * 0.88622692545275801365;
  // Near zero the complement loses digits: Newton on erf itself.
  double y = a * fused(a * a, 0.23201366653465444, 0.88622692545275801365);
  for (int i = 0; i < 4; ++i) {
    double step = (erf(y) - a) / (1.12837916709551257390 * gauss(y));
    y -= step / fused(y, step, 1.0);
  }
  return withSign(y, x);
}
SONDE_MATH_FN double erfcinv(double p) {
  if (isNan(p) || p < 0 || p > 2) return quietNan<double>();
  if (p == 0) return infinity<double>();
  if (p == 2) return -infinity<double>();
  if (p >= 0.5 && p <= 1.5) return erfinv(1 - p);  // the difference is exact
  return p <= 1 ? erfcinvLower(p) : -erfcinvLower(2 - p);
}
SONDE_MATH_FN float erfcinv(float p) { return (float)erfcinv((double)p); }
SONDE_MATH_FN float erfinv(float x) { return (float)erfinv((double)x); }

SONDE_MATH_FN double normcdf(double x) {
  if (isNan(x)) return x;
  // erfc(-x / sqrt(2)) / 2; the argument's low part corrects the tail.
  Pair<double> a = multiply(Pair<double>{-x, 0}, Pair<double>{0.70710678118654757274, -4.8336466567264567e-17});
  if (a.high > 27.5) return 0.5 * erfc(a.high);
  double value = 0.5 * erfc(a.high);
  return a.high > 0 ? fused(-2 * a.high * a.low, value, value) : value;
}
SONDE_MATH_FN float normcdf(float x) { return (float)normcdf((double)x); }
SONDE_MATH_FN double normcdfinv(double p) { return -1.41421356237309504880 * erfcinv(2 * p); }
SONDE_MATH_FN float normcdfinv(float p) { return (float)normcdfinv((double)p); }

/* ----------------------------------------------------------------- gamma -- */

/* ln(Gamma(x)) for x >= 8, by Stirling's series. */
SONDE_MATH_FN double stirlingTail(double x) {
  double r = 1 / x, z = r * r;
  double s = -1.9175269175269175e-3;
  s = fused(s, z, 8.4175084175084175e-4);
  s = fused(s, z, -5.9523809523809524e-4);
  s = fused(s, z, 7.9365079365079365e-4);
  s = fused(s, z, -2.7777777777777778e-3);
  s = fused(s, z, 8.3333333333333333e-2);
  return s * r;
}
/* ln(Gamma(2 + t)) for |t| <= 1. */
SONDE_MATH_FN double logGammaNear2(double t) {
  double sum = kLogGammaD[34];
#pragma unroll 1
  for (int i = 33; i >= 0; --i) sum = fused(sum, t, kLogGammaD[i]);
  return t * (t + 1) * sum;
}
SONDE_MATH_FN double logGammaPositive(double x) {
  if (x >= 10) {
    if (x > 2.5e305) return infinity<double>();
    Pair<double> l = logPair(x);
    Pair<double> a = scale(Pair<double>{l.high - 1, l.low}, x - 0.5);
    // (x - 1/2) (ln x - 1) + (ln(2 pi) - 1) / 2 + tail
    Pair<double> s = sum(a.high, 0.41893853320467274178 + stirlingTail(x));
    return s.high + (s.low + a.low);
  }
  if (x < 1) return logGammaNear2(x - 1) - log(x);
  double factor = 1;
  while (x > 3) {
    x -= 1;
    factor *= x;
  }
  double base = logGammaNear2(x - 2);
  return factor == 1 ? base : base + log(factor);
}
SONDE_MATH_FN double lgamma(double x) {
  if (isNan(x)) return x;
  if (absolute(x) == infinity<double>()) return infinity<double>();
  if (x > 0) return logGammaPositive(x);
  if (nearest(x) == x) return infinity<double>();
  double s = absolute(sinpi(x));
  // Gamma(x) Gamma(1 - x) = pi / sin(pi x)
  if (x > -1e-18) return -log(-x);
  return log(3.14159265358979323846 / (s * -x)) - logGammaPositive(-x);
}
SONDE_MATH_FN double gammaPositive(double x) {
  if (x > 171.7) return infinity<double>();
  if (x >= 10) {
    Pair<double> l = logPair(x);
    Pair<double> a = scale(Pair<double>{l.high - 1, l.low}, x - 0.5);
    Pair<double> s = sum(a.high, 0.41893853320467274178 + stirlingTail(x));
    return expPair(s.high, s.low + a.low);
  }
  double factor = 1;
  while (x > 2.5) {
    x -= 1;
    factor *= x;
  }
  double divisor = 1;
  while (x < 1.5) {
    divisor *= x;
    x += 1;
  }
  return exp(logGammaNear2(x - 2)) * factor / divisor;
}
SONDE_MATH_FN double tgamma(double x) {
  if (isNan(x)) return x;
  if (x == 0) return withSign(infinity<double>(), x);
  if (x == infinity<double>()) return x;
  if (x > 0) return gammaPositive(x);
  if (nearest(x) == x) return quietNan<double>();
  if (x < -184) return isOddInteger(__builtin_floor(x)) ? -0.0 : 0.0;
  double s = sinpi(x);
  if (x > -170) return 3.14159265358979323846 / (s * -x * gammaPositive(-x));
  // Gamma(-x) overflows before its reciprocal vanishes: in two factors.
  Pair<double> l = logPair(-x);
  Pair<double> a = scale(Pair<double>{l.high - 1, l.low}, -x - 0.5);
  double half = expPair(-0.5 * (a.high + 0.41893853320467274178 + stirlingTail(-x)), -0.5 * a.low);
  return 3.14159265358979323846 / (s * -x) * half * half;
}
SONDE_MATH_FN float lgamma(float x) { return (float)lgamma((double)x); }
SONDE_MATH_FN float tgamma(float x) { return (float)tgamma((double)x); }

}  // namespace sonde_math

#endif /* SONDE_SOFTGPU_DEVICE_MATH_SPECIAL_H_ */
