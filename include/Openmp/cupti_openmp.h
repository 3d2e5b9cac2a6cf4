/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of OpenMP programs, through the tools interface of OpenMP 5.
 */
#ifndef _CUPTI_OPENMP_H_
#define _CUPTI_OPENMP_H_

#include <cupti_common.h>
#include <stdint.h>

/* The OpenMP runtime's own header where there is one; otherwise the two types that are named here. */
#if defined(__has_include)
#if __has_include(<omp-tools.h>)
#include <omp-tools.h>
#define SONDE_OMPT_TYPES
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#ifndef SONDE_OMPT_TYPES
#define SONDE_OMPT_TYPES
typedef void (*ompt_interface_fn_t)(void);
typedef ompt_interface_fn_t (*ompt_function_lookup_t)(const char *interface_function_name);
typedef union ompt_data_t {
  uint64_t value;
  void *ptr;
} ompt_data_t;
#endif

/** Connects CUPTI to an OpenMP runtime, from ompt_start_tool of a technical preview. 0: not connected. */
int CUPTIAPI cuptiOpenMpInitialize(ompt_function_lookup_t ompt_fn_lookup, const char *runtime_version,
                                   unsigned int ompt_version);

/** As the initialize function of an ompt_start_tool_result_t of OpenMP 5. 0: not connected. */
int CUPTIAPI cuptiOpenMpInitialize_v2(ompt_function_lookup_t lookup, int initial_device_num, ompt_data_t *tool_data);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* _CUPTI_OPENMP_H_ */
