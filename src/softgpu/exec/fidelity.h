// SPDX-License-Identifier: Apache-2.0
//
// How faithful each instruction is: the table behind docs/INSTRUCTIONS.md and
// `sonde run --fidelity`.
#pragma once

#include <string>

#include "ptx/ast.h"
#include "softgpu/exec/engine.h"

namespace sonde::softgpu::exec {

struct OpcodeFidelity {
  Fidelity fidelity = Fidelity::exact;  // of the plain forms
  const char* remark = "";              // forms that differ from that, or what it means here
};
OpcodeFidelity fidelityOf(ptx::Opcode opcode);

// Of one instruction with its modifiers and types. `unsupported` for the forms
// that the code generator refuses.
Fidelity fidelityOf(const ptx::Instruction& instruction);
const char* name(Fidelity fidelity);  // "exact", "within bound", "order-dependent", "unsupported"

// The instructions of a kernel and of what it calls, one line for each
// different mnemonic: kernel, class, count, mnemonic and remark, separated by tabs.
std::string fidelityReport(const ptx::Module& module, uint32_t kernel);

}  // namespace sonde::softgpu::exec
