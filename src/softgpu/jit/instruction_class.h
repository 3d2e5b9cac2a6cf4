// SPDX-License-Identifier: Apache-2.0
//
// Which class counters a PTX instruction belongs to.
#pragma once

#include "ptx/ast.h"
#include "softgpu/exec/counters.h"

namespace sonde::softgpu::jit {

struct InstructionClass {
  exec::RawCounter kind = exec::RawCounter::inst_misc;  // one of inst_integer … inst_inter_thread
  exec::RawCounter flop = exec::RawCounter::count_;     // one of flop_*, or none
  unsigned flopPerThread = 1;                           // operations of one thread (2 for packed types)
};

InstructionClass classify(const ptx::Instruction& instruction);

}  // namespace sonde::softgpu::jit
