// SPDX-License-Identifier: Apache-2.0
//
// The video instructions: vadd and friends on selected bytes or half words
// with a secondary operation, and the packed vadd2/vadd4 families.
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

using enum ptx::Opcode;
namespace Intr = llvm::Intrinsic;

// A selected byte or half word (or the whole word), as a 33-bit-safe i64.
Value* Lower::videoPart(const Operand& o, Value* word, bool isSigned) {
  unsigned bits = 32, position = 0;
  if (o.selector.size() == 2) {
    const unsigned index = static_cast<unsigned>(o.selector[1] - '0');
    bits = o.selector[0] == 'b' ? 8 : 16;
    position = index * bits;
    if ((o.selector[0] != 'b' && o.selector[0] != 'h') || position >= 32) unsupported("operand part ." + o.selector);
  } else if (!o.selector.empty()) {
    unsupported("operand part ." + o.selector);
  }
  Value* v = b.CreateTrunc(b.CreateLShr(word, k(32, position)), intType(bits));
  return extend(v, 64, isSigned);
}

bool Lower::video() {
  switch (in.op) {
    case vadd2:
    case vsub2:
    case vavrg2:
    case vabsdiff2:
    case vmin2:
    case vmax2:
    case vset2: return videoVector(2);
    case vadd4:
    case vsub4:
    case vavrg4:
    case vabsdiff4:
    case vmin4:
    case vmax4:
    case vset4: return videoVector(4);
    default: break;
  }
  // vset names its sources' types alone; its result is an unsigned 0 or 1.
  const bool isVset = in.op == vset;
  const ScalarType dt = isVset ? ScalarType::u32 : in.type(0);
  const ScalarType at = in.type(isVset ? 0 : 1), bt = in.type(isVset ? 1 : 2);
  const bool signedA = ptx::isSigned(at), signedB = ptx::isSigned(bt);
  Value* x = videoPart(operand(1), src(1, at), signedA);
  Value* y = videoPart(operand(2), src(2, bt), signedB);

  if (in.op == vmad) {
    // ((±a*b ± c) [+ 1]) >> shift. The addend counts as signed whatever its
    // type; a shifted result of unsigned operands is shifted as unsigned.
    Value* z = src(3, ScalarType::s32);
    const bool signedResult = signedA || signedB || operand(1).negated != operand(2).negated || operand(3).negated;
    Value* product = b.CreateMul(x, y);
    if (operand(1).negated != operand(2).negated) product = b.CreateNeg(product);
    Value* addend = sext(z, 64);
    if (operand(3).negated) addend = b.CreateNeg(addend);
    Value* sum = b.CreateAdd(product, addend);
    if (has(Mod::po)) sum = b.CreateAdd(sum, kLike(sum, 1));
    const unsigned shift = has(Mod::shr7) ? 7 : has(Mod::shr15) ? 15 : 0;
    if (shift) sum = signedResult ? b.CreateAShr(sum, k(64, shift)) : b.CreateLShr(sum, k(64, shift));
    dst(has(Mod::sat) ? clampTo(sum, 32, signedResult) : b.CreateTrunc(sum, intType(32)), dt);
    return true;
  }

  Value* r = nullptr;
  bool logical = false;
  switch (in.op) {
    case vadd: r = b.CreateAdd(x, y); break;
    case vsub: r = b.CreateSub(x, y); break;
    case vabsdiff: {
      Value* difference = b.CreateSub(x, y);
      r = b.CreateIntrinsic(Intr::abs, {difference->getType()}, {difference, b.getFalse()});
      break;
    }
    case vmin: r = smin(x, y); break;
    case vmax: r = smax(x, y); break;
    case vshl:
    case vshr: {
      // The amount is unsigned; .wrap takes it modulo 32, .clamp stops at 32.
      Value* amount = b.CreateAnd(y, k(64, 0xffffffffu));
      amount = has(Mod::wrap) ? b.CreateAnd(amount, k(64, 31)) : umin(amount, k(64, 32));
      // Intermediate results have 34 bits; what a left shift moves beyond is lost.
      if (in.op == vshl)
        r = b.CreateAShr(b.CreateShl(b.CreateShl(x, amount), k(64, 30)), k(64, 30));
      else
        r = signedA ? b.CreateAShr(x, amount) : b.CreateLShr(x, amount);
      break;
    }
    case vset: {
      // Sources of either signedness compare as numbers: the sign is in the i64.
      r = b.CreateZExt(compareValues(x, y, ScalarType::s64, compareMod()), intType(64));
      logical = true;
      break;
    }
    default: return false;
  }
  const bool signedD = ptx::isSigned(dt);
  const bool saturates = has(Mod::sat) && !logical;
  Value* result = saturates ? clampTo(r, 32, signedD) : b.CreateTrunc(r, intType(32));
  if (!hasOperand(3)) {
    dst(result, dt);
    return true;
  }
  Value* z = src(3, ptx::isSigned(dt) ? ScalarType::s32 : ScalarType::u32);
  const std::string& part = operand(0).selector;
  if (!part.empty()) {
    // The result replaces one byte or half word of c.
    if (part.size() != 2) unsupported("destination part ." + part);
    const unsigned bits = part[0] == 'b' ? 8 : 16, position = static_cast<unsigned>(part[1] - '0') * bits;
    if (position >= 32) unsupported("destination part ." + part);
    // Saturation is to the part's width.
    Value* narrowed = saturates ? zext(clampTo(r, bits, signedD), 32) : result;
    const uint64_t mask = ((uint64_t{1} << bits) - 1) << position;
    Value* field = b.CreateAnd(b.CreateShl(narrowed, k(32, position)), k(32, mask));
    dst(b.CreateOr(b.CreateAnd(z, k(32, ~mask)), field), dt);
    return true;
  }
  // The second operation takes the word as it would be stored, except that an
  // absolute difference is never negative.
  Value* wide = in.op == vabsdiff && !saturates ? r : extend(result, 64, signedD);
  Value* other = extend(z, 64, signedD);
  if (has(Mod::add))
    wide = b.CreateAdd(wide, other);
  else if (has(Mod::min))
    wide = smin(wide, other);
  else if (has(Mod::max))
    wide = smax(wide, other);
  else
    unsupported("a third operand without .add, .min or .max");
  dst(b.CreateTrunc(wide, intType(32)), dt);
  return true;
}

// Two half words or four bytes at once; the selectors pick parts of the pair
// (a, b), the mask the parts of the result that are written.
bool Lower::videoVector(unsigned parts) {
  const unsigned bits = 32 / parts;
  const bool isVset = in.op == vset2 || in.op == vset4;
  const ScalarType dt = isVset ? ScalarType::u32 : in.type(0);
  const ScalarType at = in.type(isVset ? 0 : 1), bt = in.type(isVset ? 1 : 2);
  Value *x = src(1, at), *y = src(2, bt), *z = src(3, dt);
  const bool signedD = ptx::isSigned(dt);

  auto selector = [&](const Operand& o, unsigned i, unsigned start) -> unsigned {
    if (o.selector.empty()) return start + i;
    // Written from the highest part down: "h10", "b7610".
    const std::string& s = o.selector;
    if (s.size() != parts + 1) unsupported("operand part ." + s);
    const int index = s[parts - i] - '0';
    if (index < 0 || index >= static_cast<int>(2 * parts)) unsupported("operand part ." + s);
    return static_cast<unsigned>(index);
  };
  auto part = [&](const Operand& o, unsigned i, unsigned start, bool isSigned) {
    const unsigned index = selector(o, i, start);
    Value* word = index < parts ? x : y;
    Value* v = b.CreateTrunc(b.CreateLShr(word, k(32, (index % parts) * bits)), intType(bits));
    return extend(v, 32, isSigned);
  };
  const std::string& maskText = operand(0).selector;
  auto writes = [&](unsigned i) {
    return maskText.empty() || maskText.find(static_cast<char>('0' + i), 1) != std::string::npos;
  };

  Value* packed = k(32, 0);
  Value* sum = z;
  for (unsigned i = 0; i < parts; ++i) {
    Value* p = part(operand(1), i, 0, ptx::isSigned(at));
    Value* q = part(operand(2), i, parts, ptx::isSigned(bt));
    Value* r = nullptr;
    switch (in.op) {
      case vadd2:
      case vadd4: r = b.CreateAdd(p, q); break;
      case vsub2:
      case vsub4: r = b.CreateSub(p, q); break;
      case vavrg2:
      case vavrg4: {
        // Rounded half away from zero, as signed numbers are: half up, less one below zero.
        Value* s = b.CreateAdd(p, q);
        Value* bias = b.CreateSelect(b.CreateICmpSGE(s, k(32, 0)), k(32, 1), k(32, 0));
        r = b.CreateAShr(b.CreateAdd(s, bias), k(32, 1));
        break;
      }
      case vabsdiff2:
      case vabsdiff4: {
        Value* difference = b.CreateSub(p, q);
        r = b.CreateIntrinsic(Intr::abs, {difference->getType()}, {difference, b.getFalse()});
        break;
      }
      case vmin2:
      case vmin4: r = smin(p, q); break;
      case vmax2:
      case vmax4: r = smax(p, q); break;
      case vset2:
      case vset4: r = b.CreateZExt(compareValues(p, q, ScalarType::s32, compareMod()), intType(32)); break;
      default: return false;
    }
    if (has(Mod::sat) && !isVset) r = extend(clampTo(r, bits, signedD), 32, signedD);
    if (has(Mod::add)) {
      if (writes(i)) sum = b.CreateAdd(sum, r);
      continue;
    }
    const uint64_t field = (bits == 32 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) << (i * bits);
    Value* from = writes(i) ? b.CreateShl(r, k(32, i * bits)) : z;
    packed = b.CreateOr(packed, b.CreateAnd(from, k(32, field)));
  }
  dst(has(Mod::add) ? sum : packed, dt);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
