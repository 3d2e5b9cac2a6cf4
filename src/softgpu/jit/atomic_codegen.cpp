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

namespace {

using BinOp = llvm::AtomicRMWInst::BinOp;

BinOp hostOperation(AtomicOp op, bool isSigned) {
  switch (op) {
    case AtomicOp::add: return BinOp::Add;
    case AtomicOp::bitAnd: return BinOp::And;
    case AtomicOp::bitOr: return BinOp::Or;
    case AtomicOp::bitXor: return BinOp::Xor;
    case AtomicOp::min: return isSigned ? BinOp::Min : BinOp::UMin;
    case AtomicOp::max: return isSigned ? BinOp::Max : BinOp::UMax;
    default: return BinOp::BAD_BINOP;
  }
}

Value* combine(llvm::IRBuilder<>& b, BinOp op, Value* x, Value* y) {
  switch (op) {
    case BinOp::Add: return b.CreateAdd(x, y);
    case BinOp::And: return b.CreateAnd(x, y);
    case BinOp::Or: return b.CreateOr(x, y);
    case BinOp::Xor: return b.CreateXor(x, y);
    case BinOp::Min: return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y);
    case BinOp::Max: return b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, x, y);
    case BinOp::UMin: return b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, x, y);
    default: return b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, x, y);
  }
}

// What idle lanes have, so that they change nothing.
llvm::APInt neutral(BinOp op, unsigned bits) {
  switch (op) {
    case BinOp::And:
    case BinOp::UMin: return llvm::APInt::getAllOnes(bits);
    case BinOp::Min: return llvm::APInt::getSignedMaxValue(bits);
    case BinOp::Max: return llvm::APInt::getSignedMinValue(bits);
    default: return llvm::APInt::getZero(bits);
  }
}

Value* reduceLanes(llvm::IRBuilder<>& b, BinOp op, Value* row) {
  switch (op) {
    case BinOp::Add: return b.CreateAddReduce(row);
    case BinOp::And: return b.CreateAndReduce(row);
    case BinOp::Or: return b.CreateOrReduce(row);
    case BinOp::Xor: return b.CreateXorReduce(row);
    case BinOp::Min: return b.CreateIntMinReduce(row, true);
    case BinOp::Max: return b.CreateIntMaxReduce(row, true);
    case BinOp::UMin: return b.CreateIntMinReduce(row, false);
    default: return b.CreateIntMaxReduce(row, false);
  }
}

}  // namespace

// Rows of 64 bits; y: of a comparison, or null. `width`: elements of the instruction, with its first one. Answers the
// old values where they are wanted.
Value* FunctionCodegen::callAtomic(const MemoryAccess& a, AtomicOp op, ScalarType t, Value* addresses, Value* x,
                                   Value* y, bool wanted, unsigned width) {
  Value* const null = llvm::ConstantPointerNull::get(b.getPtrTy());
  Value* at = spill(addresses, 0);
  Value* values = spill(x, 1);
  Value* others = y ? spill(y, 2) : null;
  Value* out = wanted ? scratch(3) : null;
  const uint32_t what = static_cast<uint32_t>(a.space) | static_cast<uint32_t>(op) << 8 |
                        static_cast<uint32_t>(t) << 16 | (width > 1 ? width << 24 : 0);
  b.CreateCall(
      k_.helper("sonde_atomic", b.getVoidTy(),
                {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}),
      {warp_, at, effectMask(), b.getInt32(what), values, others, out});
  if (!wanted) return nullptr;
  return b.CreateAlignedLoad(FixedVectorType::get(b.getInt64Ty(), kWarpSize), out, llvm::Align(64));
}

// Integer operations of all lanes on one place: the lanes' values are combined first, and the host's memory sees one
// operation. Its order is one of those that the lanes' own could have had. False: not such an instruction.
bool FunctionCodegen::emitUniformAtomic(const Instruction& in, AtomicOp op, const MemoryAccess& a) {
  const ScalarType t = in.type();
  const unsigned bits = ptx::bitsOf(t);
  const BinOp host = hostOperation(op, ptx::isSigned(t));
  if (!a.uniform || a.space == Space::local || a.count != 1 || bits < 32 || ptx::isFloat(t) || host == BinOp::BAD_BINOP)
    return false;
  const bool wanted = in.op == Opcode::atom && in.operands[0].kind != Operand::Kind::sink;
  if (wanted && op != AtomicOp::add) return false;  // each lane's old value would have to be found
  const Operand& operand = in.operands[in.op == Opcode::atom ? 2 : 1];
  llvm::IntegerType* type = b.getIntNTy(bits);
  auto* row = FixedVectorType::get(type, kWarpSize);
  Value* active = effectMask();
  const bool same = flow_.operandUniform(operand);
  lanes = same ? 1 : kWarpSize;
  Value* x = asType(source(operand, t), type, false);
  auto& c = b.getContext();
  llvm::BasicBlock* fast = llvm::BasicBlock::Create(c, "atom_fast", target_);
  llvm::BasicBlock* slow = llvm::BasicBlock::Create(c, "atom_slow", target_);
  llvm::BasicBlock* done = llvm::BasicBlock::Create(c, "atom_done", target_);
  branchLikely(scalarInRange(a, a.address, a.bytes), fast, slow);

  b.SetInsertPoint(fast);
  Value* all = x;
  Value* masked = nullptr;
  if (!same) {
    masked = b.CreateSelect(maskVector(active), x, llvm::ConstantInt::get(row, neutral(host, bits)));
    all = reduceLanes(b, host, masked);
  } else if (op == AtomicOp::add) {
    all = b.CreateMul(x, b.CreateTrunc(popcount(active), type));
  } else if (op == AtomicOp::bitXor) {
    all = b.CreateMul(x, b.CreateTrunc(b.CreateAnd(popcount(active), b.getInt64(1)), type));
  }
  Value* p = scalarPointer(a, a.address);
  Value* old = nullptr;
  if (a.space == Space::shared) {  // this host thread's
    old = b.CreateAlignedLoad(type, p, llvm::Align(a.bytes));
    b.CreateAlignedStore(combine(b, host, old, all), p, llvm::Align(a.bytes));
  } else {
    old = b.CreateAtomicRMW(host, p, all, llvm::Align(a.bytes), llvm::AtomicOrdering::SequentiallyConsistent);
  }
  Value* viaFast = nullptr;
  if (wanted) {
    // As if the lanes came one after the other, from the lowest.
    Value* before = nullptr;
    if (same) {
      llvm::SmallVector<llvm::Constant*, kWarpSize> lower;
      for (unsigned l = 0; l < kWarpSize; ++l) lower.push_back(b.getInt32((uint32_t{1} << l) - 1));
      Value* set = b.CreateAnd(splat(active), llvm::ConstantVector::get(lower));
      Value* count = b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, set);
      before = b.CreateMul(b.CreateZExt(count, row), splat(x));
    } else {
      Value* zeros = llvm::Constant::getNullValue(row);
      Value* sum = masked;
      for (unsigned step = 1; step < kWarpSize; step *= 2) {
        llvm::SmallVector<int, kWarpSize> pick;
        for (unsigned l = 0; l < kWarpSize; ++l) pick.push_back(static_cast<int>(l + kWarpSize - step));
        sum = b.CreateAdd(sum, b.CreateShuffleVector(zeros, sum, pick));
      }
      before = b.CreateSub(sum, masked);
    }
    viaFast = b.CreateAdd(splat(old), before);
  }
  llvm::BasicBlock* fastEnd = b.GetInsertBlock();
  b.CreateBr(done);

  b.SetInsertPoint(slow);
  Value* values = b.CreateZExt(same ? splat(x) : x, FixedVectorType::get(b.getInt64Ty(), kWarpSize));
  Value* viaSlow = callAtomic(a, op, t, genericAddresses(a), values, nullptr, wanted, 1);
  if (wanted) viaSlow = b.CreateTrunc(viaSlow, row);
  llvm::BasicBlock* slowEnd = b.GetInsertBlock();
  b.CreateBr(done);

  b.SetInsertPoint(done);
  if (!wanted) return true;
  llvm::PHINode* result = b.CreatePHI(row, 2);
  result->addIncoming(viaFast, fastEnd);
  result->addIncoming(viaSlow, slowEnd);
  lanes = kWarpSize;
  store(in.operands[0], result, t);
  return true;
}

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
  if (emitUniformAtomic(in, op, a)) return true;
  for (unsigned i = 0; i < width; ++i) {
    // Of a vector each element is an atomic operation of its own.
    Value* at = genericAddresses(a);
    if (i) at = b.CreateAdd(at, splat(b.getInt64(i * bits / 8)));
    Value* x = asType(source(part(in.operands[first + 1], i), t), b.getInt64Ty(), false);
    Value* y = op == AtomicOp::cas ? asType(source(in.operands[first + 2], t), b.getInt64Ty(), false) : nullptr;
    const bool wanted = result && part(in.operands[0], i).kind != Operand::Kind::sink;
    Value* row = callAtomic(a, op, t, at, x, y, wanted, i == 0 ? width : 1);
    if (!wanted) continue;
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
