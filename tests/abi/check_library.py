#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds a built libcupti to api/exports.tsv and api/coverage.tsv.

    check_library.py LIBCUPTI [--nm nm] [--readelf readelf]

Exactly the listed symbols, all of version libcupti.so.13; no dependency beyond
libc's family and libgcc_s; a thread-local block that fits where the library is
opened late; and what the table calls unsupported says so.
"""
import argparse
import csv
import ctypes
import os
import re
import subprocess
import sys

API = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "api")
NODE = "libcupti.so.13"
ALLOWED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "libgcc_s.so.1"}
NOT_SUPPORTED = 27
# glibc keeps 1664 bytes of static thread-local storage for libraries opened by
# dlopen, for all of them together.
MAX_TLS = 1600


def table(name):
    with open(os.path.join(API, name), newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--readelf", default="readelf")
    parser.add_argument("--sanitized", action="store_true", help="allow the sanitizers' libraries; do not load it")
    args = parser.parse_args()
    problems = []

    exported = {}
    for line in run(args.nm, "-D", "--defined-only", args.library).splitlines():
        kind, name = line.split()[1:3] if len(line.split()) == 3 else (line.split()[0], line.split()[1])
        name, _, version = name.partition("@")
        if kind != "A":
            exported[name] = version.lstrip("@")
    wanted = {r["symbol"] for r in table("exports.tsv")}
    problems += ["missing: %s" % s for s in sorted(wanted - set(exported))]
    problems += ["exported but not in api/exports.tsv: %s" % s for s in sorted(set(exported) - wanted)]
    problems += ["%s has version %r, not %s" % (s, v, NODE) for s, v in sorted(exported.items()) if v != NODE]

    dynamic = run(args.readelf, "-d", args.library)
    needed = set(re.findall(r'\(NEEDED\).*\[(.*)\]', dynamic))
    if not args.sanitized:
        problems += ["needs %s" % n for n in sorted(needed - ALLOWED)]
    tls = re.search(r"^ *TLS +\S+ +\S+ +\S+ +\S+ +(0x[0-9a-f]+)", run(args.readelf, "-lW", args.library), re.M)
    if tls and int(tls.group(1), 16) > MAX_TLS:
        problems.append("thread-local block of %d bytes, more than %d" % (int(tls.group(1), 16), MAX_TLS))
    if "Library soname: [%s]" % NODE not in dynamic:
        problems.append("SONAME is not %s" % NODE)

    if not args.sanitized:
        library = ctypes.CDLL(os.path.abspath(args.library))
        for r in table("coverage.tsv"):
            if r["symbol"] not in exported or r["state"] != "unsupported" or not r["symbol"].startswith("cupti") or "OpenMp" in r["symbol"]:
                continue
            result = getattr(library, r["symbol"])(*[ctypes.c_void_p(0)] * 6)
            if result != NOT_SUPPORTED:
                problems.append("%s is listed as unsupported and returns %d" % (r["symbol"], result))
    for p in problems:
        print(p)
    print("%d symbols, %d problems" % (len(exported), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
