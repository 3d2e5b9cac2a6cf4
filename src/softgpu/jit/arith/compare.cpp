// SPDX-License-Identifier: Apache-2.0
//
// Comparison (set, setp), selection (selp, slct) and moves between registers.
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

namespace {

bool isHalf(ScalarType t) { return t == ScalarType::f16 || t == ScalarType::bf16; }
bool isHalfPair(ScalarType t) { return t == ScalarType::f16x2 || t == ScalarType::bf16x2; }
ScalarType elementOf(ScalarType t) { return t == ScalarType::f16x2 ? ScalarType::f16 : ScalarType::bf16; }

bool isComparison(Mod m) {
  switch (m) {
    case Mod::eq:
    case Mod::ne:
    case Mod::lt:
    case Mod::le:
    case Mod::gt:
    case Mod::ge:
    case Mod::lo:
    case Mod::ls:
    case Mod::hi:
    case Mod::hs:
    case Mod::equ:
    case Mod::neu:
    case Mod::ltu:
    case Mod::leu:
    case Mod::gtu:
    case Mod::geu:
    case Mod::num:
    case Mod::cmp_nan: return true;
    default: return false;
  }
}

}  // namespace

Mod Lower::compareMod() const {
  for (Mod m : in.mods)
    if (isComparison(m)) return m;
  unsupported("no comparison operator");
}

Value* Lower::compareValues(Value* x, Value* y, ScalarType t, Mod op) {
  if (ptx::isFloat(t)) {
    if (isHalf(t)) {
      auto real = [&](Value* v) { return widen(has(Mod::ftz) ? flushHalf(v) : v, t); };
      x = real(x);
      y = real(y);
    }
    const bool ftz = has(Mod::ftz) && t == ScalarType::f32;
    x = flushIf(x, ftz);
    y = flushIf(y, ftz);
    switch (op) {
      case Mod::eq: return b.CreateFCmpOEQ(x, y);
      case Mod::ne: return b.CreateFCmpONE(x, y);
      case Mod::lt: return b.CreateFCmpOLT(x, y);
      case Mod::le: return b.CreateFCmpOLE(x, y);
      case Mod::gt: return b.CreateFCmpOGT(x, y);
      case Mod::ge: return b.CreateFCmpOGE(x, y);
      case Mod::equ: return b.CreateFCmpUEQ(x, y);
      case Mod::neu: return b.CreateFCmpUNE(x, y);
      case Mod::ltu: return b.CreateFCmpULT(x, y);
      case Mod::leu: return b.CreateFCmpULE(x, y);
      case Mod::gtu: return b.CreateFCmpUGT(x, y);
      case Mod::geu: return b.CreateFCmpUGE(x, y);
      case Mod::num: return b.CreateFCmpORD(x, y);
      case Mod::cmp_nan: return b.CreateFCmpUNO(x, y);
      default: unsupported("this comparison does not apply to floating point");
    }
  }
  const bool isSigned = ptx::isSigned(t);
  switch (op) {
    case Mod::eq: return b.CreateICmpEQ(x, y);
    case Mod::ne: return b.CreateICmpNE(x, y);
    case Mod::lt: return isSigned ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
    case Mod::le: return isSigned ? b.CreateICmpSLE(x, y) : b.CreateICmpULE(x, y);
    case Mod::gt: return isSigned ? b.CreateICmpSGT(x, y) : b.CreateICmpUGT(x, y);
    case Mod::ge: return isSigned ? b.CreateICmpSGE(x, y) : b.CreateICmpUGE(x, y);
    case Mod::lo: return b.CreateICmpULT(x, y);
    case Mod::ls: return b.CreateICmpULE(x, y);
    case Mod::hi: return b.CreateICmpUGT(x, y);
    case Mod::hs: return b.CreateICmpUGE(x, y);
    default: unsupported("this comparison does not apply to integers");
  }
}

bool Lower::compare() {
  const bool toPredicate = in.op == Opcode::setp;
  const ScalarType st = in.type(toPredicate ? 0 : 1);
  const Mod op = compareMod();
  const bool combines = hasOperand(3);
  Value* third = combines ? src(3, ScalarType::pred) : nullptr;
  auto combined = [&](Value* v) { return combines ? boolOp(v, third) : v; };
  Value *x = src(1, st), *y = src(2, st);

  if (isHalfPair(st)) {
    const ScalarType et = elementOf(st);
    Value* low = compareValues(lowHalf(x), lowHalf(y), et, op);
    Value* high = compareValues(highHalf(x), highHalf(y), et, op);
    if (toPredicate) {
      // p takes the lower half's comparison and q the upper's.
      const Operand& d = operand(0);
      if (d.kind != Operand::Kind::predPair) unsupported("a packed comparison writes p|q");
      c.store(d.elements.at(0), combined(low), ScalarType::pred);
      c.store(d.elements.at(1), combined(high), ScalarType::pred);
      return true;
    }
    const ScalarType dt = in.type(0);
    const uint64_t one = !ptx::isFloat(dt) ? 0xffff : dt == ScalarType::f16x2 ? 0x3c00 : 0x3f80;
    auto asHalf = [&](Value* v) { return b.CreateSelect(combined(v), k(16, one), k(16, 0)); };
    dst(pack(asHalf(low), asHalf(high)), dt);
    return true;
  }

  Value* result = compareValues(x, y, st, op);
  if (toPredicate) {
    const Operand& d = operand(0);
    if (d.kind == Operand::Kind::predPair) {
      c.store(d.elements.at(0), combined(result), ScalarType::pred);
      c.store(d.elements.at(1), combined(b.CreateNot(result)), ScalarType::pred);
    } else {
      c.store(d, combined(result), ScalarType::pred);
    }
    return true;
  }
  const ScalarType dt = in.type(0);
  result = combined(result);
  switch (dt) {
    case ScalarType::f32: dst(b.CreateSelect(result, fp(1.0), fp(0.0)), dt); break;
    case ScalarType::f16: dst(b.CreateSelect(result, k(16, 0x3c00), k(16, 0)), dt); break;
    case ScalarType::bf16: dst(b.CreateSelect(result, k(16, 0x3f80), k(16, 0)), dt); break;
    default: dst(sext(result, ptx::bitsOf(dt)), dt); break;
  }
  return true;
}

bool Lower::select() {
  const ScalarType t = in.type();
  if (in.op == Opcode::selp) {
    dst(b.CreateSelect(src(3, ScalarType::pred), src(1, t), src(2, t)), t);
    return true;
  }
  // slct: by the sign of the third operand; NaN counts as negative.
  const ScalarType ct = in.type(1);
  Value *x = src(1, t), *y = src(2, t), *z = src(3, ct);
  Value* positive =
      ct == ScalarType::f32 ? b.CreateFCmpOGE(flushIf(z, has(Mod::ftz)), fp(0.0)) : b.CreateICmpSGE(z, kLike(z, 0));
  dst(b.CreateSelect(positive, x, y), t);
  return true;
}

bool Lower::move() {
  const ScalarType t = in.type();
  const Operand &to = operand(0), &from = operand(1);
  auto isPlain = [](const Operand& o) {
    return o.kind == Operand::Kind::reg || o.kind == Operand::Kind::integer || o.kind == Operand::Kind::floating;
  };
  auto allPlain = [&](const Operand& o) {
    for (const Operand& e : o.elements)
      if (!isPlain(e)) return false;
    return true;
  };
  auto partType = [&](size_t parts) {
    switch (ptx::bitsOf(t) / parts) {
      case 8: return ScalarType::b8;
      case 16: return ScalarType::b16;
      case 32: return ScalarType::b32;
      case 64: return ScalarType::b64;
      default: unsupported("vector parts of this width");
    }
  };

  const bool packs = from.kind == Operand::Kind::vector, unpacks = to.kind == Operand::Kind::vector;
  if (packs && unpacks) {
    if (from.elements.size() != to.elements.size()) unsupported("vectors of different lengths");
    if (!allPlain(from)) return false;
    llvm::SmallVector<Value*, 4> values;  // all reads before the first write
    for (const Operand& e : from.elements) values.push_back(c.source(e, t));
    for (size_t i = 0; i < values.size(); ++i) c.store(to.elements[i], values[i], t);
    return true;
  }
  if (packs) {
    if (!allPlain(from)) return false;
    const ScalarType part = partType(from.elements.size());
    const unsigned bits = ptx::bitsOf(t), partBits = ptx::bitsOf(part);
    Value* r = k(bits, 0);
    for (size_t i = 0; i < from.elements.size(); ++i) {
      Value* element = zext(c.source(from.elements[i], part), bits);
      r = b.CreateOr(r, b.CreateShl(element, k(bits, i * partBits)));
    }
    // The instruction's type may be a float one; the bits are what moves.
    dst(b.CreateBitCast(r, c.type(t)), t);
    return true;
  }
  if (!isPlain(from)) return false;
  if (unpacks) {
    const ScalarType part = partType(to.elements.size());
    Value* whole = asInt(c.source(from, t));
    for (size_t i = 0; i < to.elements.size(); ++i) {
      Value* element = b.CreateLShr(whole, kLike(whole, i * ptx::bitsOf(part)));
      if (to.elements[i].kind != Operand::Kind::sink) c.store(to.elements[i], zext(element, ptx::bitsOf(part)), part);
    }
    return true;
  }
  dst(c.source(from, t), t);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
