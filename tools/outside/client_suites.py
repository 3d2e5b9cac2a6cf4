# SPDX-License-Identifier: Apache-2.0
"""The clients: how each is built, what it is asked to measure, and what it must then say.

The workload (clients/workload.h) launches a kernel of 4 blocks with 64 threads
four times, copies to the device and back, and sets memory once.
"""
import collections
import json
import os
import re

import small_suites
from client_build import Check, Failed, Skipped

KERNELS, COPIES, SETS = 4, 2, 1
BLOCKS, THREADS = 4, 64
BYTES = 4 * BLOCKS * THREADS  # of each copy and set
KERNEL_NAMES = ("_Z6addOnePj", "addOne(unsigned int*)")
OLD_DEVICE = {"SONDE_DEVICES": "kepler"}  # clients use the event interface below compute capability 7


def expect(found, wanted, output):
    """found and wanted: dictionaries; raises Failed with the first difference."""
    for key, value in wanted.items():
        if found.get(key) != value:
            raise Failed("%s: %s, not %s" % (key, found.get(key), value), output)
    return ", ".join("%s %s" % item for item in sorted(found.items()))


def expectRight(output):
    if "results: right" not in output:
        raise Failed("the program's own results are wrong", output)


# --- Caliper ---

def caliperRecords(text):
    """What cali-query -e prints, one dictionary a line."""
    return [dict(part.split("=", 1) for part in re.split(r"(?<!\\),", line) if "=" in part)
            for line in text.splitlines()]


def caliper(bench):
    query = bench.path("build", "src", "tools", "cali-query", "cali-query")

    def build():
        bench.build(["cmake", "-G", "Ninja", "-S", bench.checkout, "-B", bench.path("build"), "-DWITH_CUPTI=ON",
                     "-DCUDAToolkit_ROOT=" + bench.prefix, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"])
        bench.build(["ninja", "-C", bench.path("build"), "-j%d" % bench.args.jobs, "libcaliper.so", "cali-query"])
        lib = bench.path("build", "src")
        bench.program("caliper_app", ["-std=c++17", "-I" + os.path.join(bench.checkout, "include"),
                                      "-I" + bench.path("build", "include"), "-L" + lib, "-lcaliper",
                                      "-Xlinker", "-rpath=" + lib])

    def record(services, **settings):
        file = bench.path("out.cali")
        if os.path.exists(file):
            os.remove(file)
        env = {"CALI_SERVICES_ENABLE": services, "CALI_RECORDER_FILENAME": file, "CALI_LOG_VERBOSITY": "1"}
        env.update({"CALI_" + key: value for key, value in settings.items()})
        output = bench.run([bench.path("caliper_app")], **env)
        expectRight(output)
        complaint = re.search(r"^.*CUPTI_ERROR.*$", output, re.M)
        if complaint:
            raise Failed(complaint.group(0), output)
        return caliperRecords(bench.run([query, "-e", file])), output

    def activities():
        records, output = record("event,trace,recorder,cupti,cuptitrace", CUPTI_CALLBACK_DOMAINS="runtime,driver,resource,sync",
                                 CUPTITRACE_ACTIVITIES="correlation,device,runtime,driver,kernel,memcpy")
        found = collections.Counter()
        copied = collections.Counter()
        for r in records:
            kind = r.get("cupti.activity.kind")
            if kind:
                found[kind + " in " + r.get("region", "no region")] += 1
                start, end = int(r.get("cupti.activity.start", 0)), int(r.get("cupti.activity.end", 0))
                if kind in ("kernel", "memcpy") and not 0 < start <= end:
                    raise Failed("a %s from %d to %d" % (kind, start, end), output)
            if kind == "kernel" and r.get("cupti.kernel.name") not in KERNEL_NAMES:
                raise Failed("a kernel %s" % r.get("cupti.kernel.name"), output)
            if kind == "memcpy":
                copied[r.get("cupti.memcpy.kind")] += int(r.get("cupti.memcpy.bytes", 0))
            if "cupti.resource" in r:
                found[r["cupti.resource"]] += 1
        expect(copied, {"HtoD": 2 * BYTES, "DtoH": 2 * BYTES}, output)
        return expect(found, {"kernel in first": KERNELS, "kernel in second": KERNELS, "memcpy in first": COPIES,
                              "memcpy in second": COPIES, "create_context": 1}, output)

    def unifiedMemory():
        records, output = record("event,trace,recorder,cuptitrace", CUPTITRACE_ACTIVITIES="uvm",
                                 CUPTITRACE_UVM_PAGEFAULTS="true")
        found = collections.Counter(r["cupti.uvm.kind"] for r in records if "cupti.uvm.kind" in r)
        for kind in ("pagefaults.gpu", "HtoD", "DtoH"):
            if not found[kind]:
                raise Failed("no %s record" % kind, output)
        return ", ".join("%s %d" % item for item in sorted(found.items()))

    def events():
        code = ("import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0); i = ctypes.c_uint32(); "
                "ctypes.CDLL('libcupti.so.13').cuptiEventGetIdFromName(0, b'threads_launched', ctypes.byref(i)); "
                "print(i.value)")
        event = bench.run(["python3", "-c", code]).strip()
        records, output = record("event,trace,recorder,cupti", CUPTI_CALLBACK_DOMAINS="runtime,sync",
                                 CUPTI_SAMPLE_EVENT_ID=event)
        total = sum(int(r.get("cupti.event.threads_launched", 0)) for r in records)
        return expect({"threads_launched": total}, {"threads_launched": 2 * KERNELS * BLOCKS * THREADS}, output)

    return [Check("build", build, always=True), Check("callbacks, activities, correlation", activities),
            Check("unified memory", unifiedMemory), Check("event sampling, continuous mode", events)]


# --- Kineto ---

def chromeEvents(path):
    """What the workload's events must be, beyond their number; the counts by category."""
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    events = [e for e in trace["traceEvents"] if e.get("ph") == "X" and "cat" in e]
    calls = {e["args"]["correlation"]: e for e in events if e["cat"].startswith("cuda_") and "correlation" in e.get("args", {})}
    for e in events:
        args = e.get("args", {})
        if e["cat"] not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        what = "%s %s" % (e["cat"], e["name"])
        call = calls.get(args["correlation"])
        if call is None or e["ts"] < call["ts"] or e["dur"] <= 0:
            raise Failed("%s: before its call, or without one or a duration" % what)
        if e["cat"] == "kernel":
            if e["name"] not in KERNEL_NAMES or args["grid"] != [BLOCKS, 1, 1] or args["block"] != [THREADS, 1, 1]:
                raise Failed("%s: grid %s block %s" % (what, args["grid"], args["block"]))
            if call["name"] != "cudaLaunchKernel":
                raise Failed("%s: launched by %s" % (what, call["name"]))
        elif args["bytes"] != BYTES:
            raise Failed("%s: %s bytes" % (what, args["bytes"]))
    names = {e["name"] for e in events if e["cat"] == "gpu_memcpy"}
    if names != {"Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)"}:
        raise Failed("copies: " + ", ".join(sorted(names)))
    return collections.Counter(e["cat"] for e in events)


def kineto(bench):
    def build():
        fmt = bench.path("fmt.cmake")
        with open(fmt, "w", encoding="utf-8") as out:
            out.write("find_package(fmt REQUIRED)\n")  # the system's, instead of a submodule
        bench.build(["cmake", "-G", "Ninja", "-S", os.path.join(bench.checkout, "libkineto"), "-B", bench.path("build"),
                     "-DKINETO_BACKEND=cuda", "-DKINETO_LIBRARY_TYPE=shared", "-DKINETO_BUILD_TESTS=OFF",
                     "-DCUDAToolkit_ROOT=" + bench.prefix, "-DCMAKE_BUILD_TYPE=Release",
                     "-DCMAKE_PROJECT_kineto_INCLUDE=" + fmt,
                     "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG -Wno-error"])  # GCC 12 warns of its own headers
        bench.build(["ninja", "-C", bench.path("build"), "-j%d" % bench.args.jobs])
        flags = ["-std=c++20", "-I" + os.path.join(bench.checkout, "libkineto", "include"), "-L" + bench.path("build"),
                 "-lkineto", "-L" + os.path.join(bench.prefix, "lib64"), "-lcupti",
                 "-Xlinker", "-rpath=" + bench.path("build")]
        bench.program("kineto_app", flags)

    def trace(**env):
        files = [bench.path("first.json"), bench.path("second.json")]
        for f in files:
            if os.path.exists(f):
                os.remove(f)
        output = bench.run([bench.path("kineto_app")] + files, **env)
        expectRight(output)
        wanted = {"kernel": KERNELS, "gpu_memcpy": COPIES, "gpu_memset": SETS}
        notes = [expect(chromeEvents(f), wanted, output) for f in files]
        complaint = re.search(r"^(WARNING|ERROR):.*(?:CUPTI_ERROR|Dropped|unknown buffer).*$", output, re.M)
        if complaint:
            raise Failed(complaint.group(0), output)
        return notes[1]

    return [Check("build", build, always=True), Check("two traces in one process", trace),
            Check("taken down between (TEARDOWN_CUPTI=1)", lambda: trace(TEARDOWN_CUPTI="1"))]


# --- PAPI ---

PAPI_TESTS = ("test_multi_read_and_reset", "concurrent_profiling", "concurrent_profiling_noCuCtx", "pthreads",
              "pthreads_noCuCtx", "cudaOpenMP", "cudaOpenMP_noCuCtx", "test_multipass_event_fail",
              "test_2thr_1gpu_not_allowed", "HelloWorld", "HelloWorld_noCuCtx", "simpleMultiGPU",
              "simpleMultiGPU_noCuCtx", "test_cuda_floating_point_operations", "test_cuda_presets")


def papiResult(output):
    if re.search(r"\bFAILED\b", output):
        raise Failed("its own check fails", output)
    if "SKIPPED" in output:
        raise Skipped(output.strip().splitlines()[-2] if len(output.strip().splitlines()) > 1 else "")
    if "PASSED" not in output:
        raise Failed("it does not say that it passed", output)


def papi(bench):
    tests = bench.path("source", "components", "cuda", "tests")
    env = dict(OLD_DEVICE, PAPI_CUDA_ROOT=bench.prefix, PAPI_CUDA_API="LEGACY", SONDE_CUDA_VERSION="12.9")

    def build():
        include = bench.nvmlInclude()
        bench.standInNvml()
        source = bench.copySources(below="src")
        root = {"PAPI_CUDA_ROOT": bench.prefix}
        if not os.path.exists(os.path.join(source, "Makefile")):
            bench.build(["./configure", "--with-components=cuda", "--with-pfm-prefix=/usr", "--with-shlib-tools",
                         "CFLAGS=-I" + include], source, **root)
        bench.build(["make", "-j%d" % bench.args.jobs, "libpapi.so", "utils"], source, **root)
        # clang's OpenMP; the tests name GCC's.
        openmp = re.sub(r"\s+", "", bench.build(["sh", "-c", "ls -d /usr/lib/llvm-*/lib/libomp.so | tail -1"]))
        libraries = "-L%s/lib64 -lcudart -lcupti -lcuda" % bench.prefix
        if openmp:
            libraries += " -L%s -Wl,-rpath,%s -lomp" % (os.path.dirname(openmp), os.path.dirname(openmp))
        bench.build(["make", "-k", "-j%d" % bench.args.jobs, "cuda_tests", "CUDA_TOOLKIT_GE_13=1",
                     "NVCC=%s/bin/sondecc -arch=sm_35" % bench.prefix, "CUDALIBS=" + libraries], tests, **root)

    def component():
        output = bench.run(["./utils/papi_component_avail"], bench.path("source"), **env)
        active = re.search(r"^Active components:.*?^Name: +cuda\b.*?Native: (\d+)", output, re.M | re.S)
        if not active:
            why = re.search(r"Name: +cuda\b.*?Disabled: (.*)", output, re.S)
            raise Failed(why.group(1).splitlines()[0] if why else "no cuda component", output)
        return "%s native events" % active.group(1)

    def native():
        output = bench.run(["./utils/papi_native_avail", "-i", "cuda"], bench.path("source"), **env)
        names = re.findall(r"^\| cuda:::(\S+)", output, re.M)
        for name in ("inst_executed", "warps_launched", "gld_request", "branch_efficiency"):
            if name not in names:
                raise Failed("%s is not listed" % name, output)
        return "%d names" % len(names)

    def values():
        events = ["cuda:::%s:device=0" % e for e in ("warps_launched", "threads_launched", "branch_efficiency")]
        output = bench.run(["./HelloWorld", "--device", "0", "--cuda-native-event-names", ",".join(events)], tests, **env)
        papiResult(output)
        found = {n: int(v) for n, v in re.findall(r"PAPI_stop, the event cuda:::(\w+):device=0 produced the value:\s*(\d+)", output)}
        # 2 blocks of 6 threads that do not branch; PAPI counts percents in hundredths.
        return expect(found, {"warps_launched": 2, "threads_launched": 12, "branch_efficiency": 10000}, output)

    def test(name):
        def action():
            program = os.path.join(tests, name)
            if not os.path.exists(program):
                raise Failed("was not built", result="no build")
            # The component reads memory that it never set once a second device has events; this makes it 0.
            papiResult(bench.run([program], tests, **dict(env, SONDE_DEVICES="kepler,kepler", MALLOC_PERTURB_="255")))
        return Check("its test " + name, action)

    return [Check("build", build, always=True), Check("papi_component_avail", component),
            Check("papi_native_avail", native), Check("HelloWorld, three events", values)] + [test(t) for t in PAPI_TESTS]


# --- LIKWID ---

def likwid(bench):
    def build():
        include = bench.nvmlInclude()
        bench.standInNvml()
        source = bench.copySources()
        bench.build(["make", "NVIDIA_INTERFACE=true", "ACCESSMODE=perf_event", "CUDA_HOME=" + bench.prefix,
                     "CUDAINCLUDE=%s/include -I%s" % (bench.prefix, include), "liblikwid.so"], source)
        flags = ["-arch=sm_35", "-DLIKWID_WITH_NVMON", "-I" + os.path.join(source, "src", "includes")]
        for folder, name in (("", "likwid"), ("ext/lua", "likwid-lua"), ("ext/hwloc", "likwid-hwloc")):
            place = os.path.join(source, folder)
            flags += ["-L" + place, "-l" + name, "-Xlinker", "-rpath=" + place]
            # The build leaves a file without the version that it was linked as.
            wanted = os.path.join(place, "lib%s.so.5.5" % name)
            if not os.path.lexists(wanted):
                os.symlink("lib%s.so" % name, wanted)
        bench.program("likwid_app", flags)

    def nvmon():
        # nvmon frees a pointer that it never set; this makes what malloc gives 0.
        output = bench.run([bench.path("likwid_app")], MALLOC_PERTURB_="255", **OLD_DEVICE)
        expectRight(output)
        found = {n: int(v) for n, v in re.findall(r"^(\w+) = (\d+)$", output, re.M)}
        # Its mode is that of a kernel: the values are the last one's.
        return expect(found, {"WARPS_LAUNCHED": BLOCKS * THREADS // 32, "THREADS_LAUNCHED": BLOCKS * THREADS,
                              "GST_REQUEST": BLOCKS * THREADS // 32, "SM_CTA_LAUNCHED": BLOCKS}, output)

    return [Check("build", build, always=True), Check("nvmon, four events", nvmon)]


CLIENTS = {"caliper": caliper, "kineto": kineto, "papi": papi, "likwid": likwid, "ikp": small_suites.ikp,
           "samples": small_suites.samples}
