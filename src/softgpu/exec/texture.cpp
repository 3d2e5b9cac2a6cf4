// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/texture.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <mutex>

#include "softgpu/exec/faults.h"
#include "softgpu/exec/half_float.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/texture_fast.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::exec {

namespace {

// --- the table ---

constexpr uint32_t kSlots = 1u << 16;
constexpr unsigned kGenerationShift = 20;

struct Entry {
  uint64_t handle;
  TextureDescriptor descriptor;
};

struct Table {
  std::array<std::atomic<Entry*>, kSlots> slots{};
  std::mutex mutex;
  std::deque<uint32_t> freed;  // oldest first
  uint32_t used = 0;
  uint64_t generation = 0;
};

Table& table() {
  static auto* t = new Table;
  return *t;
}

const TextureDescriptor* find(uint64_t handle) {
  const uint64_t slot = handle & ((1u << kGenerationShift) - 1);
  if (slot >= kSlots) return nullptr;
  const Entry* e = table().slots[slot].load(std::memory_order_acquire);
  return e && e->handle == handle ? &e->descriptor : nullptr;
}

}  // namespace

uint64_t publishTexture(const TextureDescriptor& descriptor) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  uint32_t slot;
  if (t.used < kSlots) {
    slot = t.used++;
  } else if (!t.freed.empty()) {
    slot = t.freed.front();
    t.freed.pop_front();
  } else {
    return 0;
  }
  const uint64_t handle = ++t.generation << kGenerationShift | slot;
  t.slots[slot].store(new Entry{handle, descriptor}, std::memory_order_release);
  return handle;
}

bool retireTexture(uint64_t handle) {
  if (!find(handle)) return false;
  Table& t = table();
  std::lock_guard lock(t.mutex);
  const auto slot = static_cast<uint32_t>(handle & ((1u << kGenerationShift) - 1));
  Entry* e = t.slots[slot].load();
  if (!e || e->handle != handle) return false;
  t.slots[slot].store(nullptr);
  t.freed.push_back(slot);
  delete e;
  return true;
}

namespace {

// --- texels ---

constexpr uint32_t texelBytes(TexelFormat f) {
  switch (f) {
    case TexelFormat::u8:
    case TexelFormat::s8: return 1;
    case TexelFormat::u16:
    case TexelFormat::s16:
    case TexelFormat::f16: return 2;
    default: return 4;
  }
}

// A texel's channels: floats, or (raw) integers extended to 32 bits.
union Texel {
  float f[4];
  uint32_t u[4];
};

// Where a counted fetch reads: of each lane at most eight texels of two levels.
struct TexelTrace {
  uint32_t n = 0;
  uint64_t at[kLanes * 16];
};

struct Sampler {
  WarpState* warp;
  uint32_t lane;
  const TextureDescriptor* t;
  const TextureJob* job;
  TexelTrace* trace = nullptr;

  bool raw() const {
    return t->format == TexelFormat::u32 || t->format == TexelFormat::s32 ||
           (t->format < TexelFormat::u32 && !t->normalizedRead);
  }

  SONDE_DEVICE_CODE uint8_t* bytesAt(uint64_t address, uint32_t bytes, bool write) const {
    if (address - warp->windowBase < warp->windowSize && bytes <= warp->windowSize - (address - warp->windowBase))
      return reinterpret_cast<uint8_t*>(address + warp->deviceDelta);
    return static_cast<uint8_t*>(resolveLane(warp, 0, address, bytes, lane, write));
  }

  float channel(const uint8_t* p, unsigned c) const {
    switch (t->format) {
      case TexelFormat::u8: {
        const float v = static_cast<float>(p[c]) / 255.0f;
        if (!t->srgb || c == 3) return v;
        return v <= 0.04045f ? v / 12.92f : std::pow((v + 0.055f) / 1.055f, 2.4f);
      }
      case TexelFormat::s8: return std::fmax(static_cast<float>(static_cast<int8_t>(p[c])) / 127.0f, -1.0f);
      case TexelFormat::u16:
      case TexelFormat::s16:
      case TexelFormat::f16: {
        uint16_t v;
        std::memcpy(&v, p + 2 * c, 2);
        if (t->format == TexelFormat::f16) return halfToFloat(v);
        if (t->format == TexelFormat::u16) return static_cast<float>(v) / 65535.0f;
        return std::fmax(static_cast<float>(static_cast<int16_t>(v)) / 32767.0f, -1.0f);
      }
      default: {
        float v;
        std::memcpy(&v, p + 4 * c, 4);
        return v;
      }
    }
  }

  uint32_t integer(const uint8_t* p, unsigned c) const {
    uint32_t v = 0;
    const uint32_t bytes = texelBytes(t->format);
    std::memcpy(&v, p + bytes * c, bytes);
    if (t->format == TexelFormat::s8) return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int8_t>(v)));
    if (t->format == TexelFormat::s16) return static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(v)));
    return v;
  }

  // Channels that the format does not have are 0, the last one 1.
  SONDE_DEVICE_CODE Texel read(const TextureLevel& l, int64_t x, int64_t y, int64_t z) const {
    Texel r;
    const bool integers = raw();
    if (x < 0 || y < 0 || z < 0) {  // beyond a border
      for (unsigned c = 0; c < 4; ++c) {
        if (integers)
          r.u[c] = std::bit_cast<uint32_t>(t->border[c]);
        else
          r.f[c] = t->border[c];
      }
      return r;
    }
    const uint32_t element = texelBytes(t->format) * t->channels;
    const uint64_t at = l.address + static_cast<uint64_t>(z) * l.slicePitch + static_cast<uint64_t>(y) * l.pitch +
                        static_cast<uint64_t>(x) * element;
    if (trace && trace->n < std::size(trace->at)) trace->at[trace->n++] = at;
    const uint8_t* p = bytesAt(at, element, false);
    for (unsigned c = 0; c < 4; ++c) {
      const bool there = c < t->channels;
      if (integers)
        r.u[c] = there ? integer(p, c) : c == 3;
      else
        r.f[c] = there ? channel(p, c) : c == 3 ? 1.0f : 0.0f;
    }
    return r;
  }

  // --- coordinates ---

  TextureAddress mode(unsigned axis) const {
    const TextureAddress m = t->address[axis];
    // Repetition needs normalized coordinates.
    if (!t->normalizedCoordinates && (m == TextureAddress::wrap || m == TextureAddress::mirror))
      return TextureAddress::clamp;
    return m;
  }

  // An element's number on an axis of n elements; -1: beyond the border.
  static int64_t fold(int64_t i, uint32_t size, TextureAddress m) {
    const int64_t n = size;
    if (i >= 0 && i < n) return i;
    switch (m) {
      case TextureAddress::wrap: return (i % n + n) % n;
      case TextureAddress::mirror: {
        const int64_t k = (i % (2 * n) + 2 * n) % (2 * n);
        return k < n ? k : 2 * n - 1 - k;
      }
      case TextureAddress::border: return -1;
      default: return i < 0 ? 0 : n - 1;
    }
  }

  // The coordinate in elements.
  float scaled(float v, uint32_t size, bool normalized) const {
    if (std::isnan(v)) v = 0;
    if (normalized) v *= static_cast<float>(size);
    return std::fmin(std::fmax(v, -1073741824.0f), 1073741824.0f);
  }

  struct Axis {
    int64_t low = 0, high = 0;  // elements; equal when there is nothing between them
    float weight = 0;           // of the high one
  };
  Axis axis(float v, uint32_t size, TextureAddress m, bool normalized, bool between) const {
    Axis a;
    const float at = scaled(v, size, normalized);
    if (!between) {
      a.low = a.high = fold(static_cast<int64_t>(std::floor(at)), size, m);
      return a;
    }
    const auto steps = static_cast<int64_t>(std::floor((static_cast<double>(at) - 0.5) * 256 + 0.5));
    a.low = fold(steps >> 8, size, m);
    a.high = fold((steps >> 8) + 1, size, m);
    a.weight = static_cast<float>(steps & 255) / 256.0f;
    return a;
  }

  static Texel mix(const Texel& a, const Texel& b, float weight) {
    if (weight == 0) return a;
    Texel r;
    for (unsigned c = 0; c < 4; ++c) r.f[c] = (1 - weight) * a.f[c] + weight * b.f[c];
    return r;
  }

  // Which face of a cube a direction meets, and where (in [0, 1]).
  static uint32_t face(float x, float y, float z, float& u, float& v) {
    const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
    float m, s, w;
    uint32_t f;
    if (az >= ax && az >= ay) {
      f = z < 0 ? 5 : 4, m = az, s = z < 0 ? -x : x, w = -y;
    } else if (ay >= ax) {
      f = y < 0 ? 3 : 2, m = ay, s = x, w = y < 0 ? -z : z;
    } else {
      f = x < 0 ? 1 : 0, m = ax, s = x < 0 ? z : -z, w = -y;
    }
    u = (s / m + 1) / 2;
    v = (w / m + 1) / 2;
    return f;
  }

  // The place of a lane's coordinates: up to three axes and a fixed slice.
  struct Place {
    float c[3] = {};
    unsigned axes = 1;
    int64_t slice = 0;
    bool normalized = false;
    std::array<TextureAddress, 3> mode;
  };

  Place place(const uint32_t* words) const {
    auto real = [&](unsigned i) {
      const uint32_t w = words[i * kLanes + lane];
      return job->integerCoordinates ? static_cast<float>(static_cast<int32_t>(w)) : std::bit_cast<float>(w);
    };
    const auto layers = static_cast<int64_t>(t->levels[0].slices);
    auto layer = [&](int64_t perLayer) {
      const auto w = static_cast<int32_t>(words[lane]);
      const int64_t last = std::max<int64_t>(layers / perLayer - 1, 0);
      return std::min<int64_t>(std::max<int64_t>(w, 0), last) * perLayer;
    };
    Place p;
    p.normalized = t->normalizedCoordinates && !job->integerCoordinates;
    p.mode = {mode(0), mode(1), mode(2)};
    switch (job->shape) {
      case TextureShape::d1: p.c[0] = real(0); break;
      case TextureShape::d2: p.axes = 2, p.c[0] = real(0), p.c[1] = real(1); break;
      case TextureShape::d3: p.axes = 3, p.c[0] = real(0), p.c[1] = real(1), p.c[2] = real(2); break;
      case TextureShape::layered1: p.slice = layer(1), p.c[0] = real(1); break;
      case TextureShape::layered2: p.axes = 2, p.slice = layer(1), p.c[0] = real(1), p.c[1] = real(2); break;
      case TextureShape::cube:
      case TextureShape::layeredCube: {
        const unsigned first = job->shape == TextureShape::cube ? 0 : 1;
        p.axes = 2;
        p.slice = (first ? layer(6) : 0) + face(real(first), real(first + 1), real(first + 2), p.c[0], p.c[1]);
        p.normalized = true;
        p.mode.fill(TextureAddress::clamp);  // a face ends at its edges
        break;
      }
    }
    return p;
  }

  SONDE_DEVICE_CODE Texel sampleLevel(const Place& p, const TextureLevel& l) const {
    const bool between = t->filter && !raw() && !job->integerCoordinates;
    const Axis x = axis(p.c[0], l.width, p.mode[0], p.normalized, between);
    Axis y, z;
    if (p.axes > 1) y = axis(p.c[1], l.height, p.mode[1], p.normalized, between);
    if (p.axes > 2)
      z = axis(p.c[2], l.slices, p.mode[2], p.normalized, between);
    else
      z.low = z.high = p.slice;
    auto row = [&](int64_t j, int64_t k) {
      const Texel a = read(l, x.low, j, k);
      return x.weight == 0 ? a : mix(a, read(l, x.high, j, k), x.weight);
    };
    auto plane = [&](int64_t k) {
      return y.weight == 0 ? row(y.low, k) : mix(row(y.low, k), row(y.high, k), y.weight);
    };
    return z.weight == 0 ? plane(z.low) : mix(plane(z.low), plane(z.high), z.weight);
  }

  float levelOf(const Place& p, const uint32_t* words) const {
    float lod = 0;
    if (job->lod == TextureLod::level) {
      lod = std::bit_cast<float>(words[kTextureLodRow * kLanes + lane]);
    } else if (job->lod == TextureLod::gradient) {
      float longest = 0;
      for (unsigned g = 0; g < 2; ++g) {
        float sum = 0;
        for (unsigned a = 0; a < p.axes; ++a) {
          float d = std::bit_cast<float>(words[(kTextureLodRow + g * kTextureGradientRows + a) * kLanes + lane]);
          const TextureLevel& l = t->levels[0];
          if (p.normalized) d *= static_cast<float>(a == 0 ? l.width : a == 1 ? l.height : l.slices);
          sum += d * d;
        }
        longest = std::fmax(longest, std::sqrt(sum));
      }
      lod = longest > 0 ? std::log2(longest) : 0;
    }
    if (std::isnan(lod)) lod = 0;
    lod = std::fmin(std::fmax(lod + t->levelBias, t->minLevel), t->maxLevel);
    return std::fmin(std::fmax(lod, 0.0f), static_cast<float>(t->levelCount - 1));
  }

  SONDE_DEVICE_CODE Texel sample(const uint32_t* words) const {
    if (t->linearMemory && job->shape == TextureShape::d1) {
      const uint32_t w = words[lane];
      const int64_t i = job->integerCoordinates
                            ? int64_t{static_cast<int32_t>(w)}
                            : static_cast<int64_t>(std::floor(scaled(std::bit_cast<float>(w), 1, false)));
      if (i < 0 || i >= t->levels[0].width) return Texel{.u = {0, 0, 0, 0}};
      return read(t->levels[0], i, 0, 0);
    }
    const Place p = place(words);
    if (t->levelCount == 1) return sampleLevel(p, t->levels[0]);
    const float lod = levelOf(p, words);
    if (!t->levelFilter || raw()) return sampleLevel(p, t->levels[static_cast<unsigned>(lod + 0.5f)]);
    const auto low = static_cast<unsigned>(lod);
    const float weight = std::floor((lod - static_cast<float>(low)) * 256) / 256;
    const Texel first = sampleLevel(p, t->levels[low]);
    return weight == 0 ? first : mix(first, sampleLevel(p, t->levels[low + 1]), weight);
  }

  // One channel of the four elements around a place, counterclockwise from the lower left.
  SONDE_DEVICE_CODE Texel gather(const uint32_t* words) const {
    const Place p = place(words);
    const TextureLevel& l = t->levels[0];
    const Axis x = axis(p.c[0], l.width, p.mode[0], p.normalized, true);
    const Axis y = axis(p.c[1], l.height, p.mode[1], p.normalized, true);
    const int64_t at[4][2] = {{x.low, y.high}, {x.high, y.high}, {x.high, y.low}, {x.low, y.low}};
    Texel r;
    for (unsigned i = 0; i < 4; ++i) r.u[i] = read(l, at[i][0], at[i][1], p.slice).u[job->component];
    return r;
  }

  // Where a surface access goes; null: outside, and the instruction ignores that.
  SONDE_DEVICE_CODE uint8_t* surfaceAt(const uint32_t* words, uint32_t bytes, bool write) const {
    const TextureLevel& l = t->levels[0];
    const bool layered = job->shape == TextureShape::layered1 || job->shape == TextureShape::layered2;
    const unsigned axes = job->shape == TextureShape::d1 || job->shape == TextureShape::layered1 ? 1
                          : job->shape == TextureShape::d3                                       ? 3
                                                                                                 : 2;
    const int64_t sizes[3] = {int64_t{l.width} * texelBytes(t->format) * t->channels, l.height, l.slices};
    int64_t at[3] = {};
    for (unsigned a = 0; a < axes; ++a) at[a] = static_cast<int32_t>(words[(a + layered) * kLanes + lane]);
    if (layered) at[2] = static_cast<int32_t>(words[lane]);
    for (unsigned a = 0; a < 3; ++a) {
      const int64_t last = a == 0 ? sizes[0] - bytes : sizes[a] - 1;
      if (at[a] >= 0 && at[a] <= last) continue;
      if (job->bounds == SurfaceBounds::zero) return nullptr;
      if (job->bounds == SurfaceBounds::trap)
        raiseFault(warp, kErrorLaunchFailed, 1u << lane, l.address,
                   write ? "a surface write outside the surface at" : "a surface read outside the surface at");
      at[a] = at[a] < 0 ? 0 : last;
    }
    if (at[0] % bytes)
      raiseFault(warp, kErrorMisalignedAddress, 1u << lane, l.address + static_cast<uint64_t>(at[0]),
                 write ? "a misaligned surface write to" : "a misaligned surface read of");
    return bytesAt(l.address + static_cast<uint64_t>(at[2]) * l.slicePitch + static_cast<uint64_t>(at[1]) * l.pitch +
                       static_cast<uint64_t>(at[0]),
                   bytes, write);
  }

  uint32_t query() const {
    const TextureLevel& l = t->levels[0];
    switch (job->query) {
      case TextureQuery::width: return l.width;
      case TextureQuery::height: return l.height;
      case TextureQuery::channels: return t->channels;
      case TextureQuery::levels: return t->levelCount;
      case TextureQuery::normalized: return t->normalizedCoordinates;
      default: return l.slices;
    }
  }
};

SONDE_DEVICE_CODE const TextureDescriptor* checked(WarpState* warp, uint64_t handle, uint32_t lane, bool surface) {
  const TextureDescriptor* t = find(handle);
  if (!t) {
    // The address of a reference: the variable holds the handle of what is bound to it.
    const auto a = memory::Allocator::get().find(handle);
    if (a && a->kind == memory::Kind::deviceStatic && a->contains(handle, 8) && handle % 8 == 0)
      t = find(*reinterpret_cast<const uint64_t*>(memory::Allocator::hostAccess(handle)));
  }
  if (!t || t->surface != surface)
    raiseFault(warp, kErrorIllegalAddress, 1u << lane, handle,
               surface ? "no surface has the handle" : "no texture has the handle");
  return t;
}

// Lane by lane, with the place of every texel noted.
SONDE_DEVICE_CODE void countedTexture(WarpState* warp, const TextureJob* job, const uint64_t* handles,
                                      const uint32_t* words, uint32_t mask, uint32_t* out) {
  TexelTrace trace;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Sampler s{warp, lane, checked(warp, handles[lane], lane, false), job, &trace};
    const Texel r = job->op == TextureOp::gather ? s.gather(words) : s.sample(words);
    for (unsigned c = 0; c < 4; ++c) out[c * kLanes + lane] = r.u[c];
  }
  if (trace.n) countTexels(warp, trace.at, trace.n);
}

// out: four rows of 32 words.
SONDE_DEVICE_CODE void texture(WarpState* warp, const TextureJob* job, const uint64_t* handles, const uint32_t* words,
                               uint32_t mask, uint32_t* out) {
  if (job->counts) {
    countedTexture(warp, job, handles, words, mask, out);
    return;
  }
  if (mask && job->op == TextureOp::sample) {
    const uint64_t handle = handles[__builtin_ctz(mask)];
    uint64_t others = 0;
    for (uint32_t l = 0; l < kLanes; ++l) others |= (handles[l] ^ handle) & (0 - uint64_t{mask >> l & 1});
    const TextureDescriptor* t = others == 0 ? find(handle) : nullptr;
    if (t && !t->surface && sampleWarp(*warp, *job, *t, words, mask, out)) return;
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const TextureDescriptor* t =
        job->op == TextureOp::query ? find(handles[lane]) : checked(warp, handles[lane], lane, false);
    if (!t) t = checked(warp, handles[lane], lane, false);
    const Sampler s{warp, lane, t, job};
    if (job->op == TextureOp::query) {
      out[lane] = s.query();
      continue;
    }
    const Texel r = job->op == TextureOp::gather ? s.gather(words) : s.sample(words);
    for (unsigned c = 0; c < 4; ++c) out[c * kLanes + lane] = r.u[c];
  }
}

// data: a row of 32 64-bit words per element.
SONDE_DEVICE_CODE void surface(WarpState* warp, const TextureJob* job, const uint64_t* handles, const uint32_t* words,
                               uint32_t mask, uint64_t* data) {
  const bool write = job->op == TextureOp::store;
  const uint32_t bytes = uint32_t{job->elementBytes} * job->elements;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(__builtin_ctz(m));
    const Sampler s{warp, lane, checked(warp, handles[lane], lane, true), job};
    uint8_t* at = s.surfaceAt(words, bytes, write);
    for (unsigned i = 0; i < job->elements; ++i) {
      uint64_t& word = data[i * kLanes + lane];
      if (write) {
        if (at) std::memcpy(at + i * job->elementBytes, &word, job->elementBytes);
      } else {
        word = 0;
        if (at) std::memcpy(&word, at + i * job->elementBytes, job->elementBytes);
      }
    }
  }
}

}  // namespace

std::span<const jit::RuntimeSymbol> textureHelpers() {
  static const jit::RuntimeSymbol symbols[] = {
      {"sonde_texture", reinterpret_cast<void*>(&texture)},
      {"sonde_surface", reinterpret_cast<void*>(&surface)},
  };
  return symbols;
}

}  // namespace sonde::softgpu::exec
