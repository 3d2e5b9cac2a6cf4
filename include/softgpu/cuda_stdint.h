/* SPDX-License-Identifier: Apache-2.0
 *
 * The integer types of fixed width, under a name that CUDA programs use.
 */
#ifndef __cuda_stdint_h__
#define __cuda_stdint_h__

#include <stdint.h>

#endif /* __cuda_stdint_h__ */
