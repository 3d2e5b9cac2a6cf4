// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/texture_fast.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "softgpu/exec/half_float.h"
#include "softgpu/exec/helpers.h"

namespace sonde::softgpu::exec {

namespace {

// Calls use(std::integral_constant) …: one copy of the loops for each format.
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

inline int32_t floorOf(float v) {  // of what fits
  const auto i = static_cast<int32_t>(v);
  return i - (static_cast<float>(i) > v);
}
inline int64_t floorOf(double v) {
  const auto i = static_cast<int64_t>(v);
  return i - (static_cast<double>(i) > v);
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

// The element's number on one axis for every lane, those that the mask leaves
// out too, so that all may be read. False: some lane is beyond a border.
__attribute__((target("avx2"), optimize("O3"))) bool nearestElements(const Work& w, unsigned axis, uint32_t mask,
                                                                     int32_t* __restrict out) {
  const AxisRule& rule = w.rules[axis];
  const uint32_t* __restrict words = w.coordinates[axis];
  const auto last = static_cast<int32_t>(rule.size) - 1;
  const float scale = rule.normalized ? static_cast<float>(rule.size) : 1.0f;
  int32_t element[kLanes];
  uint32_t outside = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    float v = w.integerCoordinates ? static_cast<float>(static_cast<int32_t>(words[lane]))
                                   : std::bit_cast<float>(words[lane]);
    v = v == v ? v * scale : 0.0f;
    v = v < -1073741824.0f ? -1073741824.0f : v > 1073741824.0f ? 1073741824.0f : v;
    const auto i = static_cast<int32_t>(v);
    element[lane] = i - (static_cast<float>(i) > v ? 1 : 0);
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const int32_t i = element[lane];
    const int32_t inside = i < 0 ? 0 : i > last ? last : i;
    outside |= static_cast<uint32_t>(inside != i) << lane;
    out[lane] = inside;
  }
  outside &= mask;
  if (rule.mode == TextureAddress::clamp || outside == 0) return true;
  if (rule.mode == TextureAddress::border) return false;
  for (uint32_t m = outside; m; m &= m - 1) {
    const auto lane = static_cast<unsigned>(__builtin_ctz(m));
    out[lane] = static_cast<int32_t>(fold(element[lane], rule));
  }
  return true;
}

// The nearest elements of 32 bits, one channel, in one or two dimensions.
SONDE_DEVICE_CODE bool nearestWords(const Work& w, uint32_t mask, uint32_t* out) {
  static const bool able = __builtin_cpu_supports("avx2");
  if (!able || w.layer || w.axes > 2 || w.rules[0].between || w.t->channels != 1 || w.rules[0].size > (1u << 30) ||
      w.rules[1].size > (1u << 30))
    return false;
  const bool real = w.t->format == TexelFormat::f32;
  if (!real && w.t->format != TexelFormat::u32 && w.t->format != TexelFormat::s32) return false;
  int32_t x[kLanes], y[kLanes] = {};
  if (!nearestElements(w, 0, mask, x) || (w.axes == 2 && !nearestElements(w, 1, mask, y))) return false;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    out[lane] = at<uint32_t>(w.base + static_cast<uint64_t>(y[lane]) * w.pitch + static_cast<uint64_t>(x[lane]) * 4);
  const uint32_t one = real ? 0x3f800000u : 1u;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    out[kLanes + lane] = 0;
    out[2 * kLanes + lane] = 0;
    out[3 * kLanes + lane] = one;
  }
  return true;
}

template <Kind kind>
bool runChannels(const Work& w, uint32_t mask, uint32_t* out) {
  switch (w.t->channels) {
    case 1: Reader<kind, 1>{w}.run(mask, out); return true;
    case 2: Reader<kind, 2>{w}.run(mask, out); return true;
    case 4: Reader<kind, 4>{w}.run(mask, out); return true;
    default: return false;
  }
}

bool runKind(const Work& w, uint32_t mask, uint32_t* out) {
  if (nearestWords(w, mask, out)) return true;
  const bool unit = w.t->normalizedRead;
  switch (w.t->format) {
    case TexelFormat::f32: return runChannels<Kind::f32>(w, mask, out);
    case TexelFormat::f16: return runChannels<Kind::f16>(w, mask, out);
    case TexelFormat::u8: return unit ? runChannels<Kind::unorm8>(w, mask, out) : runChannels<Kind::u8>(w, mask, out);
    case TexelFormat::u16:
      return unit ? runChannels<Kind::unorm16>(w, mask, out) : runChannels<Kind::u16>(w, mask, out);
    case TexelFormat::s8: return unit ? runChannels<Kind::snorm8>(w, mask, out) : runChannels<Kind::s8>(w, mask, out);
    case TexelFormat::s16:
      return unit ? runChannels<Kind::snorm16>(w, mask, out) : runChannels<Kind::s16>(w, mask, out);
    case TexelFormat::u32:
    case TexelFormat::s32: return runChannels<Kind::word>(w, mask, out);
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
