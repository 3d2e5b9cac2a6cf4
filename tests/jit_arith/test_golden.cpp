// SPDX-License-Identifier: Apache-2.0
//
// Our results against those a real card recorded (tools/golden). Bits must
// agree, except for the .approx functions, whose distance has a bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "harness.h"

namespace sonde::test {
namespace {

std::string readAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Without the kinds: "D:f32|E:pred" -> "D|E".
Form formOf(const std::string& line) {
  Form form;
  const size_t blank = line.find(' ');
  form.mnemonic = line.substr(0, blank);
  bool inKind = false;
  for (char ch : line.substr(blank + 1)) {
    if (ch == ':')
      inKind = true;
    else if (std::string(" |},").find(ch) != std::string::npos)
      inKind = false;
    if (!inKind) form.operands += ch;
  }
  return form;
}

double asDouble(uint64_t bits, const std::string& kind) {
  if (kind == "f64") {
    double d;
    std::memcpy(&d, &bits, 8);
    return d;
  }
  if (kind.starts_with("bf16")) bits = (bits & 0xffff) << 16;
  if (kind.starts_with("f16")) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const double fraction = static_cast<double>(bits & 1023) / 1024;
    const double magnitude = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                             : exponent == 0 ? std::ldexp(fraction, -14)
                                             : std::ldexp(1 + fraction, exponent - 15);
    return bits & 0x8000 ? -magnitude : magnitude;
  }
  const auto word = static_cast<uint32_t>(bits);
  float f;
  std::memcpy(&f, &word, 4);
  return f;
}

// Which of several NaN operands of an f64 instruction gives its payload to the
// result depends on the order in which the host's instruction takes them.
bool twoNans(const Slots& s) {
  int count = 0;
  for (int i = 0; i < 3; ++i) count += std::isnan(asDouble(s[i], "f64"));
  return count > 1;
}

// The bounds by function: relative to the card's value, or absolute.
struct Bound {
  const char* prefix;
  double relative, absolute;
};
// Each is the sum of the bound PTX states for the card and ours.
constexpr Bound kBounds[] = {
    {"div.approx", 0x1p-21, 0},           {"div.full", 0x1p-21, 0},         {"rcp.approx.ftz.f64", 0x1p-19, 0},
    {"rcp.approx", 0x1p-22, 0},           {"sqrt.approx", 0x1p-22, 0},      {"rsqrt.approx.f64", 0x1p-21, 0},
    {"rsqrt.approx.ftz.f64", 0x1p-19, 0}, {"rsqrt.approx", 0x1p-21, 0},     {"sin.approx", 0, 0x1p-20},
    {"cos.approx", 0, 0x1p-20},           {"lg2.approx", 0x1p-21, 0x1p-21}, {"ex2.approx.f32", 0x1p-21, 0},
    {"ex2.approx.ftz.f32", 0x1p-21, 0},   {"tanh.approx.f32", 0x1p-10, 0},  {"ex2.approx", 0x1p-6, 0x1p-23},
    {"tanh.approx.f16", 0, 0x1p-9},       {"tanh.approx.bf16", 0, 0x1p-7},
};

class JitGolden : public testing::TestWithParam<Machine> {};

TEST_P(JitGolden, H200) {
  const Machine machine = GetParam();
  const std::string directory = SONDE_GOLDEN_DIR;
  std::ifstream forms(directory + "/forms.txt");
  const std::string results = readAll(directory + "/h200.bin");
  ASSERT_FALSE(results.empty());
  size_t position = 0, compared = 0, formCount = 0;
  std::map<std::string, std::pair<double, double>> distances;  // largest relative, absolute

  for (std::string line; std::getline(forms, line); ++formCount) {
    std::vector<Slots> inputs = goldenInputs(line);
    const Form form = formOf(line);
    // The recorded flag of a subtraction is the borrow, which the flag itself is the inverse of.
    const uint64_t inverted = form.mnemonic.starts_with("sub") ? 1 : 0;
    for (Slots& slots : inputs) slots[6] ^= inverted;
    struct Output {
      unsigned slot;
      std::string kind;
      unsigned bytes;
      size_t at;
    };
    std::vector<Output> outputs;
    for (const GoldenOperand& o : goldenOperands(line))
      if (o.name < 'a') outputs.push_back({static_cast<unsigned>(o.name - 'D'), o.kind, goldenBytes(o.kind), 0});
    if (goldenWritesCarry(line)) outputs.push_back({6, "pred", 1, 0});
    for (Output& o : outputs) {
      o.at = position;
      position += inputs.size() * o.bytes;
    }
    ASSERT_LE(position, results.size());
    // A card may flush a result that another rounds up to the smallest normal number.
    const bool flushes = form.mnemonic.find(".ftz") != std::string::npos;
    const Bound* bound = nullptr;
    for (const Bound& candidate : kBounds)
      if (!bound && form.mnemonic.starts_with(candidate.prefix)) bound = &candidate;

    std::vector<Slots> got;
    try {
      got = run(form, machine, inputs);
    } catch (const std::exception& e) {
      ADD_FAILURE() << line << ": " << e.what();
      continue;
    }
    unsigned failures = 0, total = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      for (const Output& o : outputs) {
        uint64_t want = 0;
        std::memcpy(&want, results.data() + o.at + i * o.bytes, o.bytes);
        const uint64_t mask = o.bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * o.bytes)) - 1;
        const uint64_t have = (got[i][o.slot] ^ (o.slot == 6 ? inverted : 0)) & mask;
        ++compared;
        if (have == want) continue;
        if (o.kind == "f64" && twoNans(inputs[i]) && std::isnan(asDouble(have, "f64")) &&
            std::isnan(asDouble(want, "f64")))
          continue;
        if (bound) {
          // Packed halves are compared one by one.
          bool within = true;
          const unsigned parts = o.kind.ends_with("x2") ? 2 : 1;
          for (unsigned part = 0; part < parts; ++part) {
            const double g = asDouble(have >> (16 * part), o.kind), w = asDouble(want >> (16 * part), o.kind);
            if (g == w || (std::isnan(g) && std::isnan(w))) continue;
            const double absolute = std::fabs(g - w), relative = absolute / std::fabs(w);
            auto& largest = distances[form.mnemonic];
            const bool ok = absolute <= bound->absolute || relative <= bound->relative ||
                            (o.kind == "f32" && absolute <= (flushes ? 0x1p-126 : 0x1p-148));
            if (ok && std::isfinite(relative)) {
              largest.first = std::max(largest.first, relative);
              largest.second = std::max(largest.second, absolute);
            }
            within &= ok;
          }
          if (within) continue;
        }
        ++total;
        if (++failures > 6) continue;
        std::stringstream text;
        text << std::hex << "a=" << inputs[i][0] << " b=" << inputs[i][1] << " c=" << inputs[i][2]
             << " d=" << inputs[i][3] << " carry=" << inputs[i][6] << ": slot " << o.slot << " got " << have
             << ", card " << want;
        ADD_FAILURE() << line << " (" << name(machine) << "): " << text.str();
      }
    if (total) ADD_FAILURE() << line << " (" << name(machine) << "): " << std::dec << total << " differences";
  }
  EXPECT_EQ(position, results.size());
  EXPECT_GT(formCount, 1000u);
  EXPECT_GT(compared, 300000u);
  for (const auto& [mnemonic, largest] : distances)
    std::printf("  %-28s relative 2^%.1f  absolute 2^%.1f\n", mnemonic.c_str(), std::log2(largest.first),
                std::log2(largest.second));
}

std::string testName(const testing::TestParamInfo<Machine>& info) {
  static const char* const names[] = {"HostVector", "HostScalar", "Avx2Vector", "Avx2Scalar"};
  return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(, JitGolden, testing::ValuesIn(kMachines), testName);

}  // namespace
}  // namespace sonde::test
