// SPDX-License-Identifier: Apache-2.0
//
// The recorded forms as whole kernels: parser, checker, code generator and
// engine together. The .approx forms are left to test_golden.cpp.
#include <cmath>
#include <fstream>
#include <iterator>

#include "../exec/device_fixture.h"
#include "golden_kernels.h"
#include "inputs.h"

namespace sonde::softgpu::exec {
namespace {

using test::GoldenOperand;
using test::kSlots;
using test::Slots;

constexpr size_t kShares = 4;  // so that the parts run side by side
class GoldenKernels : public testing::TestWithParam<size_t> {};

bool isNan64(uint64_t bits) { return (bits & 0x7fffffffffffffff) > 0x7ff0000000000000; }

TEST_P(GoldenKernels, H200) {
  const std::string directory = SONDE_GOLDEN_DIR;
  std::ifstream list(directory + "/forms.txt");
  std::ifstream file(directory + "/h200.bin", std::ios::binary);
  const std::string results{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  struct Form {
    std::string line;
    size_t at;  // of its results
  };
  std::vector<Form> forms;
  std::string ptx = test::goldenModuleHeader();
  size_t position = 0, number = 0;
  for (std::string line; std::getline(list, line); ++number) {
    const size_t n = test::goldenInputs(line).size();
    const bool approximate = line.find(".approx") != std::string::npos || line.find(".full") != std::string::npos;
    if (number % kShares == GetParam() && !approximate) {
      ptx += test::goldenKernel(forms.size(), line);
      forms.push_back({line, position});
    }
    for (const GoldenOperand& o : test::goldenOperands(line))
      if (o.name < 'a') position += n * test::goldenBytes(o.kind);
    if (test::goldenWritesCarry(line)) position += n;
  }
  ASSERT_EQ(position, results.size());
  ASSERT_GT(forms.size(), 250u);

  Kernels kernels(ptx);
  ASSERT_TRUE(kernels.program);
  DeviceArray<uint64_t> in(512 * kSlots), out(512 * kSlots);
  for (size_t f = 0; f < forms.size(); ++f) {
    const std::string& line = forms[f].line;
    const std::vector<Slots> inputs = test::goldenInputs(line);
    const auto n = static_cast<uint32_t>(inputs.size());
    for (uint32_t i = 0; i < n; ++i)
      for (unsigned s = 0; s < kSlots; ++s) {
        in[s * n + i] = inputs[i][s];
        out[s * n + i] = 0;
      }
    const LaunchOutcome outcome =
        kernels.run("f" + std::to_string(f), {(n + 127) / 128}, {128}, in.address, out.address, n);
    ASSERT_EQ(outcome.error, 0) << line << ": " << outcome.message;
    size_t at = forms[f].at;
    auto compare = [&](unsigned slot, unsigned bytes, bool isDouble) {
      size_t differences = 0;
      for (uint32_t i = 0; i < n; ++i, at += bytes) {
        uint64_t want = 0;
        std::memcpy(&want, results.data() + at, bytes);
        const uint64_t got = out[slot * n + i] & (bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1);
        if (got == want) continue;
        // Which of two NaNs an f64 result keeps is left open.
        const int nans = isNan64(inputs[i][0]) + isNan64(inputs[i][1]) + isNan64(inputs[i][2]);
        if (isDouble && nans > 1 && isNan64(got) && isNan64(want)) continue;
        if (differences++ == 0)
          ADD_FAILURE() << line << std::hex << ": a=" << inputs[i][0] << " b=" << inputs[i][1] << " c=" << inputs[i][2]
                        << ": got " << got << ", card " << want;
      }
    };
    for (const GoldenOperand& o : test::goldenOperands(line))
      if (o.name < 'a') compare(static_cast<unsigned>(o.name - 'D'), test::goldenBytes(o.kind), o.kind == "f64");
    if (test::goldenWritesCarry(line)) compare(6, 1, false);
  }
}

INSTANTIATE_TEST_SUITE_P(, GoldenKernels, testing::Range(size_t{0}, kShares));

}  // namespace
}  // namespace sonde::softgpu::exec
