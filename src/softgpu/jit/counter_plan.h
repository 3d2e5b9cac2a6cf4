// SPDX-License-Identifier: Apache-2.0
//
// Where a kernel's counting variant counts and what the numbers mean. The code
// adds to slots: for each basic block how often warps ran it and with how many
// lanes, for each predicated instruction the lanes that really ran it, and the
// memory counters directly. What one run of a block is worth in each raw
// counter is known when the code is made, so the sums are folded after the grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "softgpu/exec/counters.h"

namespace sonde::softgpu::jit {

struct CounterTerm {
  uint32_t slot = 0;
  exec::RawCounter counter = exec::RawCounter::count_;
  int64_t weight = 0;
};

// Source-level variant: where one instruction is counted.
struct CounterSite {
  uint32_t function = 0, instruction = 0;  // in the module, in the function's body
  uint32_t warps = 0, threads = 0;         // slots: its executions
  uint32_t onWarps = 0, onThreads = 0;     // slots: those where its guard held in a lane; lanes in which it held
  uint32_t diverged = 0;                   // slot of a branch; 0: none
  uint32_t access = 0;                     // first of the slots of a memory access (AccessSlot); 0: none
  uint32_t what = 0;  // access: kind (0 load, 1 store, 2 atom, 3 red, 4 copy), + 8: not cached in L1
};

// What a memory access counts, from CounterSite::access on. An access that names
// its space has only the transactions of that space.
enum AccessSlot : uint32_t {
  kGlobalTransactions,  // sectors
  kGlobalIdeal,         // sectors that the bytes asked for would fill
  kGlobalRequests,
  kGlobalThreads,
  kSharedTransactions,  // passes over the banks
  kSharedIdeal,         // passes without bank conflicts
  kSharedRequests,
  kSharedThreads,
  kAccessSlots,
};

inline constexpr uint32_t kCopySite = 4;  // in CounterSite::what: from global to shared memory

struct CounterPlan {
  // The first kRawCounterCount slots are the raw counters themselves.
  uint32_t slots = exec::kRawCounterCount;
  std::vector<CounterTerm> terms;
  std::vector<CounterSite> sites;  // source-level variant only

  uint32_t newSlot() { return newSlots(1); }
  uint32_t newSlots(uint32_t count) {
    slots += count;
    return slots - count;
  }
  void add(uint32_t slot, exec::RawCounter counter, int64_t weight) {
    if (weight) terms.push_back({slot, counter, weight});
  }
  // Adds what `values` (one value for each slot) mean to `raw`. The kernel may
  // be running.
  void fold(const uint64_t* values, uint64_t* raw) const {
    auto value = [&](uint32_t slot) { return __atomic_load_n(values + slot, __ATOMIC_RELAXED); };
    for (uint32_t i = 0; i < exec::kRawCounterCount; ++i) raw[i] += value(i);
    for (const CounterTerm& t : terms)
      raw[static_cast<uint32_t>(t.counter)] += value(t.slot) * static_cast<uint64_t>(t.weight);
  }
  std::string serialize() const;
  static bool parse(const std::string& text, CounterPlan& plan);
};

}  // namespace sonde::softgpu::jit
