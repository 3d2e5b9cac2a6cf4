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

word_sanitize() {
  local presets=${1:-"asan-ubsan tsan"}
  ensure_packages
  local p
  for p in $presets; do
    configure_and_build "$p"
    run_tests "$p"
  done
}

word_fuzz() {
  local seconds=${1:-60} target
  ensure_packages
  configure_and_build fuzz
  mkdir -p out/fuzz
  for target in build/fuzz/fuzz/*_fuzzer; do
    [ -x "$target" ] || continue
    say "fuzzing $(basename "$target") for $seconds s"
    mkdir -p "out/fuzz/$(basename "$target")"
    local seeds
    seeds=fuzz/corpus/$(basename "$target" _fuzzer)
    [ -d "$seeds" ] || seeds=
    # shellcheck disable=SC2086
    "$target" -max_total_time="$seconds" -rss_limit_mb=4096 -timeout=20 -print_final_stats=0 \
      -artifact_prefix=out/fuzz/ "out/fuzz/$(basename "$target")" $seeds || die "$(basename "$target") found something: see out/fuzz"
  done
}

word_bench() {
  ensure_packages
  configure_and_build release
  local b
  for b in build/release/bench/*_bench; do
    [ -x "$b" ] || continue
    say "== $(basename "$b")"
    "$b" "$@"
  done
}
