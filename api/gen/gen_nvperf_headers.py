#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/nvperf_*.h: the types of a library that is not part of this project.

Clients of the profiler interface include these headers, and load the library at
run time if it is there.
"""
import emit
from tables import cBanner, table

GENERATOR = "gen_nvperf_headers.py"
ABOUT = ("%s\n\nThe library behind these functions (libnvperf_host.so, libnvperf_target.so) is the vendor's and not part of Sonde:\n"
         "programs that use CUPTI's profiler interface include this header and load it at run time. Parameter structures:\n"
         "set structSize to the _STRUCT_SIZE macro and pPriv to NULL.")
COMMON = """
#ifndef NVPW_LOCAL
#define NVPW_LOCAL
#endif
/* The size of a structure up to its last known member. */
#ifndef NVPA_STRUCT_SIZE
#define NVPA_STRUCT_SIZE(type_, lastfield_) (offsetof(type_, lastfield_) + sizeof(((type_*)0)->lastfield_))
#endif
/* Whether the caller's structure has the member. */
#ifndef NVPW_FIELD_EXISTS
#define NVPW_FIELD_EXISTS(pParams_, name_) \\
  ((pParams_)->structSize >= (size_t)((const uint8_t*)(&(pParams_)->name_) + sizeof((pParams_)->name_) - (const uint8_t*)(pParams_)))
#endif
"""
# header -> (guard, what it has, includes)
HEADERS = {
    "nvperf_common.h": ("NVPERF_COMMON_H", "Result codes and what the other nvperf headers share.", ["stddef.h", "stdint.h"]),
    "nvperf_target.h": ("NVPERF_TARGET_H", "Counters on the profiled machine.", ["stddef.h", "stdint.h", "nvperf_common.h"]),
    "nvperf_host.h": ("NVPERF_HOST_H", "Configurations and metrics, where results are evaluated.",
                      ["stddef.h", "stdint.h", "nvperf_common.h"]),
    "nvperf_cuda_host.h": ("NVPERF_CUDA_HOST_H", "Configurations and metrics of CUDA devices.",
                           ["stddef.h", "stdint.h", "nvperf_common.h", "nvperf_host.h"]),
}


def generate():
    docs = emit.loadDocs()
    files, missing, declared = {}, [], set()
    for name, (guard, about, includes) in HEADERS.items():
        e = emit.Emitter(docs, {})
        # An opaque type may stand in several of the tables.
        rows = [r for r in table("decl/nvperf/%s.tsv" % name[:-2]) if not (r["item"] == "typedef" and r["name"] in declared)]
        declared |= {r["name"] for r in rows if r["item"] == "typedef"}
        out = [cBanner(GENERATOR, ABOUT % about), "#ifndef %s\n#define %s\n\n" % (guard, guard)]
        out += ["#include <%s>\n" % i for i in includes]
        out.append(COMMON if name == "nvperf_common.h" else "")
        out.append("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n")
        out.append(e.emit(rows))
        out.append("\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* %s */\n" % guard)
        files["include/" + name] = "".join(out)
        missing += e.missing
    if missing:
        raise SystemExit("no comment in api/docs/nvperf.tsv for: " + " ".join(missing))
    return files
