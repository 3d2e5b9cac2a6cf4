// SPDX-License-Identifier: Apache-2.0
//
// f16, bf16 and 8-bit formats: all encodings, and arithmetic against exact sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "harness.h"
#include "small_reference.h"

namespace sonde::test {
namespace {

uint32_t bitsOf(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}
float floatOf(uint64_t bits) {
  const auto u = static_cast<uint32_t>(bits);
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

struct Half {
  const char* name;
  const SmallReference& reference;
  unsigned shift;  // of its neighbours' distance in f32 bits
};
const Half& f16() {
  static const Half h{"f16", f16Reference(), 13};
  return h;
}
const Half& bf16() {
  static const Half h{"bf16", bf16Reference(), 16};
  return h;
}

struct Named {
  const char* name;
  Mode mode;
};
constexpr Named kModes[] = {{"rn", Mode::nearest}, {"rz", Mode::zero}, {"rm", Mode::down}, {"rp", Mode::up}};

std::vector<Slots> allCodes() {
  std::vector<Slots> v;
  for (uint32_t code = 0; code < 65536; ++code) v.push_back(Slots{code});
  return v;
}

TEST(JitSmallFloat, WideningOfEveryEncoding) {
  check({"cvt.f32.f16", "D a"}, allCodes(), [](const Slots& s) {
    const auto code = static_cast<uint32_t>(s[0]);
    return Slots{f16Reference().isNan(code) ? 0x7fffffffu : bitsOf(static_cast<float>(f16Reference().value(code)))};
  });
  check({"cvt.f32.bf16", "D a"}, allCodes(), [](const Slots& s) { return Slots{(s[0] & 0xffff) << 16}; });
  for (const char* type : {"e4m3x2", "e5m2x2"}) {
    const SmallReference& r = type[1] == '4' ? e4m3Reference() : e5m2Reference();
    check({std::string("cvt.rn.f16x2.") + type, "D a"}, allCodes(), [&](const Slots& s) {
      uint64_t both = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const auto code = static_cast<uint32_t>(s[0] >> (8 * i) & 0xff);
        const double v = r.value(code);
        both |= static_cast<uint64_t>(f16Reference().round(v, std::signbit(v), Mode::nearest)) << (16 * i);
      }
      return Slots{both};
    });
  }
}

// Every value of the format, the middle to the next one, and the f32 next to both.
std::vector<Slots> aroundEveryValue(const Half& h) {
  std::vector<Slots> v;
  for (uint32_t code = 0; code < 65536; ++code) {
    if (h.reference.isNan(code)) continue;
    const uint32_t bits = bitsOf(static_cast<float>(h.reference.value(code)));
    const uint32_t middle = bits + (1u << (h.shift - 1));
    for (uint32_t b : {bits, bits + 1, bits - 1, middle, middle + 1, middle - 1}) v.push_back(Slots{b});
  }
  // Below the smallest subnormal of f16 values lie closer than bits suggest.
  for (uint32_t b = 0x32000000; b < 0x38900000; b += 0x1357) v.push_back(Slots{b});
  for (uint64_t e : edgesF32()) v.push_back(Slots{e});
  return v;
}

TEST(JitSmallFloat, RoundingFromSingleInEveryMode) {
  for (const Half* h : {&f16(), &bf16()}) {
    const std::vector<Slots> inputs = aroundEveryValue(*h);
    for (const Named& m : kModes)
      check({std::string("cvt.") + m.name + "." + h->name + ".f32", "D a"}, inputs, [&](const Slots& s) {
        const float f = floatOf(s[0]);
        return Slots{h->reference.round(f, std::signbit(f), m.mode)};
      });
    check({std::string("cvt.rn.satfinite.") + h->name + ".f32", "D a"}, inputs, [&](const Slots& s) {
      const float f = floatOf(s[0]);
      return Slots{h->reference.round(f, std::signbit(f), Mode::nearest, true)};
    });
  }
}

TEST(JitSmallFloat, EightBitFormatsFromEveryHalf) {
  for (const char* type : {"e4m3x2", "e5m2x2"}) {
    const SmallReference& r = type[1] == '4' ? e4m3Reference() : e5m2Reference();
    std::vector<Slots> inputs;
    for (uint32_t code = 0; code < 65536; ++code) inputs.push_back(Slots{code | (code * 0x9e37u & 0xffff) << 16});
    check({std::string("cvt.rn.satfinite.") + type + ".f16x2", "D a"}, inputs, [&](const Slots& s) {
      uint64_t both = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const auto code = static_cast<uint32_t>(s[0] >> (16 * i) & 0xffff);
        const double v = f16Reference().value(code);
        both |= static_cast<uint64_t>(r.round(v, std::signbit(v), Mode::nearest, true)) << (8 * i);
      }
      return Slots{both};
    });
  }
}

// x*y + z (or a sum, or a product) rounded once. The sum is taken with its
// exact error, which decides where the sum itself lies on a middle.
uint32_t fusedReference(const SmallReference& r, uint32_t x, uint32_t y, uint32_t z, bool hasAddend) {
  const double a = r.value(x), b = r.value(y), c = hasAddend ? r.value(z) : -0.0;
  if (std::isnan(a) || std::isnan(b) || std::isnan(c)) return r.nanCode();
  const double plain = std::fma(a, b, c);  // for infinities and the signs of zeros
  if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(c))
    return r.round(plain, std::signbit(plain), Mode::nearest);
  const Exact p = static_cast<Exact>(a) * static_cast<Exact>(b), q = c;
  if (!hasAddend) return r.round(p, std::signbit(a) != std::signbit(b), Mode::nearest);
  const Exact sum = p + q, qPart = sum - p, pPart = sum - qPart;
  const Exact error = (p - pPart) + (q - qPart);
  if (sum == 0) return r.round(0, std::signbit(plain), Mode::nearest);
  return r.round(sum, sum < 0, Mode::nearest, false, error > 0 ? 1 : error < 0 ? -1 : 0);
}

TEST(JitSmallFloat, ArithmeticRoundsOnce) {
  for (const Half* h : {&f16(), &bf16()}) {
    const std::vector<uint64_t> edges = h == &f16() ? edgesF16() : edgesBf16();
    const std::string t = h->name;
    auto cut = [](uint64_t r, size_t) { return r & 0xffff; };
    std::vector<Slots> inputs = combine({edges, edges, edges}, 60000, cut);
    // Products on a middle with a far smaller addend: where two roundings differ from one.
    uint64_t state = 3;
    for (int i = 0; i < 20000; ++i) {
      const uint64_t x = nextRandom(state), one = h == &f16() ? 0x3c00 : 0x3f80;
      inputs.push_back(Slots{one | (x & 0x3f), one | (x >> 8 & 0x3f), (x >> 16 & 0x8000) | (x >> 32 & 0x3ff)});
    }
    check({"fma.rn." + t, "D a b c"}, inputs, [&](const Slots& s) {
      return Slots{fusedReference(h->reference, s[0] & 0xffff, s[1] & 0xffff, s[2] & 0xffff, true)};
    });
    check({"mul.rn." + t, "D a b"}, inputs,
          [&](const Slots& s) { return Slots{fusedReference(h->reference, s[0] & 0xffff, s[1] & 0xffff, 0, false)}; });
    const uint32_t one = h == &f16() ? 0x3c00 : 0x3f80;
    check({"add.rn." + t, "D a b"}, inputs,
          [&](const Slots& s) { return Slots{fusedReference(h->reference, s[0] & 0xffff, one, s[1] & 0xffff, true)}; });
    check({"sub.rn." + t, "D a b"}, inputs, [&](const Slots& s) {
      return Slots{fusedReference(h->reference, s[1] & 0xffff, one | 0x8000, s[0] & 0xffff, true)};
    });
  }
}

TEST(JitSmallFloat, IntegersFromEveryHalf) {
  for (const Half* h : {&f16(), &bf16()})
    for (const char* d : {"s16", "u16", "s32", "u32"}) {
      const unsigned bits = d[1] == '1' ? 16 : 32;
      const double high = std::ldexp(1.0, static_cast<int>(d[0] == 's' ? bits - 1 : bits)) - 1;
      const double low = d[0] == 's' ? -high - 1 : 0;
      check({std::string("cvt.rni.") + d + "." + h->name, "D a"}, allCodes(), [&](const Slots& s) {
        const double v = h->reference.value(static_cast<uint32_t>(s[0]));
        const double r = std::isnan(v) ? 0 : std::nearbyint(std::min(std::max(v, low), high));
        return Slots{static_cast<uint64_t>(static_cast<int64_t>(r)) & (bits == 16 ? 0xffff : 0xffffffff)};
      });
    }
}

}  // namespace
}  // namespace sonde::test
