// SPDX-License-Identifier: Apache-2.0
//
// The table that the checker reads: one or more forms of each opcode.
#pragma once

#include <string_view>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

// How one operand is written and used.
struct OperandRule {
  enum class Kind : uint8_t {
    dest,      // register of types[typeIndex]
    source,    // register or value of types[typeIndex]
    wideDest,  // register twice as wide as types[0]
    wideSource,
    destOf,    // register of the fixed type `type`
    sourceOf,  // value of the fixed type `type`
    predDest,
    predSource,
    pairDest,  // dest, or dest|predicate
    predPair,  // predicate, or predicate|predicate
    address,
    immediate,  // an integer constant
    label,
    any,
  };
  Kind kind = Kind::any;
  uint8_t typeIndex = 0;
  ScalarType type = ScalarType::none;
  bool optional = false;
};

struct InstructionRule {
  Opcode op;
  std::vector<Mod> keys;                       // the form has all of these
  std::vector<std::vector<Mod>> oneOf;         // … and exactly one of each of these groups
  std::vector<Mod> optional;                   // … and perhaps some of these
  std::vector<std::vector<ScalarType>> types;  // allowed types, place by place; a shorter list repeats the last place
  bool openMods = false;                       // modifiers are not checked ("*")
  bool openTypes = false;                      // types are not checked
  bool openOperands = false;                   // operands are not checked
  std::vector<OperandRule> operands;
  uint16_t version = 0;  // ISA version this form needs, times 10 (9.0 is 90)
  uint16_t target = 0;
};

// All forms of an opcode, in the order of the table. Never empty for a valid opcode.
const std::vector<InstructionRule>& rulesOf(Opcode op);

}  // namespace sonde::ptx
