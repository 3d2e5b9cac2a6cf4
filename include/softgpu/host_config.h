/* SPDX-License-Identifier: Apache-2.0
 *
 * The old place of crt/host_config.h.
 */
#ifndef SONDE_SOFTGPU_HOST_CONFIG_H_
#define SONDE_SOFTGPU_HOST_CONFIG_H_

#include "crt/host_config.h"

#endif /* SONDE_SOFTGPU_HOST_CONFIG_H_ */
