// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/distinct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace sonde::softgpu::exec {
namespace {

TEST(Distinct, AsASetCounts) {
  std::mt19937_64 random(7);
  // Ranges from one sector to one that 32 bits do not hold, from the bottom and the top of the address space.
  for (const uint64_t range : {1ull, 4ull, 32ull, 128ull, 1000ull, 65536ull, 1ull << 30, 1ull << 31, 1ull << 40}) {
    for (int run = 0; run < 200; ++run) {
      const uint32_t n = 1 + static_cast<uint32_t>(random() % 32);
      const uint64_t base = run % 2 ? random() >> 20 : ~uint64_t{0} - range - 127;
      std::vector<uint64_t> at(n);
      std::set<uint64_t> addresses, sectors, lines;
      for (uint64_t& a : at) {
        a = base + random() % range;
        if (run % 5 == 0) a &= ~uint64_t{3};
        addresses.insert(a);
        sectors.insert(a / 32);
        lines.insert(a / 128);
      }
      if (run % 7 == 0) std::sort(at.begin(), at.end());
      const Distinct d = countDistinct(at.data(), n);
      ASSERT_EQ(addresses.size(), d.addresses) << range;
      ASSERT_EQ(sectors.size(), d.sectors) << range;
      ASSERT_EQ(lines.size(), d.lines) << range;
    }
  }
}

TEST(Distinct, OneLane) {
  const uint64_t at = 12345;
  const Distinct d = countDistinct(&at, 1);
  EXPECT_EQ(1u, d.addresses);
  EXPECT_EQ(1u, d.sectors);
  EXPECT_EQ(1u, d.lines);
}

}  // namespace
}  // namespace sonde::softgpu::exec
