#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVTX: the functions of include/softgpu/nvtx3, and for libcupti where each of them is found.

The types of nvtx3 and the injection are written by hand.
"""
import re
import emit
from tables import banner, cBanner, table

GENERATOR = "gen_nvtx.py"
FILES = {"core": ("CORE", "CORE2"), "cuda": ("CUDA",), "cudart": ("CUDART",), "sync": ("SYNC",)}
# What a function returns when no tool listens.
WITHOUT = {"void": "", "int": " NVTX_NO_PUSH_POP_TRACKING", "nvtxRangeId_t": " 0"}
DOCS = {
    "Initialize": "Loads the tool now instead of at the first annotation. reserved is NULL.",
    "MarkEx": "Marks this moment.", "MarkA": "Marks this moment.", "MarkW": "Marks this moment.",
    "RangeStart": "Begins a range that any thread may end.", "RangeEnd": "Ends a range.",
    "RangePush": "Begins a range of this thread, inside the one begun before. Returns its level.",
    "RangePop": "Ends the range that this thread began last. Returns its level.",
    "NameCategory": "Names a category of events.", "NameOsThread": "Names a thread of the operating system.",
    "NameCuDevice": "Names a device.", "NameCuContext": "Names a context.", "NameCuStream": "Names a stream.",
    "NameCuEvent": "Names an event.", "NameCudaDevice": "Names a device.", "NameCudaStream": "Names a stream.",
    "NameCudaEvent": "Names an event.", "ResourceCreate": "Names an object of the program.",
    "ResourceDestroy": "Says that such an object is gone.", "RegisterString": "Registers a string for messages.",
    "Create": "Makes a domain of a name.", "Destroy": "Says that a domain is not used any more.",
    "SyncUserCreate": "Announces a lock.", "SyncUserDestroy": "Says that a lock is gone.",
    "SyncUserAcquireStart": "This thread begins to wait for the lock.", "SyncUserAcquireFailed": "It gave up.",
    "SyncUserAcquireSuccess": "It has the lock.", "SyncUserReleasing": "It gives the lock back.",
}


def doc(symbol):
    name = symbol[4:]
    for candidate in (name, re.sub(r'(A|W|Ex)$', '', name), re.sub(r'^Domain', '', name), re.sub(r'(A|W|Ex)$', '', re.sub(r'^Domain', '', name))):
        if candidate in DOCS:
            return DOCS[candidate]
    raise SystemExit("gen_nvtx.py: no comment for " + symbol)


def functions(file):
    rows = [r for r in table("nvtx_modules.tsv") if r.module_name in FILES[file]]
    guard = "SONDE_NVTX_%s_H_" % file.upper()
    out = [cBanner(GENERATOR, "NVTX functions. Included by nvToolsExt*.h."), "#ifndef %s\n#define %s\n\n" % (guard, guard),
           "#include \"sonde_nvtx_injection.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"]
    for r in rows:
        params = [p for p in r.params.split("; ") if p]
        names = [re.search(r'(\w+)$', p).group(1) for p in params]
        types = ", ".join(re.sub(r'\s*\b\w+$', '', p) for p in params) or "void"
        head = emit.prototype(r.returns, r.symbol, r.params, "NVTX_API", "NVTX_DECLSPEC ")[:-2]
        out.append("\n" + emit.comment(doc(r.symbol)) + head + " {\n")
        out.append("  const NvtxFunctionPointer function = sondeNvtxFunction(%s, %s);\n" % (r.module, r["index"]))
        call = "((%s (*)(%s))function)(%s)" % (r.returns, types, ", ".join(names))
        if r.returns == "void":
            out.append("  if (function) %s;\n}\n" % call)
        else:
            out.append("  return function ? %s :%s;\n}\n" % (call, WITHOUT.get(r.returns, " (%s)0" % r.returns)))
    out.append("\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* %s */\n" % guard)
    return "".join(out)


def slots():
    rows = table("nvtx_modules.tsv")
    out = [banner(GENERATOR), """// Where an NVTX injection finds each function: for libcupti's NVTX domain.
#ifndef SONDE_CORE_GENERATED_NVTX_SLOTS_H_
#define SONDE_CORE_GENERATED_NVTX_SLOTS_H_

#include <cstdint>

namespace sonde::core {

// One function of the injection interface. `module` is an NvtxCallbackModule
// and `index` the place in its table; `cbid` is CUPTI's callback id, 0: none.
struct NvtxSlot {
  uint8_t module;
  uint8_t index;
  uint8_t cbid;
  const char* function;
};

inline constexpr NvtxSlot kNvtxSlots[] = {
"""]
    for r in rows:
        out.append('    {%s, %s, %s, "%s"},\n' % (r.module, r["index"], "0" if r.cupti_cbid == "-" else r.cupti_cbid, r.symbol))
    out.append("};\n\n}  // namespace sonde::core\n\n#endif  // SONDE_CORE_GENERATED_NVTX_SLOTS_H_\n")
    return "".join(out)


def generate():
    files = {"include/softgpu/nvtx3/sonde_nvtx_%s.h" % f: functions(f) for f in FILES}
    files["src/core/generated/nvtx_slots.h"] = slots()
    return files
