/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA names of the mathematical functions, for kernels.
 */
#ifndef SONDE_SOFTGPU_DEVICE_MATH_H_
#define SONDE_SOFTGPU_DEVICE_MATH_H_

#include "sonde_device_math_core.h"
#include "sonde_device_math_special.h"
#include "sonde_device_math_bessel.h"

/* name(double), namef(float), name(float) from sonde_math. */
#define SONDE_FORWARD_UNARY(name)                                      \
  SONDE_DEVICE double name(double x) { return sonde_math::name(x); }   \
  SONDE_DEVICE float name##f(float x) { return sonde_math::name(x); }  \
  SONDE_DEVICE float name(float x) { return name##f(x); }
/* The same, where the float form has an approximate one for -use_fast_math. */
#ifdef __CLANG_CUDA_APPROX_TRANSCENDENTALS__
#define SONDE_FORWARD_FAST(name)                                       \
  SONDE_DEVICE double name(double x) { return sonde_math::name(x); }   \
  SONDE_DEVICE float name##f(float x) { return __##name##f(x); }       \
  SONDE_DEVICE float name(float x) { return name##f(x); }
#else
#define SONDE_FORWARD_FAST(name) SONDE_FORWARD_UNARY(name)
#endif

/* ------------------------------------------- fast single-precision forms -- */

/* Built-in functions where clang has them: unlike assembly, they do not keep the compiler from joining the loads around. */
#define SONDE_APPROX(name, builtin)                                    \
  SONDE_DEVICE float name(float x) { return builtin(x); }
SONDE_APPROX(__sinf, __nvvm_sin_approx_ftz_f)
SONDE_APPROX(__cosf, __nvvm_cos_approx_ftz_f)
SONDE_APPROX(sonde_ex2_approx, __nvvm_ex2_approx_ftz_f)
SONDE_APPROX(__log2f, __nvvm_lg2_approx_ftz_f)
SONDE_APPROX(sonde_rsqrt_approx, __nvvm_rsqrt_approx_f)
SONDE_APPROX(__frcp_approx, __nvvm_rcp_approx_ftz_f)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 750
SONDE_DEVICE float __tanhf(float x) {
  float result;
  __asm__("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
#endif
#undef SONDE_APPROX
SONDE_DEVICE float __expf(float x) { return sonde_ex2_approx(x * 1.44269504f); }
SONDE_DEVICE float __exp10f(float x) { return sonde_ex2_approx(x * 3.32192809f); }
SONDE_DEVICE float __exp2f(float x) { return sonde_ex2_approx(x); }
SONDE_DEVICE float __logf(float x) { return __log2f(x) * 0.693147181f; }
SONDE_DEVICE float __log10f(float x) { return __log2f(x) * 0.301029996f; }
SONDE_DEVICE float __powf(float x, float y) { return sonde_ex2_approx(y * __log2f(x)); }
SONDE_DEVICE float __fdividef(float x, float y) { return __nvvm_div_approx_f(x, y); }
SONDE_DEVICE float __tanf(float x) { return __fdividef(__sinf(x), __cosf(x)); }
SONDE_DEVICE void __sincosf(float x, float *s, float *c) {
  *s = __sinf(x);
  *c = __cosf(x);
}
SONDE_DEVICE float __saturatef(float x) { return __nvvm_saturate_f(x); }

/* ------------------------------------------------------ transcendentals -- */

SONDE_FORWARD_FAST(exp)
SONDE_FORWARD_FAST(exp10)
SONDE_FORWARD_FAST(log)
SONDE_FORWARD_FAST(log2)
SONDE_FORWARD_FAST(log10)
SONDE_FORWARD_FAST(sin)
SONDE_FORWARD_FAST(cos)
SONDE_FORWARD_FAST(tan)
SONDE_FORWARD_UNARY(exp2)
SONDE_FORWARD_UNARY(expm1)
SONDE_FORWARD_UNARY(log1p)
SONDE_FORWARD_UNARY(cbrt)
SONDE_FORWARD_UNARY(sinpi)
SONDE_FORWARD_UNARY(cospi)
SONDE_FORWARD_UNARY(asin)
SONDE_FORWARD_UNARY(acos)
SONDE_FORWARD_UNARY(atan)
SONDE_FORWARD_UNARY(sinh)
SONDE_FORWARD_UNARY(cosh)
SONDE_FORWARD_UNARY(tanh)
SONDE_FORWARD_UNARY(asinh)
SONDE_FORWARD_UNARY(acosh)
SONDE_FORWARD_UNARY(atanh)
SONDE_FORWARD_UNARY(erf)
SONDE_FORWARD_UNARY(erfc)
SONDE_FORWARD_UNARY(erfcx)
SONDE_FORWARD_UNARY(erfinv)
SONDE_FORWARD_UNARY(erfcinv)
SONDE_FORWARD_UNARY(normcdf)
SONDE_FORWARD_UNARY(normcdfinv)
SONDE_FORWARD_UNARY(tgamma)
SONDE_FORWARD_UNARY(lgamma)
SONDE_FORWARD_UNARY(tanpi)
SONDE_FORWARD_UNARY(j0)
SONDE_FORWARD_UNARY(j1)
SONDE_FORWARD_UNARY(y0)
SONDE_FORWARD_UNARY(y1)
SONDE_FORWARD_UNARY(cyl_bessel_i0)
SONDE_FORWARD_UNARY(cyl_bessel_i1)
SONDE_DEVICE double jn(int n, double x) { return sonde_math::jn(n, x); }
SONDE_DEVICE float jnf(int n, float x) { return (float)sonde_math::jn(n, (double)x); }
SONDE_DEVICE double yn(int n, double x) { return sonde_math::yn(n, x); }
SONDE_DEVICE float ynf(int n, float x) { return (float)sonde_math::yn(n, (double)x); }
#undef SONDE_FORWARD_FAST
#undef SONDE_FORWARD_UNARY

#define SONDE_FORWARD_BINARY(name)                                                          \
  SONDE_DEVICE double name(double x, double y) { return sonde_math::name(x, y); }           \
  SONDE_DEVICE float name##f(float x, float y) { return sonde_math::name(x, y); }           \
  SONDE_DEVICE float name(float x, float y) { return name##f(x, y); }
SONDE_FORWARD_BINARY(atan2)
SONDE_FORWARD_BINARY(hypot)
SONDE_FORWARD_BINARY(fmod)
SONDE_FORWARD_BINARY(remainder)
SONDE_FORWARD_BINARY(nextafter)
SONDE_FORWARD_BINARY(fdim)
#undef SONDE_FORWARD_BINARY
SONDE_DEVICE double pow(double x, double y) { return sonde_math::pow(x, y); }
#ifdef __CLANG_CUDA_APPROX_TRANSCENDENTALS__
SONDE_DEVICE float powf(float x, float y) { return __powf(x, y); }
#else
SONDE_DEVICE float powf(float x, float y) { return sonde_math::pow(x, y); }
#endif
SONDE_DEVICE float pow(float x, float y) { return powf(x, y); }
SONDE_DEVICE double pow(double x, int y) { return sonde_math::pow(x, (double)y); }
SONDE_DEVICE float pow(float x, int y) { return powf(x, (float)y); }
SONDE_DEVICE double powi(double x, int y) { return sonde_math::pow(x, (double)y); }
SONDE_DEVICE float powif(float x, int y) { return powf(x, (float)y); }

SONDE_DEVICE void sincos(double x, double *s, double *c) { sonde_math::sincos(x, s, c); }
#ifdef __CLANG_CUDA_APPROX_TRANSCENDENTALS__
SONDE_DEVICE void sincosf(float x, float *s, float *c) { __sincosf(x, s, c); }
#else
SONDE_DEVICE void sincosf(float x, float *s, float *c) { sonde_math::sincos(x, s, c); }
#endif
SONDE_DEVICE void sincos(float x, float *s, float *c) { sincosf(x, s, c); }
SONDE_DEVICE void sincospi(double x, double *s, double *c) {
  *s = sonde_math::sinpi(x);
  *c = sonde_math::cospi(x);
}
SONDE_DEVICE void sincospif(float x, float *s, float *c) {
  *s = sonde_math::sinpi(x);
  *c = sonde_math::cospi(x);
}

/* -------------------------------------------------- roots and rounding -- */

SONDE_DEVICE double sqrt(double x) { return __builtin_sqrt(x); }
SONDE_DEVICE float sqrtf(float x) { return __builtin_sqrtf(x); }
SONDE_DEVICE float sqrt(float x) { return sqrtf(x); }
SONDE_DEVICE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
SONDE_DEVICE float rsqrtf(float x) { return sonde_rsqrt_approx(x); }
SONDE_DEVICE float rsqrt(float x) { return rsqrtf(x); }
SONDE_DEVICE double rcbrt(double x) { return 1.0 / sonde_math::cbrt(x); }
SONDE_DEVICE float rcbrtf(float x) { return 1.0f / sonde_math::cbrt(x); }
SONDE_DEVICE float rcbrt(float x) { return rcbrtf(x); }

#define SONDE_BUILTIN_UNARY(name)                                            \
  SONDE_DEVICE double name(double x) { return __builtin_##name(x); }         \
  SONDE_DEVICE float name##f(float x) { return __builtin_##name##f(x); }     \
  SONDE_DEVICE float name(float x) { return __builtin_##name##f(x); }
SONDE_BUILTIN_UNARY(fabs)
SONDE_BUILTIN_UNARY(ceil)
SONDE_BUILTIN_UNARY(floor)
SONDE_BUILTIN_UNARY(trunc)
SONDE_BUILTIN_UNARY(rint)
#undef SONDE_BUILTIN_UNARY
SONDE_DEVICE double nearbyint(double x) { return __builtin_rint(x); }
SONDE_DEVICE float nearbyintf(float x) { return __builtin_rintf(x); }
SONDE_DEVICE float nearbyint(float x) { return __builtin_rintf(x); }
SONDE_DEVICE double round(double x) { return sonde_math::roundAway(x); }
SONDE_DEVICE float roundf(float x) { return sonde_math::roundAway(x); }
SONDE_DEVICE float round(float x) { return sonde_math::roundAway(x); }
#define SONDE_BUILTIN_BINARY(name)                                                         \
  SONDE_DEVICE double name(double x, double y) { return __builtin_##name(x, y); }          \
  SONDE_DEVICE float name##f(float x, float y) { return __builtin_##name##f(x, y); }       \
  SONDE_DEVICE float name(float x, float y) { return __builtin_##name##f(x, y); }
SONDE_BUILTIN_BINARY(fmax)
SONDE_BUILTIN_BINARY(fmin)
SONDE_BUILTIN_BINARY(copysign)
#undef SONDE_BUILTIN_BINARY
SONDE_DEVICE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
SONDE_DEVICE float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
SONDE_DEVICE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
SONDE_DEVICE float fdividef(float x, float y) { return x / y; }

#define SONDE_TO_INTEGER(name, T, rounding)                              \
  SONDE_DEVICE T name(double x) { return sonde_math::toInteger<T>(rounding(x)); }    \
  SONDE_DEVICE T name##f(float x) { return sonde_math::toInteger<T>(rounding##f(x)); } \
  SONDE_DEVICE T name(float x) { return sonde_math::toInteger<T>(rounding##f(x)); }
SONDE_TO_INTEGER(lrint, long, rint)
SONDE_TO_INTEGER(llrint, long long, rint)
SONDE_TO_INTEGER(lround, long, round)
SONDE_TO_INTEGER(llround, long long, round)
#undef SONDE_TO_INTEGER

/* -------------------------------------------------- parts of a number -- */

#define SONDE_PARTS(T, suffix)                                                                         \
  SONDE_DEVICE T ldexp##suffix(T x, int n) { return sonde_math::ldexp(x, n); }                         \
  SONDE_DEVICE T scalbn##suffix(T x, int n) { return sonde_math::ldexp(x, n); }                        \
  SONDE_DEVICE T scalbln##suffix(T x, long n) {                                                        \
    return sonde_math::ldexp(x, n > 5000 ? 5000 : n < -5000 ? -5000 : (int)n);                         \
  }                                                                                                    \
  SONDE_DEVICE T frexp##suffix(T x, int *e) { return sonde_math::frexp(x, e); }                        \
  SONDE_DEVICE T modf##suffix(T x, T *whole) { return sonde_math::modf(x, whole); }                    \
  SONDE_DEVICE T remquo##suffix(T x, T y, int *quotient) { return sonde_math::remquo(x, y, quotient); } \
  SONDE_DEVICE T logb##suffix(T x) { return sonde_math::logb(x); }                                     \
  SONDE_DEVICE int ilogb##suffix(T x) { return sonde_math::ilogb(x); }
SONDE_PARTS(double, )
SONDE_PARTS(float, f)
SONDE_PARTS(float, )
#undef SONDE_PARTS

/* The host's <cmath> has this mixed form for the host alone: its result comes
   through a pointer, so it is not constexpr. Anything but two floats is double. */
namespace std {
template <typename T, typename U, bool = __is_arithmetic(T) && __is_arithmetic(U)>
struct __sonde_promoted {};
template <typename T, typename U>
struct __sonde_promoted<T, U, true> { using type = double; };
template <>
struct __sonde_promoted<float, float, true> { using type = float; };
template <typename T, typename U>
SONDE_DEVICE typename __sonde_promoted<T, U>::type remquo(T x, U y, int *quotient) {
  using P = typename __sonde_promoted<T, U>::type;
  return ::remquo((P)x, (P)y, quotient);
}
}  // namespace std

SONDE_DEVICE double nan(const char *) { return __builtin_nan(""); }
SONDE_DEVICE float nanf(const char *) { return __builtin_nanf(""); }
#define SONDE_CLASSIFY(T)                                                                    \
  SONDE_DEVICE bool isfinite(T x) { return sonde_math::absolute(x) < (T)__builtin_inff(); }  \
  SONDE_DEVICE bool isinf(T x) { return sonde_math::absolute(x) == (T)__builtin_inff(); }    \
  SONDE_DEVICE bool isnan(T x) { return x != x; }                                            \
  SONDE_DEVICE bool isnormal(T x) {                                                          \
    return sonde_math::absolute(x) >= sonde_math::powerOfTwo<T>(1 - sonde_math::Traits<T>::kBias) && isfinite(x); \
  }                                                                                          \
  SONDE_DEVICE bool signbit(T x) { return sonde_math::signbitOf(x); }                        \
  SONDE_DEVICE int fpclassify(T x) {                                                         \
    return isnan(x) ? FP_NAN : isinf(x) ? FP_INFINITE : x == 0 ? FP_ZERO : isnormal(x) ? FP_NORMAL : FP_SUBNORMAL; \
  }
SONDE_CLASSIFY(double)
SONDE_CLASSIFY(float)
#undef SONDE_CLASSIFY

/* ---------------------------------------------------------- norms -- */

SONDE_DEVICE double norm3d(double a, double b, double c) { return sonde_math::hypot(sonde_math::hypot(a, b), c); }
SONDE_DEVICE float norm3df(float a, float b, float c) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c);
}
SONDE_DEVICE double norm4d(double a, double b, double c, double d) {
  return sonde_math::hypot(sonde_math::hypot(a, b), sonde_math::hypot(c, d));
}
SONDE_DEVICE float norm4df(float a, float b, float c, float d) {
  return (float)__builtin_sqrt((double)a * a + (double)b * b + (double)c * c + (double)d * d);
}
SONDE_DEVICE double norm(int count, const double *values) {
  double length = 0;
  for (int i = 0; i < count; ++i) length = sonde_math::hypot(length, values[i]);
  return length;
}
SONDE_DEVICE float normf(int count, const float *values) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += (double)values[i] * values[i];
  return (float)__builtin_sqrt(sum);
}
SONDE_DEVICE double rhypot(double x, double y) { return 1.0 / sonde_math::hypot(x, y); }
SONDE_DEVICE float rhypotf(float x, float y) { return 1.0f / sonde_math::hypot(x, y); }
SONDE_DEVICE double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
SONDE_DEVICE float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
SONDE_DEVICE double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
SONDE_DEVICE float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }

/* ------------------------------------------------ integers, min and max -- */

SONDE_DEVICE int abs(int x) { return x < 0 ? -x : x; }
SONDE_DEVICE long abs(long x) { return x < 0 ? -x : x; }
SONDE_DEVICE long long abs(long long x) { return x < 0 ? -x : x; }
SONDE_DEVICE double abs(double x) { return __builtin_fabs(x); }
SONDE_DEVICE float abs(float x) { return __builtin_fabsf(x); }
SONDE_DEVICE long labs(long x) { return x < 0 ? -x : x; }
SONDE_DEVICE long long llabs(long long x) { return x < 0 ? -x : x; }

#define SONDE_BOTH static __inline__ __host__ __device__ __attribute__((always_inline, nodebug))
#define SONDE_MIN_MAX(T)                                     \
  SONDE_BOTH T min(T a, T b) { return a < b ? a : b; }       \
  SONDE_BOTH T max(T a, T b) { return a > b ? a : b; }
SONDE_MIN_MAX(int)
SONDE_MIN_MAX(unsigned)
SONDE_MIN_MAX(long)
SONDE_MIN_MAX(unsigned long)
SONDE_MIN_MAX(long long)
SONDE_MIN_MAX(unsigned long long)
#undef SONDE_MIN_MAX
SONDE_BOTH unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
SONDE_BOTH unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
SONDE_BOTH unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
SONDE_BOTH unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
SONDE_BOTH float min(float a, float b) { return __builtin_fminf(a, b); }
SONDE_BOTH float max(float a, float b) { return __builtin_fmaxf(a, b); }
SONDE_BOTH double min(double a, double b) { return __builtin_fmin(a, b); }
SONDE_BOTH double max(double a, double b) { return __builtin_fmax(a, b); }
SONDE_BOTH double min(float a, double b) { return min((double)a, b); }
SONDE_BOTH double min(double a, float b) { return min(a, (double)b); }
SONDE_BOTH double max(float a, double b) { return max((double)a, b); }
SONDE_BOTH double max(double a, float b) { return max(a, (double)b); }
#define SONDE_NAMED(prefix, T)                                       \
  SONDE_BOTH T prefix##min(T a, T b) { return a < b ? a : b; }       \
  SONDE_BOTH T prefix##max(T a, T b) { return a > b ? a : b; }
SONDE_NAMED(u, unsigned)
SONDE_NAMED(ll, long long)
SONDE_NAMED(ull, unsigned long long)
#undef SONDE_NAMED

/* Integer arguments count as double, as in C++. */
namespace std {
#define SONDE_INTEGER_UNARY(name)                                                                      \
  template <typename T, typename = typename __gnu_cxx::__enable_if<__is_integer<T>::__value, T>::__type> \
  SONDE_DEVICE double name(T x) {                                                                      \
    return ::name((double)x);                                                                          \
  }
SONDE_INTEGER_UNARY(acos)
SONDE_INTEGER_UNARY(acosh)
SONDE_INTEGER_UNARY(asin)
SONDE_INTEGER_UNARY(asinh)
SONDE_INTEGER_UNARY(atan)
SONDE_INTEGER_UNARY(atanh)
SONDE_INTEGER_UNARY(cbrt)
SONDE_INTEGER_UNARY(ceil)
SONDE_INTEGER_UNARY(cos)
SONDE_INTEGER_UNARY(cosh)
SONDE_INTEGER_UNARY(erf)
SONDE_INTEGER_UNARY(erfc)
SONDE_INTEGER_UNARY(exp)
SONDE_INTEGER_UNARY(exp2)
SONDE_INTEGER_UNARY(expm1)
SONDE_INTEGER_UNARY(floor)
SONDE_INTEGER_UNARY(lgamma)
SONDE_INTEGER_UNARY(log)
SONDE_INTEGER_UNARY(log10)
SONDE_INTEGER_UNARY(log1p)
SONDE_INTEGER_UNARY(log2)
SONDE_INTEGER_UNARY(logb)
SONDE_INTEGER_UNARY(nearbyint)
SONDE_INTEGER_UNARY(rint)
SONDE_INTEGER_UNARY(round)
SONDE_INTEGER_UNARY(sin)
SONDE_INTEGER_UNARY(sinh)
SONDE_INTEGER_UNARY(sqrt)
SONDE_INTEGER_UNARY(tan)
SONDE_INTEGER_UNARY(tanh)
SONDE_INTEGER_UNARY(tgamma)
SONDE_INTEGER_UNARY(trunc)
#undef SONDE_INTEGER_UNARY
#define SONDE_INTEGER_TO(name, R)                                                                 \
  template <typename T, typename = typename __gnu_cxx::__enable_if<__is_integer<T>::__value, T>::__type> \
  SONDE_DEVICE R name(T x) {                                                                           \
    return ::name((double)x);                                                                          \
  }
SONDE_INTEGER_TO(ilogb, int)
SONDE_INTEGER_TO(lrint, long)
SONDE_INTEGER_TO(lround, long)
SONDE_INTEGER_TO(llrint, long long)
SONDE_INTEGER_TO(llround, long long)
#undef SONDE_INTEGER_TO
#define SONDE_INTEGER_SCALE(name, N)                                                                   \
  template <typename T, typename = typename __gnu_cxx::__enable_if<__is_integer<T>::__value, T>::__type> \
  SONDE_DEVICE double name(T x, N n) {                                                                 \
    return ::name((double)x, n);                                                                       \
  }
SONDE_INTEGER_SCALE(ldexp, int)
SONDE_INTEGER_SCALE(scalbln, long)
SONDE_INTEGER_SCALE(scalbn, int)
#undef SONDE_INTEGER_SCALE
}  // namespace std

#endif /* SONDE_SOFTGPU_DEVICE_MATH_H_ */
