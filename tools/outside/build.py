# SPDX-License-Identifier: Apache-2.0
"""Compilers, and what happened to a program."""
import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys
import time

BUILD_TIMEOUT = 400
ERROR_LINE = re.compile(r"error|fail|not supported|unsupported|undefined|cannot|exception|mismatch|invalid|illegal|"
                        r"unresolved|deadlock|abort", re.I)
# Code that did not run: whatever such a program says of itself, it has not passed.
REFUSED = re.compile(r"^sonde: (module refused|library refused|kernel \S+: )", re.M)
NOT_AN_ERROR = re.compile(r"0 errors|error: *0\b|errors: *0\b|no error|error threshold.*: 0\b|check.*passed", re.I)


@dataclasses.dataclass
class Row:
    """One line of the table; result is pass, FAIL, timeout, no build or skipped."""
    name: str
    compiler: str
    result: str
    seconds: float = 0.0
    error: str = ""
    output: str = ""


def firstError(text, fallback):
    """The first line that looks like an error: the reason, as short as a table wants it."""
    for line in text.splitlines():
        if ERROR_LINE.search(line) and not NOT_AN_ERROR.search(line):
            return " ".join(line.split())[:150]
    return fallback


class Tool:
    """A compiler, and the environment in which its programs run."""

    def __init__(self, compiler, args, root):
        self.compiler, self.arch, self.work = compiler, args.arch, args.work
        self.timeout, self.lib, self.jobs, self.card = args.timeout, args.lib, args.jobs, args.card
        self.parts = []
        if compiler == "nvcc":
            path = args.nvcc or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
            # The toolkit's stub stands in for libcuda at link time only.
            stubs = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(path))), "lib64", "stubs")
            self.command = [path, "-cudart", "shared", "-arch=compute_" + args.arch, "--extended-lambda",
                            "-Wno-deprecated-gpu-targets", "-w"]
            # A program is linked with the runtime of its compiler's release, whose structures it has.
            own = os.path.dirname(stubs)
            self.linkPaths = ["-L" + stubs] + (["-L" + own] if args.nvcc else []) + ["-L" + args.lib]
        elif compiler == "sondecc":
            self.command = [sys.executable, os.path.join(root, "tools", "sondecc"), "-arch=sm_" + args.arch, "-w"]
            # Header libraries that programs expect of a toolkit, where there is one.
            libraries = "/usr/local/cuda/include/cccl"
            if os.path.isdir(libraries):
                self.command.append("-I" + libraries)
            self.linkPaths = ["-L" + args.lib]
            # Of this checkout: what an earlier state of it has built says nothing.
            self.parts = glob.glob(os.path.join(root, "tools", "sondecc*")) + \
                glob.glob(os.path.join(root, "include", "softgpu", "**", "*.h*"), recursive=True)
        else:
            raise SystemExit("unknown compiler " + compiler + ": nvcc or sondecc")
        self.environment = dict(os.environ)
        toolkit = "/usr/local/cuda/lib64"
        found = os.environ.get("LD_LIBRARY_PATH", "")
        self.environment["LD_LIBRARY_PATH"] = ":".join(([found] if args.card and found else []) +
                                                       ([] if args.card else [args.lib]) + [toolkit])
        self.environment.pop("CUDA_VISIBLE_DEVICES", None)

    def scratch(self, name, clean=False):
        path = os.path.join(self.work, self.compiler, name.replace("/", "_"))
        if clean:
            shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path, exist_ok=True)
        return path

    def build(self, sources, output, flags, cwd):
        """None when it worked, else what the compiler said. Not repeated while sources and compiler are older."""
        inputs = list(sources) + self.parts
        if os.path.exists(output) and all(os.path.getmtime(output) > os.path.getmtime(s) for s in inputs):
            return None
        standard = [] if any(f.startswith("-std=") for f in flags) else ["-std=c++17"]
        command = self.command + ["-O2"] + standard + flags + sources + ["-o", output]
        if "-ptx" not in flags and "-fatbin" not in flags:
            command += self.linkPaths + [f for f in flags if f.startswith("-l")]
        try:
            done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace",
                                  timeout=BUILD_TIMEOUT, check=False)
        except subprocess.TimeoutExpired:
            return "error: the compiler did not finish in %d s" % BUILD_TIMEOUT
        return None if done.returncode == 0 else done.stdout + done.stderr or "error: exit status %d" % done.returncode

    def run(self, command, cwd, environment=None):
        """(exit status or None after the time limit, output, seconds)"""
        begin = time.monotonic()
        try:
            done = subprocess.run(command, cwd=cwd, env=dict(self.environment, **(environment or {})),
                                  stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=self.timeout, check=False)
            return done.returncode, done.stdout, time.monotonic() - begin
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode("utf-8", "replace")
            return None, text, time.monotonic() - begin


@dataclasses.dataclass
class Program:
    """A program of a suite. check(status, output) answers None when it passed, else the reason."""
    name: str
    sources: list
    check: object
    flags: list = dataclasses.field(default_factory=list)
    runs: list = dataclasses.field(default_factory=lambda: [[]])
    data: str = ""           # directory whose files are copied beside the program
    extras: list = dataclasses.field(default_factory=list)  # (source, output name, flag): device code in a file
    copies: list = dataclasses.field(default_factory=list)  # (file or directory, name beside the program)
    environment: dict = dataclasses.field(default_factory=dict)
    skip: str = ""
    nvccFlags: list = dataclasses.field(default_factory=list)
    support: object = None   # support(tool) answers (what the compiler said or None, objects to link)

    def evaluate(self, tool):
        row = Row(self.name, tool.compiler, "skipped", error=self.skip)
        if self.skip:
            return row
        place = tool.scratch(self.name)
        if self.data:
            shutil.copytree(self.data, place, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("*.doc", "*.docx", "*.md", "*.pdf"))
        for source, name in self.copies:
            target = os.path.join(place, name)
            if os.path.isdir(source):
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy(source, target)
        for source, name, flag in self.extras:
            includes = [f for f in self.flags if f.startswith(("-I", "-D"))]
            said = tool.build([source], os.path.join(place, name), includes + [flag], place)
            if said:
                row.result, row.output, row.error = "no build", said, firstError(said, said.splitlines()[0])
                return row
        program = os.path.join(place, "program.exe")
        flags = self.flags + (self.nvccFlags if tool.compiler == "nvcc" else [])
        said, objects = self.support(tool) if self.support else (None, [])
        said = said or tool.build(self.sources + objects, program, flags, place)
        if said:
            row.result, row.output, row.error = "no build", said, firstError(said, said.splitlines()[0])
            return row
        row.result = "pass"
        for run in self.runs:
            status, output, seconds = tool.run([program] + run, place, self.environment)
            row.seconds += seconds
            row.output += output
            if status is None:
                row.result, row.error = "timeout", "still running after %g s" % tool.timeout
                return row
            why = self.check(status, output)
            if why is None and REFUSED.search(output):
                why = "device code was refused, and the program did not look"
            if why == "waived":
                row.result, row.error = "skipped", (output.strip().splitlines() or [""])[-1][:150]
            elif why is not None:
                row.result, row.error = "FAIL", firstError(output, "") or why
                return row
        return row
