// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/distinct.h"

#include <algorithm>
#include <cstring>

namespace sonde::softgpu::exec {

namespace {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kNone = ~0u;  // differs from every key in its highest bit

using Keys = uint32_t __attribute__((vector_size(32)));
constexpr uint32_t kKeys = sizeof(Keys) / 4;

__attribute__((always_inline)) inline void load(Keys& keys, const uint32_t* from) {
  std::memcpy(&keys, from, sizeof keys);
}

// Each key is compared with every earlier one: no order of random keys is as
// quick, as its branches would be guessed wrong half of the time. `padded`:
// 32 times kNone, then 32 keys.
__attribute__((always_inline)) inline Distinct compareAll(const uint32_t* padded) {
  Keys addresses{}, sectors{}, lines{};  // of each place in the vector; -1 for each key that is not the first
  for (uint32_t at = 0; at < kLanes; at += kKeys) {
    Keys key, oldAddress{}, oldSector{}, oldLine{}, other;
    load(key, padded + kLanes + at);
    for (uint32_t back = 1; back < at + kKeys; ++back) {
      load(other, padded + kLanes + at - back);
      const Keys differs = key ^ other;
      oldAddress |= reinterpret_cast<Keys>(differs == 0);
      oldSector |= reinterpret_cast<Keys>(differs >> 5 == 0);
      oldLine |= reinterpret_cast<Keys>(differs >> 7 == 0);
    }
    addresses += oldAddress;
    sectors += oldSector;
    lines += oldLine;
  }
  Distinct d{kLanes, kLanes, kLanes};
  for (uint32_t i = 0; i < kKeys; ++i) {
    d.addresses += addresses[i];
    d.sectors += sectors[i];
    d.lines += lines[i];
  }
  return d;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) Distinct compareAllAvx2(const uint32_t* padded) { return compareAll(padded); }
#endif
Distinct compareAllPlain(const uint32_t* padded) { return compareAll(padded); }

using Compare = Distinct (*)(const uint32_t*);
Compare chooseCompare() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return compareAllAvx2;
#endif
  return compareAllPlain;
}

uint32_t differentOf(const uint64_t* sorted, uint32_t n, unsigned shift) {
  uint32_t changes = 1;
  for (uint32_t i = 1; i < n; ++i) changes += sorted[i - 1] >> shift != sorted[i] >> shift;
  return changes;
}

}  // namespace

Distinct countDistinct(const uint64_t* address, uint32_t n) {
  // One step from lane to lane, as in arrays of structures: each piece between
  // the first and the last is hit, or each lane has its own.
  if (n > 2) {
    const uint64_t step = address[1] - address[0];
    uint64_t other = 0;
    for (uint32_t i = 2; i < n; ++i) other |= (address[i] - address[i - 1]) ^ step;
    if (other == 0) {
      const uint64_t width = static_cast<int64_t>(step) < 0 ? -step : step;
      const auto pieces = [&](unsigned shift) {
        const uint64_t a = address[0] >> shift, b = address[n - 1] >> shift;
        return width >> shift ? n : static_cast<uint32_t>((a < b ? b - a : a - b) + 1);
      };
      return {width ? n : 1, pieces(5), pieces(7)};
    }
  }
  // Most accesses go up from lane to lane, where counting the changes is enough.
  Distinct d{1, 1, 1};
  bool ascending = true;
  uint64_t low = address[0], high = address[0];
  for (uint32_t i = 1; i < n; ++i) {
    const uint64_t a = address[i - 1], b = address[i];
    d.addresses += a != b;
    d.sectors += a >> 5 != b >> 5;
    d.lines += a >> 7 != b >> 7;
    ascending &= a <= b;
    low = std::min(low, b);
    high = std::max(high, b);
  }
  if (ascending) return d;
  low &= ~uint64_t{127};
  if (high - low < uint64_t{1} << 31) {
    static const Compare compare = chooseCompare();
    uint32_t padded[2 * kLanes];
    std::fill_n(padded, kLanes, kNone);
    for (uint32_t i = 0; i < n; ++i) padded[kLanes + i] = static_cast<uint32_t>(address[i] - low);
    std::fill_n(padded + kLanes + n, kLanes - n, padded[kLanes]);  // not the first of its sort
    return compare(padded);
  }
  uint64_t sorted[kLanes];
  std::copy_n(address, n, sorted);
  std::sort(sorted, sorted + n);
  return {differentOf(sorted, n, 0), differentOf(sorted, n, 5), differentOf(sorted, n, 7)};
}

}  // namespace sonde::softgpu::exec
