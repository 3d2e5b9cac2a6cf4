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

// One step from lane to lane, up and down.
TEST(Distinct, EveryStep) {
  std::mt19937_64 random(11);
  for (int64_t step = -300; step <= 300; ++step) {
    for (const uint32_t n : {2u, 3u, 5u, 31u, 32u}) {
      const uint64_t base = (uint64_t{1} << 33) + random() % 4096;
      std::vector<uint64_t> at;
      std::set<uint64_t> addresses, sectors, lines;
      for (uint32_t i = 0; i < n; ++i) {
        at.push_back(base + static_cast<uint64_t>(step * static_cast<int64_t>(i)));
        addresses.insert(at.back());
        sectors.insert(at.back() / 32);
        lines.insert(at.back() / 128);
      }
      const Distinct d = countDistinct(at.data(), n);
      ASSERT_EQ(addresses.size(), d.addresses) << step;
      ASSERT_EQ(sectors.size(), d.sectors) << step << " " << n;
      ASSERT_EQ(lines.size(), d.lines) << step << " " << n;
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
