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

// The class as instruction-execution records name it (CUpti_ActivityInstructionClass).
enum class RecordClass : uint8_t {
  fp32 = 1,
  fp64 = 2,
  integer = 3,
  bitConversion = 4,
  controlFlow = 5,
  global = 6,
  shared = 7,
  local = 8,
  generic = 9,
  surface = 10,
  constant = 11,
  texture = 12,
  globalAtomic = 13,
  sharedAtomic = 14,
  surfaceAtomic = 15,
  interThread = 16,
  barrier = 17,
  miscellaneous = 18,
  fp16 = 19,
};
// Agrees with classify(): fp32 … interThread with the counters of those names,
// memory classes with inst_compute_ld_st, barrier and miscellaneous with inst_misc.
// ofKernel: the instruction stands in a .entry, whose parameters are constants.
RecordClass recordClass(const ptx::Instruction& instruction, bool ofKernel);

}  // namespace sonde::softgpu::jit
