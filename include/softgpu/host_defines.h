/* SPDX-License-Identifier: Apache-2.0
 *
 * The old place of crt/host_defines.h.
 */
#ifndef SONDE_SOFTGPU_HOST_DEFINES_H_
#define SONDE_SOFTGPU_HOST_DEFINES_H_

#include "crt/host_defines.h"

#endif /* SONDE_SOFTGPU_HOST_DEFINES_H_ */
