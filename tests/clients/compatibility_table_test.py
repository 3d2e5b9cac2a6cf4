#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each row of the table "6.5 and 13.0" in docs/COMPATIBILITY.md names tests, and they exist.

Usage: compatibility_table_test.py SOURCE_DIR
"""
import glob
import os
import re
import sys


def testNames(root):
    """Suite.Case of every test in the sources."""
    names = set()
    for path in glob.glob(os.path.join(root, "tests", "**", "*.cpp"), recursive=True):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        names |= {"%s.%s" % m for m in re.findall(r'\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)', text)}
    return names


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "docs", "COMPATIBILITY.md"), encoding="utf-8") as f:
        text = f.read()
    section = text[text.index("## 6.5 and 13.0"):text.index("## Differences from the vendor")]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")][2:]
    known = testNames(root)
    bad = 0
    for row in rows:
        what = row[0].strip()
        tests = re.findall(r'`(\w+\.\w+)`', row[-1])
        if len(row) != 4 or (not tests and row[-1].strip(" |") != "the same"):
            print("no test is named: " + what)
            bad += 1
        for name in tests:
            if name not in known:
                print("%s: there is no test %s" % (what, name))
                bad += 1
    if len(rows) < 13:
        print("only %d rows" % len(rows))
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
