// SPDX-License-Identifier: Apache-2.0
// The device mathematics, compiled for the host and compared with the C
// library's 80-bit functions: the worst error over many arguments, in units in
// the last place, against the bound that CUDA documents.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#define SONDE_MATH_FN [[maybe_unused]] static inline
#define SONDE_MATH_TABLE [[maybe_unused]] static constexpr
#define SONDE_MATH_MEMBER
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "softgpu/sonde_device_math_bessel.h"
#include "softgpu/sonde_device_math_special.h"

namespace {

template <typename T>
long double ulps(T got, long double exact) {
  if (std::isnan(static_cast<double>(exact))) return std::isnan(got) ? 0 : 1e30L;
  T rounded = static_cast<T>(exact);
  if (std::isinf(rounded) || std::isinf(got))
    return got == rounded ? 0 : std::isinf(got) != std::isinf(rounded) ? 1.0L : 1e30L;
  int e;
  std::frexp(rounded == 0 ? std::numeric_limits<T>::min() : rounded, &e);
  int last = std::max(e - std::numeric_limits<T>::digits,
                      std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits);
  return std::fabs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, last);
}

// Arguments spread evenly, and evenly in magnitude, over [low, high].
template <typename T>
std::vector<T> arguments(double low, double high, int count = 40000) {
  std::mt19937_64 random(42);
  std::vector<T> out;
  std::uniform_real_distribution<double> even(low, high);
  for (int i = 0; i < count; ++i) out.push_back(static_cast<T>(even(random)));
  double most = std::max(std::fabs(low), std::fabs(high));
  std::uniform_real_distribution<double> powers(-30, std::log2(most));
  for (int i = 0; i < count; ++i) {
    double magnitude = std::exp2(powers(random));
    for (double x : {magnitude, -magnitude})
      if (x >= low && x <= high) out.push_back(static_cast<T>(x));
  }
  return out;
}

#define WORST(T, function, reference, low, high, bound)                                                         \
  do {                                                                                                          \
    long double worst = 0;                                                                                      \
    T where = 0;                                                                                                \
    for (T x : arguments<T>(low, high)) {                                                                       \
      long double error = ulps<T>(sonde_math::function(x), reference(static_cast<long double>(x)));             \
      if (error > worst) {                                                                                      \
        worst = error;                                                                                          \
        where = x;                                                                                              \
      }                                                                                                         \
    }                                                                                                           \
    EXPECT_LE(worst, bound) << #function "<" #T "> at " << std::hexfloat << where << std::defaultfloat << " = " \
                            << where;                                                                           \
  } while (0)

long double exp10Reference(long double x) { return exp10l(x); }
long double normcdfReference(long double x) { return 0.5L * std::erfc(-x * 0.70710678118654752440084436210485L); }
// Reduced to a quarter turn first: the value of pi times x must not be large.
long double sinpiReference(long double x) {
  int n = 0;
  long double r = std::remquo(x, 0.5L, &n) * 3.14159265358979323846264338327950288L;
  long double value = n & 1 ? std::cos(r) : std::sin(r);
  return n & 2 ? -value : value;
}
long double cospiReference(long double x) {
  int n = 0;
  long double r = std::remquo(x, 0.5L, &n) * 3.14159265358979323846264338327950288L;
  long double value = n & 1 ? -std::sin(r) : std::cos(r);
  return n & 2 ? -value : value;
}

TEST(DeviceMath, Exponentials) {
  WORST(double, exp, std::exp, -745, 709, 1);
  WORST(double, exp2, std::exp2, -1074, 1023, 1);
  WORST(double, exp10, exp10Reference, -323, 308, 1);
  WORST(double, expm1, std::expm1, -50, 709, 1);
  WORST(float, exp, std::exp, -104, 88, 1);
  WORST(float, exp2, std::exp2, -149, 127, 2);
  WORST(float, exp10, exp10Reference, -45, 38, 2);
  WORST(float, expm1, std::expm1, -20, 88, 1);
}

TEST(DeviceMath, Logarithms) {
  WORST(double, log, std::log, 0, 1e300, 1);
  WORST(double, log, std::log, 0.5, 2, 1);
  WORST(double, log2, std::log2, 0, 1e300, 1);
  WORST(double, log2, std::log2, 0.5, 2, 1);
  WORST(double, log10, std::log10, 0, 1e300, 1);
  WORST(double, log10, std::log10, 0.5, 2, 1);
  WORST(double, log1p, std::log1p, -0.999, 1e10, 1);
  WORST(float, log, std::log, 0, 1e38, 1);
  WORST(float, log, std::log, 0.5, 2, 1);
  WORST(float, log2, std::log2, 0.5, 2, 1);
  WORST(float, log10, std::log10, 0.5, 2, 2);
  WORST(float, log1p, std::log1p, -0.999, 1e10, 1);
}

TEST(DeviceMath, Trigonometry) {
  WORST(double, sin, std::sin, -10, 10, 2);
  WORST(double, cos, std::cos, -10, 10, 2);
  WORST(double, tan, std::tan, -10, 10, 2);
  WORST(double, sin, std::sin, -1e6, 1e6, 2);
  WORST(double, cos, std::cos, -1e15, 1e15, 2);
  WORST(double, sinpi, sinpiReference, -100, 100, 2);
  WORST(double, cospi, cospiReference, -100, 100, 2);
  WORST(float, sin, std::sin, -10, 10, 2);
  WORST(float, cos, std::cos, -10, 10, 2);
  WORST(float, tan, std::tan, -10, 10, 4);
  WORST(float, sin, std::sin, -1e30, 1e30, 2);
  WORST(float, sinpi, sinpiReference, -100, 100, 1);
  WORST(float, cospi, cospiReference, -100, 100, 1);
}

TEST(DeviceMath, InverseTrigonometry) {
  WORST(double, asin, std::asin, -1, 1, 2);
  WORST(double, acos, std::acos, -1, 1, 2);
  WORST(double, atan, std::atan, -100, 100, 2);
  WORST(float, asin, std::asin, -1, 1, 2);
  WORST(float, acos, std::acos, -1, 1, 2);
  WORST(float, atan, std::atan, -100, 100, 2);
}

TEST(DeviceMath, Hyperbolics) {
  WORST(double, sinh, std::sinh, -700, 700, 2);
  WORST(double, cosh, std::cosh, -700, 700, 1);
  WORST(double, tanh, std::tanh, -30, 30, 2);
  WORST(double, asinh, std::asinh, -1e10, 1e10, 3);
  WORST(double, acosh, std::acosh, 1, 1e10, 3);
  WORST(double, atanh, std::atanh, -0.9999, 0.9999, 2);
  WORST(float, sinh, std::sinh, -88, 88, 3);
  WORST(float, cosh, std::cosh, -88, 88, 2);
  WORST(float, tanh, std::tanh, -12, 12, 2);
  WORST(float, asinh, std::asinh, -1e10, 1e10, 3);
  WORST(float, acosh, std::acosh, 1, 1e10, 4);
  WORST(float, atanh, std::atanh, -0.9999, 0.9999, 3);
}

TEST(DeviceMath, RootsAndSpecialFunctions) {
  WORST(double, cbrt, std::cbrt, -1e30, 1e30, 1);
  WORST(float, cbrt, std::cbrt, -1e30, 1e30, 1);
  WORST(double, erf, std::erf, -6, 6, 2);
  WORST(double, erfc, std::erfc, -6, 26, 5);
  WORST(double, normcdf, normcdfReference, -37, 8, 5);
  WORST(double, tgamma, std::tgamma, -160, 171, 10);
  WORST(double, lgamma, std::lgamma, 0.01, 1e5, 4);
  WORST(float, erf, std::erf, -4, 4, 2);
  WORST(float, erfc, std::erfc, -4, 10, 4);
  WORST(float, tgamma, std::tgamma, -33, 35, 5);
  WORST(float, lgamma, std::lgamma, 0.01, 1e5, 6);
}

TEST(DeviceMath, InversesOfTheErrorFunctions) {
  // erf(erfinv(x)) = x: the error in y is the residual over the derivative.
  long double worst = 0;
  for (double x : arguments<double>(-0.9999999, 0.9999999, 4000)) {
    double y = sonde_math::erfinv(x);
    long double slope = 2 / std::sqrt(3.14159265358979323846L) * std::exp(-static_cast<long double>(y) * y);
    long double exact = y - (std::erf(static_cast<long double>(y)) - x) / slope;
    worst = std::max(worst, ulps<double>(y, exact));
  }
  EXPECT_LE(worst, 5);
  worst = 0;
  for (double p : arguments<double>(1e-300, 2, 4000)) {
    double y = sonde_math::erfcinv(p);
    long double slope = -2 / std::sqrt(3.14159265358979323846L) * std::exp(-static_cast<long double>(y) * y);
    long double exact = y - (std::erfc(static_cast<long double>(y)) - p) / slope;
    if (std::fabs(y) > 1e-3) worst = std::max(worst, ulps<double>(y, exact));
  }
  EXPECT_LE(worst, 6);
}

TEST(DeviceMath, BesselFunctions) {
  double worst = 0, worstModified = 0;
  for (double x : arguments<double>(0.01, 60, 5000)) {
    if (x < 0.01) continue;
    worst = std::max(worst, std::fabs(sonde_math::j0(x) - ::j0(x)));
    worst = std::max(worst, std::fabs(sonde_math::j1(x) - ::j1(x)));
    worst = std::max(worst, std::fabs(sonde_math::y0(x) - ::y0(x)) / std::max(1.0, std::fabs(::y0(x))));
    worst = std::max(worst, std::fabs(sonde_math::y1(x) - ::y1(x)) / std::max(1.0, std::fabs(::y1(x))));
    worst = std::max(worst, std::fabs(sonde_math::jn(7, x) - ::jn(7, x)));
    worst = std::max(worst, std::fabs(sonde_math::yn(4, x) - ::yn(4, x)) / std::max(1.0, std::fabs(::yn(4, x))));
    for (double nu : {0.0, 1.0}) {
      double wanted = std::cyl_bessel_i(nu, x),
             got = nu == 0 ? sonde_math::cyl_bessel_i0(x) : sonde_math::cyl_bessel_i1(x);
      worstModified = std::max(worstModified, std::fabs(got - wanted) / wanted);
    }
  }
  EXPECT_LE(worst, 2e-14);
  EXPECT_LE(worstModified, 1e-14);
}

TEST(DeviceMath, TwoArguments) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> wide(-30, 30), base(0.0, 50.0);
  long double worstPow = 0, worstPowf = 0, worstAtan2 = 0, worstAtan2f = 0, worstHypot = 0, worstHypotf = 0;
  for (int i = 0; i < 100000; ++i) {
    double x = wide(random), y = wide(random), a = base(random);
    worstPow = std::max(worstPow, ulps<double>(sonde_math::pow(a, y), std::pow((long double)a, (long double)y)));
    float fx = (float)x, fy = (float)y, fa = (float)a;
    worstPowf = std::max(worstPowf, ulps<float>(sonde_math::pow(fa, fy), std::pow((long double)fa, (long double)fy)));
    worstAtan2 =
        std::max(worstAtan2, ulps<double>(sonde_math::atan2(y, x), std::atan2((long double)y, (long double)x)));
    worstAtan2f =
        std::max(worstAtan2f, ulps<float>(sonde_math::atan2(fy, fx), std::atan2((long double)fy, (long double)fx)));
    worstHypot =
        std::max(worstHypot, ulps<double>(sonde_math::hypot(y, x), std::hypot((long double)y, (long double)x)));
    worstHypotf =
        std::max(worstHypotf, ulps<float>(sonde_math::hypot(fy, fx), std::hypot((long double)fy, (long double)fx)));
    EXPECT_EQ(sonde_math::fmod(x * 1000, a), std::fmod(x * 1000, a));
    EXPECT_EQ(sonde_math::remainder(x * 1000, a), std::remainder(x * 1000, a));
    EXPECT_EQ(sonde_math::fmod(fx * 1000, fa), std::fmod(fx * 1000, fa));
  }
  EXPECT_LE(worstPow, 2);
  EXPECT_LE(worstPowf, 4);
  EXPECT_LE(worstAtan2, 2);
  EXPECT_LE(worstAtan2f, 3);
  EXPECT_LE(worstHypot, 2);
  EXPECT_LE(worstHypotf, 3);
}

TEST(DeviceMath, PartsOfNumbers) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 100000; ++i) {
    uint64_t bits = random();
    double x;
    std::memcpy(&x, &bits, 8);
    if (std::isnan(x)) continue;
    int e = 0, f = 0;
    ASSERT_EQ(sonde_math::frexp(x, &e), std::frexp(x, &f));
    if (std::isfinite(x) && x != 0) ASSERT_EQ(e, f);
    int n = static_cast<int>(random() % 4400) - 2200;
    ASSERT_EQ(sonde_math::ldexp(x, n), std::ldexp(x, n)) << std::hexfloat << x << " " << n;
    ASSERT_EQ(sonde_math::nextafter(x, 1.0), std::nextafter(x, 1.0));
    double whole = 0, reference = 0;
    ASSERT_EQ(sonde_math::modf(x, &whole), std::modf(x, &reference));
    ASSERT_EQ(whole, reference);
    ASSERT_EQ(sonde_math::roundAway(x), std::round(x));
    ASSERT_EQ(sonde_math::logb(x), std::logb(x));
  }
}

TEST(DeviceMath, SpecialValues) {
  const double inf = INFINITY;
  EXPECT_EQ(sonde_math::exp(-inf), 0);
  EXPECT_EQ(sonde_math::exp(inf), inf);
  EXPECT_EQ(sonde_math::log(0.0), -inf);
  EXPECT_TRUE(std::isnan(sonde_math::log(-1.0)));
  EXPECT_TRUE(std::isnan(sonde_math::sin(inf)));
  EXPECT_EQ(sonde_math::pow(-2.0, 3.0), -8);
  EXPECT_EQ(sonde_math::pow(-2.0, -2.0), 0.25);
  EXPECT_TRUE(std::isnan(sonde_math::pow(-2.0, 0.5)));
  EXPECT_EQ(sonde_math::pow(0.0, -1.0), inf);
  EXPECT_EQ(sonde_math::pow(-0.0, -1.0), -inf);
  EXPECT_EQ(sonde_math::pow((double)NAN, 0.0), 1);
  EXPECT_TRUE(std::signbit(sonde_math::sin(-0.0)));
  EXPECT_EQ(sonde_math::atan2(0.0, -1.0), M_PI);
  EXPECT_EQ(sonde_math::atan2(-0.0, -1.0), -M_PI);
  EXPECT_EQ(sonde_math::atan2(inf, -inf), 3 * M_PI / 4);
  EXPECT_EQ(sonde_math::tgamma(5.0), 24);
  EXPECT_TRUE(std::isnan(sonde_math::tgamma(-2.0)));
  EXPECT_EQ(sonde_math::erfinv(1.0), inf);
  EXPECT_EQ(sonde_math::acosh(1.0), 0);
  EXPECT_EQ(sonde_math::tanh(50.0), 1);
  EXPECT_EQ(sonde_math::hypot(inf, (double)NAN), inf);
}

}  // namespace
