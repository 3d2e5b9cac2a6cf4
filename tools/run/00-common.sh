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

# configure_and_build PRESET [target…]
configure_and_build() {
  local preset=$1; shift
  local dir=build/$preset
  if [ ! -f "$dir/build.ninja" ]; then
    say "configuring ($preset)"
    local options=()
    case $preset in
      # Their compiler is clang: the one that goes with the LLVM that was found.
      asan-ubsan | tsan | fuzz)
        options=(-DCMAKE_C_COMPILER="clang-$(llvm_version)" -DCMAKE_CXX_COMPILER="clang++-$(llvm_version)") ;;
    esac
    cmake --preset "$preset" "${options[@]}" >"$dir.log" 2>&1 || { tail -n 30 "$dir.log" >&2; die "cmake failed; the whole log is $dir.log"; }
  fi
  say "building ($preset)"
  cmake --build --preset "$preset" -j "$(jobs_count)" ${1:+--target "$@"} >&2 || die "the build failed; the first error is above"
}
