# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

usage() {
  cat <<'TXT'
usage: ./run WORD

  demo              install what is missing, build, profile example programs on the software GPU
  test [ctest …]    build and run every test
  build             leave an installed tree in dist/
  install PREFIX    the same elsewhere
  bench [options]   build and run the benchmarks (Google Benchmark options)
  lint              style checks, stale generated files
  sanitize [PRESET] every test under AddressSanitizer and UBSan (asan-ubsan) and under ThreadSanitizer (tsan)
  fuzz [SECONDS]    each fuzzer for so long (60); names of fuzzers may follow
  deps              only install missing packages
  clean             remove build/, dist/, out/
TXT
}

main() {
  local word=${1:-}
  case $word in
    "" | help | -h | --help) usage; exit 0 ;;
  esac
  shift
  declare -F "word_$word" >/dev/null || { usage >&2; die "no such word: $word (the words are above)"; }
  case ${1:-} in
    help | -h | --help) usage; exit 0 ;;
  esac
  "word_$word" "$@"
}
