// SPDX-License-Identifier: Apache-2.0
// The same event as an API record, written by LTTng-UST: two readings of the
// clock and a tracepoint with the record's eight fields. Run it through
// bench/lttng/run, which starts a tracing session; without one the tracepoint
// is off.
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include <benchmark/benchmark.h>
#include <pthread.h>
#include <unistd.h>

#include "lttng/call_tracepoint.h"
#include "platform/clock.h"

namespace {

void twoClockReads(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(sonde::platform::nowNs());
    benchmark::DoNotOptimize(sonde::platform::nowNs());
  }
}
BENCHMARK(twoClockReads);

void callTracepoint(benchmark::State& state) {
  const auto process = static_cast<uint32_t>(getpid());
  const auto thread = static_cast<uint32_t>(pthread_self());
  uint32_t id = 0;
  for (auto _ : state) {
    const uint64_t start = sonde::platform::nowNs();
    const uint64_t end = sonde::platform::nowNs();
    lttng_ust_tracepoint(sonde_bench, call, 5, 20, start, end, process, thread, ++id, 0);
  }
}
BENCHMARK(callTracepoint)->ThreadRange(1, 16)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  // Shows whether the session listens.
  const bool on = lttng_ust_tracepoint_enabled(sonde_bench, call);
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("tracepoint", on ? "recorded by a session" : "OFF: no session");
  benchmark::RunSpecifiedBenchmarks();
  return on ? 0 : 1;
}
