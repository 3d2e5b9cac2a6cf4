// SPDX-License-Identifier: Apache-2.0
//
// Module back to PTX text. parse(print(m)) gives m again, but for positions
// and the numbering of locations.
#pragma once

#include <string>

#include "ptx/ast.h"

namespace sonde::ptx {

struct PrintOptions {
  bool locations = true;  // .file, .loc and .section
};

std::string print(const Module& module, const PrintOptions& options = {});

// One instruction, "@%p1 add.s32 %r1, %r2, 5;".
std::string print(const Instruction& instruction, const Function& function, const Module& module);
std::string print(const Operand& operand, const Function& function, const Module& module);

// The head of an instruction: as parsed, or put together from its parts when it was not parsed.
std::string mnemonicText(const Instruction& instruction, const Module& module);

}  // namespace sonde::ptx
