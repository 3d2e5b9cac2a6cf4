// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

// An mbarrier in memory: pending arrivals (20 bits), arrivals of a phase (20),
// bytes still expected (22, two's complement), unused, phase (bit 63).
struct Mbarrier {
  static constexpr uint64_t kCount = (1u << 20) - 1;
  uint64_t pending, expected;
  int64_t bytes;
  uint64_t phase;
  explicit Mbarrier(uint64_t v)
      : pending(v & kCount), expected(v >> 20 & kCount), bytes(static_cast<int64_t>(v << 2) >> 42), phase(v >> 63) {}
  uint64_t pack() const {
    return pending | expected << 20 | (static_cast<uint64_t>(bytes) & 0x3fffff) << 40 | phase << 63;
  }
  void settle() {
    if (pending == 0 && bytes == 0) {
      phase ^= 1;
      pending = expected;
    }
  }
};

}  // namespace sonde::softgpu::exec
