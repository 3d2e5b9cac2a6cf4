# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

word_build() {
  no_arguments build "$@"
  ensure_packages
  configure_and_build product
  rm -rf dist.new
  install_to "$PWD/dist.new" || die "installing into dist/ failed"
  # Replaced whole, so that nothing stale stays behind.
  rm -rf dist && mv dist.new dist
  say "dist/ is ready: dist/bin/sonde, dist/bin/sondecc"
}

# Folders that others can read, whatever the umask is: what is installed for all should serve all.
# The list of what was installed would be root's after 'sudo ./run install', and in the way of the next call.
install_to() {
  (umask 022 && cmake --install build/product --prefix "$1" >/dev/null) || return 1
  rm -f build/product/install_manifest.txt
}

# check_prefix PREFIX: dies, before a long build, where nothing can be installed.
check_prefix() {
  local there=$1
  while [ ! -e "$there" ]; do there=$(dirname "$there"); done
  [ -d "$there" ] || die "cannot install into $1: $there is not a folder"
  [ -w "$there" ] || die "cannot install into $1: $there is not writable for $(id -un); choose another PREFIX, or 'sudo ./run install $1' after './run build'"
}

word_install() {
  [ $# = 1 ] && [ -n "${1:-}" ] || die "usage: ./run install PREFIX"
  case $1 in -*) die "usage: ./run install PREFIX (a folder, not '$1')" ;; esac
  local prefix=$1
  case $prefix in /*) ;; *) prefix=$caller_dir/$prefix ;; esac
  check_prefix "$prefix"
  ensure_packages
  configure_and_build product
  install_to "$prefix" || die "could not install into $prefix"
  say "installed into $prefix: $prefix/bin/sonde, $prefix/bin/sondecc"
}

word_clean() {
  no_arguments clean "$@"
  rm -rf build dist dist.new out || die "something in build/, dist/ or out/ is not yours (built as root before? then 'sudo ./run clean')"
  say "build/, dist/ and out/ are gone"
}
