// SPDX-License-Identifier: Apache-2.0
//
// mma against the products a real card recorded (tools/golden).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

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

// Numbers of one sort: small integers, any of a few exponents, or any at all.
struct Sort {
  int lowest, highest;  // exponents
  unsigned fraction;    // its bits that may be set
  bool zeros;
};

uint32_t number(MatrixType type, const Sort& sort, std::mt19937& random) {
  if (type == MatrixType::s8 || type == MatrixType::u8 || type == MatrixType::s32)
    return static_cast<uint32_t>(random());
  const uint32_t sign = random() & 1;
  if (sort.zeros && random() % 3 == 0) return 0;
  const auto e = sort.lowest + static_cast<int>(random() % static_cast<unsigned>(sort.highest - sort.lowest + 1));
  const unsigned bits = type == MatrixType::f16    ? 10
                        : type == MatrixType::bf16 ? 7
                        : type == MatrixType::tf32 ? 10
                                                   : 23;
  const unsigned kept = std::min(bits, sort.fraction);
  const uint32_t f = (static_cast<uint32_t>(random()) & ((1u << kept) - 1)) << (bits - kept);
  switch (type) {
    case MatrixType::f16: return sign << 15 | static_cast<uint32_t>(std::clamp(e, -15, 15) + 15) << 10 | f;
    case MatrixType::bf16: return sign << 15 | static_cast<uint32_t>(e + 127) << 7 | f;
    case MatrixType::tf32: return sign << 31 | static_cast<uint32_t>(e + 127) << 23 | f << 13;
    default: return sign << 31 | static_cast<uint32_t>(e + 127) << 23 | f;
  }
}

// Whole tiles at once give what element by element gives.
TEST(MmaTiles, EqualTheElements) {
  const Sort sorts[] = {{0, 1, 0, true},     {-1, 2, 2, true},   {-4, 4, 10, false},
                        {-14, 14, 10, true}, {-60, 60, 7, true}, {-126, 126, 7, true},
                        {-3, 3, 23, false},  {20, 30, 23, true}, {-30, 25, 23, true}};
  struct Form {
    MatrixType ab, c, d;
    unsigned m, n, k, registersA, registersB, registersC, registersD;
    bool wmma;
  };
  using T = MatrixType;
  const Form forms[] = {
      {T::f16, T::f32, T::f32, 16, 16, 16, 8, 8, 8, 8, true},  {T::f16, T::f16, T::f16, 16, 16, 16, 8, 8, 4, 4, true},
      {T::f16, T::f16, T::f32, 32, 8, 16, 8, 8, 4, 8, true},   {T::bf16, T::f32, T::f32, 8, 32, 16, 2, 8, 8, 8, true},
      {T::bf16, T::f32, T::f32, 16, 16, 16, 4, 4, 8, 8, true}, {T::tf32, T::f32, T::f32, 16, 16, 8, 4, 4, 8, 8, true},
      {T::s8, T::s32, T::s32, 16, 16, 16, 2, 2, 8, 8, true},   {T::u8, T::s32, T::s32, 8, 32, 16, 1, 4, 8, 8, true},
      {T::f16, T::f32, T::f32, 16, 8, 16, 4, 2, 4, 4, false},  {T::f16, T::f16, T::f16, 16, 8, 16, 4, 2, 2, 2, false},
      {T::bf16, T::f32, T::f32, 16, 8, 8, 2, 1, 4, 4, false},  {T::tf32, T::f32, T::f32, 16, 8, 8, 4, 2, 4, 4, false},
      {T::s8, T::s32, T::s32, 16, 8, 32, 4, 2, 4, 4, false}};
  std::mt19937 random(1);
  for (const Form& f : forms)
    for (const Sort& ab : sorts)
      for (const Sort& addend : sorts)
        for (unsigned round = 0; round < 4; ++round) {
          MatrixJob job;
          job.m = static_cast<uint16_t>(f.m);
          job.n = static_cast<uint16_t>(f.n);
          job.k = static_cast<uint16_t>(f.k);
          job.a = job.b = f.ab;
          job.c = f.c;
          job.d = f.d;
          job.registersA = static_cast<uint8_t>(f.registersA);
          job.registersB = static_cast<uint8_t>(f.registersB);
          job.registersC = static_cast<uint8_t>(f.registersC);
          job.registersD = static_cast<uint8_t>(f.registersD);
          job.wmma = f.wmma;
          job.satfinite = round & 1;
          auto fill = [&](MatrixType t, unsigned registers, const Sort& sort) {
            std::vector<uint32_t> words(registers * 32);
            const unsigned bits = softgpu::exec::bitsOf(t);
            for (uint32_t& w : words)
              for (unsigned at = 0; at < 32; at += bits) {
                const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
                w |= (number(t, sort, random) & mask) << at;
              }
            return words;
          };
          const auto a = fill(f.ab, f.registersA, ab), b = fill(f.ab, f.registersB, ab),
                     c = fill(f.c, f.registersC, addend);
          std::vector<uint32_t> whole(f.registersD * 32), single(f.registersD * 32);
          softgpu::exec::multiplyMatrices(&job, a.data(), b.data(), c.data(), whole.data());
          softgpu::exec::multiplyElements(job, a.data(), b.data(), c.data(), single.data());
          ASSERT_EQ(whole, single) << "form " << &f - forms << " numbers " << &ab - sorts << " addends "
                                   << &addend - sorts;
        }
}

}  // namespace
}  // namespace sonde::test
