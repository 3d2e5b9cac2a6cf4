/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over a group: every thread gets the result.
 */
#ifndef _CG_REDUCE_H
#define _CG_REDUCE_H

#include "../cooperative_groups.h"

#if defined(__cplusplus) && defined(__CUDA__) && defined(__clang__)

namespace cooperative_groups {

#define SONDE_CG_OPERATION(name, expression)                                              \
  template <typename T>                                                                   \
  struct name {                                                                           \
    __device__ __inline__ T operator()(T a, T b) const { return expression; }             \
  };
SONDE_CG_OPERATION(plus, a + b)
SONDE_CG_OPERATION(less, b < a ? b : a)
SONDE_CG_OPERATION(greater, b > a ? b : a)
SONDE_CG_OPERATION(bit_and, a &b)
SONDE_CG_OPERATION(bit_or, a | b)
SONDE_CG_OPERATION(bit_xor, a ^ b)
#undef SONDE_CG_OPERATION

template <unsigned int Size, typename ParentT, typename T, typename Operation>
__device__ __inline__ T reduce(const thread_block_tile<Size, ParentT> &group, T value, Operation operation) {
  for (unsigned lanes = Size / 2; lanes > 0; lanes /= 2) value = operation(value, group.shfl_xor(value, lanes));
  return value;
}

template <unsigned int Size, typename T, typename Operation>
__device__ __inline__ T reduce(const sonde_wide_tile<Size> &group, T value, Operation operation) {
  return group.combine(value, operation);
}

/* Any number of lanes: halving from the top, then the first one's result. */
template <typename T, typename Operation>
__device__ __inline__ T reduce(const coalesced_group &group, T value, Operation operation) {
  unsigned rank = group.thread_rank();
  for (unsigned count = group.size(); count > 1;) {
    unsigned half = (count + 1) / 2;
    T other = group.shfl_down(value, half);
    if (rank + half < count) value = operation(value, other);
    count = half;
  }
  return group.shfl(value, 0);
}

}  // namespace cooperative_groups

#endif /* clang compiling CUDA */
#endif /* _CG_REDUCE_H */
