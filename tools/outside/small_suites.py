# SPDX-License-Identifier: Apache-2.0
"""Clients of one or a few source files each; see client_suites.py."""
import json
import os
import re

from client_build import Check, Failed


# --- intra-kernel-profiler: injected; instructions executed at each place in a kernel ---

def instructionCounts(text, kernels, warps, threads):
    """What is wrong with the JSON of its instruction counts; None: every record is as launched."""
    found = json.loads(text)
    if len(found["invocations"]) != kernels:
        return "%d launches" % len(found["invocations"])
    launches = {i["correlation_id"] for i in found["invocations"]}
    places = {}
    for r in found["records"]:
        if r["correlationId"] not in launches:
            return "a record of no launch"
        if (r["executed"], r["threadsExecuted"]) != (warps, threads):
            return "%d warps and %d threads at %d" % (r["executed"], r["threadsExecuted"], r["pcOffset"])
        places.setdefault(r["pcOffset"], set()).add(r["correlationId"])
    if not places or any(len(of) != kernels for of in places.values()):
        return "not every instruction of every launch"
    return None


def ikp(bench):
    source = os.path.join(bench.checkout, "tools", "cupti_region_profiler", "src")
    kernels, blocks, threads = 4, 4, 64

    def build():
        for part in ("instrexec", "pcsamp", "sassmetrics", "pmsamp"):
            bench.build(["c++", "-std=c++17", "-O2", "-fPIC", "-shared", "-I" + os.path.join(bench.prefix, "include"),
                         "-I" + source, os.path.join(source, "ikp_cupti_%s_inject.cpp" % part),
                         "-o", bench.path("ikp_%s.so" % part), "-L" + os.path.join(bench.prefix, "lib64"),
                         "-lcupti", "-lcuda", "-lpthread", "-ldl"])
        bench.program("plain_app", ["-std=c++17"])

    def instructions():
        path = bench.path("instructions.json")
        output = bench.run([bench.path("plain_app")], CUDA_INJECTION64_PATH=bench.path("ikp_instrexec.so"),
                           IKP_CUPTI_INSTREXEC_OUT=path)
        if "results: right" not in output:
            raise Failed("the program's own results are wrong", output)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        wrong = instructionCounts(text, kernels, blocks * threads // 32, blocks * threads)
        if wrong:
            raise Failed(wrong, output)
        return "%d records" % len(json.loads(text)["records"])

    return [Check("build", build, always=True), Check("instructions executed", instructions)]


# --- Samples of the toolkit of CUDA 10.1 (github.com/khuck/CUPTI_examples), unchanged ---

SAMPLES = {  # name -> sources
    "activity_trace": ("activity_trace.cpp", "vec.cu"), "activity_trace_async": ("activity_trace_async.cpp", "vec.cu"),
    "callback_event": ("callback_event.cu",), "callback_metric": ("callback_metric.cu",),
    "callback_timestamp": ("callback_timestamp.cu",), "cupti_query": ("cupti_query.cpp",),
    "event_multi_gpu": ("event_multi_gpu.cu",), "event_sampling": ("event_sampling.cu",),
    "sass_source_map": ("sass_source_map.cu",), "unified_memory": ("unified_memory.cu",),
}


def numbers(pattern, text):
    return [float(n) for n in re.findall(pattern, text, re.M)]


def sampleTrace(output):
    """Two kernels or more, six copies of 200000 bytes' vectors to and from the device, every one with its call."""
    calls = set(re.findall(r"^(?:RUNTIME|DRIVER) cbid=.*correlation (\d+)", output, re.M))
    work = re.findall(r'^(KERNEL|CONC KERNEL|MEMCPY|MEMSET) .*\[ (\d+) - (\d+) \].*correlation (\d+)', output, re.M)
    kinds = [w[0] for w in work]
    if kinds.count("MEMCPY") < 3 or len(kinds) - kinds.count("MEMCPY") - kinds.count("MEMSET") < 2:
        return "%d pieces of work" % len(work)
    for kind, start, end, correlation in work:
        if correlation not in calls or int(start) > int(end):
            return "%s %s: no call, or a time that runs backwards" % (kind, correlation)
    return None


def sampleMetric(output):
    executed = numbers(r"inst_executed \(normalized\).*= (\d+)", output)
    cycles = numbers(r"active_cycles \(normalized\).*= (\d+)", output)
    ipc = numbers(r"^Metric ipc = ([\d.]+)", output)
    if not executed or not cycles or not ipc or abs(executed[-1] / cycles[-1] - ipc[-1]) > 1e-5:
        return "ipc %s of %s and %s" % (ipc, executed, cycles)
    return None


def sampleUnified(output):
    for kind in ("HTOD", "DTOH"):
        moved = sum(numbers(r"kind=BYTES_TRANSFER_%s value=(\d+)" % kind, output))
        if moved == 0 or moved % 65536:
            return "%d bytes %s, of an allocation of 65536" % (moved, kind)
    return None


def sampleEvent(output):
    # 50000 elements: 196 blocks of 8 warps; five instructions at least, for 1568 warps.
    value = numbers(r"^Event Value : (\d+)", output)
    return None if value and value[0] > 5 * 1568 else "inst_executed %s" % value


def sampleGrows(output):
    values = numbers(r"^inst_executed: (\d+)", output)
    return None if len(values) > 3 and values == sorted(values) else "%d samples" % len(values)


def sampleMulti(output):
    values = numbers(r"^\[\d\] inst_executed: (\d+)", output)
    return None if len(values) == 2 and all(values) else "%s" % values


def sampleSource(output):
    rows = re.findall(r"thread_inst_executed (\d+), inst_executed (\d+)", output)
    bad = [r for r in rows if int(r[0]) > 32 * int(r[1])]
    return None if rows and not bad else "%d records, %d of them wrong" % (len(rows), len(bad))


def samples(bench):
    place = next((os.path.join(bench.checkout, d) for d in ("cuda_10_1_samples",)
                  if os.path.isdir(os.path.join(bench.checkout, d))), bench.checkout)

    def build():
        for name, files in SAMPLES.items():
            bench.build(["python3", os.path.join(bench.prefix, "bin", "sondecc"), "-O1", "-w", "-arch=sm_35", "-x", "cu",
                         "-DSONDE_CUDA_SOURCE_VERSION=12000"] + [os.path.join(place, name, f) for f in files] +
                        ["-o", bench.path(name), "-lcupti", "-lcuda"])

    def sample(name, wrong=lambda output: None, **env):
        def action():
            output = bench.run([bench.path(name)], **env)
            reason = wrong(output)
            if reason:
                raise Failed(reason, output)
        return Check(name, action)

    return [Check("build", build, always=True), sample("activity_trace", sampleTrace),
            sample("activity_trace_async", sampleTrace), sample("callback_event", sampleEvent),
            sample("callback_metric", sampleMetric), sample("callback_timestamp"), sample("cupti_query"),
            sample("event_multi_gpu", sampleMulti, SONDE_DEVICES="default,default"),
            sample("event_sampling", sampleGrows), sample("sass_source_map", sampleSource, SONDE_DEVICES="kepler"),
            sample("unified_memory", sampleUnified)]
