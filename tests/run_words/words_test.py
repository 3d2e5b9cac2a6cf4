#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./run on systems that are not this one: apt, dpkg, sudo and cmake are small stand-ins that a scenario describes.

usage: words_test.py SOURCE
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = None
TOOLS = "bash env awk sed dirname readlink mktemp tail rm mkdir mv nproc df cat grep head basename ls true chmod".split()

STAND_INS = {
    # What is installed: the lines of $STATE/installed.
    "dpkg-query": 'for name; do :; done\ngrep -qx "$name" "$STATE/installed" && printf installed || exit 1\n',
    # What is on offer: $STATE/offered, once apt-get update went well (or from the start: $STATE/lists).
    "apt-cache": """[ $# = 2 ] || { cat "$STATE/policy" 2>/dev/null; exit 0; }
candidate=Candidate none=none
[ "${LC_ALL:-}" = C ] || case ${LANG:-} in de_*) candidate=Installationskandidat none=keine ;; esac
echo "$2:"
if [ -e "$STATE/lists" ] && grep -qx "$2" "$STATE/offered"; then echo "  $candidate: 1.0"; else echo "  $candidate: ($none)"; fi
""",
    "apt-get": """while [ $# -gt 0 ]; do case $1 in -o) shift ;; -*) ;; update | install) word=$1; shift; break ;; esac; shift; done
case $word in
  update) [ -e "$STATE/online" ] || exit 100; touch "$STATE/lists"; echo update >>"$STATE/log" ;;
  install) [ -e "$STATE/install-fails" ] && { echo "E: Could not resolve 'deb.debian.org'"; exit 100; }
    [ -e "$STATE/half-configured" ] && { echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"; exit 100; }
    echo "install $(id -u)" >>"$STATE/log"
    for p; do case $p in -*) ;; *) echo "$p" >>"$STATE/installed" ;; esac; done ;;
esac
""",
    "dpkg": 'echo "dpkg $*" >>"$STATE/log"; [ -e "$STATE/dpkg-fails" ] && { echo "dpkg: no space"; exit 1; }; rm "$STATE/half-configured"\n',
    "sudo": """[ -e "$STATE/sudo-refuses" ] && { echo "sudo: a password is required" >&2; exit 1; }
[ "$1" != -n ] || shift
AS_ROOT=1 exec "$@"
""",
    "id": 'if [ "${1:-}" = -un ]; then echo somebody; elif [ "${AS_ROOT:-}" = 1 ]; then echo 0; else cat "$STATE/uid"; fi\n',
    "touch": 'for f; do : >>"$f"; done\n',
    # Builds nothing; installs one file, where it is told to.
    "cmake": """if [ "$1" = --version ]; then cat "$STATE/cmake-version"; exit; fi
echo "cmake $*" >>"$STATE/log"
case $1 in
  --preset) mkdir -p "build/$2"; : >"build/$2/build.ninja"; echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"build/$2/CMakeCache.txt" ;;
  --build) [ ! -e "$STATE/build-fails" ] ;;
  --install) mkdir -p "$4/bin"; : >"$4/bin/sonde"; : >build/product/install_manifest.txt
    umask >"$STATE/umask"
    [ ! -e "$STATE/demo" ] || for p in sonde sondecc; do
      echo '#!/usr/bin/env bash' >"$4/bin/$p"; echo 'echo "dist/bin/${0##*/} $*" >>"$STATE/log"; [ ! -e "$STATE/program-fails" ]' >>"$4/bin/$p"
      chmod +x "$4/bin/$p"
    done ;;
esac
""",
}

PACKAGES = """g++ cmake ninja-build pkgconf python3 binutils file libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev
libsqlite3-dev liblz4-dev libzstd-dev libzydis-dev libconcurrentqueue-dev zlib1g-dev libgtest-dev libgmock-dev
libbenchmark-dev protobuf-compiler""".split()
LLVM = ["llvm-19-dev", "clang-19", "libclang-rt-19-dev"]
LLVM_18 = ["llvm-18-dev", "clang-18", "libclang-rt-18-dev"]
IN_MAIN = ["g++", "cmake", "ninja-build", "pkgconf", "python3", "binutils", "file", "libsqlite3-dev", "liblz4-dev",
           "libzstd-dev", "zlib1g-dev", "llvm-18-dev"]


class Words(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="sonde run ")  # a space, as a clone's path may have
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", self.top], check=False))
        self.clone = os.path.join(self.top, "my clone")
        self.state = os.path.join(self.top, "state")
        self.path = os.path.join(self.top, "path")
        for folder in (self.clone, self.state, self.path):
            os.makedirs(folder)
        shutil.copy(os.path.join(SOURCE, "run"), self.clone)
        shutil.copytree(os.path.join(SOURCE, "tools", "run"), os.path.join(self.clone, "tools", "run"))
        for tool in TOOLS:
            os.symlink(shutil.which(tool), os.path.join(self.path, tool))
        for name in STAND_INS:
            self.stand_in(name)
        self.write("uid", "1000\n")
        self.write("installed", "")
        self.system("debian", "Debian GNU/Linux 13 (trixie)")
        self.offer(PACKAGES + LLVM)
        self.write("online", "")
        self.write("cmake-version", "cmake version 3.25.1\n\nCMake suite maintained and supported by Kitware\n")
        self.environment = {}

    def stand_in(self, name):
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write("#!" + shutil.which("bash") + "\n" + STAND_INS[name])
        os.chmod(path, 0o755)

    def write(self, name, text):
        with open(os.path.join(self.state, name), "w", encoding="utf-8") as out:
            out.write(text)

    def read(self, name):
        path = os.path.join(self.state, name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8") as text:
            return text.read()

    def system(self, ident, name):
        self.write("os-release", f'ID={ident}\nPRETTY_NAME="{name}"\n')

    def offer(self, packages):
        self.write("offered", "".join(p + "\n" for p in packages))

    def without(self, *names):
        for name in names:
            os.remove(os.path.join(self.path, name))

    def run_word(self, *words, cwd=None):
        environment = {"PATH": self.path, "STATE": self.state, "HOME": self.top,
                       "SONDE_OS_RELEASE": os.path.join(self.state, "os-release"),
                       "SONDE_LLVM_ROOT": os.path.join(self.top, "usr-lib"), **self.environment}
        done = subprocess.run([os.path.join(self.clone, "run"), *words], cwd=cwd or self.top, env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def refused(self, *words, **options):
        """What ./run says when it gives up: one line that begins with 'run: '."""
        code, _, errors = self.run_word(*words, **options)
        self.assertEqual(code, 1, errors)
        last = errors.strip().splitlines()[-1]
        self.assertTrue(last.startswith("run: "), errors)
        return last

    def installed(self):
        return self.read("installed").split()

    # Packages.

    def test_a_user_with_sudo_gets_what_is_missing_and_nothing_else(self):
        self.write("installed", "g++\ncmake\n")
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(self.installed()), sorted(PACKAGES + LLVM))
        self.assertIn("install 0", self.read("log"))

    def test_with_everything_there_apt_is_not_asked(self):
        self.write("installed", "".join(p + "\n" for p in PACKAGES + LLVM))
        self.without("apt-cache", "sudo")  # LLVM's version is then a guess; the packages say that it is right
        os.remove(os.path.join(self.state, "online"))
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)
        self.assertEqual(self.read("log"), "")

    def test_root_needs_no_sudo(self):
        self.write("uid", "0\n")
        self.without("sudo")
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)
        self.assertIn("llvm-19-dev", self.installed())

    def test_a_user_without_sudo_is_told_what_to_ask_for_in_one_line(self):
        self.without("sudo")
        code, out, errors = self.run_word("demo")
        self.assertEqual((code, out), (1, ""))
        self.assertEqual(len(errors.splitlines()), 1, errors)
        self.assertIn("root or sudo", errors)
        for package in PACKAGES + LLVM:
            self.assertIn(" " + package, errors)

    def test_sudo_that_refuses(self):
        self.write("sudo-refuses", "")
        code, _, errors = self.run_word("demo")
        self.assertEqual((code, len(errors.splitlines())), (1, 1), errors)
        self.assertIn("sudo refuses", errors)

    def test_offline_without_lists(self):
        os.remove(os.path.join(self.state, "online"))
        self.assertIn("no network?", self.refused("build"))
        self.assertEqual(self.installed(), [])

    def test_offline_with_lists_apt_is_still_tried(self):
        os.remove(os.path.join(self.state, "online"))
        self.write("lists", "")  # its cache may hold the packages
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)

    def test_apt_that_fails_is_quoted(self):
        self.write("install-fails", "")
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 1)
        self.assertIn("E: Could not resolve", errors)
        self.assertIn("run: apt-get could not install: ", errors)

    def test_an_installation_that_was_interrupted_is_finished_first(self):
        self.write("half-configured", "")
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(self.installed()), sorted(PACKAGES + LLVM))
        self.assertEqual(self.read("log").splitlines(), ["update", "dpkg --configure -a", "install 0"])

    def test_an_installation_that_cannot_be_finished(self):
        self.write("half-configured", "")
        self.write("dpkg-fails", "")
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 1)
        self.assertIn("dpkg: no space", errors)
        self.assertIn("run: apt-get could not install: ", errors.splitlines()[-1])

    def test_apt_in_another_language(self):
        self.environment = {"LANG": "de_DE.UTF-8"}
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)
        self.assertIn("clang-19", self.installed())

    def test_a_folder_for_temporary_files_that_is_not_there(self):
        self.environment = {"TMPDIR": os.path.join(self.top, "nowhere")}
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)

    def test_ubuntu_without_universe(self):
        self.system("ubuntu", "Ubuntu 24.04.1 LTS")
        self.offer(IN_MAIN)
        self.write("policy", " 500 http://archive.ubuntu.com/ubuntu noble/main amd64 Packages\n")
        last = self.refused("demo")
        self.assertIn("'universe' is not enabled", last)
        self.assertIn("add-apt-repository universe", last)
        self.assertIn("libzydis-dev", last)
        self.assertNotIn(" cmake", last)

    def test_ubuntu_24_04_takes_llvm_19(self):
        self.system("ubuntu", "Ubuntu 24.04.1 LTS")
        self.offer(PACKAGES + LLVM_18 + LLVM)
        self.write("policy", " 500 http://archive.ubuntu.com/ubuntu noble/universe amd64 Packages\n")
        code, _, errors = self.run_word("deps")
        self.assertEqual(code, 0, errors)
        self.assertIn("clang-19", self.installed())
        self.assertNotIn("clang-18", self.installed())

    def test_a_system_that_is_too_old_is_named(self):
        self.system("ubuntu", "Ubuntu 20.04.6 LTS")
        self.offer(PACKAGES)
        self.write("policy", " 500 http://archive.ubuntu.com/ubuntu focal/universe amd64 Packages\n")
        last = self.refused("test")
        self.assertIn("Ubuntu 20.04.6 LTS", last)
        self.assertIn("none of LLVM 19", last)

    def test_another_family_of_systems_builds_with_what_it_has(self):
        self.without("dpkg-query", "apt-get", "apt-cache")
        code, _, errors = self.run_word("build")
        self.assertEqual(code, 0, errors)
        self.assertIn("docs/BUILDING.md", errors)

    # Words and their arguments.

    def test_demo_shows_the_commands_that_it_runs(self):
        self.everything_installed()
        self.write("demo", "")  # cmake's stand-in installs programs that write down how they were called
        code, _, errors = self.run_word("demo")
        self.assertEqual(code, 0, errors)
        called = self.read("log").splitlines()
        shown = [line[2:] for line in errors.splitlines() if line.startswith("$ ")]
        self.assertGreaterEqual(len(shown), 11)  # five programs compiled and profiled, one with counters
        self.assertEqual(shown, [line for line in called if line.startswith("dist/")])

    def test_demo_names_the_program_that_failed(self):
        self.everything_installed()
        self.write("demo", "")
        self.write("program-fails", "")
        self.assertIn("could not compile examples/matmul.cu", self.refused("demo"))

    def everything_installed(self):
        self.write("installed", "".join(p + "\n" for p in PACKAGES + LLVM))

    def test_no_word_lists_the_words(self):
        for words in ([], ["help"], ["--help"]):
            code, out, errors = self.run_word(*words)
            self.assertEqual((code, errors), (0, ""))
            for word in "demo test build install bench lint sanitize fuzz deps clean".split():
                self.assertRegex(out, rf"(?m)^  {word}\b")
        self.assertFalse(os.path.exists(os.path.join(self.clone, "build")))

    def test_unknown_words(self):
        for word in ("dmeo", "a b", "-v", "test;ls"):
            self.assertIn(f"no such word: {word}", self.refused(word))

    def test_words_without_arguments(self):
        self.everything_installed()
        for word in "demo build lint deps clean".split():
            self.assertIn("takes no argument", self.refused(word, "more"))

    def test_help_behind_a_word_does_nothing(self):
        for word in ("demo", "test", "fuzz", "install"):
            code, out, errors = self.run_word(word, "--help")
            self.assertEqual((code, errors), (0, ""))
            self.assertIn("usage: ./run WORD", out)
        self.assertEqual(self.read("log"), "")

    def test_a_cmake_that_is_too_old_is_named(self):
        self.everything_installed()
        for version in ("3.20.5", "3.24", "2.8.12.1"):
            self.write("cmake-version", f"cmake version {version}\n")
            last = self.refused("build")
            self.assertIn(f"path/cmake is version {version}, but 3.25 or newer is needed", last)
        for version in ("3.25.0-rc1", "3.31.6", "4.0.2"):
            self.write("cmake-version", f"cmake version {version}\n")
            self.assertEqual(self.run_word("build")[0], 0)
        self.write("cmake-version", "")
        self.assertIn("path/cmake does not run", self.refused("build"))

    def test_what_is_installed_can_be_read_by_all(self):
        self.everything_installed()
        before = os.umask(0o077)
        self.addCleanup(os.umask, before)
        self.assertEqual(self.run_word("install", "prefix")[0], 0)
        self.assertEqual(self.read("umask"), "0022\n")

    def test_build_replaces_dist(self):
        self.everything_installed()
        os.makedirs(os.path.join(self.clone, "dist", "stale"))
        code, _, errors = self.run_word("build")
        self.assertEqual(code, 0, errors)
        self.assertEqual(os.listdir(os.path.join(self.clone, "dist")), ["bin"])

    def test_install_is_relative_to_where_one_stands(self):
        self.everything_installed()
        self.assertIn("usage: ./run install PREFIX", self.refused("install"))
        self.assertIn("usage: ./run install PREFIX", self.refused("install", ""))
        self.assertIn("usage: ./run install PREFIX", self.refused("install", "a", "b"))
        code, _, errors = self.run_word("install", "my prefix/deep", cwd=self.top)
        self.assertEqual(code, 0, errors)
        self.assertTrue(os.path.exists(os.path.join(self.top, "my prefix", "deep", "bin", "sonde")))
        self.assertFalse(os.path.exists(os.path.join(self.clone, "build", "product", "install_manifest.txt")))

    def test_install_into_what_is_no_folder(self):
        self.everything_installed()
        last = self.refused("install", os.path.join(self.state, "uid", "x"))
        self.assertIn("uid is not a folder", last)
        self.assertEqual(self.read("log"), "")  # before anything was built

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_install_into_what_is_not_writable(self):
        self.everything_installed()
        self.assertIn("/usr/share is not writable for somebody", self.refused("install", "/usr/share/sonde"))
        self.assertEqual(self.read("log"), "")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_build_folder_of_somebody_else(self):
        self.everything_installed()
        os.makedirs(os.path.join(self.clone, "build"))
        os.chmod(os.path.join(self.clone, "build"), 0o555)
        self.assertIn("cannot write to", self.refused("build"))

    def test_a_moved_clone_starts_anew(self):
        self.everything_installed()
        self.assertEqual(self.run_word("build")[0], 0)
        self.assertEqual(self.run_word("build")[0], 0)
        self.assertEqual(self.read("log").count("cmake --preset"), 1)
        moved = os.path.join(self.top, "elsewhere")
        os.rename(self.clone, moved)
        self.clone = moved
        code, _, errors = self.run_word("build")
        self.assertEqual(code, 0, errors)
        self.assertIn("starting anew", errors)
        self.assertEqual(self.read("log").count("cmake --preset"), 2)

    def test_through_a_link_it_is_the_same_clone(self):
        self.everything_installed()
        self.assertEqual(self.run_word("build")[0], 0)
        os.symlink(self.clone, os.path.join(self.top, "link"))
        self.clone = os.path.join(self.top, "link")
        self.assertEqual(self.run_word("build")[0], 0)
        self.assertEqual(self.read("log").count("cmake --preset"), 1)

    def test_a_build_that_fails_says_so_last(self):
        self.everything_installed()
        self.write("build-fails", "")
        self.assertIn("the build failed", self.refused("test"))


if __name__ == "__main__":
    SOURCE = sys.argv.pop(1)
    unittest.main(verbosity=1)
