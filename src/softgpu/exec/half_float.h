// SPDX-License-Identifier: Apache-2.0
//
// Half and bfloat16 for the helpers: exact widening, rounding to nearest even.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sonde::softgpu::exec {

inline float bfloatToFloat(uint16_t h) { return std::bit_cast<float>(uint32_t{h} << 16); }
inline uint16_t floatToBfloat(float f) {
  if (std::isnan(f)) return 0x7fff;
  const auto u = std::bit_cast<uint32_t>(f);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

inline float halfToFloat(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16;
  const uint32_t exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0)
    return std::copysign(std::ldexp(static_cast<float>(fraction), -24), std::bit_cast<float>(sign | 0x3f800000u));
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
inline uint16_t floatToHalf(float f) {
  if (std::isnan(f)) return 0x7fff;
  const auto u = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<uint16_t>(u >> 16 & 0x8000);
  const float a = std::fabs(f);
  if (a >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00);
  if (a < 6.103515625e-05f) {  // subnormal: units of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(a, 24))));
  }
  const uint32_t m = (u & 0x7fffffff) - (112u << 23);
  return static_cast<uint16_t>(sign | (m + 0xfff + (m >> 13 & 1)) >> 13);
}

}  // namespace sonde::softgpu::exec
