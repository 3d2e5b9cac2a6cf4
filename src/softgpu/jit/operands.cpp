// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/operands.h"

namespace sonde::softgpu::jit {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;

unsigned destinationCount(const Instruction& in) {
  switch (in.op) {
    case Opcode::st:
    case Opcode::red:
    case Opcode::bra:
    case Opcode::brx:
    case Opcode::call:
    case Opcode::ret:
    case Opcode::exit:
    case Opcode::trap:
    case Opcode::brkpt:
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::nanosleep:
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::pmevent:
    case Opcode::cp:
    case Opcode::griddepcontrol:
    case Opcode::sust:
    case Opcode::sured:
    case Opcode::stmatrix:
    case Opcode::discard:
    case Opcode::applypriority:
    case Opcode::stackrestore:
    case Opcode::setmaxnreg:
    case Opcode::tensormap: return 0;
    case Opcode::bar:
    case Opcode::barrier: return in.has(Mod::red) ? 1 : 0;
    case Opcode::mbarrier:
      return in.has(Mod::arrive) || in.has(Mod::arrive_drop) || in.has(Mod::test_wait) || in.has(Mod::try_wait) ||
                     in.has(Mod::pending_count)
                 ? (in.operands[0].kind == Operand::Kind::address ? 0 : 1)
                 : 0;
    case Opcode::wmma: return in.has(Mod::store) ? 0 : 1;
    case Opcode::multimem: return in.has(Mod::red) ? 0 : 1;
    default: return in.operands.empty() ? 0 : 1;
  }
}

void forEachRegister(const Operand& o, const RegVisitor& visit) {
  if (o.reg != ptx::kNoId && (o.kind == Operand::Kind::reg || o.kind == Operand::Kind::address)) visit(o.reg);
  for (const Operand& e : o.elements) forEachRegister(e, visit);
}

void forEachDef(const Instruction& in, const RegVisitor& visit) {
  const unsigned n = destinationCount(in);
  for (unsigned i = 0; i < n && i < in.operands.size(); ++i) forEachRegister(in.operands[i], visit);
  if (in.op == Opcode::call)
    for (const Operand& o : in.callReturns) forEachRegister(o, visit);
}

void forEachUse(const Instruction& in, const RegVisitor& visit) {
  if (in.guard.reg != ptx::kNoId) visit(in.guard.reg);
  for (size_t i = destinationCount(in); i < in.operands.size(); ++i) forEachRegister(in.operands[i], visit);
  for (const Operand& o : in.callArgs) forEachRegister(o, visit);
}

bool writesCarry(const Instruction& in) { return in.has(Mod::cc); }
bool readsCarry(const Instruction& in) {
  return in.op == Opcode::addc || in.op == Opcode::subc || in.op == Opcode::madc;
}

}  // namespace sonde::softgpu::jit
