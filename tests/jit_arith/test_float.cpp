// SPDX-License-Identifier: Apache-2.0
//
// f32 and f64 in the four rounding modes against the host's own, set by
// fesetround; conversions between integers and floats; all look-up tables of lop3.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "harness.h"

namespace sonde::test {
namespace {

struct Named {
  const char* name;
  int mode;
};
constexpr Named kModes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <class T>
T as(uint64_t bits) {
  T v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}
template <class T>
uint64_t bitsOf(T v) {
  uint64_t u = 0;
  std::memcpy(&u, &v, sizeof v);
  return u;
}

// Operations the compiler can neither fold nor move out of the rounding mode.
template <class T>
T compute(char op, int mode, T a, T b, T c) {
  volatile T x = a, y = b, z = c, r = 0;
  std::fesetround(mode);
  switch (op) {
    case '+': r = x + y; break;
    case '-': r = x - y; break;
    case '*': r = x * y; break;
    case '/': r = x / y; break;
    case 'f': r = std::fma(x, y, z); break;
    case 's': r = std::sqrt(x); break;
    case 'r': r = T{1} / x; break;
  }
  std::fesetround(FE_TONEAREST);
  return r;
}

template <class T>
void checkRounding(const std::string& type, const std::vector<uint64_t>& edges,
                   const std::function<uint64_t(uint64_t, size_t)>& shape) {
  struct Op {
    const char* name;
    char op;
    unsigned operands;
  };
  constexpr Op ops[] = {{"add", '+', 2}, {"sub", '-', 2},  {"mul", '*', 2}, {"div", '/', 2},
                        {"fma", 'f', 3}, {"sqrt", 's', 1}, {"rcp", 'r', 1}};
  const Equal equal = [](uint64_t got, uint64_t want) {
    const T g = as<T>(got), w = as<T>(want);
    if (std::isnan(w)) return sizeof(T) == 4 ? got == 0x7fffffff : std::isnan(g);
    return got == want;
  };
  for (const Op& op : ops) {
    std::vector<uint64_t> some;  // every other edge where there are three operands
    for (size_t i = 0; i < edges.size(); i += op.operands == 3 ? 2 : 1) some.push_back(edges[i]);
    const auto inputs = combine(std::vector<std::vector<uint64_t>>(op.operands, some), 4000, shape);
    for (const Named& m : kModes)
      check(
          {std::string(op.name) + "." + m.name + "." + type, op.operands == 3   ? "D a b c"
                                                             : op.operands == 2 ? "D a b"
                                                                                : "D a"},
          inputs,
          [&](const Slots& s) {
            return Slots{bitsOf(compute<T>(op.op, m.mode, as<T>(s[0]), as<T>(s[1]), as<T>(s[2])))};
          },
          equal);
  }
}

TEST(JitFloat, SingleInEveryRounding) {
  checkRounding<float>("f32", edgesF32(), [](uint64_t r, size_t) {
    return (r >> 60) < 8 ? (r & 0x807fffff) | (120 + (r >> 32 & 15)) << 23 : r & 0xffffffff;
  });
}
// What PTX says of .ftz and .sat, on top of the host's rounding: subnormal operands count as zeros of their sign, a
// subnormal result becomes one; then the result is cut to [0, 1], a NaN to 0.
float flushed(float v) { return v != 0 && std::fabs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }

TEST(JitFloat, FlushingAndSaturationInEveryRounding) {
  struct Op {
    const char* name;
    char op;
    unsigned operands;
    bool saturates;
  };
  constexpr Op ops[] = {{"add", '+', 2, true},  {"sub", '-', 2, true},   {"mul", '*', 2, true}, {"fma", 'f', 3, true},
                        {"div", '/', 2, false}, {"sqrt", 's', 1, false}, {"rcp", 'r', 1, false}};
  std::vector<uint64_t> some;
  for (uint64_t e : edgesF32()) some.push_back(e);
  // Sums and products near the smallest normal number and near 1.
  for (uint32_t b : {0x00800001u, 0x00ffffffu, 0x80800000u, 0x1fffffffu, 0x20000001u, 0x3f7fffffu, 0x3f800001u})
    some.push_back(b);
  for (const Op& op : ops) {
    const auto inputs = combine(std::vector<std::vector<uint64_t>>(op.operands, some), 4000,
                                [](uint64_t r, size_t) { return r & 0xffffffff; });
    for (const Named& m : kModes)
      for (const bool ftz : {false, true})
        for (const bool sat : {false, true}) {
          if ((!ftz && !sat) || (sat && !op.saturates)) continue;
          const std::string form = std::string(op.name) + "." + m.name + (ftz ? ".ftz" : "") + (sat ? ".sat" : "");
          check({form + ".f32", op.operands == 3   ? "D a b c"
                                : op.operands == 2 ? "D a b"
                                                   : "D a"},
                inputs, [&](const Slots& s) {
                  auto in = [&](size_t i) { return ftz ? flushed(as<float>(s[i])) : as<float>(s[i]); };
                  float r = compute<float>(op.op, m.mode, in(0), in(1), in(2));
                  if (ftz) r = flushed(r);
                  if (sat) r = !(r > 0) ? 0.0f : std::min(r, 1.0f);
                  return Slots{std::isnan(r) ? 0x7fffffffu : bitsOf(r)};
                });
        }
  }
}

TEST(JitFloat, FlushingBeforeIntegersAndSaturationAfterDoubles) {
  std::vector<Slots> inputs;
  for (uint64_t e : edgesF32()) inputs.push_back(Slots{e});
  for (uint32_t b : {1u, 0x80000001u, 0x007fffffu, 0x807fffffu, 0x3f000000u, 0x3fc00000u, 0xbf000000u, 0xbfc00000u})
    inputs.push_back(Slots{b});
  for (const char* to : {"s8", "u8", "s16", "u16", "s32", "u32"})
    for (const Named& m : kModes) {
      const unsigned bits = static_cast<unsigned>(std::atoi(to + 1));
      const double high = std::ldexp(1.0, static_cast<int>(to[0] == 's' ? bits - 1 : bits)) - 1;
      const double low = to[0] == 's' ? -high - 1 : 0;
      check({std::string("cvt.") + m.name + "i.ftz." + to + ".f32", "D a"}, inputs, [&](const Slots& s) {
        const float v = flushed(as<float>(s[0]));
        std::fesetround(m.mode);
        volatile double exact = v;
        const double whole = std::nearbyint(exact);
        std::fesetround(FE_TONEAREST);
        const double r = std::isnan(v) ? 0 : std::min(std::max(whole, low), high);
        return Slots{static_cast<uint64_t>(static_cast<int64_t>(r)) & ((uint64_t{1} << bits) - 1)};
      });
    }
  std::vector<Slots> wide;
  for (double v :
       {0.0, -0.0, 0.5, -0.5, 1.0, 1.0 + 0x1p-40, 1.0 - 0x1p-40, 0x1p-140, 1e-300, -1e-300, 3.0, 1e300, -1e300})
    wide.push_back(Slots{bitsOf(v)});
  wide.push_back(Slots{0x7ff8000000000000u});
  for (const Named& m : kModes)
    check({std::string("cvt.") + m.name + ".sat.f32.f64", "D a"}, wide, [&](const Slots& s) {
      const double v = as<double>(s[0]);
      std::fesetround(m.mode);
      volatile double exact = v;
      volatile float single = static_cast<float>(exact);
      std::fesetround(FE_TONEAREST);
      const float r = single;
      return Slots{bitsOf(!(r > 0) ? 0.0f : std::min(r, 1.0f))};
    });
}

TEST(JitFloat, DoubleInEveryRounding) {
  checkRounding<double>("f64", edgesF64(), [](uint64_t r, size_t) {
    return (r >> 60) < 8 ? (r & 0x800fffffffffffff) | (1015 + (r * 0x9e3779b97f4a7c15u >> 60)) << 52 : r;
  });
}

TEST(JitFloat, SingleFromDoubleInEveryRounding) {
  const auto inputs = combine({edgesF64()}, 20000, [](uint64_t r, size_t) {
    return (r & 0x800fffffffffffff) | (1023 - 160 + (r * 0x9e3779b97f4a7c15u >> 55) % 320) << 52;
  });
  for (const Named& m : kModes)
    check(
        {std::string("cvt.") + m.name + ".f32.f64", "D a"}, inputs,
        [&](const Slots& s) {
          volatile double d = as<double>(s[0]);
          std::fesetround(m.mode);
          volatile float f = static_cast<float>(d);
          std::fesetround(FE_TONEAREST);
          return Slots{bitsOf<float>(f)};
        },
        [](uint64_t got, uint64_t want) {
          return got == want || (std::isnan(as<float>(got)) && std::isnan(as<float>(want)));
        });
}

TEST(JitFloat, IntegersToFloatsInEveryRounding) {
  for (const char* type : {"u32", "s32", "u64", "s64"}) {
    const bool isSigned = type[0] == 's', wide = type[1] == '6';
    const auto inputs = combine({edgesInt(wide ? 64 : 32)}, 20000, [&](uint64_t r, size_t) {
      const uint64_t v = r >> (r % (wide ? 64 : 32));
      return wide ? v : v & 0xffffffff;
    });
    for (const Named& m : kModes)
      for (const bool toDouble : {false, true})
        check({std::string("cvt.") + m.name + (toDouble ? ".f64." : ".f32.") + type, "D a"}, inputs,
              [&](const Slots& s) {
                // 64 fraction bits hold every operand exactly.
                volatile long double v = !isSigned ? static_cast<long double>(s[0])
                                         : wide    ? static_cast<long double>(static_cast<int64_t>(s[0]))
                                                   : static_cast<long double>(static_cast<int32_t>(s[0]));
                std::fesetround(m.mode);
                volatile float f = static_cast<float>(v);
                volatile double d = static_cast<double>(v);
                std::fesetround(FE_TONEAREST);
                // An exact zero is positive in every mode.
                if (v == 0) return Slots{0};
                return Slots{toDouble ? bitsOf<double>(d) : bitsOf<float>(f)};
              });
  }
}

TEST(JitFloat, FloatsToIntegersSaturate) {
  struct Rounding {
    const char* name;
    long double (*f)(long double);
  };
  constexpr Rounding roundings[] = {{"rni", nearbyintl}, {"rzi", truncl}, {"rmi", floorl}, {"rpi", ceill}};
  for (const char* from : {"f32", "f64"}) {
    const bool isDouble = from[1] == '6';
    const auto inputs = combine({isDouble ? edgesF64() : edgesF32()}, 8000, [&](uint64_t r, size_t) {
      return isDouble ? (r & 0x800fffffffffffff) | (1020 + (r * 0x9e3779b97f4a7c15u >> 57)) % 2047 << 52
                      : (r & 0x807fffff) | (124 + (r >> 32) % 72) << 23;
    });
    for (const char* to : {"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"})
      for (const Rounding& m : roundings) {
        const unsigned bits = static_cast<unsigned>(std::stoi(to + 1));
        const bool isSigned = to[0] == 's';
        const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
        const long double high = std::ldexp(1.0L, static_cast<int>(isSigned ? bits - 1 : bits)) - 1;
        const long double low = isSigned ? -high - 1 : 0;
        check({std::string("cvt.") + m.name + "." + to + "." + from, "D a"}, inputs, [&](const Slots& s) {
          const long double v = isDouble ? static_cast<long double>(as<double>(s[0])) : as<float>(s[0]);
          if (std::isnan(v)) return Slots{isDouble || bits == 64 ? uint64_t{1} << (bits - 1) : 0};
          const long double r = std::min(std::max(m.f(v), low), high);
          return Slots{(r < 0 ? static_cast<uint64_t>(static_cast<int64_t>(r)) : static_cast<uint64_t>(r)) & mask};
        });
      }
  }
}

TEST(JitLogic, EveryTableOfLop3) {
  for (unsigned lut = 0; lut < 256; ++lut)
    check({"lop3.b32", "D a b c #" + std::to_string(lut)}, {Slots{0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa}},
          [&](const Slots&) { return Slots{lut * 0x01010101ull}; });
}

}  // namespace
}  // namespace sonde::test
