// SPDX-License-Identifier: Apache-2.0
#include "matrix_inputs.h"

#include <sstream>

namespace sonde::test {

namespace {

uint64_t nextRandom(uint64_t& state) {  // splitmix64
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Layout {
  unsigned exponentBits, fractionBits;
};

Layout layoutOf(const std::string& t) {
  if (t == "f16") return {5, 10};
  if (t == "bf16") return {8, 7};
  if (t == "e4m3") return {4, 3};
  if (t == "e5m2") return {5, 2};
  if (t == "f64") return {11, 52};
  return {8, 23};  // f32, tf32
}

// One element's code: the tests differ in how exponents spread.
uint64_t floatCode(const std::string& t, unsigned test, unsigned part, uint64_t r) {
  const auto [e, f] = layoutOf(t);
  const uint64_t bias = (uint64_t{1} << (e - 1)) - 1, top = (uint64_t{1} << e) - 1;
  const uint64_t fraction = r & ((uint64_t{1} << f) - 1), sign = (r >> 63) << (e + f), pick = (r >> 53) & 0x1ff;
  auto code = [&](uint64_t exponent) { return sign | exponent << f | fraction; };
  switch (test) {
    case 0: {                           // -4 ... 4 in quarters at most: every product and sum is exact
      const uint64_t steps = pick % 5;  // 0, 1, 2, 3, 4
      if (steps == 0) return sign;
      const uint64_t exponent = steps >= 4 ? bias + 2 : steps >= 2 ? bias + 1 : bias;
      return sign | exponent << f | (steps == 3 ? uint64_t{1} << (f - 1) : 0);
    }
    case 1: return code(bias - 1 + pick % 3);
    case 2: return code(bias - 3 + pick % 6);
    case 3: return code(bias - (bias < 8 ? 5 : 10) + pick % (bias < 8 ? 10 : bias < 16 ? 14 : 20));  // wide
    case 4:  // a large addend against small products
      return code(part == 2 ? bias + (bias < 8 ? 4 : 11) : bias - 1 + pick % 3);
    case 5: return code(pick % 3 == 0 ? 0 : pick % 4);  // subnormals and the smallest normals
    case 6:                                             // a few infinities and NaNs
      if (pick < 4) return sign | top << f;
      if (pick < 6) return top << f | uint64_t{1} << (f - 1);
      return code(bias - 1 + pick % 3);
    default: return code(bias > 100 ? bias - 30 + pick % 61 : 1 + pick % (top - 2));
  }
}

uint32_t integerWord(unsigned test, unsigned part, uint64_t r) {
  if (part != 2) return static_cast<uint32_t>(test == 0 ? r & 0x11111111 : r);
  switch (test) {
    case 0: return static_cast<uint32_t>(static_cast<int32_t>(r % 2001) - 1000);
    case 1: return 0x7fffff00u + static_cast<uint32_t>(r & 0xff);
    case 2: return 0x80000000u + static_cast<uint32_t>(r & 0xff);
    default: return static_cast<uint32_t>(r);
  }
}

}  // namespace

MatrixForm parseMatrixForm(const std::string& line) {
  MatrixForm form;
  std::stringstream words(line);
  words >> form.mnemonic >> form.m >> form.n >> form.k;
  for (std::string& t : form.types) words >> t;
  for (unsigned& r : form.registers) words >> r;
  words >> form.satfinite >> form.andPopc >> form.columnA >> form.rowB;
  return form;
}

std::vector<uint32_t> matrixInputs(const std::string& line, unsigned test) {
  const MatrixForm form = parseMatrixForm(line);
  uint64_t state = test + 1;
  for (char ch : line) state = state * 131 + static_cast<unsigned char>(ch);
  std::vector<uint32_t> words;
  for (unsigned part = 0; part < 3; ++part) {
    const std::string& t = form.types[part];
    const bool isFloat = t.find('f') != std::string::npos || t[0] == 'e';
    for (unsigned i = 0; i < form.registers[part] * 32; ++i) {
      if (!isFloat) {
        words.push_back(integerWord(test, part, nextRandom(state)));
      } else if (t == "f64") {
        const uint64_t v = floatCode(t, test, part, nextRandom(state));
        words.push_back(static_cast<uint32_t>(v));
        words.push_back(static_cast<uint32_t>(v >> 32));
      } else {
        const unsigned bits = t == "f32" || t == "tf32" ? 32 : t == "f16" || t == "bf16" ? 16 : 8;
        uint32_t word = 0;
        for (unsigned at = 0; at < 32; at += bits)
          word |= static_cast<uint32_t>(floatCode(t, test, part, nextRandom(state))) << at;
        words.push_back(word);
      }
    }
  }
  return words;
}

}  // namespace sonde::test
