// SPDX-License-Identifier: Apache-2.0
//
// Integer arithmetic against 128-bit arithmetic.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness.h"

namespace sonde::test {
namespace {

using i128 = __int128;
using u128 = unsigned __int128;

struct Type {
  const char* name;
  unsigned bits;
  bool isSigned;
};
constexpr Type kTypes[] = {{"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                           {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};
constexpr Type kU32 = kTypes[1], kS32 = kTypes[4];

uint64_t cut(u128 v, unsigned bits) {
  return bits >= 64 ? static_cast<uint64_t>(v) : static_cast<uint64_t>(v) & ((uint64_t{1} << bits) - 1);
}
// The register's value as a number.
i128 number(uint64_t v, const Type& t) {
  v = cut(v, t.bits);
  if (t.isSigned && (v >> (t.bits - 1)) & 1) return static_cast<i128>(v) - (static_cast<i128>(1) << t.bits);
  return v;
}
i128 saturated(i128 v, const Type& t) {
  const i128 high = t.isSigned ? (static_cast<i128>(1) << (t.bits - 1)) - 1 : (static_cast<i128>(1) << t.bits) - 1;
  const i128 low = t.isSigned ? -(static_cast<i128>(1) << (t.bits - 1)) : 0;
  return v > high ? high : v < low ? low : v;
}

using Binary = std::function<i128(i128, i128)>;
void checkBinary(const std::string& mnemonic, const Type& t, const Binary& f, unsigned resultBits = 0) {
  const auto inputs = combine({edgesInt(t.bits), edgesInt(t.bits)}, 2000);
  check({mnemonic, "D a b"}, inputs, [&](const Slots& s) {
    return Slots{cut(static_cast<u128>(f(number(s[0], t), number(s[1], t))), resultBits ? resultBits : t.bits)};
  });
}
std::vector<Slots> threeInputs(const Type& t) {
  std::vector<uint64_t> few = edgesInt(t.bits);
  few.resize(std::min<size_t>(few.size(), 14));
  return combine({few, few, few}, 2000);
}

TEST(JitInteger, AddSubMinMax) {
  for (const Type& t : kTypes) {
    const std::string s = t.name;
    checkBinary("add." + s, t, [](i128 x, i128 y) { return x + y; });
    checkBinary("sub." + s, t, [](i128 x, i128 y) { return x - y; });
    checkBinary("min." + s, t, [](i128 x, i128 y) { return x < y ? x : y; });
    checkBinary("max." + s, t, [](i128 x, i128 y) { return x > y ? x : y; });
  }
  checkBinary("add.sat.s32", kS32, [](i128 x, i128 y) { return saturated(x + y, kS32); });
  checkBinary("sub.sat.s32", kS32, [](i128 x, i128 y) { return saturated(x - y, kS32); });
  checkBinary("min.relu.s32", kS32, [](i128 x, i128 y) { return std::max<i128>(0, std::min(x, y)); });
  checkBinary("max.relu.s32", kS32, [](i128 x, i128 y) { return std::max<i128>(0, std::max(x, y)); });
}

TEST(JitInteger, Multiply) {
  for (const Type& t : kTypes) {
    const std::string s = t.name;
    checkBinary("mul.lo." + s, t,
                [](i128 x, i128 y) { return static_cast<i128>(static_cast<u128>(x) * static_cast<u128>(y)); });
    checkBinary("mul.hi." + s, t, [&](i128 x, i128 y) {
      if (!t.isSigned) return static_cast<i128>((static_cast<u128>(x) * static_cast<u128>(y)) >> t.bits);
      return (x * y) >> t.bits;
    });
    if (t.bits < 64) checkBinary("mul.wide." + s, t, [](i128 x, i128 y) { return x * y; }, 2 * t.bits);
  }
}

TEST(JitInteger, MultiplyAdd) {
  for (const Type& t : kTypes) {
    const std::string s = t.name;
    auto product = [&](const Slots& v) {
      return static_cast<u128>(number(v[0], t)) * static_cast<u128>(number(v[1], t));
    };
    auto high = [&](const Slots& v) {
      return t.isSigned ? static_cast<u128>(static_cast<i128>(product(v)) >> t.bits) : product(v) >> t.bits;
    };
    check({"mad.lo." + s, "D a b c"}, threeInputs(t),
          [&](const Slots& v) { return Slots{cut(product(v) + v[2], t.bits)}; });
    check({"mad.hi." + s, "D a b c"}, threeInputs(t),
          [&](const Slots& v) { return Slots{cut(high(v) + v[2], t.bits)}; });
    if (t.bits < 64)
      check({"mad.wide." + s, "D a b c"}, threeInputs(t),
            [&](const Slots& v) { return Slots{cut(product(v) + v[2], 2 * t.bits)}; });
  }
  check({"mad.hi.sat.s32", "D a b c"}, threeInputs(kS32), [](const Slots& v) {
    const i128 high = (number(v[0], kS32) * number(v[1], kS32)) >> 32;
    return Slots{cut(static_cast<u128>(saturated(high + number(v[2], kS32), kS32)), 32)};
  });
}

TEST(JitInteger, TwentyFourBits) {
  for (const Type& t : {kU32, kS32}) {
    const Type narrow{t.name, 24, t.isSigned};
    const std::string s = t.name;
    auto product = [&](const Slots& v) { return number(v[0], narrow) * number(v[1], narrow); };
    check({"mul24.lo." + s, "D a b"}, threeInputs(t), [&](const Slots& v) { return Slots{cut(product(v), 32)}; });
    check({"mul24.hi." + s, "D a b"}, threeInputs(t), [&](const Slots& v) { return Slots{cut(product(v) >> 16, 32)}; });
    check({"mad24.lo." + s, "D a b c"}, threeInputs(t),
          [&](const Slots& v) { return Slots{cut(product(v) + v[2], 32)}; });
    check({"mad24.hi." + s, "D a b c"}, threeInputs(t),
          [&](const Slots& v) { return Slots{cut((product(v) >> 16) + v[2], 32)}; });
  }
  check({"mad24.hi.sat.s32", "D a b c"}, threeInputs(kS32), [](const Slots& v) {
    const Type narrow{"", 24, true};
    const i128 high = saturated((number(v[0], narrow) * number(v[1], narrow)) >> 16, kS32);
    return Slots{cut(static_cast<u128>(saturated(high + number(v[2], kS32), kS32)), 32)};
  });
}

TEST(JitInteger, Divide) {
  for (const Type& t : kTypes) {
    // A zero divisor gives all ones; the smallest number over -1 gives itself.
    checkBinary(std::string("div.") + t.name, t, [](i128 x, i128 y) { return y == 0 ? -1 : x / y; });
    checkBinary(std::string("rem.") + t.name, t, [](i128 x, i128 y) { return y == 0 ? -1 : x % y; });
  }
  // Quotients next to an integer, where an inexact division would fail.
  for (const Type& t : {kTypes[1], kTypes[2]}) {
    std::vector<Slots> inputs;
    uint64_t state = 7;
    for (int i = 0; i < 4000; ++i) {
      const uint64_t d = std::max<uint64_t>(1, cut(nextRandom(state), t.bits) >> (nextRandom(state) % t.bits));
      const uint64_t q = cut(nextRandom(state), t.bits) / d;
      inputs.push_back(Slots{cut(static_cast<u128>(q) * d - (i & 1), t.bits), d});
    }
    check({std::string("div.") + t.name, "D a b"}, inputs, [](const Slots& v) { return Slots{v[0] / v[1]}; });
    check({std::string("rem.") + t.name, "D a b"}, inputs, [](const Slots& v) { return Slots{v[0] % v[1]}; });
  }
  // By a constant, also zero.
  const auto inputs = combine({edgesInt(32)}, 100);
  check({"div.u32", "D a #7"}, inputs, [](const Slots& v) { return Slots{cut(v[0], 32) / 7}; });
  check({"div.u32", "D a #0"}, inputs, [](const Slots&) { return Slots{0xffffffff}; });
  check({"rem.s32", "D a #-7"}, inputs,
        [](const Slots& v) { return Slots{cut(static_cast<u128>(number(v[0], kS32) % -7), 32)}; });
}

TEST(JitInteger, AbsNegSad) {
  for (const Type& t : kTypes) {
    const std::string s = t.name;
    if (t.isSigned) {
      checkBinary("abs." + s, t, [](i128 x, i128) { return x < 0 ? -x : x; });
      checkBinary("neg." + s, t, [](i128 x, i128) { return -x; });
    }
    check({"sad." + s, "D a b c"}, threeInputs(t), [&](const Slots& v) {
      const i128 difference = number(v[0], t) - number(v[1], t);
      return Slots{cut(static_cast<u128>(difference < 0 ? -difference : difference) + v[2], t.bits)};
    });
  }
}

TEST(JitInteger, PairsOfSixteenBits) {
  for (const Type& t : {kTypes[0], kTypes[3]}) {
    const std::string s = std::string(t.name) + "x2";
    auto both = [&](const Slots& v, const Binary& f) {
      uint64_t r = 0;
      for (unsigned shift : {0u, 16u}) r |= cut(f(number(v[0] >> shift, t), number(v[1] >> shift, t)), 16) << shift;
      return Slots{r};
    };
    const auto inputs = combine({edgesInt(32), edgesInt(32)}, 2000);
    check({"add." + s, "D a b"}, inputs, [&](const Slots& v) { return both(v, [](i128 x, i128 y) { return x + y; }); });
    check({"min." + s, "D a b"}, inputs,
          [&](const Slots& v) { return both(v, [](i128 x, i128 y) { return std::min(x, y); }); });
    check({"max." + s, "D a b"}, inputs,
          [&](const Slots& v) { return both(v, [](i128 x, i128 y) { return std::max(x, y); }); });
  }
  const auto inputs = combine({edgesInt(32), edgesInt(32)}, 2000);
  check({"max.relu.s16x2", "D a b"}, inputs, [](const Slots& v) {
    const Type t{"s16", 16, true};
    uint64_t r = 0;
    for (unsigned shift : {0u, 16u})
      r |= cut(std::max<i128>(0, std::max(number(v[0] >> shift, t), number(v[1] >> shift, t))), 16) << shift;
    return Slots{r};
  });
}

TEST(JitInteger, CarryChain) {
  for (unsigned bits : {32u, 64u}) {
    const std::string s = bits == 32 ? "u32" : "u64";
    std::vector<Slots> inputs = threeInputs(bits == 32 ? kU32 : kTypes[2]);
    for (size_t i = 0, n = inputs.size(); i < n; ++i) {  // both values of the flag
      inputs.push_back(inputs[i]);
      inputs.back()[6] ^= 1;
    }
    auto add = [bits](u128 x, u128 y, uint64_t carryIn, bool writes) {
      const u128 sum = static_cast<u128>(cut(x, bits)) + cut(y, bits) + carryIn;
      Slots r{cut(sum, bits)};
      if (writes) r[6] = static_cast<uint64_t>(sum >> bits);
      return r;
    };
    // The flag of a subtraction is set when nothing is borrowed.
    auto sub = [bits](uint64_t x, uint64_t y, uint64_t flag, bool writes) {
      const i128 difference = static_cast<i128>(cut(x, bits)) - cut(y, bits) - (flag ? 0 : 1);
      Slots r{cut(static_cast<u128>(difference), bits)};
      if (writes) r[6] = difference >= 0;
      return r;
    };
    auto low = [bits](const Slots& v) { return cut(static_cast<u128>(cut(v[0], bits)) * cut(v[1], bits), bits); };
    auto high = [bits](const Slots& v) {
      return static_cast<uint64_t>((static_cast<u128>(cut(v[0], bits)) * cut(v[1], bits)) >> bits);
    };
    check({"add.cc." + s, "D a b"}, inputs, [&](const Slots& v) { return add(v[0], v[1], 0, true); });
    check({"addc." + s, "D a b"}, inputs, [&](const Slots& v) { return add(v[0], v[1], v[6], false); });
    check({"addc.cc." + s, "D a b"}, inputs, [&](const Slots& v) { return add(v[0], v[1], v[6], true); });
    check({"sub.cc." + s, "D a b"}, inputs, [&](const Slots& v) { return sub(v[0], v[1], 1, true); });
    check({"subc." + s, "D a b"}, inputs, [&](const Slots& v) { return sub(v[0], v[1], v[6], false); });
    check({"subc.cc." + s, "D a b"}, inputs, [&](const Slots& v) { return sub(v[0], v[1], v[6], true); });
    check({"mad.lo.cc." + s, "D a b c"}, inputs, [&](const Slots& v) { return add(low(v), v[2], 0, true); });
    check({"mad.hi.cc." + s, "D a b c"}, inputs, [&](const Slots& v) { return add(high(v), v[2], 0, true); });
    check({"madc.lo.cc." + s, "D a b c"}, inputs, [&](const Slots& v) { return add(low(v), v[2], v[6], true); });
    check({"madc.hi." + s, "D a b c"}, inputs, [&](const Slots& v) { return add(high(v), v[2], v[6], false); });
  }
}

TEST(JitInteger, DotProducts) {
  for (int combination = 0; combination < 4; ++combination) {
    const bool signedA = combination & 1, signedB = combination & 2;
    const std::string types = std::string(signedA ? ".s32" : ".u32") + (signedB ? ".s32" : ".u32");
    const auto inputs = threeInputs(kU32);
    check({"dp4a" + types, "D a b c"}, inputs, [&](const Slots& v) {
      i128 sum = v[2];
      for (unsigned i = 0; i < 4; ++i)
        sum += number(v[0] >> (8 * i), {"", 8, signedA}) * number(v[1] >> (8 * i), {"", 8, signedB});
      return Slots{cut(static_cast<u128>(sum), 32)};
    });
    for (const bool high : {false, true})
      check({std::string("dp2a.") + (high ? "hi" : "lo") + types, "D a b c"}, inputs, [&](const Slots& v) {
        i128 sum = v[2];
        for (unsigned i = 0; i < 2; ++i)
          sum +=
              number(v[0] >> (16 * i), {"", 16, signedA}) * number(v[1] >> (8 * i + (high ? 16 : 0)), {"", 8, signedB});
        return Slots{cut(static_cast<u128>(sum), 32)};
      });
  }
}

}  // namespace
}  // namespace sonde::test
