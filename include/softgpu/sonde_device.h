/* SPDX-License-Identifier: Apache-2.0
 *
 * What CUDA C++ offers inside kernels, for clang: built-in variables,
 * synchronisation, intrinsics, atomics, warp functions, mathematics, and the
 * few C functions that devices have. Included at the end of cuda_runtime.h.
 */
#ifndef SONDE_SOFTGPU_DEVICE_H_
#define SONDE_SOFTGPU_DEVICE_H_

#if defined(__CUDA__) && defined(__clang__)

#include "sonde_device_prelude.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#pragma clang attribute push(__attribute__((nodebug)), apply_to = hasType(functionType))
#include <__clang_cuda_builtin_vars.h>
#pragma clang attribute pop

/* The conversions that clang's header only declares. */
#define SONDE_BUILTIN_VARIABLE(variable)                                                                      \
  __device__ __inline__ __cuda_builtin_##variable##_t::operator uint3() const { return make_uint3(x, y, z); } \
  __device__ __inline__ __cuda_builtin_##variable##_t::operator dim3() const { return dim3(x, y, z); }
SONDE_BUILTIN_VARIABLE(threadIdx)
SONDE_BUILTIN_VARIABLE(blockIdx)
SONDE_BUILTIN_VARIABLE(blockDim)
SONDE_BUILTIN_VARIABLE(gridDim)
#undef SONDE_BUILTIN_VARIABLE

#include "sonde_device_math.h"
#include "sonde_device_intrinsics.h"
#include "sonde_device_atomics.h"
#include "sonde_device_warp.h"
#include "sonde_device_memory.h"
#include "sonde_device_texture.h"

#endif /* clang compiling CUDA */
#endif /* SONDE_SOFTGPU_DEVICE_H_ */
