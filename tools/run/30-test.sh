# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# run_tests PRESET [ctest options…]
run_tests() {
  local preset=$1; shift
  ctest --preset "$preset" -j "$(nproc)" --no-tests=error "$@"
}

word_test() {
  ensure_packages
  configure_and_build dev
  run_tests dev "$@"
}

# word_sanitize [PRESET [ctest options…]]
word_sanitize() {
  local presets="asan-ubsan tsan" p failed=0
  case ${1:-} in
    "") ;;
    asan-ubsan | tsan) presets=$1; shift ;;
    *) die "usage: ./run sanitize [asan-ubsan|tsan [ctest options]]" ;;
  esac
  ensure_packages
  for p in $presets; do
    configure_and_build "$p"
    run_tests "$p" "$@" || failed=1  # the other preset still tells its part
  done
  return $failed
}

# word_fuzz [SECONDS [NAME…]]: what is found lies in out/fuzz.
word_fuzz() {
  local seconds=${1:-60} target name source
  shift || true
  case $seconds in *[!0-9]* | "") die "usage: ./run fuzz [SECONDS [FUZZER…]]" ;; esac
  ensure_packages
  configure_and_build fuzz
  mkdir -p out/fuzz
  local found=0
  for target in build/fuzz/fuzz/*_fuzzer; do
    name=$(basename "$target")
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    found=1
    source=$(dirname "$(ls fuzz/*/"$name".cpp)")
    local options=(-max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -max_len=16384 -artifact_prefix="out/fuzz/$name-")
    [ ! -f "$source/$name.dict" ] || options+=(-dict="$source/$name.dict")
    mkdir -p "out/fuzz/$name"
    say "fuzzing $name for $seconds s"
    "$target" "${options[@]}" "out/fuzz/$name" "$source/corpus/$name" >"out/fuzz/$name.log" 2>&1 ||
      { tail -n 40 "out/fuzz/$name.log" >&2; die "$name found something: the input is out/fuzz/$name-…; when it is fixed, add it to $source/corpus/$name"; }
    tail -n 1 "out/fuzz/$name.log" >&2
  done
  [ $found = 1 ] || die "no such fuzzer: $*"
  say "nothing was found"
}

word_bench() {
  ensure_packages
  # counting_cost.py measures the kernels of the examples.
  configure_and_build release bench/all examples/all
  local b
  for b in build/release/bench/*_bench build/release/bench/bench_exec; do
    [ -x "$b" ] || continue
    say "== $(basename "$b")"
    "$b" "$@"
  done
  say "== counting_cost.py"
  bench/counting_cost.py build/release
}
