// SPDX-License-Identifier: Apache-2.0
//
// Which registers an instruction writes and which it reads.
#pragma once

#include "ptx/ast.h"

namespace sonde::ptx {

// Number of leading operands that are destinations: 0 or 1 (a vector or a pair is one operand).
unsigned destinationCount(const Instruction& instruction);

// The destination is read as well (accumulators that wgmma updates in place).
bool readsDestination(const Instruction& instruction);

// The carry flag: add.cc and the like write it; addc, subc and madc read it.
inline bool writesCarry(const Instruction& i) { return i.has(Mod::cc); }
inline bool readsCarry(const Instruction& i) {
  return i.op == Opcode::addc || i.op == Opcode::subc || i.op == Opcode::madc;
}

template <class Visit>
void forEachRegister(const Operand& o, Visit&& visit) {
  if (o.reg != kNoId && (o.kind == Operand::Kind::reg || o.kind == Operand::Kind::address)) visit(o.reg);
  for (const Operand& e : o.elements) forEachRegister(e, visit);
}

template <class Visit>
void forEachDef(const Instruction& i, Visit&& visit) {
  const unsigned n = destinationCount(i);
  for (unsigned k = 0; k < n && k < i.operands.size(); ++k) forEachRegister(i.operands[k], visit);
  for (const Operand& o : i.callReturns) forEachRegister(o, visit);
}

// Guard, sources, address registers, call arguments, a called register.
template <class Visit>
void forEachUse(const Instruction& i, Visit&& visit) {
  if (i.guard.reg != kNoId) visit(i.guard.reg);
  for (size_t k = readsDestination(i) ? 0 : destinationCount(i); k < i.operands.size(); ++k)
    forEachRegister(i.operands[k], visit);
  for (const Operand& o : i.callArgs) forEachRegister(o, visit);
}

}  // namespace sonde::ptx
