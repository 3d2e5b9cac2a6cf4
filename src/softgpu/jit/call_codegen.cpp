// SPDX-License-Identifier: Apache-2.0
//
// Kernel parameters, the parameter cells of calls, and calls. Every compiled
// function and every built-in has one signature (exec::WarpFunction): arguments
// and results are rows of 32-lane words.
#include <algorithm>

#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::WarpState;
using llvm::BasicBlock;
using llvm::FixedVectorType;
using llvm::Value;
using ptx::Instruction;
using ptx::Operand;
using ptx::ScalarType;
using ptx::StateSpace;

namespace {

// Component c of an argument or a result that is a vector of registers.
Operand component(const Operand& o, unsigned c, unsigned count) {
  if (count == 1) return o;
  if (o.kind == Operand::Kind::vector) return o.elements.at(c);
  Operand part = o;
  part.component = static_cast<int8_t>(c);
  return part;
}

}  // namespace

FunctionCodegen::Cells* FunctionCodegen::cellsOf(const Operand& o, uint32_t* offset) {
  *offset = static_cast<uint32_t>(o.offset);
  switch (o.ref) {
    case Operand::Ref::localVar: return &varCells_[o.refId];
    case Operand::Ref::param: return isKernel_ ? nullptr : &argCells_[o.refId];
    case Operand::Ref::returnParam: return &resultCells_[o.refId];
    default: return nullptr;
  }
}

// Row of 32 lanes of `element` at byte `offset`.
Value* FunctionCodegen::readCells(const Cells& cells, uint32_t offset, llvm::Type* element) {
  const unsigned bits = element->getScalarSizeInBits();
  llvm::Type* word = FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  auto load = [&](uint32_t w) -> Value* {
    if (w >= cells.words.size()) throw Unsupported("a parameter read beyond its end");
    return b.CreateAlignedLoad(word, cells.words[w], llvm::Align(64));
  };
  Value* v = load(offset / 4);
  if (bits < 32) {
    if (offset % 4) v = b.CreateLShr(v, (offset % 4) * 8);
  } else if (bits > 32) {
    llvm::Type* wide = FixedVectorType::get(b.getIntNTy(bits), kWarpSize);
    v = b.CreateZExt(v, wide);
    for (unsigned i = 1; i < bits / 32; ++i)
      v = b.CreateOr(v, b.CreateShl(b.CreateZExt(load(offset / 4 + i), wide), i * 32));
  }
  return asType(v, element, false);
}

void FunctionCodegen::writeCells(const Cells& cells, uint32_t offset, Value* row, llvm::Type* element) {
  const unsigned bits = element->getScalarSizeInBits();
  llvm::Type* word = FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  if (!row->getType()->isVectorTy()) row = splat(row);
  Value* v = asType(row, b.getIntNTy(bits), false);
  Value* active = maskVector(effectMask());
  auto put = [&](uint32_t w, Value* value, uint32_t keep) {
    if (w >= cells.words.size()) throw Unsupported("a parameter written beyond its end");
    const bool all = cells.oneBlock && !effect_;
    if (all && !keep) {
      b.CreateAlignedStore(value, cells.words[w], llvm::Align(64));
      return;
    }
    Value* old = b.CreateAlignedLoad(word, cells.words[w], llvm::Align(64));
    if (keep) value = b.CreateOr(value, b.CreateAnd(old, splat(b.getInt32(keep))));
    b.CreateAlignedStore(all ? value : b.CreateSelect(active, value, old), cells.words[w], llvm::Align(64));
  };
  if (bits < 32) {
    const uint32_t shift = (offset % 4) * 8;
    const uint32_t field = ((1u << bits) - 1) << shift;
    put(offset / 4, b.CreateShl(b.CreateZExt(v, word), shift), ~field);
    return;
  }
  for (unsigned i = 0; i < bits / 32; ++i) {
    Value* part = i ? b.CreateLShr(v, i * 32) : v;
    put(offset / 4 + i, bits == 32 ? part : b.CreateTrunc(part, word), 0);
  }
}

void FunctionCodegen::emitParamLoad(const Instruction& in) {
  const Operand& address = in.operands[1];
  const ScalarType t = in.type();
  llvm::Type* element = scalarType(t);
  std::vector<Operand> parts;
  const Operand& d = in.operands[0];
  if (d.kind == Operand::Kind::vector) {
    parts = d.elements;
  } else {
    for (unsigned i = 0; i < in.vectorWidth; ++i) {
      parts.push_back(d);
      if (in.vectorWidth > 1) parts.back().component = static_cast<int8_t>(i);
    }
  }
  const uint32_t bytes = ptx::bitsOf(t) / 8;
  if (isKernel_ && address.ref == Operand::Ref::param) {
    lanes = 1;
    Value* base = warpField(offsetof(WarpState, params), b.getPtrTy(), "params");
    const int64_t at = static_cast<int64_t>(function.paramOffsets[address.refId]) + address.offset;
    if (at < 0 || at + int64_t{bytes} * static_cast<int64_t>(parts.size()) > function.paramBytes)
      unsupported(in, "reads outside the kernel's parameters");
    for (size_t i = 0; i < parts.size(); ++i) {
      Value* p = b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), base,
                                              static_cast<unsigned>(at + static_cast<int64_t>(i * bytes)));
      llvm::LoadInst* v = b.CreateAlignedLoad(element, p, llvm::Align(1));
      v->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
      store(parts[i], v, t);
    }
    return;
  }
  uint32_t offset = 0;
  Cells* cells = cellsOf(address, &offset);
  if (!cells) unsupported(in, "this kind of parameter");
  lanes = kWarpSize;
  for (size_t i = 0; i < parts.size(); ++i)
    store(parts[i], readCells(*cells, offset + static_cast<uint32_t>(i) * bytes, element), t);
}

void FunctionCodegen::emitParamStore(const Instruction& in) {
  const ScalarType t = in.type();
  uint32_t offset = 0;
  Cells* cells = cellsOf(in.operands[0], &offset);
  if (!cells) unsupported(in, "this kind of parameter");
  lanes = kWarpSize;
  const uint32_t bytes = ptx::bitsOf(t) / 8;
  const Operand& d = in.operands[1];
  std::vector<Operand> parts = d.kind == Operand::Kind::vector ? d.elements : std::vector<Operand>{d};
  for (size_t i = 0; i < parts.size(); ++i)
    writeCells(*cells, offset + static_cast<uint32_t>(i) * bytes, source(parts[i], t), scalarType(t));
}

Value* FunctionCodegen::callDirect(Value* callee, Value* active, Value* args, Value* results) {
  return b.CreateCall(k_.warpFunctionType(), callee, {warp_, active, args, results});
}

// A call beside which other lanes go on: begins it, or goes on with it, until it ends or yields. The lanes whose call
// has ended are mask_ afterwards; the others wait at the block. Answers those that came back.
Value* FunctionCodegen::stepCall(Value* callee, Value* tokens, Value* args, uint32_t argWords, Value* results,
                                 uint32_t resultWords) {
  llvm::Type *i32 = b.getInt32Ty(), *ptr = b.getPtrTy();
  Value* const null = llvm::ConstantPointerNull::get(b.getPtrTy());
  Value* job = entryAlloca(llvm::ArrayType::get(ptr, 5), "call_job", 8);
  Value* fields[] = {callee ? callee : null, tokens ? k_.llvmModule().getFunction("indirect_target") : null,
                     tokens ? spill(tokens, 0) : null, args, results};
  for (unsigned i = 0; i < std::size(fields); ++i) b.CreateStore(fields[i], b.CreateConstInBoundsGEP1_32(ptr, job, i));
  Value* live = b.CreateLoad(i32, live_);
  Value* both = b.CreateCall(k_.helper("sonde_step_call", b.getInt64Ty(), {ptr, ptr, i32, i32, i32, i32}),
                             {warp_, job, mask_, live, b.getInt32(argWords), b.getInt32(resultWords)});
  Value* ended = b.CreateTrunc(both, i32);
  b.CreateStore(b.CreateAnd(mask_, b.CreateNot(ended)), pending_[block_]);
  BasicBlock* go = BasicBlock::Create(b.getContext(), "call_ended", target_);
  b.CreateCondBr(b.CreateICmpNE(ended, b.getInt32(0)), go,
                 chainBlock_[std::min<size_t>(flow_.chainIndex(block_) + 1, flow_.chain.size())]);
  b.SetInsertPoint(go);
  mask_ = ended;
  b.CreateStore(mask_, maskSlot_);
  return b.CreateTrunc(b.CreateLShr(both, 32), i32);
}

void FunctionCodegen::emitCall(const Instruction& in) {
  markPosition(in);
  llvm::Type* word = FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  const Operand& target = in.operands.empty() ? Operand{} : in.operands[0];
  const std::vector<ptx::Variable>* params = nullptr;
  const std::vector<ptx::Variable>* returns = nullptr;
  const ptx::Function* callee = nullptr;
  if (target.ref == Operand::Ref::function) {
    callee = &ptxModule.functions[target.refId];
    params = &callee->params;
    returns = &callee->returns;
  } else if (in.callPrototype != ptx::kNoId) {
    params = &function.prototypes[in.callPrototype].params;
    returns = &function.prototypes[in.callPrototype].returns;
  } else if (in.callTargets != ptx::kNoId && !function.branchTargets[in.callTargets].ids.empty()) {
    const ptx::Function& any = ptxModule.functions[function.branchTargets[in.callTargets].ids[0]];
    params = &any.params;
    returns = &any.returns;
  } else {
    unsupported(in, "an indirect call needs a prototype or a list of targets");
  }
  if (in.callArgs.size() > params->size() || in.callReturns.size() > returns->size())
    unsupported(in, "more arguments than the callee declares");

  uint32_t argWords = 0, resultWords = 0;
  for (const auto& p : *params) argWords += cellWords(p);
  for (const auto& r : *returns) resultWords += cellWords(r);
  // One call at a time needs them.
  auto shared = [&](std::map<uint32_t, Value*>& list, uint32_t words, const char* name) {
    Value*& slot = list[std::max(1u, words)];
    if (!slot) slot = entryAlloca(llvm::ArrayType::get(word, std::max(1u, words)), name);
    return slot;
  };
  Value* args = shared(callArguments_, argWords, "args");
  Value* results = shared(callResults_, resultWords, "results");

  lanes = kWarpSize;
  uint32_t at = 0;
  for (size_t i = 0; i < in.callArgs.size(); ++i) {
    const ptx::Variable& p = (*params)[i];
    const Operand& o = in.callArgs[i];
    Cells to;
    for (uint32_t w = 0; w < cellWords(p); ++w) to.words.push_back(b.CreateConstInBoundsGEP1_32(word, args, at + w));
    if (o.ref == Operand::Ref::localVar && function.variables[o.refId].space == StateSpace::param) {
      const Cells& from = varCells_[o.refId];
      for (size_t w = 0; w < to.words.size() && w < from.words.size(); ++w)
        b.CreateAlignedStore(b.CreateAlignedLoad(word, from.words[w], llvm::Align(64)), to.words[w], llvm::Align(64));
    } else {
      for (unsigned c = 0; c < p.vector; ++c)
        writeCells(to, c * registerWords(p) * 4, source(component(o, c, p.vector), p.type), scalarType(p.type));
    }
    at += cellWords(p);
  }

  Value* active = effectMask();
  Value* back = nullptr;
  if (time_) b.CreateStore(b.CreateLoad(b.getInt32Ty(), time_), warpPointer(offsetof(WarpState, timeBudget)));
  const bool split = flow_.waitsForCall(block_) && &in == &function.body[flow_.blocks[block_].begin];
  if (split) {
    Value* direct = callee ? static_cast<Value*>(k_.declare(target.refId)) : nullptr;
    back = stepCall(direct, callee ? nullptr : source(target, ScalarType::u64), args, argWords, results, resultWords);
    active = mask_;
  } else if (callee) {
    back = callDirect(k_.declare(target.refId), active, args, results);
  } else {
    // One call when the lanes agree; else one for each target, in turn, since they may wait for each other.
    Value* tokens = source(target, ScalarType::u64);
    auto& c = b.getContext();
    BasicBlock* one = BasicBlock::Create(c, "indirect", target_);
    BasicBlock* many = BasicBlock::Create(c, "indirect_groups", target_);
    BasicBlock* done = BasicBlock::Create(c, "indirect_done", target_);
    Value* row = spill(tokens, 0);
    llvm::Function* resolve = k_.llvmModule().getFunction("indirect_target");
    Value* lane = b.CreateIntrinsic(llvm::Intrinsic::cttz, {b.getInt32Ty()}, {active, b.getFalse()});
    lane = b.CreateAnd(lane, b.getInt32(kWarpSize - 1));
    Value* token = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(b.getInt64Ty(), row, lane));
    Value* same = bitsOf(b.CreateICmpEQ(tokens, splat(token)));
    b.CreateCondBr(b.CreateICmpEQ(b.CreateAnd(active, b.CreateNot(same)), b.getInt32(0)), one, many);
    b.SetInsertPoint(one);
    Value* viaOne = callDirect(b.CreateCall(resolve, {warp_, token, active}), active, args, results);
    BasicBlock* oneEnd = b.GetInsertBlock();
    b.CreateBr(done);
    b.SetInsertPoint(many);
    Value* viaMany = b.CreateCall(k_.helper("sonde_call_groups", b.getInt32Ty(),
                                            {b.getPtrTy(), b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getPtrTy(),
                                             b.getPtrTy(), b.getInt32Ty()}),
                                  {warp_, resolve, row, active, args, results, b.getInt32(resultWords)});
    b.CreateBr(done);
    b.SetInsertPoint(done);
    llvm::PHINode* all = b.CreatePHI(b.getInt32Ty(), 2);
    all->addIncoming(viaOne, oneEnd);
    all->addIncoming(viaMany, many);
    back = all;
  }
  if (time_) b.CreateStore(b.CreateLoad(b.getInt32Ty(), warpPointer(offsetof(WarpState, timeBudget))), time_);
  if (k_.layout.calleesExit) {
    Value* gone = b.CreateAnd(active, b.CreateNot(back));
    Value* keep = b.CreateNot(gone);
    b.CreateStore(b.CreateAnd(mask_, keep), maskSlot_);
    b.CreateStore(b.CreateAnd(b.CreateLoad(b.getInt32Ty(), live_), keep), live_);
  }

  at = 0;
  for (size_t i = 0; i < in.callReturns.size(); ++i) {
    const ptx::Variable& r = (*returns)[i];
    const Operand& o = in.callReturns[i];
    Cells from;
    for (uint32_t w = 0; w < cellWords(r); ++w)
      from.words.push_back(b.CreateConstInBoundsGEP1_32(word, results, at + w));
    if (o.ref == Operand::Ref::localVar && function.variables[o.refId].space == StateSpace::param) {
      const Cells& to = varCells_[o.refId];
      Value* sel = maskVector(active);
      for (size_t w = 0; w < from.words.size() && w < to.words.size(); ++w) {
        Value* value = b.CreateAlignedLoad(word, from.words[w], llvm::Align(64));
        Value* old = b.CreateAlignedLoad(word, to.words[w], llvm::Align(64));
        b.CreateAlignedStore(b.CreateSelect(sel, value, old), to.words[w], llvm::Align(64));
      }
    } else {
      for (unsigned c = 0; c < r.vector; ++c)
        store(component(o, c, r.vector), readCells(from, c * registerWords(r) * 4, scalarType(r.type)), r.type);
    }
    at += cellWords(r);
  }
}

}  // namespace sonde::softgpu::jit
