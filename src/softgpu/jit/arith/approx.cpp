// SPDX-License-Identifier: Apache-2.0
//
// The .approx functions: polynomials in f32, written out for all lanes. Their
// errors are a few units in the last place, within the bounds PTX states; the
// bits differ from a device's look-up tables.
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

using enum ptx::Opcode;
namespace Intr = llvm::Intrinsic;

Value* Lower::polynomial(Value* x, std::initializer_list<double> highestFirst) {
  Value* r = nullptr;
  for (double coefficient : highestFirst) r = r ? fmadd(r, x, fp(coefficient)) : fp(coefficient);
  return r;
}

Value* Lower::approxEx2(Value* x) {
  // 2^x = 2^n * 2^f, n the nearest integer. 2^n is applied in two halves, so
  // that the result may be subnormal and is rounded once.
  Value* limited = b.CreateSelect(b.CreateFCmpOLT(x, fp(160.0)), x, fp(160.0));
  limited = b.CreateSelect(b.CreateFCmpOGT(limited, fp(-160.0)), limited, fp(-160.0));
  Value* whole = intrinsic(Intr::roundeven, {limited});
  Value* fraction = b.CreateFSub(limited, whole);
  Value* p = polynomial(fraction, {0.00015461444696478693, 0.0013400428177411338, 0.009618056678525952,
                                   0.055503272266709675, 0.24022650922288827, 0.6931472067028321, 1.0});
  Value* n = b.CreateFPToSI(whole, intType(32));
  Value* first = b.CreateAShr(n, k(32, 1));
  auto power = [&](Value* e) { return asF32(b.CreateShl(b.CreateAdd(e, k(32, 127)), k(32, 23))); };
  p = b.CreateFMul(b.CreateFMul(p, power(first)), power(b.CreateSub(n, first)));
  return b.CreateSelect(isNan(x), fpBits(0x7fffffff), p);
}

Value* Lower::approxLg2(Value* x) {
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)); subnormals are scaled up first.
  Value* tiny = b.CreateFCmpOLT(x, fp(0x1p-126));
  Value* scaled = b.CreateSelect(tiny, b.CreateFMul(x, fp(0x1p24)), x);
  Value* bits = asInt(scaled);
  Value* e = b.CreateAShr(b.CreateSub(bits, k(32, 0x3f3504f3)), k(32, 23));
  Value* m = asF32(b.CreateSub(bits, b.CreateShl(e, k(32, 23))));
  Value* exponent = b.CreateSIToFP(b.CreateSub(e, b.CreateSelect(tiny, k(32, 24), k(32, 0))), f32Type());
  Value* f = b.CreateFSub(m, fp(1.0));
  Value* p = polynomial(
      f, {-0.10749789404434827, 0.18476033357741656, -0.1913883765869287, 0.20485764779996565, -0.23960812190891267,
          0.28855256143669683, -0.36069654180748456, 0.48089852032407715, -0.7213473544789067, 1.4426950399991885});
  Value* r = fmadd(f, p, exponent);
  r = b.CreateSelect(b.CreateFCmpOEQ(x, fpBits(0x7f800000)), x, r);
  r = b.CreateSelect(b.CreateFCmpOEQ(x, fp(0.0)), fpBits(0xff800000), r);
  return b.CreateSelect(b.CreateFCmpUGE(x, fp(0.0)), b.CreateSelect(isNan(x), fpBits(0x7fffffff), r),
                        fpBits(0x7fffffff));
}

Value* Lower::approxSin(Value* x, bool cosine) {
  // As the hardware does: x in turns, rounded towards zero to f32, and only its
  // fraction counts. So large arguments lose accuracy in the same way. Then
  // quarter turns, and an angle of at most pi/4.
  Value* turns = nullptr;
  if (c.avx512) {
    turns = rounded(FpOp::mul, {x, fp(0x1.45f306p-3)}, Rounding::zero);
  } else {
    // The exact error of the product says whether it was rounded away from zero.
    Value* near = b.CreateFMul(x, fp(0x1.45f306p-3));
    Value* error = fmadd(x, fp(0x1.45f306p-3), b.CreateFNeg(near));
    Value* away = b.CreateFCmpOLT(b.CreateFMul(error, b.CreateBinaryIntrinsic(Intr::copysign, fp(1.0), near)), fp(0.0));
    turns = asF32(b.CreateSub(asInt(near), b.CreateZExt(away, intType(32))));
  }
  Value* fraction = b.CreateFSub(turns, intrinsic(Intr::roundeven, {turns}));
  Value* quarters = intrinsic(Intr::roundeven, {b.CreateFMul(fraction, fp(4.0))});
  Value* r = b.CreateFMul(fmadd(quarters, fp(-0.25), fraction), fp(6.283185307179586));

  Value* u = b.CreateFMul(r, r);
  Value* sine = polynomial(u, {-0.00019587849946266556, 0.00833274795489637, -0.16666664657442035});
  sine = fmadd(b.CreateFMul(sine, u), r, r);
  Value* cosinePart = polynomial(u, {2.4547900913454424e-05, -0.001388830271814133, 0.04166666465459143});
  cosinePart = fmadd(b.CreateFMul(cosinePart, u), u, fmadd(u, fp(-0.5), fp(1.0)));

  Value* finite = b.CreateFCmpOLT(fabs(x), fpBits(0x7f800000));
  Value* quadrant = b.CreateFPToSI(b.CreateSelect(finite, quarters, fp(0.0)), intType(32));
  if (cosine) quadrant = b.CreateAdd(quadrant, k(32, 1));
  Value* odd = b.CreateICmpNE(b.CreateAnd(quadrant, k(32, 1)), k(32, 0));
  Value* sign = b.CreateShl(b.CreateAnd(quadrant, k(32, 2)), k(32, 30));
  Value* v = asF32(b.CreateXor(asInt(b.CreateSelect(odd, cosinePart, sine)), sign));
  // Small arguments are their own sine, also -0 and subnormals.
  if (!cosine) v = b.CreateSelect(b.CreateFCmpOLT(fabs(x), fp(0x1p-13)), x, v);
  return b.CreateSelect(finite, v, fpBits(0x7fffffff));
}

Value* Lower::approxTanh(Value* x) {
  Value* magnitude = fabs(x);
  Value* u = b.CreateFMul(x, x);
  Value* p = polynomial(u, {0.016210989976921823, -0.05267429362312257, 0.13323477034702633, -0.3333321296970448});
  Value* small = fmadd(b.CreateFMul(p, u), x, x);
  // 1 - 2 / (e^2|x| + 1)
  Value* e = approxEx2(b.CreateFMul(magnitude, fp(2.8853900817779268)));
  Value* large = b.CreateFSub(fp(1.0), b.CreateFDiv(fp(2.0), b.CreateFAdd(e, fp(1.0))));
  large = b.CreateBinaryIntrinsic(Intr::copysign, large, x);
  Value* r = b.CreateSelect(b.CreateFCmpOLT(magnitude, fp(0.625)), small, large);
  return b.CreateSelect(isNan(x), fpBits(0x7fffffff), r);
}

bool Lower::approximate() {
  const ScalarType t = in.type();
  if (smallFormat(t)) return half();
  if (t == ScalarType::f64) {
    if (in.op != rcp && in.op != rsqrt) return false;
    Value* x = src(1, t);
    const bool ftz = has(Mod::ftz);
    auto flush64 = [&](Value* v) {
      Value* bits = asInt(v);
      Value* tiny = b.CreateICmpEQ(b.CreateAnd(bits, k(64, 0x7ff0000000000000u)), k(64, 0));
      return asF64(b.CreateSelect(tiny, b.CreateAnd(bits, k(64, 0x8000000000000000u)), bits));
    };
    // The table look-up sees the upper word of the operand alone.
    if (ftz) x = asF64(b.CreateAnd(asInt(flush64(x)), k(64, 0xffffffff00000000u)));
    Value* r = b.CreateFDiv(fp64(1.0), in.op == rcp ? x : squareRoot(x));
    if (ftz) {
      // Only the upper word of the result carries information.
      Value* bits = asInt(flush64(r));
      Value* upper = b.CreateAnd(bits, k(64, 0xffffffff00000000u));
      r = asF64(b.CreateSelect(isNan(r), k(64, 0x7fffffff00000000u), upper));
    }
    dst(r, t);
    return true;
  }
  if (t != ScalarType::f32) return false;
  const bool ftz = has(Mod::ftz);
  Value* x = flushIf(src(1, t), ftz);
  Value* r = nullptr;
  switch (in.op) {
    case ex2: r = approxEx2(x); break;
    case lg2: r = approxLg2(x); break;
    case sin: r = approxSin(x, false); break;
    case cos: r = approxSin(x, true); break;
    case tanh: r = approxTanh(x); break;
    case rsqrt: r = canonical(b.CreateFDiv(fp(1.0), squareRoot(x))); break;
    default: return false;
  }
  dst(flushIf(r, ftz), t);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
