#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes every generated file of the project from the tables in api/.

    generate.py [--root DIR]   write below DIR (default: this checkout)
    generate.py --check        write nothing; exit 1 if a committed file is not what would be written
    generate.py --list         the paths
"""
import argparse
import difflib
import os
import re
import sys
import gen_abi_tests
import gen_callback_names
import gen_cuda_headers
import gen_cupti_headers
import gen_nvidia_hooks
import gen_nvperf_headers
import gen_nvtx
import gen_runtime_maps
import gen_unsupported
import gen_vectors
from tables import ROOT, table, write

GENERATORS = [gen_callback_names, gen_cuda_headers, gen_cupti_headers, gen_vectors, gen_abi_tests, gen_unsupported, gen_runtime_maps, gen_nvidia_hooks, gen_nvtx,
              gen_nvperf_headers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=ROOT)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    files = {}
    for g in GENERATORS:
        for path, text in g.generate().items():
            assert path not in files, path
            files[path] = re.sub(r'\n{3,}', '\n\n', text)
    words = set(re.findall(r'\w+', "".join(t for p, t in files.items() if p.startswith("include/"))))
    for name in ("cuda", "runtime", "cupti", "nvperf", "enumerators", "fields"):
        unused = [r["name"] for r in table("docs/%s.tsv" % name) if r["name"] not in words]
        if unused:
            raise SystemExit("api/docs/%s.tsv explains what no header has: %s" % (name, " ".join(unused)))
    if args.list:
        print("\n".join(sorted(files)))
        return 0
    if not args.check:
        for path, text in files.items():
            write(path, text, args.root)
        return 0
    stale = 0
    for path, text in sorted(files.items()):
        full = os.path.join(args.root, path)
        old = open(full).read() if os.path.exists(full) else ""
        if old != text:
            stale += 1
            print("stale: %s" % path)
            for line in list(difflib.unified_diff(old.splitlines(), text.splitlines(), "committed", "from the tables", lineterm="", n=1))[:20]:
                print("  " + line)
    if stale:
        print("%d generated file(s) differ from the tables: run api/gen/generate.py and commit the result." % stale)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
