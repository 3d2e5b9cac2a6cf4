// SPDX-License-Identifier: Apache-2.0
//
// Counting for the tools interface: what is configured for a context, and the
// values so far.
#pragma once

#include <mutex>
#include <vector>

#include "softgpu/driver/driver.h"
#include "softgpu/exec/counters.h"
#include "softgpu/exec/engine.h"

namespace sonde::softgpu::driver {

struct CounterState {
  std::mutex mutex;
  uint32_t mode = 0;                                 // SondeCounterMode
  std::vector<bool> wanted;                          // by raw counter
  std::vector<uint64_t> totals, atKernelStart;       // [instance * kRawCounterCount + counter]
  std::vector<const exec::CounterMonitor*> running;  // kernels that count now; their values are not in totals
  std::atomic<uint64_t> kernels{0};                  // started since the context was made
  // In kernel mode one kernel runs at a time, so that values belong to it.
  std::mutex oneKernel;
};

// The level of counting that a raw counter needs.
exec::CountLevel levelOf(uint32_t counter);
const char* counterName(uint32_t counter);  // nullptr: past the last
uint32_t counterInstances(const model::DeviceModel& model, uint32_t counter);

// As SondePlatform says.
int32_t configureCounters(Context& context, uint32_t mode, const uint32_t* counters, uint32_t count);
int32_t readCounters(Context& context, const uint32_t* counters, uint32_t count, uint64_t* totals, uint64_t* atStart,
                     uint32_t* instances, uint64_t* kernels);
// Around a kernel that counts.
void countKernelStart(Context& context, const exec::CounterMonitor& monitor);
void addCounters(Context& context, const exec::CounterValues& values, const exec::CounterMonitor& monitor);

}  // namespace sonde::softgpu::driver
