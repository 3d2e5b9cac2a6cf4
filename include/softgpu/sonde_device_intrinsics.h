/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer intrinsics, arithmetic with a given rounding, conversions, bit casts
 * and the packed (SIMD-in-a-word) integer functions.
 */
#ifndef SONDE_SOFTGPU_DEVICE_INTRINSICS_H_
#define SONDE_SOFTGPU_DEVICE_INTRINSICS_H_

/* -------------------------------------------------------------- integers -- */

SONDE_DEVICE int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
SONDE_DEVICE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
SONDE_DEVICE int __ffs(int x) { return x == 0 ? 0 : __builtin_ctz((unsigned)x) + 1; }
SONDE_DEVICE int __ffsll(long long x) { return x == 0 ? 0 : __builtin_ctzll((unsigned long long)x) + 1; }
SONDE_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
SONDE_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SONDE_DEVICE unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
SONDE_DEVICE unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
SONDE_DEVICE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned result;
  // Bit 3 of a selector means sign replication to prmt; here it is ignored.
  __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(y), "r"(selector & 0x7777u));
  return result;
}
/* The n-th set bit (from 1 up, or down for negative n) counted from `base`. */
SONDE_DEVICE unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (base > 31) return 0xffffffffu;
  if (offset == 0) return mask >> base & 1 ? base : 0xffffffffu;
  int step = offset > 0 ? 1 : -1, left = offset > 0 ? offset : -offset;
  for (int i = (int)base; i >= 0 && i < 32; i += step)
    if (mask >> i & 1 && --left == 0) return (unsigned)i;
  return 0xffffffffu;
}
SONDE_DEVICE int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
SONDE_DEVICE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
SONDE_DEVICE long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
SONDE_DEVICE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
SONDE_DEVICE int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
SONDE_DEVICE unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
SONDE_DEVICE unsigned __sad(int a, int b, unsigned c) {
  return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
SONDE_DEVICE unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
SONDE_DEVICE int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
SONDE_DEVICE int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
SONDE_DEVICE unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
SONDE_DEVICE unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
SONDE_DEVICE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  shift &= 31;
  return shift ? high << shift | low >> (32 - shift) : high;
}
SONDE_DEVICE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
SONDE_DEVICE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  shift &= 31;
  return shift ? low >> shift | high << (32 - shift) : low;
}
SONDE_DEVICE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 610
#define SONDE_DOT(name, instruction, R, A, B)                                                     \
  SONDE_DEVICE R name(A a, B b, R c) {                                                            \
    R result;                                                                                     \
    __asm__(instruction " %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));              \
    return result;                                                                                \
  }
SONDE_DOT(__dp4a, "dp4a.s32.s32", int, int, int)
SONDE_DOT(__dp4a, "dp4a.u32.u32", unsigned, unsigned, unsigned)
SONDE_DOT(__dp2a_lo, "dp2a.lo.s32.s32", int, int, int)
SONDE_DOT(__dp2a_lo, "dp2a.lo.u32.u32", unsigned, unsigned, unsigned)
SONDE_DOT(__dp2a_hi, "dp2a.hi.s32.s32", int, int, int)
SONDE_DOT(__dp2a_hi, "dp2a.hi.u32.u32", unsigned, unsigned, unsigned)
#undef SONDE_DOT
#endif

/* ----------------------------------------------------- rounding variants -- */

/* PTX calls the directed modes rp and rm; for a conversion to an integer it
 * adds an i. */
#define SONDE_MODE_rn "rn"
#define SONDE_MODE_rz "rz"
#define SONDE_MODE_ru "rp"
#define SONDE_MODE_rd "rm"
#define SONDE_ALL_MODES(X, ...) X(__VA_ARGS__, rn) X(__VA_ARGS__, rz) X(__VA_ARGS__, ru) X(__VA_ARGS__, rd)
#define SONDE_BINARY_ASM(name, operation, T, ptx, reg, mode)                                                  \
  SONDE_DEVICE T name##_##mode(T a, T b) {                                                                    \
    T result;                                                                                                 \
    __asm__(operation "." SONDE_MODE_##mode "." ptx " %0, %1, %2;" : "=" reg(result) : reg(a), reg(b));       \
    return result;                                                                                            \
  }
#define SONDE_UNARY_ASM(name, operation, T, ptx, reg, mode)                                                   \
  SONDE_DEVICE T name##_##mode(T a) {                                                                         \
    T result;                                                                                                 \
    __asm__(operation "." SONDE_MODE_##mode "." ptx " %0, %1;" : "=" reg(result) : reg(a));                   \
    return result;                                                                                            \
  }
#define SONDE_FMA_ASM(name, operation, T, ptx, reg, mode)                                                     \
  SONDE_DEVICE T name##_##mode(T a, T b, T c) {                                                               \
    T result;                                                                                                 \
    __asm__(operation "." SONDE_MODE_##mode "." ptx " %0, %1, %2, %3;"                                        \
            : "=" reg(result) : reg(a), reg(b), reg(c));                                                      \
    return result;                                                                                            \
  }
SONDE_ALL_MODES(SONDE_BINARY_ASM, __fadd, "add", float, "f32", "f")
SONDE_ALL_MODES(SONDE_BINARY_ASM, __fsub, "sub", float, "f32", "f")
SONDE_ALL_MODES(SONDE_BINARY_ASM, __fmul, "mul", float, "f32", "f")
SONDE_ALL_MODES(SONDE_BINARY_ASM, __fdiv, "div", float, "f32", "f")
SONDE_ALL_MODES(SONDE_UNARY_ASM, __frcp, "rcp", float, "f32", "f")
SONDE_ALL_MODES(SONDE_UNARY_ASM, __fsqrt, "sqrt", float, "f32", "f")
SONDE_ALL_MODES(SONDE_FMA_ASM, __fmaf, "fma", float, "f32", "f")
SONDE_ALL_MODES(SONDE_BINARY_ASM, __dadd, "add", double, "f64", "d")
SONDE_ALL_MODES(SONDE_BINARY_ASM, __dsub, "sub", double, "f64", "d")
SONDE_ALL_MODES(SONDE_BINARY_ASM, __dmul, "mul", double, "f64", "d")
SONDE_ALL_MODES(SONDE_BINARY_ASM, __ddiv, "div", double, "f64", "d")
SONDE_ALL_MODES(SONDE_UNARY_ASM, __drcp, "rcp", double, "f64", "d")
SONDE_ALL_MODES(SONDE_UNARY_ASM, __dsqrt, "sqrt", double, "f64", "d")
SONDE_ALL_MODES(SONDE_FMA_ASM, __fma, "fma", double, "f64", "d")
SONDE_DEVICE float __frsqrt_rn(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }

/* ---------------------------------------------------------- conversions -- */

#define SONDE_CONVERT(name, T, types, to, From, from, mode, integral)                                         \
  SONDE_DEVICE T name##_##mode(From x) {                                                                      \
    T result;                                                                                                 \
    __asm__("cvt." SONDE_MODE_##mode integral "." types " %0, %1;" : "=" to(result) : from(x));               \
    return result;                                                                                            \
  }
#define SONDE_CONVERT_ALL(name, T, types, to, From, from, integral)                                           \
  SONDE_CONVERT(name, T, types, to, From, from, rn, integral)                                                 \
  SONDE_CONVERT(name, T, types, to, From, from, rz, integral)                                                 \
  SONDE_CONVERT(name, T, types, to, From, from, ru, integral)                                                 \
  SONDE_CONVERT(name, T, types, to, From, from, rd, integral)
SONDE_CONVERT_ALL(__float2int, int, "s32.f32", "r", float, "f", "i")
SONDE_CONVERT_ALL(__float2uint, unsigned, "u32.f32", "r", float, "f", "i")
SONDE_CONVERT_ALL(__float2ll, long long, "s64.f32", "l", float, "f", "i")
SONDE_CONVERT_ALL(__float2ull, unsigned long long, "u64.f32", "l", float, "f", "i")
SONDE_CONVERT_ALL(__double2int, int, "s32.f64", "r", double, "d", "i")
SONDE_CONVERT_ALL(__double2uint, unsigned, "u32.f64", "r", double, "d", "i")
SONDE_CONVERT_ALL(__double2ll, long long, "s64.f64", "l", double, "d", "i")
SONDE_CONVERT_ALL(__double2ull, unsigned long long, "u64.f64", "l", double, "d", "i")
SONDE_CONVERT_ALL(__int2float, float, "f32.s32", "f", int, "r", "")
SONDE_CONVERT_ALL(__uint2float, float, "f32.u32", "f", unsigned, "r", "")
SONDE_CONVERT_ALL(__ll2float, float, "f32.s64", "f", long long, "l", "")
SONDE_CONVERT_ALL(__ull2float, float, "f32.u64", "f", unsigned long long, "l", "")
SONDE_CONVERT_ALL(__ll2double, double, "f64.s64", "d", long long, "l", "")
SONDE_CONVERT_ALL(__ull2double, double, "f64.u64", "d", unsigned long long, "l", "")
SONDE_CONVERT_ALL(__double2float, float, "f32.f64", "f", double, "d", "")
SONDE_DEVICE double __int2double_rn(int x) { return x; }
SONDE_DEVICE double __uint2double_rn(unsigned x) { return x; }
#undef SONDE_CONVERT_ALL
#undef SONDE_CONVERT
#undef SONDE_BINARY_ASM
#undef SONDE_UNARY_ASM
#undef SONDE_FMA_ASM
#undef SONDE_ALL_MODES

SONDE_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
SONDE_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
SONDE_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
SONDE_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
SONDE_DEVICE long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
SONDE_DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
SONDE_DEVICE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
SONDE_DEVICE int __double2loint(double x) { return (int)__double_as_longlong(x); }
SONDE_DEVICE double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)((unsigned long long)(unsigned)high << 32 | (unsigned)low));
}

/* --------------------------------------------------- packed bytes and halves -- */

/* Lane by lane; the PTX video instructions are no faster on current devices. */
#define SONDE_PACKED(name, bits, Lane, expression)                                                            \
  SONDE_DEVICE unsigned name(unsigned x, unsigned y) {                                                        \
    unsigned result = 0;                                                                                      \
    for (int i = 0; i < 32; i += bits) {                                                                      \
      int a = (Lane)(x >> i), b = (Lane)(y >> i);                                                             \
      (void)b;                                                                                                \
      result |= ((unsigned)(expression) & ((1u << bits) - 1)) << i;                                           \
    }                                                                                                         \
    return result;                                                                                            \
  }
#define SONDE_PACKED_WIDTH(bits, lanes, S, U)                                                                 \
  SONDE_PACKED(__vadd##lanes, bits, U, a + b)                                                                 \
  SONDE_PACKED(__vsub##lanes, bits, U, a - b)                                                                 \
  SONDE_PACKED(__vaddss##lanes, bits, S, a + b > (1 << (bits - 1)) - 1 ? (1 << (bits - 1)) - 1                \
                                         : a + b < -(1 << (bits - 1)) ? -(1 << (bits - 1)) : a + b)           \
  SONDE_PACKED(__vaddus##lanes, bits, U, a + b > (1 << bits) - 1 ? (1 << bits) - 1 : a + b)                   \
  SONDE_PACKED(__vsubss##lanes, bits, S, a - b > (1 << (bits - 1)) - 1 ? (1 << (bits - 1)) - 1                \
                                         : a - b < -(1 << (bits - 1)) ? -(1 << (bits - 1)) : a - b)           \
  SONDE_PACKED(__vsubus##lanes, bits, U, a < b ? 0 : a - b)                                                   \
  SONDE_PACKED(__vavgs##lanes, bits, S, (a + b + (a + b >= 0)) >> 1)                                          \
  SONDE_PACKED(__vavgu##lanes, bits, U, (a + b + 1) >> 1)                                                     \
  SONDE_PACKED(__vhaddu##lanes, bits, U, (a + b) >> 1)                                                        \
  SONDE_PACKED(__vabsdiffs##lanes, bits, S, a > b ? a - b : b - a)                                            \
  SONDE_PACKED(__vabsdiffu##lanes, bits, U, a > b ? a - b : b - a)                                            \
  SONDE_PACKED(__vmaxs##lanes, bits, S, a > b ? a : b)                                                        \
  SONDE_PACKED(__vmaxu##lanes, bits, U, a > b ? a : b)                                                        \
  SONDE_PACKED(__vmins##lanes, bits, S, a < b ? a : b)                                                        \
  SONDE_PACKED(__vminu##lanes, bits, U, a < b ? a : b)                                                        \
  SONDE_PACKED(__vcmpeq##lanes, bits, U, a == b ? -1 : 0)                                                     \
  SONDE_PACKED(__vcmpne##lanes, bits, U, a != b ? -1 : 0)                                                     \
  SONDE_PACKED(__vcmpges##lanes, bits, S, a >= b ? -1 : 0)                                                    \
  SONDE_PACKED(__vcmpgeu##lanes, bits, U, a >= b ? -1 : 0)                                                    \
  SONDE_PACKED(__vcmpgts##lanes, bits, S, a > b ? -1 : 0)                                                     \
  SONDE_PACKED(__vcmpgtu##lanes, bits, U, a > b ? -1 : 0)                                                     \
  SONDE_PACKED(__vcmples##lanes, bits, S, a <= b ? -1 : 0)                                                    \
  SONDE_PACKED(__vcmpleu##lanes, bits, U, a <= b ? -1 : 0)                                                    \
  SONDE_PACKED(__vcmplts##lanes, bits, S, a < b ? -1 : 0)                                                     \
  SONDE_PACKED(__vcmpltu##lanes, bits, U, a < b ? -1 : 0)                                                     \
  SONDE_PACKED(__vseteq##lanes, bits, U, a == b)                                                              \
  SONDE_PACKED(__vsetne##lanes, bits, U, a != b)                                                              \
  SONDE_PACKED(__vsetges##lanes, bits, S, a >= b)                                                             \
  SONDE_PACKED(__vsetgeu##lanes, bits, U, a >= b)                                                             \
  SONDE_PACKED(__vsetgts##lanes, bits, S, a > b)                                                              \
  SONDE_PACKED(__vsetgtu##lanes, bits, U, a > b)                                                              \
  SONDE_PACKED(__vsetles##lanes, bits, S, a <= b)                                                             \
  SONDE_PACKED(__vsetleu##lanes, bits, U, a <= b)                                                             \
  SONDE_PACKED(__vsetlts##lanes, bits, S, a < b)                                                              \
  SONDE_PACKED(__vsetltu##lanes, bits, U, a < b)                                                              \
  SONDE_PACKED(sonde_vabs##lanes, bits, S, a < 0 ? -a : a)                                                    \
  SONDE_PACKED(sonde_vabsss##lanes, bits, S, a == -(1 << (bits - 1)) ? (1 << (bits - 1)) - 1 : a < 0 ? -a : a) \
  SONDE_PACKED(sonde_vneg##lanes, bits, S, -a)                                                                \
  SONDE_PACKED(sonde_vnegss##lanes, bits, S, a == -(1 << (bits - 1)) ? (1 << (bits - 1)) - 1 : -a)            \
  SONDE_DEVICE unsigned __vabs##lanes(unsigned x) { return sonde_vabs##lanes(x, 0); }                         \
  SONDE_DEVICE unsigned __vabsss##lanes(unsigned x) { return sonde_vabsss##lanes(x, 0); }                     \
  SONDE_DEVICE unsigned __vneg##lanes(unsigned x) { return sonde_vneg##lanes(x, 0); }                         \
  SONDE_DEVICE unsigned __vnegss##lanes(unsigned x) { return sonde_vnegss##lanes(x, 0); }                     \
  SONDE_DEVICE unsigned __vsads##lanes(unsigned x, unsigned y) {                                              \
    unsigned total = 0;                                                                                       \
    for (int i = 0; i < 32; i += bits) {                                                                      \
      int a = (S)(x >> i), b = (S)(y >> i);                                                                   \
      total += a > b ? a - b : b - a;                                                                         \
    }                                                                                                         \
    return total;                                                                                             \
  }                                                                                                           \
  SONDE_DEVICE unsigned __vsadu##lanes(unsigned x, unsigned y) {                                              \
    unsigned total = 0;                                                                                       \
    for (int i = 0; i < 32; i += bits) {                                                                      \
      int a = (U)(x >> i), b = (U)(y >> i);                                                                   \
      total += a > b ? a - b : b - a;                                                                         \
    }                                                                                                         \
    return total;                                                                                             \
  }
SONDE_PACKED_WIDTH(8, 4, signed char, unsigned char)
SONDE_PACKED_WIDTH(16, 2, short, unsigned short)
#undef SONDE_PACKED_WIDTH
#undef SONDE_PACKED

#endif /* SONDE_SOFTGPU_DEVICE_INTRINSICS_H_ */
