// SPDX-License-Identifier: Apache-2.0
//
// cvt between all scalar types, the packed forms, and cvt.pack.
#include <cmath>

#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

namespace Intr = llvm::Intrinsic;

namespace {
bool isSmall(ScalarType t) { return t == ScalarType::f16 || t == ScalarType::bf16; }

ScalarType elementOfPair(ScalarType t) {
  switch (t) {
    case ScalarType::f16x2: return ScalarType::f16;
    case ScalarType::bf16x2: return ScalarType::bf16;
    case ScalarType::e4m3x2: return ScalarType::e4m3;
    case ScalarType::e5m2x2: return ScalarType::e5m2;
    case ScalarType::e2m1x2: return ScalarType::e2m1;
    case ScalarType::e2m3x2: return ScalarType::e2m3;
    case ScalarType::e3m2x2: return ScalarType::e3m2;
    case ScalarType::ue8m0x2: return ScalarType::ue8m0;
    default: return ScalarType::none;
  }
}
}  // namespace

Value* Lower::roundIntegral(Value* v) {
  for (Mod m : in.mods) {
    switch (m) {
      case Mod::rni: return intrinsic(Intr::roundeven, {v});
      case Mod::rzi: return intrinsic(Intr::trunc, {v});
      case Mod::rmi: return intrinsic(Intr::floor, {v});
      case Mod::rpi: return intrinsic(Intr::ceil, {v});
      default: break;
    }
  }
  return v;
}

Value* Lower::floatToInt(Value* v, ScalarType from, ScalarType to) {
  if (isSmall(from)) v = widen(v, from);
  if (from == ScalarType::f32) v = flushIf(v, has(Mod::ftz));
  v = roundIntegral(v);
  const unsigned bits = ptx::bitsOf(to);
  const bool isSigned = ptx::isSigned(to);
  // LLVM makes its saturating conversions lane by lane, so the limits are tested
  // here. Narrow types saturate as integers, on the way from 32 bits.
  auto saturating = [&](Value* x) -> Value* {
    const unsigned width = bits < 32 ? 32 : bits;
    const bool asSigned = isSigned || bits < 32;
    const int top = static_cast<int>(asSigned ? width - 1 : width);
    Value* high = llvm::ConstantFP::get(x->getType(), std::ldexp(1.0, top));
    Value* low = llvm::ConstantFP::get(x->getType(), asSigned ? -std::ldexp(1.0, top) : 0.0);
    Value* over = b.CreateFCmpOGE(x, high);
    Value* under = b.CreateFCmpOLT(x, low);
    Value* fits = b.CreateAnd(b.CreateFCmpOLT(x, high), b.CreateFCmpOGE(x, low));
    Value* safe = b.CreateSelect(fits, x, llvm::Constant::getNullValue(x->getType()));  // NaN: 0
    Value* r = asSigned ? b.CreateFPToSI(safe, intType(width)) : b.CreateFPToUI(safe, intType(width));
    llvm::APInt most = asSigned ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width);
    llvm::APInt least = asSigned ? llvm::APInt::getSignedMinValue(width) : llvm::APInt(width, 0);
    r = b.CreateSelect(over, llvm::ConstantInt::get(r->getType(), most), r);
    if (asSigned) r = b.CreateSelect(under, llvm::ConstantInt::get(r->getType(), least), r);  // else 0 already
    return bits < 32 ? clampTo(r, bits, isSigned) : r;
  };
  Value* r = nullptr;
  if (bits == 64 && !c.uniform() && !c.avx512) {
    // Without AVX-512 this is lane-by-lane code: once per module is enough.
    const bool isDouble = v->getType()->getScalarType()->isDoubleTy();
    const std::string name = std::string("sonde.") + (isSigned ? "s64" : "u64") + (isDouble ? ".f64" : ".f32") + ".x32";
    llvm::Function* f =
        helper(name, intType(64), {v->getType()}, [&](llvm::Function* fn) { return saturating(fn->getArg(0)); });
    r = b.CreateCall(f, {v});
  } else {
    r = saturating(v);
  }
  // NaN: zero, except where either side is 64 bits wide.
  if (from == ScalarType::f64 || bits == 64) r = b.CreateSelect(isNan(v), kLike(r, uint64_t{1} << (bits - 1)), r);
  return r;
}

Value* Lower::intToFloat(Value* v, ScalarType from, ScalarType to) {
  const bool isSigned = ptx::isSigned(from);
  const unsigned bits = ptx::bitsOf(from);
  const Rounding r = rounding();
  auto exact = [&](Value* x, llvm::Type* type) { return isSigned ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type); };
  const bool fitsF32 = bits <= 16, fitsF64 = bits <= 32;

  // A 64-bit integer as the sum of two doubles, each exact.
  auto highPart = [&] {
    Value* high = isSigned ? b.CreateAShr(v, k(64, 32)) : b.CreateLShr(v, k(64, 32));
    return b.CreateFMul(exact(b.CreateTrunc(high, intType(32)), f64Type()), fp64(0x1p32));
  };
  auto lowPart = [&] { return b.CreateUIToFP(b.CreateTrunc(v, intType(32)), f64Type()); };
  auto wideOdd = [&] { return fitsF64 ? exact(v, f64Type()) : addToOdd(highPart(), lowPart()); };

  if (to == ScalarType::f64) {
    if (fitsF64) return exact(v, f64Type());
    return r == Rounding::nearest && c.avx512 ? exact(v, f64Type()) : rounded(FpOp::add, {highPart(), lowPart()}, r);
  }
  if (to == ScalarType::f32) {
    if (fitsF32 || (r == Rounding::nearest && (fitsF64 || c.avx512))) return exact(v, f32Type());
    return rounded(FpOp::narrow, {wideOdd()}, r);
  }
  // f16 and bf16: by way of an f32 that remembers what was lost.
  Value* wide = fitsF32 ? exact(v, f32Type()) : narrowToOdd(wideOdd());
  return narrow(wide, to, r, has(Mod::satfinite));
}

Value* Lower::floatToFloat(Value* v, ScalarType from, ScalarType to) {
  const Rounding r = rounding();
  if (from == ScalarType::f32) v = flushIf(v, has(Mod::ftz));
  if (from == to) {
    if (isSmall(from)) return narrow(roundIntegral(widen(v, from)), to);
    return canonical(roundIntegral(v));
  }
  if (isSmall(from)) {
    v = widen(v, from);
    if (to == ScalarType::f32) return from == ScalarType::f16 ? canonical(v) : v;
    if (to == ScalarType::f64) return b.CreateFPExt(v, f64Type());
    return narrow(v, to, r, has(Mod::satfinite));
  }
  // Flushing has made NaNs canonical on the way.
  if (to == ScalarType::f64) return b.CreateFPExt(has(Mod::ftz) ? canonical(v) : v, f64Type());
  if (from == ScalarType::f64) {
    // From f64 a NaN keeps its sign and the upper part of its payload.
    if (to == ScalarType::f32) return flushIf(rounded(FpOp::narrow, {v}, r), has(Mod::ftz));
    Value* single = narrowToOdd(v);
    Value* bits = asInt(single);
    const unsigned drop = to == ScalarType::f16 ? 13 : 16;
    Value* nan = b.CreateTrunc(b.CreateLShr(bits, k(32, drop)), intType(16));
    nan = b.CreateAnd(nan, k(16, to == ScalarType::f16 ? 0x03ff : 0x7fff));
    nan = b.CreateOr(nan, k(16, to == ScalarType::f16 ? 0x7e00 : 0x7fc0));
    nan = b.CreateOr(nan, b.CreateTrunc(b.CreateLShr(b.CreateAnd(bits, k(32, 0x80000000)), k(32, 16)), intType(16)));
    return b.CreateSelect(isNan(v), nan, narrow(single, to, r, has(Mod::satfinite)));
  }
  if (to == ScalarType::tf32) {
    // The upper 19 bits of an f32.
    Value* bits = asInt(v);
    Value* add = k(32, 0);
    if (r == Rounding::nearestAway)
      add = k(32, 0x1000);
    else if (r == Rounding::nearest)
      add = b.CreateAdd(k(32, 0x0fff), b.CreateAnd(b.CreateLShr(bits, k(32, 13)), k(32, 1)));
    Value* rounded = b.CreateAnd(b.CreateAdd(bits, add), k(32, 0xffffe000));
    // .rna cuts a NaN short like any number (it may become an infinity); the others make it canonical.
    rounded = b.CreateSelect(
        isNan(v), r == Rounding::nearestAway ? b.CreateAnd(bits, k(32, 0xffffe000)) : k(32, 0x7fffe000), rounded);
    if (has(Mod::satfinite)) {
      Value* exponent = b.CreateAnd(rounded, k(32, 0x7f800000));
      Value* over = b.CreateICmpEQ(exponent, k(32, 0x7f800000));
      rounded = b.CreateSelect(over, b.CreateSub(rounded, k(32, 0x2000)), rounded);
    }
    if (has(Mod::relu)) rounded = smax(rounded, k(32, 0));
    return rounded;
  }
  return narrow(v, to, r, has(Mod::satfinite));
}

Value* Lower::convertElement(Value* v, ScalarType from, ScalarType to) {
  const bool fromFloat = ptx::isFloat(from), toFloat = ptx::isFloat(to);
  if (!fromFloat && !toFloat) {
    const unsigned fromBits = ptx::bitsOf(from), toBits = ptx::bitsOf(to);
    const bool fromSigned = ptx::isSigned(from), toSigned = ptx::isSigned(to);
    if (has(Mod::sat)) {
      if (fromSigned && !toSigned) v = smax(v, kLike(v, 0));
      if (toBits < fromBits || (toBits == fromBits && !fromSigned && toSigned)) {
        llvm::APInt high = toSigned ? llvm::APInt::getSignedMaxValue(toBits) : llvm::APInt::getMaxValue(toBits);
        Value* limit = llvm::ConstantInt::get(v->getType(), high.zext(fromBits));
        v = fromSigned ? smin(v, limit) : umin(v, limit);
        if (fromSigned && toSigned)
          v = smax(v, llvm::ConstantInt::get(v->getType(), llvm::APInt::getSignedMinValue(toBits).sext(fromBits)));
      }
    }
    return extend(v, toBits, fromSigned);
  }
  if (!toFloat) return floatToInt(v, from, to);
  Value* r = fromFloat ? floatToFloat(v, from, to) : intToFloat(v, from, to);
  if (has(Mod::sat)) r = isSmall(to) ? narrow(saturate(widen(r, to)), to) : saturate(r);
  if (has(Mod::relu) && isSmall(to)) {
    Value* nan = isNan(widen(r, to));
    r = b.CreateSelect(b.CreateOr(nan, b.CreateICmpSGE(r, kLike(r, 0))), r, kLike(r, 0));
  }
  return r;
}

// Two values in, one packed word out, the first in the upper half; or one
// packed word to another.
bool Lower::convertPacked() {
  const ScalarType to = in.type(0), from = in.type(1);
  const ScalarType toElement = elementOfPair(to), fromElement = elementOfPair(from);
  const Rounding r = rounding();
  auto clampNegative = [&](Value* v) {  // .relu: NaN stays
    if (!has(Mod::relu)) return v;
    return b.CreateSelect(b.CreateFCmpOLT(v, fp(0.0)), fp(0.0), v);
  };
  auto element = [&](Value* v) {
    if (from == ScalarType::f32) v = flushIf(v, has(Mod::ftz));
    v = clampNegative(v);
    const bool saturates = ptx::bitsOf(toElement) <= 8 && toElement != ScalarType::ue8m0;
    Value* code = narrow(v, toElement, r, has(Mod::satfinite) || saturates);
    if (ptx::bitsOf(toElement) == 6) code = zext(code, 8);
    // -0 is not below zero, yet .relu makes it +0.
    return has(Mod::relu) ? b.CreateSelect(b.CreateFCmpOEQ(v, fp(0.0)), kLike(code, 0), code) : code;
  };
  if (toElement == ScalarType::none) return false;
  if (from == ScalarType::f32) {
    Value *high = element(src(1, from)), *low = element(src(2, from));
    dst(pack(low, high), to);
    return true;
  }
  if (fromElement == ScalarType::none) unsupported("this pair of packed types");
  Value* word = src(1, from);
  Value *low = element(widen(lowHalf(word), fromElement)), *high = element(widen(highHalf(word), fromElement));
  dst(pack(low, high), to);
  return true;
}

// cvt.pack.sat: two 32-bit integers saturated side by side below the third.
bool Lower::convertPack() {
  const ScalarType part = in.type(0), from = in.type(1);
  const unsigned bits = ptx::bitsOf(part);
  auto saturated = [&](size_t i) {
    Value* v = src(i, from);
    if (!ptx::isSigned(from)) v = umin(v, k(32, 0x7fffffff));
    return zext(clampTo(v, bits, ptx::isSigned(part)), 32);
  };
  Value* r = b.CreateOr(b.CreateShl(saturated(1), k(32, bits)), saturated(2));
  if (hasOperand(3) && 2 * bits < 32) r = b.CreateOr(b.CreateShl(src(3, ScalarType::b32), k(32, 2 * bits)), r);
  dst(r, ScalarType::b32);
  return true;
}

bool Lower::convert() {
  const ScalarType to = in.type(0), from = in.type(1);
  if (has(Mod::pack)) return convertPack();
  if (elementOfPair(to) != ScalarType::none) return convertPacked();
  if (elementOfPair(from) != ScalarType::none) unsupported("this pair of types");
  dst(convertElement(src(1, from), from, to), to);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
