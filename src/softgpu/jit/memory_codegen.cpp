// SPDX-License-Identifier: Apache-2.0
//
// Loads and stores. A uniform address is one scalar access. Lanes that touch
// consecutive elements are one vector access. Anything else is a hardware
// gather or scatter where the host has AVX-512, and otherwise a call; so is
// every access that leaves the device's window or is misaligned, and the helper
// finds out what to do about it. No lane outside the mask touches memory.
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
  branchLikely(scalarInRange(a, a.address, a.bytes * a.count), fast, slow);
  std::vector<Value*> viaFast, viaSlow, result;
  b.SetInsertPoint(fast);
  viaFast = loadElements(a, element, scalarPointer(a, a.address));
  b.CreateBr(done);
  b.SetInsertPoint(slow);
  Value* out = scratch(1);
  b.CreateCall(k_.helper("sonde_load1", b.getVoidTy(),
                         {b.getPtrTy(), b.getInt64Ty(), b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy()}),
               {warp_, asType(a.address, b.getInt64Ty(), false), effectMask(), b.getInt32(a.described()), out});
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
    branchLikely(h.found, halves, other);
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
      branchLikely(b.CreateICmpEQ(active, b.getInt32(~0u)), plain, masked);
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
    branchLikely(lanesInRange(a, active), gather, slow);
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
               {warp_, addresses, active, b.getInt32(a.described()), out});
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

}  // namespace sonde::softgpu::jit
