// SPDX-License-Identifier: Apache-2.0
//
// A function: its frame, its blocks, and the guards of its instructions.
#include "softgpu/jit/function_codegen.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>

#include "ptx/defuse.h"
#include "softgpu/exec/time_limit.h"

namespace sonde::softgpu::jit {

using exec::WarpState;
using llvm::BasicBlock;
using llvm::Value;
using ptx::Instruction;
using ptx::Opcode;

namespace {
// Up to so many pending masks are values; more of them are memory, because each is alive nearly everywhere and would
// want a phi in nearly every block.
constexpr size_t kMostMaskValues = 192;
// The same with a register that waiting lanes keep alive in more blocks than these.
constexpr uint32_t kMostAwaitedBlocks = 128;
}  // namespace

FunctionCodegen::FunctionCodegen(KernelCodegen& kernel, llvm::IRBuilder<>& builder, uint32_t functionIndex,
                                 llvm::Function* target)
    : EmitContext(builder, kernel.llvmModule(), kernel.module, kernel.module.functions[functionIndex]),
      k_(kernel),
      index_(functionIndex),
      target_(target),
      isKernel_(kernel.module.functions[functionIndex].isKernel),
      flow_(kernel.module.functions[functionIndex], isKernel_, kernel.layout.callees) {
  avx512 = kernel.features.avx512;
  canonicalNan = kernel.features.canonicalNan;
  everRead_.assign(function.registers.size(), false);
  for (const Instruction& in : function.body) forEachUse(in, [&](ptx::RegId r) { everRead_[r] = true; });
  for (const ptx::Variable& v : function.returns)
    if (v.regId != ptx::kNoId) everRead_[v.regId] = true;
  k_.layout.mayYield |= flow_.mayYield;
  for (bool spins : flow_.spinHeader) k_.layout.spins |= spins;
  for (uint32_t i = 0; i < flow_.blocks.size(); ++i) k_.layout.lanesWait |= flow_.waitsForCall(i);
}

void FunctionCodegen::unsupported(const Instruction& in, const std::string& why) const {
  std::string text =
      in.mnemonic < ptxModule.mnemonics.size() ? ptxModule.mnemonics[in.mnemonic] : std::string(ptx::name(in.op));
  std::string place = "line " + std::to_string(in.pos.line);
  if (in.loc < ptxModule.locations.size()) {
    const ptx::Location& loc = ptxModule.locations[in.loc];
    for (const auto& file : ptxModule.files)
      if (file.index == loc.file) place += " (" + file.path + ":" + std::to_string(loc.line) + ")";
  }
  // Some reasons begin with the instruction.
  const bool named = why.compare(0, text.size(), text) == 0;
  throw Unsupported("function '" + function.name + "', " + place + ": " + (named ? "" : text + ": ") + why);
}

namespace {

std::string notThere(const Instruction& in) {
  const std::string text = "not supported by the software GPU (docs/INSTRUCTIONS.md)";
  switch (in.op) {
    case Opcode::wgmma: return text + "; build this kernel's fallback for architectures before sm_90a, or use mma.sync";
    case Opcode::tcgen05:
      return text + "; build this kernel's fallback for architectures before sm_100a, or use mma.sync";
    case Opcode::multimem: return text + "; there are no multicast objects: cuMulticastCreate is refused";
    default: return text;
  }
}

}  // namespace

void FunctionCodegen::run() {
  auto& context = b.getContext();
  entry_ = BasicBlock::Create(context, "entry", target_);
  b.SetInsertPoint(entry_);
  warp_ = target_->getArg(0);
  entryMask_ = target_->getArg(1);
  argsArray_ = target_->getArg(2);
  resultsArray_ = target_->getArg(3);
  prologue();

  BasicBlock* start = BasicBlock::Create(context, "start", target_);
  finish_ = BasicBlock::Create(context, "finish", target_);
  for (size_t i = 0; i < flow_.blocks.size(); ++i)
    runBlock_.push_back(BasicBlock::Create(context, "run" + std::to_string(i), target_));
  chainBlock_.assign(flow_.chain.size() + 1, nullptr);
  chainBlock_.back() = BasicBlock::Create(context, "chain_end", target_);
  for (size_t i = flow_.chain.size(); i-- > 0;)
    chainBlock_[i] = flow_.pendable[flow_.chain[i].block]
                         ? BasicBlock::Create(context, "look" + std::to_string(flow_.chain[i].block), target_)
                         : chainBlock_[i + 1];

  b.SetInsertPoint(start);
  b.CreateStore(entryMask_, live_);
  if (pending_[0]) b.CreateStore(entryMask_, pending_[0]);
  if (time_ && !isKernel_ && k_.layout.recursive && !function.body.empty())
    spendTime(static_cast<uint32_t>(function.body.size()), function.body[0]);
  b.CreateBr(runBlock_[0]);

  for (uint32_t i = 0; i < flow_.blocks.size(); ++i) emitBlock(i);
  emitChain();
  emitFinish();
  b.SetInsertPoint(entry_);
  b.CreateBr(start);
}

// Loops, calls of functions that may have some, and recursion.
bool FunctionCodegen::watchesTime() const {
  if (exec::kernelTimeLimit() == 0) return false;
  for (uint32_t i = 0; i < flow_.blocks.size(); ++i)
    if (flow_.timedInstructions[i] || flow_.blocks[i].calls) return true;
  return !isKernel_ && k_.layout.recursive;
}

void FunctionCodegen::branchLikely(Value* condition, BasicBlock* likely, BasicBlock* rare) {
  b.CreateCondBr(condition, likely, rare, llvm::MDBuilder(b.getContext()).createBranchWeights(2000, 1));
}

// Loops are timed by their instructions; lanes that wait elsewhere are not concerned.
void FunctionCodegen::spendTime(uint32_t instructions, const Instruction& in) {
  const auto cost = static_cast<uint32_t>(std::min<uint64_t>(instructions, exec::kTimeBudget));
  Value* left = b.CreateSub(b.CreateLoad(b.getInt32Ty(), time_), b.getInt32(cost));
  b.CreateStore(left, time_);
  BasicBlock* look = BasicBlock::Create(b.getContext(), "look_at_time", target_);
  BasicBlock* on = BasicBlock::Create(b.getContext(), "on_time", target_);
  branchLikely(b.CreateICmpSGE(left, b.getInt32(0)), on, look);
  b.SetInsertPoint(look);
  markPosition(in);
  b.CreateCall(k_.helper("sonde_check_time", b.getVoidTy(), {b.getPtrTy()}), {warp_});
  b.CreateStore(b.getInt32(exec::kTimeBudget), time_);
  b.CreateBr(on);
  b.SetInsertPoint(on);
}

void FunctionCodegen::prologue() {
  registers_.resize(function.registers.size());
  for (size_t r = 0; r < function.registers.size(); ++r) {
    const auto& reg = function.registers[r];
    if (reg.type == ptx::ScalarType::none) continue;
    registers_[r] = {};
    llvm::Type* scalar = scalarType(reg.type);
    llvm::Type* t = flow_.uniform(static_cast<uint32_t>(r)) ? scalar : llvm::FixedVectorType::get(scalar, kWarpSize);
    for (unsigned c = 0; c < reg.vector && c < 4; ++c) registers_[r][c] = entryAlloca(t, "r");
  }
  keepLongRegisters();
  llvm::Type* carryType = b.getInt1Ty();
  if (!flow_.carryUniform()) carryType = llvm::FixedVectorType::get(carryType, kWarpSize);
  carrySlot_ = entryAlloca(carryType, "carry");
  b.CreateStore(llvm::Constant::getNullValue(carryType), carrySlot_);
  live_ = entryAlloca(b.getInt32Ty(), "live", 4);
  returned_ = entryAlloca(b.getInt32Ty(), "returned", 4);
  budget_ = entryAlloca(b.getInt32Ty(), "budget", 4);
  maskSlot_ = entryAlloca(b.getInt32Ty(), "mask", 4);
  b.CreateStore(b.getInt32(0), returned_);
  b.CreateStore(b.getInt32(kSpinBudget), budget_);
  if (watchesTime()) {
    time_ = entryAlloca(b.getInt32Ty(), "time", 4);
    b.CreateStore(b.CreateLoad(b.getInt32Ty(), warpPointer(offsetof(WarpState, timeBudget))), time_);
  }
  definePending();

  for (uint32_t i = 0; i < flow_.blocks.size() && !held_; ++i) {
    if (!flow_.waitsForMembers(i)) continue;
    for (Value** slot : {&held_, &released_, &heldBefore_}) {
      *slot = entryAlloca(b.getInt32Ty(), "sync", 4);
      b.CreateStore(b.getInt32(0), *slot);
    }
  }

  // Parameters of functions and of calls are cells of 32-lane words.
  llvm::Type* word = llvm::FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  auto wordsOf = [](const ptx::Variable& v) { return cellWords(v); };
  varCells_.resize(function.variables.size());
  for (size_t v = 0; v < function.variables.size(); ++v) {
    const ptx::Variable& var = function.variables[v];
    if (var.space != ptx::StateSpace::param) continue;
    varCells_[v].bytes = static_cast<uint32_t>(var.sizeBytes);
    for (uint32_t w = 0; w < wordsOf(var); ++w) {
      varCells_[v].words.push_back(entryAlloca(word, "p"));
    }
  }
  markOwnCells();
  auto fromArray = [&](const std::vector<ptx::Variable>& list, Value* array, std::vector<Cells>& out) {
    uint32_t offset = 0;
    for (const ptx::Variable& var : list) {
      Cells c;
      c.bytes = static_cast<uint32_t>(var.sizeBytes);
      for (uint32_t w = 0; w < wordsOf(var); ++w)
        c.words.push_back(b.CreateConstInBoundsGEP1_32(word, array, offset + w));
      offset += wordsOf(var);
      out.push_back(std::move(c));
    }
  };
  if (!isKernel_) {
    fromArray(function.params, argsArray_, argCells_);
    fromArray(function.returns, resultsArray_, resultCells_);
  }
  // Parameters declared .reg arrive in registers.
  if (!isKernel_)
    for (size_t p = 0; p < function.params.size(); ++p) {
      const ptx::Variable& var = function.params[p];
      if (var.space != ptx::StateSpace::reg || var.regId == ptx::kNoId) continue;
      llvm::Type* element = scalarType(var.type);
      for (unsigned c = 0; c < var.vector; ++c)
        if (Value* slot = registers_[var.regId][c])
          b.CreateStore(readCells(argCells_[p], c * registerWords(var) * 4, element), slot);
    }

  localFrame_ = localFrame(function, &localOffsets_);
  if (isKernel_) {
    localFrameBase_ = b.getInt32(0);
    b.CreateStore(b.getInt32(localFrame_), warpPointer(offsetof(WarpState, localTop)));
  } else {
    localFrameBase_ = b.CreateLoad(b.getInt32Ty(), warpPointer(offsetof(WarpState, localTop)), "frame");
    if (localFrame_ || k_.layout.recursive) {
      Value* top = b.CreateAdd(localFrameBase_, b.getInt32(localFrame_));
      b.CreateStore(top, warpPointer(offsetof(WarpState, localTop)));
      b.CreateCall(k_.helper("sonde_stack_check", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty()}), {warp_, entryMask_});
    }
  }
}

// Most are used by one call in one block: lanes that wait elsewhere have nothing in them.
void FunctionCodegen::markOwnCells() {
  constexpr uint32_t kNone = 0xffffffffu, kSeveral = 0xfffffffeu;
  std::vector<uint32_t> user(varCells_.size(), kNone);
  for (uint32_t i = 0; i < flow_.blocks.size(); ++i)
    for (uint32_t k = flow_.blocks[i].begin; k < flow_.blocks[i].end; ++k) {
      auto use = [&](const ptx::Operand& o) {
        if (o.ref != ptx::Operand::Ref::localVar || o.refId >= user.size()) return;
        uint32_t& u = user[o.refId];
        u = u == kNone || u == i ? i : kSeveral;
      };
      auto useAll = [&](const std::vector<ptx::Operand>& list) {
        for (const ptx::Operand& o : list) {
          use(o);
          for (const ptx::Operand& e : o.elements) use(e);
        }
      };
      const Instruction& in = function.body[k];
      useAll(in.operands);
      useAll(in.callArgs);
      useAll(in.callReturns);
    }
  for (size_t v = 0; v < user.size(); ++v) varCells_[v].oneBlock = user[v] != kSeveral;
}

void FunctionCodegen::definePending() {
  std::vector<size_t> waiting;
  for (size_t i = 0; i < flow_.blocks.size(); ++i)
    if (flow_.pendable[i] || !flow_.blocks[i].convergent()) waiting.push_back(i);
  pending_.assign(flow_.blocks.size(), nullptr);
  if (waiting.size() <= kMostMaskValues) {
    for (const size_t i : waiting) {
      pending_[i] = entryAlloca(b.getInt32Ty(), "pend", 4);
      b.CreateStore(b.getInt32(0), pending_[i]);
    }
    return;
  }
  Value* masks = entryAlloca(llvm::ArrayType::get(b.getInt32Ty(), waiting.size()), "pending");
  for (size_t n = 0; n < waiting.size(); ++n)
    pending_[waiting[n]] = b.CreateConstInBoundsGEP1_64(b.getInt32Ty(), masks, n);
  b.CreateMemSet(masks, b.getInt8(0), waiting.size() * 4, llvm::Align(64));
  keepInMemory(masks);
}

// A callee that may have kept the address: no pass makes values of what is there.
void FunctionCodegen::keepInMemory(Value* slot) {
  b.CreateCall(k_.helper("sonde_keep", b.getVoidTy(), {b.getPtrTy()}), {slot});
}

// A register of waiting lanes is alive in every block that runs meanwhile.
void FunctionCodegen::keepLongRegisters() {
  const size_t n = function.registers.size();
  std::vector<uint32_t> awaited(n + 1, 0), definitions(n, 0);
  for (const Block& block : flow_.blocks) {
    block.liveElsewhere.forEach([&](size_t r) { ++awaited[r]; });
    // One definition that all lanes come to together is one value anyway.
    for (uint32_t i = block.begin; i < block.end; ++i)
      forEachDef(function.body[i], [&](ptx::RegId r) { definitions[r] += block.convergent() ? 1 : 2; });
  }
  for (size_t r = 0; r < n; ++r)
    if (awaited[r] > kMostAwaitedBlocks && definitions[r] > 1)
      for (Value* slot : registers_[r])
        if (slot) keepInMemory(slot);
}

void FunctionCodegen::emitBlock(uint32_t index) {
  const Block& block = flow_.blocks[index];
  block_ = index;
  b.SetInsertPoint(runBlock_[index]);
  effect_ = guard_ = nullptr;
  if (pending_[index]) {
    mask_ = b.CreateLoad(b.getInt32Ty(), pending_[index], "mask");
    b.CreateStore(b.getInt32(0), pending_[index]);
  }
  if (flow_.waitsForSpinning(index) && pending_[index]) {
    Value* spinning = b.getInt32(0);
    block.pending.forEach([&](size_t h) {
      if (flow_.mayRotate(h) && h != index && pending_[h])
        spinning = b.CreateOr(spinning, b.CreateLoad(b.getInt32Ty(), pending_[h]));
    });
    BasicBlock* held = BasicBlock::Create(b.getContext(), "held", target_);
    BasicBlock* together = BasicBlock::Create(b.getContext(), "together", target_);
    b.CreateCondBr(b.CreateICmpNE(spinning, b.getInt32(0)), held, together);
    b.SetInsertPoint(held);
    b.CreateStore(mask_, pending_[index]);
    b.CreateBr(rotateBlock());
    b.SetInsertPoint(together);
  }
  if (flow_.waitsForMembers(index)) holdForMembers(index);
  const bool called = flow_.waitsForCall(index);
  if (called) beginCall(index);
  if (block.convergent()) mask_ = b.CreateLoad(b.getInt32Ty(), live_, "mask");
  b.CreateStore(mask_, maskSlot_);
  if (flow_.timedInstructions[index]) spendTime(flow_.timedInstructions[index], function.body[block.begin]);
  if (counting()) countBlock(index);

  const Instruction* last = nullptr;
  for (uint32_t i = block.begin + called; i < block.end; ++i) {
    const Instruction& in = function.body[i];
    current_ = &in;
    if (i + 1 == block.end && block.kind != BlockEnd::fallThrough) {
      last = &in;
      break;
    }
    emitInstruction(in);
  }
  emitTerminator(index, last);
}

// The call at the block's start, ahead of what is counted: lanes come back to it until it has ended.
void FunctionCodegen::beginCall(uint32_t index) {
  const Instruction& in = function.body[flow_.blocks[index].begin];
  current_ = &in;
  b.CreateStore(mask_, maskSlot_);
  lanes = flow_.sourcesUniform(in) ? 1 : kWarpSize;
  emitCall(in);
  afterCall();
}

// Lanes at a .sync instruction go on when all its members that have not left
// are at one; the others of them go on when their turn comes.
void FunctionCodegen::holdForMembers(uint32_t index) {
  auto& c = b.getContext();
  llvm::Type* i32 = b.getInt32Ty();
  const Instruction& in = function.body[flow_.blocks[index].begin];
  BasicBlock* arrive = BasicBlock::Create(c, "sync_arrive", target_);
  BasicBlock* resume = BasicBlock::Create(c, "sync_resume", target_);
  BasicBlock* hold = BasicBlock::Create(c, "sync_hold", target_);
  BasicBlock* all = BasicBlock::Create(c, "sync_all", target_);
  BasicBlock* go = BasicBlock::Create(c, "sync_go", target_);
  Value* here = mask_;
  Value* released = b.CreateLoad(i32, released_);
  Value* ready = b.CreateAnd(here, released);
  b.CreateCondBr(b.CreateICmpNE(ready, b.getInt32(0)), resume, arrive);
  b.SetInsertPoint(resume);
  b.CreateStore(b.CreateAnd(released, b.CreateNot(ready)), released_);
  b.CreateStore(b.CreateAnd(here, b.CreateNot(ready)), pending_[index]);
  b.CreateBr(go);
  b.SetInsertPoint(arrive);
  current_ = &in;
  Value* members = nullptr;
  if (flow_.operandUniform(in.operands.back())) {
    lanes = 1;
    members = source(in.operands.back(), ptx::ScalarType::b32);
  } else {
    lanes = kWarpSize;
    Value* row = source(in.operands.back(), ptx::ScalarType::b32);
    members = b.CreateOrReduce(b.CreateSelect(maskVector(here), row, llvm::Constant::getNullValue(row->getType())));
  }
  Value* held = b.CreateLoad(i32, held_);
  Value* missing = b.CreateAnd(b.CreateAnd(members, b.CreateLoad(i32, live_)), b.CreateNot(b.CreateOr(here, held)));
  b.CreateCondBr(b.CreateICmpNE(missing, b.getInt32(0)), hold, all);
  b.SetInsertPoint(hold);
  b.CreateStore(b.CreateOr(held, here), held_);
  b.CreateStore(here, pending_[index]);
  b.CreateBr(chainBlock_[std::min<size_t>(flow_.chainIndex(index) + 1, flow_.chain.size())]);
  b.SetInsertPoint(all);
  Value* others = b.CreateAnd(b.CreateAnd(held, members), b.CreateNot(here));
  b.CreateStore(b.CreateOr(released, others), released_);
  b.CreateStore(b.CreateAnd(held, b.CreateNot(b.CreateOr(others, here))), held_);
  b.CreateBr(go);
  b.SetInsertPoint(go);
  llvm::PHINode* mask = b.CreatePHI(i32, 2, "mask");
  mask->addIncoming(ready, resume);
  mask->addIncoming(here, all);
  mask_ = mask;
}

void FunctionCodegen::emitInstruction(const Instruction& in) {
  lanes = flow_.sourcesUniform(in) ? 1 : kWarpSize;
  effect_ = guard_ = nullptr;
  try {
    if (in.guard.reg != ptx::kNoId) guard_ = guardValue(in);
    if (counting() && guard_ && isPure(in)) countGuarded(in, nullptr);
    if (emitAddressOp(in) || emitArithmetic(*this, in)) return;
    if (guard_) {
      emitGuarded(in);
    } else if (!emitOwn(in)) {
      unsupported(in, notThere(in));
    }
    if (in.op == Opcode::call) afterCall();
  } catch (const Unsupported& e) {
    const std::string text = e.what();
    if (text.find("line ") != std::string::npos) throw;
    unsupported(in, text);
  }
}

// Its guard selects results only (no branch around it, see emitGuarded).
bool FunctionCodegen::isPure(const Instruction& in) const {
  switch (in.op) {
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
    case Opcode::atom:
    case Opcode::red:
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect:
    case Opcode::bar:
    case Opcode::barrier:
    case Opcode::activemask:
    case Opcode::call:
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::nanosleep:
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::discard:
    case Opcode::applypriority:
    case Opcode::griddepcontrol:
    case Opcode::setmaxnreg:
    case Opcode::pmevent:
    case Opcode::brkpt:
    case Opcode::cp:
    case Opcode::alloca:
    case Opcode::stackrestore:
    case Opcode::tensormap:
    case Opcode::mbarrier: return false;
    default: return true;
  }
}

// Instructions with effects: a uniform guard is a branch around them, a varying
// one narrows the mask.
void FunctionCodegen::emitGuarded(const Instruction& in) {
  BasicBlock* body = BasicBlock::Create(b.getContext(), "guarded", target_);
  BasicBlock* after = BasicBlock::Create(b.getContext(), "after", target_);
  Value* guard = guard_;
  if (!guard->getType()->isVectorTy()) {
    if (counting()) countGuarded(in, b.CreateSelect(guard, mask_, b.getInt32(0)));
    b.CreateCondBr(guard, body, after);
    guard_ = nullptr;
  } else {
    effect_ = b.CreateAnd(bitsOf(guard), mask_, "effect");
    if (counting()) countGuarded(in, effect_);
    b.CreateCondBr(b.CreateICmpNE(effect_, b.getInt32(0)), body, after);
  }
  b.SetInsertPoint(body);
  if (!emitOwn(in)) unsupported(in, notThere(in));
  b.CreateBr(after);
  b.SetInsertPoint(after);
  effect_ = guard_ = nullptr;
}

// Lanes may have left the kernel inside the callee.
void FunctionCodegen::afterCall() {
  mask_ = b.CreateLoad(b.getInt32Ty(), maskSlot_, "mask");
  if (!k_.layout.calleesExit) return;
  BasicBlock* gone = BasicBlock::Create(b.getContext(), "gone", target_);
  BasicBlock* on = BasicBlock::Create(b.getContext(), "on", target_);
  b.CreateCondBr(b.CreateICmpEQ(mask_, b.getInt32(0)), gone, on);
  b.SetInsertPoint(gone);
  jumpToWaiting(block_);
  b.SetInsertPoint(on);
}

bool FunctionCodegen::emitOwn(const Instruction& in) {
  return emitMemory(in) || emitWarp(in) || emitAtomic(in) || emitMbarrier(in) || emitAsyncCopy(in) || emitBulk(in) ||
         emitMatrix(in) || emitTexture(in) || emitMisc(in);
}

}  // namespace sonde::softgpu::jit
