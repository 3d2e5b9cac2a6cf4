// SPDX-License-Identifier: Apache-2.0
//
// Jumps: pending masks, the chain, branches and the way out.
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::WarpState;
using llvm::BasicBlock;
using llvm::Value;
using ptx::Instruction;
using ptx::Opcode;

void FunctionCodegen::addPending(uint32_t block, Value* lanes) {
  Value* slot = pending_[block];
  if (!slot) return;
  Value* old = b.CreateLoad(b.getInt32Ty(), slot);
  b.CreateStore(b.CreateOr(old, lanes), slot);
}

void FunctionCodegen::jumpTo(uint32_t from, uint32_t to) {
  addPending(to, mask_);
  if (!flow_.directJump(from, to)) {
    enterChain(from);
    return;
  }
  if (to <= from && flow_.spinHeader[to]) {
    Value* left = b.CreateSub(b.CreateLoad(b.getInt32Ty(), budget_), b.getInt32(1));
    b.CreateStore(left, budget_);
    BasicBlock* tired = BasicBlock::Create(b.getContext(), "tired", target_);
    b.CreateCondBr(b.CreateICmpSGT(left, b.getInt32(0)), runBlock_[to], tired);
    b.SetInsertPoint(tired);
    b.CreateCall(k_.helper("sonde_yield", b.getVoidTy(), {b.getPtrTy()}), {warp_});
    b.CreateStore(b.getInt32(kSpinBudget), budget_);
  }
  b.CreateBr(runBlock_[to]);
}

void FunctionCodegen::enterChain(uint32_t from) {
  const Block& block = flow_.blocks[from];
  uint32_t first = Flow::kNever;
  auto consider = [&](uint32_t candidate) { first = std::min(first, flow_.occurrence(from, candidate)); };
  block.pending.forEach([&](size_t y) { consider(static_cast<uint32_t>(y)); });
  for (uint32_t s : block.successors) consider(s);
  if (first == Flow::kNever)
    b.CreateBr(finish_);
  else
    b.CreateBr(chainBlock_[std::min<size_t>(first, flow_.chain.size())]);
}

// Nobody runs on from here: only the waiting lanes are left.
void FunctionCodegen::jumpToWaiting(uint32_t from) {
  uint32_t first = Flow::kNever;
  flow_.blocks[from].pending.forEach(
      [&](size_t y) { first = std::min(first, flow_.occurrence(from, static_cast<uint32_t>(y))); });
  b.CreateBr(first == Flow::kNever ? finish_ : chainBlock_[std::min<size_t>(first, flow_.chain.size())]);
}

// Where a warp of which only spinning lanes can go on lets others run.
BasicBlock* FunctionCodegen::rotateBlock() {
  if (!rotate_) rotate_ = BasicBlock::Create(b.getContext(), "rotate", target_);
  return rotate_;
}

void FunctionCodegen::emitChain() {
  Value* spinning = nullptr;
  for (size_t i = 0; i < flow_.chain.size(); ++i) {
    const auto [target, header] = flow_.chain[i];
    if (!flow_.pendable[target]) continue;
    b.SetInsertPoint(chainBlock_[i]);
    Value* waiting = b.CreateICmpNE(b.CreateLoad(b.getInt32Ty(), pending_[target]), b.getInt32(0));
    if (!header || !flow_.spinHeader[target]) {
      b.CreateCondBr(waiting, runBlock_[target], chainBlock_[i + 1]);
      continue;
    }
    BasicBlock* again = BasicBlock::Create(b.getContext(), "again", target_);
    b.CreateCondBr(waiting, again, chainBlock_[i + 1]);
    b.SetInsertPoint(again);
    Value* left = b.CreateSub(b.CreateLoad(b.getInt32Ty(), budget_), b.getInt32(1));
    b.CreateStore(left, budget_);
    b.CreateCondBr(b.CreateICmpSGT(left, b.getInt32(0)), runBlock_[target], chainBlock_[i + 1]);
  }
  b.SetInsertPoint(chainBlock_.back());
  Value* syncing = nullptr;
  for (size_t h = 0; h < flow_.blocks.size(); ++h) {
    if (!flow_.waitsForMembers(static_cast<uint32_t>(h))) continue;
    Value* waiting = b.CreateLoad(b.getInt32Ty(), pending_[h]);
    syncing = syncing ? b.CreateOr(syncing, waiting) : waiting;
  }
  for (size_t h = 0; h < flow_.blocks.size(); ++h) {
    if (!flow_.mayRotate(h) || !flow_.pendable[h]) continue;
    Value* lanes = b.CreateLoad(b.getInt32Ty(), pending_[h]);
    spinning = spinning ? b.CreateOr(spinning, lanes) : lanes;
  }
  if (syncing) {
    BasicBlock* again = BasicBlock::Create(b.getContext(), "sync_again", target_);
    BasicBlock* stuck = BasicBlock::Create(b.getContext(), "sync_stuck", target_);
    BasicBlock* next = BasicBlock::Create(b.getContext(), "sync_next", target_);
    BasicBlock* none = BasicBlock::Create(b.getContext(), "sync_none", target_);
    if (!spinning) spinning = b.getInt32(0);
    b.CreateCondBr(b.CreateICmpNE(syncing, b.getInt32(0)), again, none);
    b.SetInsertPoint(again);
    // With nobody left who could come, and nothing new since the last time:
    // members that will never arrive are not waited for.
    Value* held = b.CreateLoad(b.getInt32Ty(), held_);
    Value* same = b.CreateICmpEQ(held, b.CreateLoad(b.getInt32Ty(), heldBefore_));
    Value* idle = b.CreateICmpEQ(b.CreateOr(spinning, b.CreateLoad(b.getInt32Ty(), released_)), b.getInt32(0));
    b.CreateStore(held, heldBefore_);
    b.CreateCondBr(b.CreateAnd(same, idle), stuck, next);
    b.SetInsertPoint(stuck);
    b.CreateStore(held, released_);
    b.CreateStore(b.getInt32(0), held_);
    b.CreateStore(b.getInt32(0), heldBefore_);
    b.CreateBr(chainBlock_.front());
    b.SetInsertPoint(next);
    b.CreateCondBr(b.CreateICmpNE(spinning, b.getInt32(0)), rotateBlock(), chainBlock_.front());
    b.SetInsertPoint(none);
  }
  if (!spinning) {
    b.CreateBr(finish_);
    return;
  }
  BasicBlock* rotate = rotateBlock();
  b.CreateCondBr(b.CreateICmpNE(spinning, b.getInt32(0)), rotate, finish_);
  b.SetInsertPoint(rotate);
  b.CreateCall(k_.helper("sonde_yield", b.getVoidTy(), {b.getPtrTy()}), {warp_});
  b.CreateStore(b.getInt32(kSpinBudget), budget_);
  b.CreateBr(chainBlock_.front());
}

void FunctionCodegen::emitFinish() {
  b.SetInsertPoint(finish_);
  if (!isKernel_ && (localFrame_ || k_.layout.recursive))  // alloca counts as recursion
    b.CreateStore(localFrameBase_, warpPointer(offsetof(WarpState, localTop)));
  if (!isKernel_ && time_)
    b.CreateStore(b.CreateLoad(b.getInt32Ty(), time_), warpPointer(offsetof(WarpState, timeBudget)));
  b.CreateRet(isKernel_ ? static_cast<Value*>(b.getInt32(0)) : b.CreateLoad(b.getInt32Ty(), returned_));
}

void FunctionCodegen::emitTerminator(uint32_t index, const Instruction* last) {
  const Block& block = flow_.blocks[index];
  switch (block.kind) {
    case BlockEnd::fallThrough: jumpTo(index, block.successors[0]); return;
    case BlockEnd::branch: emitBranch(index, *last); return;
    case BlockEnd::indexed: emitIndexedBranch(index, *last); return;
    case BlockEnd::leave: {
      static const Instruction ret = [] {
        Instruction r;
        r.op = Opcode::ret;
        return r;
      }();
      emitLeave(index, last ? *last : ret);
      return;
    }
  }
}

void FunctionCodegen::emitBranch(uint32_t index, const Instruction& in) {
  const Block& block = flow_.blocks[index];
  Value* condition = in.guard.reg != ptx::kNoId ? guardValue(in) : nullptr;
  if (counting() && condition) {
    guard_ = condition;
    countGuarded(in, nullptr);
    guard_ = nullptr;
  }
  if (block.successors.size() == 1) {
    jumpTo(index, block.successors[0]);
    return;
  }
  if (!block.divergentEnd) {
    BasicBlock* taken = BasicBlock::Create(b.getContext(), "taken", target_);
    BasicBlock* fall = BasicBlock::Create(b.getContext(), "fall", target_);
    b.CreateCondBr(condition, taken, fall);
    b.SetInsertPoint(taken);
    jumpTo(index, block.successors[0]);
    b.SetInsertPoint(fall);
    jumpTo(index, block.successors[1]);
    return;
  }
  Value* taken = b.CreateAnd(bitsOf(condition), mask_, "taken");
  Value* fall = b.CreateXor(taken, mask_, "fall");
  if (counting())
    countDiverged(in, b.CreateAnd(b.CreateICmpNE(taken, b.getInt32(0)), b.CreateICmpNE(fall, b.getInt32(0))));
  addPending(block.successors[0], taken);
  addPending(block.successors[1], fall);
  enterChain(index);
}

void FunctionCodegen::emitIndexedBranch(uint32_t index, const Instruction& in) {
  const Block& block = flow_.blocks[index];
  const size_t targets = function.branchTargets[in.operands.back().refId].ids.size();
  Value* lanesLeft = mask_;
  lanes = block.divergentEnd ? kWarpSize : 1;
  Value* which = source(in.operands[0], ptx::ScalarType::u32);
  if (!block.divergentEnd) {
    BasicBlock* outside = BasicBlock::Create(b.getContext(), "outside", target_);
    auto* sw = b.CreateSwitch(which, outside, static_cast<unsigned>(targets));
    for (size_t t = 0; t < targets; ++t) {
      BasicBlock* to = BasicBlock::Create(b.getContext(), "case", target_);
      sw->addCase(b.getInt32(static_cast<uint32_t>(t)), to);
      b.SetInsertPoint(to);
      jumpTo(index, block.successors[t]);
    }
    b.SetInsertPoint(outside);
    b.CreateUnreachable();
    return;
  }
  Value* guard = in.guard.reg != ptx::kNoId ? guardValue(in) : nullptr;
  if (counting() && guard) {
    guard_ = guard;
    countGuarded(in, nullptr);
    guard_ = nullptr;
  }
  std::map<uint32_t, Value*> ways;  // lanes by the block they go to
  auto goes = [&](uint32_t to, Value* way) {
    addPending(to, way);
    Value*& all = ways[to];
    all = all ? b.CreateOr(all, way) : way;
  };
  if (guard) {
    Value* taken = guard->getType()->isVectorTy() ? b.CreateAnd(bitsOf(guard), mask_)
                                                  : b.CreateSelect(guard, mask_, b.getInt32(0));
    goes(block.successors.back(), b.CreateXor(taken, mask_));
    lanesLeft = taken;
  }
  for (size_t t = 0; t < targets; ++t) {
    Value* hit = bitsOf(b.CreateICmpEQ(which, splat(b.getInt32(static_cast<uint32_t>(t)))));
    goes(block.successors[t], b.CreateAnd(hit, lanesLeft));
  }
  if (counting()) {
    Value* together = b.getFalse();
    for (const auto& [to, way] : ways) together = b.CreateOr(together, b.CreateICmpEQ(way, mask_));
    countDiverged(in, b.CreateNot(together));
  }
  enterChain(index);
}

// Results declared .reg: from their registers to the caller's words.
void FunctionCodegen::storeReturns(Value* lanes) {
  Value* const before = effect_;
  effect_ = lanes;
  for (size_t r = 0; r < function.returns.size(); ++r) {
    const ptx::Variable& var = function.returns[r];
    if (var.space != ptx::StateSpace::reg || var.regId == ptx::kNoId) continue;
    for (unsigned c = 0; c < var.vector; ++c) {
      if (!registers_[var.regId][c]) continue;
      Value* v = loadRegister(var.regId, static_cast<int>(c));
      writeCells(resultCells_[r], c * registerWords(var) * 4, v->getType()->isVectorTy() ? v : splat(v),
                 scalarType(var.type));
    }
  }
  effect_ = before;
}

void FunctionCodegen::emitLeave(uint32_t index, const Instruction& in) {
  const Block& block = flow_.blocks[index];
  auto leave = [&](Value* lanes) {
    if (in.op == Opcode::trap) {
      markPosition(in);
      b.CreateCall(k_.helper("sonde_trap", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty()}), {warp_, lanes});
    }
    Value* live = b.CreateLoad(b.getInt32Ty(), live_);
    b.CreateStore(b.CreateAnd(live, b.CreateNot(lanes)), live_);
    if (k_.layout.clusterBarrier && (isKernel_ || in.op != Opcode::ret))
      b.CreateCall(k_.helper("sonde_cluster_leave", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty()}), {warp_, lanes});
    if (in.op == Opcode::ret && !isKernel_) {
      storeReturns(lanes);
      Value* back = b.CreateLoad(b.getInt32Ty(), returned_);
      b.CreateStore(b.CreateOr(back, lanes), returned_);
    }
  };
  if (in.guard.reg == ptx::kNoId) {
    leave(mask_);
    enterChain(index);
    return;
  }
  Value* condition = guardValue(in);
  if (counting()) {
    guard_ = condition;
    countGuarded(in, nullptr);
    guard_ = nullptr;
  }
  if (!block.divergentEnd) {
    BasicBlock* gone = BasicBlock::Create(b.getContext(), "gone", target_);
    BasicBlock* stay = BasicBlock::Create(b.getContext(), "stay", target_);
    b.CreateCondBr(condition, gone, stay);
    b.SetInsertPoint(gone);
    leave(mask_);
    jumpToWaiting(index);
    b.SetInsertPoint(stay);
    jumpTo(index, block.successors[0]);
    return;
  }
  Value* lanes = b.CreateAnd(bitsOf(condition), mask_);
  if (in.op == Opcode::trap) {
    BasicBlock* go = BasicBlock::Create(b.getContext(), "trap", target_);
    BasicBlock* on = BasicBlock::Create(b.getContext(), "no_trap", target_);
    b.CreateCondBr(b.CreateICmpNE(lanes, b.getInt32(0)), go, on);
    b.SetInsertPoint(go);
    leave(lanes);
    b.CreateBr(on);
    b.SetInsertPoint(on);
  } else {
    leave(lanes);
  }
  addPending(block.successors[0], b.CreateAnd(mask_, b.CreateNot(lanes)));
  enterChain(index);
}

}  // namespace sonde::softgpu::jit
