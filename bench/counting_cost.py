#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What events cost the kernels of the examples, against the same kernels without.

    counting_cost.py BUILD [--rounds N] [--launches N]

BUILD is a build folder with the targets counting_cost and the examples. Prints
a table: microseconds of CPU time of one launch, start to end, and the ratios
for memory-request and cache events. Ends with 1 when a ratio exceeds its goal
(3 and 15) on a kernel of at least 20 microseconds.
"""
import argparse
import os
import subprocess
import sys
import tempfile

EXAMPLES = [  # program, arguments: sizes at which kernels work for a while
    ("vector_add", ["--n", "4194304"]),
    ("matmul", ["--m", "256", "--n", "256", "--k", "256"]),
    ("reduction", ["--n", "4194304"]),
    ("histogram", ["--n", "4194304"]),
    ("radix_sort", ["--n", "262144"]),
    ("nbody", ["--n", "2048", "--steps", "2"]),
    ("image_filter", ["--width", "512", "--height", "512"]),
    ("conjugate_gradient", []),
    ("streams_overlap", ["--n", "1048576"]),
    ("nvtx_ranges", []),
]
GOALS = {2: 3.0, 3: 15.0}
SHORT_NS = 20000


def demangled(names):
    try:
        out = subprocess.run(["c++filt", "-p"], input="\n".join(names), stdout=subprocess.PIPE, universal_newlines=True)
        return out.stdout.splitlines()
    except OSError:
        return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--launches", default="2")
    a = parser.parse_args()
    build = os.path.abspath(a.build)
    examples = os.path.join(build, "examples")
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples")
    rows = []
    for program, arguments in EXAMPLES:
        with tempfile.NamedTemporaryFile("r") as lines:
            env = dict(os.environ, SONDE_THREADS="1", COUNTING_COST_OUT=lines.name, COUNTING_COST_ROUNDS=a.rounds,
                       COUNTING_COST_LAUNCHES=a.launches,
                       LD_LIBRARY_PATH=os.path.join(build, "lib", "softgpu"),
                       CUDA_INJECTION64_PATH=os.path.join(build, "bench", "libcounting_cost.so"))
            done = subprocess.run([os.path.join(examples, program), *arguments], env=env, cwd=source,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            if done.returncode != 0:
                sys.exit("%s: status %d\n%s" % (program, done.returncode, done.stdout))
            for line in lines.read().splitlines():
                name, launches, *ns = line.split("\t")
                rows.append((program, name, [float(x) for x in ns]))
    if not rows:
        sys.exit("no kernel was measured")
    print("| Example | Kernel | plain µs | instructions | requests | caches | requests / plain | caches / plain |")
    print("|---|---|---|---|---|---|---|---|")
    missed = 0
    for (program, _, ns), name in zip(rows, demangled([r[1] for r in rows])):
        ratios = [n / ns[0] for n in ns]
        print("| %s | `%s` | %s | %.2f | %.2f |" %
              (program, name, " | ".join("%.0f" % (n / 1000) for n in ns), ratios[2], ratios[3]))
        missed += any(ns[0] >= SHORT_NS and ratios[d] > goal for d, goal in GOALS.items())
    print("\n%d kernels; of those of at least %d µs %d exceed a goal" % (len(rows), SHORT_NS // 1000, missed))
    sys.exit(1 if missed else 0)


main()
