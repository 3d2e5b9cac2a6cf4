// SPDX-License-Identifier: Apache-2.0
//
// How many different places the lanes of a warp address.
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

struct Distinct {
  uint32_t addresses, sectors, lines;  // sectors of 32 bytes, lines of 128
};

// n: 1 to 32.
Distinct countDistinct(const uint64_t* address, uint32_t n);

}  // namespace sonde::softgpu::exec
