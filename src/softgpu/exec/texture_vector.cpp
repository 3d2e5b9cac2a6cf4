// SPDX-License-Identifier: Apache-2.0
//
// Reads of textures in vectors: where each lane's elements are, then the elements,
// then what lies between them. The loops over lanes are for the vectorizer.
// Every operation on values is the lane-by-lane one, in the same order.
#include "softgpu/exec/texture_read.h"

namespace sonde::softgpu::exec::texture_read {

namespace {

#if defined(__x86_64__)
#define SONDE_AVX2 __attribute__((target("avx2")))
bool able() {
  static const bool yes = __builtin_cpu_supports("avx2");
  return yes;
}
#else
#define SONDE_AVX2
bool able() { return true; }
#endif

// Elements and offsets are 32-bit numbers here, coordinates have to be small
// enough for 256ths of an element.
constexpr uint32_t kMaxSize = 1u << 22;
constexpr float kMaxCoordinate = 1u << 22;

struct alignas(64) Lanes {
  int32_t v[kLanes];
};
struct alignas(64) Reals {
  float v[kLanes];
};

struct AxisLanes {
  Lanes low, high;
  Reals weight;  // of the high one
  bool between;  // some weight is not 0
};

// Folds elements of lanes in `mask` and makes those of the others 0. False: some lane is beyond a border.
SONDE_AVX2 bool foldLanes(Lanes& element, const Lanes& active, const AxisRule& rule) {
  const auto last = static_cast<int32_t>(rule.size) - 1;
  Lanes inside;
  int32_t changed = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const int32_t i = element.v[l] & active.v[l];
    int32_t e = i < 0 ? 0 : i;
    e = e > last ? last : e;
    inside.v[l] = e;
    changed |= e ^ i;
  }
  if (changed != 0 && rule.mode != TextureAddress::clamp) {
    if (rule.mode == TextureAddress::border) return false;
    for (unsigned l = 0; l < kLanes; ++l) {
      const int32_t i = element.v[l] & active.v[l];
      if (i != inside.v[l]) inside.v[l] = static_cast<int32_t>(fold(i, rule));
    }
  }
  element = inside;
  return true;
}

// False: as foldLanes, or a coordinate is too large.
SONDE_AVX2 bool axisLanes(const uint32_t* __restrict words, bool integers, const Lanes& active, const AxisRule& rule,
                          AxisLanes& a) {
  const float scale = rule.normalized ? static_cast<float>(rule.size) : 1.0f;
  Reals v;
  if (integers) {
    for (unsigned l = 0; l < kLanes; ++l) v.v[l] = static_cast<float>(static_cast<int32_t>(words[l]) & active.v[l]);
  } else {
    for (unsigned l = 0; l < kLanes; ++l) {
      const auto x = std::bit_cast<float>(static_cast<int32_t>(words[l]) & active.v[l]);
      v.v[l] = x == x ? x * scale : 0.0f;
    }
  }
  int32_t far = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const float size = std::bit_cast<float>(std::bit_cast<int32_t>(v.v[l]) & 0x7fffffff);
    far |= size < kMaxCoordinate ? 0 : 1;
  }
  if (far) return false;
  if (!rule.between) {
    for (unsigned l = 0; l < kLanes; ++l) {
      const auto i = static_cast<int32_t>(v.v[l]);
      a.low.v[l] = i - (static_cast<float>(i) > v.v[l] ? 1 : 0);
    }
    a.between = false;
    return foldLanes(a.low, active, rule);
  }
  // floor((v - 1/2) * 256 + 1/2): what is below 256ths is exact in a float only before the subtraction.
  int32_t any = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    const float fine = v.v[l] * 256;
    const auto i = static_cast<int32_t>(fine);
    const int32_t down = i - (static_cast<float>(i) > fine ? 1 : 0);
    const int32_t steps = down - 128 + (fine - static_cast<float>(down) >= 0.5f ? 1 : 0);
    const int32_t part = steps & 255 & active.v[l];
    a.low.v[l] = steps >> 8;
    a.high.v[l] = (steps >> 8) + (part != 0 ? 1 : 0);  // the other one is not read where it weighs nothing
    a.weight.v[l] = static_cast<float>(part) / 256.0f;
    any |= part;
  }
  a.between = any != 0;
  return foldLanes(a.low, active, rule) && (!a.between || foldLanes(a.high, active, rule));
}

// The channels of each lane's element; reals are kept as their bits.
template <unsigned channels>
struct TexelLanes {
  Lanes c[channels];
};

template <Kind kind, unsigned channels>
SONDE_AVX2 SONDE_DEVICE_CODE inline void load(const uint8_t* base, const Lanes& at, TexelLanes<channels>& out) {
  if constexpr (kBytes<kind> * channels == 4 && channels > 1) {  // as words, whose parts are told apart in vectors
    Lanes word;
    for (unsigned l = 0; l < kLanes; ++l) word.v[l] = texture_read::at<int32_t>(base + at.v[l]);
    for (unsigned c = 0; c < channels; ++c)
      for (unsigned l = 0; l < kLanes; ++l) {
        const int32_t bits = word.v[l] >> (8 * kBytes<kind> * c);
        if constexpr (kind == Kind::unorm8) {
          out.c[c].v[l] = std::bit_cast<int32_t>(static_cast<float>(bits & 255) / 255.0f);
        } else if constexpr (kind == Kind::unorm16) {
          out.c[c].v[l] = std::bit_cast<int32_t>(static_cast<float>(bits & 65535) / 65535.0f);
        } else {
          uint8_t bytes[4];
          std::memcpy(bytes, &bits, 4);
          out.c[c].v[l] = static_cast<int32_t>(channel<kind>(bytes));
        }
      }
  } else if constexpr (kind == Kind::unorm8) {
    for (unsigned c = 0; c < channels; ++c) {
      for (unsigned l = 0; l < kLanes; ++l) out.c[c].v[l] = base[at.v[l] + static_cast<int32_t>(c)];
      for (unsigned l = 0; l < kLanes; ++l)
        out.c[c].v[l] = std::bit_cast<int32_t>(static_cast<float>(out.c[c].v[l]) / 255.0f);
    }
  } else {
    for (unsigned l = 0; l < kLanes; ++l)
      for (unsigned c = 0; c < channels; ++c)
        out.c[c].v[l] = static_cast<int32_t>(channel<kind>(base + at.v[l] + c * kBytes<kind>));
  }
}

template <unsigned channels>
SONDE_AVX2 inline void mix(TexelLanes<channels>& a, const TexelLanes<channels>& b, const Reals& weight) {
  for (unsigned c = 0; c < channels; ++c)
    for (unsigned l = 0; l < kLanes; ++l) {
      const float w = weight.v[l];
      const float x = std::bit_cast<float>(a.c[c].v[l]), y = std::bit_cast<float>(b.c[c].v[l]);
      const float between = (1 - w) * x + w * y;
      a.c[c].v[l] = w == 0 ? a.c[c].v[l] : std::bit_cast<int32_t>(between);
    }
}

template <Kind kind, unsigned channels>
struct VectorReader {
  const Work& w;
  AxisLanes a[3];

  SONDE_AVX2 inline void offsets(const Lanes& x, const Lanes& y, const Lanes& z, Lanes& to) const {
    const auto pitch = static_cast<int32_t>(w.pitch), slice = static_cast<int32_t>(w.slicePitch);
    if (w.axes == 1 && !w.layer) {
      for (unsigned l = 0; l < kLanes; ++l) to.v[l] = x.v[l] * static_cast<int32_t>(kBytes<kind> * channels);
      return;
    }
    for (unsigned l = 0; l < kLanes; ++l)
      to.v[l] = z.v[l] * slice + y.v[l] * pitch + x.v[l] * static_cast<int32_t>(kBytes<kind> * channels);
  }

  SONDE_AVX2 inline void row(const Lanes& y, const Lanes& z, TexelLanes<channels>& to) const {
    Lanes at;
    offsets(a[0].low, y, z, at);
    load<kind, channels>(w.base, at, to);
    if (!a[0].between) return;
    TexelLanes<channels> high;
    offsets(a[0].high, y, z, at);
    load<kind, channels>(w.base, at, high);
    mix(to, high, a[0].weight);
  }

  SONDE_AVX2 inline void plane(const Lanes& z, TexelLanes<channels>& to) const {
    row(a[1].low, z, to);
    if (!a[1].between) return;
    TexelLanes<channels> high;
    row(a[1].high, z, high);
    mix(to, high, a[1].weight);
  }

  SONDE_AVX2 bool run(uint32_t mask, uint32_t* __restrict out) {
    Lanes active;
    for (unsigned l = 0; l < kLanes; ++l) active.v[l] = (mask >> l & 1) ? -1 : 0;
    for (unsigned i = 0; i < 3; ++i) {
      if (i < w.axes) {
        if (!axisLanes(w.coordinates[i], w.integerCoordinates, active, w.rules[i], a[i])) return false;
      } else {
        a[i].low = {};
        a[i].between = false;
      }
    }
    if (w.layer) {
      const auto last = static_cast<int32_t>(w.layers) - 1;
      for (unsigned l = 0; l < kLanes; ++l) {
        const int32_t i = static_cast<int32_t>(w.layer[l]) & active.v[l];
        a[2].low.v[l] = i < 0 ? 0 : i > last ? last : i;
      }
    }
    TexelLanes<channels> r;
    plane(a[2].low, r);
    if (a[2].between) {
      TexelLanes<channels> high;
      plane(a[2].high, high);
      mix(r, high, a[2].weight);
    }
    std::memcpy(out, r.c, sizeof r.c);
    constexpr uint32_t one = kReal<kind> ? 0x3f800000u : 1u;
    for (unsigned c = channels; c < 4; ++c)
      for (unsigned l = 0; l < kLanes; ++l) out[c * kLanes + l] = c == 3 ? one : 0;
    return true;
  }
};

template <Kind kind>
bool runVector(const Work& w, uint32_t mask, uint32_t* out) {
  switch (w.t->channels) {
    case 1: return VectorReader<kind, 1>{w, {}}.run(mask, out);
    case 2: return VectorReader<kind, 2>{w, {}}.run(mask, out);
    case 4: return VectorReader<kind, 4>{w, {}}.run(mask, out);
    default: return false;
  }
}

}  // namespace

bool readVector(const Work& w, Kind kind, uint32_t mask, uint32_t* out) {
  if (!able() || w.slicePitch * static_cast<uint64_t>(w.layers) >= 1u << 31) return false;
  for (unsigned i = 0; i < w.axes; ++i)
    if (w.rules[i].size > kMaxSize) return false;
  switch (kind) {
    case Kind::f32: return runVector<Kind::f32>(w, mask, out);
    case Kind::unorm8: return runVector<Kind::unorm8>(w, mask, out);
    case Kind::unorm16: return runVector<Kind::unorm16>(w, mask, out);
    case Kind::snorm8: return runVector<Kind::snorm8>(w, mask, out);
    case Kind::snorm16: return runVector<Kind::snorm16>(w, mask, out);
    case Kind::u8: return runVector<Kind::u8>(w, mask, out);
    case Kind::u16: return runVector<Kind::u16>(w, mask, out);
    case Kind::s8: return runVector<Kind::s8>(w, mask, out);
    case Kind::s16: return runVector<Kind::s16>(w, mask, out);
    case Kind::word: return runVector<Kind::word>(w, mask, out);
    case Kind::f16: return runVector<Kind::f16>(w, mask, out);
  }
  return false;
}

}  // namespace sonde::softgpu::exec::texture_read
