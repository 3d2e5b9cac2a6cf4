// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/cost_model.h"

#include <algorithm>

#include "softgpu/exec/counters.h"

namespace sonde::softgpu::exec {

namespace {
// Start of a block to its first instruction, and the last store on its way.
constexpr uint64_t kFillAndDrain = 600;
}  // namespace

uint64_t applyCostModel(std::vector<uint64_t>& raw, uint32_t smCount, const model::DeviceModel& device, uint32_t residentWarps) {
  using enum RawCounter;
  const uint64_t schedulers = std::max(1u, device.schedulersPerSm);
  uint64_t longest = 0;
  for (uint32_t sm = 0; sm < smCount; ++sm) {
    uint64_t* c = raw.data() + size_t{sm} * kRawCounterCount;
    auto at = [&](RawCounter counter) -> uint64_t& { return c[static_cast<uint32_t>(counter)]; };
    if (at(warps_launched) == 0) continue;
    // The load-store unit passes one line or one row of banks a cycle; what an
    // instruction needs beyond its first pass is issued again.
    const uint64_t requests = at(global_load_requests) + at(global_store_requests);
    const uint64_t lines = at(global_load_lines) + at(global_store_lines);
    const uint64_t atomics = at(global_atom_sectors) + at(global_red_sectors);
    const uint64_t replays = (lines > requests ? lines - requests : 0) + at(shared_load_bank_conflicts) + at(shared_store_bank_conflicts);
    at(inst_issued) += replays;
    const uint64_t issue = (at(inst_issued) + schedulers - 1) / schedulers;
    const uint64_t memory = lines + atomics + at(shared_load_wavefronts) + at(shared_store_wavefronts) +
                            (at(local_load_sectors) + at(local_store_sectors) + 3) / 4;
    const uint64_t active = std::max(issue, memory) + kFillAndDrain;
    const uint64_t resident = std::min<uint64_t>(std::max(1u, residentWarps), at(warps_launched));
    at(active_cycles) += active;
    at(active_warps) += active * resident;
    longest = std::max(longest, active);
  }
  for (uint32_t sm = 0; sm < smCount; ++sm) raw[size_t{sm} * kRawCounterCount + static_cast<uint32_t>(elapsed_cycles)] += longest;
  return longest;
}

}  // namespace sonde::softgpu::exec
