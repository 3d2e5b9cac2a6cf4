# SPDX-License-Identifier: Apache-2.0
"""CCCL's programs that check themselves: libcudacxx's tests, CUB's examples and CUB's tests.

CUB's tests and examples need a checkout of Catch2 beside that of CCCL,
configured in its build/ (for its generated header).
"""
import concurrent.futures
import glob
import itertools
import os
import re
import threading

from build import Program

# Parts of libcudacxx's tests that run code on the device; the others are about what compiles.
LIBCUDACXX_PARTS = ("cuda/annotated_ptr", "cuda/atomics", "cuda/barrier", "cuda/bit", "cuda/chrono", "cuda/cmath",
                    "cuda/complex", "cuda/containers", "cuda/functional", "cuda/hierarchy", "cuda/memcpy_async",
                    "cuda/memory", "cuda/memory_resource", "cuda/numeric", "cuda/pipeline", "cuda/ptx", "cuda/random",
                    "cuda/stream_ref", "cuda/strings", "cuda/utilities", "cuda/warp", "cuda/work_stealing",
                    "std/algorithms", "std/atomics", "std/containers", "std/language.support", "std/linalg",
                    "std/numerics", "std/random", "std/strings", "std/text", "std/thread", "std/time", "std/utilities")
SMALL = "[small-mem]"       # CUB's tag of tests that need little memory
LAUNCH_FROM_DEVICE = "1"    # the value of CUB's TEST_LAUNCH that needs relocatable device code
NOT_A_PROGRAM = re.compile(r"_fail\.cu$|check_sass|nvrtc|_large_offsets|transform_tile|_debug\.cu$")

supportLock = threading.Lock()


def readText(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def headers(checkout):
    catch = os.path.join(os.path.dirname(checkout), "Catch2")
    return ["-I" + os.path.join(checkout, d) for d in ("cub", "thrust", "libcudacxx/include", "c2h/include")] + \
        ["-I" + os.path.join(catch, d) for d in ("src", "build/generated-includes")]


def check(status, output):
    if status != 0:
        return "killed by signal %d" % -status if status < 0 else "exit status %d" % status
    failed = re.search(r"^.*\b(FAIL|FAILED|CUDA ERROR)\b.*$", output, re.M)
    return failed.group(0) if failed else None


def directives(text, name):
    return [line.strip() for line in re.findall(r"^// *" + name + r": *(.*)$", text, re.M)]


def skippedBy(text, arch):
    """Why the suite's own driver would not run this test here, in C++17 or 20 with nvcc on Linux."""
    for line in directives(text, "(?:UNSUPPORTED|XFAIL)"):
        for feature in re.split(r"[, |]+", line):
            old = re.fullmatch(r"pre-sm-(\d+)", feature)
            if feature in ("true", "*", "no_execute") or (old and "&&" not in line and int(arch) < int(old.group(1))):
                return "unsupported by the suite: " + line
    for line in directives(text, "REQUIRES"):
        if "tile" in line or "c++98" in line:
            return "requires " + line
    return ""


def libcudacxxTest(checkout, arch, source):
    tests = os.path.join(checkout, "libcudacxx", "test")
    text = readText(source)
    program = Program("libcudacxx/" + os.path.relpath(source, os.path.join(tests, "libcudacxx"))[:-len(".pass.cpp")],
                      [source], check, headers(checkout) + ["-I" + os.path.join(tests, "support"), "-x", "cu", "-include",
                                                            os.path.join(tests, "libcudacxx", "force_include.h")],
                      nvccFlags=["--expt-relaxed-constexpr"], skip=skippedBy(text, arch))
    if any("c++17" in re.split(r"[, ]+", line) for line in directives(text, "UNSUPPORTED")) or \
            "!c++17" in directives(text, "REQUIRES"):
        program.flags.append("-std=c++20")
    for line in directives(text, "ADDITIONAL_COMPILE_DEFINITIONS"):
        program.flags += ["-D" + word for word in line.split()]
    for line in directives(text, "ADDITIONAL_COMPILE_OPTIONS_HOST"):
        for word in line.split():
            program.nvccFlags += ["-Xcompiler", word]
    return program


def libcudacxx(checkout, arch):
    for source in sorted(glob.glob(os.path.join(checkout, "cub", "examples", "*", "*.cu"))):
        yield Program("cub/" + os.path.basename(source)[:-3], [source], check,
                      headers(checkout) + ["-I" + os.path.dirname(source),
                                           "-I" + os.path.join(checkout, "cub", "examples")])
    for part in LIBCUDACXX_PARTS:
        place = os.path.join(checkout, "libcudacxx", "test", "libcudacxx", part)
        for source in sorted(glob.glob(os.path.join(place, "**", "*.pass.cpp"), recursive=True)):
            yield libcudacxxTest(checkout, arch, source)


def cubFlags(checkout):
    return headers(checkout) + ["-I" + os.path.join(checkout, "cub", "test"), "-DCATCH_CONFIG_PREFIX_ALL",
                                "-DC2H_HAS_CURAND=0", "-DCCCL_ENABLE_ASSERTIONS"]


def cubSupport(checkout):
    """What every test of CUB links: its helpers and Catch2, compiled once."""
    helpers = os.path.join(checkout, "c2h")
    sources = sorted(glob.glob(os.path.join(helpers, "generators*.cu"))) + \
        [os.path.join(helpers, "catch2_runner.cu"), os.path.join(helpers, "catch2_runner_helper.cu"),
         os.path.join(os.path.dirname(checkout), "Catch2", "extras", "catch_amalgamated.cpp")]

    def build(tool):
        place = tool.scratch("cub-support")
        targets = [os.path.join(place, os.path.basename(source) + ".o") for source in sources]

        def one(pair):
            flags = ["-DCATCH_AMALGAMATED_CUSTOM_MAIN"] if pair[0].endswith(".cpp") else cubFlags(checkout)
            return tool.build([pair[0]], pair[1], ["-c"] + flags, place)

        with supportLock, concurrent.futures.ThreadPoolExecutor(tool.jobs) as pool:
            said = [text for text in pool.map(one, zip(sources, targets)) if text]
        return (said[0] if said else None), targets
    return build


def variants(text):
    """[(suffix of the name, definitions)]: a test says in comments which macros have which values."""
    axes = []
    for macro, label, values in re.findall(r"^//!? ?(?:// )?%PARAM% (\w+) (\w+) (\S+)$", text, re.M):
        axes.append([("." + label + "_" + v, "-D%s=%s" % (macro, v)) for v in values.split(":")])
    for choice in itertools.product(*axes):
        yield "".join(suffix for suffix, _ in choice), [definition for _, definition in choice]


def cub(checkout, _arch):
    directory = os.path.join(checkout, "cub", "test")
    support = cubSupport(checkout)
    for source in sorted(glob.glob(os.path.join(directory, "**", "catch2_test_*.cu"), recursive=True)):
        if NOT_A_PROGRAM.search(source):
            continue
        text = readText(source)
        for suffix, definitions in variants(text):
            name = os.path.basename(source)[len("catch2_test_"):-len(".cu")] + suffix
            program = Program("cub/test/" + name, [source], check, cubFlags(checkout) + definitions,
                              runs=[[SMALL, "--allow-running-no-tests"]], support=support)
            if "-DTEST_LAUNCH=" + LAUNCH_FROM_DEVICE in definitions:
                program.flags += ["-rdc=true", "-lcudadevrt"]
            yield program
