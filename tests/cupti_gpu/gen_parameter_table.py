#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of parameter_values_test.cpp: for each exported function of
the software GPU its callback id and the types of its parameters.

Usage: gen_parameter_table.py api/driver_functions.tsv CODE OUTPUT MACRO
CODE is the source with the exported functions; others are left out.
"""
import re
import sys


def type_of(declaration):
    if re.search(r"\(\s*\*", declaration):
        return "void (*)(void*)"
    name = re.findall(r"\w+", declaration.split("[")[0])[-1]
    kind = re.sub(rf"\b{name}\b(?=[^\w]*$)", "", declaration.split("[")[0]).strip()
    return kind + "*" if "[" in declaration else kind


def main():
    table, code, output, macro = sys.argv[1:]
    exported = set(re.findall(r"(?:SONDE_EXPORT|CUDARTAPI) (\w+)\(", open(code).read()))
    lines = open(table).read().splitlines()
    head = lines[0].split("\t")
    chosen = {}
    for line in lines[1:]:
        row = dict(zip(head, line.split("\t") + [""] * len(head)))
        if row["symbol"] in exported and row["params"] not in ("", "-", "void"):
            before = chosen.get(row["symbol"])
            if before is None or int(row["cbid"]) > int(before["cbid"]):  # of several ids the last is in use
                chosen[row["symbol"]] = row
    with open(output, "w") as out:
        for row in chosen.values():
            types = [type_of(p.strip()) for p in row["params"].split(";") if p.strip()]
            out.write(f'{macro}({row["cbid"]}, "{row["symbol"]}", {", ".join(types)})\n')


main()
