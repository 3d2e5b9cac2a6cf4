# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What every word needs: messages, and the build of one preset.

say() { printf '%s\n' "$*" >&2; }
die() { printf 'run: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

jobs_count() {
  # One compiler process of an LLVM source takes about 1 GiB.
  local cpus mem
  cpus=$(nproc)
  mem=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  [ "$mem" -ge 1 ] || mem=1
  if [ "$cpus" -lt "$mem" ]; then echo "$cpus"; else echo "$mem"; fi
}

# no_arguments WORD [what was given…]
no_arguments() { [ $# = 1 ] || die "./run $1 takes no argument, but got: ${*:2}"; }

# A full disk shows itself in many odd ways: say it plainly.
full_disk_hint() {
  local left
  left=$(df -Pm . | awk 'NR == 2 {print $4}')
  [ "$left" -ge 200 ] || say "run: the disk is full: $left MiB are left in $PWD; a build with tests takes about 3 GiB, one of the product 0.4"
  # Where it cannot be written to, compilers look for another place by themselves.
  left=$(df -Pm "${TMPDIR:-/tmp}" 2>/dev/null | awk 'NR == 2 {print $4}')
  [ "${left:-200}" -ge 50 ] || say "run: the disk is full: $left MiB are left in ${TMPDIR:-/tmp}, which compilers use; set TMPDIR to another folder"
}

# The presets need this cmake; an older one only says that it cannot read them.
check_cmake() {
  local version
  have cmake || die "cmake is not installed (3.25 or newer is needed)"
  version=$(cmake --version 2>/dev/null | awk 'NR == 1 {print $3}')
  case $version in
    [0-9]*.[0-9]*) ;;
    *) die "$(command -v cmake) does not run: 'cmake --version' tells no version" ;;
  esac
  local major=${version%%.*} rest=${version#*.}
  local minor=${rest%%.*}
  [ "$major" -gt 3 ] || { [ "$major" = 3 ] && [ "$minor" -ge 25 ]; } ||
    die "$(command -v cmake) is version $version, but 3.25 or newer is needed: put a newer one first in PATH (the system's own is usually /usr/bin/cmake)"
}

# Where a clone was moved, or another was copied here, the build folder still speaks of the old place.
drop_moved_build() {
  local home
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$1/CMakeCache.txt" 2>/dev/null || true)
  if [ -n "$home" ] && [ "$home" != "$PWD" ]; then
    say "$1 was made for $home: starting anew"
    rm -rf "$1"
  fi
}

# configure_and_build PRESET [target…]
configure_and_build() {
  local preset=$1; shift
  local dir=build/$preset
  local problem
  problem=$({ mkdir -p build && : >build/.writable && rm build/.writable; } 2>&1) ||
    { full_disk_hint; die "cannot write to $PWD/build (${problem##*: }): it must be yours and writable; a clone elsewhere does as well"; }
  [ ! -d "$dir" ] || [ -w "$dir" ] || die "cannot write to $PWD/$dir: it must be yours (built as root before? then 'sudo ./run clean')"
  check_cmake
  drop_moved_build "$dir"
  if [ ! -f "$dir/build.ninja" ]; then
    say "configuring ($preset)"
    local options=()
    case $preset in
      # Their compiler is clang: the one that goes with the LLVM that was found.
      asan-ubsan | tsan | fuzz)
        options=(-DCMAKE_C_COMPILER="clang-$(llvm_version)" -DCMAKE_CXX_COMPILER="clang++-$(llvm_version)") ;;
    esac
    cmake --preset "$preset" "${options[@]}" >"$dir.log" 2>&1 ||
      { tail -n 30 "$dir.log" >&2; full_disk_hint; die "cmake failed; the whole log is $dir.log"; }
  fi
  say "building ($preset)"
  cmake --build --preset "$preset" -j "$(jobs_count)" ${1:+--target "$@"} >&2 ||
    { full_disk_hint; die "the build failed; the first error is above ('./run clean' helps when compilers or libraries were changed since the last one)"; }
}
