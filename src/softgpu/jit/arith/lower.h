// SPDX-License-Identifier: Apache-2.0
//
// Lowering of one arithmetic PTX instruction to LLVM IR. Everything here works
// on "T or <32 x T>" alike; one object lives for one instruction.
#pragma once

#include <llvm/IR/Intrinsics.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "softgpu/jit/emit_context.h"

namespace sonde::softgpu::jit::arith {

using llvm::Value;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;

enum class Rounding : uint8_t { nearest, zero, down, up, nearestAway };

// A binary format narrower than f32, for rounding from f32 and widening to it.
struct SmallFormat {
  unsigned bits;       // of the whole code
  unsigned mantissa;   // explicit fraction bits
  int minExponent;     // of the smallest normal number
  uint32_t maxFinite;  // code of the largest finite magnitude
  uint32_t infinity;   // its code, or 0 when the format has none
  uint32_t nan;        // code of the canonical NaN
};

enum class FpOp : uint8_t { add, sub, mul, div, fma, sqrt, narrow /* f64 -> f32 */ };

class Lower {
 public:
  Lower(EmitContext& context, const ptx::Instruction& instruction) : c(context), in(instruction), b(context.b) {}

  // One entry per family; each returns false when the opcode, or this form of
  // it, is not its business.
  bool integer();
  bool carryChain();
  bool divide();
  bool bits();
  bool permute();
  bool dotProduct();
  bool compare();
  bool select();
  bool move();
  bool convert();
  bool floating();
  bool half();
  bool approximate();
  bool video();

 private:
  EmitContext& c;
  const ptx::Instruction& in;
  llvm::IRBuilder<>& b;

  // --- operands (common.cpp) ---
  const Operand& operand(size_t i) const;
  bool hasOperand(size_t i) const { return i < in.operands.size() && in.operands[i].kind != Operand::Kind::none; }
  Value* src(size_t i, ScalarType t) { return c.source(operand(i), t); }
  void dst(Value* v, ScalarType t) { c.store(operand(0), v, t); }
  [[noreturn]] void unsupported(const std::string& what) const;
  bool has(Mod m) const { return in.has(m); }
  Rounding rounding() const;  // of rn rz rm rp rna; nearest when absent

  // --- small IR pieces (common.cpp) ---
  // Constants, cut to the width: ~0 stands for all ones in any of them.
  static uint64_t cut(unsigned bits, uint64_t v) { return bits < 64 ? v & ((uint64_t{1} << bits) - 1) : v; }
  Value* k(unsigned bits, uint64_t v) { return c.constantInt(bits, cut(bits, v)); }
  Value* kLike(Value* like, uint64_t v) {
    return llvm::ConstantInt::get(like->getType(), cut(like->getType()->getScalarSizeInBits(), v));
  }
  Value* fp(double v) { return c.constantFp(b.getFloatTy(), v); }
  Value* fp64(double v) { return c.constantFp(b.getDoubleTy(), v); }
  Value* fpBits(uint32_t bits) { return asF32(k(32, bits)); }
  Value* intrinsic(llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> args);  // overloaded on the type of args[0]
  llvm::Type* intType(unsigned bits) { return c.form(b.getIntNTy(bits)); }
  llvm::Type* f32Type() { return c.form(b.getFloatTy()); }
  llvm::Type* f64Type() { return c.form(b.getDoubleTy()); }
  Value* asF32(Value* v) { return b.CreateBitCast(v, f32Type()); }
  Value* asF64(Value* v) { return b.CreateBitCast(v, f64Type()); }
  Value* asInt(Value* v);  // float -> i32, double -> i64, integers as they are
  Value* zext(Value* v, unsigned bits) { return b.CreateZExtOrTrunc(v, intType(bits)); }
  Value* sext(Value* v, unsigned bits) { return b.CreateSExtOrTrunc(v, intType(bits)); }
  Value* extend(Value* v, unsigned bits, bool isSigned) { return isSigned ? sext(v, bits) : zext(v, bits); }
  Value* shlClamped(Value* v, Value* amount);  // amount >= width gives 0
  Value* shrClamped(Value* v, Value* amount, bool arithmetic);
  Value* smin(Value* x, Value* y) { return intrinsic(llvm::Intrinsic::smin, {x, y}); }
  Value* smax(Value* x, Value* y) { return intrinsic(llvm::Intrinsic::smax, {x, y}); }
  Value* umin(Value* x, Value* y) { return intrinsic(llvm::Intrinsic::umin, {x, y}); }
  Value* umax(Value* x, Value* y) { return intrinsic(llvm::Intrinsic::umax, {x, y}); }
  // Value of type `narrow` clamped from a wider signed integer.
  Value* clampTo(Value* wide, unsigned bits, bool toSigned);
  Value* lowHalf(Value* packed) { return b.CreateTrunc(packed, intType(halfBits(packed))); }
  Value* highHalf(Value* packed);
  Value* pack(Value* low, Value* high);
  static unsigned halfBits(Value* v) { return v->getType()->getScalarSizeInBits() / 2; }
  Value* boolOp(Value* p, Value* q);  // combines by the and/or/xor modifier
  // A function of the module that many instructions share; built at first use.
  llvm::Function* helper(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args,
                         const std::function<Value*(llvm::Function*)>& body);
  std::string formSuffix() const { return c.uniform() ? ".x1" : ".x32"; }

  // --- integers ---
  Value* mulHigh(Value* x, Value* y, bool isSigned);
  Value* divideUnsigned(Value* x, Value* y, bool remainder);  // y = 0 gives all ones
  Value* divide64(Value* x, Value* y, bool remainder);
  Value* divideSigned(Value* x, Value* y, bool remainder);
  Value* lookup3(Value* x, Value* y, Value* z, unsigned lut);
  Value* prmt(Value* x, Value* y, Value* selector);
  Value* prmtConstant(Value* x, Value* y, uint32_t selector);
  Value* compareValues(Value* x, Value* y, ScalarType t, Mod op);
  Mod compareMod() const;

  // --- floating point (rounding.cpp, float.cpp) ---
  Value* flush(Value* f32);  // subnormals to zero of their sign
  Value* flushIf(Value* v, bool wanted) { return wanted ? flush(v) : v; }
  Value* isNan(Value* v) { return b.CreateFCmpUNO(v, v); }
  Value* canonical(Value* v);  // NaN to the canonical NaN of float
  Value* saturate(Value* v);   // to [0, 1], NaN to 0
  Value* fabs(Value* v) { return intrinsic(llvm::Intrinsic::fabs, {v}); }
  Value* fmadd(Value* x, Value* y, Value* z) { return intrinsic(llvm::Intrinsic::fma, {x, y, z}); }
  Value* squareRoot(Value* x) { return intrinsic(llvm::Intrinsic::sqrt, {x}); }
  Value* minMax(Value* x, Value* y, bool isMin, bool propagateNan);
  Value* minMaxMods(Value* x, Value* y, bool isMin);  // with .NaN and .xorsign.abs
  Value* rounded(FpOp op, llvm::ArrayRef<Value*> args, Rounding r);
  Value* roundedEmbedded(FpOp op, llvm::ArrayRef<Value*> args, Rounding r);
  Value* roundedByControl(FpOp op, llvm::ArrayRef<Value*> args, Rounding r);
  Value* narrowToOdd(Value* f64);       // f64 -> f32, inexact results get an odd last bit
  Value* addToOdd(Value* x, Value* y);  // the same for a sum
  Value* floatArith(ScalarType t, llvm::ArrayRef<Value*> args);
  bool packedSingle();
  Value* narrowUe8m0(Value* f32, Rounding r, bool satfinite);
  bool floatMinMax(ScalarType t);

  // --- narrow formats (small_float.cpp) ---
  static const SmallFormat* smallFormat(ScalarType t);
  Value* widen(Value* code, ScalarType t);  // code of f16, bf16 or a format of 4 to 8 bits -> f32
  Value* narrow(Value* f32, ScalarType t, Rounding r = Rounding::nearest, bool satfinite = false);
  Value* narrowBits(Value* f32, const SmallFormat& format, Rounding r, bool satfinite);
  Value* flushHalf(Value* code);  // subnormal f16 to zero
  Value* halfElement(ScalarType t, llvm::ArrayRef<Value*> args);
  Value* halfFma(Value* x, Value* y, Value* z, ScalarType t);
  Value* halfMinMax(Value* x, Value* y, ScalarType t, bool isMin);

  // --- conversions (convert.cpp) ---
  Value* convertElement(Value* v, ScalarType from, ScalarType to);
  Value* intToFloat(Value* v, ScalarType from, ScalarType to);
  Value* floatToInt(Value* v, ScalarType from, ScalarType to);
  Value* floatToFloat(Value* v, ScalarType from, ScalarType to);
  Value* roundIntegral(Value* v);  // by .rni .rzi .rmi .rpi; unchanged without
  bool convertPacked();
  bool convertPack();

  // --- approximations (approx.cpp), on f32 ---
  Value* approxSin(Value* x, bool cosine);
  Value* approxEx2(Value* x);
  Value* approxLg2(Value* x);
  Value* approxTanh(Value* x);
  Value* polynomial(Value* x, std::initializer_list<double> highestFirst);

  // --- video (video.cpp) ---
  Value* videoPart(const Operand& o, Value* word, bool isSigned);
  bool videoVector(unsigned parts);
};

}  // namespace sonde::softgpu::jit::arith
