// SPDX-License-Identifier: Apache-2.0
//
// f16, bf16 and the formats of 4, 6 and 8 bits: widening to f32, rounding from it, and the
// half-precision instructions, each rounded once.
#include <cmath>

#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

using enum ptx::Opcode;

const SmallFormat* Lower::smallFormat(ScalarType t) {
  static constexpr SmallFormat f16{16, 10, -14, 0x7bff, 0x7c00, 0x7fff};
  static constexpr SmallFormat bf16{16, 7, -126, 0x7f7f, 0x7f80, 0x7fff};
  static constexpr SmallFormat e4m3{8, 3, -6, 0x7e, 0, 0x7f};
  static constexpr SmallFormat e5m2{8, 2, -14, 0x7b, 0x7c, 0x7f};
  // Neither infinities nor NaN: a NaN becomes the largest number, without its sign.
  static constexpr SmallFormat e2m3{6, 3, 0, 0x1f, 0, 0x1f};
  static constexpr SmallFormat e3m2{6, 2, -2, 0x1f, 0, 0x1f};
  static constexpr SmallFormat e2m1{4, 1, 0, 0x7, 0, 0x7};
  switch (t) {
    case ScalarType::f16:
    case ScalarType::f16x2: return &f16;
    case ScalarType::bf16:
    case ScalarType::bf16x2: return &bf16;
    case ScalarType::e4m3:
    case ScalarType::e4m3x2: return &e4m3;
    case ScalarType::e5m2:
    case ScalarType::e5m2x2: return &e5m2;
    case ScalarType::e2m3: return &e2m3;
    case ScalarType::e3m2: return &e3m2;
    case ScalarType::e2m1: return &e2m1;
    default: return nullptr;
  }
}

Value* Lower::widen(Value* code, ScalarType t) {
  switch (t) {
    case ScalarType::f16:
    case ScalarType::f16x2: return b.CreateFPExt(b.CreateBitCast(code, c.form(b.getHalfTy())), f32Type());
    case ScalarType::bf16:
    case ScalarType::bf16x2: return asF32(b.CreateShl(zext(code, 32), k(32, 16)));
    case ScalarType::e5m2:
    case ScalarType::e5m2x2:  // the upper byte of an f16
      return widen(b.CreateShl(zext(code, 16), k(16, 8)), ScalarType::f16);
    case ScalarType::e4m3:
    case ScalarType::e4m3x2: {
      // The same fields in an f16 make a value 2^8 too small; only 0x7f is NaN.
      Value* wide = zext(code, 16);
      Value* magnitude = b.CreateAnd(wide, k(16, 0x7f));
      Value* sign = b.CreateShl(b.CreateAnd(wide, k(16, 0x80)), k(16, 8));
      Value* half = b.CreateOr(sign, b.CreateShl(magnitude, k(16, 7)));
      Value* v = b.CreateFMul(widen(half, ScalarType::f16), fp(256.0));
      return b.CreateSelect(b.CreateICmpEQ(magnitude, k(16, 0x7f)), fpBits(0x7fffffff), v);
    }
    case ScalarType::e2m1:
    case ScalarType::e2m3:
    case ScalarType::e3m2: {
      // The same fields in an f32, whose bias is larger. Subnormals are that there, too.
      const SmallFormat& f = *smallFormat(t);
      Value* wide = zext(code, 32);
      Value* magnitude = b.CreateAnd(wide, k(32, (1u << (f.bits - 1)) - 1));
      Value* sign = b.CreateShl(b.CreateLShr(wide, k(32, f.bits - 1)), k(32, 31));
      Value* fields = b.CreateOr(sign, b.CreateShl(magnitude, k(32, 23 - f.mantissa)));
      return b.CreateFMul(asF32(fields), fp(std::ldexp(1.0, 126 + f.minExponent)));
    }
    case ScalarType::ue8m0: {  // a power of two; 0: 2^-127, 255: NaN
      Value* wide = zext(code, 32);
      Value* v = b.CreateSelect(b.CreateICmpEQ(wide, k(32, 0)), k(32, 0x00400000), b.CreateShl(wide, k(32, 23)));
      return asF32(b.CreateSelect(b.CreateICmpEQ(wide, k(32, 255)), k(32, 0x7fffffff), v));
    }
    default: unsupported("this format cannot be widened");
  }
}

Value* Lower::narrow(Value* v, ScalarType t, Rounding r, bool satfinite) {
  if (r == Rounding::nearest && !satfinite) {
    if (t == ScalarType::f16 || t == ScalarType::f16x2) {
      Value* half = b.CreateBitCast(b.CreateFPTrunc(v, c.form(b.getHalfTy())), intType(16));
      return b.CreateSelect(isNan(v), k(16, 0x7fff), half);
    }
    if (t == ScalarType::bf16 || t == ScalarType::bf16x2) {
      // Half an ulp less one, plus the bit that must become even.
      Value* bits = asInt(v);
      Value* even = b.CreateAnd(b.CreateLShr(bits, k(32, 16)), k(32, 1));
      Value* up = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(even, k(32, 0x7fff))), k(32, 16));
      return b.CreateSelect(isNan(v), k(16, 0x7fff), b.CreateTrunc(up, intType(16)));
    }
  }
  if (t == ScalarType::ue8m0) return narrowUe8m0(v, r, satfinite);
  const SmallFormat* format = smallFormat(t);
  if (format == nullptr) unsupported("this format cannot be rounded to");
  return narrowBits(v, *format, r, satfinite);
}

// The exponent of a magnitude, rounded down or up; 2^-127 is the smallest.
Value* Lower::narrowUe8m0(Value* v, Rounding r, bool satfinite) {
  Value* magnitude = b.CreateAnd(asInt(v), k(32, 0x7fffffff));
  Value* exponent = b.CreateLShr(magnitude, k(32, 23));
  if (r == Rounding::up) {
    Value* fraction = b.CreateICmpNE(b.CreateAnd(magnitude, k(32, 0x7fffff)), k(32, 0));
    Value* finite = b.CreateICmpULT(magnitude, k(32, 0x7f800000));
    Value* above = b.CreateAnd(b.CreateAnd(fraction, finite), b.CreateICmpUGT(magnitude, k(32, 0x00400000)));
    exponent = b.CreateAdd(exponent, b.CreateZExt(above, intType(32)));
  }
  if (satfinite) exponent = b.CreateSelect(isNan(v), exponent, umin(exponent, k(32, 254)));
  return b.CreateTrunc(exponent, intType(8));
}

Value* Lower::narrowBits(Value* v, const SmallFormat& format, Rounding r, bool satfinite) {
  Value* bits = asInt(v);
  Value* magnitude = b.CreateAnd(bits, k(32, 0x7fffffff));
  Value* negative = b.CreateICmpSLT(bits, k(32, 0));
  Value* exponentField = b.CreateLShr(magnitude, k(32, 23));
  Value* isNormal = b.CreateICmpNE(exponentField, k(32, 0));
  Value* fraction = b.CreateAnd(magnitude, k(32, 0x7fffff));
  Value* significand = b.CreateOr(fraction, b.CreateSelect(isNormal, k(32, 0x800000), k(32, 0)));
  // How far the exponent lies above the format's smallest normal one.
  Value* above = b.CreateSub(umax(exponentField, k(32, 1)), k(32, static_cast<uint64_t>(127 + format.minExponent)));
  Value* shift = b.CreateAdd(b.CreateSub(k(32, 0), smin(above, k(32, 0))), k(32, 23 - format.mantissa));
  shift = umin(shift, k(32, 31));
  Value* kept = b.CreateLShr(significand, shift);
  Value* lost = b.CreateSub(significand, b.CreateShl(kept, shift));
  // shift is at least 7 for every format here.
  Value* half = b.CreateShl(k(32, 1), b.CreateSub(shift, k(32, 1)));
  Value* inexact = b.CreateICmpNE(lost, k(32, 0));
  Value* up = nullptr;
  switch (r) {
    case Rounding::nearest: {
      Value* odd = b.CreateAnd(kept, k(32, 1));
      up = b.CreateICmpUGT(b.CreateAdd(lost, odd), half);
      break;
    }
    case Rounding::nearestAway: up = b.CreateICmpUGE(lost, half); break;
    case Rounding::zero: up = nullptr; break;
    case Rounding::down: up = b.CreateAnd(inexact, negative); break;
    case Rounding::up: up = b.CreateAnd(inexact, b.CreateNot(negative)); break;
  }
  if (up) kept = b.CreateAdd(kept, b.CreateZExt(up, intType(32)));
  // `kept` holds the implicit bit of normal numbers: it adds one to the exponent field.
  Value* code = b.CreateAdd(b.CreateShl(smax(above, k(32, 0)), k(32, format.mantissa)), kept);

  Value* isInf = b.CreateICmpEQ(magnitude, k(32, 0x7f800000));
  Value* over = b.CreateOr(b.CreateICmpUGT(code, k(32, format.maxFinite)), isInf);
  Value* limit = k(32, satfinite ? format.maxFinite : format.infinity ? format.infinity : format.nan);
  if (!satfinite && format.infinity) {
    // Directed roundings stop at the largest finite number on one side; infinities stay.
    Value* stays = nullptr;
    if (r == Rounding::zero) stays = b.CreateNot(isInf);
    if (r == Rounding::down) stays = b.CreateAnd(b.CreateNot(negative), b.CreateNot(isInf));
    if (r == Rounding::up) stays = b.CreateAnd(negative, b.CreateNot(isInf));
    if (stays) limit = b.CreateSelect(stays, k(32, format.maxFinite), limit);
  }
  code = b.CreateSelect(over, limit, code);
  Value* sign = b.CreateShl(b.CreateLShr(bits, k(32, 31)), k(32, format.bits - 1));
  code = b.CreateOr(code, sign);
  code = b.CreateSelect(b.CreateICmpUGT(magnitude, k(32, 0x7f800000)), k(32, format.nan), code);
  return b.CreateTrunc(code, intType(format.bits));
}

Value* Lower::flushHalf(Value* code) {
  Value* tiny = b.CreateICmpEQ(b.CreateAnd(code, k(16, 0x7c00)), k(16, 0));
  return b.CreateSelect(tiny, b.CreateAnd(code, k(16, 0x8000)), code);
}

// x*y + z with one rounding: the product is exact in the wider format, and the
// sum is rounded to odd before it is rounded for good.
Value* Lower::halfFma(Value* x, Value* y, Value* z, ScalarType t) {
  if (t == ScalarType::f16) return addToOdd(b.CreateFMul(x, y), z);
  auto wide = [&](Value* v) { return b.CreateFPExt(v, f64Type()); };
  return narrowToOdd(addToOdd(b.CreateFMul(wide(x), wide(y)), wide(z)));
}

Value* Lower::halfMinMax(Value* x, Value* y, ScalarType t, bool isMin) {
  const bool xorsign = has(Mod::xorsign);
  Value* sign = b.CreateAnd(b.CreateXor(x, y), k(16, 0x8000));
  auto real = [&](Value* v) {
    if (has(Mod::ftz) && t == ScalarType::f16) v = flushHalf(v);
    return widen(xorsign ? b.CreateAnd(v, k(16, 0x7fff)) : v, t);
  };
  Value* r = minMax(real(x), real(y), isMin, has(Mod::nan_));
  Value* code = narrow(r, t);
  return xorsign ? b.CreateSelect(isNan(r), code, b.CreateOr(code, sign)) : code;
}

Value* Lower::halfElement(ScalarType t, llvm::ArrayRef<Value*> args) {
  const bool ftz = has(Mod::ftz) && t == ScalarType::f16;
  auto at = [&](size_t i) { return widen(ftz ? flushHalf(args[i]) : args[i], t); };

  if (in.op == min || in.op == max) {
    Value* code = halfMinMax(args[0], args[1], t, in.op == min);
    return args.size() > 2 ? halfMinMax(code, args[2], t, in.op == min) : code;
  }
  if (in.op == neg || in.op == abs) {
    Value* code = ftz ? flushHalf(args[0]) : args[0];
    Value* magnitude = b.CreateAnd(code, k(16, 0x7fff));
    Value* nan = b.CreateICmpUGT(magnitude, k(16, t == ScalarType::f16 ? 0x7c00 : 0x7f80));
    Value* r = in.op == neg ? b.CreateXor(code, k(16, 0x8000)) : magnitude;
    return b.CreateSelect(nan, k(16, 0x7fff), r);
  }
  Value* v = nullptr;
  // A bf16 sum can lie exactly between two results of the f32 sum's rounding.
  const bool viaOdd = t == ScalarType::bf16;
  switch (in.op) {
    case add:
    case sub: {
      Value *x = at(0), *y = at(1);
      if (in.op == sub) y = b.CreateFNeg(y);
      v = viaOdd ? addToOdd(x, y) : b.CreateFAdd(x, y);
      break;
    }
    case mul: {
      Value *x = at(0), *y = at(1);
      // A bf16 product can be below the range of f32.
      v = t == ScalarType::f16 ? b.CreateFMul(x, y)
                               : narrowToOdd(b.CreateFMul(b.CreateFPExt(x, f64Type()), b.CreateFPExt(y, f64Type())));
      break;
    }
    case fma:
    case mad: v = halfFma(at(0), at(1), at(2), t); break;
    case ex2: v = approxEx2(at(0)); break;
    case tanh: v = approxTanh(at(0)); break;
    default: unsupported("not a half-precision instruction");
  }
  if (ftz) {
    // Tiny before rounding is what counts: a value just below 2^-14 is flushed, too.
    Value* tiny = b.CreateFCmpOLT(fabs(v), fp(0x1p-14));
    v = b.CreateSelect(tiny, b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, fp(0.0), v), v);
  }
  Value* code = narrow(v, t);
  if (has(Mod::sat)) {
    Value* clamped = saturate(widen(code, t));
    code = narrow(clamped, t);
  }
  if (has(Mod::relu)) {
    // Negative results and -0 become +0; NaN stays.
    Value* negative = b.CreateAnd(b.CreateICmpSLT(code, k(16, 0)), b.CreateNot(isNan(widen(code, t))));
    code = b.CreateSelect(negative, k(16, 0), code);
  }
  return code;
}

bool Lower::half() {
  const ScalarType t = in.type();
  if (smallFormat(t) == nullptr) return false;
  if (in.op == div) return false;
  if (has(Mod::oob)) unsupported(".oob is not supported");
  llvm::SmallVector<Value*, 3> args;
  for (size_t i = 1; i < in.operands.size() && hasOperand(i); ++i) args.push_back(src(i, t));
  if (t == ScalarType::f16 || t == ScalarType::bf16) {
    dst(halfElement(t, args), t);
    return true;
  }
  const ScalarType element = t == ScalarType::f16x2 ? ScalarType::f16 : ScalarType::bf16;
  llvm::SmallVector<Value*, 3> low, high;
  for (Value* v : args) {
    low.push_back(lowHalf(v));
    high.push_back(highHalf(v));
  }
  dst(pack(halfElement(element, low), halfElement(element, high)), t);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
