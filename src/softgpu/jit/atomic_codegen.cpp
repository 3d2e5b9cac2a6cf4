// SPDX-License-Identifier: Apache-2.0
//
// Atomics, asynchronous copies and mbarriers: calls of the run-time helpers.
#include "softgpu/exec/atomic_ops.h"
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::AtomicOp;
using llvm::FixedVectorType;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;
using ptx::StateSpace;

bool FunctionCodegen::emitAtomic(const Instruction& in) {
  if (in.op != Opcode::atom && in.op != Opcode::red) return false;
  if (in.has(Mod::async)) return false;
  const AtomicOp op = atomicOperation(in);
  const ScalarType t = in.type();
  const unsigned bits = ptx::bitsOf(t);
  if (bits == 128) {
    emitAtomic128(in, op);
    return true;
  }
  if (bits != 16 && bits != 32 && bits != 64) throw Unsupported("atomics of this type");
  markPosition(in);
  const bool result = in.op == Opcode::atom;
  const size_t first = result ? 1 : 0;
  const unsigned width = in.vectorWidth;
  MemoryAccess a = resolveAddress(in, in.operands[first], in.space, bits / 8, width);
  if (countingMemory()) countByHelper(a);
  lanes = kWarpSize;
  auto part = [&](const Operand& o, unsigned i) -> const Operand& {
    return o.kind == Operand::Kind::vector ? o.elements.at(i) : o;
  };
  for (unsigned i = 0; i < width; ++i) {
    // Of a vector each element is an atomic operation of its own.
    Value* at = genericAddresses(a);
    Value* addresses = spill(i ? b.CreateAdd(at, splat(b.getInt64(i * bits / 8))) : at, 0);
    Value* x = spill(asType(source(part(in.operands[first + 1], i), t), b.getInt64Ty(), false), 1);
    Value* y = llvm::ConstantPointerNull::get(b.getPtrTy());
    if (op == AtomicOp::cas) y = spill(asType(source(in.operands[first + 2], t), b.getInt64Ty(), false), 2);
    const bool wanted = result && part(in.operands[0], i).kind != Operand::Kind::sink;
    Value* out = wanted ? scratch(3) : llvm::ConstantPointerNull::get(b.getPtrTy());
    const uint32_t what = static_cast<uint32_t>(a.space) | static_cast<uint32_t>(op) << 8 |
                          static_cast<uint32_t>(t) << 16 | (i == 0 && width > 1 ? width << 24 : 0);
    b.CreateCall(k_.helper("sonde_atomic", b.getVoidTy(),
                           {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy(),
                            b.getPtrTy()}),
                 {warp_, addresses, effectMask(), b.getInt32(what), x, y, out});
    if (!wanted) continue;
    Value* row = b.CreateAlignedLoad(FixedVectorType::get(b.getInt64Ty(), kWarpSize), out, llvm::Align(64));
    store(part(in.operands[0], i), asType(row, b.getIntNTy(bits), false), t);
  }
  return true;
}

// atom.cas.b128 and atom.exch.b128: operands and result as rows of low halves, then of high ones.
void FunctionCodegen::emitAtomic128(const Instruction& in, AtomicOp op) {
  if (op != AtomicOp::cas && op != AtomicOp::exch) throw Unsupported("this 128-bit atomic operation");
  markPosition(in);
  MemoryAccess a = resolveAddress(in, in.operands.at(1), in.space, 16, 1);
  if (countingMemory()) countByHelper(a);
  lanes = kWarpSize;
  llvm::Type* row64 = FixedVectorType::get(b.getInt64Ty(), kWarpSize);
  constexpr uint64_t kHigh = kWarpSize * 8;
  auto wide = [&](const Operand& o, unsigned which) {
    Value* v = source(o, ScalarType::b128);
    Value* to = spill(b.CreateTrunc(v, row64), which);
    b.CreateAlignedStore(b.CreateTrunc(b.CreateLShr(v, 64), row64),
                         b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), to, kHigh), llvm::Align(64));
    return to;
  };
  Value* addresses = spill(genericAddresses(a), 0);
  Value* x = wide(in.operands.at(2), 1);
  Value* y = llvm::ConstantPointerNull::get(b.getPtrTy());
  if (op == AtomicOp::cas) y = wide(in.operands.at(3), 2);
  Value* out = scratch(3);
  b.CreateCall(
      k_.helper("sonde_atomic128", b.getVoidTy(),
                {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}),
      {warp_, addresses, effectMask(), b.getInt32(static_cast<uint32_t>(a.space)), x, y, out});
  if (in.operands[0].kind == Operand::Kind::sink) return;
  llvm::Type* row128 = FixedVectorType::get(b.getInt128Ty(), kWarpSize);
  auto half = [&](uint64_t at) {
    return b.CreateZExt(
        b.CreateAlignedLoad(row64, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), out, at), llvm::Align(64)), row128);
  };
  store(in.operands[0], b.CreateOr(half(0), b.CreateShl(half(kHigh), 64)), ScalarType::b128);
}

// Copies happen at issue, so that waiting for them is nothing.
bool FunctionCodegen::emitAsyncCopy(const Instruction& in) {
  if (in.op != Opcode::cp || !in.has(Mod::async)) return false;
  if (in.has(Mod::commit_group) || in.has(Mod::wait_group) || in.has(Mod::wait_all)) return true;
  if (in.has(Mod::bulk)) return false;
  markPosition(in);
  if (in.has(Mod::mbarrier)) {
    // The thread's copies are done: an arrival that counts only with .noinc.
    if (!in.has(Mod::noinc)) return true;
    MemoryAccess a = resolveAddress(in, in.operands[0], in.space, 8, 1);
    lanes = kWarpSize;
    Value* addresses = spill(genericAddresses(a), 0);
    Value* one = spill(splat(b.getInt64(1)), 1);
    const uint32_t what = static_cast<uint32_t>(a.space) | static_cast<uint32_t>(exec::MbarrierOp::arrive) << 8;
    b.CreateCall(k_.helper("sonde_mbarrier", b.getVoidTy(),
                           {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy()}),
                 {warp_, addresses, effectMask(), b.getInt32(what), one, scratch(2)});
    return true;
  }
  // cp.async.{ca,cg}.shared.global [dst], [src], size{, src-size}
  const Operand& size = in.operands[2];
  if (size.kind != Operand::Kind::integer) throw Unsupported("a copy size that is not constant");
  MemoryAccess to = resolveAddress(in, in.operands[0], StateSpace::shared, 4, 1);
  MemoryAccess from = resolveAddress(in, in.operands[1], StateSpace::global, 4, 1);
  lanes = kWarpSize;
  Value* toRow = spill(genericAddresses(to), 0);
  Value* fromRow = spill(genericAddresses(from), 1);
  Value* valid = splat(b.getInt32(static_cast<uint32_t>(size.imm)));
  if (in.operands.size() > 3) {
    const Operand& o = in.operands[3];
    const bool predicate = o.kind == Operand::Kind::reg && function.registers[o.reg].type == ScalarType::pred;
    if (predicate)
      valid = b.CreateSelect(source(o, ScalarType::pred), splat(b.getInt32(0)), valid);
    else if (!in.has(Mod::L2_cache_hint))
      valid = source(o, ScalarType::u32);
  }
  Value* validRow = spill(valid, 2);
  if (countingMemory())
    b.CreateCall(
        k_.helper(
            "sonde_count_copy", b.getVoidTy(),
            {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getInt32Ty()}),
        {warp_, toRow, fromRow, effectMask(),
         b.getInt32(static_cast<uint32_t>(size.imm) | (in.has(Mod::cg) ? 1u << 8 : 0)), validRow, accessBase()});
  b.CreateCall(k_.helper("sonde_cp_async", b.getVoidTy(),
                         {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy()}),
               {warp_, toRow, fromRow, effectMask(), b.getInt32(static_cast<uint32_t>(size.imm)), validRow});
  return true;
}

// One helper for all forms; the object in memory has our own encoding.
bool FunctionCodegen::emitMbarrier(const Instruction& in) {
  if (in.op != Opcode::mbarrier) return false;
  using exec::MbarrierOp;
  lanes = kWarpSize;
  if (in.has(Mod::pending_count)) {
    Value* state = source(in.operands[1], ScalarType::b64);
    store(in.operands[0], b.CreateAnd(state, splat(b.getInt64(0xfffff))), ScalarType::u64);
    return true;
  }
  MbarrierOp op{};
  const bool arriving = in.has(Mod::arrive) || in.has(Mod::arrive_drop);
  const bool waiting = in.has(Mod::test_wait) || in.has(Mod::try_wait);
  if (in.has(Mod::init))
    op = MbarrierOp::init;
  else if (in.has(Mod::inval))
    return true;
  else if (arriving)
    op = in.has(Mod::arrive_drop) ? MbarrierOp::arriveDrop
         : in.has(Mod::expect_tx) ? MbarrierOp::arriveExpect
                                  : MbarrierOp::arrive;
  else if (in.has(Mod::expect_tx))
    op = MbarrierOp::expect;
  else if (in.has(Mod::complete_tx))
    op = MbarrierOp::complete;
  else if (waiting)
    op = in.has(Mod::parity) ? MbarrierOp::testParity : MbarrierOp::testState;
  else
    return false;
  markPosition(in);
  const bool hasResult = arriving || waiting;
  const size_t first = hasResult && in.operands[0].kind != Operand::Kind::address ? 1 : 0;
  MemoryAccess a = resolveAddress(in, in.operands[first], in.space, 8, 1);
  lanes = kWarpSize;
  Value* addresses = spill(genericAddresses(a), 0);
  Value* amount = splat(b.getInt64(1));
  if (in.operands.size() > first + 1) {
    const bool wide = op == MbarrierOp::testState;
    amount = asType(source(in.operands[first + 1], wide ? ScalarType::b64 : ScalarType::u32), b.getInt64Ty(), false);
  }
  Value* amounts = spill(amount, 1);
  Value* out = scratch(2);
  const uint32_t what =
      static_cast<uint32_t>(a.space) | static_cast<uint32_t>(op) << 8 | (in.has(Mod::try_wait) ? 1u << 16 : 0);
  b.CreateCall(k_.helper("sonde_mbarrier", b.getVoidTy(),
                         {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy()}),
               {warp_, addresses, effectMask(), b.getInt32(what), amounts, out});
  if (!first) return true;
  Value* row = b.CreateAlignedLoad(FixedVectorType::get(b.getInt64Ty(), kWarpSize), out, llvm::Align(64));
  if (waiting)
    store(in.operands[0], b.CreateICmpNE(row, llvm::Constant::getNullValue(row->getType())), ScalarType::pred);
  else
    store(in.operands[0], row, ScalarType::b64);
  return true;
}

}  // namespace sonde::softgpu::jit
