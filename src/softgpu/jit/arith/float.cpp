// SPDX-License-Identifier: Apache-2.0
//
// f32 and f64 arithmetic, minimum and maximum, reciprocal, square root.
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

using enum ptx::Opcode;
namespace Intr = llvm::Intrinsic;

// A NaN operand yields the other one; -0 is below +0.
Value* Lower::minMax(Value* x, Value* y, bool isMin, bool propagateNan) {
  llvm::Type* type = x->getType();
  Value* takeX = isMin ? b.CreateFCmpOLT(x, y) : b.CreateFCmpOGT(x, y);
  Value* r = b.CreateSelect(takeX, x, y);
  // Equal operands differ at most in the sign of a zero.
  Value *xi = asInt(x), *yi = asInt(y);
  Value* merged = b.CreateBitCast(isMin ? b.CreateOr(xi, yi) : b.CreateAnd(xi, yi), type);
  r = b.CreateSelect(b.CreateFCmpOEQ(x, y), merged, r);
  if (propagateNan) {
    r = b.CreateSelect(isNan(x), x, r);
    r = b.CreateSelect(isNan(y), y, r);
  } else {
    r = b.CreateSelect(isNan(y), x, r);  // x NaN: the comparisons above chose y
  }
  return r;
}

Value* Lower::minMaxMods(Value* x, Value* y, bool isMin) {
  if (!has(Mod::xorsign)) return canonical(minMax(x, y, isMin, has(Mod::nan_)));
  Value* sign = b.CreateXor(asInt(x), asInt(y));
  const uint64_t signBit = uint64_t{1} << (x->getType()->getScalarSizeInBits() - 1);
  sign = b.CreateAnd(sign, kLike(sign, signBit));
  Value* r = canonical(minMax(fabs(x), fabs(y), isMin, has(Mod::nan_)));
  Value* bits = asInt(r);
  Value* withSign = b.CreateBitCast(b.CreateOr(bits, sign), r->getType());
  return b.CreateSelect(isNan(r), r, withSign);
}

bool Lower::floatMinMax(ScalarType t) {
  const bool ftz = has(Mod::ftz);
  const bool isMin = in.op == min;
  Value* r = flushIf(src(1, t), ftz);
  r = minMaxMods(r, flushIf(src(2, t), ftz), isMin);
  if (hasOperand(3)) r = minMaxMods(r, flushIf(src(3, t), ftz), isMin);
  dst(r, t);
  return true;
}

// `args`: of type t.
Value* Lower::floatArith(ScalarType t, llvm::ArrayRef<Value*> args) {
  const bool ftz = has(Mod::ftz) && t == ScalarType::f32;
  const Rounding r = rounding();
  auto operandAt = [&](size_t i) { return flushIf(args[i - 1], ftz); };
  auto one = [&] { return llvm::ConstantFP::get(c.type(t), 1.0); };
  Value* v = nullptr;
  switch (in.op) {
    case add: v = rounded(FpOp::add, {operandAt(1), operandAt(2)}, r); break;
    case sub: v = rounded(FpOp::sub, {operandAt(1), operandAt(2)}, r); break;
    case mul: v = rounded(FpOp::mul, {operandAt(1), operandAt(2)}, r); break;
    case mad:
    case fma: v = rounded(FpOp::fma, {operandAt(1), operandAt(2), operandAt(3)}, r); break;
    case div: {
      Value *x = operandAt(1), *y = operandAt(2);
      v = rounded(FpOp::div, {x, y}, r);
      if (has(Mod::approx)) {
        // Divisors beyond 2^126 have no normal reciprocal: their quotients are zero.
        Value* huge =
            b.CreateAnd(b.CreateFCmpOGT(fabs(y), fpBits(0x7e800000)), b.CreateFCmpONE(fabs(y), fpBits(0x7f800000)));
        v = b.CreateSelect(huge, b.CreateFMul(x, b.CreateBinaryIntrinsic(Intr::copysign, fp(0.0), y)), v);
      }
      break;
    }
    case rcp: v = rounded(FpOp::div, {one(), operandAt(1)}, r); break;
    case sqrt: v = rounded(FpOp::sqrt, {operandAt(1)}, r); break;
    default: unsupported("not an arithmetic instruction");
  }
  v = canonical(v);
  v = flushIf(v, ftz);
  return has(Mod::sat) ? saturate(v) : v;
}

// Both halves of .f32x2, each as the scalar instruction.
bool Lower::packedSingle() {
  if (in.op != add && in.op != sub && in.op != mul && in.op != fma) return false;
  llvm::SmallVector<Value*, 3> low, high;
  for (size_t i = 1; hasOperand(i); ++i) {
    Value* both = src(i, ScalarType::b64);
    low.push_back(asF32(lowHalf(both)));
    high.push_back(asF32(highHalf(both)));
  }
  Value* first = asInt(floatArith(ScalarType::f32, low));
  dst(pack(first, asInt(floatArith(ScalarType::f32, high))), ScalarType::b64);
  return true;
}

bool Lower::floating() {
  const ScalarType t = in.type();
  if (t != ScalarType::f32 && t != ScalarType::f64 && t != ScalarType::f32x2) return false;
  const bool isDouble = t == ScalarType::f64;
  if (t == ScalarType::f32x2) return packedSingle();

  switch (in.op) {
    case add:
    case sub:
    case mul:
    case mad:
    case fma:
    case div:
    case sqrt:
    case rcp: {
      if (in.op == rcp && isDouble && has(Mod::approx)) return approximate();
      llvm::SmallVector<Value*, 3> args;
      // .f32.f16 and .f32.bf16: all operands but the last are of the narrow type.
      const bool mixed = in.types.size() > 1;
      for (size_t i = 1; hasOperand(i); ++i)
        args.push_back(mixed && hasOperand(i + 1) ? widen(src(i, in.type(1)), in.type(1)) : src(i, t));
      dst(floatArith(t, args), t);
      return true;
    }
    case min:
    case max: return floatMinMax(t);
    case abs:
    case neg: {
      Value* bits = asInt(flushIf(src(1, t), has(Mod::ftz) && !isDouble));
      const uint64_t sign = uint64_t{1} << (isDouble ? 63 : 31);
      Value* r = in.op == abs ? b.CreateAnd(bits, kLike(bits, ~sign)) : b.CreateXor(bits, kLike(bits, sign));
      r = b.CreateBitCast(r, c.type(t));
      if (isDouble && c.canonicalNan) {
        // A NaN keeps sign and payload and becomes quiet.
        Value* quiet = asF64(b.CreateOr(bits, k(64, 0x0008000000000000u)));
        r = b.CreateSelect(isNan(r), quiet, r);
      }
      dst(canonical(r), t);
      return true;
    }
    case copysign: {
      // The sign of the first operand on the magnitude of the second.
      dst(b.CreateBinaryIntrinsic(Intr::copysign, src(2, t), src(1, t)), t);
      return true;
    }
    case testp: {
      Value* bits = asInt(src(1, t));
      const uint64_t exponent = isDouble ? 0x7ff0000000000000u : 0x7f800000u;
      const uint64_t smallest = isDouble ? 0x0010000000000000u : 0x00800000u;
      Value* magnitude = b.CreateAnd(bits, kLike(bits, isDouble ? 0x7fffffffffffffffu : 0x7fffffffu));
      Value* p = nullptr;
      if (has(Mod::finite))
        p = b.CreateICmpULT(magnitude, kLike(bits, exponent));
      else if (has(Mod::infinite))
        p = b.CreateICmpEQ(magnitude, kLike(bits, exponent));
      else if (has(Mod::number))
        p = b.CreateICmpULE(magnitude, kLike(bits, exponent));
      else if (has(Mod::notanumber))
        p = b.CreateICmpUGT(magnitude, kLike(bits, exponent));
      else if (has(Mod::normal))
        // Zeros count as normal.
        p = b.CreateOr(b.CreateICmpULT(b.CreateSub(magnitude, kLike(bits, smallest)), kLike(bits, exponent - smallest)),
                       b.CreateICmpEQ(magnitude, kLike(bits, 0)));
      else if (has(Mod::subnormal))
        p = b.CreateICmpULT(b.CreateSub(magnitude, kLike(bits, 1)), kLike(bits, smallest - 1));
      else
        unsupported("no test named");
      dst(p, ScalarType::pred);
      return true;
    }
    default: return false;
  }
}

}  // namespace sonde::softgpu::jit::arith
