// SPDX-License-Identifier: Apache-2.0
//
// mma against the products a real card recorded (tools/golden).
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "matrix_inputs.h"
#include "softgpu/exec/mma_helpers.h"

namespace sonde::test {
namespace {

using softgpu::exec::MatrixJob;
using softgpu::exec::MatrixType;

MatrixType typeOf(const std::string& name) {
  static const std::map<std::string, MatrixType> types{
      {"f16", MatrixType::f16},   {"bf16", MatrixType::bf16}, {"tf32", MatrixType::tf32}, {"f64", MatrixType::f64},
      {"e4m3", MatrixType::e4m3}, {"e5m2", MatrixType::e5m2}, {"s8", MatrixType::s8},     {"u8", MatrixType::u8},
      {"s4", MatrixType::s4},     {"u4", MatrixType::u4},     {"b1", MatrixType::b1},     {"f32", MatrixType::f32},
      {"s32", MatrixType::s32}};
  return types.at(name);
}

TEST(MmaGolden, H200) {
  const std::string directory = SONDE_GOLDEN_DIR;
  std::ifstream forms(directory + "/mma_forms.txt");
  std::ifstream file(directory + "/mma_h200.bin", std::ios::binary);
  const std::string results{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ASSERT_FALSE(results.empty());
  size_t position = 0, formCount = 0;
  for (std::string line; std::getline(forms, line); ++formCount) {
    const MatrixForm form = parseMatrixForm(line);
    MatrixJob job;
    job.m = static_cast<uint16_t>(form.m);
    job.n = static_cast<uint16_t>(form.n);
    job.k = static_cast<uint16_t>(form.k);
    job.a = typeOf(form.types[0]);
    job.b = typeOf(form.types[1]);
    job.c = typeOf(form.types[2]);
    job.d = typeOf(form.types[3]);
    job.registersA = static_cast<uint8_t>(form.registers[0]);
    job.registersB = static_cast<uint8_t>(form.registers[1]);
    job.registersC = static_cast<uint8_t>(form.registers[2]);
    job.registersD = static_cast<uint8_t>(form.registers[3]);
    job.satfinite = form.satfinite;
    job.andPopc = form.andPopc;
    job.columnA = form.columnA;
    job.rowB = form.rowB;
    for (unsigned test = 0; test < kMatrixTests; ++test) {
      const std::vector<uint32_t> in = matrixInputs(line, test);
      std::vector<uint32_t> got(form.words(3)), want(form.words(3));
      const uint32_t* a = in.data();
      const uint32_t* b = a + form.words(0);
      const uint32_t* c = b + form.words(1);
      softgpu::exec::multiplyMatrices(&job, a, b, c, got.data());
      ASSERT_LE(position + want.size() * 4, results.size());
      std::memcpy(want.data(), results.data() + position, want.size() * 4);
      position += want.size() * 4;
      size_t differences = 0, first = 0;
      for (size_t i = 0; i < want.size(); ++i)
        if (got[i] != want[i] && differences++ == 0) first = i;
      if (differences)
        ADD_FAILURE() << form.mnemonic << " test " << test << ": " << differences << " of " << want.size()
                      << " differ; word " << first << std::hex << " got " << got[first] << ", card " << want[first];
    }
  }
  EXPECT_EQ(position, results.size());
  EXPECT_GT(formCount, 50u);
}

}  // namespace
}  // namespace sonde::test
