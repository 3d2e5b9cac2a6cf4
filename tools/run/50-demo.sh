# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Builds some of the examples with sondecc and profiles them.

demo_programs="matmul reduction streams_overlap histogram conjugate_gradient"

word_demo() {
  no_arguments demo "$@"
  word_build
  mkdir -p out
  local p src
  for p in $demo_programs; do
    src=examples/$p.cu
    [ -f "$src" ] || continue
    say ""
    say "== $p: sondecc $src -o out/$p && sonde run ./out/$p"
    dist/bin/sondecc -O3 "$src" -o "out/$p" || die "sondecc could not compile $src"
    dist/bin/sonde run -f -o "out/$p.pftrace" --export perfetto -- "./out/$p" || die "$p failed under sonde"
  done
  say ""
  say "Traces: out/*.pftrace. Open one at https://ui.perfetto.dev (\"Open trace file\"; it stays on your machine),"
  say "or list every kernel launch here:  dist/bin/sonde run --print-gpu-trace ./out/matmul"
}
