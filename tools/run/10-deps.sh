# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Packages: what is missing is installed with apt, and only then.

# The LLVM that the system has, newest tested first.
llvm_versions="19 18 20 21"

llvm_version() {
  local v
  for v in $llvm_versions; do
    [ -d "/usr/lib/llvm-$v/include/llvm" ] && [ -x "/usr/lib/llvm-$v/bin/clang++" ] && { echo "$v"; return; }
  done
  for v in $llvm_versions; do
    [ -n "$(apt-cache policy "llvm-$v-dev" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)" {print $2}')" ] && { echo "$v"; return; }
  done
}

package_list() {
  echo g++ cmake ninja-build pkgconf python3 binutils file \
    libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libsqlite3-dev \
    liblz4-dev libzstd-dev libzydis-dev libconcurrentqueue-dev zlib1g-dev \
    libgtest-dev libgmock-dev libbenchmark-dev protobuf-compiler
  local v; v=$(llvm_version)
  [ -n "$v" ] && echo "llvm-$v-dev" "clang-$v" "libclang-rt-$v-dev"
}

missing_packages() {
  local p
  for p in $(package_list); do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then sudo "$@"
  else return 1
  fi
}

ensure_packages() {
  have dpkg-query || {
    # Not Debian's family: the build says what it misses.
    say "this is not a Debian or Ubuntu system: install the packages that docs/BUILDING.md lists by hand"
    return 0
  }
  local missing
  [ -n "$(llvm_version)" ] || as_root apt-get update -qq || true
  missing=$(missing_packages)
  [ -z "$missing" ] && [ -n "$(llvm_version)" ] && return 0
  # shellcheck disable=SC2086
  say "installing:" $missing
  as_root true || die "these packages are missing and neither root nor sudo is at hand: ${missing//$'\n'/ }; install them and run this again"
  as_root apt-get update -qq || say "apt-get update failed; trying with the package lists that are here"
  # Only now can apt tell which LLVM there is.
  missing=$(missing_packages)
  [ -n "$(llvm_version)" ] || die "this system offers none of LLVM $llvm_versions (package llvm-N-dev); Debian 12 or 13 and Ubuntu 24.04 do"
  # shellcheck disable=SC2086
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/tmp/sonde-apt.$$.log 2>&1 ||
    { tail -n 15 /tmp/sonde-apt.$$.log >&2; rm -f /tmp/sonde-apt.$$.log; die "apt-get could not install: ${missing//$'\n'/ }"; }
  rm -f /tmp/sonde-apt.$$.log
}

word_deps() { ensure_packages; say "everything that the build needs is installed"; }
