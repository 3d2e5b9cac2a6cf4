// SPDX-License-Identifier: Apache-2.0
//
// Rules of single opcodes that the table has no column for.
#include <algorithm>

#include "ptx/checker.h"

namespace sonde::ptx {

void Checker::special(const Instruction& i) {
  const auto& o = i.operands;
  auto scope = [&] { return i.has(Mod::cta) || i.has(Mod::cluster) || i.has(Mod::gpu) || i.has(Mod::sys); };
  auto isBoolean = [&] { return i.has(Mod::and_) || i.has(Mod::or_) || i.has(Mod::xor_); };
  switch (i.op) {
    case Opcode::mad:
      if (i.type() == ScalarType::f32 && module_.target >= 20 && !i.has(Mod::rn) && !i.has(Mod::rz) &&
          !i.has(Mod::rm) && !i.has(Mod::rp))
        error(i.pos, mnemonic(i) + " needs one of '.rn', '.rz', '.rm', '.rp' from sm_20 on");
      return;
    case Opcode::min:
    case Opcode::max:
      if (o.size() == 4 && options_.featureLevels) require(i.pos, mnemonic(i) + " with three operands", 88, 100);
      return;
    case Opcode::setp:
    case Opcode::set:
      if (o.size() == 4 && !isBoolean())
        error(i.pos, mnemonic(i) + " with a third operand needs one of '.and', '.or', '.xor'");
      else if (o.size() == 3 && isBoolean())
        error(i.pos, mnemonic(i) + " needs a predicate as third operand");
      return;
    case Opcode::cvta:
      if (i.space == StateSpace::none) error(i.pos, mnemonic(i) + " needs a state space");
      return;
    case Opcode::isspacep:
      if (i.space == StateSpace::none)
        error(i.pos, mnemonic(i) + " needs a state space");
      else if (o.size() == 2 && o[1].kind != Operand::Kind::reg)
        complain(i, o[1], "a register");
      return;
    case Opcode::shfl:
      if (!o.empty() && o[0].kind == Operand::Kind::predPair && o[0].elements[0].kind == Operand::Kind::sink)
        complain(i, o[0].elements[0], "a register");
      return;
    case Opcode::bar:
    case Opcode::barrier:
      if (!o.empty() && !i.has(Mod::warp) && !i.has(Mod::red) && o[0].kind == Operand::Kind::integer && o[0].imm > 15)
        error(o[0].pos,
              "barrier " + std::to_string(static_cast<int64_t>(o[0].imm)) + " does not exist; there are 0 to 15");
      return;
    case Opcode::fence:
      if (!i.has(Mod::proxy) && !i.has(Mod::mbarrier_init) && !scope())
        error(i.pos, mnemonic(i) + " needs a scope: one of '.cta', '.cluster', '.gpu', '.sys'");
      return;
    case Opcode::ldmatrix:
    case Opcode::stmatrix: {
      const size_t want = i.has(Mod::x4) ? 4 : i.has(Mod::x2) ? 2 : 1;
      const Operand& v = o[i.op == Opcode::ldmatrix ? 0 : 1];
      const size_t have = v.kind == Operand::Kind::vector ? v.elements.size() : 1;
      const bool wide = i.has(Mod::m16n16);  // two registers for each matrix
      if (have != want * (wide ? 2 : 1))
        complain(i, v, "a vector of " + std::to_string(want * (wide ? 2 : 1)) + " registers");
      return;
    }
    case Opcode::mma: return matrixSizes(i);
    case Opcode::cp:
      if (i.has(Mod::wait_group) && !i.has(Mod::bulk)) {
        if (count(i, 1, 1) && o[0].kind != Operand::Kind::integer) complain(i, o[0], "an integer constant");
      } else if ((i.has(Mod::ca) || i.has(Mod::cg)) && !i.has(Mod::bulk)) {
        if (!count(i, 3, 5)) return;
        address(i, o[0]);
        address(i, o[1]);
        const uint64_t n = o[2].imm;
        if (o[2].kind != Operand::Kind::integer)
          complain(i, o[2], "an integer constant");
        else if (i.has(Mod::cg) ? n != 16 : n != 4 && n != 8 && n != 16)
          error(o[2].pos, mnemonic(i) + (i.has(Mod::cg) ? " copies 16 bytes" : " copies 4, 8 or 16 bytes") +
                              ", found " + std::to_string(n));
      }
      return;
    case Opcode::tex:
    case Opcode::tld4:
      if (i.vectorWidth == 1) error(i.pos, mnemonic(i) + " needs '.v4'");
      return;
    default: return;
  }
}

// Each operand of mma is a vector with as many registers as a lane's share of the matrix takes.
void Checker::matrixSizes(const Instruction& i) {
  if (i.has(Mod::sp) || i.has(Mod::sp_ordered_metadata) || i.has(Mod::block_scale) || i.types.size() < 4) return;
  if (i.has(Mod::m8n8k4) && i.type(1) == ScalarType::f16) return;  // four 8x8x4 products at once
  if (!count(i, 4, 4)) return;
  const unsigned m = i.shape.m, n = i.shape.n, k = i.shape.k;
  const struct {
    unsigned elements;
    ScalarType type;
  } parts[4] = {{m * n, i.type(0)}, {m * k, i.type(1)}, {k * n, i.type(2)}, {m * n, i.type(3)}};
  for (size_t p = 0; p < 4; ++p) {
    unsigned bits = bitsOf(parts[p].type);
    if (bits == 6 || bits == 4) bits = i.has(Mod::kind_f8f6f4) ? 8 : 4;
    const unsigned perRegister = bits >= 32 ? 1 : 32 / bits;
    const size_t want = parts[p].elements / 32 / perRegister;
    const Operand& v = i.operands[p];
    const size_t have = v.kind == Operand::Kind::vector ? v.elements.size() : 1;
    if (want != 0 && have != want) complain(i, v, "a vector of " + std::to_string(want) + " registers");
  }
}

}  // namespace sonde::ptx
