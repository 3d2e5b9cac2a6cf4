// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/texture_fast.h"

#include <bit>

#include "softgpu/exec/texture_read.h"

namespace sonde::softgpu::exec {

using namespace texture_read;

namespace {

inline int32_t floorOf(float v) {  // of what fits
  const auto i = static_cast<int32_t>(v);
  return i - (static_cast<float>(i) > v);
}
inline int64_t floorOf(double v) {
  const auto i = static_cast<int64_t>(v);
  return i - (static_cast<double>(i) > v);
}

struct Axis {
  int64_t low = 0, high = 0;
  float weight = 0;
};

inline Axis axisOf(float v, const AxisRule& rule) {
  if (v != v) v = 0;
  if (rule.normalized) v *= static_cast<float>(rule.size);
  v = v < -1073741824.0f ? -1073741824.0f : v > 1073741824.0f ? 1073741824.0f : v;
  Axis a;
  if (!rule.between) {
    a.low = a.high = fold(floorOf(v), rule);
    return a;
  }
  const int64_t steps = floorOf((static_cast<double>(v) - 0.5) * 256 + 0.5);
  a.low = fold(steps >> 8, rule);
  a.high = fold((steps >> 8) + 1, rule);
  a.weight = static_cast<float>(steps & 255) / 256.0f;
  return a;
}

template <Kind kind, unsigned channels>
struct Reader {
  const Work& w;
  struct Texel {
    uint32_t c[channels];
  };

  SONDE_DEVICE_CODE Texel read(int64_t x, int64_t y, int64_t z) const {
    Texel r;
    if ((x | y | z) < 0) {
      for (unsigned c = 0; c < channels; ++c) r.c[c] = std::bit_cast<uint32_t>(w.t->border[c]);
      return r;
    }
    const uint8_t* p = w.base + static_cast<uint64_t>(z) * w.slicePitch + static_cast<uint64_t>(y) * w.pitch +
                       static_cast<uint64_t>(x) * (kBytes<kind> * channels);
    for (unsigned c = 0; c < channels; ++c) r.c[c] = channel<kind>(p + c * kBytes<kind>);
    return r;
  }

  static Texel mix(const Texel& a, const Texel& b, float weight) {
    Texel r;
    for (unsigned c = 0; c < channels; ++c)
      r.c[c] =
          std::bit_cast<uint32_t>((1 - weight) * std::bit_cast<float>(a.c[c]) + weight * std::bit_cast<float>(b.c[c]));
    return r;
  }

  SONDE_DEVICE_CODE Texel row(const Axis& x, int64_t y, int64_t z) const {
    const Texel a = read(x.low, y, z);
    return x.weight == 0 ? a : mix(a, read(x.high, y, z), x.weight);
  }
  SONDE_DEVICE_CODE Texel plane(const Axis& x, const Axis& y, int64_t z) const {
    return y.weight == 0 ? row(x, y.low, z) : mix(row(x, y.low, z), row(x, y.high, z), y.weight);
  }

  SONDE_DEVICE_CODE void run(uint32_t mask, uint32_t* out) const {
    constexpr uint32_t one = kReal<kind> ? 0x3f800000u : 1u;
    for (uint32_t m = mask; m; m &= m - 1) {
      const auto lane = static_cast<unsigned>(__builtin_ctz(m));
      Axis a[3];
      for (unsigned i = 0; i < w.axes; ++i) {
        const uint32_t word = w.coordinates[i][lane];
        a[i] =
            axisOf(w.integerCoordinates ? static_cast<float>(static_cast<int32_t>(word)) : std::bit_cast<float>(word),
                   w.rules[i]);
      }
      if (w.layer) {
        const int64_t l = static_cast<int32_t>(w.layer[lane]);
        a[2].low = l < 0 ? 0 : l >= w.layers ? w.layers - 1 : l;
      }
      const Texel r = a[2].weight == 0 ? plane(a[0], a[1], a[2].low)
                                       : mix(plane(a[0], a[1], a[2].low), plane(a[0], a[1], a[2].high), a[2].weight);
      for (unsigned c = 0; c < channels; ++c) out[c * kLanes + lane] = r.c[c];
      for (unsigned c = channels; c < 4; ++c) out[c * kLanes + lane] = c == 3 ? one : 0;
    }
  }
};

template <Kind kind>
bool runChannels(const Work& w, uint32_t mask, uint32_t* out) {
  switch (w.t->channels) {
    case 1: Reader<kind, 1>{w}.run(mask, out); return true;
    case 2: Reader<kind, 2>{w}.run(mask, out); return true;
    case 4: Reader<kind, 4>{w}.run(mask, out); return true;
    default: return false;
  }
}

Kind kindOf(const TextureDescriptor& t) {
  const bool unit = t.normalizedRead;
  switch (t.format) {
    case TexelFormat::f32: return Kind::f32;
    case TexelFormat::f16: return Kind::f16;
    case TexelFormat::u8: return unit ? Kind::unorm8 : Kind::u8;
    case TexelFormat::u16: return unit ? Kind::unorm16 : Kind::u16;
    case TexelFormat::s8: return unit ? Kind::snorm8 : Kind::s8;
    case TexelFormat::s16: return unit ? Kind::snorm16 : Kind::s16;
    default: return Kind::word;
  }
}

bool runKind(const Work& w, uint32_t mask, uint32_t* out) {
  const Kind kind = kindOf(*w.t);
  if (readVector(w, kind, mask, out)) return true;
  switch (kind) {
    case Kind::f32: return runChannels<Kind::f32>(w, mask, out);
    case Kind::f16: return runChannels<Kind::f16>(w, mask, out);
    case Kind::unorm8: return runChannels<Kind::unorm8>(w, mask, out);
    case Kind::unorm16: return runChannels<Kind::unorm16>(w, mask, out);
    case Kind::snorm8: return runChannels<Kind::snorm8>(w, mask, out);
    case Kind::snorm16: return runChannels<Kind::snorm16>(w, mask, out);
    case Kind::u8: return runChannels<Kind::u8>(w, mask, out);
    case Kind::u16: return runChannels<Kind::u16>(w, mask, out);
    case Kind::s8: return runChannels<Kind::s8>(w, mask, out);
    case Kind::s16: return runChannels<Kind::s16>(w, mask, out);
    case Kind::word: return runChannels<Kind::word>(w, mask, out);
  }
  return false;
}

}  // namespace

bool sampleWarp(const WarpState& warp, const TextureJob& job, const TextureDescriptor& t, const uint32_t* words,
                uint32_t mask, uint32_t* out) {
  if (job.op != TextureOp::sample || t.levelCount != 1 || t.linearMemory || t.srgb) return false;
  const TextureLevel& l = t.levels[0];
  const uint64_t bytes = l.slicePitch * l.slices;
  if (l.address - warp.windowBase >= warp.windowSize || bytes > warp.windowSize - (l.address - warp.windowBase))
    return false;
  Work w{};
  unsigned first = 0;
  switch (job.shape) {
    case TextureShape::d1: w.axes = 1; break;
    case TextureShape::d2: w.axes = 2; break;
    case TextureShape::d3: w.axes = 3; break;
    case TextureShape::layered1: w.axes = 1, first = 1; break;
    case TextureShape::layered2: w.axes = 2, first = 1; break;
    default: return false;
  }
  const bool raw = t.format == TexelFormat::u32 || t.format == TexelFormat::s32 ||
                   (t.format < TexelFormat::u32 && !t.normalizedRead);
  const uint32_t sizes[3] = {l.width, l.height, l.slices};
  for (unsigned i = 0; i < 3; ++i) {
    TextureAddress mode = t.address[i];
    if (!t.normalizedCoordinates && (mode == TextureAddress::wrap || mode == TextureAddress::mirror))
      mode = TextureAddress::clamp;
    // Beyond a border the channels that the format lacks have the border's colour, too.
    if (mode == TextureAddress::border && t.channels != 4 && i < w.axes) return false;
    w.rules[i] = {sizes[i], mode, t.normalizedCoordinates && !job.integerCoordinates,
                  t.filter && !raw && !job.integerCoordinates};
    if (i < w.axes) w.coordinates[i] = words + (first + i) * kLanes;
  }
  w.t = &t;
  w.base = reinterpret_cast<const uint8_t*>(l.address + warp.deviceDelta);
  w.pitch = l.pitch;
  w.slicePitch = l.slicePitch;
  w.layer = first ? words : nullptr;
  w.layers = l.slices;
  w.integerCoordinates = job.integerCoordinates != 0;
  return runKind(w, mask, out);
}

}  // namespace sonde::softgpu::exec
