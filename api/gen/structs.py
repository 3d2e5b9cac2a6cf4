# SPDX-License-Identifier: Apache-2.0
"""The structures of the declaration tables, with the paths of their members."""
from tables import table

CUDA = ["cuda", "cudaProfiler", "driver_types", "surface_types", "texture_types", "library_types", "cuda_runtime_api"]
CUPTI = ["cupti_callbacks", "cupti_events", "cupti_metrics", "cupti_activity", "cupti_activity_deprecated", "cupti_pcsampling",
         "cupti_pmsampling", "cupti_profiler_target", "cupti_profiler_host", "cupti_range_profiler", "cupti_target",
         "cupti_sass_metrics", "cupti_version", "cupti_result"]
NVPERF = ["nvperf_common", "nvperf_target", "nvperf_host", "nvperf_cuda_host"]
GROUPS = {"cuda": CUDA, "cupti": CUPTI, "nvperf": NVPERF}
CUDA_INCLUDES = ["cuda.h", "cudaProfiler.h", "cuda_runtime_api.h", "library_types.h"]
CUPTI_INCLUDES = ["cupti.h", "cupti_pcsampling.h", "cupti_pmsampling.h", "cupti_profiler_target.h",
                  "cupti_range_profiler.h", "cupti_target.h", "cupti_sass_metrics.h"]
NVPERF_INCLUDES = ["nvperf_target.h", "nvperf_cuda_host.h"]


def cName(row):
    names = [n.strip() for n in row["text"].split(",") if n.strip() not in ("-", "")]
    return names[0].lstrip("*") if names and not names[0].startswith("*") else "%s %s" % (row["item"], row["name"])


def rowsOf(group):
    for n in GROUPS[group]:
        for r in table("decl/%s/%s.tsv" % (group, n)):
            yield n, r


def structures(group):
    """Yields (C name, [member paths]) in order."""
    current, path, out = None, [], []
    for _, r in rowsOf(group):
        if r["item"] in ("struct", "union"):
            current, members, path = cName(r), [], []
        elif r["item"] == "end":
            if current:
                yield current, members
            current = None
        elif current and r["item"] == "field":
            if ":" not in r["text"]:
                members.append(".".join([p for p in path if p != "-"] + [r["name"]]))
        elif current and r["item"] == "open":
            path.append(r["name"].split("[")[0])
        elif current and r["item"] == "close":
            path.pop()


def enumerators(group):
    """Yields (name, value)."""
    inside = False
    for _, r in rowsOf(group):
        if r["item"] == "enum":
            inside = True
        elif r["item"] == "end":
            inside = False
        elif inside and r["item"] == "value":
            yield r["name"], r["text"]


def functions(group):
    for n, r in rowsOf(group):
        if r["item"] == "function":
            result, params = r["text"].split("|", 1)
            yield r["name"], result, [p for p in params.split("; ") if p], n
