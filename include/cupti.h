/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI, the CUDA Profiling Tools Interface: version, results, activities,
 * callbacks, events and metrics, callback ids and the parameters of the
 * functions behind them.
 *
 * The profiling, sampling and clock-control functions have headers of their
 * own: cupti_profiler_target.h (clock control too), cupti_profiler_host.h,
 * cupti_range_profiler.h, cupti_pcsampling.h, cupti_pmsampling.h,
 * cupti_sass_metrics.h, cupti_target.h.
 */
#ifndef _CUPTI_H_
#define _CUPTI_H_

#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_events.h>
#include <cupti_metrics.h>
#include <cupti_nvtx_cbid.h>
#include <cupti_result.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#include <generated_cuda_meta.h>
#include <generated_cuda_runtime_api_meta.h>

#endif /* _CUPTI_H_ */
