/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of a whole warp (nvcuda::wmma) for clang: each function is
 * one PTX instruction. Types: half, __nv_bfloat16, tf32, double, signed and
 * unsigned char; not the experimental ones of 4 and 1 bits.
 */
#ifndef SONDE_MMA_H_
#define SONDE_MMA_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

#if defined(__cplusplus) && defined(__CUDA__) && defined(__clang__)

namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}

/* Rounds to the 10 bits of mantissa that the product uses. */
__device__ __inline__ float __float_to_tf32(float value) {
  unsigned bits;
  __asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return __uint_as_float(bits);
}

namespace sonde {

template <typename T>
struct Storage {
  using type = T;
};
template <>
struct Storage<precision::tf32> {
  using type = float;
};

/* Pairs of small elements travel as one register. */
typedef unsigned __attribute__((__may_alias__)) Word;

/* One lane's part of a matrix: registers as PTX counts them, or elements. */
template <typename T, int Elements>
struct Part {
  using element_type = typename Storage<T>::type;
  using storage_element_type = element_type;
  static constexpr int num_elements = Elements;
  static constexpr int num_storage_elements = Elements;
  alignas(8) element_type x[Elements];
};

}  // namespace sonde

template <typename Use, int M, int N, int K, typename T, typename Layout = void>
class fragment;

/* Which combinations exist, and with how many elements in a lane. */
#define SONDE_WMMA_FRAGMENT(use, m, n, k, type, elements)                \
  template <typename Layout>                                             \
  class fragment<use, m, n, k, type, Layout> : public sonde::Part<type, elements> {};
#define SONDE_WMMA_SHAPES(X) X(16, 16, 16) X(32, 8, 16) X(8, 32, 16)
#define SONDE_WMMA_COMMON(m, n, k)                            \
  SONDE_WMMA_FRAGMENT(matrix_a, m, n, k, __half, 16)          \
  SONDE_WMMA_FRAGMENT(matrix_b, m, n, k, __half, 16)          \
  SONDE_WMMA_FRAGMENT(accumulator, m, n, k, __half, 8)        \
  SONDE_WMMA_FRAGMENT(accumulator, m, n, k, float, 8)         \
  SONDE_WMMA_FRAGMENT(accumulator, m, n, k, int, 8)
SONDE_WMMA_SHAPES(SONDE_WMMA_COMMON)
#define SONDE_WMMA_BY_SIZE(m, n, k, a, b)                              \
  SONDE_WMMA_FRAGMENT(matrix_a, m, n, k, __nv_bfloat16, a)             \
  SONDE_WMMA_FRAGMENT(matrix_b, m, n, k, __nv_bfloat16, b)             \
  SONDE_WMMA_FRAGMENT(matrix_a, m, n, k, signed char, a)               \
  SONDE_WMMA_FRAGMENT(matrix_b, m, n, k, signed char, b)               \
  SONDE_WMMA_FRAGMENT(matrix_a, m, n, k, unsigned char, a)             \
  SONDE_WMMA_FRAGMENT(matrix_b, m, n, k, unsigned char, b)
SONDE_WMMA_BY_SIZE(16, 16, 16, 8, 8)
SONDE_WMMA_BY_SIZE(32, 8, 16, 16, 4)
SONDE_WMMA_BY_SIZE(8, 32, 16, 4, 16)
SONDE_WMMA_FRAGMENT(matrix_a, 16, 16, 8, precision::tf32, 4)
SONDE_WMMA_FRAGMENT(matrix_b, 16, 16, 8, precision::tf32, 4)
SONDE_WMMA_FRAGMENT(accumulator, 16, 16, 8, float, 8)
SONDE_WMMA_FRAGMENT(matrix_a, 8, 8, 4, double, 1)
SONDE_WMMA_FRAGMENT(matrix_b, 8, 8, 4, double, 1)
SONDE_WMMA_FRAGMENT(accumulator, 8, 8, 4, double, 2)
#undef SONDE_WMMA_FRAGMENT
#undef SONDE_WMMA_COMMON
#undef SONDE_WMMA_BY_SIZE

template <typename Use, int M, int N, int K, typename T, typename Layout, typename Value>
__device__ __inline__ void fill_fragment(fragment<Use, M, N, K, T, Layout> &f, const Value &value) {
  for (int i = 0; i < f.num_elements; ++i) f.x[i] = value;
}

/* Operand lists for 1, 2, 4 and 8 registers. */
#define SONDE_OUT_1(c, w) c((w)[0])
#define SONDE_OUT_2(c, w) c((w)[0]), c((w)[1])
#define SONDE_OUT_4(c, w) SONDE_OUT_2(c, w), c((w)[2]), c((w)[3])
#define SONDE_OUT_8(c, w) SONDE_OUT_4(c, w), c((w)[4]), c((w)[5]), c((w)[6]), c((w)[7])
#define SONDE_TEXT_1 "{%0}, [%1], %2;"
#define SONDE_TEXT_2 "{%0, %1}, [%2], %3;"
#define SONDE_TEXT_4 "{%0, %1, %2, %3}, [%4], %5;"
#define SONDE_TEXT_8 "{%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
#define SONDE_STORE_2 "[%0], {%2, %3}, %1;"
#define SONDE_STORE_4 "[%0], {%2, %3, %4, %5}, %1;"
#define SONDE_STORE_8 "[%0], {%2, %3, %4, %5, %6, %7, %8, %9}, %1;"

#define SONDE_WMMA_LOAD_AS(use, letter, m, n, k, type, pointee, layout, layoutName, ptx, count, word, constraint)      \
  __device__ __inline__ void load_matrix_sync(fragment<use, m, n, k, type, layout> &f, const pointee *p, unsigned ld) { \
    word *w = (word *)f.x;                                                                                             \
    __asm__ volatile("wmma.load." letter ".sync.aligned." layoutName ".m" #m "n" #n "k" #k "." ptx " " SONDE_TEXT_##count \
                     : SONDE_OUT_##count(constraint, w)                                                                \
                     : "l"(p), "r"(ld)                                                                                 \
                     : "memory");                                                                                      \
  }
#define SONDE_R(x) "=r"(x)
#define SONDE_D(x) "=d"(x)
#define SONDE_F(x) "=f"(x)
#define SONDE_RI(x) "r"(x)
#define SONDE_DI(x) "d"(x)
#define SONDE_FI(x) "f"(x)
#define SONDE_WMMA_LOAD(use, letter, m, n, k, type, pointee, ptx, count, word, constraint)                        \
  SONDE_WMMA_LOAD_AS(use, letter, m, n, k, type, pointee, row_major, "row", ptx, count, word, constraint)         \
  SONDE_WMMA_LOAD_AS(use, letter, m, n, k, type, pointee, col_major, "col", ptx, count, word, constraint)
#define SONDE_WMMA_LOADS(m, n, k, type, pointee, ptx, a, b)                             \
  SONDE_WMMA_LOAD(matrix_a, "a", m, n, k, type, pointee, ptx, a, sonde::Word, SONDE_R)     \
  SONDE_WMMA_LOAD(matrix_b, "b", m, n, k, type, pointee, ptx, b, sonde::Word, SONDE_R)
#define SONDE_WMMA_LOADS_16(m, n, k) SONDE_WMMA_LOADS(m, n, k, __half, __half, "f16", 8, 8)
SONDE_WMMA_SHAPES(SONDE_WMMA_LOADS_16)
#define SONDE_WMMA_LOADS_BY_SIZE(type, ptx, a, b, c, d, e, f)         \
  SONDE_WMMA_LOADS(16, 16, 16, type, type, ptx, a, b)                 \
  SONDE_WMMA_LOADS(32, 8, 16, type, type, ptx, c, d)                  \
  SONDE_WMMA_LOADS(8, 32, 16, type, type, ptx, e, f)
SONDE_WMMA_LOADS_BY_SIZE(signed char, "s8", 2, 2, 4, 1, 1, 4)
SONDE_WMMA_LOADS_BY_SIZE(unsigned char, "u8", 2, 2, 4, 1, 1, 4)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
SONDE_WMMA_LOADS_BY_SIZE(__nv_bfloat16, "bf16", 4, 4, 8, 2, 2, 8)
SONDE_WMMA_LOADS(16, 16, 8, precision::tf32, float, "tf32", 4, 4)
SONDE_WMMA_LOAD(matrix_a, "a", 8, 8, 4, double, double, "f64", 1, double, SONDE_D)
SONDE_WMMA_LOAD(matrix_b, "b", 8, 8, 4, double, double, "f64", 1, double, SONDE_D)
#endif

#define SONDE_WMMA_ACCUMULATOR_AS(m, n, k, type, layoutName, name, ptx, count, word, out, in)                        \
  __device__ __inline__ void sonde_load_##name(fragment<accumulator, m, n, k, type> &f, const type *p, unsigned ld) { \
    word *w = (word *)f.x;                                                                                           \
    __asm__ volatile("wmma.load.c.sync.aligned." layoutName ".m" #m "n" #n "k" #k "." ptx " " SONDE_TEXT_##count     \
                     : SONDE_OUT_##count(out, w)                                                                     \
                     : "l"(p), "r"(ld)                                                                               \
                     : "memory");                                                                                    \
  }                                                                                                                  \
  __device__ __inline__ void sonde_store_##name(type *p, const fragment<accumulator, m, n, k, type> &f, unsigned ld) { \
    const word *w = (const word *)f.x;                                                                               \
    __asm__ volatile("wmma.store.d.sync.aligned." layoutName ".m" #m "n" #n "k" #k "." ptx " " SONDE_STORE_##count   \
                     :                                                                                               \
                     : "l"(p), "r"(ld), SONDE_OUT_##count(in, w)                                                     \
                     : "memory");                                                                                    \
  }
#define SONDE_WMMA_ACCUMULATOR(m, n, k, type, ptx, count, word, out, in)                                             \
  SONDE_WMMA_ACCUMULATOR_AS(m, n, k, type, "row", row, ptx, count, word, out, in)                                    \
  SONDE_WMMA_ACCUMULATOR_AS(m, n, k, type, "col", col, ptx, count, word, out, in)                                    \
  __device__ __inline__ void load_matrix_sync(fragment<accumulator, m, n, k, type> &f, const type *p, unsigned ld,   \
                                              layout_t layout) {                                                     \
    if (layout == mem_row_major)                                                                                     \
      sonde_load_row(f, p, ld);                                                                                      \
    else                                                                                                             \
      sonde_load_col(f, p, ld);                                                                                      \
  }                                                                                                                  \
  __device__ __inline__ void store_matrix_sync(type *p, const fragment<accumulator, m, n, k, type> &f, unsigned ld,  \
                                               layout_t layout) {                                                    \
    if (layout == mem_row_major)                                                                                     \
      sonde_store_row(p, f, ld);                                                                                     \
    else                                                                                                             \
      sonde_store_col(p, f, ld);                                                                                     \
  }
#define SONDE_WMMA_ACCUMULATORS(m, n, k)                                              \
  SONDE_WMMA_ACCUMULATOR(m, n, k, __half, "f16", 4, sonde::Word, SONDE_R, SONDE_RI)      \
  SONDE_WMMA_ACCUMULATOR(m, n, k, float, "f32", 8, float, SONDE_F, SONDE_FI)          \
  SONDE_WMMA_ACCUMULATOR(m, n, k, int, "s32", 8, int, SONDE_R, SONDE_RI)
SONDE_WMMA_SHAPES(SONDE_WMMA_ACCUMULATORS)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
SONDE_WMMA_ACCUMULATOR(16, 16, 8, float, "f32", 8, float, SONDE_F, SONDE_FI)
SONDE_WMMA_ACCUMULATOR(8, 8, 4, double, "f64", 2, double, SONDE_D, SONDE_DI)
#endif

/* The products: d = a * b + c. */
#define SONDE_LIST(...) __VA_ARGS__
#define SONDE_WMMA_MMA_AS(m, n, k, ta, tb, td, tc, la, lb, text, operands, wd, wc, wa, dOut, cIn, aIn, bIn)          \
  __device__ __inline__ void sonde_mma(fragment<accumulator, m, n, k, td> &fd, const fragment<matrix_a, m, n, k, ta, la> &fa, \
                                       const fragment<matrix_b, m, n, k, tb, lb> &fb,                                \
                                       const fragment<accumulator, m, n, k, tc> &fc) {                               \
    wd *d = (wd *)fd.x;                                                                                              \
    const wa *a = (const wa *)fa.x, *b = (const wa *)fb.x;                                                           \
    const wc *c = (const wc *)fc.x;                                                                                  \
    __asm__ volatile(text operands : dOut : aIn, bIn, cIn);                                                          \
  }
#define SONDE_WMMA_LAYOUTS(X, ...) \
  X(row_major, row_major, "row.row", __VA_ARGS__) X(row_major, col_major, "row.col", __VA_ARGS__) \
  X(col_major, row_major, "col.row", __VA_ARGS__) X(col_major, col_major, "col.col", __VA_ARGS__)
/* Register lists by the numbers of d, a, b and c. */
#define SONDE_OPERANDS_4884 "{%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15,%16,%17,%18,%19},{%20,%21,%22,%23};"
#define SONDE_OPERANDS_4888 \
  "{%0,%1,%2,%3},{%4,%5,%6,%7,%8,%9,%10,%11},{%12,%13,%14,%15,%16,%17,%18,%19},{%20,%21,%22,%23,%24,%25,%26,%27};"
#define SONDE_OPERANDS_8884 \
  "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19,%20,%21,%22,%23},{%24,%25,%26,%27};"
#define SONDE_OPERANDS_8888                                                                                   \
  "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17,%18,%19,%20,%21,%22,%23},"               \
  "{%24,%25,%26,%27,%28,%29,%30,%31};"
#define SONDE_OPERANDS_8448 \
  "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9,%10,%11},{%12,%13,%14,%15},{%16,%17,%18,%19,%20,%21,%22,%23};"
#define SONDE_OPERANDS_8828 \
  "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9,%10,%11,%12,%13,%14,%15},{%16,%17},{%18,%19,%20,%21,%22,%23,%24,%25};"
#define SONDE_OPERANDS_8288 \
  "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13,%14,%15,%16,%17},{%18,%19,%20,%21,%22,%23,%24,%25};"
#define SONDE_OPERANDS_8228 "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9},{%10,%11},{%12,%13,%14,%15,%16,%17,%18,%19};"
#define SONDE_OPERANDS_8418 "{%0,%1,%2,%3,%4,%5,%6,%7},{%8,%9,%10,%11},{%12},{%13,%14,%15,%16,%17,%18,%19,%20};"
#define SONDE_OPERANDS_8148 "{%0,%1,%2,%3,%4,%5,%6,%7},{%8},{%9,%10,%11,%12},{%13,%14,%15,%16,%17,%18,%19,%20};"
#define SONDE_OPERANDS_2112 "{%0,%1},{%2},{%3},{%4,%5};"

#define SONDE_MMA_HALF(la, lb, layouts, m, n, k, td, tc, types, nd, nc, operands, wd, wc, oc, ic)                    \
  SONDE_WMMA_MMA_AS(m, n, k, __half, __half, td, tc, la, lb,                                                         \
                    "wmma.mma.sync.aligned." layouts ".m" #m "n" #n "k" #k "." types " ", operands, wd, wc, sonde::Word, \
                    SONDE_LIST(SONDE_OUT_##nd(oc, d)), SONDE_LIST(SONDE_OUT_##nc(ic, c)),                            \
                    SONDE_LIST(SONDE_OUT_8(SONDE_RI, a)), SONDE_LIST(SONDE_OUT_8(SONDE_RI, b)))
#define SONDE_MMA_HALVES(m, n, k)                                                                                    \
  SONDE_WMMA_LAYOUTS(SONDE_MMA_HALF, m, n, k, __half, __half, "f16.f16", 4, 4, SONDE_OPERANDS_4884, sonde::Word, sonde::Word, SONDE_R, SONDE_RI) \
  SONDE_WMMA_LAYOUTS(SONDE_MMA_HALF, m, n, k, float, float, "f32.f32", 8, 8, SONDE_OPERANDS_8888, float, float, SONDE_F, SONDE_FI) \
  SONDE_WMMA_LAYOUTS(SONDE_MMA_HALF, m, n, k, float, __half, "f32.f16", 8, 4, SONDE_OPERANDS_8884, float, sonde::Word, SONDE_F, SONDE_RI) \
  SONDE_WMMA_LAYOUTS(SONDE_MMA_HALF, m, n, k, __half, float, "f16.f32", 4, 8, SONDE_OPERANDS_4888, sonde::Word, float, SONDE_R, SONDE_FI)
SONDE_WMMA_SHAPES(SONDE_MMA_HALVES)
#define SONDE_MMA_OTHER(la, lb, layouts, m, n, k, t, td, types, na, nb, operands, wd, wa, oc, ic, ac)                \
  SONDE_WMMA_MMA_AS(m, n, k, t, t, td, td, la, lb,                                                                   \
                    "wmma.mma.sync.aligned." layouts ".m" #m "n" #n "k" #k "." types " ", operands, wd, wd, wa,      \
                    SONDE_LIST(SONDE_OUT_8(oc, d)), SONDE_LIST(SONDE_OUT_8(ic, c)), SONDE_LIST(SONDE_OUT_##na(ac, a)), \
                    SONDE_LIST(SONDE_OUT_##nb(ac, b)))
#define SONDE_MMA_BYTES(t, types)                                                                                    \
  SONDE_WMMA_LAYOUTS(SONDE_MMA_OTHER, 16, 16, 16, t, int, types, 2, 2, SONDE_OPERANDS_8228, int, sonde::Word, SONDE_R, SONDE_RI, SONDE_RI) \
  SONDE_WMMA_LAYOUTS(SONDE_MMA_OTHER, 32, 8, 16, t, int, types, 4, 1, SONDE_OPERANDS_8418, int, sonde::Word, SONDE_R, SONDE_RI, SONDE_RI) \
  SONDE_WMMA_LAYOUTS(SONDE_MMA_OTHER, 8, 32, 16, t, int, types, 1, 4, SONDE_OPERANDS_8148, int, sonde::Word, SONDE_R, SONDE_RI, SONDE_RI)
SONDE_MMA_BYTES(signed char, "s32.s8.s8.s32")
SONDE_MMA_BYTES(unsigned char, "s32.u8.u8.s32")
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
SONDE_WMMA_LAYOUTS(SONDE_MMA_OTHER, 16, 16, 16, __nv_bfloat16, float, "f32.bf16.bf16.f32", 4, 4, SONDE_OPERANDS_8448, float, sonde::Word, SONDE_F, SONDE_FI, SONDE_RI)
SONDE_WMMA_LAYOUTS(SONDE_MMA_OTHER, 32, 8, 16, __nv_bfloat16, float, "f32.bf16.bf16.f32", 8, 2, SONDE_OPERANDS_8828, float, sonde::Word, SONDE_F, SONDE_FI, SONDE_RI)
SONDE_WMMA_LAYOUTS(SONDE_MMA_OTHER, 8, 32, 16, __nv_bfloat16, float, "f32.bf16.bf16.f32", 2, 8, SONDE_OPERANDS_8288, float, sonde::Word, SONDE_F, SONDE_FI, SONDE_RI)
SONDE_WMMA_LAYOUTS(SONDE_MMA_OTHER, 16, 16, 8, precision::tf32, float, "f32.tf32.tf32.f32", 4, 4, SONDE_OPERANDS_8448, float, sonde::Word, SONDE_F, SONDE_FI, SONDE_RI)
#define SONDE_MMA_DOUBLE(la, lb, layouts, unused)                                                                     \
  SONDE_WMMA_MMA_AS(8, 8, 4, double, double, double, double, la, lb,                                                 \
                    "wmma.mma.sync.aligned." layouts ".m8n8k4.rn.f64.f64.f64.f64 ", SONDE_OPERANDS_2112, double, double, \
                    double, SONDE_LIST(SONDE_OUT_2(SONDE_D, d)), SONDE_LIST(SONDE_OUT_2(SONDE_DI, c)),               \
                    SONDE_LIST(SONDE_OUT_1(SONDE_DI, a)), SONDE_LIST(SONDE_OUT_1(SONDE_DI, b)))
SONDE_WMMA_LAYOUTS(SONDE_MMA_DOUBLE, 0)
#endif

/* Sums of integers wrap; there is no saturating form here. */
template <int M, int N, int K, typename TA, typename TB, typename TC, typename TD, typename LA, typename LB>
__device__ __inline__ void mma_sync(fragment<accumulator, M, N, K, TD> &d, const fragment<matrix_a, M, N, K, TA, LA> &a,
                                    const fragment<matrix_b, M, N, K, TB, LB> &b,
                                    const fragment<accumulator, M, N, K, TC> &c) {
  sonde_mma(d, a, b, c);
}

}  // namespace wmma
}  // namespace nvcuda

#undef SONDE_OUT_1
#undef SONDE_OUT_2
#undef SONDE_OUT_4
#undef SONDE_OUT_8
#undef SONDE_LIST
#undef SONDE_R
#undef SONDE_D
#undef SONDE_F
#undef SONDE_RI
#undef SONDE_DI
#undef SONDE_FI

#endif /* clang compiling CUDA */
#endif /* SONDE_MMA_H_ */
