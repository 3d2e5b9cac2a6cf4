# SPDX-License-Identifier: Apache-2.0
"""Reads the declarations of a C header as facts: names, types, values.

Used by import_facts.py alone. It is no C compiler: it evaluates conditionals
for 64-bit Linux, expands no macro, drops every comment, and splits what is
left into the items of tables.py.
"""
import re

KNOWN = {
    "__cplusplus": "201703", "__GNUC__": "13", "__linux__": "1", "__LP64__": "1", "CUPTILP64": "1",
    "__CUDART_API_VERSION": "13000", "CUDART_VERSION": "13000", "__STDC_VERSION__": "0",
}


def stripComments(text):
    text = text.replace("\\\n", " ")
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    return re.sub(r'//[^\n]*', '', text)


def evaluate(condition, defined):
    text = re.sub(r'defined\s*\(?\s*(\w+)\s*\)?', lambda m: "1" if m.group(1) in defined else "0", condition)

    def word(m):
        value = defined.get(m.group(0), "0") or "1"
        return value if re.fullmatch(r'\d+', value) else "0"
    text = re.sub(r'\d+L\b', lambda m: m.group(0)[:-1], text)
    text = re.sub(r'[A-Za-z_]\w*', word, text)
    text = text.replace("&&", " and ").replace("||", " or ")
    text = re.sub(r'!(?!=)', ' not ', text)
    return bool(eval(text, {"__builtins__": {}}))  # a constant expression of numbers by now


def preprocess(text, extra=()):
    """Returns (text of the active lines, [(name, parameters or None, value)] in order with position marks)."""
    defined = dict(KNOWN)
    defined.update({e: "1" for e in extra})
    out = []
    stack = []  # [active, taken, parent active]
    active = True
    for line in re.sub(r'extern\s*"C"\s*\{', '', stripComments(text)).split("\n"):
        m = re.match(r'\s*#\s*(\w+)\s*(.*)', line)
        if not m:
            if active and line.strip():
                out.append(line.strip())
            continue
        word, rest = m.group(1), m.group(2).strip()
        if word in ("if", "ifdef", "ifndef"):
            if active:
                if word == "if":
                    ok = evaluate(rest, defined)
                else:
                    ok = (rest.split()[0] in defined) == (word == "ifdef")
            else:
                ok = False
            stack.append([active, ok])
            active = active and ok
        elif word == "elif":
            parent, taken = stack[-1]
            ok = parent and not taken and evaluate(rest, defined)
            stack[-1][1] = taken or ok
            active = ok
        elif word == "else":
            parent, taken = stack[-1]
            active = parent and not taken
            stack[-1][1] = True
        elif word == "endif":
            active = stack.pop()[0]
        elif active and word == "define":
            d = re.match(r'(\w+)(\([^)]*\))?\s*(.*)', rest)
            defined.setdefault(d.group(1), d.group(3))
            out.append("#define\t%s\t%s\t%s" % (d.group(1), d.group(2) or "", " ".join(d.group(3).split())))
        elif active and word == "undef":
            defined.pop(rest.split()[0], None)
            out.append("#undef\t%s" % rest.split()[0])
    return out


def clean(text):
    text = " ".join(text.split())
    text = re.sub(r'\s*([(),;\[\]{}])\s*', r'\1', text)
    text = text.replace(",", ", ").replace("(", "(")
    text = re.sub(r'\s*\*\s*', '*', text)
    text = re.sub(r'(\w)\*', r'\1 *', text)
    text = re.sub(r'\*(const)\b', r'* \1', text)
    text = re.sub(r'\*(\* const)', r'*\1', text)
    text = re.sub(r'\bconst\*', 'const *', text)
    text = re.sub(r'(\])(\w)', r'\1 \2', text)
    return text.strip()


def items(text, extra=()):
    """Yields the top-level items of a header: ('define', …) and ('decl', text)."""
    buffer, depth = "", 0
    for line in preprocess(text, extra):
        if line.startswith("#define\t"):
            if depth == 0 and not buffer.strip():
                yield ("define", *line.split("\t")[1:])
            elif depth > 0:
                yield ("define", *line.split("\t")[1:])
            continue
        if line.startswith("#"):
            continue
        for ch in line + " ":
            if ch == "}" and depth == 0:
                continue  # closes extern "C"
            buffer += ch
            if ch == "{":
                depth += 1
            elif ch == "}":
                depth -= 1
                # an inline function's body ends here
                if depth == 0 and re.search(r'\)\s*\{', buffer) and not buffer.lstrip().startswith(("typedef", "struct", "union", "enum")):
                    buffer = ""
            elif ch == ";" and depth == 0:
                if buffer.strip(" ;"):
                    yield ("decl", " ".join(buffer.split()))
                buffer = ""


def splitTop(text, separator=","):
    parts, depth, current = [], 0, ""
    for ch in text:
        if ch in "([{":
            depth += 1
        if ch in ")]}":
            depth -= 1
        if ch == separator and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += ch
    parts.append(current)
    return [p.strip() for p in parts if p.strip()]


def enumerators(body):
    result = []
    for part in splitTop(body):
        m = re.match(r'(\w+)\s*(?:=\s*(.*))?$', part, re.S)
        result.append((m.group(1), " ".join((m.group(2) or "").split())))
    return result


def evaluateEnum(pairs, known):
    """Numbers for the enumerators; `known` maps the names of earlier ones."""
    value, out = -1, []
    for name, expression in pairs:
        if expression:
            text = re.sub(r'\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+', r'\1', expression)
            text = re.sub(r'\(\s*(?:int|unsigned int|uint32_t|size_t)\s*\)', '', text)
            text = re.sub(r'[A-Za-z_]\w*', lambda m: str(known[m.group(0)]), re.sub(r'0[xX][0-9a-fA-F]+', lambda m: str(int(m.group(0), 16)), text))
            text = re.sub(r'\b0+(\d)', r'\1', text)
            value = eval(text, {"__builtins__": {}})
        else:
            value += 1
        known[name] = value
        out.append((name, value, expression))
    return out


def fields(body, depth=0):
    """Rows (depth, kind, declarator text, member name) of a struct body."""
    rows = []
    for member in splitTop(body, ";"):
        m = re.match(r'(struct|union)\s*(PACKED_ALIGNMENT)?\s*(\w*)\s*\{(.*)\}\s*(.*)$', member, re.S)
        if m:
            rows.append((depth, m.group(1), m.group(3), clean(m.group(5))))
            rows += fields(m.group(4), depth + 1)
            rows.append((depth, "end", "", ""))
        else:
            for one in expandDeclarators(clean(member)):
                rows.append((depth, "field", one, memberName(one)))
    return rows


def expandDeclarators(text):
    if "(" in text or "," not in text:
        return [text]
    parts = splitTop(text)
    base = re.match(r'(.*?)(\**\s*\w+\s*(?:\[[^\]]*\])*)$', parts[0]).group(1)
    return [parts[0]] + [clean(base + " " + p) for p in parts[1:]]


def memberName(text):
    m = re.search(r'\(\s*(?:CUDA_CB|CUDART_CB|CUPTIAPI)?\s*\*\s*(\w+)\s*\)', text)
    if m:
        return m.group(1)
    return re.search(r'(\w+)\s*(?:\[[^\]]*\]\s*)*(?::\s*\d+)?$', text).group(1)
