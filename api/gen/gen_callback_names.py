#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""src/core/generated/callback_names.{h,cpp}: names and facts by callback id."""
import re
from tables import banner, table

HEADER = """
// Names of API functions by callback id, for cuptiGetCallbackName and for
// CUpti_CallbackData::functionName. All strings are static.
#ifndef SONDE_CORE_GENERATED_CALLBACK_NAMES_H_
#define SONDE_CORE_GENERATED_CALLBACK_NAMES_H_

#include <cstdint>
#include <string_view>

namespace sonde::core {

// Callback ids of a domain are below these numbers; 0 is "INVALID".
inline constexpr uint32_t kDriverCbidCount = %d;
inline constexpr uint32_t kRuntimeCbidCount = %d;
inline constexpr uint32_t kNvtxCbidCount = %d;

// What is known about one callback id.
struct CallbackName {
  const char* name;          // as cuptiGetCallbackName gives it: "cudaLaunchKernel_v7000", "cuMemAlloc_v2"
  const char* functionName;  // as callbacks see it: "cudaLaunchKernel", "cuMemAlloc_v2"
  bool launch;               // launches a kernel: callbacks get a symbol name
};

// `domain` is a CUpti_CallbackDomain: 1 driver, 2 runtime. nullptr: no such
// domain here, or an id out of range. Id 0 has the name "INVALID".
const CallbackName* callbackName(uint32_t domain, uint32_t cbid);

// "nvtxRangePushA"; nullptr out of range.
const char* nvtxName(uint32_t cbid);

// The callback id of an exported function ("cuMemAlloc_v2", "cudaMalloc"); 0:
// none. A runtime function with several ids has that of the CUDA 13.0 library.
// For start-up and tests: a binary search.
uint32_t findCallbackId(uint32_t domain, std::string_view function);

}  // namespace sonde::core

#endif  // SONDE_CORE_GENERATED_CALLBACK_NAMES_H_
"""

LAUNCHES = re.compile(r'^(cuLaunch|cuLaunchGrid|cuLaunchGridAsync|cuLaunchKernel|cuLaunchKernelEx|cuLaunchCooperativeKernel|'
                      r'cuLaunchCooperativeKernelMultiDevice|cudaLaunch|cudaLaunchKernel|cudaLaunchKernelExC|'
                      r'cudaLaunchCooperativeKernel|cudaLaunchCooperativeKernelMultiDevice|__cudaLaunchKernel)(_ptsz|_ptds)?$')


def generate():
    driver = [(int(r.cbid), r.symbol, r.symbol) for r in table("driver_functions.tsv") if r.cbid != "-"]
    runtime = [(int(r.cbid), r.name, r.symbol) for r in table("runtime_functions.tsv") if r.cbid != "-"]
    nvtx = [(int(r.cbid), r.symbol) for r in table("nvtx_functions.tsv")]
    sizes = [max(v[0] for v in rows) + 1 for rows in (driver, runtime, nvtx)]
    out = [banner("gen_callback_names.py"), '#include "core/generated/callback_names.h"\n\n#include <algorithm>\n#include <iterator>\n\n',
           "namespace sonde::core {\nnamespace {\n\n"]
    for name, rows, size in (("kDriver", driver, sizes[0]), ("kRuntime", runtime, sizes[1])):
        out.append('constexpr CallbackName %s[] = {\n    {"INVALID", "INVALID", false},\n' % name)
        byId = {r[0]: r for r in rows}
        for i in range(1, size):
            if i not in byId:
                out.append('    {"INVALID", "INVALID", false},\n')
                continue
            _, full, function = byId[i]
            out.append('    {"%s", "%s", %s},\n' % (full, function, "true" if LAUNCHES.match(function) else "false"))
        out.append("};\n\n")
    byId = dict(nvtx)
    out.append("constexpr const char* kNvtx[] = {\n")
    out += ['    "%s",\n' % byId.get(i, "INVALID") for i in range(sizes[2])]
    out.append("};\n\nstruct Entry {\n  std::string_view function;\n  uint32_t cbid;\n};\n\n")
    for name, rows in (("kDriverByName", driver), ("kRuntimeByName", runtime)):
        newest = {}
        for value, _, function in rows:
            newest[function] = max(value, newest.get(function, 0))
        out.append("constexpr Entry %s[] = {\n" % name)
        out += ['    {"%s", %d},\n' % (f, v) for f, v in sorted(newest.items())]
        out.append("};\n\n")
    out.append("""static_assert(std::size(kDriver) == kDriverCbidCount);
static_assert(std::size(kRuntime) == kRuntimeCbidCount);
static_assert(std::size(kNvtx) == kNvtxCbidCount);

template <size_t N>
uint32_t find(const Entry (&entries)[N], std::string_view function) {
  const auto* it = std::lower_bound(std::begin(entries), std::end(entries), function,
                                    [](const Entry& e, std::string_view f) { return e.function < f; });
  return it != std::end(entries) && it->function == function ? it->cbid : 0;
}

}  // namespace

const CallbackName* callbackName(uint32_t domain, uint32_t cbid) {
  if (domain == 1 && cbid < kDriverCbidCount) return &kDriver[cbid];
  if (domain == 2 && cbid < kRuntimeCbidCount) return &kRuntime[cbid];
  return nullptr;
}

const char* nvtxName(uint32_t cbid) { return cbid < kNvtxCbidCount ? kNvtx[cbid] : nullptr; }

uint32_t findCallbackId(uint32_t domain, std::string_view function) {
  if (domain == 1) return find(kDriverByName, function);
  if (domain == 2) return find(kRuntimeByName, function);
  return 0;
}

}  // namespace sonde::core
""")
    return {"src/core/generated/callback_names.h": banner("gen_callback_names.py") + HEADER.lstrip("\n") % tuple(sizes),
            "src/core/generated/callback_names.cpp": "".join(out)}
