// SPDX-License-Identifier: Apache-2.0
#include "ptx/build.h"

#include <algorithm>
#include <iterator>

#include "ptx/mnemonic.h"

namespace sonde::ptx {

Instruction makeInstruction(Module& module, std::string_view mnemonic, std::vector<Operand> operands, Guard guard) {
  Instruction i;
  const Mnemonic m = decodeMnemonic(mnemonic);
  if (!m.error.empty()) return i;
  apply(m, i);
  const auto known = std::find(module.mnemonics.begin(), module.mnemonics.end(), mnemonic);
  i.mnemonic = static_cast<uint32_t>(known - module.mnemonics.begin());
  if (known == module.mnemonics.end()) module.mnemonics.emplace_back(mnemonic);
  i.operands = std::move(operands);
  i.guard = guard;
  return i;
}

RegId addRegister(Function& f, std::string_view prefix, ScalarType type) {
  uint32_t number = 0;
  auto taken = [&](const std::string& name) {
    return std::any_of(f.registers.begin(), f.registers.end(), [&](const Register& r) { return r.name == name; });
  };
  // Most often the registers with this prefix are one range; start behind what it can hold at most.
  std::string name = std::string(prefix) + "0";
  if (taken(name)) {
    number = static_cast<uint32_t>(f.registers.size());
    do name = std::string(prefix) + std::to_string(number++);
    while (taken(name));
  }
  f.registers.push_back({std::move(name), type, 1});
  return static_cast<RegId>(f.registers.size() - 1);
}

Operand regOperand(RegId reg) {
  Operand o;
  o.kind = Operand::Kind::reg;
  o.reg = reg;
  return o;
}

Operand sinkOperand() {
  Operand o;
  o.kind = Operand::Kind::sink;
  return o;
}

Operand intOperand(int64_t value) {
  Operand o;
  o.kind = Operand::Kind::integer;
  o.imm = static_cast<uint64_t>(value);
  return o;
}

Operand specialOperand(SpecialReg reg, int component) {
  Operand o;
  o.kind = Operand::Kind::special;
  o.special = reg;
  o.component = static_cast<int8_t>(component);
  return o;
}

Operand addressOperand(RegId base, int64_t offset) {
  Operand o;
  o.kind = Operand::Kind::address;
  o.reg = base;
  o.offset = offset;
  return o;
}

Operand variableAddress(Operand::Ref ref, uint32_t id, int64_t offset) {
  Operand o = variableOperand(ref, id, offset);
  o.kind = Operand::Kind::address;
  return o;
}

Operand variableOperand(Operand::Ref ref, uint32_t id, int64_t offset) {
  Operand o;
  o.kind = Operand::Kind::symbol;
  o.ref = ref;
  o.refId = id;
  o.offset = offset;
  return o;
}

void insertInstructions(Function& f, uint32_t at, std::vector<Instruction> code) {
  const auto n = static_cast<uint32_t>(code.size());
  f.body.insert(f.body.begin() + at, std::make_move_iterator(code.begin()), std::make_move_iterator(code.end()));
  auto move = [&](uint32_t& instruction) {
    if (instruction > at) instruction += n;
  };
  for (auto& l : f.labels) move(l.instruction);
  for (auto& t : f.branchTargets) move(t.instruction);
  for (auto& p : f.bodyPragmas) move(p.instruction);
}

}  // namespace sonde::ptx
