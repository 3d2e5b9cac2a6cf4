// SPDX-License-Identifier: Apache-2.0
//
// Which registers an instruction writes and which it reads.
#pragma once

#include <functional>

#include "ptx/ast.h"

namespace sonde::softgpu::jit {

// Number of leading operands that are destinations.
unsigned destinationCount(const ptx::Instruction& instruction);

using RegVisitor = std::function<void(ptx::RegId)>;
void forEachRegister(const ptx::Operand& operand, const RegVisitor& visit);
void forEachDef(const ptx::Instruction& instruction, const RegVisitor& visit);
// Guard, sources, address registers and call arguments.
void forEachUse(const ptx::Instruction& instruction, const RegVisitor& visit);

// add.cc and the like write the carry flag; addc, subc and madc read it.
bool writesCarry(const ptx::Instruction& instruction);
bool readsCarry(const ptx::Instruction& instruction);

}  // namespace sonde::softgpu::jit
