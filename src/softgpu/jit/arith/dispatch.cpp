// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit {

bool emitArithmetic(EmitContext& context, const ptx::Instruction& instruction) {
  using enum ptx::Opcode;
  using ptx::isFloat;
  using ptx::ScalarType;
  // PTX names every rounding itself; nothing may be fused or reassociated.
  llvm::IRBuilderBase::FastMathFlagGuard exact(context.b);
  context.b.clearFastMathFlags();
  arith::Lower lower(context, instruction);
  const ScalarType t = instruction.type();

  switch (instruction.op) {
    case mov: return lower.move();
    case cvt: return lower.convert();
    case set:
    case setp: return lower.compare();
    case selp:
    case slct: return lower.select();

    case add:
    case sub:
    case mul:
    case mad:
    case fma:
    case div:
    case min:
    case max:
    case abs:
    case neg: {
      switch (t) {
        case ScalarType::f16:
        case ScalarType::f16x2:
        case ScalarType::bf16:
        case ScalarType::bf16x2: return lower.half();
        default:
          if (isFloat(t)) return lower.floating();
      }
      if (instruction.op == div) return lower.divide();
      if (instruction.has(ptx::Mod::cc)) return lower.carryChain();
      return lower.integer();
    }
    case addc:
    case subc:
    case madc: return lower.carryChain();
    case mul24:
    case mad24:
    case sad: return lower.integer();
    case rem: return lower.divide();

    case and_:
    case or_:
    case xor_:
    case not_:
    case cnot:
    case lop3:
    case shf:
    case shl:
    case shr:
    case popc:
    case clz:
    case bfind:
    case fns:
    case brev:
    case bfe:
    case bfi:
    case bmsk:
    case szext: return lower.bits();
    case prmt: return lower.permute();
    case dp4a:
    case dp2a: return lower.dotProduct();

    case rcp:
    case sqrt:
    case copysign:
    case testp: return lower.floating();
    case rsqrt:
    case sin:
    case cos:
    case lg2:
    case ex2:
    case tanh: return lower.approximate();

    case vadd:
    case vsub:
    case vabsdiff:
    case vmin:
    case vmax:
    case vshl:
    case vshr:
    case vmad:
    case vset:
    case vadd2:
    case vsub2:
    case vavrg2:
    case vabsdiff2:
    case vmin2:
    case vmax2:
    case vset2:
    case vadd4:
    case vsub4:
    case vavrg4:
    case vabsdiff4:
    case vmin4:
    case vmax4:
    case vset4: return lower.video();
    default: return false;
  }
}

}  // namespace sonde::softgpu::jit
