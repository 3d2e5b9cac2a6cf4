#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds libraries that live in other people's processes to libc's family: what
they link in addition could be there in another version.

    check_needed.py [--readelf readelf] LIBRARY...
"""
import argparse
import re
import sys

from check_library import ALLOWED, run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--readelf", default="readelf")
    arguments = parser.parse_args()
    problems = 0
    for library in arguments.libraries:
        needed = re.findall(r'\(NEEDED\).*\[(.*)\]', run(arguments.readelf, "-d", library))
        print("%s: %s" % (library, " ".join(needed)))
        if "libc.so.6" not in needed:
            print("  no libc.so.6: was anything read?")
            problems += 1
        for name in sorted(set(needed) - ALLOWED):
            print("  needs %s" % name)
            problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
