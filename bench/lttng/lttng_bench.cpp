// SPDX-License-Identifier: Apache-2.0
// The same event as an API record, written by LTTng-UST: two readings of the
// clock and a tracepoint with the record's eight fields. Run it through
// bench/lttng/run, which starts a tracing session; without one the tracepoint
// is off.
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include <benchmark/benchmark.h>
#include <cupti.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "core/fake_driver.h"
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

// The whole call of activity_bench's callRecorded, with LTTng-UST in this
// library's place: a reading of the clock at the entry, and at the exit another
// one and the tracepoint.
void entered(SondeApiCall* call) { call->enterTime = sonde::platform::nowNs(); }
void left(SondeApiCall* call) {
  const uint64_t end = sonde::platform::nowNs();
  static const auto process = static_cast<uint32_t>(getpid());
  static thread_local const auto thread = static_cast<uint32_t>(pthread_self());
  lttng_ust_tracepoint(sonde_bench, call, 5, call->cbid, call->enterTime, end, process, thread, call->correlationId,
                       *static_cast<const uint32_t*>(call->returnValue));
}
const fake::Hearer tracer = {entered, left};
std::atomic<const fake::Hearer*> listener{&tracer};

void callTraced(benchmark::State& state) {
  for (auto _ : state) fake::callHeardBy(listener, SONDE_DOMAIN_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
}
BENCHMARK(callTraced)->ThreadRange(1, 16)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  // Shows whether the session listens.
  const bool on = lttng_ust_tracepoint_enabled(sonde_bench, call);
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("tracepoint", on ? "recorded by a session" : "OFF: no session");
  benchmark::RunSpecifiedBenchmarks();
  return on ? 0 : 1;
}
