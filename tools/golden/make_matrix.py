#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of mma forms whose products a real card records, or (--ptx LIST) their kernels.

A line: the mnemonic, then m n k, the types of a b c d, their numbers of
registers, and the flags satfinite, and.popc, column-major a, row-major b.
"""
import argparse
import sys

BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
        "s4": 4, "u4": 4, "b1": 1}


def forms():
    lines = []

    def add(m, n, k, a, b, c, d, mods="", layout="row.col", popc=""):
        def registers(rows, columns, t):
            return max(1, rows * columns * BITS[t] // 32 // (64 if BITS[t] == 64 else 32))
        ra, rb = registers(m, k, a), registers(k, n, b)
        rc, rd = registers(m, n, c), registers(m, n, d)
        if (m, k, a) == (8, 4, "f16"):   # four products in one instruction
            ra, rb, rc, rd = 4 * m * k // 64, 4 * k * n // 64, 4 * m * n * BITS[c] // 1024, 4 * m * n * BITS[d] // 1024
        mnemonic = f"mma.sync.aligned.m{m}n{n}k{k}.{layout}{mods}.{d}.{a}.{b}.{c}{popc}"
        flags = [int("satfinite" in mods), int("and" in popc), int(layout.startswith("col")), int(layout.endswith("row"))]
        lines.append(" ".join(map(str, [mnemonic, m, n, k, a, b, c, d, ra, rb, rc, rd, *flags])))

    for k in (8, 16):
        for acc in ("f16", "f32"):
            add(16, 8, k, "f16", "f16", acc, acc)
        add(16, 8, k, "bf16", "bf16", "f32", "f32")
    for k in (4, 8):
        add(16, 8, k, "tf32", "tf32", "f32", "f32")
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            add(16, 8, 32, a, b, "f32", "f32")
    add(8, 8, 4, "f64", "f64", "f64", "f64")
    for k in (4, 8, 16):
        add(16, 8, k, "f64", "f64", "f64", "f64")
    for layout in ("row.col", "col.row", "row.row", "col.col"):
        add(8, 8, 4, "f16", "f16", "f16", "f16", layout=layout)
        add(8, 8, 4, "f16", "f16", "f32", "f32", layout=layout)
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            for m, k in ((8, 16), (16, 16), (16, 32)):
                add(m, 8, k, a, b, "s32", "s32", ".satfinite" if a == b else "")
    for a in ("s4", "u4"):
        for b in ("s4", "u4"):
            for m, k in ((8, 32), (16, 32), (16, 64)):
                add(m, 8, k, a, b, "s32", "s32", ".satfinite" if a != b else "")
    for popc in (".xor.popc", ".and.popc"):
        for m, k in ((8, 128), (16, 128), (16, 256)):
            add(m, 8, k, "b1", "b1", "s32", "s32", popc=popc)
    return lines


def kernel(number, line):
    words = line.split()
    mnemonic = words[0]
    types = words[4:8]
    counts = [int(w) for w in words[8:12]]
    body, lists, word = [], [], 0
    for part, (t, count) in enumerate(zip(types, counts)):
        c = {"f64": "d"}.get(t, "f" if t == "f32" else "r")
        names = [f"%{c}{part}_{i}" for i in range(count)]
        lists.append("{" + ", ".join(names) + "}")
        suffix = {"d": "f64", "f": "f32", "r": "b32"}[c]
        body.append(f"  .reg .{suffix} " + ", ".join(names) + ";")
        size = 8 if c == "d" else 4
        for i, name in enumerate(names):
            if part < 3:
                body.append(f"  ld.global.{suffix} {name}, [%in + {word * 128}];")
                if size == 8:   # a row of 32 doubles is two rows of words; the lane's offset is doubled
                    body[-1] = f"  ld.global.{suffix} {name}, [%in8 + {word * 128}];"
                word += size // 4
    operands = ", ".join([lists[3], lists[0], lists[1], lists[2]])
    stores = []
    word = 0
    for i in range(counts[3]):
        t = types[3]
        if t == "f64":
            stores.append(f"  st.global.f64 [%out8 + {word * 128}], %d3_{i};")
            word += 2
        else:
            c = "f" if t == "f32" else "r"
            stores.append(f"  st.global.{'f32' if c == 'f' else 'b32'} [%out + {word * 128}], %{c}3_{i};")
            word += 1
    text = "\n".join(body)
    return f"""
.visible .entry f{number}(.param .u64 in, .param .u64 out, .param .u32 inbytes, .param .u32 outbytes)
{{
  .reg .b32 %t, %c, %b;
  .reg .b64 %in, %out, %in8, %out8;
  mov.u32 %t, %tid.x;
  mov.u32 %c, %ctaid.x;
  ld.param.u64 %in, [in];
  ld.param.u32 %b, [inbytes];
  mad.wide.u32 %in, %c, %b, %in;
  mad.wide.u32 %in8, %t, 8, %in;
  mad.wide.u32 %in, %t, 4, %in;
  ld.param.u64 %out, [out];
  ld.param.u32 %b, [outbytes];
  mad.wide.u32 %out, %c, %b, %out;
  mad.wide.u32 %out8, %t, 8, %out;
  mad.wide.u32 %out, %t, 4, %out;
{text}
  {mnemonic} {operands};
{chr(10).join(stores)}
  ret;
}}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ptx", metavar="LIST")
    args = parser.parse_args()
    if not args.ptx:
        print("\n".join(forms()))
        return
    print(".version 9.0\n.target sm_90\n.address_size 64")
    with open(args.ptx, encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            print(kernel(number, line.strip()))


if __name__ == "__main__":
    sys.exit(main())
