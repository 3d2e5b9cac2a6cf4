#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes entries_generated.inc: the exported functions of libcuda.so.1.

Input: api/driver_functions.tsv (every function with cbid, parameters and
version), the DRIVER_API(name) definitions in this folder, and refused.tsv: the
functions that answer NOT_SUPPORTED, with the reason. For each of these, and its
per-thread-stream twin, one entry is written; functions without one are not
exported at all. docs/DRIVER_FUNCTIONS.md tells which is which. With --check:
fails when a committed file is stale.
"""
import pathlib
import re
import sys

here = pathlib.Path(__file__).resolve().parent
root = here.parents[2]


# Declared in the public header, but without a parameter structure in the table.
PARAMETERS = {"cuProfilerInitialize": "const char *configFile; const char *outputFile; CUoutput_mode outputMode"}


def split_params(text):
    """'T a; U *b' -> [(declaration, name)]"""
    out = []
    for part in filter(None, (p.strip() for p in text.split(";"))):
        if part == "-":
            continue
        function_pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", part)
        name = function_pointer.group(1) if function_pointer else re.findall(r"\w+", part.split("[")[0])[-1]
        out.append((part, name))
    return out


def version_number(text):
    major, minor = text.split(".")
    return int(major) * 1000 + int(minor) * 10


def main():
    implemented = set()
    for source in sorted(here.glob("*.cpp")):
        implemented |= set(re.findall(r"^DRIVER_API\((\w+)\)", source.read_text(), re.M))
    refusals = [line.split("\t") for line in (here / "refused.tsv").read_text().splitlines()]
    refused = {r[0]: r[1] for r in refusals}
    quiet = {r[0] for r in refusals if r[2:] == ["quiet"]}  # those that libraries call without being asked to
    # Functions with 32-bit pointers, whose body is one line that says so.
    narrow = set(re.findall(r'needs64Bits\("(\w+)"\)', "".join(p.read_text() for p in here.glob("api_legacy*.cpp"))))
    if both := sorted(implemented & refused.keys()):
        sys.exit("both implemented and in refused.tsv: " + ", ".join(both))
    exported = implemented | refused.keys()

    rows = [line.split("\t") for line in (root / "api/driver_functions.tsv").read_text().splitlines()]
    header, rows = rows[0], [r for r in rows[1:] if r and r[0]]
    column = {name: i for i, name in enumerate(header)}
    lines, table, known, declared = [], [], set(), set()
    for row in rows:
        cbid, symbol = int(row[column["cbid"]]), row[column["symbol"]]
        twin = re.fullmatch(r"(\w+?)_(ptsz|ptds)", symbol)
        base = twin.group(1) if twin else symbol
        known.add(base)
        if base not in exported:
            continue
        params = split_params(PARAMETERS.get(base) or (row[column["params"]] if len(row) > column["params"] else ""))
        packed = params and base not in PARAMETERS
        declaration = ", ".join(p for p, _ in params)
        arguments = ", ".join(n for _, n in params)
        lines.append(f"#undef {symbol}\n#undef {base}")
        if not twin or symbol.replace("_" + twin.group(2), "") not in declared:
            if base in refused:
                types = ", ".join(re.sub(rf"\b{n}\b(?=[^\w]*$)", "", p) for p, n in params)
                lines.append(f"CUresult {base}_impl({types}) {{")
                lines.append(f"  static std::atomic<bool> said{{{'true' if base in quiet else 'false'}}};")
                lines.append(f'  return refuse("{base}", "{refused[base]}", said);\n}}')
            else:
                lines.append(f"CUresult {base}_impl({declaration});")
            declared.add(base)
        lines.append(f"SONDE_EXPORT {symbol}({declaration}) {{")
        if twin:
            lines.append("  PerThreadScope perThread;")
        lines.append(f"  if (!tools::listening({cbid})) [[likely]] return {base}_impl({arguments});")
        values = "nullptr"
        if packed:
            members = " ".join(p + ";" for p, _ in params)
            lines.append(f"  struct {{ {members} }} values{{{arguments}}};")
            values = f"&values, launchedKernel({arguments})"
        lines.append(f'  tools::ApiScope call({cbid}, "{symbol}", {values});')
        lines.append(f"  return call.exit({base}_impl({arguments}));\n}}")
        lookup = re.sub(r"_v\d+$", "", base)
        since = row[column["since"]]
        if since != "-":
            table.append((lookup, version_number(since), 1 if twin else 0, symbol))

    # Names under which a function is also looked up: the header maps them.
    for alias, version, symbol in (("cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"),):
        if symbol in implemented:
            table.append((alias, version, 0, symbol))

    missing = sorted(exported - known)
    if missing:
        sys.exit("no such functions in api/driver_functions.tsv: " + ", ".join(missing))
    table.sort(key=lambda t: (t[0], t[2], t[1]))
    text = "// SPDX-License-Identifier: Apache-2.0\n// Written by gen_entries.py; do not edit.\n#ifdef SONDE_ENTRIES\n"
    text += "\n".join(lines) + "\n#endif\n#ifdef SONDE_LOOKUP\n"
    text += "\n".join(f'SONDE_LOOKUP("{n}", {v}, {t}, {s})' for n, v, t, s in table) + "\n#endif\n"
    # What the vendor's library exports; a few names have a callback id alone.
    bases = [r for r in rows if not re.search(r"_pt[sd][zs]$", r[column["symbol"]]) and r[column["since"]] != "-"
             and r[column["exported"]] == "yes"]
    count = {"yes": 0, "refused": 0, "no": 0}
    listing = ""
    for r in sorted(bases, key=lambda r: r[column["symbol"]].lower()):
        symbol = r[column["symbol"]]
        reason = refused.get(symbol) or ("its device pointers have 32 bits" if symbol in narrow else None)
        state = "refused" if reason else "yes" if symbol in implemented else "no"
        count[state] += 1
        listing += f"| {symbol} | {r[column['since']]} | {'refused: ' + reason if reason else state} |\n"
    status = ("# Driver functions of the software GPU\n\n"
              f"Written by src/softgpu/driver/gen_entries.py. Of {len(bases)} functions {count['yes']} are there. "
              f"{count['refused']} are exported, answer CUDA_ERROR_NOT_SUPPORTED, and give the reason below on stderr "
              f"({', '.join(sorted(quiet))}, which libraries call by themselves, in silence). {count['no']} are not exported, and cuGetProcAddress answers "
              "CUDA_ERROR_NOT_FOUND for them.\n\n"
              "| Function | Since | There |\n|---|---|---|\n") + listing
    for target, wanted in ((here / "entries_generated.inc", text), (root / "docs/DRIVER_FUNCTIONS.md", status)):
        if "--check" not in sys.argv:
            target.write_text(wanted)
        elif not target.exists() or target.read_text() != wanted:
            sys.exit(f"{target} is stale: run {pathlib.Path(__file__).name}")


main()
