// SPDX-License-Identifier: Apache-2.0
//
// Logic, shifts and bit fields. PTX clamps shift amounts, LLVM and the host do not.
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

using enum ptx::Opcode;
namespace Intr = llvm::Intrinsic;

namespace {
constexpr ScalarType u32 = ScalarType::u32;
}

// Any function of three bits: for z = 0 and for z = 1 it is a function of x and y.
Value* Lower::lookup3(Value* x, Value* y, Value* z, unsigned lut) {
  auto two = [&](unsigned table) -> Value* {  // bit 2*x + y of the table
    switch (table & 15) {
      case 0: return kLike(x, 0);
      case 1: return b.CreateNot(b.CreateOr(x, y));
      case 2: return b.CreateAnd(b.CreateNot(x), y);
      case 3: return b.CreateNot(x);
      case 4: return b.CreateAnd(x, b.CreateNot(y));
      case 5: return b.CreateNot(y);
      case 6: return b.CreateXor(x, y);
      case 7: return b.CreateNot(b.CreateAnd(x, y));
      case 8: return b.CreateAnd(x, y);
      case 9: return b.CreateNot(b.CreateXor(x, y));
      case 10: return y;
      case 11: return b.CreateOr(b.CreateNot(x), y);
      case 12: return x;
      case 13: return b.CreateOr(x, b.CreateNot(y));
      case 14: return b.CreateOr(x, y);
      default: return llvm::Constant::getAllOnesValue(x->getType());
    }
  };
  unsigned zero = 0, one = 0;
  for (unsigned i = 0; i < 4; ++i) {
    zero |= ((lut >> (2 * i)) & 1) << i;
    one |= ((lut >> (2 * i + 1)) & 1) << i;
  }
  if (zero == one) return two(zero);
  if (zero == 0) return b.CreateAnd(z, two(one));
  if (one == 15) return b.CreateOr(z, two(zero));
  if (one == 0) return b.CreateAnd(b.CreateNot(z), two(zero));
  if (zero == 15) return b.CreateOr(b.CreateNot(z), two(one));
  if ((zero ^ one) == 15) return b.CreateXor(z, two(zero));
  return b.CreateXor(two(zero), b.CreateAnd(z, two(zero ^ one)));
}

bool Lower::bits() {
  const ScalarType t = in.type();
  const unsigned bits = ptx::bitsOf(t);
  const bool isSigned = ptx::isSigned(t);
  auto countOf = [&](Value* v) { return zext(v, 32); };
  // A shift amount register is 32 bits wide whatever is shifted.
  auto amount = [&](size_t i) { return src(i, u32); };
  // Position and length of a field: 32-bit forms read a byte, 64-bit ones the whole register.
  auto byteOf = [&](size_t i) {
    Value* v = src(i, u32);
    return bits == 64 ? v : b.CreateAnd(v, k(32, 0xff));
  };
  auto lowMask = [&](Value* length) {  // ones below bit `length`, all ones from the width on
    return b.CreateNot(shlClamped(llvm::Constant::getAllOnesValue(intType(bits)), length));
  };

  switch (in.op) {
    case and_: dst(b.CreateAnd(src(1, t), src(2, t)), t); return true;
    case or_: dst(b.CreateOr(src(1, t), src(2, t)), t); return true;
    case xor_: dst(b.CreateXor(src(1, t), src(2, t)), t); return true;
    case not_: dst(b.CreateNot(src(1, t)), t); return true;
    case cnot: {
      Value* x = src(1, t);
      dst(zext(b.CreateICmpEQ(x, kLike(x, 0)), bits), t);
      return true;
    }
    case lop3: {
      const Operand& table = operand(4);
      if (table.kind != Operand::Kind::integer) unsupported("the look-up table must be an immediate");
      Value* r = lookup3(src(1, t), src(2, t), src(3, t), static_cast<unsigned>(table.imm & 0xff));
      const Operand& d = operand(0);
      if (d.kind == Operand::Kind::predPair) {
        Value* p = boolOp(b.CreateICmpNE(r, kLike(r, 0)), src(5, ScalarType::pred));
        c.store(d.elements.at(0), r, t);
        c.store(d.elements.at(1), p, ScalarType::pred);
      } else {
        c.store(d, r, t);
      }
      return true;
    }
    case shl: dst(shlClamped(src(1, t), amount(2)), t); return true;
    case shr: dst(shrClamped(src(1, t), amount(2), isSigned), t); return true;
    case shf: {
      // The 64-bit value (y:x) shifted; .l gives its upper word, .r its lower.
      Value *x = src(1, t), *y = src(2, t), *n = amount(3);
      const bool left = has(Mod::l);
      Value* r = left ? intrinsic(Intr::fshl, {y, x, n}) : intrinsic(Intr::fshr, {y, x, n});
      if (!has(Mod::wrap)) r = b.CreateSelect(b.CreateICmpUGE(n, k(32, 32)), left ? x : y, r);
      dst(r, t);
      return true;
    }
    case popc: dst(countOf(intrinsic(Intr::ctpop, {src(1, t)})), u32); return true;
    case clz: {
      Value* x = src(1, t);
      dst(countOf(b.CreateIntrinsic(Intr::ctlz, {x->getType()}, {x, b.getFalse()})), u32);
      return true;
    }
    case brev: dst(intrinsic(Intr::bitreverse, {src(1, t)}), t); return true;
    case bfind: {
      // The highest bit that differs from the sign; all ones when there is none.
      Value* x = src(1, t);
      if (isSigned) x = b.CreateXor(x, b.CreateAShr(x, kLike(x, bits - 1)));
      Value* zeros = countOf(b.CreateIntrinsic(Intr::ctlz, {x->getType()}, {x, b.getFalse()}));
      Value* r = has(Mod::shiftamt) ? zeros : b.CreateSub(k(32, bits - 1), zeros);
      dst(b.CreateSelect(b.CreateICmpEQ(x, kLike(x, 0)), k(32, 0xffffffffu), r), u32);
      return true;
    }
    case fns: {
      // The |offset|-th set bit from `base` on, upwards or (negative) downwards.
      // Downwards is upwards on the reversed mask.
      Value *mask = src(1, ScalarType::b32), *base = src(2, ScalarType::b32), *offset = src(3, ScalarType::s32);
      Value* down = b.CreateICmpSLT(offset, k(32, 0));
      Value* none = b.CreateICmpEQ(offset, k(32, 0));
      Value* rest = b.CreateSelect(down, intrinsic(Intr::bitreverse, {mask}), mask);
      Value* from = b.CreateSelect(down, b.CreateSub(k(32, 31), base), base);
      rest = b.CreateAnd(rest, shlClamped(k(32, 0xffffffffu), from));
      Value* magnitude = b.CreateSelect(down, b.CreateNeg(offset), offset);
      Value* left = b.CreateSelect(none, k(32, 0), b.CreateSub(magnitude, k(32, 1)));
      Value* found = b.CreateICmpULT(left, intrinsic(Intr::ctpop, {rest}));
      Value* position = k(32, 0);
      for (unsigned width = 16; width != 0; width /= 2) {
        Value* part = b.CreateAnd(b.CreateLShr(rest, position), k(32, (uint64_t{1} << width) - 1));
        Value* count = intrinsic(Intr::ctpop, {part});
        Value* beyond = b.CreateICmpUGE(left, count);
        left = b.CreateSub(left, b.CreateSelect(beyond, count, k(32, 0)));
        position = b.CreateAdd(position, b.CreateSelect(beyond, k(32, width), k(32, 0)));
        position = b.CreateAnd(position, k(32, 31));
      }
      found = b.CreateAnd(found, b.CreateOr(b.CreateNot(none), b.CreateICmpEQ(position, base)));
      position = b.CreateSelect(down, b.CreateSub(k(32, 31), position), position);
      dst(b.CreateSelect(found, position, k(32, 0xffffffffu)), ScalarType::b32);
      return true;
    }
    case bfe: {
      Value *x = src(1, t), *position = byteOf(2), *length = byteOf(3);
      Value* r = shrClamped(x, position, isSigned);
      if (isSigned) {
        // Shifting up and back copies the field's own sign bit.
        Value* up = b.CreateSelect(b.CreateICmpULT(length, k(32, bits)), b.CreateSub(k(32, bits), length), k(32, 0));
        Value* shift = zext(b.CreateAnd(up, k(32, bits - 1)), bits);
        r = b.CreateAShr(b.CreateShl(r, shift), shift);
        r = b.CreateSelect(b.CreateICmpEQ(length, k(32, 0)), kLike(r, 0), r);
      } else {
        r = b.CreateAnd(r, lowMask(length));
      }
      dst(r, t);
      return true;
    }
    case bfi: {
      Value *x = src(1, t), *y = src(2, t), *position = byteOf(3), *length = byteOf(4);
      Value* mask = shlClamped(lowMask(length), position);
      Value* field = b.CreateAnd(shlClamped(x, position), mask);
      dst(b.CreateOr(b.CreateAnd(y, b.CreateNot(mask)), field), t);
      return true;
    }
    case bmsk: {
      Value *x = src(1, ScalarType::b32), *y = src(2, ScalarType::b32);
      Value *start = b.CreateAnd(x, k(32, 31)), *length = b.CreateAnd(y, k(32, 31));
      Value* low = b.CreateShl(k(32, 0xffffffffu), start);
      Value* high = shlClamped(k(32, 0xffffffffu), b.CreateAdd(start, length));
      if (!has(Mod::wrap)) {
        low = b.CreateSelect(b.CreateICmpUGE(x, k(32, 32)), k(32, 0), low);
        high = b.CreateSelect(b.CreateICmpUGE(y, k(32, 32)), k(32, 0), high);
      }
      dst(b.CreateAnd(low, b.CreateNot(high)), ScalarType::b32);
      return true;
    }
    case szext: {
      Value *x = src(1, t), *y = src(2, u32);
      Value* length = b.CreateAnd(y, k(32, 31));
      Value* empty = b.CreateICmpEQ(length, k(32, 0));
      Value* shift = b.CreateAnd(b.CreateSub(k(32, 32), length), k(32, 31));
      Value* up = b.CreateShl(x, shift);
      Value* r = isSigned ? b.CreateAShr(up, shift) : b.CreateLShr(up, shift);
      r = b.CreateSelect(empty, k(32, 0), r);
      if (!has(Mod::wrap)) r = b.CreateSelect(b.CreateICmpUGE(y, k(32, 32)), x, r);
      dst(r, t);
      return true;
    }
    default: return false;
  }
}

Value* Lower::prmtConstant(Value* x, Value* y, uint32_t selector) {
  auto byteOf = [&](unsigned index) {
    Value* word = index < 4 ? x : y;
    return b.CreateAnd(b.CreateLShr(word, k(32, (index & 3) * 8)), k(32, 0xff));
  };
  bool replicates = false;
  for (unsigned i = 0; i < 4; ++i) replicates |= ((selector >> (4 * i)) & 8) != 0;
  if (!replicates && !c.uniform()) {
    // One shuffle of the warp's 128 bytes.
    auto* bytes = llvm::FixedVectorType::get(b.getInt8Ty(), 4 * c.lanes);
    llvm::SmallVector<int, 128> order;
    for (unsigned lane = 0; lane < c.lanes; ++lane)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned index = (selector >> (4 * i)) & 7;
        order.push_back(static_cast<int>(4 * lane + (index & 3) + (index < 4 ? 0 : 4 * c.lanes)));
      }
    Value* r = b.CreateShuffleVector(b.CreateBitCast(x, bytes), b.CreateBitCast(y, bytes), order);
    return b.CreateBitCast(r, intType(32));
  }
  Value* r = k(32, 0);
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = (selector >> (4 * i)) & 15;
    Value* byte = byteOf(nibble & 7);
    if (nibble & 8) byte = b.CreateAnd(b.CreateAShr(b.CreateShl(byte, k(32, 24)), k(32, 31)), k(32, 0xff));
    r = b.CreateOr(r, b.CreateShl(byte, k(32, 8 * i)));
  }
  return r;
}

Value* Lower::prmt(Value* x, Value* y, Value* selector) {
  Value* both = pack(x, y);
  Value* r = k(32, 0);
  for (unsigned i = 0; i < 4; ++i) {
    Value* nibble = b.CreateLShr(selector, k(32, 4 * i));
    Value* shift = b.CreateShl(b.CreateAnd(nibble, k(32, 7)), k(32, 3));
    Value* byte = b.CreateAnd(b.CreateTrunc(b.CreateLShr(both, zext(shift, 64)), intType(32)), k(32, 0xff));
    Value* sign = b.CreateAnd(b.CreateAShr(b.CreateShl(byte, k(32, 24)), k(32, 31)), k(32, 0xff));
    byte = b.CreateSelect(b.CreateICmpNE(b.CreateAnd(nibble, k(32, 8)), k(32, 0)), sign, byte);
    r = b.CreateOr(r, b.CreateShl(byte, k(32, 8 * i)));
  }
  return r;
}

bool Lower::permute() {
  constexpr ScalarType b32 = ScalarType::b32;
  // The special modes are four fixed selections each, chosen by the low two bits.
  struct Mode {
    Mod mod;
    uint32_t selections[4];
  };
  static constexpr Mode modes[] = {
      {Mod::mode_f4e, {0x3210, 0x4321, 0x5432, 0x6543}}, {Mod::mode_b4e, {0x5670, 0x6701, 0x7012, 0x0123}},
      {Mod::mode_rc8, {0x0000, 0x1111, 0x2222, 0x3333}}, {Mod::mode_ecl, {0x3210, 0x3211, 0x3222, 0x3333}},
      {Mod::mode_ecr, {0x0000, 0x1110, 0x2210, 0x3210}}, {Mod::mode_rc16, {0x1010, 0x3232, 0x1010, 0x3232}},
  };
  Value *x = src(1, b32), *y = src(2, b32);
  const Operand& selectorOperand = operand(3);
  const bool constant = selectorOperand.kind == Operand::Kind::integer;
  for (const Mode& mode : modes) {
    if (!has(mode.mod)) continue;
    if (constant) {
      dst(prmtConstant(x, y, mode.selections[selectorOperand.imm & 3]), b32);
      return true;
    }
    Value* low = b.CreateAnd(src(3, b32), k(32, 3));
    Value* selector = k(32, mode.selections[0]);
    for (unsigned i = 1; i < 4; ++i)
      selector = b.CreateSelect(b.CreateICmpEQ(low, k(32, i)), k(32, mode.selections[i]), selector);
    dst(prmt(x, y, selector), b32);
    return true;
  }
  dst(constant ? prmtConstant(x, y, static_cast<uint32_t>(selectorOperand.imm)) : prmt(x, y, src(3, b32)), b32);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
