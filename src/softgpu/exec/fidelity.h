// SPDX-License-Identifier: Apache-2.0
//
// How faithfully the software GPU does what an instruction says
// (docs/INSTRUCTIONS.md; `sonde run --fidelity` for one program).
#pragma once

#include <string>

#include "ptx/ast.h"
#include "softgpu/exec/engine.h"

namespace sonde::softgpu::exec {

// Of the everyday form of an opcode.
Fidelity fidelityOf(ptx::Opcode op);
// Of an instruction with its modifiers and types.
Fidelity fidelityOf(const ptx::Instruction& instruction);
const char* nameOf(Fidelity fidelity);  // "exact", "within bound", "order-dependent", "unsupported"

// One line about a kernel and what it calls: which instructions are not exact, and where.
std::string fidelityReport(const ptx::Module& module, uint32_t function);

}  // namespace sonde::softgpu::exec
