// SPDX-License-Identifier: Apache-2.0
//
// Stores: like loads, see memory_codegen.cpp.
#include "softgpu/exec/device_memory.h"
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::WarpState;
using llvm::BasicBlock;
using llvm::FixedVectorType;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::StateSpace;

void FunctionCodegen::storeUniform(const MemoryAccess& a, const std::vector<Value*>& values) {
  auto& c = b.getContext();
  countUniform(a);
  BasicBlock* fast = BasicBlock::Create(c, "st_fast", target_);
  BasicBlock* slow = BasicBlock::Create(c, "st_slow", target_);
  BasicBlock* done = BasicBlock::Create(c, "st_done", target_);
  // All lanes write one place: the last one wins.
  std::vector<Value*> scalars;
  for (Value* v : values) {
    if (v->getType()->isVectorTy()) {
      Value* leading = b.CreateIntrinsic(llvm::Intrinsic::ctlz, {b.getInt32Ty()}, {effectMask(), b.getTrue()});
      v = b.CreateExtractElement(v, b.CreateSub(b.getInt32(31), leading));
    }
    scalars.push_back(v);
  }
  branchLikely(scalarInRange(a, a.address, a.bytes * a.count), fast, slow);
  b.SetInsertPoint(fast);
  Value* p = scalarPointer(a, a.address);
  if (a.whole) {
    Value* all = llvm::PoisonValue::get(FixedVectorType::get(scalars[0]->getType(), 2));
    for (uint64_t i = 0; i < 2; ++i) all = b.CreateInsertElement(all, scalars[i], i);
    b.CreateAlignedStore(all, p, llvm::Align(16), true);
  } else {
    for (unsigned i = 0; i < a.count; ++i)
      b.CreateAlignedStore(scalars[i], b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), p, i * a.bytes),
                           llvm::Align(a.bytes));
  }
  b.CreateBr(done);
  b.SetInsertPoint(slow);
  Value* from = scratch(1);
  for (unsigned i = 0; i < a.count; ++i)
    b.CreateAlignedStore(scalars[i], b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), from, i * a.bytes),
                         llvm::Align(a.bytes));
  b.CreateCall(k_.helper("sonde_store1", b.getVoidTy(),
                         {b.getPtrTy(), b.getInt64Ty(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy()}),
               {warp_, asType(a.address, b.getInt64Ty(), false), effectMask(), b.getInt32(a.described()), from});
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

void FunctionCodegen::storeVarying(const MemoryAccess& a, const std::vector<Value*>& values) {
  if (llvm::Function* f = outlined(a, values[0]->getType()->getScalarType(), true)) {
    std::vector<Value*> args{warp_, effectMask(), a.address};
    if (countingSites()) args.push_back(accessBase());
    for (Value* v : values) args.push_back(v->getType()->isVectorTy() ? v : splat(v));
    b.CreateCall(f, args);
    return;
  }
  auto& c = b.getContext();
  Value* active = effectMask();
  BasicBlock* done = BasicBlock::Create(c, "st_done", target_);
  std::vector<Value*> rows;
  for (Value* v : values) rows.push_back(v->getType()->isVectorTy() ? v : splat(v));

  if (!a.uniform && a.bytes <= 8 && a.space != Space::local) {
    BasicBlock* halves = BasicBlock::Create(c, "st_halves", target_);
    BasicBlock* other = BasicBlock::Create(c, "st_other", target_);
    Halves h = findHalves(a, active, false);
    Value* full = b.CreateICmpEQ(active, b.getInt32(~0u));
    if (!avx512 || a.count > 1) h.found = b.CreateAnd(h.found, full);
    branchLikely(h.found, halves, other);
    b.SetInsertPoint(halves);
    countHalves(a, h);
    Value* low = scalarPointer(a, h.low);
    Value* high = scalarPointer(a, h.high);
    auto part = [&](Value* v, unsigned from, unsigned n) {
      llvm::SmallVector<int, 128> pick;
      for (unsigned l = 0; l < n; ++l) pick.push_back(static_cast<int>(from + l));
      return b.CreateShuffleVector(v, pick);
    };
    if (a.count > 1) {
      std::vector<Value*> parts = rows;
      while (parts.size() > 1) {
        std::vector<Value*> next;
        for (size_t i = 0; i + 1 < parts.size(); i += 2) next.push_back(concat(parts[i], parts[i + 1]));
        parts = std::move(next);
      }
      llvm::SmallVector<int, 256> pick;
      for (unsigned l = 0; l < kWarpSize; ++l)
        for (unsigned i = 0; i < a.count; ++i) pick.push_back(static_cast<int>(i * kWarpSize + l));
      Value* all = b.CreateShuffleVector(parts[0], pick);
      b.CreateAlignedStore(part(all, 0, 16 * a.count), low, llvm::Align(a.bytes * a.count));
      b.CreateAlignedStore(part(all, 16 * a.count, 16 * a.count), high, llvm::Align(a.bytes * a.count));
      b.CreateBr(done);
    } else {
      BasicBlock* plain = BasicBlock::Create(c, "st_plain", target_);
      BasicBlock* masked = avx512 ? BasicBlock::Create(c, "st_masked", target_) : nullptr;
      // A masked store costs several times a plain one.
      if (masked)
        branchLikely(full, plain, masked);
      else
        b.CreateBr(plain);
      b.SetInsertPoint(plain);
      b.CreateAlignedStore(part(rows[0], 0, 16), low, llvm::Align(a.bytes));
      b.CreateAlignedStore(part(rows[0], 16, 16), high, llvm::Align(a.bytes));
      b.CreateBr(done);
      if (masked) {
        b.SetInsertPoint(masked);
        auto store = [&](Value* p, unsigned from) {
          Value* bits = b.CreateTrunc(from ? b.CreateLShr(active, from) : active, b.getInt16Ty());
          b.CreateMaskedStore(part(rows[0], from, 16), p, llvm::Align(a.bytes),
                              b.CreateBitCast(bits, FixedVectorType::get(b.getInt1Ty(), 16)));
        };
        store(low, 0);
        store(high, 16);
        b.CreateBr(done);
      }
    }
    b.SetInsertPoint(other);
  }
  countScattered(a);
  if (avx512 && a.space == Space::local && (a.bytes == 4 || a.bytes == 8)) {
    BasicBlock* scatter = BasicBlock::Create(c, "st_scatter", target_);
    BasicBlock* slow = BasicBlock::Create(c, "st_slow", target_);
    branchLikely(lanesInRange(a, active), scatter, slow);
    b.SetInsertPoint(scatter);
    Value* pointers = lanePointers(a);
    for (unsigned i = 0; i < a.count; ++i) {
      Value* p = i ? b.CreateGEP(b.getInt8Ty(), pointers, b.getInt64(i * a.bytes)) : pointers;
      b.CreateMaskedScatter(rows[i], p, llvm::Align(a.bytes), maskVector(active));
    }
    b.CreateBr(done);
    b.SetInsertPoint(slow);
  }
  Value* addresses = spill(genericAddresses(a), 0);
  Value* from = scratch(1);
  if (a.whole) {  // lane by lane
    llvm::SmallVector<int, 64> pick;
    for (unsigned l = 0; l < 2 * kWarpSize; ++l) pick.push_back(static_cast<int>(l / 2 + l % 2 * kWarpSize));
    b.CreateAlignedStore(b.CreateShuffleVector(rows[0], rows[1], pick), from, llvm::Align(32));
  } else {
    for (unsigned i = 0; i < a.count; ++i)
      b.CreateAlignedStore(rows[i], b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), from, i * a.bytes * kWarpSize),
                           llvm::Align(32));
  }
  b.CreateCall(k_.helper("sonde_store", b.getVoidTy(),
                         {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy()}),
               {warp_, addresses, active, b.getInt32(a.described()), from});
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

void FunctionCodegen::emitStore(const Instruction& in) {
  const ptx::ScalarType t = in.type();
  const unsigned bytes = ptx::bitsOf(t) / 8;
  if (bytes == 0 || bytes > 16) unsupported(in, "a store of this type");
  const bool wide = bytes == 16;
  const unsigned count = in.vectorWidth * (wide ? 2 : 1);
  markPosition(in);
  const bool ordered = in.has(Mod::volatile_) || in.has(Mod::relaxed) || in.has(Mod::release) || in.has(Mod::mmio);
  if (ordered) compilerFence();
  MemoryAccess a = resolveAddress(in, in.operands[0], in.space, wide ? 8 : bytes, count);
  const Operand& d = in.operands[1];
  std::vector<Operand> parts;
  if (d.kind == Operand::Kind::vector) {
    parts = d.elements;
  } else if (in.vectorWidth > 1) {
    for (unsigned i = 0; i < in.vectorWidth; ++i) {
      parts.push_back(d);
      parts.back().component = static_cast<int8_t>(i);
    }
  } else {
    parts.push_back(d);
  }
  bool uniformData = true;
  for (const Operand& o : parts) uniformData &= flow_.operandUniform(o);
  lanes = uniformData && a.uniform && a.space != Space::local ? 1 : kWarpSize;
  std::vector<Value*> values;
  for (const Operand& o : parts) {
    Value* v = source(o, t);
    if (!wide) {
      values.push_back(v);
      continue;
    }
    values.push_back(b.CreateTrunc(v, form(b.getInt64Ty())));
    values.push_back(b.CreateTrunc(b.CreateLShr(v, 64), form(b.getInt64Ty())));
  }
  if (const unsigned joined = joinElements(in, a); joined > 1) {
    std::vector<Value*> whole;
    llvm::Type* unit = form(b.getIntNTy(8 * a.bytes));
    for (size_t i = 0; i < values.size(); ++i) {
      Value* v = b.CreateZExt(asType(values[i], b.getIntNTy(8 * bytes), false), unit);
      if (i % joined == 0)
        whole.push_back(v);
      else
        whole.back() = b.CreateOr(whole.back(), b.CreateShl(v, uint64_t{8} * bytes * (i % joined)));
    }
    values = std::move(whole);
  }
  if (a.uniform && a.space != Space::local)
    storeUniform(a, values);
  else
    storeVarying(a, values);
  if (ordered) compilerFence();
}

}  // namespace sonde::softgpu::jit
