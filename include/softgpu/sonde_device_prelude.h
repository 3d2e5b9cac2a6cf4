/* SPDX-License-Identifier: Apache-2.0
 *
 * Comes before everything else when clang compiles CUDA (sondecc includes it).
 *
 * The standard library's constexpr functions count as host and device
 * functions, and std::sin(float) and its like are among them. A device
 * function of the same signature must therefore be known before <cmath> is
 * read; then clang leaves the library's one to the host.
 */
#ifndef SONDE_SOFTGPU_DEVICE_PRELUDE_H_
#define SONDE_SOFTGPU_DEVICE_PRELUDE_H_

#if defined(__CUDA__) && defined(__clang__)

#include "crt/host_defines.h"

/* nodebug: what they are inlined into keeps its own lines. */
#define SONDE_DEVICE static __inline__ __device__ __attribute__((always_inline, nodebug))

/* The first column of these lists is the name; float and double variants have
 * the C names with and without the f, and the overload for float. */
#define SONDE_UNARY_FUNCTIONS(X)                                                                                     \
  X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(cbrt) X(ceil) X(cos) X(cosh) X(erf) X(erfc) X(exp) X(exp2)      \
  X(expm1) X(fabs) X(floor) X(lgamma) X(log) X(log10) X(log1p) X(log2) X(logb) X(nearbyint) X(rint) X(round) X(sin)    \
  X(sinh) X(sqrt) X(tan) X(tanh) X(tgamma) X(trunc)
#define SONDE_BINARY_FUNCTIONS(X)                                                                                    \
  X(atan2) X(copysign) X(fdim) X(fmax) X(fmin) X(fmod) X(hypot) X(nextafter) X(pow) X(remainder)
/* Not in the standard library, hence not in std. */
#define SONDE_CUDA_UNARY_FUNCTIONS(X)                                                                                \
  X(cospi) X(cyl_bessel_i0) X(cyl_bessel_i1) X(erfcinv) X(erfcx) X(erfinv) X(exp10) X(j0) X(j1) X(normcdf)             \
  X(normcdfinv) X(rcbrt) X(rsqrt) X(sinpi) X(tanpi) X(y0) X(y1)

#define SONDE_DECLARE_UNARY(name)            \
  SONDE_DEVICE double name(double);          \
  SONDE_DEVICE float name##f(float);         \
  SONDE_DEVICE float name(float);
#define SONDE_DECLARE_BINARY(name)           \
  SONDE_DEVICE double name(double, double);  \
  SONDE_DEVICE float name##f(float, float);  \
  SONDE_DEVICE float name(float, float);
SONDE_UNARY_FUNCTIONS(SONDE_DECLARE_UNARY)
SONDE_CUDA_UNARY_FUNCTIONS(SONDE_DECLARE_UNARY)
SONDE_BINARY_FUNCTIONS(SONDE_DECLARE_BINARY)
#undef SONDE_DECLARE_UNARY
#undef SONDE_DECLARE_BINARY

SONDE_DEVICE double fma(double, double, double);
SONDE_DEVICE float fmaf(float, float, float);
SONDE_DEVICE float fma(float, float, float);
SONDE_DEVICE double frexp(double, int *);
SONDE_DEVICE float frexpf(float, int *);
SONDE_DEVICE float frexp(float, int *);
SONDE_DEVICE double ldexp(double, int);
SONDE_DEVICE float ldexpf(float, int);
SONDE_DEVICE float ldexp(float, int);
SONDE_DEVICE double scalbn(double, int);
SONDE_DEVICE float scalbnf(float, int);
SONDE_DEVICE float scalbn(float, int);
SONDE_DEVICE double scalbln(double, long);
SONDE_DEVICE float scalblnf(float, long);
SONDE_DEVICE float scalbln(float, long);
SONDE_DEVICE double modf(double, double *);
SONDE_DEVICE float modff(float, float *);
SONDE_DEVICE float modf(float, float *);
SONDE_DEVICE double remquo(double, double, int *);
SONDE_DEVICE float remquof(float, float, int *);
SONDE_DEVICE float remquo(float, float, int *);
SONDE_DEVICE int ilogb(double);
SONDE_DEVICE int ilogbf(float);
SONDE_DEVICE int ilogb(float);
SONDE_DEVICE long lrint(double);
SONDE_DEVICE long lrintf(float);
SONDE_DEVICE long lrint(float);
SONDE_DEVICE long lround(double);
SONDE_DEVICE long lroundf(float);
SONDE_DEVICE long lround(float);
SONDE_DEVICE long long llrint(double);
SONDE_DEVICE long long llrintf(float);
SONDE_DEVICE long long llrint(float);
SONDE_DEVICE long long llround(double);
SONDE_DEVICE long long llroundf(float);
SONDE_DEVICE long long llround(float);
SONDE_DEVICE double nan(const char *);
SONDE_DEVICE float nanf(const char *);
SONDE_DEVICE int abs(int);
SONDE_DEVICE long abs(long);
SONDE_DEVICE long long abs(long long);
SONDE_DEVICE double abs(double);
SONDE_DEVICE float abs(float);
SONDE_DEVICE long labs(long);
SONDE_DEVICE long long llabs(long long);
SONDE_DEVICE bool isfinite(double);
SONDE_DEVICE bool isfinite(float);
SONDE_DEVICE bool isinf(double);
SONDE_DEVICE bool isinf(float);
SONDE_DEVICE bool isnan(double);
SONDE_DEVICE bool isnan(float);
SONDE_DEVICE bool isnormal(double);
SONDE_DEVICE bool isnormal(float);
SONDE_DEVICE bool signbit(double);
SONDE_DEVICE bool signbit(float);
SONDE_DEVICE int fpclassify(double);
SONDE_DEVICE int fpclassify(float);

namespace std {
#define SONDE_USING(name) using ::name;
SONDE_UNARY_FUNCTIONS(SONDE_USING)
SONDE_BINARY_FUNCTIONS(SONDE_USING)
#undef SONDE_USING
#define SONDE_USING(name) using ::name##f;
SONDE_UNARY_FUNCTIONS(SONDE_USING)
SONDE_BINARY_FUNCTIONS(SONDE_USING)
#undef SONDE_USING
using ::abs;
using ::fma;
using ::fmaf;
using ::fpclassify;
using ::frexp;
using ::frexpf;
using ::ilogb;
using ::ilogbf;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::isnormal;
using ::labs;
using ::ldexp;
using ::ldexpf;
using ::llabs;
using ::llrint;
using ::llrintf;
using ::llround;
using ::llroundf;
using ::lrint;
using ::lrintf;
using ::lround;
using ::lroundf;
using ::modf;
using ::modff;
using ::nan;
using ::nanf;
using ::remquo;
using ::remquof;
using ::scalbln;
using ::scalblnf;
using ::scalbn;
using ::scalbnf;
using ::signbit;
}  // namespace std

/* Device memory functions have to be known before <new> defines the operators. */
#define __SONDE_SIZE_T __SIZE_TYPE__
extern "C" __device__ void *malloc(__SONDE_SIZE_T);
extern "C" __device__ void free(void *);

#endif /* clang compiling CUDA */
#endif /* SONDE_SOFTGPU_DEVICE_PRELUDE_H_ */
