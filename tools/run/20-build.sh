# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

word_build() {
  ensure_packages
  configure_and_build product
  rm -rf dist.new
  cmake --install build/product --prefix "$PWD/dist.new" >/dev/null || die "installing into dist/ failed"
  # Replaced whole, so that nothing stale stays behind.
  rm -rf dist && mv dist.new dist
  say "dist/ is ready: dist/bin/sonde, dist/bin/sondecc"
}

word_install() {
  [ $# = 1 ] || die "usage: ./run install PREFIX"
  ensure_packages
  configure_and_build product
  cmake --install build/product --prefix "$1" >/dev/null || die "could not install into $1"
  say "installed into $1"
}

word_clean() { rm -rf build dist dist.new out; say "build/, dist/ and out/ are gone"; }
