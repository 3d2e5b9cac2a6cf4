# SPDX-License-Identifier: Apache-2.0
"""ZLUDA's PTX cases: each is a kernel, an input array and the output array that it must write.

The arrays stand in the suite's Rust source; this reads the literals from there.
Run as a program it executes one case through the driver (a crash then ends
nothing but that case): ptx_cases.py LIBCUDA FILE KERNEL THREADS IN OUT, the
arrays in hexadecimal.
"""
import ctypes
import math
import os
import re
import struct
import sys

from build import Row, firstError

FORMATS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q",
           "f32": "f", "f64": "d", "f16": "e"}
WARP_CASE_THREADS = 64
DYNAMIC_SHARED = 1024
DEFAULT_TARGET = 90


def splitTop(text):
    """Parts between the commas that are in no bracket."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p.strip() for p in parts + [part] if p.strip()]


def literal(text):
    """(type or None, value or raw bits as bytes) of one Rust expression of the few forms that occur."""
    text = text.strip()
    if "/" in text:
        kind, a = literal(text.split("/")[0])
        return kind, a / literal(text.split("/")[1])[1]
    if text.startswith("-"):
        kind, value = literal(text[1:])
        return kind, -value
    m = re.fullmatch(r"(?:half::)?(f16|f32|f64)::from_bits\((.*)\)", text)
    if m:
        size = {"f16": 2, "f32": 4, "f64": 8}[m.group(1)]
        return m.group(1), struct.unpack("<" + FORMATS[m.group(1)], literal(m.group(2))[1].to_bytes(size, "little"))[0]
    m = re.fullmatch(r"(?:half::)?f16::from_f32\((.*)\)", text)
    if m:
        return "f16", literal(m.group(1))[1]
    m = re.fullmatch(r"(?:std::)?(?:half::)?(f16|f32|f64)::(?:consts::)?(\w+?)(?:\.to_bits\(\))?", text)
    if m:
        value = {"NAN": math.nan, "INFINITY": math.inf, "NEG_INFINITY": -math.inf, "PI": math.pi}[m.group(2)]
        if text.endswith(".to_bits()"):
            return "u16", struct.unpack("<H", struct.pack("<e", value))[0]
        return m.group(1), value
    m = re.fullmatch(r"([ui])(8|16|32|64)::(max_value|min_value|MAX|MIN)(?:\(\))?", text)
    if m:
        bits = int(m.group(2))
        signed = m.group(1) == "i"
        high = (1 << (bits - signed)) - 1
        return m.group(1) + m.group(2), high if m.group(3).lower().startswith("max") else (-high - 1 if signed else 0)
    m = re.fullmatch(r"(0x[0-9a-fA-F_]+?|0b[01_]+|[0-9_]+)(?:_?([ui](?:8|16|32|64)))?", text)
    if m:
        return m.group(2), int(m.group(1).replace("_", ""), 0 if m.group(1)[:2] in ("0x", "0b") else 10)
    m = re.fullmatch(r"([0-9_.]+(?:e-?\d+)?)(f32|f64)?", text)
    if m:
        return m.group(2) or "float", float(m.group(1))
    raise ValueError("cannot read " + text)


def array(text):
    """(type, bytes) of an array literal, [x; n] included."""
    body = text.strip()[1:-1]
    repeat = re.fullmatch(r"(.*);\s*(\d+)\s*", body, re.S)
    items = [repeat.group(1)] * int(repeat.group(2)) if repeat else splitTop(body)
    values = [literal(i) for i in items]
    kinds = [k for k, _ in values if k not in (None, "float")]
    kind = kinds[0] if kinds else ("f64" if any(k == "float" for k, _ in values) else "i32")
    mask = (1 << (8 * struct.calcsize(FORMATS[kind]))) - 1
    out = b""
    for _, v in values:
        if kind[0] in "ui":
            out += (int(v) & mask).to_bytes(struct.calcsize(FORMATS[kind]), "little")
        else:
            out += struct.pack("<" + FORMATS[kind], v)
    return kind, out


class Case:
    """One case; it has a Program's interface for the table."""

    def __init__(self, name, path, given, wanted, threads):
        self.name, self.path, self.given, self.wanted, self.threads = name, path, given, wanted, threads

    def environment(self):
        """Cases for a target above that of the default device run on one that has it."""
        with open(self.path, encoding="utf-8") as file:
            target = re.search(r"^\.target\s+sm_(\d+)", file.read(), re.M)
        return {"SONDE_DEVICES": "blackwell"} if target and int(target.group(1)) > DEFAULT_TARGET else {}

    def evaluate(self, tool):
        row = Row(self.name, "ptx", "FAIL")
        try:
            given = array(self.given)[1] if self.given else b""
            kind, wanted = array(self.wanted)
        except (ValueError, KeyError, OverflowError) as problem:
            row.result, row.error = "skipped", str(problem)[:100]
            return row
        status, output, row.seconds = tool.run(
            [sys.executable, os.path.abspath(__file__),
             "libcuda.so.1" if tool.card else os.path.join(tool.lib, "libcuda.so.1"), self.path, self.name,
             str(self.threads), given.hex() or "-", wanted.hex()], tool.scratch("zluda"), self.environment())
        row.output = output
        if status is None:
            row.result, row.error = "timeout", "still running after %g s" % tool.timeout
            return row
        got = re.search(r"^result ([0-9a-f]*)$", output, re.M)
        if status != 0 or not got:
            row.error = firstError(output, "") or "exit status %d" % status
            return row
        code, size = FORMATS[kind], struct.calcsize(FORMATS[kind])
        a = struct.unpack("<%d%s" % (len(wanted) // size, code), bytes.fromhex(got.group(1)))
        b = struct.unpack("<%d%s" % (len(wanted) // size, code), wanted)
        if a == b:
            row.result = "pass"
        else:
            where = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
            row.error = "element %d is %s, should be %s" % (where, a[where], b[where])
        return row


def zluda(checkout, _arch):
    directory = os.path.join(checkout, "ptx", "src", "test", "spirv_run")
    with open(os.path.join(directory, "mod.rs"), encoding="utf-8") as file:
        text = re.sub(r"//[^\n]*", "", file.read())
    for m in re.finditer(r"^(test_ptx|test_ptx_with_32|test_ptx_warp)!\(\s*(.*?)\);$", text, re.S | re.M):
        parts = splitTop(m.group(2))
        if len(parts) < 2:
            continue  # compiled only, by the suite too
        warp = m.group(1) == "test_ptx_warp"
        yield Case(parts[0], os.path.join(directory, parts[0] + ".ptx"), "" if warp else parts[1], parts[-1],
                   WARP_CASE_THREADS if warp else 1)


def runCase(library, path, kernel, threads, given, wanted):
    cuda = ctypes.CDLL(library)

    def call(name, *args):
        status = getattr(cuda, name)(*args)
        if status:
            text = ctypes.c_char_p()
            cuda.cuGetErrorName(status, ctypes.byref(text))
            raise SystemExit("%s failed: %s" % (name, (text.value or b"?").decode()))

    with open(path, "rb") as file:
        ptx = file.read() + b"\0"
    handle, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(handle), 0)
    call("cuCtxSetCurrent", handle)
    call("cuModuleLoadData", ctypes.byref(module), ptx)
    call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(max(len(wanted), 1)))
    call("cuMemsetD8_v2", target, ctypes.c_ubyte(0), ctypes.c_size_t(len(wanted)))
    if given:
        call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(len(given)))
        call("cuMemcpyHtoD_v2", source, given, ctypes.c_size_t(len(given)))
    first = source if given else target
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(first), ctypes.addressof(target))
    call("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, DYNAMIC_SHARED, None, pointers, None)
    call("cuCtxSynchronize")
    result = ctypes.create_string_buffer(len(wanted))
    call("cuMemcpyDtoH_v2", result, target, ctypes.c_size_t(len(wanted)))
    print("result " + result.raw.hex())


if __name__ == "__main__":
    runCase(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]),
            b"" if sys.argv[5] == "-" else bytes.fromhex(sys.argv[5]), bytes.fromhex(sys.argv[6]))
