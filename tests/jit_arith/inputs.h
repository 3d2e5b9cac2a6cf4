// SPDX-License-Identifier: Apache-2.0
//
// Operand values for the tests of single instructions: edge lists, their
// combinations, and random values with fixed seeds. The generator of the golden
// vectors is built with this file too, so that results alone need recording.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sonde::test {

inline constexpr unsigned kSlots = 8;
using Slots = std::array<uint64_t, kSlots>;  // operand or result registers of one lane, zero-extended

// Inputs: all combinations of edge values, then random ones (fixed seed).
std::vector<Slots> combine(const std::vector<std::vector<uint64_t>>& edges, size_t randomCount,
                           const std::function<uint64_t(uint64_t random, size_t slot)>& shape = nullptr);
std::vector<uint64_t> edgesInt(unsigned bits);
std::vector<uint64_t> edgesF32();
std::vector<uint64_t> edgesF64();
std::vector<uint64_t> edgesF16();
std::vector<uint64_t> edgesBf16();
uint64_t nextRandom(uint64_t& state);

// One operand of a golden form: `name` as the harness reads it, with the kind
// of its values ("f32", "n32", "pred", ...).
struct GoldenOperand {
  char name = 0;  // a ... f, D ... G; 0 for an immediate
  std::string kind;
};
// The registers of a golden form's line, "add.rn.f32 D:f32 a:f32 b:f32".
std::vector<GoldenOperand> goldenOperands(const std::string& line);
std::vector<Slots> goldenInputs(const std::string& line);
unsigned goldenBytes(const std::string& kind);  // recorded per result of this kind
bool goldenWritesCarry(const std::string& line);

}  // namespace sonde::test
