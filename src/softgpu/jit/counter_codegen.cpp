// SPDX-License-Identifier: Apache-2.0
//
// The counting variant.
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::RawCounter;
using exec::WarpState;
using llvm::Value;
using ptx::Instruction;
using ptx::Opcode;

void FunctionCodegen::addToSlot(uint32_t slot, Value* amount) {
  Value* base = warpField(offsetof(WarpState, counters), b.getPtrTy(), "counters");
  Value* p = b.CreateConstInBoundsGEP1_32(b.getInt64Ty(), base, slot);
  b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), p), amount), p);
}

void FunctionCodegen::countBlock(uint32_t) {}
void FunctionCodegen::countGuarded(const Instruction&, Value*) {}
void FunctionCodegen::countAccess(const Instruction&, const MemoryAccess&, bool) {}
void FunctionCodegen::countPmEvent(const Instruction&) {}

}  // namespace sonde::softgpu::jit
