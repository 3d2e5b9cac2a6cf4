# SPDX-License-Identifier: Apache-2.0
"""src/platform/nvidia/generated/*_hooks.inc: one hook per exported function of the driver and of the runtime.

A line is SONDE_DRIVER_HOOK(cbid, since, default stream, symbol, (parameters), arguments …); the macro makes the
function and the row of the table from it. Functions that have no parameter structure use the …_PLAIN form.
"""
import re
from tables import banner, table

GENERATOR = "gen_nvidia_hooks.py"
# No error code is returned, or nothing is gained by listening.
LEFT_OUT = {"cudaCreateChannelDesc", "cudaGetErrorName", "cudaGetErrorString"}
# Have parameters, which the table of callback structures does not tell.
UNKNOWN_PARAMETERS = {"cuProfilerInitialize"}


def parameters(text):
    """'T a; U *b' -> [(declaration, name)]"""
    out = []
    for part in filter(None, (p.strip() for p in text.split(";"))):
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)", part)
        name = pointer.group(1) if pointer else re.findall(r"\w+", part.split("[")[0])[-1]
        out.append((part, name))
    return out


def number(release):
    major, minor = release.split(".")
    return int(major) * 1000 + int(minor) * 10


def line(macro, r, symbol, since):
    params = parameters(r.params)
    stream = "kPerThread" if re.search(r"_pt[ds][sz]$", symbol) else "kLegacy"
    plain = "" if params and r.params_struct != "-" else "_PLAIN"
    fields = [r.cbid, str(since), stream, symbol]
    if not plain:
        fields.append(r.params_struct)
    fields.append("(%s)" % ", ".join(p for p, _ in params))
    return "%s%s(%s)\n" % (macro, plain, ", ".join(fields + [n for _, n in params]))


def driver():
    out = []
    for r in table("driver_functions.tsv"):
        if r.symbol in UNKNOWN_PARAMETERS:
            continue
        if r.exported == "yes" and r.returns == "CUresult" and (r.params_struct != "-" or not r.params):
            out.append(line("SONDE_DRIVER_HOOK", r, r.symbol, 2000 if r.since == "-" else number(r.since)))
    return banner(GENERATOR) + "// clang-format off\n" + "".join(out)


def runtime():
    newest = {}
    for r in table("runtime_functions.tsv"):
        if r.exported != "yes" or r.symbol.startswith("__") or r.symbol in LEFT_OUT or r.returns != "cudaError_t":
            continue
        if r.symbol not in newest or int(r.cbid) > int(newest[r.symbol].cbid):
            newest[r.symbol] = r
    # A row without a structure has no parameters in the table: only the functions that truly have none can be called.
    none = {"cudaGetLastError", "cudaPeekAtLastError", "cudaDeviceReset", "cudaDeviceSynchronize", "cudaProfilerStart",
            "cudaProfilerStop", "cudaCtxResetPersistingL2Cache", "cudaThreadExit", "cudaThreadSynchronize"}
    out = []
    for r in sorted(newest.values(), key=lambda r: int(r.cbid)):
        if not r.params and r.symbol not in none:
            continue
        version = re.search(r"_v(\d+)$", r["name"])
        out.append(line("SONDE_RUNTIME_HOOK", r, r.symbol, int(version.group(1)) if version else 2000))
    return banner(GENERATOR) + "// clang-format off\n" + "".join(out)


def generate():
    folder = "src/platform/nvidia/generated/"
    return {folder + "driver_hooks.inc": driver(), folder + "runtime_hooks.inc": runtime()}
