// SPDX-License-Identifier: Apache-2.0
//
// Fragments for the tests of mma, made from the form's line so that a card's
// recorded products need no inputs beside them (tools/golden).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::test {

inline constexpr unsigned kMatrixTests = 8;  // per form: small integers, ordinary, wide, special values ...

struct MatrixForm {
  std::string mnemonic;
  unsigned m = 0, n = 0, k = 0;
  std::string types[4];  // a b c d
  unsigned registers[4] = {};
  bool satfinite = false, andPopc = false, columnA = false, rowB = false;

  unsigned words(unsigned part) const { return registers[part] * 32 * (types[part] == "f64" ? 2 : 1); }
};

MatrixForm parseMatrixForm(const std::string& line);
// Words of the fragments a, b and c, one after the other.
std::vector<uint32_t> matrixInputs(const std::string& line, unsigned test);

}  // namespace sonde::test
