// SPDX-License-Identifier: Apache-2.0
// A tracepoint with the fields of an API record. LTTng-UST reads this file
// several times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER sonde_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng/call_tracepoint.h"

#if !defined(SONDE_BENCH_LTTNG_CALL_TRACEPOINT_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SONDE_BENCH_LTTNG_CALL_TRACEPOINT_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    sonde_bench, call,
    LTTNG_UST_TP_ARGS(uint32_t, kind, uint32_t, cbid, uint64_t, start, uint64_t, end, uint32_t, process, uint32_t,
                      thread, uint32_t, correlation, uint32_t, result),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, kind, kind) lttng_ust_field_integer(uint32_t, cbid, cbid)
                            lttng_ust_field_integer(uint64_t, start, start) lttng_ust_field_integer(uint64_t, end, end)
                                lttng_ust_field_integer(uint32_t, process, process)
                                    lttng_ust_field_integer(uint32_t, thread, thread)
                                        lttng_ust_field_integer(uint32_t, correlation, correlation)
                                            lttng_ust_field_integer(uint32_t, result, result)))

#endif  // SONDE_BENCH_LTTNG_CALL_TRACEPOINT_H_

#include <lttng/tracepoint-event.h>
