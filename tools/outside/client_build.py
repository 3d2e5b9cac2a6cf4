# SPDX-License-Identifier: Apache-2.0
"""Where clients are built and run, and what happened to them."""
import dataclasses
import os
import shutil
import subprocess
import sys
import time

from build import firstError

BUILD_TIMEOUT = 3000


@dataclasses.dataclass
class Row:
    """One line of the table; result is pass, FAIL, timeout, no build or skipped."""
    name: str
    result: str
    seconds: float = 0.0
    note: str = ""
    output: str = ""


class Failed(Exception):
    """The reason, and what was printed."""

    def __init__(self, reason, output="", result="FAIL"):
        super().__init__(reason)
        self.reason, self.output, self.result = reason, output, result


class Skipped(Exception):
    pass


class Check:
    """A step: action() answers what was found (a short text), or raises Failed or Skipped."""

    def __init__(self, name, action, always=False):
        self.name, self.action, self.always = name, action, always

    def evaluate(self):
        begin = time.monotonic()
        row = Row(self.name, "pass")
        try:
            row.note = self.action() or ""
        except Skipped as why:
            row.result, row.note = "skipped", str(why)
        except Failed as why:
            row.result, row.output = why.result, why.output
            row.note = firstError(why.output, why.reason) if why.result == "no build" else why.reason
        row.seconds = time.monotonic() - begin
        return row


class Bench:
    """The scratch directory of a client, and the software GPU that its programs see."""

    def __init__(self, args):
        self.args, self.prefix, self.checkout = args, args.prefix, args.checkout
        self.work = os.path.join(args.work, args.client)
        os.makedirs(self.work, exist_ok=True)

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CALI_", "PAPI_", "SONDE_", "CUDA_"))}
        lib = os.path.join(self.prefix, "lib64")
        # The CUDA libraries first: a toolkit's own must not be found.
        env["LD_LIBRARY_PATH"] = ":".join([os.path.join(lib, "softgpu"), lib, self.path("nvml")])
        env.update(more)
        return env

    def build(self, command, cwd=None, **more):
        """Raises Failed when the command fails."""
        # Some makefiles go by PWD.
        env = dict(os.environ, PWD=cwd or self.work, **more)
        done = subprocess.run(command, cwd=cwd or self.work, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=BUILD_TIMEOUT, check=False)
        if done.returncode != 0:
            raise Failed("exit status %d" % done.returncode, done.stdout, "no build")
        return done.stdout

    def copySources(self, name="source", below=""):
        """For clients that build in their own tree."""
        place = self.path(name)
        if not os.path.exists(place):
            shutil.copytree(os.path.join(self.checkout, below), place, symlinks=True,
                            ignore=shutil.ignore_patterns(".git"))
        return place

    def program(self, name, flags):
        """Compiles a driver program of ours with sondecc."""
        output = self.path(name)
        self.build([sys.executable, os.path.join(self.prefix, "bin", "sondecc"), "-O2", "-w",
                    os.path.join(self.args.programs, name + ".cu"), "-o", output] + flags)
        return output

    def standInNvml(self):
        """Clients that insist on libnvidia-ml.so get one that knows nothing."""
        os.makedirs(self.path("nvml"), exist_ok=True)
        library = self.path("nvml", "libnvidia-ml.so.1")
        self.build(["cc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", library,
                    os.path.join(self.args.programs, "stand_in_nvml.c")])
        link = self.path("nvml", "libnvidia-ml.so")
        if not os.path.lexists(link):
            os.symlink("libnvidia-ml.so.1", link)

    def nvmlInclude(self):
        """A directory with the nvml.h that was named."""
        if not self.args.nvml_header:
            raise Failed("say where nvml.h is with --nvml-header (github.com/NVIDIA/go-nvml has one)")
        os.makedirs(self.path("include"), exist_ok=True)
        shutil.copy(self.args.nvml_header, self.path("include", "nvml.h"))
        return self.path("include")

    def run(self, command, cwd=None, **more):
        """The output; raises Failed when the program fails or does not end."""
        try:
            done = subprocess.run(command, cwd=cwd or self.work, env=self.environment(**more),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", timeout=self.args.timeout, check=False)
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"").decode("utf-8", "replace")
            raise Failed("still running after %g s" % self.args.timeout, text, "timeout") from late
        if done.returncode != 0:
            how = "killed by signal %d" % -done.returncode if done.returncode < 0 else "exit status %d" % done.returncode
            raise Failed(how, done.stdout)
        return done.stdout
