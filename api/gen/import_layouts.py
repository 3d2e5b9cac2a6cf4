#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes api/layouts.tsv: size, alignment and offsets of every public structure.

    import_layouts.py INCLUDE_DIR

Run after import_facts.py; asks a C compiler about the toolkit's own headers.
"""
import os
import subprocess
import sys
import tempfile
import structs
from tables import API


def main():
    include = sys.argv[1]
    rows = []
    for group, includes in (("cuda", structs.CUDA_INCLUDES), ("cupti", structs.CUPTI_INCLUDES + ["cupti_activity.h"]),
                            ("nvperf", structs.NVPERF_INCLUDES)):
        lines = ["#include <stddef.h>\n#include <stdio.h>\n"] + ["#include <%s>\n" % i for i in includes]
        lines.append("int main(void) {\n")
        known = {n for n, r in structs.rowsOf(group)}
        skip = {n for n in known if n == "cupti_profiler_host"}
        hostOnly = set()
        for n, r in structs.rowsOf(group):
            if n in skip and r["item"] in ("struct", "union"):
                hostOnly.add(structs.cName(r))
        for name, members in structs.structures(group):
            if name in hostOnly:
                continue  # the toolkit's header of these is C++ alone
            lines.append('  printf("%s\\t%s\\t(whole)\\t%%zu\\t%%zu\\n", sizeof(%s), _Alignof(%s));\n' % (group, name, name, name))
            for m in members:
                lines.append('  printf("%s\\t%s\\t%s\\t%%zu\\t%%zu\\n", offsetof(%s, %s), sizeof(((%s*)0)->%s));\n' % (group, name, m, name, m, name, m))
        lines.append("  return 0;\n}\n")
        with tempfile.TemporaryDirectory() as d:
            source, program = os.path.join(d, "a.c"), os.path.join(d, "a")
            with open(source, "w") as f:
                f.write("".join(lines))
            subprocess.run(["cc", "-std=gnu11", "-w", "-I", include, source, "-o", program], check=True)
            rows += [line.split("\t") for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()]
    with open(os.path.join(API, "layouts.tsv"), "w") as f:
        f.write("group\tstruct\tfield\toffset_or_size\tsize_or_align\n")
        f.writelines("\t".join(r) + "\n" for r in rows)


if __name__ == "__main__":
    main()
