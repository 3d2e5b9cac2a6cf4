# SPDX-License-Identifier: Apache-2.0
"""In which CUDA release a name appeared, worked out from the function tables.

Functions carry their release in the tables. A type has the earliest release
of a function or structure that mentions it.
"""
import re
from tables import table


def number(release):
    major, minor = release.split(".")
    return int(major) * 100 + int(minor)


def functionReleases():
    out = {}
    for r in table("driver_functions.tsv"):
        if r.since != "-":
            out[r.symbol] = r.since
    for r in table("runtime_functions.tsv"):
        if r.since != "-" and (r.symbol not in out or number(r.since) < number(out[r.symbol])):
            out[r.symbol] = r.since
    return out


def typeReleases(rowSets, functions):
    """name of a type -> release, by its earliest user."""
    mentions = []  # (release or name of the owner, words)
    owners = {}
    for rows in rowSets:
        current = None
        for r in rows:
            if r["item"] == "function" and r["name"] in functions:
                mentions.append((functions[r["name"]], re.findall(r'\w+', r["text"])))
            elif r["item"] in ("struct", "union", "enum"):
                current = [n.strip() for n in ([r["name"]] + r["text"].split(",")) if n.strip() != "-"]
                owners[tuple(current)] = []
            elif r["item"] in ("field", "value") and current:
                owners[tuple(current)] += re.findall(r'[A-Za-z_]\w*', r["text"])
            elif r["item"] == "end":
                current = None
            elif r["item"] == "typedef":
                owners[(r["name"],)] = [w for w in re.findall(r'[A-Za-z_]\w*', r["text"]) if w != r["name"]]
    for t in ("driver_functions.tsv", "runtime_functions.tsv"):
        mentions += [(r.since, re.findall(r'\w+', r.params)) for r in table(t) if r.since != "-"]
    since = {}
    names = {n for group in owners for n in group}

    def lower(name, release):
        if name in names and (name not in since or number(release) < number(since[name])):
            since[name] = release
            return True
        return False
    for release, words in mentions:
        for w in words:
            lower(w, release)
    changed = True
    while changed:
        changed = False
        for group, words in owners.items():
            known = [since[n] for n in group if n in since]
            if not known:
                continue
            best = min(known, key=number)
            for n in group:
                changed |= lower(n, best)
            for w in words:
                changed |= lower(w, best)
    return since
