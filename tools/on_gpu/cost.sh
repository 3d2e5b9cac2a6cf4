#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What profiling adds to a launch and to a runtime call on the host, against a
# process that nobody profiles: cost.sh PROGRAM OURS [VENDOR [ROUNDS]]
# (PROGRAM from cost.cu, the others are libraries). The processes take turns, so
# that what else the machine does hits all alike. Medians over the rounds, ns.
set -eu
program=$1 ours=$2 vendor=${3:-} rounds=${4:-15}
results=$(mktemp)
trap 'rm -f "$results"' EXIT
for ((round = 0; round < rounds; ++round)); do
  echo "- none $("$program" -)"
  for what in kernels calls all; do
    echo "ours $what $("$program" "$ours" $what)"
    [ -z "$vendor" ] || echo "vendor $what $("$program" "$vendor" $what)"
  done
done >"$results"
python3 - "$results" <<'END'
import collections, statistics, sys

costs = collections.defaultdict(list)
for row in open(sys.argv[1]):
    who, what, launch, call = row.split()
    costs[who, what, "launch"].append(float(launch))
    costs[who, what, "call"].append(float(call))

def line(text, what, which):
    base = statistics.median(costs["-", "none", which])
    added = [statistics.median(costs[who, what, which]) - base for who in ("ours", "vendor") if (who, what, which) in costs]
    out = f"{text:<46}{base:7.0f}   ours {added[0]:+6.0f}"
    if len(added) > 1:
        out += f"   vendor {added[1]:+6.0f}" + (f"   ratio {added[0] / added[1]:.2f}" if added[1] > 0 else "")
    print(out)

line("a launch: kernels", "kernels", "launch")
line("a launch: kernels, runtime and driver calls", "all", "launch")
line("cudaGetDevice: kernels", "kernels", "call")
line("cudaGetDevice: runtime calls", "calls", "call")
END
