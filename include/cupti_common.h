/* SPDX-License-Identifier: Apache-2.0
 *
 * What all CUPTI headers share: calling convention, record layout, sizes of
 * parameter structures.
 */
#ifndef __CUPTI_COMMON_H__
#define __CUPTI_COMMON_H__

#include <stddef.h>

#ifndef CUPTIAPI
#define CUPTIAPI
#endif
#ifndef CUPTIUTILAPI
#define CUPTIUTILAPI
#endif

#if !defined(__LP64__)
#error "Sonde's CUPTI is for 64-bit Linux."
#endif
#define CUPTILP64 1

/* Records begin at multiples of this and have no padding of the compiler's. */
#define ACTIVITY_RECORD_ALIGNMENT 8
#define START_PACKED_ALIGNMENT
#define PACKED_ALIGNMENT __attribute__((__packed__)) __attribute__((aligned(ACTIVITY_RECORD_ALIGNMENT)))
#define END_PACKED_ALIGNMENT

/* The size of a parameter structure up to and with its last member: what a
 * client writes to structSize, so that later releases may append members. */
#define SONDE_SIZE_UP_TO(type, last) (offsetof(type, last) + sizeof(((type*)0)->last))
#ifndef CUPTI_PROFILER_STRUCT_SIZE
#define CUPTI_PROFILER_STRUCT_SIZE(type, last) SONDE_SIZE_UP_TO(type, last)
#endif
#ifndef CUPTI_PCSAMPLING_STRUCT_SIZE
#define CUPTI_PCSAMPLING_STRUCT_SIZE(type, last) SONDE_SIZE_UP_TO(type, last)
#endif
#ifndef CUPTI_CALLBACK_STRUCT_SIZE
#define CUPTI_CALLBACK_STRUCT_SIZE(type, last) SONDE_SIZE_UP_TO(type, last)
#endif

#endif /* __CUPTI_COMMON_H__ */
