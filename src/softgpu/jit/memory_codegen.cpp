// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores. A uniform address is one scalar access. Lanes that touch
// consecutive elements are one vector access. Anything else is a hardware
// gather or scatter where the host has AVX-512, and otherwise a call; so is
// every access that leaves the device's window or is misaligned, and the helper
// finds out what to do about it. No lane outside the mask touches memory.
#include <bit>

#include "softgpu/exec/check_options.h"
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

namespace {

unsigned log2of(unsigned v) { return static_cast<unsigned>(std::countr_zero(v)); }

uint32_t describe(const MemoryAccess& a) {
  if (a.whole) return static_cast<uint32_t>(a.space) | log2of(16) << 4 | 1 << 8;
  return static_cast<uint32_t>(a.space) | log2of(a.bytes) << 4 | a.count << 8;
}

bool isParamSpace(StateSpace s) {
  return s == StateSpace::param || s == StateSpace::paramFunc || s == StateSpace::paramEntry;
}

}  // namespace

bool FunctionCodegen::emitMemory(const Instruction& in) {
  switch (in.op) {
    case Opcode::ld:
    case Opcode::ldu:
      if (isParamSpace(in.space) && in.operands[1].reg == ptx::kNoId)
        emitParamLoad(in);
      else
        emitLoad(in);
      return true;
    case Opcode::st:
      if (in.has(Mod::async) || in.has(Mod::bulk)) return false;
      if (isParamSpace(in.space))
        emitParamStore(in);
      else
        emitStore(in);
      return true;
    default: return false;
  }
}

void FunctionCodegen::markPosition(const Instruction& in) {
  const auto i = static_cast<uint64_t>(&in - function.body.data());
  b.CreateStore(b.getInt64(uint64_t{index_} << 32 | i), warpPointer(offsetof(WarpState, position)));
}

void FunctionCodegen::compilerFence() {
  b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

MemoryAccess FunctionCodegen::resolveAddress(const Instruction& in, const Operand& address, StateSpace space,
                                             unsigned bytes, unsigned count) {
  MemoryAccess a;
  a.bytes = bytes;
  a.count = count;
  a.uniform = flow_.operandUniform(address);
  // A variable named without a state space is in its own.
  if (space == StateSpace::none && address.reg == ptx::kNoId) {
    if (address.ref == Operand::Ref::moduleVar) space = ptxModule.variables[address.refId].space;
    if (address.ref == Operand::Ref::localVar) space = function.variables[address.refId].space;
  }
  if (space == StateSpace::shared || space == StateSpace::sharedCta) a.space = Space::shared;
  if (space == StateSpace::local) a.space = Space::local;
  const unsigned saved = lanes;
  lanes = a.uniform ? 1 : kWarpSize;
  llvm::Type* t = a.space == Space::generic ? b.getInt64Ty() : b.getInt32Ty();
  if (address.reg != ptx::kNoId) {
    Operand base;
    base.kind = Operand::Kind::reg;
    base.reg = address.reg;
    Value* v = loadRegister(address.reg, -1);
    v = toForm(asType(v, t, false));
    if (address.offset)
      v = b.CreateAdd(v, llvm::ConstantInt::get(v->getType(), static_cast<uint64_t>(address.offset), true));
    a.address = v;
  } else if (address.ref != Operand::Ref::none) {
    a.address = asType(symbolAddress(address), t, false);
  } else {
    a.address = llvm::ConstantInt::get(t, address.kind == Operand::Kind::address && address.offset == 0
                                              ? address.imm
                                              : static_cast<uint64_t>(address.offset));
  }
  lanes = saved;
  if (space == StateSpace::sharedCluster) a.address = clusterAddress(a.address);
  if (exec::checks().any()) checkAccess(in, a);
  return a;
}

// Generic address of an address in the cluster's shared memory: its upper byte
// is the rank of the block plus one, or 0 for the block at hand. An address
// that no block has becomes one with its upper half set, outside every window.
Value* FunctionCodegen::clusterAddress(Value* address) {
  llvm::Type* i64 = b.getInt64Ty();
  const bool vector = address->getType()->isVectorTy();
  auto both = [&](Value* v) { return vector ? splat(v) : v; };
  auto constant = [&](llvm::Type* t, uint64_t v) { return both(llvm::ConstantInt::get(t, v)); };
  Value* a = asType(address, b.getInt32Ty(), false);
  Value* field = b.CreateLShr(a, 24);
  Value* offset = b.CreateAnd(a, constant(b.getInt32Ty(), 0xffffff));
  Value* own = b.CreateICmpEQ(field, constant(b.getInt32Ty(), 0));
  Value* rank = b.CreateSub(field, constant(b.getInt32Ty(), 1));
  Value* other = b.CreateAdd(both(warpField(offsetof(WarpState, clusterBase), i64, "cluster_base")),
                             b.CreateShl(asType(rank, i64, false), exec::kSharedStrideLog));
  Value* base = b.CreateSelect(own, both(warpField(offsetof(WarpState, sharedBase), i64, "shared_base")), other);
  Value* inside =
      b.CreateICmpULT(offset, both(warpField(offsetof(WarpState, totalSharedBytes), b.getInt32Ty(), "shared_size")));
  Value* known =
      b.CreateICmpULE(field, both(warpField(offsetof(WarpState, clusterSize), b.getInt32Ty(), "cluster_size")));
  Value* good = b.CreateAdd(base, asType(offset, i64, false));
  Value* bad = b.CreateOr(asType(a, i64, false), constant(i64, 0xffffffff00000000u));
  return b.CreateSelect(b.CreateAnd(inside, known), good, bad);
}

// Tells the checks of an access before it happens.
void FunctionCodegen::checkAccess(const Instruction& in, const MemoryAccess& a) {
  using exec::CheckedAccess;
  CheckedAccess kind = CheckedAccess::read;
  if (in.op == Opcode::st || in.op == Opcode::stmatrix) kind = CheckedAccess::write;
  if (in.op == Opcode::atom || in.op == Opcode::red) kind = CheckedAccess::atomic;
  // Those with rules of their own, and copies with two addresses.
  if (in.op != Opcode::ld && in.op != Opcode::ldu && in.op != Opcode::st && kind != CheckedAccess::atomic) return;
  markPosition(in);
  Value* row = spill(genericAddresses(a), 3);
  b.CreateCall(
      k_.helper("sonde_check", b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()}),
      {warp_, row, effectMask(), b.getInt32(exec::checkWord(static_cast<uint32_t>(a.space), kind, a.bytes * a.count))});
}

// One compare for range and alignment: rotating the low bits of the distance to
// the top makes a misaligned address a huge one. `span`: bytes that must fit
// behind the address.
Value* FunctionCodegen::scalarInRange(const MemoryAccess& a, Value* address, unsigned span) {
  const unsigned size = a.bytes * a.count;
  const unsigned shift = log2of(size);
  llvm::Type* t = address->getType();
  Value* distance = address;
  if (a.space == Space::generic)
    distance = b.CreateSub(address, warpField(offsetof(WarpState, windowBase), b.getInt64Ty(), "window"));
  if (shift) {
    llvm::Value* amount = llvm::ConstantInt::get(t, shift);
    distance = b.CreateIntrinsic(llvm::Intrinsic::fshr, {t}, {distance, distance, amount});
  }
  return b.CreateICmpULT(distance, rangeLimit(a.space, shift, span - size));
}

// (size of the space - slack) >> shift, made once at the entry.
Value* FunctionCodegen::rangeLimit(Space space, unsigned shift, unsigned slack) {
  const size_t key = size_t{1} << 40 | static_cast<size_t>(space) << 36 | size_t{shift} << 24 | slack;
  if (auto it = fields_.find(key); it != fields_.end()) return it->second;
  Value* size = nullptr;
  if (space == Space::generic)
    size = warpField(offsetof(WarpState, windowSize), b.getInt64Ty(), "window_size");
  else if (space == Space::shared)
    size = warpField(offsetof(WarpState, totalSharedBytes), b.getInt32Ty(), "shared_size");
  else
    size = warpField(offsetof(WarpState, localLimit), b.getInt32Ty(), "local_size");
  llvm::IRBuilder<> e(entry_);
  Value* less =
      e.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, size, llvm::ConstantInt::get(size->getType(), slack));
  Value* limit = e.CreateLShr(less, shift);
  fields_[key] = limit;
  return limit;
}

Value* FunctionCodegen::hostBase(Space space) {
  const size_t key = size_t{2} << 40 | static_cast<size_t>(space);
  if (auto it = fields_.find(key); it != fields_.end()) return it->second;
  Value* delta = warpField(offsetof(WarpState, deviceDelta), b.getInt64Ty(), "delta");
  Value* at = delta;
  if (space == Space::shared) at = warpField(offsetof(WarpState, sharedBase), b.getInt64Ty(), "shared_base");
  if (space == Space::local) at = warpField(offsetof(WarpState, localBase), b.getInt64Ty(), "local_base");
  llvm::IRBuilder<> e(entry_);
  if (space != Space::generic) at = e.CreateAdd(at, delta);
  Value* p = e.CreateIntToPtr(at, e.getPtrTy());
  fields_[key] = p;
  return p;
}

// Byte offset of each lane's local memory, <32 x i32>.
Value* FunctionCodegen::localLaneOffsets() {
  const size_t key = size_t{3} << 40;
  if (auto it = fields_.find(key); it != fields_.end()) return it->second;
  Value* stride = warpField(offsetof(WarpState, localStride), b.getInt64Ty(), "local_stride");
  llvm::IRBuilder<> e(entry_);
  std::vector<llvm::Constant*> iota;
  for (unsigned l = 0; l < kWarpSize; ++l) iota.push_back(e.getInt32(l));
  Value* v = e.CreateMul(e.CreateVectorSplat(kWarpSize, e.CreateTrunc(stride, e.getInt32Ty())),
                         llvm::ConstantVector::get(iota));
  fields_[key] = v;
  return v;
}

Value* FunctionCodegen::scalarPointer(const MemoryAccess& a, Value* address) {
  if (a.space != Space::generic) address = b.CreateZExt(address, b.getInt64Ty());
  return b.CreateGEP(b.getInt8Ty(), hostBase(a.space), address);
}

// <32 x ptr> of the bytes themselves.
Value* FunctionCodegen::lanePointers(const MemoryAccess& a) {
  Value* address = a.uniform ? splat(a.address) : a.address;
  if (a.space == Space::local) address = b.CreateAdd(address, localLaneOffsets());
  return b.CreateGEP(b.getInt8Ty(), hostBase(a.space), address);
}

// The addresses as the helpers take them: within the space for shared and
// local, 64 bits wide.
Value* FunctionCodegen::genericAddresses(const MemoryAccess& a) {
  Value* v = a.uniform ? splat(a.address) : a.address;
  return asType(v, b.getInt64Ty(), false);
}

// Do both halves of the warp walk through memory with one step, each from a
// place of its own? A row of elements, the rows of a two-dimensional block and
// the same element for each half are all of this shape.
FunctionCodegen::Halves FunctionCodegen::findHalves(const MemoryAccess& a, Value* active, bool allowSame) {
  const unsigned size = a.bytes * a.count;
  llvm::Type* scalar = a.address->getType()->getScalarType();
  Value* address = b.CreateFreeze(a.address);
  Halves h;
  h.low = b.CreateExtractElement(address, uint64_t{0});
  h.high = b.CreateExtractElement(address, uint64_t{16});
  llvm::SmallVector<int, 32> pick;
  for (unsigned l = 0; l < kWarpSize; ++l) pick.push_back(l < 16 ? 0 : 16);
  Value* base = b.CreateShuffleVector(address, pick);
  std::vector<llvm::Constant*> steps;
  for (unsigned l = 0; l < kWarpSize; ++l) steps.push_back(llvm::ConstantInt::get(scalar, uint64_t{l % 16} * size));
  Value* offsets = llvm::ConstantVector::get(steps);
  Value* inRange = b.CreateAnd(scalarInRange(a, h.low, size * 16), scalarInRange(a, h.high, size * 16));
  if (allowSame) {
    Value* second = b.CreateExtractElement(address, uint64_t{1});
    h.same = b.CreateICmpEQ(second, h.low, "same");
    offsets = b.CreateSelect(h.same, llvm::Constant::getNullValue(offsets->getType()), offsets);
  }
  Value* fits = bitsOf(b.CreateICmpEQ(address, b.CreateAdd(base, offsets)));
  h.found = b.CreateAnd(b.CreateICmpEQ(b.CreateOr(fits, b.CreateNot(active)), b.getInt32(~0u)), inRange);
  return h;
}

// i1: every active lane's access lies in range and is aligned.
Value* FunctionCodegen::lanesInRange(const MemoryAccess& a, Value* active) {
  const unsigned size = a.bytes * a.count;
  const unsigned shift = log2of(size);
  if (a.uniform) return scalarInRange(a, a.address, size);
  Value* distance = a.address;
  if (a.space == Space::generic)
    distance = b.CreateSub(distance, splat(warpField(offsetof(WarpState, windowBase), b.getInt64Ty(), "window")));
  if (shift)
    distance = b.CreateIntrinsic(llvm::Intrinsic::fshr, {distance->getType()},
                                 {distance, distance, llvm::ConstantInt::get(distance->getType(), shift)});
  Value* ok = bitsOf(b.CreateICmpULT(distance, splat(rangeLimit(a.space, shift, 0))));
  return b.CreateICmpEQ(b.CreateOr(ok, b.CreateNot(active)), b.getInt32(~0u));
}

// The elements at one place. A volatile access is one that the compiler does not take apart.
std::vector<Value*> FunctionCodegen::loadElements(const MemoryAccess& a, llvm::Type* element, Value* p) {
  std::vector<Value*> values;
  if (a.whole) {
    llvm::LoadInst* all = b.CreateAlignedLoad(FixedVectorType::get(element, 2), p, llvm::Align(16), true);
    for (uint64_t i = 0; i < 2; ++i) values.push_back(b.CreateExtractElement(all, i));
    return values;
  }
  for (unsigned i = 0; i < a.count; ++i)
    values.push_back(b.CreateAlignedLoad(element, b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), p, i * a.bytes),
                                         llvm::Align(a.bytes)));
  return values;
}

std::vector<Value*> FunctionCodegen::loadUniform(const MemoryAccess& a, llvm::Type* element) {
  auto& c = b.getContext();
  countUniform(a);
  BasicBlock* fast = BasicBlock::Create(c, "ld_fast", target_);
  BasicBlock* slow = BasicBlock::Create(c, "ld_slow", target_);
  BasicBlock* done = BasicBlock::Create(c, "ld_done", target_);
  b.CreateCondBr(scalarInRange(a, a.address, a.bytes * a.count), fast, slow);
  std::vector<Value*> viaFast, viaSlow, result;
  b.SetInsertPoint(fast);
  viaFast = loadElements(a, element, scalarPointer(a, a.address));
  b.CreateBr(done);
  b.SetInsertPoint(slow);
  Value* out = scratch(1);
  b.CreateCall(k_.helper("sonde_load1", b.getVoidTy(),
                         {b.getPtrTy(), b.getInt64Ty(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy()}),
               {warp_, asType(a.address, b.getInt64Ty(), false), effectMask(), b.getInt32(describe(a)), out});
  for (unsigned i = 0; i < a.count; ++i)
    viaSlow.push_back(b.CreateAlignedLoad(element, b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), out, i * a.bytes),
                                          llvm::Align(a.bytes)));
  b.CreateBr(done);
  b.SetInsertPoint(done);
  for (unsigned i = 0; i < a.count; ++i) {
    llvm::PHINode* phi = b.CreatePHI(element, 2);
    phi->addIncoming(viaFast[i], fast);
    phi->addIncoming(viaSlow[i], slow);
    result.push_back(phi);
  }
  return result;
}

std::vector<Value*> FunctionCodegen::loadVarying(const MemoryAccess& a, llvm::Type* element) {
  if (llvm::Function* f = outlined(a, element, false)) {
    std::vector<Value*> args{warp_, effectMask(), a.address};
    if (countingSites()) args.push_back(accessBase());
    Value* r = b.CreateCall(f, args);
    if (a.count == 1) return {r};
    std::vector<Value*> values;
    for (unsigned i = 0; i < a.count; ++i) values.push_back(b.CreateExtractValue(r, i));
    return values;
  }
  auto& c = b.getContext();
  llvm::Type* vector = FixedVectorType::get(element, kWarpSize);
  Value* active = effectMask();
  BasicBlock* done = BasicBlock::Create(c, "ld_done", target_);
  struct Way {
    BasicBlock* from;
    std::vector<Value*> values;
  };
  std::vector<Way> ways;

  if (!a.uniform && a.bytes <= 8 && a.space != Space::local) {
    BasicBlock* halves = BasicBlock::Create(c, "ld_halves", target_);
    BasicBlock* row = BasicBlock::Create(c, "ld_row", target_);
    BasicBlock* same = BasicBlock::Create(c, "ld_same", target_);
    BasicBlock* other = BasicBlock::Create(c, "ld_other", target_);
    Halves h = findHalves(a, active, true);
    const bool needFull = !avx512 || a.count > 1;
    if (needFull) h.found = b.CreateAnd(h.found, b.CreateICmpEQ(active, b.getInt32(~0u)));
    b.CreateCondBr(h.found, halves, other);
    b.SetInsertPoint(halves);
    countHalves(a, h);
    Value* low = scalarPointer(a, h.low);
    Value* high = scalarPointer(a, h.high);
    b.CreateCondBr(h.same, same, row);

    b.SetInsertPoint(row);
    std::vector<Value*> values;
    llvm::Type* half = FixedVectorType::get(element, 16);
    if (a.count > 1) {
      llvm::Type* wide = FixedVectorType::get(element, 16 * a.count);
      Value* all = concat(b.CreateAlignedLoad(wide, low, llvm::Align(a.bytes * a.count)),
                          b.CreateAlignedLoad(wide, high, llvm::Align(a.bytes * a.count)));
      for (unsigned i = 0; i < a.count; ++i) {
        llvm::SmallVector<int, 32> pick;
        for (unsigned l = 0; l < kWarpSize; ++l) pick.push_back(static_cast<int>(l * a.count + i));
        values.push_back(b.CreateShuffleVector(all, pick));
      }
    } else if (avx512) {
      // A masked load costs several times a plain one.
      BasicBlock* plain = BasicBlock::Create(c, "ld_plain", target_);
      BasicBlock* masked = BasicBlock::Create(c, "ld_masked", target_);
      b.CreateCondBr(b.CreateICmpEQ(active, b.getInt32(~0u)), plain, masked);
      b.SetInsertPoint(plain);
      ways.push_back({plain,
                      {concat(b.CreateAlignedLoad(half, low, llvm::Align(a.bytes)),
                              b.CreateAlignedLoad(half, high, llvm::Align(a.bytes)))}});
      b.CreateBr(done);
      b.SetInsertPoint(masked);
      auto part = [&](Value* p, unsigned shift) {
        Value* bits = b.CreateTrunc(shift ? b.CreateLShr(active, shift) : active, b.getInt16Ty());
        Value* mask = b.CreateBitCast(bits, FixedVectorType::get(b.getInt1Ty(), 16));
        return b.CreateMaskedLoad(half, p, llvm::Align(a.bytes), mask, llvm::Constant::getNullValue(half));
      };
      values.push_back(concat(part(low, 0), part(high, 16)));
    } else {
      values.push_back(concat(b.CreateAlignedLoad(half, low, llvm::Align(a.bytes)),
                              b.CreateAlignedLoad(half, high, llvm::Align(a.bytes))));
    }
    ways.push_back({b.GetInsertBlock(), std::move(values)});
    b.CreateBr(done);

    b.SetInsertPoint(same);
    values.clear();
    // A half without active lanes must not be touched: read the other's place.
    Value* anyLow = b.CreateICmpNE(b.CreateAnd(active, b.getInt32(0xffff)), b.getInt32(0));
    Value* anyHigh = b.CreateICmpNE(b.CreateLShr(active, 16), b.getInt32(0));
    Value* from = b.CreateSelect(anyLow, low, high);
    Value* to = b.CreateSelect(anyHigh, high, low);
    const std::vector<Value*> first = loadElements(a, element, from), second = loadElements(a, element, to);
    for (unsigned i = 0; i < a.count; ++i)
      values.push_back(concat(b.CreateVectorSplat(16, first[i]), b.CreateVectorSplat(16, second[i])));
    ways.push_back({b.GetInsertBlock(), std::move(values)});
    b.CreateBr(done);
    b.SetInsertPoint(other);
  }
  countScattered(a);
  // Other spaces: the helper gathers as well, and the code stays short.
  if (avx512 && a.space == Space::local && (a.bytes == 4 || a.bytes == 8)) {
    BasicBlock* gather = BasicBlock::Create(c, "ld_gather", target_);
    BasicBlock* slow = BasicBlock::Create(c, "ld_slow", target_);
    b.CreateCondBr(lanesInRange(a, active), gather, slow);
    b.SetInsertPoint(gather);
    Value* pointers = lanePointers(a);
    std::vector<Value*> values;
    for (unsigned i = 0; i < a.count; ++i) {
      Value* p = i ? b.CreateGEP(b.getInt8Ty(), pointers, b.getInt64(i * a.bytes)) : pointers;
      values.push_back(b.CreateMaskedGather(vector, p, llvm::Align(a.bytes), maskVector(active),
                                            llvm::Constant::getNullValue(vector)));
    }
    b.CreateBr(done);
    ways.push_back({gather, std::move(values)});
    b.SetInsertPoint(slow);
  }
  Value* addresses = spill(genericAddresses(a), 0);
  Value* out = scratch(1);
  b.CreateCall(k_.helper("sonde_load", b.getVoidTy(),
                         {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy()}),
               {warp_, addresses, active, b.getInt32(describe(a)), out});
  std::vector<Value*> values;
  if (a.whole) {  // lane by lane
    Value* all = b.CreateAlignedLoad(FixedVectorType::get(element, 2 * kWarpSize), out, llvm::Align(32));
    for (unsigned i = 0; i < 2; ++i) {
      llvm::SmallVector<int, 32> pick;
      for (unsigned l = 0; l < kWarpSize; ++l) pick.push_back(static_cast<int>(2 * l + i));
      values.push_back(b.CreateShuffleVector(all, pick));
    }
  } else {
    for (unsigned i = 0; i < a.count; ++i)
      values.push_back(b.CreateAlignedLoad(
          vector, b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), out, i * a.bytes * kWarpSize), llvm::Align(32)));
  }
  ways.push_back({b.GetInsertBlock(), std::move(values)});
  b.CreateBr(done);

  b.SetInsertPoint(done);
  std::vector<Value*> result;
  for (unsigned i = 0; i < a.count; ++i) {
    llvm::PHINode* phi = b.CreatePHI(vector, static_cast<unsigned>(ways.size()));
    for (const Way& w : ways) phi->addIncoming(w.values[i], w.from);
    result.push_back(phi);
  }
  return result;
}

// Functions with very many accesses call one function for each kind of access
// instead of repeating its paths: half the speed, a fraction of the code. Null:
// emit it in place.
llvm::Function* FunctionCodegen::outlined(const MemoryAccess& a, llvm::Type* element, bool isStore) {
  if (!k_.outlineAccesses || inOutlined_ || a.uniform || a.space == Space::local) return nullptr;
  const std::string key = "access_" + std::to_string(isStore) + "_" + std::to_string(static_cast<int>(a.space)) + "_" +
                          std::to_string(a.bytes) + "_" + std::to_string(a.count) + (a.whole ? "w_" : "_") +
                          std::to_string(element->getTypeID()) +
                          (countingMemory() ? "_" + std::to_string(static_cast<int>(current_->space)) + "_" +
                                                  std::to_string(accessKind(*current_))
                                            : "") +
                          (countingCaches() && servedByL2(*current_) ? "_l2" : "");
  if (llvm::Function* known = k_.llvmModule().getFunction(key)) return known;
  llvm::Type* row = FixedVectorType::get(element, kWarpSize);
  std::vector<llvm::Type*> args{b.getPtrTy(), b.getInt32Ty(), a.address->getType()};
  if (countingSites()) args.push_back(b.getInt32Ty());
  const auto firstValue = static_cast<unsigned>(args.size());
  llvm::Type* result = b.getVoidTy();
  if (isStore)
    args.insert(args.end(), a.count, row);
  else if (a.count == 1)
    result = row;
  else
    result = llvm::StructType::get(b.getContext(), std::vector<llvm::Type*>(a.count, row));
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result, args, false), llvm::GlobalValue::InternalLinkage,
                                   key, k_.llvmModule());
  f->setDoesNotThrow();
  f->addFnAttr(llvm::Attribute::NoInline);
  for (const char* name : {"min-legal-vector-width", "prefer-vector-width"})
    if (target_->hasFnAttribute(name)) f->addFnAttr(target_->getFnAttribute(name));

  // Emit it with this object's machinery pointed at the new function.
  auto point = b.saveIP();
  auto fields = std::move(fields_);
  auto buffers = std::move(scratch_);
  fields_.clear();
  scratch_.clear();
  Value *warp = warp_, *mask = mask_, *effect = effect_, *guard = guard_;
  llvm::Function* target = target_;
  BasicBlock* entry = entry_;
  target_ = f;
  entry_ = BasicBlock::Create(b.getContext(), "entry", f);
  BasicBlock* body = BasicBlock::Create(b.getContext(), "body", f);
  warp_ = f->getArg(0);
  mask_ = f->getArg(1);
  effect_ = guard_ = nullptr;
  inOutlined_ = true;
  outlinedAccess_ = countingSites() ? f->getArg(3) : nullptr;
  b.SetInsertPoint(body);
  MemoryAccess inner = a;
  inner.address = f->getArg(2);
  if (isStore) {
    std::vector<Value*> values;
    for (unsigned i = 0; i < a.count; ++i) values.push_back(f->getArg(firstValue + i));
    storeVarying(inner, values);
    b.CreateRetVoid();
  } else {
    std::vector<Value*> values = loadVarying(inner, element);
    if (a.count == 1)
      b.CreateRet(values[0]);
    else
      b.CreateAggregateRet(values.data(), a.count);
  }
  b.SetInsertPoint(entry_);
  b.CreateBr(body);
  inOutlined_ = false;
  outlinedAccess_ = nullptr;
  target_ = target;
  entry_ = entry;
  warp_ = warp;
  mask_ = mask;
  effect_ = effect;
  guard_ = guard;
  fields_ = std::move(fields);
  scratch_ = std::move(buffers);
  b.restoreIP(point);
  return f;
}

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
  b.CreateCondBr(scalarInRange(a, a.address, a.bytes * a.count), fast, slow);
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
               {warp_, asType(a.address, b.getInt64Ty(), false), effectMask(), b.getInt32(describe(a)), from});
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
    b.CreateCondBr(h.found, halves, other);
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
        b.CreateCondBr(full, plain, masked);
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
    b.CreateCondBr(lanesInRange(a, active), scatter, slow);
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
               {warp_, addresses, active, b.getInt32(describe(a)), from});
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

Value* FunctionCodegen::concat(Value* x, Value* y) {
  const unsigned n = llvm::cast<FixedVectorType>(x->getType())->getNumElements();
  llvm::SmallVector<int, 256> pick;
  for (unsigned i = 0; i < 2 * n; ++i) pick.push_back(static_cast<int>(i));
  return b.CreateShuffleVector(x, y, pick);
}

// A card moves a vector of up to 16 bytes at once, and programs that hand a value and its flag from block to block
// rely on it. So where an access is meant for other threads, its elements become one, or two of 8 bytes.
// Answers how many of the instruction's elements one of the access holds.
unsigned FunctionCodegen::joinElements(const Instruction& in, MemoryAccess& a) {
  const unsigned total = a.bytes * a.count;
  const bool shown = in.has(Mod::volatile_) || in.has(Mod::relaxed) || in.has(Mod::acquire) || in.has(Mod::release) ||
                     in.has(Mod::mmio) || in.has(Mod::cg) || in.has(Mod::cv) || in.has(Mod::wt);
  if (!shown || a.space != Space::generic || a.count == 1 || total > 16) return 1;
  const unsigned bytes = std::min(total, 8u), joined = bytes / a.bytes;
  a.bytes = bytes;
  a.count = total / bytes;
  a.whole = a.count == 2;
  return joined;
}

void FunctionCodegen::emitLoad(const Instruction& in) {
  const ptx::ScalarType t = in.type();
  const unsigned bytes = ptx::bitsOf(t) / 8;
  if (bytes == 0 || bytes > 16) unsupported(in, "a load of this type");
  const bool wide = bytes == 16;  // b128: two halves
  const unsigned count = in.vectorWidth * (wide ? 2 : 1);
  markPosition(in);
  const bool ordered = in.has(Mod::volatile_) || in.has(Mod::relaxed) || in.has(Mod::acquire) || in.has(Mod::mmio);
  if (ordered) compilerFence();
  StateSpace space = in.space;
  if (isParamSpace(space)) space = StateSpace::none;
  MemoryAccess a = resolveAddress(in, in.operands[1], space, wide ? 8 : bytes, count);
  llvm::Type* element = wide ? b.getInt64Ty() : scalarType(t);
  const bool scalar = a.uniform && a.space != Space::local;
  const unsigned joined = joinElements(in, a);
  llvm::Type* unit = joined > 1 ? b.getIntNTy(8 * a.bytes) : element;
  std::vector<Value*> values = scalar ? loadUniform(a, unit) : loadVarying(a, unit);
  if (ordered) compilerFence();
  lanes = scalar ? 1 : kWarpSize;
  if (joined > 1) {
    std::vector<Value*> parts;
    for (Value* v : values)
      for (unsigned i = 0; i < joined; ++i)
        parts.push_back(
            asType(b.CreateTrunc(i ? b.CreateLShr(v, uint64_t{8} * bytes * i) : v, form(b.getIntNTy(8 * bytes))),
                   element, false));
    values = std::move(parts);
  }
  if (wide) {
    std::vector<Value*> joined;
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      llvm::Type* w = form(b.getInt128Ty());
      joined.push_back(b.CreateOr(b.CreateZExt(values[i], w), b.CreateShl(b.CreateZExt(values[i + 1], w), 64)));
    }
    values = std::move(joined);
  }
  const Operand& d = in.operands[0];
  if (d.kind == Operand::Kind::vector) {
    for (size_t i = 0; i < d.elements.size() && i < values.size(); ++i) store(d.elements[i], values[i], t);
  } else if (values.size() == 1) {
    store(d, values[0], t);
  } else {
    for (size_t i = 0; i < values.size(); ++i) {  // a .v2/.v4 register
      Operand part = d;
      part.component = static_cast<int8_t>(i);
      store(part, values[i], t);
    }
  }
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
