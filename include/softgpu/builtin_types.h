/* SPDX-License-Identifier: Apache-2.0
 *
 * All types of the CUDA runtime.
 */
#ifndef SONDE_SOFTGPU_BUILTIN_TYPES_H_
#define SONDE_SOFTGPU_BUILTIN_TYPES_H_

#include "device_types.h"
#include "driver_types.h"
#include "surface_types.h"
#include "texture_types.h"
#include "vector_types.h"

#endif /* SONDE_SOFTGPU_BUILTIN_TYPES_H_ */
