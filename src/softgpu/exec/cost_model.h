// SPDX-License-Identifier: Apache-2.0
//
// Cycles from counts: a plain throughput model, so that cycle counters are
// deterministic and move the right way. It knows no latencies but one.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/model/device_model.h"

namespace sonde::softgpu::exec {

// `raw`: the counters of one grid, [sm * kRawCounterCount + counter]. Fills in
// inst_issued's replays, active_cycles, active_warps and elapsed_cycles and
// returns the cycles of the grid. residentWarps: what fits on one SM at once.
uint64_t applyCostModel(std::vector<uint64_t>& raw, uint32_t smCount, const model::DeviceModel& device, uint32_t residentWarps);

}  // namespace sonde::softgpu::exec
