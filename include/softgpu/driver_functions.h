/* SPDX-License-Identifier: Apache-2.0
 *
 * Makers of the small structures that copies take.
 */
#ifndef __DRIVER_FUNCTIONS_H__
#define __DRIVER_FUNCTIONS_H__

#include "builtin_types.h"

/** Memory at d with rows p bytes apart, xsz bytes wide and ysz rows high. */
static __inline__ __host__ struct cudaPitchedPtr make_cudaPitchedPtr(void* d, size_t p, size_t xsz, size_t ysz) {
  struct cudaPitchedPtr result = {d, p, xsz, ysz};
  return result;
}

/** A position: x in elements (bytes for pitched memory), y in rows, z in slices. */
static __inline__ __host__ struct cudaPos make_cudaPos(size_t x, size_t y, size_t z) {
  struct cudaPos result = {x, y, z};
  return result;
}

/** A size: w in elements of an array (bytes otherwise), h in rows, d in slices. */
static __inline__ __host__ struct cudaExtent make_cudaExtent(size_t w, size_t h, size_t d) {
  struct cudaExtent result = {w, h, d};
  return result;
}

#endif /* __DRIVER_FUNCTIONS_H__ */
