/* SPDX-License-Identifier: Apache-2.0
 *
 * A header that programs include by name; all of it is in cuda_runtime.h.
 */
#ifndef SONDE_SOFTGPU_DEVICE_LAUNCH_PARAMETERS_H_
#define SONDE_SOFTGPU_DEVICE_LAUNCH_PARAMETERS_H_

#include "cuda_runtime.h"

#endif /* SONDE_SOFTGPU_DEVICE_LAUNCH_PARAMETERS_H_ */
