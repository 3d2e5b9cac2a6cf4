# SPDX-License-Identifier: Apache-2.0
"""How sondecc reads CUDA C++: the source as clang understands it.

Positions stay: every edit keeps its line, so that diagnostics and line tables
name the file as it was written.

Launches in device code, which clang 18 to 21 refuse, become
sonde::DeviceLaunch objects (sonde_device_runtime.h). Which kernel a launch
means is for overload resolution to say, and that cannot choose a kernel in
device code. So each kernel that device code launches gets a twin, a function
that is declared and never called: its parameters are the kernel's, and what
it returns has the kernel's address in its type.

    template <class T> __global__ void k(T* p);
    template <class T> __host__ __device__ sonde::DeviceLaunch<void (*)(T*), &k<T>> sonde_kernel_k(T* p);

    k<<<grid, block>>>(p)  ->  decltype(sonde_kernel_k(p))(grid, block)(p)
"""
import os
import re
import zlib

# What nvcc takes and clang does not, line by line so that positions stay. In
# inline assembly a percent sign before a letter stands for itself.
SHARED_ALIGNAS = re.compile(r"\b(__shared__\s+)(alignas\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*)")
ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b(?:\s+(?:volatile|__volatile__))?\s*\(\s*((?:\"(?:[^\"\\\n]|\\.)*\"\s*)+)")
BARE_PERCENT = re.compile(r"(?<!%)((?:%%)*)%(?=[A-Za-z_])")
QUOTED_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*\"([^\"\n]+)\"", re.M)


def without_comments(text):
    """Comments and literals as blanks, everything else where it was."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'", blank, text, flags=re.S)


def closing(code, at, opening, end):
    """Position after the bracket that closes the one at `at`; -1: none."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] == opening) - (code[i] == end)
        if depth == 0:
            return i + 1
    return -1


def without_preprocessor(code):
    """Preprocessor lines as blanks too, with those that continue them."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda match: re.sub(r"[^\n]", " ", match[0]), code, flags=re.M)


def text_without_comments(text):
    """Comments as blanks, literals as they are."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match[0]) if match[0].startswith("/") else match[0]
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'", blank, text, flags=re.S)


def device_bodies(code):
    """(begin, end) of what stands in braces after __global__ and __device__."""
    for match in re.finditer(r"\b__(?:global|device)__\b", code):
        at, depth = match.end(), 0
        while at < len(code) and (depth or code[at] not in "{;"):
            depth += (code[at] in "([") - (code[at] in ")]")
            at += 1
        end = closing(code, at, "{", "}") if code[at:at + 1] == "{" else -1
        if end > 0:
            yield at, end


# The name before <<<, which may end in template arguments.
KERNEL_NAME = re.compile(r"((?:::\s*)?(?:[A-Za-z_]\w*\s*::\s*)*)([A-Za-z_]\w*)\s*$")


class Launch:
    """One launch: where its parts are in the text."""

    def __init__(self, match, name_end, configuration, arguments):
        self.begin, self.qualifier, self.name = match.start(), match[1], match[2]
        self.name_begin, self.name_end = match.start(2), name_end  # of the name with its template arguments
        self.configuration, self.arguments = configuration, arguments  # (begin, end)


def device_launches(code):
    """The launches inside device code."""
    found = {}
    for begin, end in device_bodies(code):
        for match in re.finditer("<<<", code[begin:end]):
            at = begin + match.start()
            close, depth = at + 3, 0
            while close < end and (depth or code[close:close + 3] != ">>>"):
                depth += (code[close] in "([{") - (code[close] in ")]}")
                close += 1
            name_end = len(code[:at].rstrip())
            before = name_end
            if code[before - 1:before] == ">":
                depth = 0
                while before > begin:
                    before -= 1
                    depth += (code[before] == ">") - (code[before] == "<")
                    if depth == 0:
                        break
            name = KERNEL_NAME.search(code, begin, before)
            if not name or close >= end:
                continue
            opening = close + 3 + len(code[close + 3:]) - len(code[close + 3:].lstrip())
            last = closing(code, opening, "(", ")") if code[opening:opening + 1] == "(" else -1
            if last > 0:
                found[at] = Launch(name, name_end, (at + 3, close), (opening + 1, last - 1))
    return [found[at] for at in sorted(found)]


def split_list(code, begin, end):
    """(begin, end) of the parts between commas that no bracket holds."""
    parts, depth, start = [], 0, begin
    for i in range(begin, end):
        # An arrow or a comparison in a default argument is no bracket that closes.
        depth += (code[i] in "([{<") - (code[i] in ")]}" or (code[i] == ">" and code[i - 1] != "-"))
        if code[i] == "," and depth == 0:
            parts.append((start, i))
            start = i + 1
    if code[begin:end].strip():
        parts.append((start, end))
    return parts


def default_of(code, begin, end):
    """Where the default of a parameter begins; `end`: it has none."""
    depth = 0
    for i in range(begin, end):
        depth += (code[i] in "([{<") - (code[i] in ")]}>")
        if code[i] == "=" and depth == 0:
            return i
    return end


def in_namespace(code, at):
    """Whether a place is at namespace scope."""
    opened, start = [], 0
    for i in range(at):
        if code[i] == "{":
            head = code[start:i]
            opened.append(bool(re.search(r"\bnamespace\b|\bextern\s", head)) and "(" not in head)
        elif code[i] == "}" and opened:
            opened.pop()
        if code[i] in "{};":
            start = i + 1
    return all(opened)


ATTRIBUTE = re.compile(r"\s*\b(?:__launch_bounds__|__cluster_dims__|__block_size__|__attribute__|__maxnreg__|alignas)\s*\(")
HEAD_WORDS = re.compile(r"(?:\s|\b(?:static|inline|extern|void|__forceinline__|__noinline__)\b|\"C(?:\+\+)?\"|\[\[[^\]]*\]\])*")


class Kernel:
    """A declaration of a kernel, from __global__ on. `name` is None for a specialisation or instantiation, which
    belongs to a template that is declared elsewhere."""

    def __init__(self, code, at):
        self.at, self.name = at, None
        self.begin = max(code.rfind(c, 0, at) for c in ";{}") + 1
        self.begin += len(code[self.begin:at]) - len(code[self.begin:at].lstrip())
        after = at + len("__global__")
        while True:  # to the list of parameters
            self.opening = code.find("(", after)
            attribute = ATTRIBUTE.search(code, after, self.opening + 1)
            if not attribute:
                break
            after = closing(code, self.opening, "(", ")")
            if after < 0:
                return
        self.end = closing(code, self.opening, "(", ")") if self.opening >= 0 else -1
        name = re.search(r"\b([A-Za-z_]\w*)\s*$", code[after:self.opening])
        if name and self.end > 0 and not re.search(r"[;{}=]", code[after:self.opening]) and \
                not re.match(r"template\s*(?:<\s*>|[^<\s])", code[self.begin:at]):
            self.name = name[1]


def template_parameters(code, begin, at):
    """(end of the template's head, names of its parameters as arguments, places of the defaults); None: a parameter
    has no name."""
    less = code.find("<", begin)
    more, depth = less, 0
    while more < at:
        depth += (code[more] in "<(") - (code[more] in ">)")
        more += 1
        if depth == 0:
            break
    names, defaults = [], []
    for first, last in split_list(code, less + 1, more - 1):
        default = default_of(code, first, last)
        if default < last:
            defaults.append((default, last))
        one = re.search(r"(\.\.\.\s*)?(?<![\w:])([A-Za-z_]\w*)\s*$", code[first:default])
        if not one or one[2] in ("class", "typename", "auto", "int", "unsigned", "bool", "long", "char", "size_t"):
            return None
        names.append(one[2] + ("..." if one[1] else ""))
    return more, names, defaults


TWIN = "__host__ __device__ %s sonde_kernel_%s(%s); "
DEFAULTS = "struct %s { template <class SondeLaunch, class... SondeGiven> static __device__ __forceinline__ " \
    "void add(const SondeLaunch& launch, SondeGiven... given) { launch(given..., %s); } }; "


def kernel_twin(text, code, kernel):
    """(what stands before the kernel's declaration: the declaration alone and its twin; places of the defaults, which
    that has now). None: a form that has no twin."""
    begin, end = kernel.begin, kernel.end
    if code[end:].lstrip()[:1] not in ("{", ";") or "#" in text[begin:end] or not in_namespace(code, begin):
        return None
    head, arguments, defaults, rest = "", "", [], begin
    if code.startswith("template", begin):
        template = template_parameters(code, begin, kernel.at)
        if not template:
            return None
        rest, names, defaults = template
        head, arguments = text[begin:rest] + " ", "<" + ", ".join(names) + ">"
    if not HEAD_WORDS.fullmatch(text[rest:kernel.at]):
        return None
    types, values = [], []
    for first, last in split_list(code, kernel.opening + 1, end - 1):
        default = default_of(code, first, last)
        types.append(text[first:default].strip())
        if default < last:
            defaults.append((default, last))
            values.append(text[default + 1:last].strip())
    launch = "sonde::DeviceLaunch<void (*)(%s), &%s%s>" % (", ".join(types), kernel.name, arguments)
    twins = head + TWIN % (launch, kernel.name, ", ".join(types))
    # Where arguments are left out there is a twin for each number of them.
    for given in range(len(types) - len(values), len(types)):
        struct = "sonde_default_%s_%d_%x" % (kernel.name, given, zlib.crc32(text[begin:end].encode(errors="replace")))
        twins += head + DEFAULTS % (struct, ", ".join(values[given - len(types):]))
        twins += head + TWIN % ("sonde::DeviceLaunchWith<%s, %s%s>" % (launch, struct, arguments), kernel.name, ", ".join(types[:given]))
    return re.sub(r"\s+", " ", '%s; extern "C++" { %s} ' % (text[begin:end], twins)), defaults


class Source:
    """A file whose launches in device code are being adapted."""

    def __init__(self, text):
        self.text = text
        self.code = without_preprocessor(without_comments(text))
        self.plain = text_without_comments(text)
        self.launches = device_launches(self.code) if "<<<" in text else []
        self.kernels = [Kernel(self.code, match.start()) for match in re.finditer(r"\b__global__\b", self.code)]
        self.twins = {}

    def make_twins(self, launched):
        """Names of kernels of which a declaration cannot have a twin: they have none at all."""
        without = set()
        for kernel in self.kernels:
            if kernel.name in launched:
                twin = kernel_twin(self.plain, self.code, kernel)
                if twin:
                    self.twins[kernel] = twin
                else:
                    without.add(kernel.name)
        return without

    def adapted(self, names):
        """The text with twins for the kernels of these names, and with its launches replaced."""
        edits = launch_edits(self.code, self.plain, self.launches, names)
        for kernel, (before, defaults) in self.twins.items():
            if kernel.name in names:
                edits.append((kernel.begin, kernel.begin, before))
                edits += [(first, last, "") for first, last in defaults]
        return apply(self.text, edits)


def launch_edits(code, plain, launches, twins):
    """The edits of the launches."""
    edits = []
    for launch in launches:
        first, last = launch.configuration
        if launch.name in twins:
            arguments = plain[launch.arguments[0]:launch.arguments[1]]
            opening = "decltype(%ssonde_kernel_%s(%s))(" % (
                launch.qualifier, plain[launch.name_begin:launch.name_end], re.sub(r"\s*\n\s*", " ", arguments))
        else:
            kernel = plain[launch.begin:launch.name_end]
            opening = "sonde::DeviceLaunch<decltype(&%s), &%s>(" % (kernel, kernel)
        edits.append((launch.begin, first, opening))
        edits.append((last, last + 3, ")"))
    for match in re.finditer(r"\busing\s+((?:::\s*)?(?:\w+\s*::\s*)+)(\w+)\s*;", code):
        if match[2] in twins:
            edits.append((match.end(), match.end(), " using %ssonde_kernel_%s;" % (match[1], match[2])))
    return edits


def apply(text, edits):
    """The text with pieces replaced, each on its line."""
    parts, done = [], 0
    for start, end, replacement in sorted(edits, key=lambda edit: edit[:2]):
        if start < done:
            continue  # inside another
        lost = text.count("\n", start, end) - replacement.count("\n")
        parts += [text[done:start], replacement, "\n" * max(lost, 0)]
        done = end
    return "".join(parts) + text[done:]


def adapt(text):
    """The source as clang understands it, but for launches."""
    text = SHARED_ALIGNAS.sub(lambda m: m[2] + m[1] if "\n" not in m[0] else m[0], text)

    def assembly(match):
        start, end = match.start(1) - match.start(0), match.end(1) - match.start(0)
        return match[0][:start] + BARE_PERCENT.sub(r"\1%%", match[1]) + match[0][end:]
    return ASM.sub(assembly, text)


def files_of(source, preprocessor):
    """(path, text) of the source and the headers that it includes by quotes."""
    places = [preprocessor[i + 1] for i, flag in enumerate(preprocessor) if flag in ("-I", "-iquote")]
    queue, seen, files = [os.path.abspath(source)], set(), []
    while queue:
        path = os.path.normpath(queue.pop())
        if path in seen:
            continue
        seen.add(path)
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as f:
                text = f.read()
        except OSError:
            continue
        files.append((path, text))
        for name in QUOTED_INCLUDE.findall(text):
            for place in [os.path.dirname(path)] + places:
                candidate = os.path.abspath(os.path.join(place, name))
                if os.path.isfile(candidate):
                    queue.append(candidate)
                    break
    return files


def adapted_files(source, preprocessor, rdc):
    """(path, adapted text) of the source and the headers that it includes by quotes, where they differ; and whether
    there are __managed__ variables."""
    files = files_of(source, preprocessor)
    texts = dict(files)
    if rdc:
        sources = {path: Source(text) for path, text in files}
        launched = {launch.name for source_ in sources.values() for launch in source_.launches}
        without = set().union(*[source_.make_twins(launched) for source_ in sources.values()])
        names = {kernel.name for source_ in sources.values() for kernel in source_.twins} - without
        if launched:
            texts = {path: source_.adapted(names) for path, source_ in sources.items()}
    changed = []
    for path, text in files:
        adapted = adapt(texts[path])
        if adapted != text:
            changed.append((path, adapted))
    return changed, any("__managed__" in text for _, text in files)
