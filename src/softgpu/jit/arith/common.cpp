// SPDX-License-Identifier: Apache-2.0
#include <llvm/IR/Verifier.h>

#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

using llvm::Intrinsic::ID;

const Operand& Lower::operand(size_t i) const {
  if (i >= in.operands.size()) unsupported("an operand is missing (number " + std::to_string(i) + ")");
  return in.operands[i];
}

void Lower::unsupported(const std::string& what) const {
  std::string text(ptx::name(in.op));
  for (Mod m : in.mods) text += "." + std::string(ptx::name(m));
  for (ScalarType t : in.types) text += "." + std::string(ptx::name(t));
  throw Unsupported(text + ": " + what);
}

Rounding Lower::rounding() const {
  for (Mod m : in.mods) {
    switch (m) {
      case Mod::rn: return Rounding::nearest;
      case Mod::rz: return Rounding::zero;
      case Mod::rm: return Rounding::down;
      case Mod::rp: return Rounding::up;
      case Mod::rna: return Rounding::nearestAway;
      case Mod::rs: unsupported("stochastic rounding is not supported");
      default: break;
    }
  }
  return Rounding::nearest;
}

Value* Lower::intrinsic(ID id, llvm::ArrayRef<Value*> args) {
  return b.CreateIntrinsic(id, {args[0]->getType()}, args);
}

Value* Lower::asInt(Value* v) {
  llvm::Type* t = v->getType();
  if (!t->isFPOrFPVectorTy()) return v;
  return b.CreateBitCast(v, intType(t->getScalarSizeInBits()));
}

Value* Lower::shlClamped(Value* v, Value* amount) {
  const unsigned bits = v->getType()->getScalarSizeInBits();
  Value* inRange = b.CreateICmpULT(amount, kLike(amount, bits));
  Value* shifted = b.CreateShl(v, zext(b.CreateAnd(amount, kLike(amount, bits - 1)), bits));
  return b.CreateSelect(inRange, shifted, kLike(v, 0));
}

Value* Lower::shrClamped(Value* v, Value* amount, bool arithmetic) {
  const unsigned bits = v->getType()->getScalarSizeInBits();
  if (arithmetic) return b.CreateAShr(v, zext(umin(amount, kLike(amount, bits - 1)), bits));
  Value* inRange = b.CreateICmpULT(amount, kLike(amount, bits));
  Value* shifted = b.CreateLShr(v, zext(b.CreateAnd(amount, kLike(amount, bits - 1)), bits));
  return b.CreateSelect(inRange, shifted, kLike(v, 0));
}

Value* Lower::clampTo(Value* wide, unsigned bits, bool toSigned) {
  const unsigned from = wide->getType()->getScalarSizeInBits();
  llvm::APInt low = toSigned ? llvm::APInt::getSignedMinValue(bits).sext(from) : llvm::APInt(from, 0);
  llvm::APInt high =
      toSigned ? llvm::APInt::getSignedMaxValue(bits).sext(from) : llvm::APInt::getMaxValue(bits).zext(from);
  Value* v = smax(wide, llvm::ConstantInt::get(wide->getType(), low));
  v = smin(v, llvm::ConstantInt::get(wide->getType(), high));
  return b.CreateTrunc(v, intType(bits));
}

Value* Lower::highHalf(Value* packed) {
  const unsigned half = halfBits(packed);
  return b.CreateTrunc(b.CreateLShr(packed, kLike(packed, half)), intType(half));
}

Value* Lower::pack(Value* low, Value* high) {
  const unsigned bits = low->getType()->getScalarSizeInBits();
  Value* h = b.CreateShl(zext(high, 2 * bits), k(2 * bits, bits));
  return b.CreateOr(h, zext(low, 2 * bits));
}

Value* Lower::boolOp(Value* p, Value* q) {
  if (has(Mod::and_)) return b.CreateAnd(p, q);
  if (has(Mod::or_)) return b.CreateOr(p, q);
  if (has(Mod::xor_)) return b.CreateXor(p, q);
  unsupported("a predicate operand without .and, .or or .xor");
}

llvm::Function* Lower::helper(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args,
                              const std::function<Value*(llvm::Function*)>& body) {
  if (llvm::Function* known = c.module.getFunction(name)) return known;
  auto* type = llvm::FunctionType::get(result, args, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, c.module);
  // The same host features as the caller: else vectors would not be passed alike.
  llvm::AttrBuilder features(c.module.getContext());
  const llvm::Function* caller = b.GetInsertBlock()->getParent();
  for (const char* key : {"target-cpu", "target-features", "tune-cpu", "prefer-vector-width", "min-legal-vector-width"})
    if (caller->hasFnAttribute(key)) features.addAttribute(caller->getFnAttribute(key));
  f->addFnAttrs(features);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  llvm::IRBuilderBase::InsertPointGuard guard(b);
  b.SetInsertPoint(llvm::BasicBlock::Create(c.module.getContext(), "entry", f));
  b.SetCurrentDebugLocation(llvm::DebugLoc());
  b.CreateRet(body(f));
  return f;
}

}  // namespace sonde::softgpu::jit::arith
