/* SPDX-License-Identifier: Apache-2.0
 *
 * Records of OpenACC programs.
 */
#ifndef _CUPTI_OPENACC_H_
#define _CUPTI_OPENACC_H_

#include <cupti_common.h>
#include <cupti_result.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** Hands CUPTI the three functions that acc_register_library of the OpenACC runtime gives to a profiling library.
 *  Called by a program's acc_register_library, before the kinds OPENACC_DATA, OPENACC_LAUNCH and OPENACC_OTHER. */
CUptiResult CUPTIAPI cuptiOpenACCInitialize(void *profRegister, void *profUnregister, void *profLookup);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif /* _CUPTI_OPENACC_H_ */
