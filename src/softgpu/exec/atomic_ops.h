// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

// Of sonde_redux: the operation with .NaN.
inline constexpr uint32_t kReduxNan = 0x100;

// What an atom or red instruction does; part of the code's contract with the
// helpers (kAbiVersion).
enum class AtomicOp : uint8_t { add, min, max, bitAnd, bitOr, bitXor, exch, cas, inc, dec };

enum class MbarrierOp : uint8_t { init, arrive, arriveExpect, arriveDrop, expect, complete, testState, testParity };

}  // namespace sonde::softgpu::exec
