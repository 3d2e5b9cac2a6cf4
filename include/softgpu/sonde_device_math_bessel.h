/* SPDX-License-Identifier: Apache-2.0
 *
 * Bessel functions. Errors are absolute, of the order of the last place of the
 * function's largest value nearby; close to a zero the relative error grows.
 * See sonde_device_math_core.h.
 */
#ifndef SONDE_SOFTGPU_DEVICE_MATH_BESSEL_H_
#define SONDE_SOFTGPU_DEVICE_MATH_BESSEL_H_

#include "sonde_device_math_core.h"

namespace sonde_math {

template <int Size>
SONDE_MATH_FN double evaluate(const double (&table)[Size], double x) {
  double sum = table[Size - 1];
#pragma unroll 1
  for (int i = Size - 2; i >= 0; --i) sum = fused(sum, x, table[i]);
  return sum;
}

/* x >= 8: P cos(a) - Q sin(a) for J, P sin(a) + Q cos(a) for Y, with
 * a = x - (2 order + 1) pi / 4. */
SONDE_MATH_FN double besselFar(double x, int order, bool second) {
  if (x == infinity<double>()) return 0;
  double z = 64 / (x * x), s, c;
  double p = order ? evaluate(kP1, z) : evaluate(kP0, z);
  double q = (order ? evaluate(kQ1, z) : evaluate(kQ0, z)) * 8 / x;
  sincos(x, &s, &c);
  // sin and cos of a, times the root of 2.
  double sinA = order ? -s - c : s - c, cosA = order ? s - c : s + c;
  double value = second ? p * sinA + q * cosA : p * cosA - q * sinA;
  return value * 0.56418958354775628695 / root(x);  // 1 / sqrt(pi)
}

SONDE_MATH_FN double j0(double x) {
  if (isNan(x)) return x;
  x = absolute(x);
  return x < 8 ? evaluate(kJ0, x * x * (1.0 / 32) - 1) : besselFar(x, 0, false);
}
SONDE_MATH_FN double j1(double x) {
  if (isNan(x)) return x;
  double a = absolute(x);
  double value = a < 8 ? a * evaluate(kJ1, a * a * (1.0 / 32) - 1) : besselFar(a, 1, false);
  return x < 0 ? -value : value;
}
SONDE_MATH_FN double y0(double x) {
  if (isNan(x)) return x;
  if (x <= 0) return x == 0 ? -infinity<double>() : quietNan<double>();
  if (x >= 8) return besselFar(x, 0, true);
  return fused(0.63661977236758134308 * log(0.5 * x), j0(x), evaluate(kY0, x * x * (1.0 / 32) - 1));
}
SONDE_MATH_FN double y1(double x) {
  if (isNan(x)) return x;
  if (x <= 0) return x == 0 ? -infinity<double>() : quietNan<double>();
  if (x >= 8) return besselFar(x, 1, true);
  double part = 0.63661977236758134308 * (log(0.5 * x) * j1(x) - 1 / x);
  return fused(x, evaluate(kY1, x * x * (1.0 / 32) - 1), part);
}

/* Order n: upward where that is stable, else downward from far above. */
SONDE_MATH_FN double jn(int n, double x) {
  if (n < 0) {
    double value = jn(-n, x);
    return n & 1 ? -value : value;
  }
  if (n == 0) return j0(x);
  if (n == 1) return j1(x);
  if (isNan(x) || x == 0 || absolute(x) == infinity<double>()) return isNan(x) ? x : 0;
  double a = absolute(x), result;
  if (a > n) {
    double before = j0(a), now = j1(a);
    for (int i = 1; i < n; ++i) {
      double next = 2 * i / a * now - before;
      before = now;
      now = next;
    }
    result = now;
  } else {
    int start = 2 * ((n + (int)root(60.0 * n) + 20) / 2);
    double above = 0, here = 1e-300, sum = 0;
    result = 0;
    for (int i = start; i > 0; --i) {
      double below = 2 * i / a * here - above;
      above = here;
      here = below;
      if (absolute(here) > 1e200) {
        here *= 1e-200;
        above *= 1e-200;
        sum *= 1e-200;
        result *= 1e-200;
      }
      if (i - 1 == n) result = here;
      if ((i - 1) % 2 == 0) sum += i - 1 == 0 ? here : 2 * here;
    }
    result /= sum;  // J0 + 2 J2 + 2 J4 + ... = 1
  }
  return x < 0 && (n & 1) ? -result : result;
}
SONDE_MATH_FN double yn(int n, double x) {
  if (n < 0) {
    double value = yn(-n, x);
    return n & 1 ? -value : value;
  }
  double before = y0(x), now = y1(x);
  if (n == 0) return before;
  if (!(x > 0)) return before;
  for (int i = 1; i < n; ++i) {
    double next = 2 * i / x * now - before;
    before = now;
    now = next;
  }
  return now;
}

SONDE_MATH_FN double cyl_bessel_i0(double x) {
  if (isNan(x)) return x;
  double a = absolute(x);
  if (a < 8) return exp(a) * evaluate(kI0Near, 0.25 * a - 1);
  if (a == infinity<double>()) return a;
  double half = exp(0.5 * a);
  return half * (evaluate(kI0Far, 16 / a - 1) / root(a)) * half;
}
SONDE_MATH_FN double cyl_bessel_i1(double x) {
  if (isNan(x)) return x;
  double a = absolute(x), value;
  if (a < 8) {
    value = exp(a) * a * evaluate(kI1Near, 0.25 * a - 1);
  } else if (a == infinity<double>()) {
    value = a;
  } else {
    double half = exp(0.5 * a);
    value = half * (evaluate(kI1Far, 16 / a - 1) / root(a)) * half;
  }
  return withSign(value, x);
}

SONDE_MATH_FN float j0(float x) { return (float)j0((double)x); }
SONDE_MATH_FN float j1(float x) { return (float)j1((double)x); }
SONDE_MATH_FN float y0(float x) { return (float)y0((double)x); }
SONDE_MATH_FN float y1(float x) { return (float)y1((double)x); }
SONDE_MATH_FN float cyl_bessel_i0(float x) { return (float)cyl_bessel_i0((double)x); }
SONDE_MATH_FN float cyl_bessel_i1(float x) { return (float)cyl_bessel_i1((double)x); }

template <typename T>
SONDE_MATH_FN T tanpi(T x) {
  if (!(absolute(x) < infinity<T>())) return quietNan<T>();
  T s = sinpi(x), c = cospi(x);
  return s == 0 ? s * c : s / c;
}

}  // namespace sonde_math

#endif /* SONDE_SOFTGPU_DEVICE_MATH_BESSEL_H_ */
