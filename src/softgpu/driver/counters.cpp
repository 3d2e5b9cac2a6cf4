// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/counters.h"

#include <algorithm>

#include "platform/tools_api.h"

namespace sonde::softgpu::driver {

using exec::CountLevel;
using exec::kRawCounterCount;
using exec::RawCounter;

namespace {

const char* const kNames[] = {
#define SONDE_COUNTER_NAME(name) #name,
    SONDE_RAW_COUNTERS(SONDE_COUNTER_NAME)
#undef SONDE_COUNTER_NAME
};

void addTo(std::vector<uint64_t>& totals, const exec::CounterValues& values) {
  if (totals.size() < values.values.size()) totals.resize(values.values.size());
  for (size_t i = 0; i < values.values.size(); i++) totals[i] += values.values[i];
}

// Totals with what the running kernels have counted so far. Under the mutex.
std::vector<uint64_t> current(const CounterState& state) {
  std::vector<uint64_t> totals = state.totals;
  for (const exec::CounterMonitor* m : state.running) addTo(totals, m->read());
  return totals;
}

}  // namespace

const char* counterName(uint32_t counter) { return counter < kRawCounterCount ? kNames[counter] : nullptr; }

CountLevel levelOf(uint32_t counter) {
  const auto c = static_cast<RawCounter>(counter);
  if (c >= RawCounter::l1_global_load_hit && c <= RawCounter::dram_write_sectors) return CountLevel::caches;
  // The cost model needs the memory traffic.
  if (c == RawCounter::inst_issued || c == RawCounter::active_cycles || c == RawCounter::active_warps ||
      c == RawCounter::elapsed_cycles)
    return CountLevel::requests;
  if (c >= RawCounter::global_load_requests && c < RawCounter::l1_global_load_hit) return CountLevel::requests;
  return CountLevel::instructions;
}

uint32_t counterInstances(const model::DeviceModel& model, uint32_t counter) {
  const auto c = static_cast<RawCounter>(counter);
  const bool slices = c >= RawCounter::l2_read_sector_queries && c <= RawCounter::dram_write_sectors;
  return slices ? std::max(1u, model.l2.slices) : model.smCount;
}

int32_t configureCounters(Context& context, uint32_t mode, const uint32_t* counters, uint32_t count) {
  if (mode > SONDE_COUNTER_MODE_CONTINUOUS || (count && !counters)) return CUDA_ERROR_INVALID_VALUE;
  if (mode == SONDE_COUNTER_MODE_OFF) count = 0;
  CountLevel level = CountLevel::off;
  std::vector<bool> wanted(kRawCounterCount, false);
  for (uint32_t i = 0; i < count; i++) {
    if (counters[i] >= kRawCounterCount) return CUDA_ERROR_INVALID_VALUE;
    level = std::max(level, levelOf(counters[i]));
    wanted[counters[i]] = true;
  }
  CounterState& state = *context.counters;
  std::lock_guard lock(state.mutex);
  // What stays keeps its total; what is new begins at zero.
  if (state.wanted.size() == wanted.size())
    for (uint32_t c = 0; c < kRawCounterCount; c++) {
      if (!wanted[c] || state.wanted[c]) continue;
      for (auto* values : {&state.totals, &state.atKernelStart})
        for (size_t at = c; at < values->size(); at += kRawCounterCount) (*values)[at] = 0;
    }
  state.mode = mode;
  state.wanted = std::move(wanted);
  context.countLevel.store(static_cast<uint8_t>(level), std::memory_order_release);
  return CUDA_SUCCESS;
}

int32_t readCounters(Context& context, const uint32_t* counters, uint32_t count, uint64_t* totals, uint64_t* atStart,
                     uint32_t* instances, uint64_t* kernels) {
  if (!counters || count == 0 || !instances) return CUDA_ERROR_INVALID_VALUE;
  const auto& model = context.device()->model;
  CounterState& state = *context.counters;
  std::lock_guard lock(state.mutex);
  for (uint32_t i = 0; i < count; i++)
    if (counters[i] >= kRawCounterCount || state.wanted.empty() || !state.wanted[counters[i]])
      return CUDA_ERROR_NOT_FOUND;
  const uint32_t have = counterInstances(model, counters[0]);
  for (uint32_t i = 1; i < count; i++)
    if (counterInstances(model, counters[i]) != have) return CUDA_ERROR_INVALID_VALUE;
  if (*instances < have) {
    *instances = have;
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::vector<uint64_t> now = totals ? current(state) : std::vector<uint64_t>();
  auto value = [&](const std::vector<uint64_t>& v, uint32_t instance, uint32_t counter) {
    const size_t at = size_t{instance} * kRawCounterCount + counter;
    return at < v.size() ? v[at] : 0;
  };
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < have; k++) {
      if (totals) totals[size_t{i} * have + k] = value(now, k, counters[i]);
      if (atStart) atStart[size_t{i} * have + k] = value(state.atKernelStart, k, counters[i]);
    }
  *instances = have;
  if (kernels) *kernels = state.kernels.load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

void countKernelStart(Context& context, const exec::CounterMonitor& monitor) {
  CounterState& state = *context.counters;
  std::lock_guard lock(state.mutex);
  state.kernels.fetch_add(1, std::memory_order_relaxed);
  state.atKernelStart = current(state);
  state.running.push_back(&monitor);
}

void addCounters(Context& context, const exec::CounterValues& values, const exec::CounterMonitor& monitor) {
  CounterState& state = *context.counters;
  std::lock_guard lock(state.mutex);
  std::erase(state.running, &monitor);
  addTo(state.totals, values);
}

}  // namespace sonde::softgpu::driver
