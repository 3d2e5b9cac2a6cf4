// SPDX-License-Identifier: Apache-2.0
//
// Cycles from counts: a throughput model, so that cycle counters are
// deterministic at a given clock and move the right way. docs/COUNTERS.md
// states it.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/model/device_model.h"

namespace sonde::softgpu::exec {

struct CostInput {
  uint32_t smCount = 1;
  uint32_t residentWarps = 1;  // what fits on one SM at once
  uint64_t smClockMHz = 0;     // 0: the device's base clock
  // The grid has ended. While it runs, replays are left out: what is reported
  // must not exceed what comes out in the end.
  bool finished = true;
};

// `raw`: the counters of one grid, [sm * kRawCounterCount + counter], at least
// at CountLevel::requests (without memory requests only instructions cost).
// Fills in inst_issued's replays, active_cycles, active_warps and
// elapsed_cycles and returns the cycles of the grid.
uint64_t applyCostModel(std::vector<uint64_t>& raw, const model::DeviceModel& device, const CostInput& input);

}  // namespace sonde::softgpu::exec
