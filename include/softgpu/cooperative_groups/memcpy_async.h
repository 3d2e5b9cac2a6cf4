/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies by a whole group. They are done when the call returns; wait() is the
 * group's barrier, after which every thread may read.
 */
#ifndef _CG_MEMCPY_ASYNC_H
#define _CG_MEMCPY_ASYNC_H

#include "../cooperative_groups.h"

#if defined(__cplusplus) && defined(__CUDA__) && defined(__clang__)

namespace cooperative_groups {

template <typename Group>
__device__ __inline__ void sonde_copy(const Group &group, char *to, const char *from, size_t bytes) {
  size_t first = group.thread_rank(), step = group.size();
  if ((((unsigned long long)to | (unsigned long long)from | bytes) & 3) == 0) {
    for (size_t i = first; i < bytes / 4; i += step) ((unsigned *)to)[i] = ((const unsigned *)from)[i];
  } else {
    for (size_t i = first; i < bytes; i += step) to[i] = from[i];
  }
}
template <typename Group, typename T>
__device__ __inline__ void memcpy_async(const Group &group, T *to, const T *from, size_t bytes) {
  sonde_copy(group, (char *)to, (const char *)from, bytes);
}
template <typename Group>
__device__ __inline__ void memcpy_async(const Group &group, void *to, const void *from, size_t bytes) {
  sonde_copy(group, (char *)to, (const char *)from, bytes);
}
/* Counts in elements: as many as both sides have. */
template <typename Group, typename T>
__device__ __inline__ void memcpy_async(const Group &group, T *to, size_t toCount, const T *from, size_t fromCount) {
  size_t count = toCount < fromCount ? toCount : fromCount;
  sonde_copy(group, (char *)to, (const char *)from, count * sizeof(T));
}
template <typename Group>
__device__ __inline__ void wait(const Group &group) {
  group.sync();
}
template <unsigned int Stages, typename Group>
__device__ __inline__ void wait_prior(const Group &group) {
  group.sync();
}

}  // namespace cooperative_groups

#endif /* clang compiling CUDA */
#endif /* _CG_MEMCPY_ASYNC_H */
