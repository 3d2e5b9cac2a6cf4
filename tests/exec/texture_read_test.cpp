// SPDX-License-Identifier: Apache-2.0
//
// A warp's read of one texture, in vectors, gives bit by bit what the same read
// gives lane by lane, which it is when the lanes' textures are two that are alike.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "softgpu/exec/texture.h"
#include "softgpu/exec/texture_fast.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::exec {
namespace {

using Helper = void (*)(WarpState*, const TextureJob*, const uint64_t*, const uint32_t*, uint32_t, uint32_t*);
constexpr size_t kTexelBytes = 1 << 20;

struct Pair {
  uint64_t one, other;
  explicit Pair(const TextureDescriptor& t) : one(publishTexture(t)), other(publishTexture(t)) {}
  ~Pair() {
    retireTexture(one);
    retireTexture(other);
  }
};

class TextureRead : public testing::Test {
 protected:
  void SetUp() override {
    const auto& space = memory::AddressSpace::get();
    warp_.windowBase = space.all.base;
    warp_.windowSize = space.all.size;
    warp_.deviceDelta = static_cast<uint64_t>(space.deviceDelta);
    address_ = space.global.base + 4096;
    texels_ = reinterpret_cast<uint8_t*>(space.deviceView(address_));
    ASSERT_EQ(mprotect(texels_, kTexelBytes, PROT_READ | PROT_WRITE), 0);
    for (const auto& symbol : textureHelpers())
      if (std::string(symbol.name) == "sonde_texture") helper_ = reinterpret_cast<Helper>(symbol.address);
    ASSERT_NE(helper_, nullptr);
  }

  uint32_t number(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  // Places inside, at edges, beyond them, and what is no place at all.
  uint32_t coordinate(const TextureJob& job, const TextureDescriptor& t, uint32_t size) {
    if (job.integerCoordinates)
      return static_cast<uint32_t>(static_cast<int32_t>(number(3 * size)) - static_cast<int32_t>(size));
    const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity(),
                         3e38f,
                         -1e9f,
                         5e6f,
                         -0.0f,
                         1e-40f};
    if (number(200) == 0) return std::bit_cast<uint32_t>(odd[number(8)]);
    const auto n = static_cast<float>(size);
    float v = static_cast<float>(number(1 << 16)) / 65536 * n;
    switch (number(4)) {
      case 0: v = std::floor(v) + 0.5f; break;       // an element's middle
      case 1: v = std::floor(v * 512) / 512; break;  // 256ths and what lies between them
      case 2: v = v * 3 - n; break;
      default: break;
    }
    return std::bit_cast<uint32_t>(t.normalizedCoordinates ? v / n : v);
  }

  // True where no lane differs.
  testing::AssertionResult same(const TextureJob& job, const TextureDescriptor& t, const uint32_t* words,
                                uint32_t mask) {
    const Pair pair(t);
    uint64_t alike[kLanes], mixed[kLanes];
    for (unsigned l = 0; l < kLanes; ++l) alike[l] = pair.one, mixed[l] = l & 1 ? pair.one : pair.other;
    alignas(64) uint32_t fast[4 * kLanes] = {}, slow[4 * kLanes] = {};
    helper_(&warp_, &job, alike, words, mask, fast);
    if (!(mask & 0x55555555) || !(mask & 0xaaaaaaaa)) return testing::AssertionSuccess();  // all of one texture
    helper_(&warp_, &job, mixed, words, mask, slow);
    for (unsigned l = 0; l < kLanes; ++l) {
      if (!(mask >> l & 1)) continue;
      ++compared_;
      for (unsigned c = 0; c < 4; ++c)
        if (fast[c * kLanes + l] != slow[c * kLanes + l])
          return testing::AssertionFailure()
                 << "lane " << l << " of " << std::hex << mask << ", channel " << c << ": 0x" << fast[c * kLanes + l]
                 << ", lane by lane 0x" << slow[c * kLanes + l] << "; coordinates 0x" << words[l] << " 0x"
                 << words[kLanes + l] << " 0x" << words[2 * kLanes + l];
    }
    return testing::AssertionSuccess();
  }

  WarpState warp_{};
  uint64_t address_ = 0;
  uint8_t* texels_ = nullptr;
  Helper helper_ = nullptr;
  std::mt19937_64 random_{7};
  uint64_t compared_ = 0;
};

TEST_F(TextureRead, OfAllFormsIsAsLaneByLane) {
  uint64_t vectors = 0;
  for (int round = 0; round < 20000; ++round) {
    TextureDescriptor t;
    t.format = static_cast<TexelFormat>(number(8));
    t.channels = static_cast<uint8_t>(1u << number(3));
    t.filter = number(2);
    t.normalizedCoordinates = number(2);
    t.normalizedRead = number(2);
    for (auto& mode : t.address) mode = static_cast<TextureAddress>(number(4));
    for (auto& value : t.border) value = static_cast<float>(number(100)) / 7;
    TextureJob job;
    constexpr TextureShape shapes[] = {TextureShape::d1, TextureShape::d2,       TextureShape::d2,
                                       TextureShape::d3, TextureShape::layered1, TextureShape::layered2};
    job.shape = shapes[number(6)];
    job.integerCoordinates = number(6) == 0;
    TextureLevel& l = t.levels[0];
    const bool flat = job.shape == TextureShape::d1 || job.shape == TextureShape::layered1;
    const bool deep = job.shape != TextureShape::d1 && job.shape != TextureShape::d2;
    l.width = 1 + number(40);
    l.height = flat ? 1 : 1 + number(20);
    l.slices = deep ? 1 + number(6) : 1;
    l.address = address_;
    l.pitch = (l.width * 16 + 63) / 64 * 64;
    l.slicePitch = l.pitch * l.height;
    for (uint64_t i = 0; i < l.slicePitch * l.slices; i += 4) {
      // Small whole numbers and fractions of either sign; of the other formats any bits.
      const auto f = static_cast<float>(static_cast<int32_t>(number(2000)) - 1000) / 8;
      const uint32_t bits = t.format == TexelFormat::f32   ? std::bit_cast<uint32_t>(f)
                            : t.format == TexelFormat::f16 ? 0x3c004000u ^ (number(1 << 10) * 0x10001u)
                                                           : static_cast<uint32_t>(random_());
      std::memcpy(texels_ + i, &bits, 4);
    }
    alignas(64) uint32_t words[16 * kLanes] = {};
    const bool layered = job.shape == TextureShape::layered1 || job.shape == TextureShape::layered2;
    const uint32_t sizes[3] = {l.width, l.height, l.slices};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (layered) words[lane] = number(10) - 2;
      for (unsigned i = 0; i < 3; ++i) words[(i + layered) * kLanes + lane] = coordinate(job, t, sizes[i]);
    }
    const uint32_t masks[] = {~0u, 0xffffu, static_cast<uint32_t>(random_()),
                              0x80000001u | static_cast<uint32_t>(random_())};
    const uint32_t mask = masks[number(4)];
    uint32_t out[4 * kLanes];
    vectors += mask && sampleWarp(warp_, job, t, words, mask, out);
    ASSERT_TRUE(same(job, t, words, mask))
        << "round " << round << ": format " << static_cast<int>(t.format) << " x " << int{t.channels} << ", shape "
        << static_cast<int>(job.shape) << ", filter " << t.filter << ", normalized " << t.normalizedCoordinates;
  }
  EXPECT_GT(vectors, 10000u);
  EXPECT_GT(compared_, 200000u);
}

// By hand: 4 x 2 floats, 10 x + 100 y; lanes along the first row's middles, then along quarters.
TEST_F(TextureRead, ValuesOfALinearRead) {
  TextureDescriptor t;
  t.filter = true;
  TextureLevel& l = t.levels[0];
  l.width = 4, l.height = 2, l.address = address_, l.pitch = 64, l.slicePitch = 128;
  for (int y = 0; y < 2; ++y)
    for (int x = 0; x < 4; ++x) {
      const auto v = static_cast<float>(10 * x + 100 * y);
      std::memcpy(texels_ + y * 64 + x * 4, &v, 4);
    }
  alignas(64) float words[16 * kLanes] = {};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    words[lane] = static_cast<float>(lane) / 8;  // -0.5 … 3.375 from the first middle
    words[kLanes + lane] = lane < 16 ? 0.5f : 1.0f;
  }
  uint32_t out[4 * kLanes];
  TextureJob job;
  ASSERT_TRUE(sampleWarp(warp_, job, t, reinterpret_cast<const uint32_t*>(words), ~0u, out));
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const float along = std::min(std::max(static_cast<float>(lane) / 8 - 0.5f, 0.0f), 3.0f);
    EXPECT_EQ(std::bit_cast<float>(out[lane]), 10 * along + (lane < 16 ? 0 : 50)) << lane;
    EXPECT_EQ(out[kLanes + lane], 0u);
    EXPECT_EQ(std::bit_cast<float>(out[3 * kLanes + lane]), 1.0f);
  }
}

}  // namespace
}  // namespace sonde::softgpu::exec
