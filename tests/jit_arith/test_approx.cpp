// SPDX-License-Identifier: Apache-2.0
//
// The .approx functions against double precision, with the bounds that the PTX
// manual states.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "harness.h"
#include "small_reference.h"

namespace sonde::test {
namespace {

float floatOf(uint64_t bits) {
  const auto u = static_cast<uint32_t>(bits);
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
uint64_t bitsOf(float f) {
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}

// Every sign and exponent with many fractions.
std::vector<Slots> everyExponent() {
  std::vector<Slots> v;
  uint64_t state = 11;
  for (uint64_t top = 0; top < 512; ++top)
    for (int i = 0; i < 96; ++i) v.push_back(Slots{top << 23 | (nextRandom(state) & 0x7fffff)});
  for (uint64_t e : edgesF32()) v.push_back(Slots{e});
  return v;
}
std::vector<Slots> range(double low, double high) {
  std::vector<Slots> v;
  for (int i = 0; i <= 60000; ++i) v.push_back(Slots{bitsOf(static_cast<float>(low + (high - low) * i / 60000))});
  return v;
}

using Real = double (*)(double);

// |got - f(x)| <= absolute + relative * |f(x)|, infinities and NaN alike; a
// subnormal result may also be off by one unit.
void within(const std::string& mnemonic, const std::vector<Slots>& inputs, Real f, double relative, double absolute) {
  for (Machine m : kMachines) {
    const std::vector<Slots> got = run({mnemonic, "D a"}, m, inputs);
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double want = f(floatOf(inputs[i][0])), have = floatOf(got[i][0]);
      if (std::isnan(want)) {
        ASSERT_EQ(got[i][0], 0x7fffffffu) << mnemonic << " of " << floatOf(inputs[i][0]);
        continue;
      }
      if (static_cast<double>(static_cast<float>(want)) == have) continue;  // also infinities
      const double error = std::fabs(have - want) / (absolute + relative * std::fabs(want) + 0x1p-149);
      if (!(error <= worst)) {
        worst = error;
        at = i;
      }
    }
    EXPECT_LE(worst, 1.0) << mnemonic << " (" << name(m) << ") of " << floatOf(inputs[at][0]) << " gives "
                          << floatOf(got[at][0]) << ", exact " << f(floatOf(inputs[at][0]));
  }
}

TEST(JitApprox, ReciprocalsAndRoots) {
  within("rcp.approx.f32", everyExponent(), [](double x) { return 1 / x; }, 0x1p-23, 0);
  within("sqrt.approx.f32", everyExponent(), [](double x) { return std::sqrt(x); }, 0x1p-23, 0);
  within("rsqrt.approx.f32", everyExponent(), [](double x) { return 1 / std::sqrt(x); }, std::exp2(-22.9), 0);
}

TEST(JitApprox, ExponentialAndLogarithm) {
  within("ex2.approx.f32", range(-152, 130), [](double x) { return std::exp2(x); }, 0x1p-22, 0);
  within("ex2.approx.f32", everyExponent(), [](double x) { return std::exp2(x); }, 0x1p-22, 0);
  within("lg2.approx.f32", range(0.5, 2), [](double x) { return std::log2(x); }, 0, 0x1p-22);
  std::vector<Slots> outside;
  for (const Slots& s : everyExponent())
    if (!(floatOf(s[0]) > 0.5f && floatOf(s[0]) < 2.0f)) outside.push_back(s);
  within("lg2.approx.f32", outside, [](double x) { return x == 0 ? -INFINITY : std::log2(x); }, 0x1p-22, 0);
}

TEST(JitApprox, SineAndCosine) {
  const double pi = 3.14159265358979323846;
  within("sin.approx.f32", range(-2 * pi, 2 * pi), [](double x) { return std::sin(x); }, 0, std::exp2(-20.5));
  within("cos.approx.f32", range(-2 * pi, 2 * pi), [](double x) { return std::cos(x); }, 0, std::exp2(-20.5));
  within("sin.approx.f32", range(-100 * pi, 100 * pi), [](double x) { return std::sin(x); }, 0, std::exp2(-14.7));
  within("cos.approx.f32", range(-100 * pi, 100 * pi), [](double x) { return std::cos(x); }, 0, std::exp2(-14.7));
  // Beyond, nothing but the range is promised.
  for (Machine m : kMachines)
    for (const char* f : {"sin.approx.f32", "cos.approx.f32"}) {
      const auto inputs = everyExponent();
      const auto got = run({f, "D a"}, m, inputs);
      for (size_t i = 0; i < inputs.size(); ++i)
        if (std::isfinite(floatOf(inputs[i][0])))
          ASSERT_LE(std::fabs(floatOf(got[i][0])), 1.0000002f) << f;
        else
          ASSERT_EQ(got[i][0], 0x7fffffffu);
    }
}

TEST(JitApprox, HyperbolicTangent) {
  within("tanh.approx.f32", everyExponent(), [](double x) { return std::tanh(x); }, 0x1p-11, 0);
  within("tanh.approx.f32", range(-10, 10), [](double x) { return std::tanh(x); }, 0x1p-11, 0);
}

TEST(JitApprox, EveryHalf) {
  struct Half {
    const char* mnemonic;
    const SmallReference& format;
    Real f;
    double relative, absolute;
  };
  const Real exp2 = [](double x) { return std::exp2(x); }, tanh = [](double x) { return std::tanh(x); };
  const Half halves[] = {{"ex2.approx.f16", f16Reference(), exp2, std::exp2(-9.9), 0x1p-25},
                         {"ex2.approx.ftz.bf16", bf16Reference(), exp2, 0x1p-7, 0},
                         {"tanh.approx.f16", f16Reference(), tanh, 0, std::exp2(-10.987)},
                         {"tanh.approx.bf16", bf16Reference(), tanh, 0, 0x1p-8}};
  std::vector<Slots> inputs;
  for (uint64_t code = 0; code < 65536; ++code) inputs.push_back(Slots{code});
  for (const Half& h : halves)
    for (Machine m : kMachines) {
      const auto got = run({h.mnemonic, "D a"}, m, inputs);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const double want = h.f(h.format.value(static_cast<uint32_t>(i))),
                     have = h.format.value(static_cast<uint32_t>(got[i][0]));
        if (std::isnan(want)) {
          ASSERT_EQ(got[i][0], h.format.nanCode()) << h.mnemonic << " of " << i;
          continue;
        }
        if (h.format.round(want, std::signbit(want), Mode::nearest) == got[i][0]) continue;
        if (want < 0x1p-126 && have == 0) continue;  // bf16 flushes
        ASSERT_LE(std::fabs(have - want), h.absolute + h.relative * std::fabs(want)) << h.mnemonic << " of code " << i;
      }
    }
}

}  // namespace
}  // namespace sonde::test
