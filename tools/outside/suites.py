# SPDX-License-Identifier: Apache-2.0
"""The suites: which programs a checkout has, and how each says that it passed."""
import glob
import json
import os
import re

import cccl
import ptx_cases
from build import Program

SAMPLE_GROUPS = ("0_Introduction", "1_Utilities", "2_Concepts_and_Techniques", "3_CUDA_Features",
                 "5_Domain_Specific", "6_Performance")
# What a sample needs that is not part of a GPU without a display.
OUT_OF_REACH = (("OPENGL|GLUT|GLEW|find_package\\(GL|EGL|Vulkan|FreeImage|d3d", "needs graphics"),
                ("find_package\\(MPI", "needs MPI"),
                ("CUDA::(curand|cufft|cublas|cusparse|cusolver|npp)", "needs a library of the toolkit"))
SAMPLE_WAIVED = 2


TOOLKIT = "/usr/local/cuda/include"


def readText(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def sampleCheck(status, output):
    if status == SAMPLE_WAIVED:
        return "waived"
    if status != 0:
        return "killed by signal %d" % -status if status < 0 else "exit status %d" % status
    failed = re.search(r"^.*\b(test(s)? failed|result = fail).*$", output, re.I | re.M)
    return failed.group(0) if failed else None


def sampleProgram(directory, common, arguments):
    """A sample from its CMakeLists.txt: sources, libraries, device code that it loads from a file."""
    name = os.path.basename(directory)
    text = readText(os.path.join(directory, "CMakeLists.txt"))
    executable = re.search(r"add_executable\(\s*\S+\s+([^)]*)\)", text)
    config = arguments.get(name, {})
    program = Program(name, [], sampleCheck, data=directory)
    for pattern, reason in OUT_OF_REACH:
        if re.search(pattern, text):
            program.skip = reason
    if config.get("skip"):
        program.skip = program.skip or "skipped by the suite"
    if config.get("min_gpus", 1) > 1:
        program.environment["SONDE_DEVICES"] = ",".join(["default"] * config["min_gpus"])
    if not executable or program.skip:
        program.skip = program.skip or "no executable for this system"
        return program
    words = [w for w in executable.group(1).split() if re.search(r"\.(cu|cpp|c|cc)$", w)]
    program.sources = [os.path.normpath(os.path.join(directory, w.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")))
                       for w in words]
    program.flags = ["-I" + common, "-I" + directory, "-lpthread"]
    for target, flag in (("cuda_driver", "-lcuda"), ("nvrtc", "-lnvrtc"), ("nvml", "-lnvidia-ml")):
        if "CUDA::" + target in text:
            program.flags.append(flag)
    if "CUDA::cudadevrt" in text or "cudadevrt" in text or re.search(r"-rdc|cdp", text):
        program.flags += ["-rdc=true", "-lcudadevrt"]
    for word in re.findall(r"include_directories\(([^)]*)\)", text):
        for path in word.split():
            if os.path.isdir(os.path.join(directory, path)):
                program.flags.append("-I" + os.path.normpath(os.path.join(directory, path)))
    if "OpenMP" in text:
        program.flags += ["-Xcompiler", "-fopenmp"]
    if "CUDA::cuda_driver" in text and not any(s.endswith(".cu") for s in program.sources):
        program.flags.append("-lcudart")
    files = re.findall(r"set\((?:CUDA_)?(?:FATBIN|PTX)_FILE \"?\$\{CMAKE_CURRENT_BINARY_DIR\}/([^\")]+)", text)
    kernels = re.findall(r"set\(CUDA_KERNEL_SOURCE \"?\$\{CMAKE_CURRENT_SOURCE_DIR\}/([^\")]+)", text)
    for file, kernel in zip(files, kernels):
        program.extras.append((os.path.join(directory, kernel), file,
                               "-ptx" if file.endswith(".ptx") else "-fatbin"))
    # What the suite's build copies beside the program: headers for NVRTC.
    for kind, source, target in re.findall(r"copy_(if_different|directory)\s+([^)]*?)\$\{CMAKE_CURRENT_BINARY_DIR\}/?"
                                           r"([^\s)]*)", text):
        for word in source.split():
            word = word.replace("${CUDA_INCLUDE_DIR}", TOOLKIT)
            if word.startswith(TOOLKIT) and os.path.exists(word):
                program.copies.append((word, target if kind == "directory" else os.path.basename(word)))
    if "runs" in config:
        program.runs = [r["args"] for r in config["runs"] if not r.get("skip")]
    elif "args" in config:
        program.runs = [config["args"]]
    return program


def cudaSamples(checkout, _arch):
    path = os.path.join(checkout, "test_args.json")
    arguments = json.loads(readText(path)) if os.path.exists(path) else {}
    for group in SAMPLE_GROUPS:
        for directory in sorted(glob.glob(os.path.join(checkout, "Samples", group, "*", ""))):
            if os.path.exists(os.path.join(directory, "CMakeLists.txt")):
                yield sampleProgram(directory.rstrip("/"), os.path.join(checkout, "Common"), arguments)


def llvmCheck(reference):
    """The suite compares standard output and the exit status with a recorded text."""
    wanted = readText(reference).split()

    def check(status, output):
        if "exit %d" % status != " ".join(wanted[-2:]):
            return "exit status %d" % status
        # The suite knows the device's own message of a failed assertion, not what a driver adds.
        text = " ".join(line for line in output.splitlines() if not line.startswith("sonde: an assertion failed")).split()
        return None if text == wanted[:-2] else "output differs from " + os.path.basename(reference)
    return check


def exitCheck(status, _output):
    return None if status == 0 else "exit status %d" % status


def llvmSuite(checkout, _arch):
    directory = checkout
    for below in ("External/CUDA", "CUDA"):
        if os.path.isdir(os.path.join(checkout, below)):
            directory = os.path.join(checkout, below)
            break
    for source in sorted(glob.glob(os.path.join(directory, "*.cu"))):
        name = os.path.basename(source)[:-3]
        reference = source[:-3] + ".reference_output"
        program = Program(name, [source], llvmCheck(reference) if os.path.exists(reference) else exitCheck)
        # The suite is clang's, which includes these headers by itself.
        program.nvccFlags = ["--expt-relaxed-constexpr", "-include", "cstdio", "-include", "cmath", "-include", "new"]
        yield program


def polybenchCheck(status, output):
    if status != 0:
        return "exit status %d" % status
    counts = re.findall(r"^(?:Non-Matching CPU-GPU Outputs.*|Number of misses): *(\d+)", output, re.M)
    if not counts:
        return "no comparison was printed"
    return None if set(counts) == {"0"} else counts[-1] + " results differ from the CPU's"


def polybench(checkout, _arch):
    utilities = os.path.join(checkout, "CUDA", "utilities")
    for source in sorted(glob.glob(os.path.join(checkout, "CUDA", "**", "*.cu"), recursive=True)):
        yield Program(os.path.basename(source)[:-3], [source], polybenchCheck,
                      # The suite is older than the function's new name.
                      ["-I" + utilities, "-DMINI_DATASET", "-DcudaThreadSynchronize=cudaDeviceSynchronize"])


# The faulty programs of compute-sanitizer-samples, and what a right diagnosis of each must contain.
FAULTS = (("Memcheck/memcheck_demo.cu", r"misaligned address"),
          ("Synccheck/divergent_threads.cu", r"barrier"),
          ("Synccheck/illegal_syncwarp.cu", r"barrier|syncwarp"),
          ("Racecheck/block_error.cu", r"race"),
          ("Racecheck/warp_error.cu", r"race"),
          ("Initcheck/memset_error.cu", r"uninitiali[sz]ed"),
          ("Suppressions/suppressions_demo.cu", r"was refused|out of memory"),
          ("Suppressions/suppressions_initcheck_demo.cu", r"uninitiali[sz]ed"))


def faults(checkout, _arch):
    for path, wanted in FAULTS:
        def check(status, output, wanted=wanted):
            if re.search(wanted, output, re.I):
                return None
            return "exit status %d and no diagnosis that matches %s" % (status, wanted)
        yield Program(os.path.basename(path)[:-3], [os.path.join(checkout, path)], check,
                      environment={"SONDE_CHECK": "memory,race,init,sync"})


SUITES = {"cccl": cccl.libcudacxx, "cub": cccl.cub, "cuda-samples": cudaSamples, "llvm": llvmSuite, "polybench": polybench, "sanitizer": faults,
          "zluda": ptx_cases.zluda}
