/* SPDX-License-Identifier: Apache-2.0
 *
 * In front of the toolkit's header of this name (where there is a toolkit):
 * that one declares blockDim and threadIdx for the host with types that differ
 * from those of clang's built-in variables.
 */
#pragma push_macro("dim3")
#pragma push_macro("uint3")
#if defined(__CUDA__) && defined(__clang__) && !defined(__CUDA_ARCH__)
#define dim3 __cuda_builtin_blockDim_t
#define uint3 __cuda_builtin_threadIdx_t
#endif
#include_next <curand_mtgp32_kernel.h>
#pragma pop_macro("uint3")
#pragma pop_macro("dim3")
