// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sonde::softgpu::jit {

// The "address" of a PTX function: a token that the call checks.
inline constexpr uint64_t functionToken(uint32_t function) { return 0x10000u + uint64_t{function} * 16; }

}  // namespace sonde::softgpu::jit
