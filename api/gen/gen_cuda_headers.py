#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/softgpu/: the CUDA headers whose contents are tables.

vector_types.h, cuda_runtime.h and the other C++ headers are written by hand.
"""
import re
import emit
import since
from tables import cBanner, table

GENERATOR = "gen_cuda_headers.py"
EXTERN_OPEN = "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n#pragma GCC visibility push(default)\n\n"
EXTERN_CLOSE = "\n#pragma GCC visibility pop\n#ifdef __cplusplus\n}\n#endif\n"
DEPRECATED = """
#if defined(__CUDA_API_VERSION_INTERNAL) || defined(CUDA_ENABLE_DEPRECATED)
#define __CUDA_DEPRECATED
#else
#define __CUDA_DEPRECATED __attribute__((deprecated))
#endif
"""
UUID_NAMES = ("CUuuid_st", "CUuuid")
UUID = """
#ifndef CU_UUID_HAS_BEEN_DEFINED
#define CU_UUID_HAS_BEEN_DEFINED
%sstruct CUuuid_st {
  char bytes[16];
};
typedef struct CUuuid_st CUuuid;
#endif
"""


def decl(name):
    return table("decl/cuda/%s.tsv" % name)


def split(rows):
    """Types and macros, functions."""
    return [r for r in rows if r["item"] != "function"], [r for r in rows if r["item"] == "function"]


def streamMacros(prefix, variants):
    """Macros that choose between the legacy and the per-thread default stream."""
    low = {"driver": "__CUDA_API", "runtime": "__CUDART_API"}[prefix]
    out = ["\n/* Which default stream a source name means is chosen before the first include. */\n",
           "#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_VERSION_INTERNAL)\n",
           "#define %s_PER_THREAD_DEFAULT_STREAM\n" % low,
           "#define %s_PTDS(api) api##_ptds\n#define %s_PTSZ(api) api##_ptsz\n#else\n" % (low, low),
           "#define %s_PTDS(api) api\n#define %s_PTSZ(api) api\n#endif\n\n" % (low, low)]
    for source, symbol, variant in variants:
        if source != symbol:
            out.append("#define %s %s_%s(%s)\n" % (source, low, variant.upper(), symbol))
    out.append("#if defined(%s_PER_THREAD_DEFAULT_STREAM)\n" % low)
    for source, symbol, variant in variants:
        if source == symbol:
            out.append("#define %s %s_%s(%s)\n" % (source, low, variant.upper(), symbol))
    out.append("#endif\n")
    return "".join(out)


def sourceOf12(docs, releases):
    """Names as the headers of CUDA 12 had them, for sources that were written for those."""
    functions = {r.symbol: r for r in table("driver_functions.tsv")}
    rows = table("aliases_cuda_12.tsv")
    out = ["""
#if defined(SONDE_CUDA_SOURCE_VERSION) && SONDE_CUDA_SOURCE_VERSION < 13000 && !defined(__CUDA_API_VERSION_INTERNAL)
/* For sources written before CUDA 13, which gave these names other parameters: compile them with
 * -DSONDE_CUDA_SOURCE_VERSION=12000 and they mean what they meant. */
"""]
    out += ["#undef %s\n" % r.source_name for r in rows]
    for r in rows:
        f = functions[r.symbol]
        out.append(emit.prototype(f.returns, r.symbol, f.params, "CUDAAPI"))
        if r.variant != "-":
            out.append(emit.prototype(f.returns, r.symbol + "_" + r.variant, f.params, "CUDAAPI"))
    for r in rows:
        if r.variant != "-":
            out.append("#define %s __CUDA_API_%s(%s)\n" % (r.source_name, r.variant.upper(), r.symbol))
        elif r.symbol != r.source_name:
            out.append("#define %s %s\n" % (r.source_name, r.symbol))
    out.append("#endif\n")
    return "".join(out)


def cudaH(docs, releases):
    rows = decl("cuda")
    old = decl("cuda_old")
    variants = [(r.source_name, r.symbol, r.variant) for r in table("driver_stream_variants.tsv")]
    varied = {v[0] for v in variants}
    aliases = [(r["name"], r["text"]) for r in rows if r["item"] == "alias" and r["name"] not in varied]
    extra = [r for r in rows if r["item"] == "define" and re.fullmatch(r'cu[A-Z]\w+', r["name"])]
    aliases += [(r["name"], r["text"]) for r in extra]
    current = dict(aliases)
    current.update({s: y for s, y, _ in variants})
    # A name is as old as its oldest version.
    functions = since.functionReleases()
    named = dict(functions)
    for source, symbol in current.items():
        if symbol in functions:
            named.setdefault(source, functions[symbol])
    everything = since.typeReleases([rows, decl("cudaProfiler"), decl("driver_types"), decl("cuda_runtime_api")], named)
    releases.update(everything)
    e = emit.Emitter(docs, {**everything, **named}, call="CUDAAPI", oldest=("2.0",))
    types, prototypes = split([r for r in rows if r not in extra])
    out = [cBanner(GENERATOR, "The CUDA driver API, version 13.0, for the software GPU and for every real driver of that ABI.\n\n"
                   "Unless a comment says otherwise: functions return CUDA_SUCCESS or an error and then leave their outputs\n"
                   "alone; they may be called from any thread; they can also return errors of earlier asynchronous work;\n"
                   "they need cuInit, and those on a context work on the calling thread's current one. Handles and\n"
                   "pointers stay the caller's; sizes are bytes. The release given is that of the function's first\n"
                   "appearance, for a type that of its first user."),
           "#ifndef __cuda_cuda_h__\n#define __cuda_cuda_h__\n\n#include <stdint.h>\n#include <stdlib.h>\n", DEPRECATED,
           "\n#define CUDA_VERSION 13000\n\n#define CUDAAPI\n#define CUDA_CB\n",
           "\n#if defined(__cplusplus)\n#define SONDE_ALIGN(n) alignas(n)\n#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n"
           "#define SONDE_ALIGN(n) _Alignas(n)\n#else\n#define SONDE_ALIGN(n) __attribute__((aligned(n)))\n#endif\n",
           "\n/* A plain name means the newest version of a function. */\n"]
    out += ["#define %s %s\n" % a for a in aliases]
    out.append(streamMacros("driver", variants))
    out.append(EXTERN_OPEN)
    out.append(e.emit(types, skip=UUID_NAMES).replace("typedef CUdeviceptr_v2 CUdeviceptr;", "typedef CUdeviceptr_v2 CUdeviceptr;"))
    text = "".join(out)
    # The UUID is shared with driver_types.h.
    marker = "#define CU_IPC_HANDLE_SIZE"
    assert marker in text
    text = text.replace(marker, (UUID % e.doc("CUuuid")).lstrip("\n") + "\n" + marker, 1)
    out = [text, "\n/* ------------------------------------------------------------------ functions */\n", e.emit(prototypes)]
    out.append(sourceOf12(docs, releases))
    # Every exported version, for those who implement or hook the driver.
    out.append("\n#if defined(__CUDA_API_VERSION_INTERNAL)\n/* Every version that a driver exports, under its own name. */\n")
    names = sorted({a[0] for a in aliases} | varied)
    out += ["#undef %s\n" % n for n in names]
    quiet = emit.Emitter({}, {}, call="CUDAAPI")
    out.append(quiet.emit([r for r in old if r["item"] != "function"]))
    out.append("\n")
    for r in table("driver_functions.tsv"):
        if r.exported == "yes" and r.params != "?" and not re.match(r'cu(GL|Graphics(GL|EGL|VDPAU)|EGL|VDPAU|Profiler)', r.symbol):
            out.append(emit.prototype(r.returns, r.symbol, r.params, "CUDAAPI"))
    out.append("""#elif defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
/* A lookup by a program of per-thread streams finds the per-thread variants. */
static inline CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **funcPtr, int driverVersion, cuuint64_t flags,
                                                CUdriverProcAddressQueryResult *symbolStatus) {
  const cuuint64_t kinds = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  return cuGetProcAddress_v2(symbol, funcPtr, driverVersion,
                             (flags & kinds) ? flags : flags | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                             symbolStatus);
}
#define cuGetProcAddress_v2 cuGetProcAddress_v2_ptsz
#endif
""")
    out.append(EXTERN_CLOSE)
    out.append("\n#undef __CUDA_DEPRECATED\n#endif /* __cuda_cuda_h__ */\n")
    return "".join(out), e


def simple(name, guard, about, includes, docs, releases, prefix="", call="", tail="", skip=(), defaults=False, deprecated=False):
    e = emit.Emitter(docs, releases, call=call, prefix=prefix, defaults=defaults, oldest=("2.0", "3.2"))
    body = e.emit(decl(name), skip=skip)
    functions = any(r["item"] == "function" for r in decl(name))
    out = [cBanner(GENERATOR, about), "#ifndef %s\n#define %s\n\n" % (guard, guard), includes]
    if deprecated:
        out.append(DEPRECATED)
    if functions:
        out.append(EXTERN_OPEN)
    else:
        out.append("\n")
    out.append(body)
    if functions:
        out.append(EXTERN_CLOSE)
    out.append(tail)
    if deprecated:
        out.append("\n#undef __CUDA_DEPRECATED\n")
    out.append("\n#endif /* %s */\n" % guard)
    return "".join(out), e


def runtimeApi(docs, releases):
    rows = decl("cuda_runtime_api")
    functions = since.functionReleases()
    variants = [(r.symbol, r.symbol, r.variant) for r in table("runtime_stream_variants.tsv")]
    e = emit.Emitter(docs, {**releases, **functions}, call="CUDARTAPI", prefix="extern __host__ ", defaults=True,
                     oldest=("2.0", "3.2"))
    types, prototypes = split(rows)
    out = [cBanner(GENERATOR, "The CUDA runtime API, version 13.0: the part that is plain C.\n\n"
                   "Unless a comment says otherwise: functions return cudaSuccess or an error, which cudaGetLastError gives\n"
                   "once more; they may be called from any thread; the first call of a process makes the device's primary\n"
                   "context; they can also return errors of earlier asynchronous work. Streams: 0 is the default stream.\n"
                   "Sizes are bytes. The release given is that of the function's first appearance."),
           "#ifndef __CUDA_RUNTIME_API_H__\n#define __CUDA_RUNTIME_API_H__\n\n#define CUDART_VERSION 13000\n"
           "#ifndef __CUDART_API_VERSION\n#define __CUDART_API_VERSION CUDART_VERSION\n#endif\n\n"
           '#include "crt/host_defines.h"\n#include "builtin_types.h"\n#include "cuda_device_runtime_api.h"\n',
           streamMacros("runtime", variants),
           "\n/* A default argument, in C++ alone. */\n#if defined(__cplusplus)\n#define __dv(v) = v\n#else\n#define __dv(v)\n#endif\n"
           "#ifndef CUDART_DEVICE\n#define CUDART_DEVICE __device__\n#endif\n", DEPRECATED, EXTERN_OPEN, e.emit(types), e.emit(prototypes)]
    out.append("\n#if defined(__CUDA_API_VERSION_INTERNAL)\n/* The legacy-stream names, for those who implement or hook the runtime. */\n")
    out += ["#undef %s\n" % v[0] for v in variants]
    byName = {r["name"]: r for r in prototypes}
    quiet = emit.Emitter({}, {}, call="CUDARTAPI", prefix="extern __host__ ")
    for v in variants:
        if v[0] in byName:
            r = byName[v[0]]
            result, params = r["text"].split("|", 1)
            pre = "extern __host__ " + ("__cudart_builtin__ " if "builtin" in r["note"] else "")
            out.append(emit.prototype(result, v[0], params, "CUDARTAPI", pre))
    out.append("#elif defined(__CUDART_API_PER_THREAD_DEFAULT_STREAM)\n"
               "/* Compilers call these two by their plain names for <<<…>>>. */\n")
    for name, args in (("cudaLaunchKernel", "func, gridDim, blockDim, args, sharedMem, stream"), ("cudaLaunchKernelExC", "config, func, args")):
        result, params = byName[name]["text"].split("|", 1)
        out.append("#undef %s\nstatic __inline__ __host__ %s %s(%s) {\n  return %s_ptsz(%s);\n}\n#define %s __CUDART_API_PTSZ(%s)\n" %
                   (name, result, name, params.replace("; ", ", "), name, args, name, name))
    out.append("#endif\n" + EXTERN_CLOSE + "\n#undef __dv\n#undef __CUDA_DEPRECATED\n#endif /* __CUDA_RUNTIME_API_H__ */\n")
    return "".join(out), e


# Constants that are bit patterns, as both sides can write them.
BIT_PATTERNS = {"CUDART_INF_F": "__builtin_huge_valf()", "CUDART_NAN_F": '__builtin_nanf("0x3fffff")',
                "CUDART_MIN_DENORM_F": "1.401298464e-45F", "CUDART_MAX_NORMAL_F": "3.402823466e38F", "CUDART_NEG_ZERO_F": "(-0.0F)",
                "CUDART_INF": "__builtin_huge_val()", "CUDART_NAN": '(-__builtin_nan(""))', "CUDART_NEG_ZERO": "(-0.0)",
                "CUDART_MIN_DENORM": "4.9406564584124654e-324"}


def mathConstants():
    out = [cBanner(GENERATOR, "Constants of mathematics and of the number formats; _F in single precision, _HI and _LO as a sum."),
           "#ifndef __MATH_CONSTANTS_H__\n#define __MATH_CONSTANTS_H__\n\n"]
    for r in decl("math_constants"):
        out.append("#define %s %s\n" % (r["name"], BIT_PATTERNS.get(r["name"], r["text"])))
    out.append("\n#endif /* __MATH_CONSTANTS_H__ */\n")
    return "".join(out)


def generate():
    docs = emit.loadDocs()
    releases = {}
    files, missing = {}, []

    def add(path, result):
        files["include/softgpu/" + path] = result[0]
        missing.extend(result[1].missing)
    add("cuda.h", cudaH(docs, releases))
    functions = since.functionReleases()
    both = {**releases, **functions}
    text, e = simple("cudaTypedefs", "CUDATYPEDEFS_H",
                     "Types of pointers to driver functions, for what cuGetProcAddress returns:\n"
                     "PFN_<function>_v<version>, and PFN_<function> for the newest.",
                     "#include <cuda.h>\n\n#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)\n"
                     "#define __API_TYPEDEF_PTDS(api, legacy, perThread) api##_v##perThread##_ptds\n"
                     "#define __API_TYPEDEF_PTSZ(api, legacy, perThread) api##_v##perThread##_ptsz\n#else\n"
                     "#define __API_TYPEDEF_PTDS(api, legacy, perThread) api##_v##legacy\n"
                     "#define __API_TYPEDEF_PTSZ(api, legacy, perThread) api##_v##legacy\n#endif\n", {}, {})
    files["include/softgpu/cudaTypedefs.h"] = text
    add("cudaProfiler.h", simple("cudaProfiler", "cuda_profiler_H", "Start and stop of profiling from the program, driver API.",
                                 "#include <cuda.h>\n", docs, both, call="CUDAAPI", deprecated=True))
    uuid = (UUID % "/** A 128-bit identifier. CUDA 9.2. */\n")
    result = simple("driver_types", "__DRIVER_TYPES_H__", "Types of the CUDA runtime API.",
                    '#include <limits.h>\n#include <stddef.h>\n\n#include "crt/host_defines.h"\n#include "vector_types.h"\n\n#define CUDART_CB\n' + uuid,
                    docs, both, skip=UUID_NAMES, deprecated=True)
    add("driver_types.h", result)
    add("surface_types.h", simple("surface_types", "__SURFACE_TYPES_H__", "Types of surface objects.", '#include "driver_types.h"\n', docs, both))
    add("texture_types.h", simple("texture_types", "__TEXTURE_TYPES_H__", "Types of texture objects.", '#include "driver_types.h"\n', docs, both))
    add("library_types.h", simple("library_types", "__LIBRARY_TYPES_H__", "Element types and version fields shared by CUDA libraries.", "", docs, both, tail=
        "\n#ifndef __cplusplus\n" + "".join("typedef enum %s %s;\n" % (r["name"], r["name"]) for r in decl("library_types") if r["item"] == "enum") + "#endif\n"))
    add("cuda_runtime_api.h", runtimeApi(docs, releases))
    add("cuda_profiler_api.h", simple("cuda_profiler_api", "__CUDA_PROFILER_API_H__", "Start and stop of profiling from the program, runtime API.",
                                      '#include "driver_types.h"\n', docs, both, prefix="extern __host__ ", call="CUDARTAPI", deprecated=True))
    files["include/softgpu/math_constants.h"] = mathConstants()
    if missing:
        raise SystemExit("no comment in api/docs/ for: " + " ".join(missing))
    return files
