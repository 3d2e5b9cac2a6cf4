# SPDX-License-Identifier: Apache-2.0
"""How many of each kernel, copy and set: from the report cuda_gpu_sum that `sonde run --csv` prints."""
import csv
import sys

with open(sys.argv[1], newline="", encoding="utf-8") as report:
    lines = [line for line in report if "," in line]
start = next((i for i, line in enumerate(lines) if "Instances" in line), len(lines))
rows = [row for row in csv.DictReader(lines[start:]) if row["Operation"]]  # not the messages behind the table
for row in sorted(rows, key=lambda r: (r["Category"], r["Operation"])):
    print(row["Instances"], row["Category"], row["Operation"][:100])
