// SPDX-License-Identifier: Apache-2.0
//
// Integer addition, multiplication, minimum, absolute values, and the carry chain.
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

using enum ptx::Opcode;
namespace Intr = llvm::Intrinsic;

namespace {
bool isPair(ScalarType t) { return t == ScalarType::u16x2 || t == ScalarType::s16x2; }
}  // namespace

// The upper half of the product, in the operands' width.
Value* Lower::mulHigh(Value* x, Value* y, bool isSigned) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  if (bits < 64 || c.uniform()) {
    Value* product = b.CreateMul(extend(x, 2 * bits, isSigned), extend(y, 2 * bits, isSigned));
    return b.CreateTrunc(b.CreateLShr(product, kLike(product, bits)), x->getType());
  }
  // Vectors of 128-bit integers become lane-by-lane code; four 32-bit products do not.
  Value* mask = k(64, 0xffffffffu);
  Value* half = k(64, 32);
  Value *xl = b.CreateAnd(x, mask), *xh = b.CreateLShr(x, half);
  Value *yl = b.CreateAnd(y, mask), *yh = b.CreateLShr(y, half);
  Value* t = b.CreateAdd(b.CreateMul(xh, yl), b.CreateLShr(b.CreateMul(xl, yl), half));
  Value* u = b.CreateAdd(b.CreateMul(xl, yh), b.CreateAnd(t, mask));
  Value* high = b.CreateAdd(b.CreateMul(xh, yh), b.CreateAdd(b.CreateLShr(t, half), b.CreateLShr(u, half)));
  if (!isSigned) return high;
  high = b.CreateSub(high, b.CreateAnd(b.CreateAShr(x, k(64, 63)), y));
  return b.CreateSub(high, b.CreateAnd(b.CreateAShr(y, k(64, 63)), x));
}

bool Lower::integer() {
  const ScalarType t = in.type();
  const bool isSigned = ptx::isSigned(t);
  const unsigned bits = ptx::bitsOf(t);

  if (isPair(t)) {
    auto each = [&](auto f) {
      Value *x = src(1, t), *y = hasOperand(2) ? src(2, t) : nullptr;
      Value* low = f(lowHalf(x), y ? lowHalf(y) : nullptr);
      dst(pack(low, f(highHalf(x), y ? highHalf(y) : nullptr)), t);
      return true;
    };
    switch (in.op) {
      case add: return each([&](Value* x, Value* y) { return b.CreateAdd(x, y); });
      case sub: return each([&](Value* x, Value* y) { return b.CreateSub(x, y); });
      case neg: return each([&](Value* x, Value*) { return b.CreateNeg(x); });
      case min:
      case max:
        return each([&](Value* x, Value* y) {
          Value* r = in.op == min ? (isSigned ? smin(x, y) : umin(x, y)) : (isSigned ? smax(x, y) : umax(x, y));
          return has(Mod::relu) ? smax(r, kLike(r, 0)) : r;
        });
      default: return false;
    }
  }

  Value* x = src(1, t);
  switch (in.op) {
    case add:
    case sub: {
      Value* y = src(2, t);
      if (has(Mod::sat))
        dst(intrinsic(in.op == add ? Intr::sadd_sat : Intr::ssub_sat, {x, y}), t);
      else
        dst(in.op == add ? b.CreateAdd(x, y) : b.CreateSub(x, y), t);
      return true;
    }
    case mul:
    case mad: {
      Value* y = src(2, t);
      if (has(Mod::wide)) {
        const ScalarType wideType = bits == 16 ? (isSigned ? ScalarType::s32 : ScalarType::u32)
                                               : (isSigned ? ScalarType::s64 : ScalarType::u64);
        Value* r = b.CreateMul(extend(x, 2 * bits, isSigned), extend(y, 2 * bits, isSigned));
        if (in.op == mad) r = b.CreateAdd(r, src(3, wideType));
        dst(r, wideType);
        return true;
      }
      Value* r = has(Mod::hi) ? mulHigh(x, y, isSigned) : b.CreateMul(x, y);
      if (in.op == mad) {
        Value* z = src(3, t);
        r = has(Mod::sat) ? intrinsic(Intr::sadd_sat, {r, z}) : b.CreateAdd(r, z);
      }
      dst(r, t);
      return true;
    }
    case mul24:
    case mad24: {
      // The operands are the low 24 bits; .hi takes bits 16..47 of the product.
      auto low24 = [&](Value* v) {
        v = b.CreateShl(v, k(32, 8));
        return isSigned ? b.CreateAShr(v, k(32, 8)) : b.CreateLShr(v, k(32, 8));
      };
      Value *x24 = low24(x), *y24 = low24(src(2, t)), *r;
      if (has(Mod::hi)) {
        Value* product = b.CreateMul(extend(x24, 64, isSigned), extend(y24, 64, isSigned));
        r = b.CreateTrunc(b.CreateLShr(product, k(64, 16)), intType(32));
      } else {
        r = b.CreateMul(x24, y24);
      }
      if (in.op == mad24) {
        Value* z = src(3, t);
        r = has(Mod::sat) ? intrinsic(Intr::sadd_sat, {r, z}) : b.CreateAdd(r, z);
      }
      dst(r, t);
      return true;
    }
    case sad: {
      Value *y = src(2, t), *z = src(3, t);
      Value* big = isSigned ? smax(x, y) : umax(x, y);
      Value* small = isSigned ? smin(x, y) : umin(x, y);
      dst(b.CreateAdd(z, b.CreateSub(big, small)), t);
      return true;
    }
    case min:
    case max: {
      Value* y = src(2, t);
      Value* r = in.op == min ? (isSigned ? smin(x, y) : umin(x, y)) : (isSigned ? smax(x, y) : umax(x, y));
      if (has(Mod::relu)) r = smax(r, kLike(r, 0));
      dst(r, t);
      return true;
    }
    case abs: dst(b.CreateIntrinsic(Intr::abs, {x->getType()}, {x, b.getFalse()}), t); return true;
    case neg: dst(b.CreateNeg(x), t); return true;
    default: return false;
  }
}

// add.cc, addc, sub.cc, subc, mad.cc, madc. The flag is the carry out of the adder also when it subtracts
// (x + ~y + 1): set when nothing was borrowed. Mixed chains show it, and a card does the same.
bool Lower::carryChain() {
  const ScalarType t = in.type();
  const bool reads = in.op == addc || in.op == subc || in.op == madc;
  const bool writes = has(Mod::cc);
  const bool subtracts = in.op == sub || in.op == subc;
  Value *x = src(1, t), *y = src(2, t);
  if (in.op == mad || in.op == madc) {
    x = has(Mod::hi) ? mulHigh(x, y, ptx::isSigned(t)) : b.CreateMul(x, y);
    y = src(3, t);
  }
  Value* r = subtracts ? b.CreateSub(x, y) : b.CreateAdd(x, y);
  Value* flag = subtracts ? b.CreateICmpUGE(x, y) : b.CreateICmpULT(r, x);
  if (reads) {
    if (subtracts) r = b.CreateAdd(x, b.CreateNot(y)), flag = b.CreateICmpULT(r, x);
    Value* before = r;
    r = b.CreateAdd(r, b.CreateZExt(c.carry(), r->getType()));
    flag = b.CreateOr(flag, b.CreateICmpULT(r, before));
  }
  // The flag first: the destination may be guarded, and so is the flag by the context.
  if (writes) c.setCarry(flag);
  dst(r, t);
  return true;
}

// dp4a.at.bt d, a, b, c and dp2a.lo/.hi: dot products of small integers plus c.
bool Lower::dotProduct() {
  const bool signedA = ptx::isSigned(in.type(0)), signedB = ptx::isSigned(in.type(1));
  Value *x = src(1, in.type(0)), *y = src(2, in.type(1));
  const ScalarType sumType = signedA || signedB ? ScalarType::s32 : ScalarType::u32;
  Value* sum = src(3, sumType);
  auto field = [&](Value* v, unsigned position, unsigned bits, bool isSigned) {
    v = b.CreateShl(v, k(32, 32 - position - bits));
    return isSigned ? b.CreateAShr(v, k(32, 32 - bits)) : b.CreateLShr(v, k(32, 32 - bits));
  };
  const bool four = in.op == dp4a;
  const unsigned bitsA = four ? 8 : 16, first = !four && has(Mod::hi) ? 16 : 0;
  for (unsigned i = 0; i < (four ? 4u : 2u); ++i)
    sum = b.CreateAdd(sum, b.CreateMul(field(x, i * bitsA, bitsA, signedA), field(y, first + i * 8, 8, signedB)));
  dst(sum, sumType);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
