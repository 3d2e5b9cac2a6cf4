/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefix sums (or any associative operation) over the lanes of a group.
 */
#ifndef _CG_SCAN_H
#define _CG_SCAN_H

#include "reduce.h"

#if defined(__cplusplus) && defined(__CUDA__) && defined(__clang__)

namespace cooperative_groups {

template <typename Group, typename T, typename Operation>
__device__ __inline__ T inclusive_scan(const Group &group, T value, Operation operation) {
  unsigned rank = group.thread_rank();
  for (unsigned distance = 1; distance < group.size(); distance *= 2) {
    T before = group.shfl_up(value, distance);
    if (rank >= distance) value = operation(before, value);
  }
  return value;
}
template <typename Group, typename T>
__device__ __inline__ T inclusive_scan(const Group &group, T value) {
  return inclusive_scan(group, value, plus<T>());
}
/* The first thread gets T(). */
template <typename Group, typename T, typename Operation>
__device__ __inline__ T exclusive_scan(const Group &group, T value, Operation operation) {
  T before = group.shfl_up(inclusive_scan(group, value, operation), 1);
  return group.thread_rank() == 0 ? T() : before;
}
template <typename Group, typename T>
__device__ __inline__ T exclusive_scan(const Group &group, T value) {
  return exclusive_scan(group, value, plus<T>());
}

}  // namespace cooperative_groups

#endif /* clang compiling CUDA */
#endif /* _CG_SCAN_H */
