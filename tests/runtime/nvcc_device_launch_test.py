#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that launches kernels from kernels, as this machine's nvcc -rdc=true makes it.

Usage: nvcc_device_launch_test.py SOURCE LIBRARY_DIR
"""
import os
import subprocess
import sys
import tempfile

source, library = sys.argv[1:3]
nvcc = os.path.join(os.environ.get("CUDA_PATH", "/usr/local/cuda"), "bin/nvcc")
if not os.path.exists(nvcc):
    print("skipped: there is no nvcc")
    sys.exit(0)
with tempfile.TemporaryDirectory() as directory:
    program = os.path.join(directory, "program")
    built = subprocess.run([nvcc, "-O2", "-std=c++17", "-rdc=true", "-cudart", "shared", "-arch=compute_80",
                            "-Wno-deprecated-gpu-targets", source, "-o", program], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, universal_newlines=True, cwd=directory)
    if built.returncode != 0:
        print("skipped: nvcc does not work here\n" + built.stdout)
        sys.exit(0)
    toolkit = os.path.join(os.path.dirname(os.path.dirname(nvcc)), "lib64")
    for levels in ("1", "6", "9"):
        done = subprocess.run([program, "--levels", levels], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, env=dict(os.environ, LD_LIBRARY_PATH=library + ":" + toolkit))
        print(done.stdout, done.stderr)
        if done.returncode != 0 or "PASS" not in done.stdout:
            sys.exit(1)
