/* SPDX-License-Identifier: Apache-2.0
 *
 * Complex numbers as float2 and double2: x is the real part, y the imaginary.
 * Products and quotients take the infinities and NaNs that their formulas
 * give; quotients and magnitudes are scaled, so that they overflow only when
 * the result does.
 */
#ifndef CU_COMPLEX_H_
#define CU_COMPLEX_H_

#include <math.h>

#include "vector_functions.h"
#include "vector_types.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

#define SONDE_COMPLEX_FUNCTION static __inline__ __host__ __device__

/* One precision: type, element type, and the names of its functions. */
#define SONDE_COMPLEX(T, R, make, real, imag, conj, add, sub, mul, div, abs, fma, fabsR, hypotR)        \
  SONDE_COMPLEX_FUNCTION R real(T a) { return a.x; }                                                    \
  SONDE_COMPLEX_FUNCTION R imag(T a) { return a.y; }                                                    \
  SONDE_COMPLEX_FUNCTION T make(R re, R im) {                                                           \
    T result;                                                                                           \
    result.x = re;                                                                                      \
    result.y = im;                                                                                      \
    return result;                                                                                      \
  }                                                                                                     \
  SONDE_COMPLEX_FUNCTION T conj(T a) { return make(a.x, -a.y); }                                        \
  SONDE_COMPLEX_FUNCTION T add(T a, T b) { return make(a.x + b.x, a.y + b.y); }                         \
  SONDE_COMPLEX_FUNCTION T sub(T a, T b) { return make(a.x - b.x, a.y - b.y); }                         \
  SONDE_COMPLEX_FUNCTION T mul(T a, T b) { return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); } \
  /* Divides by the larger part of b first. */                                                          \
  SONDE_COMPLEX_FUNCTION T div(T a, T b) {                                                              \
    if (fabsR(b.x) >= fabsR(b.y)) {                                                                     \
      const R ratio = b.y / b.x, whole = b.x + b.y * ratio;                                             \
      return make((a.x + a.y * ratio) / whole, (a.y - a.x * ratio) / whole);                            \
    } else {                                                                                            \
      const R ratio = b.x / b.y, whole = b.x * ratio + b.y;                                             \
      return make((a.x * ratio + a.y) / whole, (a.y * ratio - a.x) / whole);                            \
    }                                                                                                   \
  }                                                                                                     \
  SONDE_COMPLEX_FUNCTION R abs(T a) { return hypotR(a.x, a.y); }                                        \
  /* a * b + c */                                                                                       \
  SONDE_COMPLEX_FUNCTION T fma(T a, T b, T c) {                                                         \
    return make((a.x * b.x + c.x) - a.y * b.y, (a.x * b.y + c.y) + a.y * b.x);                          \
  }
SONDE_COMPLEX(cuFloatComplex, float, make_cuFloatComplex, cuCrealf, cuCimagf, cuConjf, cuCaddf, cuCsubf, cuCmulf,
              cuCdivf, cuCabsf, cuCfmaf, fabsf, hypotf)
SONDE_COMPLEX(cuDoubleComplex, double, make_cuDoubleComplex, cuCreal, cuCimag, cuConj, cuCadd, cuCsub, cuCmul, cuCdiv,
              cuCabs, cuCfma, fabs, hypot)
#undef SONDE_COMPLEX

SONDE_COMPLEX_FUNCTION cuComplex make_cuComplex(float re, float im) { return make_cuFloatComplex(re, im); }
SONDE_COMPLEX_FUNCTION cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex c) {
  return make_cuDoubleComplex((double)c.x, (double)c.y);
}
SONDE_COMPLEX_FUNCTION cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex c) {
  return make_cuFloatComplex((float)c.x, (float)c.y);
}

#undef SONDE_COMPLEX_FUNCTION

#endif /* CU_COMPLEX_H_ */
