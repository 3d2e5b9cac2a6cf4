// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/cost_model.h"

#include <algorithm>

#include "softgpu/exec/counters.h"

namespace sonde::softgpu::exec {

namespace {

// Start of a block to its first instruction, and the last store on its way.
constexpr uint64_t kFillAndDrain = 600;
// One trip to device memory; the rest of them overlap.
constexpr uint64_t kMemoryLatencyNs = 500;
constexpr int kBusWidthAttribute = 37;  // CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, bits
constexpr uint64_t kSpecialPerCycle = 16;

uint64_t divideUp(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// Thread instructions of a kind that an SM completes each cycle, from a fact
// in operations that counts a fused multiply-add twice.
uint64_t rate(const model::DeviceModel& d, const char* fact, uint64_t otherwise) {
  const auto it = d.facts.find(fact);
  return it == d.facts.end() || it->second < 2 ? otherwise : static_cast<uint64_t>(it->second) / 2;
}

}  // namespace

uint64_t applyCostModel(std::vector<uint64_t>& raw, const model::DeviceModel& device, const CostInput& input) {
  using enum RawCounter;
  const uint64_t schedulers = std::max(1u, device.schedulersPerSm);
  const uint64_t clock = input.smClockMHz ? input.smClockMHz : std::max(1u, device.baseClockMHz);
  const auto bus = device.attributes.find(kBusWidthAttribute);
  // Bytes a microsecond: two transfers a clock.
  const uint64_t bandwidth =
      std::max<uint64_t>(1, uint64_t{device.memoryClockMHz} * 2 *
                                static_cast<uint64_t>(bus == device.attributes.end() ? 1024 : bus->second) / 8);
  const uint64_t single = rate(device, "flop_sp_per_cycle", 128), doubles = rate(device, "flop_dp_per_cycle", 64);
  auto sm = [&](uint32_t i) { return raw.data() + size_t{i} * kRawCounterCount; };
  auto at = [](uint64_t* c, RawCounter counter) -> uint64_t& { return c[static_cast<uint32_t>(counter)]; };

  uint64_t busy = 0;
  for (uint32_t i = 0; i < input.smCount; ++i) busy += at(sm(i), warps_launched) != 0;
  uint64_t longest = 0;
  for (uint32_t i = 0; i < input.smCount; ++i) {
    uint64_t* c = sm(i);
    if (at(c, warps_launched) == 0) continue;
    // The load-store unit passes one line or one row of banks a cycle; what an
    // instruction needs beyond its first pass is issued again.
    const uint64_t requests = at(c, global_load_requests) + at(c, global_store_requests);
    const uint64_t lines = at(c, global_load_lines) + at(c, global_store_lines);
    const uint64_t atomics = at(c, global_atom_sectors) + at(c, global_red_sectors);
    const uint64_t local = at(c, local_load_sectors) + at(c, local_store_sectors);
    if (input.finished)
      at(c, inst_issued) += (lines > requests ? lines - requests : 0) + at(c, shared_load_bank_conflicts) +
                            at(c, shared_store_bank_conflicts);
    const uint64_t issue = divideUp(at(c, inst_issued), schedulers);
    const uint64_t pipes = std::max({divideUp(at(c, inst_fp_32), single), divideUp(at(c, inst_fp_64), doubles),
                                     divideUp(at(c, flop_sp_special), kSpecialPerCycle)});
    const uint64_t loadStore =
        lines + atomics + at(c, shared_load_wavefronts) + at(c, shared_store_wavefronts) + divideUp(local, 4);
    // The SMs that have work share the memory's bandwidth. Time, not cycles:
    // a faster SM clock waits for more of its cycles.
    const uint64_t bytes = 32 * (at(c, global_load_sectors) + at(c, global_store_sectors) + atomics + local);
    const uint64_t transferNs = bytes * busy * 1000 / bandwidth;
    const uint64_t latency = bytes ? kMemoryLatencyNs * clock / 1000 : 0;
    const uint64_t active = std::max({issue, pipes, loadStore, transferNs * clock / 1000}) + latency + kFillAndDrain;
    const uint64_t resident = std::min<uint64_t>(std::max(1u, input.residentWarps), at(c, warps_launched));
    at(c, active_cycles) += active;
    at(c, active_warps) += active * resident;
    longest = std::max(longest, active);
  }
  for (uint32_t i = 0; i < input.smCount; ++i) at(sm(i), elapsed_cycles) += longest;
  return longest;
}

}  // namespace sonde::softgpu::exec
