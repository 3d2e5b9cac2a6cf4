// SPDX-License-Identifier: Apache-2.0
//
// The checks of check_options.h, while kernels run. Findings go to stderr, one
// line each, every pair of instructions once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "softgpu/exec/check_options.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/compiler.h"

namespace sonde::softgpu::exec {

// A block's shared memory: who touched each byte last, and when. "When" are
// numbers that barriers raise, so that what an earlier block did never counts.
struct SharedShadow {
  struct Byte {
    uint64_t writeAt = 0, readAt = 0;        // positions
    uint32_t writeEpoch = 0, readEpoch = 0;  // of the block
    uint32_t writeWarpEpoch = 0, readWarpEpoch = 0;
    uint16_t writer = 0, reader = 0;  // thread + 1; 0: nobody
    bool atomic = false;              // the write
  };
  std::vector<Byte> bytes;
  uint32_t epoch = 1;
  uint32_t warpEpoch[32] = {};

  void begin(uint64_t sharedBytes);
  void barrier() { ++epoch; }
};

// The host, a copy or a set wrote device memory; `address` as kernels see it.
void noteWritten(uint64_t address, uint64_t bytes);

std::span<const jit::RuntimeSymbol> checkHelpers();  // "sonde_check", "sonde_check_barrier", "sonde_check_syncwarp"

}  // namespace sonde::softgpu::exec
