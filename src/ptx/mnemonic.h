// SPDX-License-Identifier: Apache-2.0
//
// Decodes the dotted head of an instruction ("ld.global.nc.v4.f32") into
// opcode, modifiers, types, state spaces and vector width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

struct Mnemonic {
  Opcode op = Opcode::invalid;
  std::vector<Mod> mods;
  std::vector<ScalarType> types;
  StateSpace space = StateSpace::none, space2 = StateSpace::none;
  uint8_t vectorWidth = 1;
  Instruction::Shape shape;
  std::string error;       // empty when every word is known
  size_t errorOffset = 0;  // of the offending word in the text
};

Mnemonic decodeMnemonic(std::string_view text);

// Copies the decoded parts into an instruction.
void apply(const Mnemonic& mnemonic, Instruction& instruction);

}  // namespace sonde::ptx
