/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomic functions: device scope, and the _block and _system forms. All are
 * relaxed, as CUDA defines them.
 */
#ifndef SONDE_SOFTGPU_DEVICE_ATOMICS_H_
#define SONDE_SOFTGPU_DEVICE_ATOMICS_H_

/* Builtins rather than assembly, so that clang finds out which memory a
 * pointer is in and uses the atomics of that memory. */
#define SONDE_ATOMIC_ALL(SONDE_SCOPED, suffix, scope)                                                              \
  SONDE_SCOPED(atomicAdd##suffix, int, int, scope##add_gen_i)                                                      \
  SONDE_SCOPED(atomicAdd##suffix, unsigned, int, scope##add_gen_i)                                                 \
  SONDE_SCOPED(atomicAdd##suffix, unsigned long long, long long, scope##add_gen_ll)                                \
  SONDE_SCOPED(atomicAdd##suffix, float, float, scope##add_gen_f)                                                  \
  SONDE_SCOPED(atomicAdd##suffix, double, double, scope##add_gen_d)                                                \
  SONDE_SCOPED(atomicExch##suffix, int, int, scope##xchg_gen_i)                                                    \
  SONDE_SCOPED(atomicExch##suffix, unsigned, int, scope##xchg_gen_i)                                               \
  SONDE_SCOPED(atomicExch##suffix, unsigned long long, long long, scope##xchg_gen_ll)                              \
  SONDE_SCOPED(atomicMin##suffix, int, int, scope##min_gen_i)                                                      \
  SONDE_SCOPED(atomicMin##suffix, unsigned, unsigned, scope##min_gen_ui)                                           \
  SONDE_SCOPED(atomicMin##suffix, long long, long long, scope##min_gen_ll)                                         \
  SONDE_SCOPED(atomicMin##suffix, unsigned long long, unsigned long long, scope##min_gen_ull)                      \
  SONDE_SCOPED(atomicMax##suffix, int, int, scope##max_gen_i)                                                      \
  SONDE_SCOPED(atomicMax##suffix, unsigned, unsigned, scope##max_gen_ui)                                           \
  SONDE_SCOPED(atomicMax##suffix, long long, long long, scope##max_gen_ll)                                         \
  SONDE_SCOPED(atomicMax##suffix, unsigned long long, unsigned long long, scope##max_gen_ull)                      \
  SONDE_SCOPED(atomicInc##suffix, unsigned, unsigned, scope##inc_gen_ui)                                           \
  SONDE_SCOPED(atomicDec##suffix, unsigned, unsigned, scope##dec_gen_ui)                                           \
  SONDE_SCOPED(atomicAnd##suffix, int, int, scope##and_gen_i)                                                      \
  SONDE_SCOPED(atomicAnd##suffix, unsigned, int, scope##and_gen_i)                                                 \
  SONDE_SCOPED(atomicAnd##suffix, unsigned long long, long long, scope##and_gen_ll)                                \
  SONDE_SCOPED(atomicOr##suffix, int, int, scope##or_gen_i)                                                        \
  SONDE_SCOPED(atomicOr##suffix, unsigned, int, scope##or_gen_i)                                                   \
  SONDE_SCOPED(atomicOr##suffix, unsigned long long, long long, scope##or_gen_ll)                                  \
  SONDE_SCOPED(atomicXor##suffix, int, int, scope##xor_gen_i)                                                      \
  SONDE_SCOPED(atomicXor##suffix, unsigned, int, scope##xor_gen_i)                                                 \
  SONDE_SCOPED(atomicXor##suffix, unsigned long long, long long, scope##xor_gen_ll)

#define SONDE_ATOMIC(function, T, Raw, builtin) \
  SONDE_DEVICE T function(T *address, T value) { return (T)__nvvm_atom_##builtin((Raw *)address, (Raw)value); }

SONDE_ATOMIC_ALL(SONDE_ATOMIC, , )
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
SONDE_ATOMIC_ALL(SONDE_ATOMIC, _block, cta_)
SONDE_ATOMIC_ALL(SONDE_ATOMIC, _system, sys_)
#endif
#undef SONDE_ATOMIC
#undef SONDE_ATOMIC_ALL

#define SONDE_CAS(suffix, scope)                                                                               \
  SONDE_DEVICE int atomicCAS##suffix(int *address, int expected, int value) {                                  \
    return __nvvm_atom_##scope##cas_gen_i(address, expected, value);                                           \
  }                                                                                                            \
  SONDE_DEVICE unsigned atomicCAS##suffix(unsigned *address, unsigned expected, unsigned value) {              \
    return (unsigned)__nvvm_atom_##scope##cas_gen_i((int *)address, (int)expected, (int)value);                \
  }                                                                                                            \
  SONDE_DEVICE unsigned long long atomicCAS##suffix(unsigned long long *address, unsigned long long expected,  \
                                                    unsigned long long value) {                                \
    return (unsigned long long)__nvvm_atom_##scope##cas_gen_ll((long long *)address, (long long)expected,      \
                                                               (long long)value);                              \
  }
SONDE_CAS(, )
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
SONDE_CAS(_block, cta_)
SONDE_CAS(_system, sys_)
#endif
#undef SONDE_CAS

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
SONDE_DEVICE unsigned short atomicCAS(unsigned short *address, unsigned short expected, unsigned short value) {
  unsigned short result;
  __asm__ __volatile__("atom.cas.b16 %0, [%1], %2, %3;"
                       : "=h"(result) : "l"(address), "h"(expected), "h"(value) : "memory");
  return result;
}
#endif

#define SONDE_FLOAT_EXCHANGE(suffix)                                                            \
  SONDE_DEVICE float atomicExch##suffix(float *address, float value) {                          \
    return __builtin_bit_cast(float, atomicExch##suffix((unsigned *)address, __builtin_bit_cast(unsigned, value))); \
  }                                                                                             \
  SONDE_DEVICE unsigned atomicSub##suffix(unsigned *address, unsigned value) {                  \
    return atomicAdd##suffix(address, 0u - value);                                              \
  }                                                                                             \
  SONDE_DEVICE int atomicSub##suffix(int *address, int value) {                                 \
    return (int)atomicAdd##suffix((unsigned *)address, 0u - (unsigned)value);                   \
  }
SONDE_FLOAT_EXCHANGE()
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
SONDE_FLOAT_EXCHANGE(_block)
SONDE_FLOAT_EXCHANGE(_system)
#endif
#undef SONDE_FLOAT_EXCHANGE

#endif /* SONDE_SOFTGPU_DEVICE_ATOMICS_H_ */
