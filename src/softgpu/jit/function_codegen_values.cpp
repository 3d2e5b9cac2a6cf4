// SPDX-License-Identifier: Apache-2.0
//
// Registers, immediates, special registers and addresses as LLVM values.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>

#include <bit>

#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::WarpState;
using llvm::Value;
using ptx::Instruction;
using ptx::Operand;
using ptx::ScalarType;
using ptx::SpecialReg;

llvm::AllocaInst* FunctionCodegen::entryAlloca(llvm::Type* type, const char* name, unsigned align) {
  llvm::IRBuilder<> e(entry_);
  llvm::AllocaInst* slot = e.CreateAlloca(type, nullptr, name);
  slot->setAlignment(llvm::Align(align));
  return slot;
}

Value* FunctionCodegen::warpPointer(size_t offset) {
  return b.CreateConstInBoundsGEP1_32(b.getInt8Ty(), warp_, static_cast<unsigned>(offset));
}

Value* FunctionCodegen::warpField(size_t offset, llvm::Type* type, const char* name, bool invariant) {
  if (auto it = fields_.find(offset); it != fields_.end()) return it->second;
  llvm::IRBuilder<> e(entry_);
  Value* p = e.CreateConstInBoundsGEP1_32(e.getInt8Ty(), warp_, static_cast<unsigned>(offset));
  llvm::LoadInst* load = e.CreateLoad(type, p, name);
  if (invariant) load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.getContext(), {}));
  fields_[offset] = load;
  return load;
}

Value* FunctionCodegen::toForm(Value* v) { return lanes == kWarpSize && !v->getType()->isVectorTy() ? splat(v) : v; }

Value* FunctionCodegen::bitsOf(Value* v) {
  // Lanes that do not run may hold anything: freeze, or one such lane would
  // spoil the whole mask.
  return b.CreateBitCast(b.CreateFreeze(v), b.getInt32Ty());
}

Value* FunctionCodegen::popcount(Value* bits) {
  return b.CreateZExt(b.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits), b.getInt64Ty());
}

Value* FunctionCodegen::asType(Value* v, llvm::Type* to, bool isSigned) {
  llvm::Type* from = v->getType()->getScalarType();
  if (from == to) return v;
  auto like = [&](llvm::Type* t) -> llvm::Type* {
    return v->getType()->isVectorTy() ? llvm::FixedVectorType::get(t, kWarpSize) : t;
  };
  const unsigned fromBits = from->getScalarSizeInBits(), toBits = to->getScalarSizeInBits();
  if (from->isFloatingPointTy()) v = b.CreateBitCast(v, like(b.getIntNTy(fromBits)));
  if (fromBits < toBits)
    v = isSigned ? b.CreateSExt(v, like(b.getIntNTy(toBits))) : b.CreateZExt(v, like(b.getIntNTy(toBits)));
  else if (fromBits > toBits)
    v = b.CreateTrunc(v, like(b.getIntNTy(toBits)));
  if (to->isFloatingPointTy()) v = b.CreateBitCast(v, like(to));
  return v;
}

Value* FunctionCodegen::loadRegister(ptx::RegId reg, int component) {
  Value* slot = registers_[reg][component < 0 ? 0 : static_cast<size_t>(component)];
  if (!slot) throw Unsupported("register '" + function.registers[reg].name + "' has no value");
  return b.CreateLoad(llvm::cast<llvm::AllocaInst>(slot)->getAllocatedType(), slot);
}

Value* FunctionCodegen::guardValue(const Instruction& in) {
  Value* v = loadRegister(in.guard.reg, -1);
  return in.guard.negated ? b.CreateNot(v) : v;
}

Value* FunctionCodegen::source(const Operand& o, ScalarType t) {
  switch (o.kind) {
    case Operand::Kind::reg: {
      const ScalarType declared = function.registers[o.reg].type;
      Value* v = loadRegister(o.reg, o.component);
      if (o.negated && declared == ScalarType::pred) v = b.CreateNot(v);
      if (o.offset != 0) v = b.CreateAdd(v, llvm::ConstantInt::getSigned(v->getType(), o.offset));
      llvm::Type* to = scalarType(t);
      if (v->getType()->getScalarSizeInBits() < to->getScalarSizeInBits())
        throw Unsupported("register '" + function.registers[o.reg].name + "' is narrower than the instruction's type");
      v = asType(v, to, false);
      return toForm(v);
    }
    case Operand::Kind::special: return special(o, t);
    case Operand::Kind::integer: {
      if (t == ScalarType::f32) return constantFp(b.getFloatTy(), static_cast<double>(static_cast<int64_t>(o.imm)));
      if (t == ScalarType::f64) return constantFp(b.getDoubleTy(), static_cast<double>(static_cast<int64_t>(o.imm)));
      if (t == ScalarType::pred) return constantInt(1, (o.imm != 0) != o.negated);
      llvm::APInt value(64, o.imm);
      const unsigned bits = ptx::bitsOf(t);
      value = bits > 64 ? value.sext(bits) : value.trunc(bits);
      return llvm::ConstantInt::get(form(b.getIntNTy(bits)), value);
    }
    case Operand::Kind::floating: {
      const uint32_t bits32 = static_cast<uint32_t>(o.imm);
      const double d = o.is32 ? static_cast<double>(std::bit_cast<float>(bits32)) : std::bit_cast<double>(o.imm);
      if (t == ScalarType::f32) {
        const uint32_t f = o.is32 ? bits32 : std::bit_cast<uint32_t>(static_cast<float>(d));
        return llvm::ConstantFP::get(form(b.getFloatTy()),
                                     llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, f)));
      }
      if (t == ScalarType::f64) return constantFp(b.getDoubleTy(), d);
      if (ptx::bitsOf(t) == 32)
        return constantInt(32, o.is32 ? bits32 : std::bit_cast<uint32_t>(static_cast<float>(d)));
      if (ptx::bitsOf(t) == 64) return constantInt(64, o.is32 ? std::bit_cast<uint64_t>(d) : o.imm);
      throw Unsupported("a floating-point constant for type " + std::string(ptx::name(t)));
    }
    case Operand::Kind::symbol: return toForm(asType(symbolAddress(o), scalarType(t), false));
    case Operand::Kind::address: return toForm(asType(symbolAddress(o), scalarType(t), false));
    case Operand::Kind::sink: return llvm::Constant::getNullValue(type(t));
    default: throw Unsupported("an operand of a kind that this instruction cannot read");
  }
}

void FunctionCodegen::store(const Operand& d, Value* value, ScalarType t) {
  if (d.kind == Operand::Kind::sink || d.kind == Operand::Kind::none) return;
  if (d.kind != Operand::Kind::reg) throw Unsupported("a destination that is not a register");
  Value* slot = registers_[d.reg][d.component < 0 ? 0 : static_cast<size_t>(d.component)];
  llvm::Type* slotType = llvm::cast<llvm::AllocaInst>(slot)->getAllocatedType();
  value = asType(value, slotType->getScalarType(), ptx::isSigned(t));
  if (slotType->isVectorTy() && !value->getType()->isVectorTy()) value = splat(value);
  if (!slotType->isVectorTy() && value->getType()->isVectorTy()) {
    // A uniform result of an instruction with varying operands (ballot, …).
    value = b.CreateExtractElement(
        value, b.CreateIntrinsic(llvm::Intrinsic::cttz, {b.getInt32Ty()}, {effectMask(), b.getFalse()}));
  }
  Value* condition = nullptr;
  if (flow_.needsBlend(block_, d.reg)) condition = maskVector(effectMask());
  if (guard_ && !(condition && effect_)) {
    Value* g = guard_;
    if (condition && !g->getType()->isVectorTy()) g = splat(g);
    condition = condition ? b.CreateAnd(condition, g) : g;
  }
  if (condition) value = b.CreateSelect(condition, value, b.CreateLoad(slotType, slot));
  b.CreateStore(value, slot);
}

Value* FunctionCodegen::activeMask() {
  if (uniform()) return b.getTrue();
  Value* m = maskVector(effectMask());
  if (guard_ && !effect_) {
    Value* g = guard_->getType()->isVectorTy() ? guard_ : splat(guard_);
    m = b.CreateAnd(m, g);
  }
  return m;
}

Value* FunctionCodegen::carry() {
  return toForm(b.CreateLoad(llvm::cast<llvm::AllocaInst>(carrySlot_)->getAllocatedType(), carrySlot_));
}

void FunctionCodegen::setCarry(Value* value) {
  llvm::Type* slotType = llvm::cast<llvm::AllocaInst>(carrySlot_)->getAllocatedType();
  if (slotType->isVectorTy() && !value->getType()->isVectorTy()) value = splat(value);
  if (guard_) value = b.CreateSelect(guard_, value, b.CreateLoad(slotType, carrySlot_));
  if (flow_.blocks[block_].liveElsewhere.test(function.registers.size()))
    value = b.CreateSelect(maskVector(mask_), value, b.CreateLoad(slotType, carrySlot_));
  b.CreateStore(value, carrySlot_);
}

Value* FunctionCodegen::special(const Operand& o, ScalarType t) {
  llvm::Type* i32 = b.getInt32Ty();
  llvm::Type* i64 = b.getInt64Ty();
  const unsigned component = o.component < 0 ? 0 : static_cast<unsigned>(o.component);
  auto finish = [&](Value* v) { return toForm(asType(v, scalarType(t), false)); };
  auto field32 = [&](size_t offset, const char* name) { return finish(warpField(offset, i32, name)); };
  auto dim = [&](size_t offset, uint32_t fourth, const char* name) {
    if (component > 2) return finish(b.getInt32(fourth));
    return field32(offset + 4 * component, name);
  };
  auto perLane = [&](auto make) -> Value* {
    std::vector<llvm::Constant*> values;
    for (unsigned l = 0; l < kWarpSize; ++l) values.push_back(b.getInt32(make(l)));
    return asType(llvm::ConstantVector::get(values), scalarType(t), false);
  };
  switch (o.special) {
    case SpecialReg::tid: {
      llvm::Type* v = llvm::FixedVectorType::get(i32, kWarpSize);
      if (component > 2) return finish(b.getInt32(0));
      return asType(warpField(offsetof(WarpState, tid) + component * sizeof(WarpState::tid[0]), v, "tid"),
                    scalarType(t), false);
    }
    case SpecialReg::ntid: return dim(offsetof(WarpState, ntid), 1, "ntid");
    case SpecialReg::ctaid: return dim(offsetof(WarpState, ctaid), 0, "ctaid");
    case SpecialReg::nctaid: return dim(offsetof(WarpState, nctaid), 1, "nctaid");
    case SpecialReg::clusterid: return dim(offsetof(WarpState, clusterid), 0, "clusterid");
    case SpecialReg::nclusterid: return dim(offsetof(WarpState, nclusterid), 1, "nclusterid");
    case SpecialReg::cluster_ctaid: return dim(offsetof(WarpState, clusterCtaid), 0, "cluster_ctaid");
    case SpecialReg::cluster_nctaid: return dim(offsetof(WarpState, clusterNctaid), 1, "cluster_nctaid");
    case SpecialReg::cluster_ctarank: return field32(offsetof(WarpState, clusterRank), "cluster_ctarank");
    case SpecialReg::cluster_nctarank: return field32(offsetof(WarpState, clusterSize), "cluster_nctarank");
    case SpecialReg::is_explicit_cluster: {
      Value* v = b.CreateICmpNE(warpField(offsetof(WarpState, explicitCluster), i32, "explicit"), b.getInt32(0));
      return finish(v);
    }
    case SpecialReg::laneid: return perLane([](unsigned l) { return l; });
    case SpecialReg::lanemask_eq: return perLane([](unsigned l) { return 1u << l; });
    case SpecialReg::lanemask_lt: return perLane([](unsigned l) { return (1u << l) - 1; });
    case SpecialReg::lanemask_le: return perLane([](unsigned l) { return ((1u << l) - 1) | 1u << l; });
    case SpecialReg::lanemask_gt: return perLane([](unsigned l) { return ~(((1u << l) - 1) | 1u << l); });
    case SpecialReg::lanemask_ge: return perLane([](unsigned l) { return ~((1u << l) - 1); });
    case SpecialReg::warpid: return field32(offsetof(WarpState, warpid), "warpid");
    case SpecialReg::nwarpid: return field32(offsetof(WarpState, nwarpid), "nwarpid");
    case SpecialReg::smid: return field32(offsetof(WarpState, smid), "smid");
    case SpecialReg::nsmid: return field32(offsetof(WarpState, nsmid), "nsmid");
    case SpecialReg::gridid: return finish(warpField(offsetof(WarpState, gridid), i64, "gridid"));
    case SpecialReg::total_smem_size:
    case SpecialReg::aggr_smem_size: return field32(offsetof(WarpState, totalSharedBytes), "smem");
    case SpecialReg::dynamic_smem_size: return field32(offsetof(WarpState, dynamicSharedBytes), "dsmem");
    case SpecialReg::clock:
    case SpecialReg::clock64:
    case SpecialReg::clock_hi: {
      Value* v = b.CreateCall(k_.helper("sonde_clock", i64, {b.getPtrTy()}), {warp_});
      if (o.special == SpecialReg::clock_hi) v = b.CreateLShr(v, 32);
      return finish(v);
    }
    case SpecialReg::globaltimer:
    case SpecialReg::globaltimer_lo:
    case SpecialReg::globaltimer_hi: {
      Value* v = b.CreateCall(k_.helper("sonde_globaltimer", i64, {}), {});
      if (o.special == SpecialReg::globaltimer_hi) v = b.CreateLShr(v, 32);
      return finish(v);
    }
    case SpecialReg::envreg: {
      // Where a cooperative launch keeps its grid barrier; the others are for other programming systems.
      if (o.index != 1 && o.index != 2) return finish(b.getInt64(0));
      Value* v = warpField(offsetof(WarpState, gridWorkspace), i64, "gridWorkspace");
      return finish(o.index == 1 ? b.CreateLShr(v, 32) : v);
    }
    case SpecialReg::pm:
    case SpecialReg::pm64:
    case SpecialReg::current_graph_exec:
    case SpecialReg::reserved_smem_offset_begin:
    case SpecialReg::reserved_smem_offset_end:
    case SpecialReg::reserved_smem_offset_cap:
    case SpecialReg::reserved_smem_offset: return finish(b.getInt64(0));
  }
  throw Unsupported("special register " + ptx::name(o.special, o.index));
}

// Scalar i64: of shared and local variables the address within their space, of
// others the generic address.
Value* FunctionCodegen::symbolAddress(const Operand& o) {
  Value* address = nullptr;
  switch (o.ref) {
    case Operand::Ref::moduleVar: {
      const ptx::Variable& v = ptxModule.variables[o.refId];
      if (v.space == ptx::StateSpace::shared || v.space == ptx::StateSpace::sharedCta) {
        address = b.getInt64(k_.layout.sharedModule.at(o.refId));
      } else {
        Value* table = warpField(offsetof(WarpState, globals), b.getPtrTy(), "globals");
        llvm::LoadInst* load =
            b.CreateLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP1_32(b.getInt64Ty(), table, o.refId));
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
        address = load;
      }
      break;
    }
    case Operand::Ref::localVar: {
      const ptx::Variable& v = function.variables[o.refId];
      if (v.space == ptx::StateSpace::shared || v.space == ptx::StateSpace::sharedCta)
        address = b.getInt64(k_.layout.sharedLocal.at({index_, o.refId}));
      else if (v.space == ptx::StateSpace::local)
        address = b.CreateZExt(b.CreateAdd(localFrameBase_, b.getInt32(localOffsets_[o.refId])), b.getInt64Ty());
      else
        throw Unsupported("the address of '" + v.name + "'");
      break;
    }
    case Operand::Ref::function: address = b.getInt64(functionToken(o.refId)); break;
    case Operand::Ref::param:
      if (isKernel_) {
        k_.layout.paramCopyBytes = function.paramBytes;
        address = b.CreateAdd(warpField(offsetof(WarpState, paramGeneric), b.getInt64Ty(), "params_at"),
                              b.getInt64(function.paramOffsets[o.refId]));
        break;
      }
      throw Unsupported("the address of a function's parameter '" + function.params[o.refId].name + "'");
    default: throw Unsupported("an operand without an address");
  }
  return o.offset ? b.CreateAdd(address, b.getInt64(static_cast<uint64_t>(o.offset))) : address;
}

Value* FunctionCodegen::scratch(unsigned which) {
  while (scratch_.size() <= which)
    scratch_.push_back(entryAlloca(llvm::ArrayType::get(b.getInt64Ty(), kWarpSize * 4), "scratch"));
  return scratch_[which];
}

Value* FunctionCodegen::spill(Value* vector, unsigned which) {
  Value* to = scratch(which);
  b.CreateAlignedStore(vector, to, llvm::Align(64));
  return to;
}

}  // namespace sonde::softgpu::jit
