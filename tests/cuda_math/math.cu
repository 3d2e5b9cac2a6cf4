// SPDX-License-Identifier: Apache-2.0
//
// CUDA's mathematical functions, one kernel each; test_cuda_math.cpp compares
// their results with the host's.
#define UNARY(name, type, expression)                                                   \
  extern "C" __global__ void name(const type* in, const type* in2, type* out, int n) { \
    const int i = blockIdx.x * blockDim.x + threadIdx.x;                                \
    if (i >= n) return;                                                                 \
    const type x = in[i], y = in2[i];                                                   \
    (void)y;                                                                            \
    out[i] = expression;                                                                \
  }

#define BOTH(name, f32, f64) UNARY(name##_f, float, f32) UNARY(name##_d, double, f64)

BOTH(k_sin, sinf(x), sin(x))
BOTH(k_cos, cosf(x), cos(x))
BOTH(k_tan, tanf(x), tan(x))
BOTH(k_asin, asinf(x * 0.01f), asin(x * 0.01))
BOTH(k_atan2, atan2f(x, y), atan2(x, y))
BOTH(k_exp, expf(x), exp(x))
BOTH(k_exp2, exp2f(x), exp2(x))
BOTH(k_expm1, expm1f(x), expm1(x))
BOTH(k_log, logf(fabsf(x)), log(fabs(x)))
BOTH(k_log1p, log1pf(fabsf(x)), log1p(fabs(x)))
BOTH(k_log10, log10f(fabsf(x)), log10(fabs(x)))
BOTH(k_pow, powf(fabsf(x), y), pow(fabs(x), y))
BOTH(k_sinh, sinhf(x), sinh(x))
BOTH(k_tanh, tanhf(x), tanh(x))
BOTH(k_erf, erff(x), erf(x))
BOTH(k_erfc, erfcf(x * 0.1f), erfc(x * 0.1))
BOTH(k_tgamma, tgammaf(x * 0.2f), tgamma(x * 0.2))
BOTH(k_cbrt, cbrtf(x), cbrt(x))
BOTH(k_hypot, hypotf(x, y), hypot(x, y))
BOTH(k_fmod, fmodf(x, y), fmod(x, y))
BOTH(k_remainder, remainderf(x, y), remainder(x, y))
BOTH(k_rint, rintf(x), rint(x))
BOTH(k_round, roundf(x), round(x))
BOTH(k_floor, floorf(x), floor(x))
BOTH(k_trunc, truncf(x), trunc(x))
BOTH(k_nextafter, nextafterf(x, y), nextafter(x, y))
BOTH(k_ldexp, ldexpf(x, 5), ldexp(x, 5))
BOTH(k_fdim, fdimf(x, y), fdim(x, y))
BOTH(k_fma, fmaf(x, y, x), fma(x, y, x))
BOTH(k_div, x / y, x / y)
BOTH(k_sqrt, sqrtf(fabsf(x)), sqrt(fabs(x)))
