# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Packages: what is missing is installed with apt, and only then.

# The LLVM that the system has, newest tested first.
llvm_versions="19 18 20 21"

# apt_offers PACKAGE: does apt know a version to install?
apt_offers() {
  # In English, whatever the user's language is.
  [ -n "$(LC_ALL=C apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)" {print $2}')" ]
}

# Fails when there is none, neither installed nor on offer.
llvm_version() {
  local v root=${SONDE_LLVM_ROOT:-/usr/lib}
  for v in $llvm_versions; do
    [ -d "$root/llvm-$v/include/llvm" ] && [ -x "$root/llvm-$v/bin/clang++" ] && { echo "$v"; return; }
  done
  for v in $llvm_versions; do
    apt_offers "llvm-$v-dev" && { echo "$v"; return; }
  done
  return 1
}

# Before apt has any lists nobody can tell which LLVM there will be: the first is named.
llvm_version_or_guess() { llvm_version || echo "${llvm_versions%% *}"; }

build_packages() {
  local v; v=$(llvm_version_or_guess)
  echo g++ cmake ninja-build pkgconf python3 binutils file \
    libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libsqlite3-dev \
    liblz4-dev libzstd-dev libzydis-dev libconcurrentqueue-dev zlib1g-dev \
    libgtest-dev libgmock-dev libbenchmark-dev protobuf-compiler \
    "llvm-$v-dev" "clang-$v" "libclang-rt-$v-dev"
}

lint_packages() { echo git python3 clang-format-19; }

# missing_of PACKAGE…: those that are not installed, in one line.
missing_of() {
  local p missing=()
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  echo "${missing[*]}"
}

system_name() {
  # shellcheck source=/dev/null
  (. "${SONDE_OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${PRETTY_NAME:-}") || true
}

is_ubuntu() {
  # shellcheck source=/dev/null
  [ "$(. "${SONDE_OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID:-}")" = ubuntu ]
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# can_be_root MISSING: dies, with what to do, when packages cannot be installed by this user.
can_be_root() {
  [ "$(id -u)" != 0 ] || return 0
  local todo="ask an administrator for 'apt-get install --no-install-recommends $1' and run this again"
  have sudo || die "packages are missing, and installing them takes root or sudo: $todo"
  # Without a terminal sudo could not ask for a password.
  if [ -t 0 ]; then
    sudo true || die "packages are missing, and sudo does not let you install them: $todo"
  else
    sudo -n true 2>/dev/null || die "packages are missing, and sudo refuses or wants a password, for which there is no terminal here: $todo"
  fi
}

# check_offers UPDATED PACKAGE…: dies when apt has no version of one of them. UPDATED: its lists are new.
check_offers() {
  local updated=$1 p lacking=(); shift
  for p in "$@"; do apt_offers "$p" || lacking+=("$p"); done
  [ ${#lacking[@]} != 0 ] || return 0
  if [ "$updated" = no ]; then
    die "packages are missing, and apt cannot fetch its lists (no network?): connect, or install by other means, ${lacking[*]}; then run this again"
  elif is_ubuntu && ! LC_ALL=C apt-cache policy 2>/dev/null | grep -q '/universe '; then
    die "apt's component 'universe' is not enabled, and these packages are in it: ${lacking[*]}; enable it ('sudo add-apt-repository universe') and run this again"
  elif [ "$list" = build_packages ] && ! llvm_version >/dev/null; then
    die "apt on this system ($(system_name)) offers none of LLVM $llvm_versions (package llvm-N-dev); Debian 12 and 13 and Ubuntu 24.04 do"
  fi
  die "apt on this system ($(system_name)) does not offer: ${lacking[*]}; Debian 12 and 13 and Ubuntu 24.04 do (docs/BUILDING.md says what each is for)"
}

# ensure_packages [LIST]: LIST is a function that prints packages.
ensure_packages() {
  local list=${1:-build_packages} missing log updated=yes
  if ! have dpkg-query || ! have apt-get; then
    # Not Debian's family: the build says what it misses.
    say "this is not a Debian or Ubuntu system: install the packages that docs/BUILDING.md lists by hand"
    return 0
  fi
  # shellcheck disable=SC2046
  missing=$(missing_of $("$list"))
  [ -n "$missing" ] || return 0
  can_be_root "$missing"
  say "fetching apt's package lists"
  as_root apt-get -o DPkg::Lock::Timeout=300 -o APT::Update::Error-Mode=any update -qq >/dev/null 2>&1 || updated=no
  # Only now can apt tell which LLVM there is.
  # shellcheck disable=SC2046
  missing=$(missing_of $("$list"))
  # shellcheck disable=SC2086
  check_offers $updated $missing
  say "installing (this takes some minutes): $missing"
  log=$(mktemp 2>/dev/null) || log=$(TMPDIR=/tmp mktemp 2>/dev/null) || die "cannot write to ${TMPDIR:-/tmp}: set TMPDIR to a folder that is yours"
  # shellcheck disable=SC2086
  apt_install $missing >"$log" 2>&1 || {
    if grep -q 'dpkg was interrupted' "$log"; then
      say "an installation was interrupted earlier: finishing that first"
      # shellcheck disable=SC2086
      as_root env DEBIAN_FRONTEND=noninteractive dpkg --configure -a >"$log" 2>&1 && apt_install $missing >"$log" 2>&1
    else
      false
    fi
  } || { tail -n 15 "$log" >&2; rm -f "$log"; die "apt-get could not install: $missing; its last words are above"; }
  rm -f "$log"
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@"
}

word_deps() { no_arguments deps "$@"; ensure_packages; say "everything that the build needs is installed"; }
