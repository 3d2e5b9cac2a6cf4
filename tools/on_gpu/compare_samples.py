# SPDX-License-Identifier: Apache-2.0
"""Compares what a CUPTI sample prints with two libraries.

Times, process and thread ids, addresses and hardware queues differ from run to run and are left out; correlation ids
are numbered anew in the order in which they appear, streams by their rank: the driver's own take ids too. Records are compared kind by kind, each kind in its order: in which
order kinds follow each other depends on when buffers are delivered.

    compare_samples.py OURS THEIRS      exits with 0 when they agree; else prints what differs
"""
import collections
import difflib
import re
import sys

VOLATILE = [
    (re.compile(r"\[ \d+, \d+ \] duration \d+"), "[times]"),
    (re.compile(r"\[ \d{12,} \]"), "[time]"),
    (re.compile(r"\b(processId|threadId|pc|channelId|physicalDeviceId|id) \d+"), r"\1 N"),
    (re.compile(r"\b(address|memoryPoolAddress|memoryPool|hostPtr|module|objectId) (0x)?[0-9a-f]+"), r"\1 N"),
    (re.compile(r"\b(UUID|uuid|CUPTI version|globalMemoryBandwidth|coreClockRate|driver version)\b.*"), r"\1 N"),
    (re.compile(r"(memoryPoolSize|memoryPoolUtilizedSize): \d+"), r"\1: N"),
    (re.compile(r"(CORRELATION : correlation) \d+"), r"\1 N"),
    (re.compile(r"\b\d{18,20}\b"), "T"),
]
# The runtime asks the driver different things while it starts, by what is attached; so much is not the application's.
STARTING = re.compile(r'"(cuGetProcAddress|cuDeviceGet|cuDriverGetVersion|cuInit|cuModuleGetLoadingMode|cuDeviceTotalMem|'
                      r"cuKernelGetName|cuCtxGetDevice|cuGetExportTable|cuDevicePrimaryCtx|cuLibraryGet|cuLibraryLoad|"
                      r'cuCtxGetCurrent|cuCtxSetCurrent|cuDeviceComputeCapability|cuFlush)\w*"')
# Overhead is what the library itself does; how often is its own affair.
OWN = ("OVERHEAD",)


def records(path):
    """Lines by the kind of record; lines that belong to the record before are joined to it."""
    kinds = collections.OrderedDict()
    last = None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip()
            if not line:
                last = None
                continue
            if (line[0] in "\t " or line.startswith("Graph node was created")) and last is not None:
                last[-1] += " |" + line.strip()
                continue
            word = re.match(r"[A-Z][A-Z0-9_]+\b", line)
            kind = word.group(0) if word else "text"
            if kind in OWN or STARTING.search(line):
                last = None
                continue
            last = kinds.setdefault(kind, [])
            last.append(line)
    return kinds


def normal(kinds):
    correlations = {}
    streams = sorted({int(n) for lines in kinds.values() for line in lines for n in re.findall(r"\b(?:s|nullS)treamId (\d{1,9})\b", line)})
    rank = {n: i for i, n in enumerate(streams)}

    def number(match):
        return match.group(1) + "#" + str(correlations.setdefault(match.group(2), len(correlations)))

    result = {}
    for kind, lines in kinds.items():
        out = []
        for line in lines:
            for pattern, by in VOLATILE:
                line = pattern.sub(by, line)
            line = re.sub(r"(correlationId )(\d+)", number if kind in ("RUNTIME", "DRIVER") else r"\1N", line)
            line = re.sub(r"(correlation id )(\d+)", r"\1N", line)
            line = re.sub(r"\b((?:s|nullS)treamId )(\d{1,9})\b", lambda m: f"{m.group(1)}@{rank[int(m.group(2))]}", line)
            if kind == "text":
                line = re.sub(r"\b\d+\b(?=\s+(NA|\d+)\s+\S+$)|\b\d{4,}\b", "N", line)
            out.append(re.sub(r"#\d+", "#", line) if kind == "DRIVER" else line)
        result[kind] = sorted(out) if kind == "DRIVER" else out
    return result


def main():
    ours, theirs = (normal(records(path)) for path in sys.argv[1:3])
    differs = False
    for kind in dict.fromkeys([*ours, *theirs]):
        a, b = ours.get(kind, []), theirs.get(kind, [])
        if a == b:
            print(f"  {kind}: {len(a)} the same")
            continue
        differs = True
        print(f"  {kind}: ours {len(a)}, the vendor's {len(b)}")
        for line in list(difflib.unified_diff(a, b, "ours", "vendor", lineterm="", n=0))[2:22]:
            print("    " + line[:300])
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
