// SPDX-License-Identifier: Apache-2.0
// Cost of an API record. The stand-in driver's shortest call is measured alone
// (nothing enabled: one load and branch), with a listener that does nothing
// (the driver's own part), with a record, and with a callback; two readings of
// the clock, the physical floor, are measured beside it. A record costs
// callRecorded - callUnheard.
#include <benchmark/benchmark.h>
#include <cupti.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/fake_driver.h"
#include "platform/clock.h"

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *size = 8u << 20;
  *buffer = static_cast<uint8_t*>(std::malloc(*size));
  *maxNumRecords = 0;
}
void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) { std::free(buffer); }
void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

void twoClockReads(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(sonde::platform::nowNs());
    benchmark::DoNotOptimize(sonde::platform::nowNs());
  }
}
BENCHMARK(twoClockReads);

void callDisabled(benchmark::State& state) {
  for (auto _ : state) fake::plainCall(SONDE_DOMAIN_RUNTIME, kMalloc);
}
BENCHMARK(callDisabled);

const fake::Hearer deaf = {[](SondeApiCall*) {}, [](SondeApiCall*) {}};
std::atomic<const fake::Hearer*> nobody{&deaf};

void callUnheard(benchmark::State& state) {
  for (auto _ : state) fake::callHeardBy(nobody, SONDE_DOMAIN_RUNTIME, kMalloc);
}
BENCHMARK(callUnheard)->ThreadRange(1, 16)->UseRealTime();

// The call itself, its correlation id and structure, with nobody behind it.
void enableRecords(const benchmark::State&) {
  cuptiActivityRegisterCallbacks(requested, completed);
  cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
}
void finalize(const benchmark::State&) { cuptiFinalize(); }

void callRecorded(benchmark::State& state) {
  for (auto _ : state) fake::plainCall(SONDE_DOMAIN_RUNTIME, kMalloc);
}
BENCHMARK(callRecorded)->Setup(enableRecords)->Teardown(finalize)->ThreadRange(1, 16)->UseRealTime();

void enableCallback(const benchmark::State&) {
  CUpti_SubscriberHandle subscriber;
  cuptiSubscribe(&subscriber, called, nullptr);
  cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, kMalloc);
}
void callWithCallback(benchmark::State& state) {
  for (auto _ : state) fake::plainCall(SONDE_DOMAIN_RUNTIME, kMalloc);
}
BENCHMARK(callWithCallback)->Setup(enableCallback)->Teardown(finalize);

// Until the records are in the client's hands.
void callRecordedAndDelivered(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) fake::plainCall(SONDE_DOMAIN_RUNTIME, kMalloc);
    cuptiActivityFlushAll(0);
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(callRecordedAndDelivered)->Setup(enableRecords)->Teardown(finalize);

}  // namespace

BENCHMARK_MAIN();
