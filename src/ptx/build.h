// SPDX-License-Identifier: Apache-2.0
//
// New instructions and operands for code that rewrites PTX.
#pragma once

#include <string_view>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

// An instruction with this head ("st.global.u32"), known to the module's mnemonic table, so that it prints as written.
// op is Opcode::invalid when a word of the head is unknown. Take position and location from a neighbour where wanted.
Instruction makeInstruction(Module& module, std::string_view mnemonic, std::vector<Operand> operands = {},
                            Guard guard = {});

// A fresh register of the function; its name is `prefix` and a number that no other register has.
RegId addRegister(Function& function, std::string_view prefix, ScalarType type);

Operand regOperand(RegId reg);
Operand sinkOperand();
Operand intOperand(int64_t value);
Operand specialOperand(SpecialReg reg, int component = -1);
Operand addressOperand(RegId base, int64_t offset = 0);
// [variable + offset] or the variable's name as a value.
Operand variableAddress(Operand::Ref ref, uint32_t id, int64_t offset = 0);
Operand variableOperand(Operand::Ref ref, uint32_t id, int64_t offset = 0);

// Inserts before body[at]. Labels that stand there stay in front of the new code, so that jumps run it too; those
// further down move along with their instructions.
void insertInstructions(Function& function, uint32_t at, std::vector<Instruction> code);

}  // namespace sonde::ptx
