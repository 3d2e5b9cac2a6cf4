#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the CUPTI samples that come with the CUDA toolkit, unchanged, against this project's headers and library, runs
# each with this library and with the vendor's, and compares what they print. Called by tools/on-gpu --samples.
#
#   samples.sh SAMPLES OURS VENDOR OUT
#
#   SAMPLES  the toolkit's extras/CUPTI/samples
#   OURS     a directory with this project's libcupti.so.13
#   VENDOR   a directory with the vendor's, or one with the outputs of an earlier run (NAME.txt)
#   OUT      results
# CUPTI_SAMPLES_NVCC adds flags for nvcc, such as -cudart=shared.
set -u
samples=$1 ours=$2 vendor=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
programs="activity_trace_async callback_timestamp cupti_correlation cupti_external_correlation cupti_nvtx
cuda_graphs_trace cuda_memory_trace unified_memory"
injected="cupti_finalize cupti_trace_injection"
mkdir -p "$out/ours" "$out/vendor"
flags="-std=c++17 -I$root/include -I$samples/common ${CUPTI_SAMPLES_NVCC:--arch=native}"
for s in $programs $injected; do
  source=$(ls "$samples/$s"/*.cu "$samples/$s"/*.cpp 2>/dev/null | head -1)
  [ -n "$source" ] || { echo "$s: not in $samples"; continue; }
  kind='' target=$out/$s
  case " $injected " in *" $s "*) kind="-shared -Xcompiler -fPIC" target=$out/lib$s.so;; esac
  # shellcheck disable=SC2086
  "$nvcc" $flags $kind "$source" -o "$target" -L"$ours" -l:libcupti.so.13 -lcuda >"$out/$s.build" 2>&1 &
done
wait
status=0
run() { # who, library directory, name
  local who=$1 dir=$2 s=$3 program=$out/$3 set=''
  case $s in
    cupti_nvtx) set="NVTX_INJECTION64_PATH=$dir/libcupti.so.13";;
    cupti_finalize | cupti_trace_injection)
      program=$out/callback_timestamp_app
      set="CUDA_INJECTION64_PATH=$out/lib$s.so";;
  esac
  # shellcheck disable=SC2086
  (cd "$out" && env $set LD_LIBRARY_PATH="$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" timeout 100 "$program") \
    >"$out/$who/$s.txt" 2>"$out/$who/$s.err" </dev/null
}
# The injected libraries need a program that knows nothing of CUPTI.
"$nvcc" -std=c++17 ${CUPTI_SAMPLES_NVCC:--arch=native} "$here/plain.cu" -o "$out/callback_timestamp_app" >"$out/plain.build" 2>&1
for s in $programs $injected; do
  target=$out/$s
  case " $injected " in *" $s "*) target=$out/lib$s.so;; esac
  if [ ! -e "$target" ]; then echo "$s: DOES NOT BUILD"; sed 's/^/  /' "$out/$s.build" | head -5; status=1; continue; fi
  run ours "$ours" "$s"; mine=$?
  if [ -e "$vendor/$s.txt" ]; then
    cp "$vendor/$s.txt" "$out/vendor/$s.txt"; theirs=0
  else
    run vendor "$vendor" "$s"; theirs=$?
  fi
  if report=$(python3 "$here/compare_samples.py" "$out/ours/$s.txt" "$out/vendor/$s.txt") && [ $mine = $theirs ]; then
    echo "$s: the same ($(wc -l <"$out/ours/$s.txt") lines)"
  else
    echo "$s: DIFFERS (exits $mine and $theirs)"; printf '%s\n' "$report" | grep -v ' the same$'; status=1
  fi
done
exit $status
