#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""source_level_cost.py: what source-level collection costs the kernels of the examples.

Usage: bench/source_level_cost.py [--build build/release] [--rounds 9] [example ...]

Every round runs each example twice, one run after the other: with its kernels recorded, and with all source-level
kinds as well. The first round fills the cache of compiled kernels and is not counted. Times are the durations in the
kernel records, the median of a kernel's launches times their number; the table has the shortest run of each, because
what else the machine does only adds, and the median of the rounds' ratios. With --off, the second run is of another build, without collection: what those pay
who do not collect.
"""
import argparse
import csv
import glob
import io
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOT_OF_KERNELS = ("nvtx_ranges",)


def kernelTimes(build, programs, name, options):
    """ns of each kernel: the median of its launches times their number."""
    environment = dict(os.environ, SONDE_LIBDIR=os.path.join(build, "stage/lib64"))
    done = subprocess.run([os.path.join(build, "src/cli/sonde"), "run", "-q", "--csv", "--trace", "gpu", "-r",
                           "cuda_gpu_kern_sum"] + options + ["--", os.path.join(programs, name)],
                          cwd=os.path.join(ROOT, "examples"), env=environment, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit("%s: exit status %d\n%s" % (name, done.returncode, done.stderr))
    at = done.stdout.find("Time (%)")
    times = {}
    for row in csv.DictReader(io.StringIO(done.stdout[at:])):
        times[row["Name"]] = times.get(row["Name"], 0) + float(row["Med (ns)"]) * int(row["Instances"])
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default="build/release", help="build with the libraries (default build/release)")
    parser.add_argument("--programs", default="", help="folder of the examples' programs (default: the build's)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--off", default="", metavar="BUILD", help="compare plain runs with this build's instead")
    parser.add_argument("examples", nargs="*")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    programs = os.path.abspath(args.programs or os.path.join(args.build, "examples"))
    names = args.examples or sorted(
        n for n in (os.path.basename(p)[:-3] for p in glob.glob(os.path.join(ROOT, "examples", "*.cu")))
        if n not in NOT_OF_KERNELS and os.path.exists(os.path.join(programs, n)))
    second = (os.path.abspath(args.off), []) if args.off else (args.build, ["--source-level-analysis", "all"])
    print("| example | kernel | first, ms | second, ms | shortest | median |\n|---|---|---:|---:|---:|---:|")
    for name in names:
        rounds = []
        for i in range(args.rounds + 1):
            pair = kernelTimes(args.build, programs, name, []), kernelTimes(second[0], programs, name, second[1])
            if i:
                rounds.append(pair)

        def line(kernel, of):
            first = [of(p[0]) for p in rounds]
            other = [of(p[1]) for p in rounds]
            print("| %s | %s | %.3f | %.3f | %.2f | %.2f |" % (
                name, kernel, min(first) / 1e6, min(other) / 1e6, min(other) / min(first),
                statistics.median(o / f for o, f in zip(other, first))), flush=True)

        kernels = sorted(rounds[0][0])
        for kernel in kernels:
            line(kernel.split("(")[0].replace("|", "\\|"), lambda times, k=kernel: times.get(k, 1))
        if len(kernels) > 1:
            line("all", lambda times: sum(times.values()))


if __name__ == "__main__":
    main()
