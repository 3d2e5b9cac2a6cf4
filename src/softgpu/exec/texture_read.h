// SPDX-License-Identifier: Apache-2.0
//
// What a warp's read of a texture is about, as the two ways to do it share it:
// lane by lane (texture_fast.cpp) and in vectors (texture_vector.cpp).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "softgpu/exec/half_float.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/texture.h"

namespace sonde::softgpu::exec::texture_read {

// How a channel is stored and what it reads as; one copy of the loops for each.
enum class Kind : uint8_t { f32, f16, unorm8, unorm16, snorm8, snorm16, u8, u16, s8, s16, word };

template <Kind kind>
constexpr uint32_t kBytes =
    kind == Kind::f32 || kind == Kind::word                                                                         ? 4
    : kind == Kind::f16 || kind == Kind::unorm16 || kind == Kind::snorm16 || kind == Kind::u16 || kind == Kind::s16 ? 2
                                                                                                                    : 1;
template <Kind kind>
constexpr bool kReal = kind == Kind::f32 || kind == Kind::f16 || kind == Kind::unorm8 || kind == Kind::unorm16 ||
                       kind == Kind::snorm8 || kind == Kind::snorm16;

template <class T>
SONDE_DEVICE_CODE inline T at(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// A channel as its 32 bits: of a float, or of an extended integer.
template <Kind kind>
SONDE_DEVICE_CODE inline uint32_t channel(const uint8_t* p) {
  if constexpr (kind == Kind::f32 || kind == Kind::word) return at<uint32_t>(p);
  if constexpr (kind == Kind::f16) return std::bit_cast<uint32_t>(halfToFloat(at<uint16_t>(p)));
  if constexpr (kind == Kind::unorm8) return std::bit_cast<uint32_t>(static_cast<float>(*p) / 255.0f);
  if constexpr (kind == Kind::unorm16) return std::bit_cast<uint32_t>(static_cast<float>(at<uint16_t>(p)) / 65535.0f);
  if constexpr (kind == Kind::snorm8) {
    const float v = static_cast<float>(static_cast<int8_t>(*p)) / 127.0f;
    return std::bit_cast<uint32_t>(v < -1.0f ? -1.0f : v);
  }
  if constexpr (kind == Kind::snorm16) {
    const float v = static_cast<float>(at<int16_t>(p)) / 32767.0f;
    return std::bit_cast<uint32_t>(v < -1.0f ? -1.0f : v);
  }
  if constexpr (kind == Kind::u8) return *p;
  if constexpr (kind == Kind::u16) return at<uint16_t>(p);
  if constexpr (kind == Kind::s8) return static_cast<uint32_t>(int32_t{static_cast<int8_t>(*p)});
  if constexpr (kind == Kind::s16) return static_cast<uint32_t>(int32_t{at<int16_t>(p)});
  return 0;
}

struct AxisRule {
  uint32_t size;
  TextureAddress mode;
  bool normalized, between;
};

// An element's number; -1: beyond the border.
inline int64_t fold(int64_t i, const AxisRule& rule) {
  const int64_t n = rule.size;
  if (i >= 0 && i < n) return i;
  switch (rule.mode) {
    case TextureAddress::wrap: return (i % n + n) % n;
    case TextureAddress::mirror: {
      const int64_t k = (i % (2 * n) + 2 * n) % (2 * n);
      return k < n ? k : 2 * n - 1 - k;
    }
    case TextureAddress::border: return -1;
    default: return i < 0 ? 0 : n - 1;
  }
}

// One level of one texture for all lanes. Rows of coordinates are 32 words.
struct Work {
  const TextureDescriptor* t;
  const uint8_t* base;  // of the level, where the device sees it
  uint64_t pitch, slicePitch;
  AxisRule rules[3];
  unsigned axes;
  const uint32_t* coordinates[3];
  const uint32_t* layer;  // null: none
  int64_t layers;
  bool integerCoordinates;
};

// All lanes at once. False: nothing was done, a lane needs what only the other
// way does (a border's colour, coordinates of millions), or so does the processor.
bool readVector(const Work& w, Kind kind, uint32_t mask, uint32_t* out);

}  // namespace sonde::softgpu::exec::texture_read
