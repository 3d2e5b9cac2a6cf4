# SPDX-License-Identifier: Apache-2.0
"""Turns declaration rows (api/decl) into C: one layout for every header."""
import re
import textwrap
from tables import table

WIDTH = 120


def loadDocs():
    """name -> (since, text) of api/docs/*.tsv."""
    docs = {}
    for name in ("cuda", "runtime", "cupti", "nvperf"):
        for r in table("docs/%s.tsv" % name):
            assert r["name"] not in docs, "documented twice: " + r["name"]
            docs[r["name"]] = (r["since"], r["text"])
    return docs


def comment(text, indent=""):
    """A comment block that fits the line width."""
    if not text:
        return ""
    if len(indent) + len(text) + 7 <= WIDTH:
        return "%s/** %s */\n" % (indent, text)
    lines = textwrap.wrap(text, WIDTH - len(indent) - 4, break_long_words=False, break_on_hyphens=False)
    return "%s/** %s\n%s */\n" % (indent, ("\n%s *  " % indent).join(lines), indent)


def prototype(result, name, params, call="", prefix="", defaults=False):
    """One function declaration, wrapped."""
    plist = [p for p in params.split("; ") if p] or ["void"]
    if defaults:
        plist = [re.sub(r' = (.*)$', r' __dv(\1)', p) for p in plist]
    else:
        plist = [re.sub(r' = .*$', '', p) for p in plist]
    space = "" if result.endswith("*") else " "
    head = "%s%s%s%s%s(" % (prefix, result, space, call + " " if call else "", name)
    line = head + ", ".join(plist) + ");\n"
    if len(line) <= WIDTH + 1:
        return line
    body = textwrap.wrap(", ".join(p.replace(" ", "\0") for p in plist), WIDTH - 6)
    return head + "\n    " + "\n    ".join(body).replace("\0", " ") + ");\n"


class Emitter:
    """Emits rows with the comments of `docs`; `since` maps a name to a release."""

    def __init__(self, docs, since, call="", prefix="", defaults=False, enumerators=None, fields=None, oldest=(), rename=None):
        self.docs, self.since, self.call, self.prefix, self.defaults = docs, since, call, prefix, defaults
        self.enumerators = enumerators or {}
        self.fields = fields or {}
        self.rename = rename or {}
        self.oldest = oldest  # releases that the tables' sources call anything up to them
        self.missing = []

    def doc(self, *names, extra="", indent=""):
        since, text = "", ""
        for name in names:
            if name in self.docs:
                since, text = self.docs[name]
                break
        if not text:
            text = self.byRule(names)
        if not text:
            self.missing.append(names[0])
        release = since or next((self.since[n] for n in names if n in self.since), "")
        parts = [text.strip()] if text else []
        if extra:
            parts.append(extra)
        if release and release != "-":
            parts.append("Sonde's own." if release == "sonde" else
                         "CUDA %s%s." % (release, " or earlier" if release in self.oldest else ""))
        return comment(" ".join(parts), indent)

    def byRule(self, names):
        """Parameter structures are named after their function."""
        for name in names:
            m = re.match(r'(CUpti)_(.*?)_?Params$', name)
            if m:
                return "Parameters of cupti%s." % m.group(2).replace("_", "")
            m = re.match(r'(NVPW_\w+)_Params$', name)
            if m:
                return "Parameters of %s." % m.group(1)
            # A version of a structure, and a runtime name that mirrors a driver name, say the same.
            candidates = [re.sub(r'_v\d$', '', name)]
            if name.startswith("cuda"):
                rest = re.sub(r'_t$', '', name[4:])
                candidates += ["cu" + rest, "CU" + rest, "CU" + rest[:1].lower() + rest[1:]]
            for c in candidates:
                if c != name and c in self.docs:
                    text = self.docs[c][1]
                    return re.sub(r'\bcu([A-Z])', r'cuda\1', text) if name.startswith("cuda") else text
        return ""

    def emit(self, rows, skip=()):
        out = []
        i = 0
        while i < len(rows):
            r = rows[i]
            kind = r["item"]
            if kind in ("enum", "struct", "union"):
                j = i
                while rows[j]["item"] != "end":
                    j += 1
                if r["name"] not in skip and r["text"] not in skip:
                    out.append(self.compound(r, rows[i + 1:j]))
                i = j + 1
                continue
            if r["name"] not in skip:
                out.append(getattr(self, kind)(r))
            i += 1
        return "".join(out)

    def compound(self, r, body):
        tag, name = r["name"], r["text"]
        names = [n.strip() for n in name.split(",") if n.strip() != "-"]
        out = ["\n", self.doc(*(names + ([tag] if tag != "-" else [])))]
        packed = " PACKED_ALIGNMENT" if r["note"] == "record" else ""
        head = "%s%s%s%s {\n" % ("typedef " if names else "", r["item"], packed, " " + tag if tag != "-" else "")
        out.append(head)
        if r["item"] == "enum":
            for k, v in enumerate(body):
                note = self.enumerators.get(v["name"], "")
                last = "" if k + 1 == len(body) else ","
                line = "  %s = %s%s" % (v["name"], v["text"], last)
                if note and len(line) + len(note) + 9 <= WIDTH:
                    out.append("%s /**< %s */\n" % (line, note))
                else:
                    out.append((comment(note, "  ") if note else "") + line + "\n")
        else:
            if r["note"] == "align128":
                out.append("  SONDE_ALIGN(128)\n")
            out.append(self.members(body) if r["note"] == "record" else self.membersPlain(body))
        out.append("}%s;\n" % (" " + ", ".join(names) if names else ""))
        return "".join(out)

    def membersPlain(self, body):
        fields, self.fields = self.fields, {}
        text = self.members(body)
        self.fields = fields
        return text

    def members(self, body):
        out, opened = [], []
        for f in body:
            pad = "  " * (len(opened) + 1)
            if f["item"] == "field":
                note = self.fields.get(f["name"], "")
                out.append("%s%s;%s\n" % (pad, f["text"], " /**< %s */" % note if note else ""))
            elif f["item"] == "open":
                opened.append(f["name"])
                out.append("%s%s%s {\n" % (pad, "__extension__ " if f["name"] == "-" else "", f["text"]))
            else:
                name = opened.pop()
                out.append("%s}%s;\n" % (pad[2:], "" if name == "-" else " " + name))
        return "".join(out)

    def define(self, r):
        return "#define %s %s\n" % (r["name"], r["text"])

    def alias(self, r):
        return ""

    def typedef(self, r):
        return self.doc(r["name"]) + "typedef %s;\n" % self.wrapTypedef(r["text"])

    @staticmethod
    def wrapTypedef(text):
        if len(text) + 9 <= WIDTH:
            return text
        cut = text.index(")(") + 2
        return text[:cut] + "\n    " + "\n    ".join(textwrap.wrap(text[cut:], WIDTH - 6, break_long_words=False))

    def forward(self, r):
        return r["text"] + ";\n"

    def function(self, r):
        result, params = r["text"].split("|", 1)
        name = self.rename.get(r["name"], r["name"])
        prefix = self.prefix
        extra = ""
        if "deprecated" in r["note"]:
            prefix = "__CUDA_DEPRECATED " + prefix
            extra = "Deprecated."
        if "builtin" in r["note"]:
            prefix += "__cudart_builtin__ "
        return "\n" + self.doc(r["name"], extra=extra) + prototype(result, name, params, self.call, prefix, self.defaults)
