/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers, fences, votes, shuffles, matches, warp reductions, clocks.
 */
#ifndef SONDE_SOFTGPU_DEVICE_WARP_H_
#define SONDE_SOFTGPU_DEVICE_WARP_H_

/* ------------------------------------------------------ block barriers -- */

/* __syncthreads itself is known to clang. */
SONDE_DEVICE int __syncthreads_count(int predicate) {
  int result;
  __asm__ __volatile__(
      "{ .reg .pred %%p1; setp.ne.s32 %%p1, %1, 0; barrier.red.popc.aligned.u32 %0, 0, %%p1; }"
      : "=r"(result) : "r"(predicate) : "memory");
  return result;
}
SONDE_DEVICE int __syncthreads_and(int predicate) {
  int result;
  __asm__ __volatile__(
      "{ .reg .pred %%p1, %%p2; setp.ne.s32 %%p1, %1, 0; barrier.red.and.aligned.pred %%p2, 0, %%p1; "
      "selp.s32 %0, 1, 0, %%p2; }"
      : "=r"(result) : "r"(predicate) : "memory");
  return result;
}
SONDE_DEVICE int __syncthreads_or(int predicate) {
  int result;
  __asm__ __volatile__(
      "{ .reg .pred %%p1, %%p2; setp.ne.s32 %%p1, %1, 0; barrier.red.or.aligned.pred %%p2, 0, %%p1; "
      "selp.s32 %0, 1, 0, %%p2; }"
      : "=r"(result) : "r"(predicate) : "memory");
  return result;
}
SONDE_DEVICE void __barrier_sync(unsigned id) { __asm__ __volatile__("barrier.sync %0;" ::"r"(id) : "memory"); }
SONDE_DEVICE void __barrier_sync_count(unsigned id, unsigned count) {
  __asm__ __volatile__("barrier.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

/* -------------------------------------------------------------- fences -- */

SONDE_DEVICE void __threadfence() { __asm__ __volatile__("membar.gl;" ::: "memory"); }
SONDE_DEVICE void __threadfence_block() { __asm__ __volatile__("membar.cta;" ::: "memory"); }
SONDE_DEVICE void __threadfence_system() { __asm__ __volatile__("membar.sys;" ::: "memory"); }

/* --------------------------------------------------------------- votes -- */

SONDE_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) {
  __asm__ __volatile__("bar.warp.sync %0;" ::"r"(mask) : "memory");
}
SONDE_DEVICE unsigned __activemask() {
  unsigned mask;
  __asm__ __volatile__("activemask.b32 %0;" : "=r"(mask)::"memory");
  return mask;
}
SONDE_DEVICE unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned result;
  __asm__ __volatile__(
      "{ .reg .pred %%p1; setp.ne.s32 %%p1, %1, 0; vote.sync.ballot.b32 %0, %%p1, %2; }"
      : "=r"(result) : "r"(predicate), "r"(mask) : "memory");
  return result;
}
#define SONDE_VOTE(name, mode)                                                                                      \
  SONDE_DEVICE int name(unsigned mask, int predicate) {                                                             \
    int result;                                                                                                     \
    __asm__ __volatile__("{ .reg .pred %%p1, %%p2; setp.ne.s32 %%p1, %1, 0; vote.sync." mode ".pred %%p2, %%p1, %2; " \
                         "selp.s32 %0, 1, 0, %%p2; }"                                                               \
                         : "=r"(result) : "r"(predicate), "r"(mask) : "memory");                                    \
    return result;                                                                                                  \
  }
SONDE_VOTE(__all_sync, "all")
SONDE_VOTE(__any_sync, "any")
SONDE_VOTE(__uni_sync, "uni")
#undef SONDE_VOTE

/* ------------------------------------------------------------ shuffles -- */

/* The operand that limits a shuffle to segments of `width` lanes: the segment
 * mask in bits 8 to 12, the last lane in the low bits. */
#define SONDE_SHUFFLE(name, mode, last)                                                                         \
  SONDE_DEVICE unsigned sonde_##name(unsigned mask, unsigned value, unsigned lane, int width) {                 \
    unsigned result;                                                                                            \
    unsigned control = ((32u - (unsigned)width) << 8) | (last);                                                 \
    __asm__ __volatile__("shfl.sync." mode ".b32 %0, %1, %2, %3, %4;"                                           \
                         : "=r"(result) : "r"(value), "r"(lane), "r"(control), "r"(mask) : "memory");           \
    return result;                                                                                              \
  }
SONDE_SHUFFLE(shfl_idx, "idx", 0x1fu)
SONDE_SHUFFLE(shfl_up, "up", 0u)
SONDE_SHUFFLE(shfl_down, "down", 0x1fu)
SONDE_SHUFFLE(shfl_bfly, "bfly", 0x1fu)
#undef SONDE_SHUFFLE

/* Any value of 4 or 8 bytes, word by word. */
#define SONDE_SHUFFLE_TYPES(function, core, Lane)                                                                   \
  template <typename T>                                                                                             \
  SONDE_DEVICE T sonde_##function##_any(unsigned mask, T value, Lane lane, int width) {                             \
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");                                  \
    unsigned words[sizeof(T) / 4];                                                                                  \
    __builtin_memcpy(words, &value, sizeof(T));                                                                     \
    for (unsigned i = 0; i < sizeof(T) / 4; ++i) words[i] = sonde_##core(mask, words[i], (unsigned)lane, width);    \
    __builtin_memcpy(&value, words, sizeof(T));                                                                     \
    return value;                                                                                                   \
  }                                                                                                                 \
  SONDE_SHUFFLE_OVERLOAD(function, int, Lane)                                                                       \
  SONDE_SHUFFLE_OVERLOAD(function, unsigned, Lane)                                                                  \
  SONDE_SHUFFLE_OVERLOAD(function, long, Lane)                                                                      \
  SONDE_SHUFFLE_OVERLOAD(function, unsigned long, Lane)                                                             \
  SONDE_SHUFFLE_OVERLOAD(function, long long, Lane)                                                                 \
  SONDE_SHUFFLE_OVERLOAD(function, unsigned long long, Lane)                                                        \
  SONDE_SHUFFLE_OVERLOAD(function, float, Lane)                                                                     \
  SONDE_SHUFFLE_OVERLOAD(function, double, Lane)
#define SONDE_SHUFFLE_OVERLOAD(function, T, Lane)                                        \
  SONDE_DEVICE T function(unsigned mask, T value, Lane lane, int width = 32) {           \
    return sonde_##function##_any<T>(mask, value, lane, width);                          \
  }
SONDE_SHUFFLE_TYPES(__shfl_sync, shfl_idx, int)
SONDE_SHUFFLE_TYPES(__shfl_up_sync, shfl_up, unsigned)
SONDE_SHUFFLE_TYPES(__shfl_down_sync, shfl_down, unsigned)
SONDE_SHUFFLE_TYPES(__shfl_xor_sync, shfl_bfly, int)
#undef SONDE_SHUFFLE_TYPES
#undef SONDE_SHUFFLE_OVERLOAD

/* ------------------------------------------------------------- matches -- */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
SONDE_DEVICE unsigned sonde_match_any32(unsigned mask, unsigned value) {
  unsigned result;
  __asm__ __volatile__("match.any.sync.b32 %0, %1, %2;" : "=r"(result) : "r"(value), "r"(mask) : "memory");
  return result;
}
SONDE_DEVICE unsigned sonde_match_any64(unsigned mask, unsigned long long value) {
  unsigned result;
  __asm__ __volatile__("match.any.sync.b64 %0, %1, %2;" : "=r"(result) : "l"(value), "r"(mask) : "memory");
  return result;
}
SONDE_DEVICE unsigned sonde_match_all32(unsigned mask, unsigned value, int *predicate) {
  unsigned result;
  __asm__ __volatile__(
      "{ .reg .pred %%p1; match.all.sync.b32 %0|%%p1, %2, %3; selp.s32 %1, 1, 0, %%p1; }"
      : "=r"(result), "=r"(*predicate) : "r"(value), "r"(mask) : "memory");
  return result;
}
SONDE_DEVICE unsigned sonde_match_all64(unsigned mask, unsigned long long value, int *predicate) {
  unsigned result;
  __asm__ __volatile__(
      "{ .reg .pred %%p1; match.all.sync.b64 %0|%%p1, %2, %3; selp.s32 %1, 1, 0, %%p1; }"
      : "=r"(result), "=r"(*predicate) : "l"(value), "r"(mask) : "memory");
  return result;
}
#define SONDE_MATCH(T, Word, bits)                                                      \
  SONDE_DEVICE unsigned __match_any_sync(unsigned mask, T value) {                      \
    Word word;                                                                          \
    __builtin_memcpy(&word, &value, sizeof word);                                       \
    return sonde_match_any##bits(mask, word);                                           \
  }                                                                                     \
  SONDE_DEVICE unsigned __match_all_sync(unsigned mask, T value, int *predicate) {      \
    Word word;                                                                          \
    __builtin_memcpy(&word, &value, sizeof word);                                       \
    return sonde_match_all##bits(mask, word, predicate);                                \
  }
SONDE_MATCH(int, unsigned, 32)
SONDE_MATCH(unsigned, unsigned, 32)
SONDE_MATCH(float, unsigned, 32)
SONDE_MATCH(long, unsigned long long, 64)
SONDE_MATCH(unsigned long, unsigned long long, 64)
SONDE_MATCH(long long, unsigned long long, 64)
SONDE_MATCH(unsigned long long, unsigned long long, 64)
SONDE_MATCH(double, unsigned long long, 64)
#undef SONDE_MATCH
#endif

/* ---------------------------------------------------------- reductions -- */

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define SONDE_REDUCE(name, T, operation)                                                                       \
  SONDE_DEVICE T name(unsigned mask, T value) {                                                                \
    T result;                                                                                                  \
    __asm__ __volatile__("redux.sync." operation " %0, %1, %2;" : "=r"(result) : "r"(value), "r"(mask)         \
                         : "memory");                                                                          \
    return result;                                                                                             \
  }
SONDE_REDUCE(__reduce_add_sync, unsigned, "add.u32")
SONDE_REDUCE(__reduce_min_sync, unsigned, "min.u32")
SONDE_REDUCE(__reduce_max_sync, unsigned, "max.u32")
SONDE_REDUCE(__reduce_add_sync, int, "add.s32")
SONDE_REDUCE(__reduce_min_sync, int, "min.s32")
SONDE_REDUCE(__reduce_max_sync, int, "max.s32")
SONDE_REDUCE(__reduce_and_sync, unsigned, "and.b32")
SONDE_REDUCE(__reduce_or_sync, unsigned, "or.b32")
SONDE_REDUCE(__reduce_xor_sync, unsigned, "xor.b32")
#undef SONDE_REDUCE
#endif

/* -------------------------------------------------- clocks, waits, traps -- */

SONDE_DEVICE long long clock64() {
  long long ticks;
  __asm__ __volatile__("mov.u64 %0, %%clock64;" : "=l"(ticks)::"memory");
  return ticks;
}
SONDE_DEVICE int sonde_clock32() {
  int ticks;
  __asm__ __volatile__("mov.u32 %0, %%clock;" : "=r"(ticks)::"memory");
  return ticks;
}
/* The C library has a clock() of its own, for the host. */
SONDE_DEVICE clock_t clock() { return sonde_clock32(); }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700
SONDE_DEVICE void __nanosleep(unsigned nanoseconds) { __asm__ __volatile__("nanosleep.u32 %0;" ::"r"(nanoseconds)); }
#endif
SONDE_DEVICE void __trap() { __asm__ __volatile__("trap;"); }
SONDE_DEVICE void __brkpt() { __asm__ __volatile__("brkpt;"); }
SONDE_DEVICE void __prof_trigger(int) {}
SONDE_DEVICE unsigned sonde_lane_id() {
  unsigned lane;
  __asm__("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

#endif /* SONDE_SOFTGPU_DEVICE_WARP_H_ */
