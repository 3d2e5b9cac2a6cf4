#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of events at the end of docs/COUNTERS.md from the catalogues.

--check: changes nothing, fails when the list is stale.
"""
import json
import pathlib
import sys

root = pathlib.Path(__file__).resolve().parent.parent
MARK = "## Every event\n"


def listing():
    out = [MARK]
    for name, title in (("classic", "The names of nvprof's time"), ("hopper", "Today's names")):
        catalogue = json.loads((root / f"src/softgpu/model/events/{name}.json").read_text())
        out.append(f"\n### {title} (`{name}`)\n")
        for domain in catalogue["domains"]:
            out.append(f"\nDomain `{domain['name']}`, instances: {domain.get('unit', 'sm')}\n\n| Event | Formula | Meaning |\n|---|---|---|\n")
            for e in domain["events"]:
                part = e.get("subset")
                where = f", instances {part[1]} mod {part[0]}" if part else ""
                out.append(f"| `{e['name']}` | `{e['value']}`{where} | {e['long']} |\n")
    return "".join(out)


def main():
    path = root / "docs/COUNTERS.md"
    text = path.read_text()
    wanted = text.split(MARK)[0] + listing()
    if "--check" in sys.argv[1:]:
        if text != wanted:
            sys.exit("docs/COUNTERS.md is stale: run tools/counters_doc.py")
    else:
        path.write_text(wanted)


main()
