/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime API inside kernels: the stream handles that mean something
 * there. The functions themselves are in the device headers of sondecc.
 */
#ifndef __CUDA_DEVICE_RUNTIME_API_H__
#define __CUDA_DEVICE_RUNTIME_API_H__

#include "crt/host_defines.h"
#include "driver_types.h"

#if defined(__cplusplus) && (defined(__CUDACC__) || defined(__CUDA__))
/** Graph launches from a kernel: after the launching grid, at once, at once as a sibling. CUDA 12.0. */
#define cudaStreamGraphTailLaunch (cudaStream_t)0x0100000000000000
#define cudaStreamGraphFireAndForget (cudaStream_t)0x0200000000000000
#define cudaStreamGraphFireAndForgetAsSibling (cudaStream_t)0x0300000000000000
/** Kernel launches from a kernel: after the launching grid, or at once. CUDA 11.6. */
#define cudaStreamTailLaunch ((cudaStream_t)0x3)
#define cudaStreamFireAndForget ((cudaStream_t)0x4)
#endif

#endif /* __CUDA_DEVICE_RUNTIME_API_H__ */
