/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that CUDA adds to C++, for the host compiler and for clang.
 *
 * For a compiler that knows CUDA (clang -x cuda) they are attributes; for any
 * other they vanish, so that one header serves both.
 */
#ifndef __HOST_DEFINES_H__
#define __HOST_DEFINES_H__

#define __no_return__ __attribute__((noreturn))
/* Only for nvcc: the host's standard library writes __attribute__((__noinline__)),
 * and clang has the word built in when it compiles CUDA. */
#if defined(__CUDACC__) && !defined(__clang__)
#define __noinline__ __attribute__((noinline))
#endif
#undef __forceinline__
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __thread__ __thread
#define __import__
#define __export__
#define CUDARTAPI
/* Around uses of what is deprecated; no warning is given here. */
#define __NV_SILENCE_DEPRECATION_BEGIN
#define __NV_SILENCE_DEPRECATION_END
#define CUDARTAPI_CDECL

#if defined(__CUDACC__) || defined(__CUDA__)
#define __annotate__(a) __attribute__((a))
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#if defined(__clang__) && !defined(__HIP__)
/* A compiler plugin does the rest (sondecc loads it). It knows definitions by
 * the note, and declarations, which have none, by their visibility. */
#define __managed__ \
  __attribute__((device)) __attribute__((annotate("sonde_managed"))) __attribute__((visibility("protected")))
#else
#define __managed__ __attribute__((managed))
#endif
#define __grid_constant__ __attribute__((grid_constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __cluster_dims__(...)
#define __maxnreg__(n)
#define __device_builtin__
#define __device_builtin_texture_type__ __attribute__((device_builtin_texture_type))
#define __device_builtin_surface_type__ __attribute__((device_builtin_surface_type))
#define __cudart_builtin__
#else
#define __annotate__(a)
#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
#ifndef __global__
#define __global__
#endif
#ifndef __shared__
#define __shared__
#endif
#ifndef __constant__
#define __constant__
#endif
#ifndef __managed__
#define __managed__
#endif
#ifndef __grid_constant__
#define __grid_constant__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
#ifndef __cluster_dims__
#define __cluster_dims__(...)
#endif
#define __maxnreg__(n)
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#endif
#define __location__(a) __annotate__(a)

#endif /* __HOST_DEFINES_H__ */
