/* SPDX-License-Identifier: Apache-2.0
 *
 * In front of the toolkit's header of this name (where there is a toolkit):
 * see curand_mtgp32_kernel.h, which must come first to be heard.
 */
#include <curand_mtgp32_kernel.h>
#include_next <curand_kernel.h>
