#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of instruction forms whose results a real card records.

One form a line: the mnemonic, then operands as the test harness reads them,
each with the kind of its values: `add.rn.f32 D:f32 a:f32 b:f32`.
"""
import argparse
import sys

INTS = ["u16", "u32", "u64", "s16", "s32", "s64"]
ROUND = ["rn", "rz", "rm", "rp"]


def forms():
    def f(mnemonic, out, *sources):
        yield_.append(" ".join([mnemonic, out, *sources]))

    yield_ = []
    for t in INTS:
        for op in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
        for op in ["mad.lo", "mad.hi", "sad"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}", f"c:{t}")
        if not t.endswith("64"):
            wide = {"u16": "u32", "u32": "u64", "s16": "s32", "s32": "s64"}[t]
            f(f"mul.wide.{t}", f"D:{wide}", f"a:{t}", f"b:{t}")
            f(f"mad.wide.{t}", f"D:{wide}", f"a:{t}", f"b:{t}", f"c:{wide}")
        if t[0] == "s":
            f(f"abs.{t}", f"D:{t}", f"a:{t}")
            f(f"neg.{t}", f"D:{t}", f"a:{t}")
        f(f"shr.{t}", f"D:{t}", f"a:{t}", "b:n32")
    for op in ["add.sat", "sub.sat", "min.relu", "max.relu"]:
        f(f"{op}.s32", "D:s32", "a:s32", "b:s32")
    f("mad.hi.sat.s32", "D:s32", "a:s32", "b:s32", "c:s32")
    for t in ["u16x2", "s16x2"]:
        for op in ["add", "min", "max"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
    f("min.relu.s16x2", "D:s16x2", "a:s16x2", "b:s16x2")
    for t in ["u32", "s32"]:
        for op in ["mul24.lo", "mul24.hi"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
        for op in ["mad24.lo", "mad24.hi"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}", f"c:{t}")
    f("mad24.hi.sat.s32", "D:s32", "a:s32", "b:s32", "c:s32")
    for t in ["u32", "u64", "s32", "s64"]:
        for op in ["add.cc", "addc", "addc.cc", "sub.cc", "subc", "subc.cc"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
        if t[0] == "u":
            for op in ["mad.lo.cc", "mad.hi.cc", "madc.lo", "madc.lo.cc", "madc.hi", "madc.hi.cc"]:
                f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}", f"c:{t}")
    for a in ["u32", "s32"]:
        for b in ["u32", "s32"]:
            f(f"dp4a.{a}.{b}", "D:s32", f"a:{a}", f"b:{b}", "c:s32")
            f(f"dp2a.lo.{a}.{b}", "D:s32", f"a:{a}", f"b:{b}", "c:s32")
            f(f"dp2a.hi.{a}.{b}", "D:s32", f"a:{a}", f"b:{b}", "c:s32")

    for t in ["b16", "b32", "b64"]:
        for op in ["and", "or", "xor"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
        f(f"not.{t}", f"D:{t}", f"a:{t}")
        f(f"cnot.{t}", f"D:{t}", f"a:{t}")
        f(f"shl.{t}", f"D:{t}", f"a:{t}", "b:n32")
        f(f"shr.{t}", f"D:{t}", f"a:{t}", "b:n32")
    for op in ["and", "or", "xor"]:
        f(f"{op}.pred", "D:pred", "a:pred", "b:pred")
    f("not.pred", "D:pred", "a:pred")
    for lut in [0x1e, 0x2d, 0x80, 0x96, 0xca, 0xe8, 0xf8, 0x3c, 0x47, 0x5a]:
        f("lop3.b32", "D:b32", "a:b32", "b:b32", "c:b32", f"#{lut}")
    f("lop3.or.b32", "D:b32|E:pred", "a:b32", "b:b32", "c:b32", "#128", "d:pred")
    f("lop3.and.b32", "D:b32|E:pred", "a:b32", "b:b32", "c:b32", "#3", "d:pred")
    for d in "lr":
        for mode in ["wrap", "clamp"]:
            f(f"shf.{d}.{mode}.b32", "D:b32", "a:b32", "b:b32", "c:n32")
    for t in ["b32", "b64"]:
        f(f"popc.{t}", "D:b32", f"a:{t}")
        f(f"clz.{t}", "D:b32", f"a:{t}")
        f(f"brev.{t}", f"D:{t}", f"a:{t}")
        f(f"bfi.{t}", f"D:{t}", f"a:{t}", f"b:{t}", "c:n32", "d:n32")
    for t in ["u32", "u64", "s32", "s64"]:
        f(f"bfind.{t}", "D:b32", f"a:{t}")
        f(f"bfind.shiftamt.{t}", "D:b32", f"a:{t}")
        f(f"bfe.{t}", f"D:{t}", f"a:{t}", "b:n32", "c:n32")
    f("fns.b32", "D:b32", "a:b32", "b:lane", "c:offset")
    for mode in ["wrap", "clamp"]:
        f(f"bmsk.{mode}.b32", "D:b32", "a:n32", "b:n32")
        for t in ["u32", "s32"]:
            f(f"szext.{mode}.{t}", f"D:{t}", f"a:{t}", "b:n32")
    f("prmt.b32", "D:b32", "a:b32", "b:b32", "c:b32")
    for s in [0x5410, 0x7732, 0x0123, 0x9180, 0xba98]:
        f("prmt.b32", "D:b32", "a:b32", "b:b32", f"#{s}")
    for mode in ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]:
        f(f"prmt.b32.{mode}", "D:b32", "a:b32", "b:b32", "c:b32")

    for t, ops in [("s32", ["eq", "ne", "lt", "le", "gt", "ge"]), ("u64", ["lo", "ls", "hi", "hs"]),
                   ("u16", ["lt", "ge"]), ("b32", ["eq", "ne"])]:
        for op in ops:
            f(f"setp.{op}.{t}", "D:pred|E:pred", f"a:{t}", f"b:{t}")
    for t in ["f32", "f64", "f16", "bf16"]:
        for op in "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split():
            f(f"setp.{op}.{t}", "D:pred" if t.endswith("16") else "D:pred|E:pred", f"a:{t}", f"b:{t}")
    f("setp.lt.ftz.f32", "D:pred", "a:f32", "b:f32")
    f("setp.eq.ftz.f32", "D:pred", "a:f32", "b:f32")
    f("setp.eq.ftz.f16", "D:pred", "a:f16", "b:f16")
    f("setp.ltu.f16x2", "D:pred|E:pred", "a:f16x2", "b:f16x2")
    f("setp.ge.bf16x2", "D:pred|E:pred", "a:bf16x2", "b:bf16x2")
    for op in ["and", "or", "xor"]:
        f(f"setp.lt.{op}.s32", "D:pred|E:pred", "a:s32", "b:s32", "c:pred")
        f(f"setp.ge.{op}.f32", "D:pred|E:pred", "a:f32", "b:f32", "!c:pred")
        f(f"setp.lt.{op}.f16x2", "D:pred|E:pred", "a:f16x2", "b:f16x2", "c:pred")
    for d in ["u32", "s32", "f32"]:
        for t in ["s32", "f32", "f64", "u64"]:
            f(f"set.lt.{d}.{t}", f"D:{d}", f"a:{t}", f"b:{t}")
    f("set.ltu.ftz.u32.f32", "D:u32", "a:f32", "b:f32")
    f("set.ge.and.f32.s32", "D:f32", "a:s32", "b:s32", "c:pred")
    f("set.gt.f16.f16", "D:f16", "a:f16", "b:f16")
    f("set.gt.bf16.bf16", "D:bf16", "a:bf16", "b:bf16")
    f("set.gt.u16.f16", "D:b16", "a:f16", "b:f16")
    f("set.gt.u32.f16", "D:b32", "a:f16", "b:f16")
    f("set.leu.f16x2.f16x2", "D:f16x2", "a:f16x2", "b:f16x2")
    f("set.leu.bf16x2.bf16x2", "D:bf16x2", "a:bf16x2", "b:bf16x2")
    f("selp.b32", "D:b32", "a:b32", "b:b32", "c:pred")
    f("selp.f64", "D:f64", "a:f64", "b:f64", "c:pred")
    f("slct.u32.s32", "D:u32", "a:u32", "b:u32", "c:s32")
    f("slct.u64.f32", "D:u64", "a:u64", "b:u64", "c:f32")
    f("slct.ftz.f32.f32", "D:f32", "a:f32", "b:f32", "c:f32")
    f("mov.b64", "D:b64", "{a:b32,b:b32}")
    f("mov.b32", "D:b32", "{a:b16,b:b16}")
    f("mov.b64", "D:b64", "{a:b16,b:b16,c:b16,d:b16}")
    f("mov.b64", "{D:b32,E:b32}", "a:b64")
    f("mov.b32", "{D:b16,E:b16}", "a:b32")

    # Floating point.
    for t in ["f32", "f64"]:
        for op in ["add", "sub", "mul"]:
            for r in ROUND:
                f(f"{op}.{r}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
        for r in ROUND:
            f(f"fma.{r}.{t}", f"D:{t}", f"a:{t}", f"b:{t}", f"c:{t}")
            f(f"div.{r}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
            f(f"rcp.{r}.{t}", f"D:{t}", f"a:{t}")
            f(f"sqrt.{r}.{t}", f"D:{t}", f"a:{t}")
        for op in ["min", "max"]:
            f(f"{op}.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
        f(f"abs.{t}", f"D:{t}", f"a:{t}")
        f(f"neg.{t}", f"D:{t}", f"a:{t}")
        f(f"copysign.{t}", f"D:{t}", f"a:{t}", f"b:{t}")
        for test in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]:
            f(f"testp.{test}.{t}", "D:pred", f"a:{t}")
    for op in ["add", "sub", "mul"]:
        f(f"{op}.rn.ftz.f32", "D:f32", "a:f32", "b:f32")
        f(f"{op}.rn.sat.f32", "D:f32", "a:f32", "b:f32")
        f(f"{op}.rz.ftz.sat.f32", "D:f32", "a:f32", "b:f32")
    f("fma.rn.ftz.f32", "D:f32", "a:f32", "b:f32", "c:f32")
    f("fma.rp.sat.f32", "D:f32", "a:f32", "b:f32", "c:f32")
    f("div.rn.ftz.f32", "D:f32", "a:f32", "b:f32")
    f("rcp.rn.ftz.f32", "D:f32", "a:f32")
    f("sqrt.rn.ftz.f32", "D:f32", "a:f32")
    f("sqrt.rz.ftz.f32", "D:f32", "a:f32")
    f("abs.ftz.f32", "D:f32", "a:f32")
    f("neg.ftz.f32", "D:f32", "a:f32")
    for op in ["min", "max"]:
        for m in ["ftz", "NaN", "ftz.NaN", "xorsign.abs", "NaN.xorsign.abs"]:
            f(f"{op}.{m}.f32", "D:f32", "a:f32", "b:f32")
    for op in ["div.approx", "div.full", "div.approx.ftz", "div.full.ftz"]:
        f(f"{op}.f32", "D:f32", "a:f32", "b:f32")
    for op in ["rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"]:
        f(f"{op}.approx.f32", "D:f32", "a:f32")
        f(f"{op}.approx.ftz.f32", "D:f32", "a:f32")
    f("tanh.approx.f32", "D:f32", "a:f32")
    for op in ["sin", "cos"]:
        f(f"{op}.approx.f32", "D:f32", "a:angle")
    f("ex2.approx.f32", "D:f32", "a:exponent")
    f("rcp.approx.ftz.f64", "D:f64", "a:f64")
    f("rsqrt.approx.ftz.f64", "D:f64", "a:f64")
    f("rsqrt.approx.f64", "D:f64", "a:f64")

    # Half precision.
    for t in ["f16", "bf16"]:
        for x in ["", "x2"]:
            tt = t + x
            for op in ["add.rn", "sub.rn", "mul.rn"]:
                f(f"{op}.{tt}", f"D:{tt}", f"a:{tt}", f"b:{tt}")
            f(f"fma.rn.{tt}", f"D:{tt}", f"a:{tt}", f"b:{tt}", f"c:{tt}")
            f(f"fma.rn.relu.{tt}", f"D:{tt}", f"a:{tt}", f"b:{tt}", f"c:{tt}")
            f(f"neg.{tt}", f"D:{tt}", f"a:{tt}")
            f(f"abs.{tt}", f"D:{tt}", f"a:{tt}")
            for op in ["min", "max"]:
                for m in ["", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"]:
                    f(f"{op}{m}.{tt}", f"D:{tt}", f"a:{tt}", f"b:{tt}")
            f(f"tanh.approx.{tt}", f"D:{tt}", f"a:{tt}")
            f(f"ex2.approx{'.ftz' if t == 'bf16' else ''}.{tt}", f"D:{tt}", f"a:{tt}")
    for op in ["add", "sub", "mul"]:
        f(f"{op}.rn.ftz.f16", "D:f16", "a:f16", "b:f16")
        f(f"{op}.rn.sat.f16", "D:f16", "a:f16", "b:f16")
        f(f"{op}.rn.ftz.sat.f16x2", "D:f16x2", "a:f16x2", "b:f16x2")
    f("fma.rn.ftz.f16", "D:f16", "a:f16", "b:f16", "c:f16")
    f("fma.rn.sat.f16", "D:f16", "a:f16", "b:f16", "c:f16")
    f("neg.ftz.f16", "D:f16", "a:f16")
    f("abs.ftz.f16", "D:f16", "a:f16")
    f("min.ftz.f16", "D:f16", "a:f16", "b:f16")

    # Conversions.
    ints = ["u8", "s8"] + INTS
    for a in ints:
        for d in ints:
            if a != d:
                f(f"cvt.{d}.{a}", f"D:{d}", f"a:{a}")
                f(f"cvt.sat.{d}.{a}", f"D:{d}", f"a:{a}")
    for a in ["f16", "f32", "f64"]:
        for d in ints:
            for r in ["rni", "rzi", "rmi", "rpi"]:
                f(f"cvt.{r}.{d}.{a}", f"D:{d}", f"a:{a}")
    f("cvt.rzi.ftz.s32.f32", "D:s32", "a:f32")
    f("cvt.rpi.ftz.u64.f32", "D:u64", "a:f32")
    for d in ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]:
        f(f"cvt.rni.{d}.bf16", f"D:{d}", "a:bf16")
    for d in ["f16", "f32", "f64"]:
        for a in ints:
            for r in ROUND:
                f(f"cvt.{r}.{d}.{a}", f"D:{d}", f"a:{a}")
    for a in ["u8", "s8"] + INTS:
        f(f"cvt.rn.bf16.{a}", "D:bf16", f"a:{a}")
        f(f"cvt.rz.bf16.{a}", "D:bf16", f"a:{a}")
    f("cvt.rn.sat.f32.s32", "D:f32", "a:s32")
    for r in ROUND:
        f(f"cvt.{r}.f16.f32", "D:f16", "a:f32")
        f(f"cvt.{r}.f16.f64", "D:f16", "a:f64")
        f(f"cvt.{r}.f32.f64", "D:f32", "a:f64")
        f(f"cvt.{r}.ftz.f32.f64", "D:f32", "a:f64")
        f(f"cvt.{r}.bf16.f32", "D:bf16", "a:f32")
        f(f"cvt.{r}.bf16.f64", "D:bf16", "a:f64")
        f(f"cvt.{r}.bf16.f16", "D:bf16", "a:f16")
        f(f"cvt.{r}.f16.bf16", "D:f16", "a:bf16")
    for r in ["rni", "rzi", "rmi", "rpi"]:
        for t in ["f16", "f32", "f64"]:
            f(f"cvt.{r}.{t}.{t}", f"D:{t}", f"a:{t}")
        f(f"cvt.{r}.bf16.bf16", "D:bf16", "a:bf16")
    f("cvt.rni.ftz.f32.f32", "D:f32", "a:f32")
    f("cvt.rzi.sat.f32.f32", "D:f32", "a:f32")
    f("cvt.sat.f32.f32", "D:f32", "a:f32")
    f("cvt.ftz.f32.f32", "D:f32", "a:f32")
    f("cvt.sat.f64.f64", "D:f64", "a:f64")
    f("cvt.sat.f16.f16", "D:f16", "a:f16")
    f("cvt.rn.sat.f16.f32", "D:f16", "a:f32")
    f("cvt.rn.ftz.f16.f32", "D:f16", "a:f32")
    f("cvt.f32.f16", "D:f32", "a:f16")
    f("cvt.sat.f32.f16", "D:f32", "a:f16")
    f("cvt.ftz.f32.f16", "D:f32", "a:f16")
    f("cvt.f64.f16", "D:f64", "a:f16")
    f("cvt.f32.bf16", "D:f32", "a:bf16")
    f("cvt.f64.bf16", "D:f64", "a:bf16")
    f("cvt.f64.f32", "D:f64", "a:f32")
    f("cvt.ftz.f64.f32", "D:f64", "a:f32")
    f("cvt.sat.f64.f32", "D:f64", "a:f32")
    for d in ["f16", "bf16"]:
        for m in ["rn.relu", "rz.relu", "rn.satfinite", "rz.satfinite", "rn.relu.satfinite"]:
            f(f"cvt.{m}.{d}.f32", f"D:{d}", "a:f32")
        for m in ["rn", "rz", "rn.relu", "rz.relu", "rn.satfinite", "rn.relu.satfinite"]:
            f(f"cvt.{m}.{d}x2.f32", f"D:{d}x2", "a:f32", "b:f32")
    for m in ["rna", "rn", "rz", "rn.relu", "rz.relu", "rna.satfinite"]:
        f(f"cvt.{m}.tf32.f32", "D:b32", "a:f32")
    for e in ["e4m3x2", "e5m2x2"]:
        for relu in ["", ".relu"]:
            f(f"cvt.rn.satfinite{relu}.{e}.f32", "D:b16", "a:f32", "b:f32")
            f(f"cvt.rn.satfinite{relu}.{e}.f16x2", "D:b16", "a:f16x2")
            f(f"cvt.rn{relu}.f16x2.{e}", "D:f16x2", "a:b16")
    for d in ["u16", "s16"]:
        f(f"cvt.pack.sat.{d}.s32", "D:b32", "a:s32", "b:s32")
    for d in ["u8", "s8"]:
        f(f"cvt.pack.sat.{d}.s32.b32", "D:b32", "a:s32", "b:s32", "c:b32")

    # Video.
    for op in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"]:
        for d in ["u32", "s32"]:
            for a, b in [("u32", "u32"), ("s32", "s32"), ("u32", "s32")]:
                t = f"{d}.{a}.{b}"
                f(f"{op}.{t}", "D:b32", "a:b32", "b:b32")
                f(f"{op}.{t}.sat", "D:b32", "a.b1:b32", "b.h1:b32")
        f(f"{op}.s32.s32.s32.add", "D:b32", "a.b3:b32", "b.b0:b32", "c:b32")
        f(f"{op}.u32.u32.s32.sat.min", "D:b32", "a.h0:b32", "b.b2:b32", "c:b32")
        f(f"{op}.s32.u32.s32.max", "D:b32", "a.h0:b32", "b:b32", "c:b32")
        f(f"{op}.u32.u32.u32", "D.h0:b32", "a:b32", "b:b32", "c:b32")
    for op in ["vshl", "vshr"]:
        for d in ["u32", "s32"]:
            for a in ["u32", "s32"]:
                for mode in ["wrap", "clamp"]:
                    f(f"{op}.{d}.{a}.u32.{mode}", "D:b32", "a:b32", "b:n32")
                    f(f"{op}.{d}.{a}.u32.sat.{mode}", "D:b32", "a.h1:b32", "b.b0:n32")
        f(f"{op}.s32.s32.u32.clamp.add", "D:b32", "a:b32", "b:n32", "c:b32")
    for op in ["eq", "ne", "lt", "le", "gt", "ge"]:
        f(f"vset.s32.u32.{op}", "D:b32", "a:b32", "b:b32")
    f("vset.u32.u32.lt.add", "D:b32", "a.b1:b32", "b.b2:b32", "c:b32")
    f("vset.u32.u32.lt", "D.b1:b32", "a.b1:b32", "b.b2:b32", "c:b32")
    for t in ["u32.u32.u32", "s32.s32.s32", "s32.u32.s32", "s32.u32.u32"]:
        for m in ["", ".sat", ".shr7", ".sat.shr15"]:
            f(f"vmad.{t}{m}", "D:b32", "a.h0:b32", "b.h1:b32", "c:b32")
        f(f"vmad.{t}", "D:b32", "a.b0:b32", "b.b3:b32", "c:b32")
    f("vmad.s32.s32.s32", "D:b32", "-a.h0:b32", "b.h0:b32", "c:b32")
    f("vmad.s32.s32.s32.sat", "D:b32", "a.h0:b32", "b.h0:b32", "-c:b32")
    f("vmad.s32.u32.u32.po", "D:b32", "a.h0:b32", "b.h0:b32", "c:b32")
    for op in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"]:
        for n, sel in [("2", ("h10", "h32", "h13", "h02")), ("4", ("b3210", "b7654", "b0246", "b1357"))]:
            for t in ["u32.u32.u32", "s32.s32.s32"]:
                f(f"{op}{n}.{t}", "D:b32", "a:b32", "b:b32", "c:b32")
                if op != "vavrg":
                    f(f"{op}{n}.{t}.sat", "D:b32", "a:b32", "b:b32", "c:b32")
                f(f"{op}{n}.{t}.add", "D:b32", "a:b32", "b:b32", "c:b32")
            f(f"{op}{n}.s32.u32.s32", "D:b32", "a:b32", "b:b32", "c:b32")
            f(f"{op}{n}.u32.u32.u32", "D:b32", f"a.{sel[2]}:b32", f"b.{sel[3]}:b32", "c:b32")
            mask = "h1" if n == "2" else "b20"
            f(f"{op}{n}.s32.s32.s32", f"D.{mask}:b32", "a:b32", "b:b32", "c:b32")
            f(f"{op}{n}.u32.u32.u32.add", f"D.{mask}:b32", "a:b32", "b:b32", "c:b32")
    for n in "24":
        for op in ["eq", "lt", "ge"]:
            f(f"vset{n}.u32.u32.{op}", "D:b32", "a:b32", "b:b32", "c:b32")
            f(f"vset{n}.s32.s32.{op}.add", "D:b32", "a:b32", "b:b32", "c:b32")
    return yield_


def main():
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("\n".join(forms()))


if __name__ == "__main__":
    sys.exit(main())
