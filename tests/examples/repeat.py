#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles a program again and again and compares what was recorded.

    repeat.py --runs N [--events a,b] SONDE PROGRAM [argument...]

Every run must record the same calls by thread, the same device work by stream
and the same counters by launch: names, ids, sizes, results and counts, all but
times and the ids of processes and threads. The device runs with another number
of host threads from run to run (1, 2, 3). Nothing may be lost.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

# What is another in each run by its nature, and the place of a record among
# those of other threads and streams.
OWN_TO_A_RUN = {"start", "end", "time", "pid", "parent_pid", "record", "executable"}


def profile(arguments, options, threads):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run.json")
        command = [arguments.sonde, "run", "-q", "-f", "-o", out, "--export", "json", *options, "--",
                   arguments.program, *arguments.arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                              env=dict(os.environ, SONDE_THREADS=str(threads)))
        if done.returncode != 0:
            sys.exit("%s: status %d\n%s" % (" ".join(command), done.returncode, done.stdout))
        with open(out) as f:
            trace = json.load(f)
    if trace["lost_records"] or trace["damaged_bytes"]:
        sys.exit("records were lost: %(lost_records)d, damaged bytes: %(damaged_bytes)d" % trace)
    return trace


def sequences(trace):
    """Sequences by name: of each thread, each stream, and the counted launches."""
    threads = {}
    for call in sorted(trace["api_calls"], key=lambda c: (c["start"], c["record"])):
        threads.setdefault(call["tid"], len(threads))
    found = {"processes": len(trace["processes"]), "records": trace["records"]}
    for kind in ("devices", "api_calls", "gpu_events", "nvtx_ranges", "counted_launches"):
        # Kernels of several streams are counted one after the other, in any order.
        order = ("correlation",) if kind == "counted_launches" else ("start", "record")
        for row in sorted(trace[kind], key=lambda r: [r.get(k, 0) for k in order]):
            where = kind
            if "tid" in row:
                where += " of thread %s" % threads.get(row.pop("tid"), "without calls")
            elif "stream" in row:
                where += " of stream %d" % row["stream"]
            found.setdefault(where, []).append({k: v for k, v in row.items() if k not in OWN_TO_A_RUN})
    return found


def difference(first, later):
    for where in sorted(set(first) | set(later)):
        a, b = first.get(where), later.get(where)
        if a == b:
            continue
        if not isinstance(a, list) or not isinstance(b, list):
            return "%s: %s, now %s" % (where, a, b)
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return "%s, number %d:\n  %s\n  %s" % (where, i, x, y)
        return "%s: %d of them, now %d" % (where, len(a), len(b))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--events", default="")
    parser.add_argument("sonde")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    ways = [("records", ["--trace", "cuda,nvtx"])]
    if arguments.events:
        ways.append(("counters", ["-e", arguments.events]))
    for what, options in ways:
        first = None
        for run in range(arguments.runs):
            found = sequences(profile(arguments, options, 1 + run % 3))
            if first is None:
                first = found
                rows = {where: len(v) for where, v in found.items() if isinstance(v, list)}
                wanted = "counted_launches" if what == "counters" else "gpu_events"
                if not any(where.startswith(wanted) for where in rows):
                    sys.exit("%s: no %s were recorded: %s" % (what, wanted, rows))
                print("%s of each run: %s" % (what, rows))
                continue
            unlike = difference(first, found)
            if unlike:
                sys.exit("%s of run %d are not those of the first: %s" % (what, run + 1, unlike))
        print("%s of %d runs are the same" % (what, arguments.runs))


if __name__ == "__main__":
    main()
