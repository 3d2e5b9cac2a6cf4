# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Builds some of the examples with sondecc and profiles them.

demo_programs="matmul reduction streams_overlap histogram conjugate_gradient"

# Shows a command as one can type it, and runs it.
show_and_run() {
  say "\$ $*"
  "$@"
}

word_demo() {
  no_arguments demo "$@"
  word_build
  mkdir -p out || die "cannot write to $PWD/out"
  local p
  for p in $demo_programs; do
    say ""
    say "== $p"
    show_and_run dist/bin/sondecc -O3 "examples/$p.cu" -o "out/$p" || die "sondecc could not compile examples/$p.cu"
    show_and_run dist/bin/sonde run -f -o "out/$p.pftrace" "out/$p" || die "$p failed under sonde"
  done
  say ""
  say "== counters of matmul's kernel, exact and the same on every run"
  show_and_run dist/bin/sonde run -e warps_launched,inst_executed,divergent_branch -m gld_efficiency,branch_efficiency out/matmul ||
    die "matmul failed under sonde"
  say ""
  say "Traces: $PWD/out/*.pftrace. Open https://ui.perfetto.dev in a browser, choose \"Open trace file\" (it stays on your"
  say "machine): a row for each device, context, stream and thread, and arrows from a launch to its kernel."
  say "Next: dist/bin/sonde run --print-gpu-trace out/matmul   every kernel and copy in order"
  say "      dist/bin/sonde run --help                         all that it can do; README.md: programs of your own"
}
