/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and stores with cache hints, address spaces, and the C functions of
 * device code: memory, strings, assert.
 */
#ifndef SONDE_SOFTGPU_DEVICE_MEMORY_H_
#define SONDE_SOFTGPU_DEVICE_MEMORY_H_

/* The value that a conditional node of a graph looks at. */
extern "C" __device__ void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);

/* ------------------------------------------------------ address spaces -- */

#define SONDE_IS_SPACE(name, space)                                                                     \
  SONDE_DEVICE unsigned name(const void *pointer) {                                                     \
    unsigned result;                                                                                    \
    __asm__("{ .reg .pred %%p1; isspacep." space " %%p1, %1; selp.u32 %0, 1, 0, %%p1; }"                \
            : "=r"(result) : "l"(pointer));                                                             \
    return result;                                                                                      \
  }
SONDE_IS_SPACE(__isGlobal, "global")
SONDE_IS_SPACE(__isShared, "shared")
SONDE_IS_SPACE(__isLocal, "local")
SONDE_IS_SPACE(__isConstant, "const")
#undef SONDE_IS_SPACE

#define SONDE_TO_SPACE(name, space)                                                                    \
  SONDE_DEVICE size_t name(const void *pointer) {                                                      \
    size_t result;                                                                                     \
    __asm__("cvta.to." space ".u64 %0, %1;" : "=l"(result) : "l"(pointer));                            \
    return result;                                                                                     \
  }
SONDE_TO_SPACE(__cvta_generic_to_global, "global")
SONDE_TO_SPACE(__cvta_generic_to_shared, "shared")
SONDE_TO_SPACE(__cvta_generic_to_local, "local")
SONDE_TO_SPACE(__cvta_generic_to_constant, "const")
#undef SONDE_TO_SPACE
#define SONDE_FROM_SPACE(name, space)                                                                  \
  SONDE_DEVICE void *name(size_t address) {                                                            \
    void *result;                                                                                      \
    __asm__("cvta." space ".u64 %0, %1;" : "=l"(result) : "l"(address));                               \
    return result;                                                                                     \
  }
SONDE_FROM_SPACE(__cvta_global_to_generic, "global")
SONDE_FROM_SPACE(__cvta_shared_to_generic, "shared")
SONDE_FROM_SPACE(__cvta_local_to_generic, "local")
SONDE_FROM_SPACE(__cvta_constant_to_generic, "const")
#undef SONDE_FROM_SPACE

/* --------------------------------------------------------- cache hints -- */

/* One function per type: T, its PTX type, the register class of the operand,
 * and the type that the register holds. */
#define SONDE_HINT_SCALAR(function, hint, T, ptx, reg, Raw)                                                   \
  SONDE_DEVICE T function(const T *pointer) {                                                                 \
    Raw value;                                                                                                \
    __asm__ __volatile__("ld.global" hint "." ptx " %0, [%1];" : "=" reg(value) : "l"(pointer));              \
    return (T)value;                                                                                          \
  }
#define SONDE_HINT_PAIR(function, hint, T, ptx, reg, Raw)                                                     \
  SONDE_DEVICE T function(const T *pointer) {                                                                 \
    Raw a, b;                                                                                                 \
    __asm__ __volatile__("ld.global" hint ".v2." ptx " {%0, %1}, [%2];"                                       \
                         : "=" reg(a), "=" reg(b) : "l"(pointer));                                            \
    T value;                                                                                                  \
    value.x = a;                                                                                              \
    value.y = b;                                                                                              \
    return value;                                                                                             \
  }
#define SONDE_HINT_FOUR(function, hint, T, ptx, reg, Raw)                                                     \
  SONDE_DEVICE T function(const T *pointer) {                                                                 \
    Raw a, b, c, d;                                                                                           \
    __asm__ __volatile__("ld.global" hint ".v4." ptx " {%0, %1, %2, %3}, [%4];"                               \
                         : "=" reg(a), "=" reg(b), "=" reg(c), "=" reg(d) : "l"(pointer));                    \
    T value;                                                                                                  \
    value.x = a;                                                                                              \
    value.y = b;                                                                                              \
    value.z = c;                                                                                              \
    value.w = d;                                                                                              \
    return value;                                                                                             \
  }
#define SONDE_HINTED_LOADS(function, hint)                                        \
  SONDE_HINT_SCALAR(function, hint, char, "s8", "r", int)                         \
  SONDE_HINT_SCALAR(function, hint, signed char, "s8", "r", int)                  \
  SONDE_HINT_SCALAR(function, hint, unsigned char, "u8", "r", unsigned)           \
  SONDE_HINT_SCALAR(function, hint, short, "s16", "h", short)                     \
  SONDE_HINT_SCALAR(function, hint, unsigned short, "u16", "h", unsigned short)   \
  SONDE_HINT_SCALAR(function, hint, int, "s32", "r", int)                         \
  SONDE_HINT_SCALAR(function, hint, unsigned, "u32", "r", unsigned)               \
  SONDE_HINT_SCALAR(function, hint, long, "s64", "l", long)                       \
  SONDE_HINT_SCALAR(function, hint, unsigned long, "u64", "l", unsigned long)     \
  SONDE_HINT_SCALAR(function, hint, long long, "s64", "l", long long)             \
  SONDE_HINT_SCALAR(function, hint, unsigned long long, "u64", "l", unsigned long long) \
  SONDE_HINT_SCALAR(function, hint, float, "f32", "f", float)                     \
  SONDE_HINT_SCALAR(function, hint, double, "f64", "d", double)                   \
  SONDE_HINT_PAIR(function, hint, char2, "s8", "r", int)                          \
  SONDE_HINT_PAIR(function, hint, uchar2, "u8", "r", unsigned)                    \
  SONDE_HINT_PAIR(function, hint, short2, "s16", "h", short)                      \
  SONDE_HINT_PAIR(function, hint, ushort2, "u16", "h", unsigned short)            \
  SONDE_HINT_PAIR(function, hint, int2, "s32", "r", int)                          \
  SONDE_HINT_PAIR(function, hint, uint2, "u32", "r", unsigned)                    \
  SONDE_HINT_PAIR(function, hint, longlong2, "s64", "l", long long)               \
  SONDE_HINT_PAIR(function, hint, ulonglong2, "u64", "l", unsigned long long)     \
  SONDE_HINT_PAIR(function, hint, float2, "f32", "f", float)                      \
  SONDE_HINT_PAIR(function, hint, double2, "f64", "d", double)                    \
  SONDE_HINT_FOUR(function, hint, char4, "s8", "r", int)                          \
  SONDE_HINT_FOUR(function, hint, uchar4, "u8", "r", unsigned)                    \
  SONDE_HINT_FOUR(function, hint, short4, "s16", "h", short)                      \
  SONDE_HINT_FOUR(function, hint, ushort4, "u16", "h", unsigned short)            \
  SONDE_HINT_FOUR(function, hint, int4, "s32", "r", int)                          \
  SONDE_HINT_FOUR(function, hint, uint4, "u32", "r", unsigned)                    \
  SONDE_HINT_FOUR(function, hint, float4, "f32", "f", float)
SONDE_HINTED_LOADS(__ldg, ".nc")
SONDE_HINTED_LOADS(__ldca, ".ca")
SONDE_HINTED_LOADS(__ldcg, ".cg")
SONDE_HINTED_LOADS(__ldcs, ".cs")
SONDE_HINTED_LOADS(__ldlu, ".lu")
SONDE_HINTED_LOADS(__ldcv, ".cv")
#undef SONDE_HINTED_LOADS
#undef SONDE_HINT_SCALAR
#undef SONDE_HINT_PAIR
#undef SONDE_HINT_FOUR

#define SONDE_HINT_STORE(function, hint, T, ptx, reg, Raw)                                                    \
  SONDE_DEVICE void function(T *pointer, T value) {                                                           \
    __asm__ __volatile__("st.global" hint "." ptx " [%0], %1;" ::"l"(pointer), reg((Raw)value) : "memory");   \
  }
#define SONDE_HINTED_STORES(function, hint)                                                                    \
  SONDE_HINT_STORE(function, hint, char, "s8", "r", int)                                                       \
  SONDE_HINT_STORE(function, hint, signed char, "s8", "r", int)                                                \
  SONDE_HINT_STORE(function, hint, unsigned char, "u8", "r", unsigned)                                         \
  SONDE_HINT_STORE(function, hint, short, "s16", "h", short)                                                   \
  SONDE_HINT_STORE(function, hint, unsigned short, "u16", "h", unsigned short)                                 \
  SONDE_HINT_STORE(function, hint, int, "s32", "r", int)                                                       \
  SONDE_HINT_STORE(function, hint, unsigned, "u32", "r", unsigned)                                             \
  SONDE_HINT_STORE(function, hint, long, "s64", "l", long)                                                     \
  SONDE_HINT_STORE(function, hint, unsigned long, "u64", "l", unsigned long)                                   \
  SONDE_HINT_STORE(function, hint, long long, "s64", "l", long long)                                           \
  SONDE_HINT_STORE(function, hint, unsigned long long, "u64", "l", unsigned long long)                         \
  SONDE_HINT_STORE(function, hint, float, "f32", "f", float)                                                   \
  SONDE_HINT_STORE(function, hint, double, "f64", "d", double)                                                 \
  SONDE_DEVICE void function(float2 *pointer, float2 value) {                                                  \
    __asm__ __volatile__("st.global" hint ".v2.f32 [%0], {%1, %2};" ::"l"(pointer), "f"(value.x), "f"(value.y) \
                         : "memory");                                                                          \
  }                                                                                                            \
  SONDE_DEVICE void function(float4 *pointer, float4 value) {                                                  \
    __asm__ __volatile__("st.global" hint ".v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(pointer), "f"(value.x),      \
                         "f"(value.y), "f"(value.z), "f"(value.w)                                              \
                         : "memory");                                                                          \
  }                                                                                                            \
  SONDE_DEVICE void function(int4 *pointer, int4 value) {                                                      \
    __asm__ __volatile__("st.global" hint ".v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(pointer), "r"(value.x),      \
                         "r"(value.y), "r"(value.z), "r"(value.w)                                              \
                         : "memory");                                                                          \
  }                                                                                                            \
  SONDE_DEVICE void function(uint4 *pointer, uint4 value) {                                                    \
    __asm__ __volatile__("st.global" hint ".v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(pointer), "r"(value.x),      \
                         "r"(value.y), "r"(value.z), "r"(value.w)                                              \
                         : "memory");                                                                          \
  }
SONDE_HINTED_STORES(__stwb, ".wb")
SONDE_HINTED_STORES(__stcg, ".cg")
SONDE_HINTED_STORES(__stcs, ".cs")
SONDE_HINTED_STORES(__stwt, ".wt")
#undef SONDE_HINTED_STORES
#undef SONDE_HINT_STORE

/* -------------------------------------------------------- C in kernels -- */

extern "C" __device__ int vprintf(const char *, const char *);
/* clang turns a call of printf into one of vprintf, but wants it declared. */
extern "C" __device__ int printf(const char *, ...);
extern "C" __device__ void __assertfail(const char *message, const char *file, unsigned line, const char *function,
                                        size_t characterSize) __attribute__((noreturn));
SONDE_DEVICE void __assert_fail(const char *message, const char *file, unsigned line, const char *function) {
  __assertfail(message, file, line, function, sizeof(char));
}

SONDE_DEVICE void *memcpy(void *to, const void *from, size_t size) { return __builtin_memcpy(to, from, size); }
SONDE_DEVICE void *memmove(void *to, const void *from, size_t size) { return __builtin_memmove(to, from, size); }
SONDE_DEVICE void *memset(void *to, int value, size_t size) { return __builtin_memset(to, value, size); }
SONDE_DEVICE int memcmp(const void *left, const void *right, size_t size) {
  const unsigned char *a = (const unsigned char *)left, *b = (const unsigned char *)right;
  for (size_t i = 0; i < size; ++i)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}
SONDE_DEVICE size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length]) ++length;
  return length;
}
SONDE_DEVICE int strcmp(const char *left, const char *right) {
  while (*left && *left == *right) ++left, ++right;
  return (int)(unsigned char)*left - (int)(unsigned char)*right;
}
SONDE_DEVICE char *strcpy(char *to, const char *from) {
  char *out = to;
  while ((*out++ = *from++)) {
  }
  return to;
}

namespace std {
using ::free;
using ::malloc;
using ::memcmp;
using ::memcpy;
using ::memmove;
using ::memset;
using ::strcmp;
using ::strcpy;
using ::strlen;
}  // namespace std

#endif /* SONDE_SOFTGPU_DEVICE_MEMORY_H_ */
