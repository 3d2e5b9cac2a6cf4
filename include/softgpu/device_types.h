/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of device code that host code names too.
 */
#ifndef __DEVICE_TYPES_H__
#define __DEVICE_TYPES_H__

#include "crt/host_defines.h"

/** How a conversion rounds. CUDA 2.0. */
enum __device_builtin__ cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

#endif /* __DEVICE_TYPES_H__ */
