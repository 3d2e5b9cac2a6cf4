# SPDX-License-Identifier: Apache-2.0
"""Kernels, copies and sets of a trace in CSV that sonde wrote: how many of each."""
import collections
import csv
import sys

counts = collections.Counter()
with open(sys.argv[1], newline="", encoding="utf-8") as table:
    for row in csv.DictReader(line for line in table if not line.startswith("#")):
        kind = (row.get("kind") or row.get("Kind") or "").lower()
        if "kernel" in kind or "mem" in kind:
            counts[kind, (row.get("name") or row.get("Name") or "")[:100]] += 1
for (kind, name), count in sorted(counts.items()):
    print(count, kind, name)
