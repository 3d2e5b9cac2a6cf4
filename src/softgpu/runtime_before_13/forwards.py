#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the assembly of an older runtime library: one jump for each function.

Usage: forwards.py RUNTIME_EXPORTS COLUMN OUTPUT SOURCE...

RUNTIME_EXPORTS is api/runtime_exports.tsv, COLUMN its column (so_12, so_11_0).
Functions that a SOURCE defines (SONDE_OLD(name), and SONDE_OLD_11(name) for
so_11_0) have an older form that differs; the others jump to the function of the
same name in libcudart.so.13, whose address the library finds when it is loaded.
"""
import re
import sys


def main():
    table, column, output = sys.argv[1:4]
    with open(table, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    index = rows[0].index(column)
    text = ""
    for source in sys.argv[4:]:
        with open(source, encoding="utf-8") as file:
            text += file.read()
    own = set(re.findall(r"^SONDE_OLD\((\w+)\)", text, re.M))
    if column == "so_11_0":
        own |= set(re.findall(r"^SONDE_OLD_11\((\w+)\)", text, re.M))
    exported = [r[0] for r in rows[1:] if r[index] == "yes"]
    names = [n for n in exported if n not in own]
    lines = ["# Written by forwards.py; do not edit.", ".text"]
    targets = {name: "*sonde_forward_slots+%d(%%rip)" % (8 * i) for i, name in enumerate(names)}
    for name in exported:
        lines += [".globl %s" % name, ".type %s, @function" % name, ".p2align 4", "%s:" % name,
                  "  jmp %s" % targets.get(name, "sonde_old_" + name), ".size %s, .-%s" % (name, name)]
    lines += [".section .data.rel.ro, \"aw\"", ".p2align 3", ".globl sonde_forward_names",
              ".hidden sonde_forward_names", "sonde_forward_names:"]
    lines += ["  .quad .Lname%d" % i for i in range(len(names))] + ["  .quad 0"]
    lines += [".section .rodata.str1.1, \"aMS\", @progbits, 1"]
    for i, name in enumerate(names):
        lines += [".Lname%d:" % i, "  .asciz \"%s\"" % name]
    lines += [".bss", ".p2align 3", ".globl sonde_forward_slots", ".hidden sonde_forward_slots",
              "sonde_forward_slots:", "  .zero %d" % (8 * len(names)), ".section .note.GNU-stack,\"\",@progbits"]
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
