#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refreshes the tables of api/ from a CUDA toolkit's headers.

    import_facts.py /usr/local/cuda [--to api]

Only facts are taken: names, types, values, order of fields. No comment and no
text. Everything else in the project reads the tables, never a toolkit.
"""
import argparse
import os
import re
import subprocess
import cdecl
from cdecl import clean

CUDA = ["cuda.h", "cudaProfiler.h", "driver_types.h", "surface_types.h", "texture_types.h", "library_types.h",
        "cuda_runtime_api.h", "cuda_profiler_api.h"]
CUPTI = ["cupti_result.h", "cupti_version.h", "cupti_callbacks.h", "cupti_events.h", "cupti_metrics.h",
         "cupti_activity.h", "cupti_activity_deprecated.h", "cupti_nvtx_cbid.h", "cupti_pcsampling.h",
         "cupti_pmsampling.h", "cupti_profiler_target.h", "cupti_profiler_host.h", "cupti_range_profiler.h",
         "cupti_target.h", "cupti_checkpoint.h", "cupti_sass_metrics.h"]
NVPERF = ["nvperf_common.h", "nvperf_target.h", "nvperf_host.h", "nvperf_cuda_host.h"]
SKIP_DEFINES = re.compile(r'^(_|CUDAAPI$|CUDA_CB$|CUDART_CB$|CUDART_DEVICE$|CUPTIAPI$|CUPTIUTILAPI$|EXCLUDE_FROM_RTC$|'
                          r'CU_UUID_HAS_BEEN_DEFINED$|CUDART_VERSION$|CUDA_VERSION$|RESOURCE_ABI|'
                          r'CUPTI_[A-Z_]*STRUCT_SIZE$|NOMINMAX|WIN32_LEAN)')
known = {}


def read(root, name):
    with open(os.path.join(root, "include", name), errors="replace") as f:
        return f.read()


def parseFunction(text):
    m = re.match(r'(.*?)\b(\w+)\s*\((.*)\)\s*$', text, re.S)
    head, name, params = m.groups()
    flags = []
    if "__cudart_builtin__" in head:
        flags.append("builtin")
    if "DEPRECATED" in head:
        flags.append("deprecated")
    head = re.sub(r'\b(extern|__host__|__device__|__cudart_builtin__|__CUDA_DEPRECATED|CUDAAPI|CUDARTAPI|CUPTIAPI|CUDART_DEVICE)\b', '', head)
    params = re.sub(r'__dv\(([^()]*)\)', r'= \1', params)
    plist = [] if params.strip() in ("", "void") else [clean(re.sub(r'\s*=\s*', ' = ', p)) for p in cdecl.splitTop(params)]
    return name, clean(head), "; ".join(plist), " ".join(flags)


def headerRows(root, header, extra=()):
    """Rows (item, name, text, note) of one header."""
    rows = []
    for item in cdecl.items(re.sub(r'namespace \w+\s*\{', '', read(root, header)), extra):
        if item[0] == "define":
            _, name, params, value = item
            if not params and re.fullmatch(r'0[xX][0-9a-fA-F]+|\d+', value):
                known[name] = int(value, 0)
            if params or SKIP_DEFINES.match(name) or value == "" or (header != "cudaTypedefs.h" and re.search(r'PT(DS|SZ)\(', value)):
                continue
            if re.fullmatch(r'cu[A-Z]\w*', name) and value.startswith(name + "_v"):
                rows.append(("alias", name, value, ""))
            else:
                rows.append(("define", name, value, ""))
            continue
        text = item[1].rstrip("; ")
        text = text.replace("__device_builtin__", "").replace("START_PACKED_ALIGNMENT", "").replace("END_PACKED_ALIGNMENT", "")
        text = re.sub(r'_CONCAT_OUTER\(CUdevResource_v, RESOURCE_ABI_VERSION\)', 'CUdevResource_v1', text)
        text = text.replace("RESOURCE_ABI_EXTERNAL_BYTES", "48")
        text = " ".join(text.split())
        m = re.match(r'(typedef\s+)?(enum|struct|union)\s*(PACKED_ALIGNMENT)?\s*(\w*)\s*(?:PACKED_ALIGNMENT)?\s*\{(.*)\}\s*([\w\s,*]*)$', text, re.S)
        if m:
            typedef, what, packed, tag, body, name = m.groups()
            body = re.sub(r'\{\s*(alignas|_Alignas)\(128\)', '{', "{" + body)[1:]
            align = "align128" if "alignas(128)" in text else ("record" if packed else "")
            rows.append((what, tag or "-", name.strip() or "-", align))
            if what == "enum":
                for n, v, e in cdecl.evaluateEnum(cdecl.enumerators(body), known):
                    hexed = re.fullmatch(r'0[xX][0-9a-fA-F]+', e or "")
                    rows.append(("value", n, e if hexed else str(v), ""))
            else:
                for depth, kind, a, b in cdecl.fields(body):
                    rows.append(({"field": "field", "end": "close"}.get(kind, "open"),
                                 b or "-", a if kind == "field" else ((kind + " " + a).strip() if kind != "end" else ""), str(depth)))
            rows.append(("end", tag or name.strip(), "", ""))
            continue
        if re.match(r'(struct|union|enum)\s+\w+$', text):
            rows.append(("forward", text.split()[1], text, ""))
            continue
        if text.startswith("typedef"):
            text = clean(text)
            pointer = re.search(r'\(\s*\w*\s*\*\s*(\w+)\s*\)\s*\(', text)
            rows.append(("typedef", pointer.group(1) if pointer else cdecl.memberName(text), text[8:], ""))
            continue
        if text.startswith(("static", "inline")):
            continue
        if re.search(r'\)\s*$', text):
            name, result, params, flags = parseFunction(text)
            rows.append(("function", name, result + "|" + params, flags))
            continue
        raise SystemExit("%s: not understood: %s" % (header, text))
    return rows


def write(path, head, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write("\t".join(head) + "\n")
        for r in rows:
            assert not any("\t" in str(c) or "\n" in str(c) for c in r), r
            f.write("\t".join(str(c) for c in r) + "\n")


def metaStructs(root, header):
    """name -> parameter list of a generated_*_meta.h."""
    out = {}
    for item in cdecl.items(re.sub(r'__dv\b(\([^)]*\))?', '', read(root, header))):
        if item[0] != "decl":
            continue
        m = re.match(r'typedef struct (\w+)_params_st\s*\{(.*)\}\s*\w+_params\s*;', item[1], re.S)
        if m:
            out[m.group(1)] = [clean(p) for p in cdecl.splitTop(m.group(2), ";")]
    return out


def cbids(root, header, prefix):
    text = cdecl.stripComments(read(root, header))
    known.clear()
    out, value = [], -1
    for m in re.finditer(r'\b(CUPTI_\w+)\s*(?:=\s*(\w+))?\s*,?', text[text.index("{"):text.rindex("}")]):
        value = int(m.group(2), 0) if m.group(2) else value + 1
        out.append((value, m.group(1)[len(prefix):]))
    return [(v, n) for v, n in out if n not in ("INVALID", "SIZE", "FORCE_INT")]


def symbols(path):
    if not os.path.exists(path):
        return set()
    text = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {re.sub(r'@.*', '', line.split()[-1]) for line in text.splitlines() if " A " not in line}


def pfnVersions(root):
    """(api, variant) -> sorted CUDA versions, from the typed function pointers."""
    out = {}
    for m in re.finditer(r'\*\s*PFN_(\w+?)_v(\d+)(_ptds|_ptsz)?\s*\)', read(root, "cudaTypedefs.h") + read(root, "cudaProfilerTypedefs.h")):
        out.setdefault((m.group(1), m.group(3) or ""), set()).add(int(m.group(2)))
    return out


def release(version):
    minor = version % 1000 // 10
    return "%d.%d" % (version // 1000, minor // 10 if minor >= 10 else minor)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("toolkit")
    parser.add_argument("--to", default=os.path.join(os.path.dirname(__file__), ".."))
    args = parser.parse_args()
    root, to = args.toolkit, args.to

    declarations = {}
    for group, headers in (("cuda", CUDA), ("cupti", CUPTI), ("nvperf", NVPERF)):
        for h in headers:
            known.clear() if h in ("cuda.h", "cupti_result.h") else None
            rows = headerRows(root, h)
            declarations[h] = rows
            write("%s/decl/%s/%s.tsv" % (to, group, h[:-2]), ("item", "name", "text", "note"), rows)
    # The typed function pointers of the driver.
    rows = [r for r in headerRows(root, "cudaTypedefs.h") if r[0] in ("typedef", "define", "struct", "field", "end", "open", "close")]
    write("%s/decl/cuda/cudaTypedefs.tsv" % to, ("item", "name", "text", "note"), rows)
    write("%s/decl/cuda/math_constants.tsv" % to, ("item", "name", "text", "note"),
          [r for r in headerRows(root, "math_constants.h") if r[0] == "define"])
    # Older generations of the driver's functions and structures.
    internal = headerRows(root, "cuda.h", ("__CUDA_API_VERSION_INTERNAL",))
    at = [i for i, r in enumerate(internal) if r[1] == "CUdeviceptr_v1"][0]
    start = max(i for i, r in enumerate(internal[:at]) if r[0] == "function" and r[1] == "cuLogsDumpToMemory") + 1
    old = internal[start:]
    write("%s/decl/cuda/cuda_old.tsv" % to, ("item", "name", "text", "note"),
          [r for r in old if r[0] != "function" and r[0] != "define"])

    # Which source name maps to which stream variant.
    def perThread(header, macro):
        table = {}
        for m in re.finditer(r'#\s*define\s+(\w+)\s+%s(PTDS|PTSZ)\((\w+)\)' % macro, read(root, header)):
            if m.group(1) == m.group(3):
                table[m.group(1)] = m.group(2).lower()
        return table
    driverVariant = perThread("cuda.h", "__CUDA_API_")
    driverVariant.update({m.group(1): m.group(2).lower() for m in re.finditer(
        r'#\s*define\s+\w+\s+__CUDA_API_(?:)(PTDS|PTSZ)\((\w+)\)', "")})
    variants = {}
    for m in re.finditer(r'#\s*define\s+(\w+)\s+__CUDA_API_(PTDS|PTSZ)\((\w+)\)', read(root, "cuda.h")):
        variants[m.group(3)] = (m.group(1), m.group(2).lower())
    runtimeVariant = perThread("cuda_runtime_api.h", "__CUDART_API_")

    # Driver functions.
    prototypes = {}
    for r in [x for x in old if x[0] == "function"] + [x for x in declarations["cuda.h"] + declarations["cudaProfiler.h"] if x[0] == "function"]:
        prototypes[r[1]] = r
    aliases = {r[1]: r[2] for r in declarations["cuda.h"] if r[0] == "alias"}
    meta = metaStructs(root, "generated_cuda_meta.h")
    exported = symbols(os.path.join(root, "lib64/stubs/libcuda.so"))
    pfn = pfnVersions(root)

    def sinceOf(symbol):
        m = re.match(r'(\w+?)(_ptds|_ptsz)?$', symbol)
        plain, variant = m.group(1), m.group(2) or ""
        base = re.sub(r'_v\d$', '', plain)
        versions = sorted(pfn.get((base, variant), ())) or sorted(pfn.get((plain, variant), ()))
        if not versions:
            return "-"
        family = sorted({re.sub(r'_(ptds|ptsz)$', '', s) for s in exported
                         if re.fullmatch(re.escape(base) + r'(_v\d)?' + (variant or ''), s)})
        if len(family) == len(versions) and plain in family:
            return release(versions[family.index(plain)])
        return release(versions[-1] if plain != base else versions[0])

    rows, seen = [], set()
    api = {v: k for k, v in aliases.items()}
    for value, name in cbids(root, "cupti_driver_cbid.h", "CUPTI_DRIVER_TRACE_CBID_"):
        plist = "; ".join(meta[name]) if name in meta else ""
        plain = re.sub(r'_(ptds|ptsz)$', '', name)
        result = prototypes[plain][2].split("|")[0] if plain in prototypes else "CUresult"
        rows.append((value, name, "yes" if name in exported else "no", sinceOf(name), result,
                     name + "_params" if name in meta else "-", plist))
        seen.add(name)
    for name in sorted(exported - seen):
        plain = re.sub(r'_(ptds|ptsz)$', '', name)
        p = prototypes.get(name) or prototypes.get(plain)
        rows.append(("-", name, "yes", sinceOf(name), p[2].split("|")[0] if p else "CUresult", "-",
                     p[2].split("|")[1] if p else "?"))
    write(to + "/driver_functions.tsv", ("cbid", "symbol", "exported", "since", "returns", "params_struct", "params"), rows)
    write(to + "/driver_stream_variants.tsv", ("symbol", "source_name", "variant"),
          sorted((s, n, v) for s, (n, v) in variants.items()))

    # Runtime functions.
    rt = metaStructs(root, "generated_cuda_runtime_api_meta.h")
    removed = metaStructs(root, "generated_cudart_removed_meta.h")
    rtProto = {r[1]: r for r in declarations["cuda_runtime_api.h"] + declarations["cuda_profiler_api.h"] if r[0] == "function"}
    rtExported = symbols(os.path.join(root, "lib64/libcudart.so.13"))
    rows, seen = [], set()
    for value, name in cbids(root, "cupti_runtime_cbid.h", "CUPTI_RUNTIME_TRACE_CBID_"):
        m = re.match(r'(\w+)_v(\d+)$', name)
        symbol, version = m.group(1), int(m.group(2))
        # the newest cbid of a symbol is the one that the 13.0 library reports
        source = "current" if name in rt else ("removed" if name in removed else "-")
        plist = "; ".join(rt.get(name, removed.get(name, [])))
        plain = re.sub(r'_(ptds|ptsz)$', '', symbol)
        result = rtProto[plain][2].split("|")[0] if plain in rtProto else "cudaError_t"
        rows.append((value, name, symbol, "yes" if symbol in rtExported else "no", release(version), result,
                     name + "_params" if source != "-" else "-", source, plist))
        seen.add(symbol)
    for symbol in sorted(rtExported - seen):
        plain = re.sub(r'_(ptds|ptsz)$', '', symbol)
        p = rtProto.get(plain)
        rows.append(("-", "-", symbol, "yes", "-", p[2].split("|")[0] if p else "cudaError_t", "-", "-", p[2].split("|")[1] if p else "?"))
    write(to + "/runtime_functions.tsv",
          ("cbid", "name", "symbol", "exported", "since", "returns", "params_struct", "header", "params"), rows)
    write(to + "/runtime_stream_variants.tsv", ("symbol", "variant"), sorted(runtimeVariant.items()))

    # NVTX functions.
    nv = metaStructs(root, "generated_nvtx_meta.h")
    rows = []
    for value, name in cbids(root, "cupti_nvtx_cbid.h", "CUPTI_CBID_NVTX_"):
        rows.append((value, name, name + "_params" if name in nv else "-", "; ".join(nv.get(name, []))))
    write(to + "/nvtx_functions.tsv", ("cbid", "symbol", "params_struct", "params"), rows)

    # Where a tool finds each NVTX function: module and index of the injection interface.
    declared = {}
    for h in ("nvToolsExt.h", "nvToolsExtCuda.h", "nvToolsExtCudaRt.h", "nvToolsExtSync.h"):
        for m in re.finditer(r'NVTX_DECLSPEC\s+([\w \t*]+?)\s+NVTX_API\s+(\w+)\((.*?)\);', cdecl.stripComments(read(root, "nvtx3/" + h)), re.S):
            params = [] if m.group(3).strip() == "void" else [clean(p) for p in cdecl.splitTop(m.group(3))]
            declared[m.group(2)] = (clean(m.group(1)), "; ".join(params))
    cupti = {n: v for v, n in cbids(root, "cupti_nvtx_cbid.h", "CUPTI_CBID_NVTX_")}
    types = cdecl.stripComments(read(root, "nvtx3/nvtxDetail/nvtxTypes.h"))
    modules = dict(re.findall(r'NVTX_CB_MODULE_(CORE2?|CUDA|CUDART|SYNC)\s*=\s*(\d+)', types))
    rows = []
    for module, number in modules.items():
        for name, index in re.findall(r'NVTX_CBID_%s_(\w+)\s*=\s*(\d+)' % module, types):
            if name not in ("INVALID", "SIZE", "FORCE_INT"):
                result, params = declared["nvtx" + name]
                rows.append((int(number), int(index), module, "nvtx" + name, cupti.get("nvtx" + name, "-"), result, params))
    write(to + "/nvtx_modules.tsv", ("module", "index", "module_name", "symbol", "cupti_cbid", "returns", "params"), sorted(rows))

    # libcupti's exports: those of the library beside the headers, and what exports.tsv has of other releases.
    if os.path.exists(os.path.join(root, "lib64/libcupti.so.13")):
        path = to + "/exports.tsv"
        others = {}
        if os.path.exists(path):
            with open(path) as f:
                others = dict(line.rstrip("\n").split("\t") for line in f.readlines()[1:])
        rows = {s: "13.0" for s in symbols(os.path.join(root, "lib64/libcupti.so.13"))}
        rows.update({s: origin for s, origin in others.items() if origin != "13.0"})
        write(path, ("symbol", "origin"), sorted(rows.items()))


if __name__ == "__main__":
    main()
