#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/cupti*.h and include/generated_*_meta.h.

cupti.h and cupti_common.h are written by hand.
"""
import re
import emit
import since
from tables import cBanner, table

GENERATOR = "gen_cupti_headers.py"
OPEN = "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n#pragma GCC visibility push(default)\n\n"
CLOSE = "\n#pragma GCC visibility pop\n#ifdef __cplusplus\n}\n#endif\n"

# header -> (guard, what the file is, includes, decl tables, text before the declarations, text after the includes of C)
RECORD_ABI = """
/* Records of the generation of CUDA 6.5 (Kernel2, Device, GlobalAccess2, Branch2, UnifiedMemoryCounter): compile
 * with -DCUPTI_RECORD_ABI=6050. The choice is then in the binary, as another name of the function that registers. */
#ifdef CUPTI_RECORD_ABI
#if CUPTI_RECORD_ABI == 6050
#define cuptiActivityRegisterCallbacks cuptiActivityRegisterCallbacks_v6050
#else
#error "CUPTI_RECORD_ABI: 6050 is the only generation besides the newest."
#endif
#endif
"""
HEADERS = {
    "cupti_result.h": ("_CUPTI_RESULT_H_", "Result codes of every CUPTI function.", ["cupti_common.h"], ["cupti_result"]),
    "cupti_version.h": ("_CUPTI_VERSION_H_", "The version of the CUPTI interface: major * 10000 + minor * 100 + update from 13.0 on.",
                        ["cuda_stdint.h", "cupti_common.h", "cupti_result.h"], ["cupti_version"]),
    "cupti_events.h": ("_CUPTI_EVENTS_H_",
                       "The Event API: counters of a device, by domain and group.\n\n"
                       "Arrays that are filled: *arraySizeBytes (or *valueSize) is the room in bytes on entry and the bytes\n"
                       "written on return. Ids stay valid for the life of the process; groups until they are destroyed or\n"
                       "their context is. One group may be used by one thread at a time.",
                       ["cuda.h", "cuda_stdint.h", "string.h", "cupti_common.h", "cupti_result.h"], ["cupti_events", "cupti_events_6_5"]),
    "cupti_metrics.h": ("_CUPTI_METRIC_H_", "The Metric API: values computed from events and device facts.",
                        ["cuda.h", "cuda_stdint.h", "string.h", "cupti_common.h", "cupti_events.h", "cupti_result.h"], ["cupti_metrics"]),
    "cupti_callbacks.h": ("__CUPTI_CALLBACKS_H__",
                          "The Callback API: functions of the client that run inside CUDA calls.\n\n"
                          "Callbacks run on the thread that causes them; what they are given lives until they return.\n"
                          "Subscribing, enabling and unsubscribing are safe from any thread.",
                          ["cuda.h", "builtin_types.h", "cuda_stdint.h", "string.h", "cupti_common.h", "cupti_result.h"], ["cupti_callbacks"]),
    "cupti_activity.h": ("_CUPTI_ACTIVITY_H_",
                         "The Activity API: records of what happened, in buffers of the client's.\n\n"
                         "Times are nanoseconds of CUPTI's clock (cuptiGetTimestamp); 0 is unknown. Sizes are bytes. Strings\n"
                         "in records live as long as the library is loaded. A record's kind tells its structure; the newest\n"
                         "structure is written unless the client chose others. Functions are safe from any thread.",
                         ["cuda.h", "cupti_callbacks.h", "cupti_common.h", "cupti_events.h", "cupti_metrics.h", "cupti_result.h"],
                         ["cupti_activity", "cupti_activity_6_5"]),
    "cupti_activity_deprecated.h": ("_CUPTI_ACTIVITY_DEPRECATED_H_",
                                    "Record structures of earlier releases. Included by cupti_activity.h.", None, ["cupti_activity_deprecated"]),
    "cupti_nvtx_cbid.h": ("_CUPTI_NVTX_CBID_H_", "Callback ids of NVTX functions.", [], None),
    "cupti_driver_cbid.h": ("_CUPTI_DRIVER_CBID_H_", "Callback ids of CUDA driver functions.", [], None),
    "cupti_runtime_cbid.h": ("_CUPTI_RUNTIME_CBID_H", "Callback ids of CUDA runtime functions, with the release that introduced each form.", [], None),
    "cupti_pcsampling.h": ("_CUPTI_PCSAMPLING_H_", "PC sampling over ranges of a program.", ["cuda.h", "stddef.h", "stdint.h", "cupti_common.h", "cupti_result.h"], ["cupti_pcsampling"]),
    "cupti_pmsampling.h": ("_CUPTI_PMSAMPLING_H_", "Performance-monitor sampling.", ["cuda.h", "stddef.h", "stdint.h", "cupti_common.h", "cupti_result.h"], ["cupti_pmsampling"]),
    "cupti_profiler_target.h": ("_CUPTI_PROFILER_TARGET_H_",
                                "The Profiling API on the profiled machine, and clock control.\n\n"
                                "Parameter structures: set structSize to the _STRUCT_SIZE macro and pPriv to NULL.",
                                ["cuda.h", "stddef.h", "stdint.h", "cupti_common.h", "cupti_result.h"], ["cupti_profiler_target", "cupti_clock_control"]),
    "cupti_profiler_host.h": ("_CUPTI_PROFILER_HOST_H_", "The Profiling API where results are evaluated.",
                              ["stddef.h", "stdint.h", "cupti_common.h", "cupti_result.h", "cupti_profiler_target.h"], ["cupti_profiler_host"]),
    "cupti_range_profiler.h": ("_CUPTI_RANGE_PROFILER_H_", "The range profiler.",
                               ["cuda.h", "stddef.h", "stdint.h", "cupti_common.h", "cupti_profiler_target.h", "cupti_result.h"], ["cupti_range_profiler"]),
    "cupti_target.h": ("_CUPTI_TARGET_H_", "Facts about the device that profiling targets.", ["stddef.h", "stdint.h", "cupti_common.h", "cupti_result.h"], ["cupti_target"]),
    "cupti_checkpoint.h": ("_CUPTI_CHECKPOINT_H_", "Saving and restoring a device's state, for passes of a program's own.",
                           ["cuda.h", "stddef.h", "stdint.h", "cupti_common.h", "cupti_result.h"], ["cupti_checkpoint"]),
    "cupti_sass_metrics.h": ("_CUPTI_SASS_METRICS_H_", "Metrics by instrumented machine instructions.",
                             ["cuda.h", "cupti_common.h", "cupti_profiler_target.h", "cupti_result.h"], ["cupti_sass_metrics"]),
}


def decl(name):
    return table("decl/cupti/%s.tsv" % name)


def header(name, docs, enumerators, fields, missing):
    guard, about, includes, tables_ = HEADERS[name]
    e = emit.Emitter(docs, {}, call="CUPTIAPI", enumerators=enumerators, fields=fields)
    rows = [r for t in tables_ for r in decl(t)]
    out = [cBanner(GENERATOR, about), "#ifndef %s\n#define %s\n\n" % (guard, guard)]
    if includes is None:
        out.append("#include <cupti_activity.h>\n")
    else:
        out += ["#include <%s>\n" % i for i in includes]
    if name == "cupti_activity.h":
        out.append("#if defined(CUPTI_DIRECTIVE_SUPPORT)\n#include <Openacc/cupti_openacc.h>\n#include <Openmp/cupti_openmp.h>\n#endif\n")
        out.append(RECORD_ABI)
    if name == "cupti_checkpoint.h":
        out.append("\n#ifdef __cplusplus\nnamespace NV {\nnamespace Cupti {\nnamespace Checkpoint {\n#endif\n")
        rows = [r if r["item"] != "define" else dict(r, text=r["text"].replace("nullptr", "0")) for r in rows]
    out.append(OPEN)
    out.append(e.emit(rows))
    if name == "cupti_activity.h":
        # The symbol behind -DCUPTI_RECORD_ABI=6050 is declared for those who implement it.
        out.append("\n#ifndef CUPTI_RECORD_ABI\n" + e.emit(decl("cupti_activity_sonde")) + "#endif\n")
    out.append(CLOSE)
    if name == "cupti_checkpoint.h":
        out.append("\n#ifdef __cplusplus\n}  // namespace Checkpoint\n}  // namespace Cupti\n}  // namespace NV\n#endif\n")
    if name == "cupti_activity.h":
        out.append("\n#include <cupti_activity_deprecated.h>\n")
    out.append("\n#endif /* %s */\n" % guard)
    missing += e.missing
    return "".join(out)


def cbidHeader(name, tag, typedef, prefix, rows, size):
    guard, about, _, _ = HEADERS[name]
    out = [cBanner(GENERATOR, about), "#ifndef %s\n#define %s\n\n" % (guard, guard)]
    out.append("typedef enum%s {\n  %sINVALID = 0,\n" % (" " + tag if tag else "", prefix))
    out += ["  %s%s = %d,\n" % (prefix, n, v) for v, n in rows]
    out.append("  %sSIZE = %d,\n  %sFORCE_INT = 0x7fffffff\n} %s;\n\n#endif /* %s */\n" % (prefix, size, prefix, typedef, guard))
    return "".join(out)


def metaHeader(guard, about, prologue, structs):
    out = [cBanner(GENERATOR, about), "#ifndef %s\n#define %s\n\n" % (guard, guard), prologue, "\n"]
    for name, params in structs:
        fields = [p for p in params.split("; ") if p]
        out.append("typedef struct %s_params_st {\n" % name)
        out += ["  %s;\n" % f for f in fields]
        out.append("} %s_params;\n\n" % name)
    out.append("#endif /* %s */\n" % guard)
    return "".join(out)


def oldDriverTypes():
    """Structures of before CUDA 3.2, which some parameter structures point to."""
    e = emit.Emitter({}, {})
    rows = table("decl/cuda/cuda_old.tsv")
    return ("/* Of before CUDA 3.2: addresses and sizes of 32 bits. */\n#if !defined(__CUDA_API_VERSION_INTERNAL)\n" +
            e.emit(rows).lstrip("\n") + "#endif\n")


NVTX_TYPES = """#include <cuda.h>
#include <stdint.h>
#include <wchar.h>

/* NVTX's own headers where they are installed; otherwise the few types that are named here. */
#if defined(__has_include)
#if __has_include(<nvtx3/nvToolsExtCudaRt.h>) && __has_include(<nvtx3/nvToolsExtSync.h>)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCuda.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtSync.h>
#define SONDE_NVTX_TYPES
#endif
#endif
#ifndef SONDE_NVTX_TYPES
#define SONDE_NVTX_TYPES
#include <driver_types.h>
typedef uint64_t nvtxRangeId_t;
typedef struct nvtxEventAttributes_v2 nvtxEventAttributes_t;
typedef struct nvtxDomainRegistration_st* nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st* nvtxStringHandle_t;
typedef struct nvtxResourceHandle* nvtxResourceHandle_t;
typedef struct nvtxResourceAttributes_v0 nvtxResourceAttributes_t;
typedef struct nvtxSyncUser* nvtxSyncUser_t;
typedef struct nvtxSyncUserAttributes_v0 nvtxSyncUserAttributes_t;
#endif
"""
REMOVED_TYPES = """#include <cuda_runtime_api.h>

/* Types that left the runtime with the functions below. */
struct textureReference;
struct surfaceReference;
struct cudaLaunchParams;
struct cudaTextureDesc_v2;
enum cudaOutputMode {
  cudaKeyValuePair = 0,
  cudaCSV = 1
};
typedef enum cudaOutputMode cudaOutputMode_t;
"""


def generate():
    docs = emit.loadDocs()
    enumerators = {r["name"]: r["text"] for r in table("docs/enumerators.tsv")}
    fields = {r["name"]: r["text"] for r in table("docs/fields.tsv")}
    missing = []
    files = {"include/" + n: header(n, docs, enumerators, fields, missing) for n in HEADERS if HEADERS[n][3]}
    driver = [r for r in table("driver_functions.tsv") if r.cbid != "-"]
    runtime = [r for r in table("runtime_functions.tsv") if r.cbid != "-"]
    nvtx = table("nvtx_functions.tsv")
    files["include/cupti_driver_cbid.h"] = cbidHeader(
        "cupti_driver_cbid.h", "CUpti_driver_api_trace_cbid_enum", "CUpti_driver_api_trace_cbid", "CUPTI_DRIVER_TRACE_CBID_",
        [(int(r.cbid), r.symbol) for r in driver], max(int(r.cbid) for r in driver) + 1)
    files["include/cupti_runtime_cbid.h"] = cbidHeader(
        "cupti_runtime_cbid.h", "CUpti_runtime_api_trace_cbid_enum", "CUpti_runtime_api_trace_cbid", "CUPTI_RUNTIME_TRACE_CBID_",
        [(int(r.cbid), r.name) for r in runtime], max(int(r.cbid) for r in runtime) + 1)
    files["include/cupti_nvtx_cbid.h"] = cbidHeader(
        "cupti_nvtx_cbid.h", "", "CUpti_nvtx_api_trace_cbid", "CUPTI_CBID_NVTX_",
        [(int(r.cbid), r.symbol) for r in nvtx], max(int(r.cbid) for r in nvtx) + 1)
    about = ("Parameters of %s: functionParams of a callback points to the\nstructure <name>_params, whose members are the function's "
             "parameters in order. They live until the callback returns.\nA function without parameters has no structure.")
    files["include/generated_cuda_meta.h"] = metaHeader(
        "SONDE_GENERATED_CUDA_META_H_", about % "driver functions", "#include <cuda.h>\n#include <cudaProfiler.h>\n\n" + oldDriverTypes(),
        [(r.symbol, r.params) for r in driver if r.params_struct != "-"])
    files["include/generated_cuda_runtime_api_meta.h"] = metaHeader(
        "SONDE_GENERATED_CUDA_RUNTIME_API_META_H_", about % "runtime functions of CUDA 13.0", "#include <cuda_runtime_api.h>\n",
        [(r.name, r.params) for r in runtime if r.header == "current"])
    files["include/generated_cudart_removed_meta.h"] = metaHeader(
        "SONDE_GENERATED_CUDART_REMOVED_META_H_", about % "runtime functions, and forms of them, that CUDA 13.0 no longer has", REMOVED_TYPES,
        [(r.name, r.params) for r in runtime if r.header == "removed"])
    files["include/generated_nvtx_meta.h"] = metaHeader(
        "SONDE_GENERATED_NVTX_META_H_", about % "NVTX functions", NVTX_TYPES,
        [(r.symbol, r.params) for r in nvtx if r.params_struct != "-"])
    if missing:
        raise SystemExit("no comment in api/docs/ for: " + " ".join(missing))
    return files
