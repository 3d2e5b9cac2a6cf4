#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/abi/generated/*.c: what the headers must be, as static assertions.

The same files are compiled with our headers and, where it is installed, with
the toolkit's, so that neither the tables nor the generators can drift.
"""
import re
import structs
from tables import cBanner, table

GENERATOR = "gen_abi_tests.py"
MACROS = """
#define SIZE(type, size, align) \\
  _Static_assert(sizeof(type) == (size) && _Alignof(type) == (align), "size of " #type)
#define AT(type, member, offset, size)                                                          \\
  _Static_assert(offsetof(type, member) == (offset) && sizeof(((type*)0)->member) == (size), \\
                 "place of " #type "." #member)
#define VALUE(name, value) _Static_assert((name) == (value), "value of " #name)
#define SAME(a, b, what) _Static_assert(__builtin_types_compatible_p(__typeof__(a), __typeof__(b)), "type of " what)
"""
# Declared by this project's headers beyond those of CUDA 13.0.
BEYOND = ("cupti_clock_control", "cupti_events_6_5", "cupti_activity_6_5")


def start(includes, text, before=""):
    return [cBanner(GENERATOR, text), before, "#include <stddef.h>\n", "".join("#include <%s>\n" % i for i in includes), MACROS, "\n"]


def layouts(group, includes):
    out = start(includes, "Sizes and places of members.")
    for r in table("layouts.tsv"):
        if r["group"] != group:
            continue
        if r["field"] == "(whole)":
            out.append("SIZE(%s, %s, %s);\n" % (r["struct"], r["offset_or_size"], r["size_or_align"]))
        else:
            out.append("AT(%s, %s, %s, %s);\n" % (r["struct"], r["field"], r["offset_or_size"], r["size_or_align"]))
    return "".join(out)


def values(group, includes):
    out = start(includes, "Values of enumerators.")
    for name, value in structs.enumerators(group):
        if not (group == "cupti" and name.startswith(HOST_ENUMS)):
            out.append("VALUE(%s, %s);\n" % (name, value))
    if group == "cupti":
        for r in table("driver_functions.tsv"):
            out.append("VALUE(CUPTI_DRIVER_TRACE_CBID_%s, %s);\n" % (r.symbol, r.cbid))
        for r in table("runtime_functions.tsv"):
            out.append("VALUE(CUPTI_RUNTIME_TRACE_CBID_%s, %s);\n" % (r.name, r.cbid))
        for r in table("nvtx_functions.tsv"):
            out.append("VALUE(CUPTI_CBID_NVTX_%s, %s);\n" % (r.symbol, r.cbid))
    return "".join(out)


HOST_ENUMS = ("CUPTI_METRIC_TYPE_", "CUPTI_PROFILER_TYPE_")


def plain(params):
    return ", ".join(re.sub(r' = .*$', '', p) for p in params) or "void"


def functions(group, includes):
    out = start(includes, "Types of functions.")
    for name, result, params, origin in structs.functions(group):
        if origin == "cupti_profiler_host":
            continue
        out.append("typedef %s type_%s(%s);\nSAME(%s, type_%s, \"%s\");\n" % (result, name, plain(params), name, name, name))
    return "".join(out)


def everyDriverVersion():
    out = start(["cuda.h"], "Types of every version of every driver function.", "#define __CUDA_API_VERSION_INTERNAL\n")
    declared = {r["name"] for r in table("decl/cuda/cuda.tsv") if r["item"] == "function"}
    declared |= {re.sub(r'_(ptds|ptsz)$', '', r["name"]) for r in table("decl/cuda/cuda.tsv") if r["item"] == "alias"}
    for r in table("driver_functions.tsv"):
        if r.exported != "yes" or r.params == "?" or re.match(r'cu(GL|Graphics(GL|EGL|VDPAU)|EGL|VDPAU|Profiler)', r.symbol):
            continue
        if r.symbol in UNDECLARED:
            continue
        out.append("typedef %s type_%s(%s);\nSAME(%s, type_%s, \"%s\");\n" % (r.returns, r.symbol, plain([p for p in r.params.split("; ") if p]), r.symbol, r.symbol, r.symbol))
    return "".join(out)


# Exported by drivers, declared by no toolkit header.
UNDECLARED = set()


def parameters():
    out = start(["cupti.h"], "Parameter structures of callbacks.")
    rows = [(r.symbol, r.params) for r in table("driver_functions.tsv") if r.params_struct != "-"]
    rows += [(r.name, r.params) for r in table("runtime_functions.tsv") if r.header == "current"]
    for name, params in rows:
        fields = [p for p in params.split("; ") if p]
        if not fields:
            continue
        out.append("struct mirror_%s { %s; };\n" % (name, "; ".join(fields)))
        out.append("SIZE(%s_params, sizeof(struct mirror_%s), _Alignof(struct mirror_%s));\n" % (name, name, name))
        for f in fields:
            member = re.search(r'(\w+)(\[[^\]]*\])*$', f).group(1)
            out.append("SAME(((%s_params*)0)->%s, ((struct mirror_%s*)0)->%s, \"%s.%s\");\n" % (name, member, name, member, name, member))
    return "".join(out)


def recordVersions():
    """A record that is a prefix of its next version can be read in its place; padding may shrink."""
    out = start(["cupti.h"], "Which records can be read as their older versions, and which cannot.")
    out.append("#define KEPT(older, newer, member) \\\n  _Static_assert(offsetof(older, member) == offsetof(newer, member), #older \".\" #member)\n")
    out.append("#define GROWN(older, newer) _Static_assert(sizeof(older) <= sizeof(newer), #older)\n\n")
    members = {}
    for r in table("layouts.tsv"):
        members.setdefault(r["struct"], {})[r["field"]] = r["offset_or_size"]
    for r in table("record_versions.tsv"):
        older, newer = members[r.record], members[r.next]
        real = [m for m in older if m != "(whole)" and not re.match(r'(pad|reserved)', m)]
        moved = [m for m in real if older[m] != newer.get(m)]
        if (not moved) != (r.prefix_of_next == "yes"):
            raise SystemExit("record_versions.tsv: %s and %s: moved: %s" % (r.record, r.next, moved))
        if not moved:
            out.append("GROWN(%s, %s);\n" % (r.record, r.next))
            out += ["KEPT(%s, %s, %s);\n" % (r.record, r.next, m) for m in real]
    return "".join(out)


def generate():
    cupti = structs.CUPTI_INCLUDES
    return {"tests/abi/generated/" + name: text for name, text in {
        "layout_cuda.c": layouts("cuda", structs.CUDA_INCLUDES),
        "layout_cupti.c": layouts("cupti", cupti),
        "values_cuda.c": values("cuda", structs.CUDA_INCLUDES),
        "values_cupti.c": values("cupti", cupti),
        "functions_cuda.c": functions("cuda", structs.CUDA_INCLUDES),
        "functions_cupti.c": functions("cupti", cupti),
        "layout_nvperf.c": layouts("nvperf", structs.NVPERF_INCLUDES),
        "values_nvperf.c": values("nvperf", structs.NVPERF_INCLUDES),
        "functions_nvperf.c": functions("nvperf", structs.NVPERF_INCLUDES),
        "functions_driver_all.c": everyDriverVersion(),
        "parameters.c": parameters(),
        "record_versions.c": recordVersions(),
    }.items()}
