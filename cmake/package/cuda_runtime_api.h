/* SPDX-License-Identifier: Apache-2.0
 * For clients that have only this folder in their search path: the header of
 * a CUDA toolkit further down the path, or else Sonde's own. */
#if defined(__has_include_next)
#if __has_include_next(<cuda_runtime_api.h>)
#define SONDE_CUDA_RUNTIME_API_FROM_TOOLKIT 1
#endif
#endif
#ifdef SONDE_CUDA_RUNTIME_API_FROM_TOOLKIT
#include_next <cuda_runtime_api.h>
#else
#include "softgpu/cuda_runtime_api.h"
#endif
