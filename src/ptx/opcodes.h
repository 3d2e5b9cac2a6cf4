// SPDX-License-Identifier: Apache-2.0
//
// Every PTX opcode and modifier word of ISA 9.0 that the parser knows. The
// lists are X-macros so that the enums, the name tables and the documentation
// of coverage come from one place.
#pragma once

#include <cstdint>
#include <string_view>

#include "ptx/opcodes.def"
#include "ptx/types.h"

namespace sonde::ptx {

enum class Opcode : uint16_t {
  invalid,
#define SONDE_PTX_OPCODE(id, text) id,
  SONDE_PTX_OPCODES(SONDE_PTX_OPCODE)
#undef SONDE_PTX_OPCODE
      count_,
};

enum class Mod : uint16_t {
  invalid,
#define SONDE_PTX_MOD(id, text) id,
  SONDE_PTX_MODS(SONDE_PTX_MOD)
#undef SONDE_PTX_MOD
      count_,
};

std::string_view name(Opcode op);
std::string_view name(Mod mod);
Opcode opcodeFromName(std::string_view text);  // Opcode::invalid when unknown
Mod modFromName(std::string_view text);

}  // namespace sonde::ptx
