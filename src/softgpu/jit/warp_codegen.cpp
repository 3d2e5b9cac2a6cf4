// SPDX-License-Identifier: Apache-2.0
//
// Exchange between the lanes of a warp, barriers, address conversions and the
// small instructions that are left over.
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "softgpu/exec/check_options.h"
#include "softgpu/exec/device_memory.h"
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::WarpState;
using llvm::FixedVectorType;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;
using ptx::StateSpace;

namespace {

const Operand& dataDestination(const Instruction& in) {
  const Operand& d = in.operands[0];
  return d.kind == Operand::Kind::predPair ? d.elements[0] : d;
}
const Operand* predicateDestination(const Instruction& in) {
  const Operand& d = in.operands[0];
  return d.kind == Operand::Kind::predPair && d.elements.size() > 1 ? &d.elements[1] : nullptr;
}

}  // namespace

bool FunctionCodegen::emitWarp(const Instruction& in) {
  switch (in.op) {
    case Opcode::shfl: emitShuffle(in); return true;
    case Opcode::vote: emitVote(in); return true;
    case Opcode::match: emitMatch(in); return true;
    case Opcode::redux: emitRedux(in); return true;
    case Opcode::elect: emitElect(in); return true;
    case Opcode::bar:
    case Opcode::barrier: emitBarrier(in); return true;
    case Opcode::activemask:
      lanes = 1;
      store(in.operands[0], effectMask(), ScalarType::b32);
      return true;
    default: return false;
  }
}

// Lane l of the result is lane index[l] of the operand.
Value* FunctionCodegen::permute(Value* row, Value* index) {
  llvm::Type* i32x16 = FixedVectorType::get(b.getInt32Ty(), 16);
  if (avx512 && row->getType()->getScalarSizeInBits() == 32) {
    row = asType(row, b.getInt32Ty(), false);
    auto half = [&](Value* v, unsigned from) {
      llvm::SmallVector<int, 16> pick;
      for (unsigned l = 0; l < 16; ++l) pick.push_back(static_cast<int>(from + l));
      return b.CreateShuffleVector(v, pick);
    };
    Value* low = half(row, 0);
    Value* high = half(row, 16);
    (void)i32x16;
    auto pick = [&](unsigned from) {
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {}, {low, half(index, from), high});
    };
    return concat(pick(0), pick(16));
  }
  // Through memory.
  Value* from = spill(row, 0);
  Value* at = spill(index, 1);
  Value* out = scratch(2);
  b.CreateCall(k_.helper("sonde_permute32", b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}),
               {from, at, out});
  return b.CreateAlignedLoad(row->getType(), out, llvm::Align(64));
}

void FunctionCodegen::emitShuffle(const Instruction& in) {
  lanes = kWarpSize;
  const Operand& bOp = in.operands[2];
  const Operand& cOp = in.operands[3];
  llvm::Type* row = FixedVectorType::get(b.getInt32Ty(), kWarpSize);
  Value* a = source(in.operands[1], ScalarType::b32);
  std::vector<llvm::Constant*> ids;
  for (unsigned l = 0; l < kWarpSize; ++l) ids.push_back(b.getInt32(l));
  Value* lane = llvm::ConstantVector::get(ids);
  Value* bValue = b.CreateAnd(source(bOp, ScalarType::u32), splat(b.getInt32(31)));
  Value* c = source(cOp, ScalarType::u32);
  Value* cValue = b.CreateAnd(c, splat(b.getInt32(31)));
  Value* segment = b.CreateAnd(b.CreateLShr(c, 8), splat(b.getInt32(31)));
  Value* low = b.CreateAnd(lane, segment);
  Value* high = b.CreateOr(low, b.CreateAnd(cValue, b.CreateNot(segment)));
  Value* j = nullptr;
  Value* inside = nullptr;
  if (in.has(Mod::up)) {
    j = b.CreateSub(lane, bValue);
    inside = b.CreateICmpSGE(j, high);
  } else if (in.has(Mod::down)) {
    j = b.CreateAdd(lane, bValue);
    inside = b.CreateICmpSLE(j, high);
  } else if (in.has(Mod::bfly)) {
    j = b.CreateXor(lane, bValue);
    inside = b.CreateICmpSLE(j, high);
  } else {
    j = b.CreateOr(low, b.CreateAnd(bValue, b.CreateNot(segment)));
    inside = b.CreateICmpSLE(j, high);
  }
  j = b.CreateSelect(inside, j, lane);
  Value* result = nullptr;
  if (auto* fixed = llvm::dyn_cast<llvm::ConstantDataVector>(j)) {
    llvm::SmallVector<int, 32> pick;
    for (unsigned l = 0; l < kWarpSize; ++l) pick.push_back(static_cast<int>(fixed->getElementAsInteger(l)));
    result = b.CreateShuffleVector(a, pick);
  } else {
    result = permute(a, j);
  }
  (void)row;
  store(dataDestination(in), result, ScalarType::b32);
  if (const Operand* p = predicateDestination(in)) store(*p, inside, ScalarType::pred);
}

void FunctionCodegen::emitVote(const Instruction& in) {
  const bool sync = in.has(Mod::sync);
  const bool sameMembers = !sync || flow_.operandUniform(in.operands.back());
  lanes = kWarpSize;
  Value* predicate = bitsOf(source(in.operands[1], ScalarType::pred));
  lanes = sameMembers ? 1 : kWarpSize;
  Value* active = toForm(effectMask());
  Value* members = active;
  if (sync) members = b.CreateAnd(active, source(in.operands.back(), ScalarType::b32));
  Value* yes = b.CreateAnd(toForm(predicate), members);
  if (in.has(Mod::ballot)) {
    store(in.operands[0], yes, ScalarType::b32);
    return;
  }
  Value* none = llvm::Constant::getNullValue(yes->getType());
  Value* all = b.CreateICmpEQ(yes, members);
  Value* any = b.CreateICmpNE(yes, none);
  Value* result = in.has(Mod::all) ? all : in.has(Mod::any) ? any : b.CreateOr(all, b.CreateNot(any));
  store(in.operands[0], result, ScalarType::pred);
}

void FunctionCodegen::emitMatch(const Instruction& in) {
  lanes = kWarpSize;
  const bool all = in.has(Mod::all);
  Value* value = spill(asType(source(in.operands[1], in.type()), b.getInt64Ty(), false), 0);
  Value* members = spill(source(in.operands[2], ScalarType::b32), 1);
  Value* out = scratch(2);
  b.CreateCall(k_.helper("sonde_match", b.getVoidTy(),
                         {b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}),
               {effectMask(), b.getInt32(all ? 1 : 0), value, members, out});
  Value* mask = b.CreateAlignedLoad(FixedVectorType::get(b.getInt32Ty(), kWarpSize), out, llvm::Align(64));
  store(dataDestination(in), mask, ScalarType::b32);
  if (const Operand* p = predicateDestination(in))
    store(*p, b.CreateICmpNE(mask, llvm::Constant::getNullValue(mask->getType())), ScalarType::pred);
}

void FunctionCodegen::emitRedux(const Instruction& in) {
  const ScalarType t = in.type();
  const bool sameMembers = flow_.operandUniform(in.operands.back());
  lanes = kWarpSize;
  Value* value = source(in.operands[1], t);
  enum : uint32_t { add, minU, maxU, minS, maxS, andOp, orOp, xorOp, minF, maxF };
  uint32_t op = add;
  const bool isSigned = ptx::isSigned(t), isFloat = t == ScalarType::f32;
  if (in.has(Mod::min))
    op = isFloat ? minF : isSigned ? minS : minU;
  else if (in.has(Mod::max))
    op = isFloat ? maxF : isSigned ? maxS : maxU;
  else if (in.has(Mod::and_))
    op = andOp;
  else if (in.has(Mod::or_))
    op = orOp;
  else if (in.has(Mod::xor_))
    op = xorOp;
  else if (!in.has(Mod::add))
    throw Unsupported("this reduction");
  if (isFloat || !sameMembers) {
    Value* row = asType(value, b.getInt32Ty(), false);
    if (in.has(Mod::abs)) row = b.CreateAnd(row, splat(b.getInt32(0x7fffffff)));
    Value* v = spill(row, 0);
    Value* members = spill(source(in.operands[2], ScalarType::b32), 1);
    Value* out = scratch(2);
    b.CreateCall(k_.helper("sonde_redux", b.getVoidTy(),
                           {b.getInt32Ty(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}),
                 {effectMask(), b.getInt32(op | (in.has(Mod::nan_) ? exec::kReduxNan : 0u)), v, members, out});
    store(in.operands[0], b.CreateAlignedLoad(FixedVectorType::get(b.getInt32Ty(), kWarpSize), out, llvm::Align(64)),
          ScalarType::b32);
    return;
  }
  lanes = 1;
  Value* members = b.CreateAnd(effectMask(), source(in.operands[2], ScalarType::b32));
  auto reduce = [&](uint32_t neutral, auto make) {
    Value* row = b.CreateSelect(maskVector(members), value, splat(b.getInt32(neutral)));
    return make(row);
  };
  Value* r = nullptr;
  switch (op) {
    case add: r = reduce(0, [&](Value* v) { return b.CreateAddReduce(v); }); break;
    case minU: r = reduce(~0u, [&](Value* v) { return b.CreateIntMinReduce(v, false); }); break;
    case maxU: r = reduce(0, [&](Value* v) { return b.CreateIntMaxReduce(v, false); }); break;
    case minS: r = reduce(0x7fffffff, [&](Value* v) { return b.CreateIntMinReduce(v, true); }); break;
    case maxS: r = reduce(0x80000000u, [&](Value* v) { return b.CreateIntMaxReduce(v, true); }); break;
    case andOp: r = reduce(~0u, [&](Value* v) { return b.CreateAndReduce(v); }); break;
    case orOp: r = reduce(0, [&](Value* v) { return b.CreateOrReduce(v); }); break;
    default: r = reduce(0, [&](Value* v) { return b.CreateXorReduce(v); }); break;
  }
  store(in.operands[0], r, ScalarType::b32);
}

void FunctionCodegen::emitElect(const Instruction& in) {
  lanes = kWarpSize;
  Value* members = b.CreateAnd(splat(effectMask()), source(in.operands[1], ScalarType::b32));
  Value* leader = b.CreateIntrinsic(llvm::Intrinsic::cttz, {members->getType()}, {members, b.getFalse()});
  std::vector<llvm::Constant*> ids;
  for (unsigned l = 0; l < kWarpSize; ++l) ids.push_back(b.getInt32(l));
  store(dataDestination(in), leader, ScalarType::b32);
  if (const Operand* p = predicateDestination(in))
    store(*p, b.CreateICmpEQ(leader, llvm::ConstantVector::get(ids)), ScalarType::pred);
}

void FunctionCodegen::emitBarrier(const Instruction& in) {
  markPosition(in);
  if (in.has(Mod::cluster) || in.space == StateSpace::sharedCluster) {
    if (!in.has(Mod::arrive) && !in.has(Mod::wait)) throw Unsupported("this form of barrier.cluster");
    b.CreateCall(k_.helper("sonde_cluster_barrier", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty()}),
                 {warp_, effectMask(), b.getInt32(in.has(Mod::wait) ? 1 : 0)});
    return;
  }
  if (in.has(Mod::warp)) {  // orders memory; the lanes are together already
    compilerFence();
    if (exec::checks().any()) {
      lanes = kWarpSize;
      Value* members = spill(source(in.operands[0], ScalarType::u32), 3);
      b.CreateCall(k_.helper("sonde_check_syncwarp", b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty()}),
                   {warp_, members, effectMask()});
    }
    return;
  }
  // The operands are the same for all lanes that matter: take the first one's.
  auto firstOf = [&](const Operand& o) -> Value* {
    if (flow_.operandUniform(o)) {
      lanes = 1;
      return source(o, ScalarType::u32);
    }
    lanes = kWarpSize;
    Value* row = source(o, ScalarType::u32);
    Value* lane = b.CreateIntrinsic(llvm::Intrinsic::cttz, {b.getInt32Ty()}, {effectMask(), b.getTrue()});
    return b.CreateExtractElement(row, lane);
  };
  const bool red = in.has(Mod::red), arrive = in.has(Mod::arrive);
  const size_t first = red ? 1 : 0;
  const size_t last = in.operands.size() - (red ? 1 : 0);
  Value* id = firstOf(in.operands[first]);
  Value* count = last > first + 1 ? firstOf(in.operands[first + 1]) : b.getInt32(0);
  Value* votes = b.getInt32(0);
  if (red) {
    lanes = kWarpSize;
    votes = bitsOf(source(in.operands.back(), ScalarType::pred));
  }
  // kind: 0 sync, 1 arrive, 2 popc, 3 and, 4 or
  const uint32_t kind = arrive ? 1 : !red ? 0 : in.has(Mod::popc) ? 2 : in.has(Mod::and_) ? 3 : 4;
  if (exec::checks().any())
    b.CreateCall(
        k_.helper("sonde_check_barrier", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty()}),
        {warp_, effectMask(), b.CreateLoad(b.getInt32Ty(), live_), count});
  Value* r = b.CreateCall(
      k_.helper("sonde_barrier", b.getInt32Ty(),
                {b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty()}),
      {warp_, effectMask(), id, count, b.getInt32(kind), votes});
  if (!red) return;
  lanes = 1;
  if (kind == 2)
    store(in.operands[0], r, ScalarType::u32);
  else
    store(in.operands[0], b.CreateICmpNE(r, b.getInt32(0)), ScalarType::pred);
}

// cvta and isspacep: guards select as for arithmetic.
bool FunctionCodegen::emitAddressOp(const Instruction& in) {
  if (in.op == Opcode::mov && in.operands.size() == 2) {
    const Operand& from = in.operands[1];
    if (from.kind != Operand::Kind::special && from.kind != Operand::Kind::symbol &&
        from.kind != Operand::Kind::address)
      return false;
    if (from.kind == Operand::Kind::special && from.component < 0 && in.operands[0].kind == Operand::Kind::vector)
      return false;
    store(in.operands[0], source(from, in.type()), in.type());
    return true;
  }
  if (in.op == Opcode::mapa || in.op == Opcode::getctarank ||
      (in.op == Opcode::cvta && in.space == StateSpace::sharedCluster)) {
    emitClusterAddressOp(in);
    return true;
  }
  if (in.op != Opcode::cvta && in.op != Opcode::isspacep) return false;
  auto field = [&](size_t offset, const char* name) { return toForm(warpField(offset, b.getInt64Ty(), name)); };
  if (in.op == Opcode::isspacep) {
    Value* a = source(in.operands[1], ScalarType::u64);
    auto within = [&](size_t base, size_t size, const char* name) {
      return b.CreateICmpULT(b.CreateSub(a, field(base, name)), field(size, name));
    };
    Value* shared =
        within(offsetof(WarpState, sharedWindowBase), offsetof(WarpState, sharedWindowSize), "shared_window");
    Value* local = within(offsetof(WarpState, localWindowBase), offsetof(WarpState, localWindowSize), "local_window");
    Value* r = nullptr;
    if (in.space == StateSpace::shared || in.space == StateSpace::sharedCta)
      r = b.CreateICmpULT(
          b.CreateSub(a, field(offsetof(WarpState, sharedBase), "shared_base")),
          b.CreateZExt(toForm(warpField(offsetof(WarpState, totalSharedBytes), b.getInt32Ty(), "smem")), a->getType()));
    else if (in.space == StateSpace::sharedCluster)
      r = b.CreateICmpULT(
          b.CreateLShr(b.CreateSub(a, field(offsetof(WarpState, clusterBase), "cluster_base")), exec::kSharedStrideLog),
          b.CreateZExt(toForm(warpField(offsetof(WarpState, clusterSize), b.getInt32Ty(), "cluster_size")),
                       a->getType()));
    else if (in.space == StateSpace::local)
      r = local;
    else if (in.space == StateSpace::global)
      r = b.CreateNot(b.CreateOr(shared, local));
    else
      r = llvm::Constant::getNullValue(shared->getType());
    store(in.operands[0], r, ScalarType::pred);
    return true;
  }
  const ScalarType t = in.type();
  Value* v = asType(source(in.operands[1], t), b.getInt64Ty(), false);
  const bool to = in.has(Mod::to);
  if (in.space == StateSpace::shared || in.space == StateSpace::sharedCta) {
    Value* base = field(offsetof(WarpState, sharedBase), "shared_base");
    v = to ? b.CreateSub(v, base) : b.CreateAdd(v, base);
  } else if (in.space == StateSpace::local) {
    lanes = kWarpSize;
    v = toForm(v);
    Value* base = b.CreateAdd(splat(warpField(offsetof(WarpState, localBase), b.getInt64Ty(), "local_base")),
                              b.CreateZExt(localLaneOffsets(), FixedVectorType::get(b.getInt64Ty(), kWarpSize)));
    v = to ? b.CreateSub(v, base) : b.CreateAdd(v, base);
  }
  store(in.operands[0], v, ScalarType::u64);
  return true;
}

// Addresses in the shared memory of a cluster's blocks, as numbers of 32 bits
// (see clusterAddress) or generic.
void FunctionCodegen::emitClusterAddressOp(const Instruction& in) {
  const bool cluster = in.space == StateSpace::sharedCluster;
  auto field = [&](size_t offset, llvm::Type* t, const char* name) { return toForm(warpField(offset, t, name)); };
  Value* clusterBase = field(offsetof(WarpState, clusterBase), b.getInt64Ty(), "cluster_base");
  const ScalarType t = in.op == Opcode::getctarank && !cluster ? ScalarType::u64 : in.type();
  Value* a = source(in.operands[1], cluster && in.op != Opcode::cvta ? ScalarType::u32 : t);
  auto encoded = [&](Value* rank32, Value* offset32) {
    return b.CreateOr(b.CreateShl(b.CreateAdd(rank32, constantInt(32, 1)), 24), offset32);
  };
  auto rankOf = [&](Value* generic) {
    return asType(b.CreateLShr(b.CreateSub(generic, clusterBase), exec::kSharedStrideLog), b.getInt32Ty(), false);
  };
  auto offsetOf = [&](Value* generic) {
    return b.CreateAnd(b.CreateSub(generic, clusterBase), constantInt(64, exec::kSharedStride - 1));
  };
  if (in.op == Opcode::getctarank) {
    Value* rank = nullptr;
    if (cluster) {
      Value* upper = b.CreateLShr(a, 24);
      rank = b.CreateSelect(b.CreateICmpEQ(upper, constantInt(32, 0)),
                            field(offsetof(WarpState, clusterRank), b.getInt32Ty(), "cluster_ctarank"),
                            b.CreateSub(upper, constantInt(32, 1)));
    } else {
      rank = rankOf(asType(a, b.getInt64Ty(), false));
    }
    store(in.operands[0], rank, ScalarType::u32);
    return;
  }
  if (in.op == Opcode::cvta) {
    Value* v = asType(a, b.getInt64Ty(), false);
    v = in.has(Mod::to) ? encoded(rankOf(v), asType(offsetOf(v), b.getInt32Ty(), false)) : clusterAddress(v);
    store(in.operands[0], v, ScalarType::u64);
    return;
  }
  Value* rank = source(in.operands[2], ScalarType::u32);
  if (cluster) {
    store(in.operands[0], encoded(rank, b.CreateAnd(a, constantInt(32, 0xffffff))), ScalarType::u32);
    return;
  }
  a = asType(a, b.getInt64Ty(), false);
  Value* there = b.CreateAdd(clusterBase, b.CreateShl(asType(rank, b.getInt64Ty(), false), exec::kSharedStrideLog));
  store(in.operands[0], b.CreateAdd(there, offsetOf(a)), ScalarType::u64);
}

// alloca ptr, size {, alignment}: all lanes get as much as the largest of them wants.
void FunctionCodegen::emitAlloca(const Instruction& in) {
  markPosition(in);
  lanes = kWarpSize;
  Value* size = asType(source(in.operands.at(1), in.type()), b.getInt32Ty(), false);
  size = b.CreateIntMaxReduce(b.CreateSelect(maskVector(effectMask()), size, splat(b.getInt32(0))), false);
  const uint64_t align = std::max<uint64_t>(8, in.operands.size() > 2 ? in.operands[2].imm : 8);
  Value* slot = warpPointer(offsetof(WarpState, localTop));
  Value* top = b.CreateLoad(b.getInt32Ty(), slot);
  Value* at = b.CreateAnd(b.CreateAdd(top, b.getInt32(static_cast<uint32_t>(align - 1))),
                          b.getInt32(~static_cast<uint32_t>(align - 1)));
  // A size that cannot be ends beyond the limit, not before it.
  b.CreateStore(b.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, at, size), slot);
  b.CreateCall(k_.helper("sonde_stack_check", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty()}), {warp_, effectMask()});
  lanes = 1;
  store(in.operands[0], at, ScalarType::u32);
}

bool FunctionCodegen::emitMisc(const Instruction& in) {
  switch (in.op) {
    case Opcode::call: emitCall(in); return true;
    case Opcode::membar:
    case Opcode::fence: b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent); return true;
    case Opcode::createpolicy:  // a hint for caches: any value will do
      lanes = 1;
      store(in.operands[0], b.getInt64(0), ScalarType::b64);
      return true;
    case Opcode::alloca: emitAlloca(in); return true;
    case Opcode::stacksave:
      lanes = 1;
      store(in.operands[0], b.CreateLoad(b.getInt32Ty(), warpPointer(offsetof(WarpState, localTop))), ScalarType::u32);
      return true;
    case Opcode::stackrestore: {
      // The stack is the warp's: it shrinks when all lanes give their part back.
      lanes = kWarpSize;
      Value* row = source(in.operands[0], in.type());
      row = b.CreateSelect(maskVector(effectMask()), asType(row, b.getInt32Ty(), false), splat(b.getInt32(0)));
      Value* top = warpPointer(offsetof(WarpState, localTop));
      Value* everybody = b.CreateICmpEQ(effectMask(), b.CreateLoad(b.getInt32Ty(), live_));
      b.CreateStore(b.CreateSelect(everybody, b.CreateIntMaxReduce(row, false), b.CreateLoad(b.getInt32Ty(), top)),
                    top);
      return true;
    }
    case Opcode::nanosleep:
      markPosition(in);
      b.CreateCall(k_.helper("sonde_yield", b.getVoidTy(), {b.getPtrTy()}), {warp_});
      return true;
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::discard:
    case Opcode::applypriority:
    case Opcode::griddepcontrol:
    case Opcode::setmaxnreg:
    case Opcode::pmevent:  // counted with its block
      return true;
    case Opcode::brkpt:
      markPosition(in);
      b.CreateCall(k_.helper("sonde_breakpoint", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty()}), {warp_, effectMask()});
      return true;
    default: return false;
  }
}

}  // namespace sonde::softgpu::jit
