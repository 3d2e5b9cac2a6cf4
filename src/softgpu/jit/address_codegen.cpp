// SPDX-License-Identifier: Apache-2.0
//
// Addresses of loads and stores: which window they are in, and which lanes of a warp are.
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
  const unsigned shift = static_cast<unsigned>(std::countr_zero(size));
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
  const unsigned shift = static_cast<unsigned>(std::countr_zero(size));
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

}  // namespace sonde::softgpu::jit
