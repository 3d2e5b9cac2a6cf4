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

// The formats of 4 and 6 bits: every number of them is worked out from its fields. They have neither infinities nor
// NaN; a NaN becomes the largest number.
struct Tiny {
  const char* type;
  unsigned exponentBits, fractionBits, shift;  // distance of the two codes in a word
};
constexpr Tiny kTiny[] = {{"e2m1x2", 2, 1, 4}, {"e2m3x2", 2, 3, 8}, {"e3m2x2", 3, 2, 8}};

double tinyValue(const Tiny& t, uint32_t code) {
  const unsigned signBit = t.exponentBits + t.fractionBits, fraction = code & ((1u << t.fractionBits) - 1);
  const int bias = (1 << (t.exponentBits - 1)) - 1;
  const int exponent = static_cast<int>(code >> t.fractionBits & ((1u << t.exponentBits) - 1));
  const int scale = (exponent ? exponent : 1) - bias - static_cast<int>(t.fractionBits);
  const double v = std::ldexp(fraction + (exponent ? 1u << t.fractionBits : 0), scale);
  return code >> signBit & 1 ? -v : v;
}

uint32_t tinyRounded(const Tiny& t, double v) {
  const uint32_t top = (1u << (t.exponentBits + t.fractionBits)) - 1;
  if (std::isnan(v)) return top;
  uint32_t best = 0;
  double distance = 1e300;
  const double m = std::min(std::fabs(v), tinyValue(t, top));
  for (uint32_t code = 0; code <= top; ++code) {
    const double d = std::fabs(tinyValue(t, code) - m);
    if (d > distance || (d == distance && (code & 1))) continue;
    best = code;
    distance = d;
  }
  return best | (std::signbit(v) ? top + 1 : 0);
}

TEST(JitSmallFloat, FourAndSixBits) {
  EXPECT_EQ(6.0, tinyValue(kTiny[0], 7));
  EXPECT_EQ(7.5, tinyValue(kTiny[1], 31));
  EXPECT_EQ(28.0, tinyValue(kTiny[2], 31));
  EXPECT_EQ(-0.0625, tinyValue(kTiny[2], 33));
  for (const Tiny& t : kTiny) {
    std::vector<Slots> words;
    const uint32_t codes = 2u << (t.exponentBits + t.fractionBits);
    for (uint32_t i = 0; i < codes; ++i)
      for (uint32_t j = 0; j < codes; ++j) words.push_back(Slots{i | j << t.shift});
    check({std::string("cvt.rn.f16x2.") + t.type, "D a"}, words, [&](const Slots& s) {
      uint64_t both = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const double v = tinyValue(t, static_cast<uint32_t>(s[0] >> (t.shift * i)) & (codes - 1));
        both |= static_cast<uint64_t>(f16Reference().round(v, std::signbit(v), Mode::nearest)) << (16 * i);
      }
      return Slots{both};
    });
    // Around every number and middle, and the edges of f32.
    std::vector<uint32_t> values;
    for (uint32_t code = 0; code < 4 * codes; ++code) {
      const auto v = static_cast<float>(tinyValue(t, code % codes) + (code / codes) * tinyValue(t, 1) / 2);
      for (uint32_t b : {bitsOf(v), bitsOf(v) + 1, bitsOf(v) - 1, bitsOf(-v)}) values.push_back(b);
    }
    for (uint64_t e : edgesF32()) values.push_back(static_cast<uint32_t>(e));
    std::vector<Slots> pairs;
    for (size_t i = 0; i < values.size(); ++i) pairs.push_back(Slots{values[i], values[(7 * i + 3) % values.size()]});
    for (const bool relu : {false, true})
      check({std::string("cvt.rn.satfinite.") + (relu ? "relu." : "") + t.type + ".f32", "D a b"}, pairs,
            [&](const Slots& s) {
              auto one = [&](uint64_t bits) -> uint64_t {
                const float f = floatOf(bits);
                return relu && f <= 0 ? 0 : tinyRounded(t, f);
              };
              return Slots{one(s[0]) << t.shift | one(s[1])};
            });
  }
}

TEST(JitSmallFloat, PowersOfTwo) {
  std::vector<Slots> words;
  for (uint32_t code = 0; code < 65536; ++code) words.push_back(Slots{code});
  check({"cvt.rn.bf16x2.ue8m0x2", "D a"}, words, [](const Slots& s) {
    auto one = [](uint64_t x) -> uint64_t { return x == 255 ? 0x7fff : x == 0 ? 0x0040 : x << 7; };
    return Slots{one(s[0] >> 8 & 255) << 16 | one(s[0] & 255)};
  });
  std::vector<Slots> pairs;
  for (uint64_t e : edgesF32()) pairs.push_back(Slots{e, e ^ 0x80000001u});
  for (uint32_t b : {0u, 1u, 0x00400000u, 0x00400001u, 0x007fffffu, 0x3f800000u, 0x3f800001u, 0x7f7fffffu, 0x7f800000u})
    pairs.push_back(Slots{b, b | 0x80000000u});
  for (const bool up : {false, true})
    for (const bool satfinite : {false, true})
      check({std::string("cvt.") + (up ? "rp." : "rz.") + (satfinite ? "satfinite." : "") + "ue8m0x2.f32", "D a b"},
            pairs, [&](const Slots& s) {
              auto one = [&](uint64_t bits) -> uint64_t {
                const double m = std::fabs(floatOf(bits));
                if (std::isnan(m)) return 255;
                const int most = satfinite ? 254 : 255;
                if (std::isinf(m)) return static_cast<uint64_t>(most);
                // Below 2^-126 the field is 0, up to 2^-127 also when rounded up.
                if (m < 0x1p-126) return up && m > 0x1p-127 ? 1 : 0;
                int exponent = std::ilogb(m);
                if (up && m > std::ldexp(1.0, exponent)) ++exponent;
                return static_cast<uint64_t>(std::min(exponent + 127, most));
              };
              return Slots{one(s[0]) << 8 | one(s[1])};
            });
}

// Two f32 in one register, and sums of an f32 with narrower ones: as the scalar instructions.
TEST(JitSmallFloat, PackedSingleAndMixedPrecision) {
  std::vector<Slots> inputs;
  uint64_t state = 11;
  const std::vector<uint64_t> edges = edgesF32();
  for (size_t i = 0; i < 4000; ++i) {
    Slots s{};
    for (size_t k = 0; k < 3; ++k) {
      const uint64_t x = nextRandom(state);
      s[k] = (i % 2 ? edges[x % edges.size()] : x & 0xffffffff) << 32 | edges[(x >> 32) % edges.size()];
    }
    inputs.push_back(s);
  }
  auto lower = [](const Slots& s, unsigned shift) {
    Slots r = s;
    for (size_t k = 0; k < 3; ++k) r[k] = s[k] >> shift & 0xffffffff;
    return r;
  };
  for (const char* form : {"add.rn", "sub.rz.ftz", "mul.rp", "fma.rm", "fma.rn.ftz"}) {
    const std::string operands = form[0] == 'f' ? "D a b c" : "D a b";
    std::vector<Slots> halves[2];
    for (unsigned h = 0; h < 2; ++h)
      for (const Slots& s : inputs) halves[h].push_back(lower(s, 32 * h));
    const auto low = run({std::string(form) + ".f32", operands}, Machine::hostScalar, halves[0]);
    const auto high = run({std::string(form) + ".f32", operands}, Machine::hostScalar, halves[1]);
    size_t at = 0;
    for (const Machine m : kMachines) {
      const auto both = run({std::string(form) + ".f32x2", operands}, m, inputs);
      for (at = 0; at < inputs.size(); ++at)
        ASSERT_EQ(both[at][0], high[at][0] << 32 | low[at][0]) << form << " " << name(m) << " " << at;
    }
  }
  for (const Half* h : {&f16(), &bf16()}) {
    std::vector<Slots> mixed, wide;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const uint64_t x = inputs[i][0] & 0xffff, y = inputs[i][1] & 0xffff, z = inputs[i][2] >> 32;
      if (h->reference.isNan(static_cast<uint32_t>(x)) || h->reference.isNan(static_cast<uint32_t>(y))) continue;
      auto single = [&](uint64_t c) {
        return uint64_t{bitsOf(static_cast<float>(h->reference.value(static_cast<uint32_t>(c))))};
      };
      mixed.push_back(Slots{x, y, z});
      wide.push_back(Slots{single(x), single(y), z});
    }
    for (const char* form : {"add.rn", "sub.rz.sat", "fma.rp"}) {
      const bool three = form[0] == 'f';
      const auto expected = run({std::string(form) + ".f32", three ? "D a b c" : "D a c"}, Machine::hostScalar, wide);
      for (const Machine m : kMachines) {
        const auto got = run({std::string(form) + ".f32." + h->name, three ? "D a b c" : "D a c"}, m, mixed);
        for (size_t i = 0; i < mixed.size(); ++i)
          ASSERT_EQ(got[i][0], expected[i][0]) << form << " " << h->name << " " << name(m) << " " << i;
      }
    }
  }
}

// .ftz and .sat of f16 and f16x2 over every encoding: subnormals count as zero, results are cut to [0, 1], NaN to 0.
TEST(JitSmallFloat, FlushingAndSaturationOfHalves) {
  const SmallReference& r = f16Reference();
  std::vector<Slots> inputs;
  uint64_t state = 5;
  for (uint32_t code = 0; code < 65536; ++code) {
    const uint64_t x = nextRandom(state);
    // Partners that make small results, cancel, or are anything.
    const uint64_t y = code % 4 == 0 ? code ^ 0x8001 : code % 4 == 1 ? 0x0400 | (x & 0x83ff) : x & 0xffff;
    inputs.push_back(Slots{code, y, x >> 16 & 0xffff});
  }
  auto flush = [](uint32_t code) { return (code & 0x7c00) == 0 ? code & 0x8000 : code; };
  for (const char* op : {"add", "sub", "mul", "fma"})
    for (const bool ftz : {false, true})
      for (const bool sat : {false, true}) {
        if (!ftz && !sat) continue;
        auto one = [&](uint32_t x, uint32_t y, uint32_t z) -> uint32_t {
          if (ftz) x = flush(x), y = flush(y), z = flush(z);
          uint32_t code = 0;
          // A product of halves, and a sum of two, is exact in 64 bits.
          double exact = 0;
          if (op[0] == 'f') {
            code = fusedReference(r, x, y, z, true);
            exact = std::fma(r.value(x), r.value(y), r.value(z));
          } else {
            const double a = r.value(x), b = r.value(y);
            exact = op[0] == 'a' ? a + b : op[0] == 's' ? a - b : a * b;
            code = std::isnan(exact) ? r.nanCode() : r.round(exact, std::signbit(exact), Mode::nearest);
          }
          if (ftz && std::fabs(exact) < 0x1p-14) code = std::signbit(exact) ? 0x8000 : 0;
          if (sat) {
            const double v = r.value(code);
            code = !(v > 0) ? 0 : v > 1 ? 0x3c00 : code;
          }
          return code;
        };
        const std::string form = std::string(op) + ".rn" + (ftz ? ".ftz" : "") + (sat ? ".sat" : "");
        const std::string operands = op[0] == 'f' ? "D a b c" : "D a b";
        check({form + ".f16", operands}, inputs,
              [&](const Slots& s) { return Slots{one(s[0] & 0xffff, s[1] & 0xffff, s[2] & 0xffff)}; });
        std::vector<Slots> pairs;
        for (size_t i = 0; i < inputs.size(); i += 7) {
          Slots p{};
          for (size_t k = 0; k < 3; ++k) p[k] = inputs[i][k] | inputs[(i * 3 + 1) % inputs.size()][k] << 16;
          pairs.push_back(p);
        }
        check({form + ".f16x2", operands}, pairs, [&](const Slots& s) {
          auto part = [&](size_t k, unsigned shift) { return static_cast<uint32_t>(s[k] >> shift & 0xffff); };
          return Slots{uint64_t{one(part(0, 16), part(1, 16), part(2, 16))} << 16 |
                       one(part(0, 0), part(1, 0), part(2, 0))};
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
