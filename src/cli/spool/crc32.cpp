// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "cli/spool/format.h"

namespace sonde::spool {
namespace {

// Eight tables, so that one step takes eight bytes.
constexpr auto makeTables() {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = (c & 1) ? 0xedb88320u ^ (c >> 1) : c >> 1;
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (size_t s = 1; s < 8; s++) t[s][i] = (t[s - 1][i] >> 8) ^ t[0][t[s - 1][i] & 0xff];
  return t;
}
constexpr auto kTables = makeTables();

uint32_t load32(const unsigned char* p) {
  return uint32_t{p[0]} | uint32_t{p[1]} << 8 | uint32_t{p[2]} << 16 | uint32_t{p[3]} << 24;
}

}  // namespace

uint32_t crc32(const void* data, size_t size, uint32_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint32_t c = ~seed;
  for (; size >= 8; size -= 8, p += 8) {
    const uint32_t a = load32(p) ^ c, b = load32(p + 4);
    c = kTables[7][a & 0xff] ^ kTables[6][(a >> 8) & 0xff] ^ kTables[5][(a >> 16) & 0xff] ^ kTables[4][a >> 24] ^
        kTables[3][b & 0xff] ^ kTables[2][(b >> 8) & 0xff] ^ kTables[1][(b >> 16) & 0xff] ^ kTables[0][b >> 24];
  }
  while (size--) c = kTables[0][(c ^ *p++) & 0xff] ^ (c >> 8);
  return ~c;
}

}  // namespace sonde::spool
