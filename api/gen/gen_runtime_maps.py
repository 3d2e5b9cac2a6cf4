#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""src/softgpu/runtime/generated/libcudart.so.*.map: version scripts of the runtime's generations.

A program that was linked against libcudart.so.12 or .11.0 asks for symbols of
that version, so each generation needs a library with its own node.
"""
from tables import banner, table

GENERATIONS = (("11.0", "so_11_0"), ("12", "so_12"), ("13", "so_13"))


def generate():
    rows = table("runtime_exports.tsv")
    files = {}
    for version, column in GENERATIONS:
        out = [banner("gen_runtime_maps.py", "#"), "libcudart.so.%s {\n  global:\n" % version]
        out += ["    %s;\n" % r.symbol for r in rows if r[column] == "yes"]
        out.append("  local:\n    *;\n};\n")
        files["src/softgpu/runtime/generated/libcudart.so.%s.map" % version] = "".join(out)
    return files
