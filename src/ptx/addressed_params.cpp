// SPDX-License-Identifier: Apache-2.0
#include "ptx/addressed_params.h"

#include <algorithm>
#include <map>

#include "ptx/build.h"

namespace sonde::ptx {

namespace {

// Operands that name a parameter as a value, that is: by its address.
template <class Visit>
void visitAddresses(Function& f, Visit visit) {
  for (Instruction& in : f.body) {
    if (in.op == Opcode::call) continue;
    for (Operand& o : in.operands)
      if (o.kind == Operand::Kind::symbol && o.ref == Operand::Ref::param) visit(o);
  }
}

// Copies of all bytes in words as wide as size and alignment allow.
std::vector<Instruction> copyOf(Module& module, Function& f, uint32_t param, uint32_t local) {
  const uint64_t bytes = f.params[param].sizeBytes;
  std::vector<Instruction> code;
  for (uint64_t at = 0; at < bytes;) {
    unsigned width = 8;
    while (width > 1 && (at % width != 0 || at + width > bytes || width > std::max(1u, f.params[param].align)))
      width /= 2;
    const std::string type = ".b" + std::to_string(8 * width);
    const RegId word = addRegister(f, "%param",
                                   width == 8   ? ScalarType::b64
                                   : width == 4 ? ScalarType::b32
                                                : ScalarType::b16);
    const auto offset = static_cast<int64_t>(at);
    code.push_back(makeInstruction(module, "ld.param" + type,
                                   {regOperand(word), variableAddress(Operand::Ref::param, param, offset)}));
    code.push_back(makeInstruction(module, "st.local" + type,
                                   {variableAddress(Operand::Ref::localVar, local, offset), regOperand(word)}));
    at += width;
  }
  return code;
}

}  // namespace

void moveAddressedParameters(Module& module) {
  for (Function& f : module.functions) {
    if (f.isKernel || !f.hasBody) continue;
    std::map<uint32_t, uint32_t> copies;  // parameter -> local variable
    visitAddresses(f, [&](Operand& o) {
      const auto [it, fresh] = copies.try_emplace(o.refId, static_cast<uint32_t>(f.variables.size()));
      if (fresh) {
        Variable copy = f.params[o.refId];
        copy.space = StateSpace::local;
        copy.regId = kNoId;
        copy.name += "$copy";
        f.variables.push_back(std::move(copy));
      }
      o.ref = Operand::Ref::localVar;
      o.refId = it->second;
    });
    if (copies.empty()) continue;
    std::vector<Instruction> code;
    for (const auto& [param, local] : copies) {
      auto words = copyOf(module, f, param, local);
      code.insert(code.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
    }
    for (Instruction& in : code) in.pos = f.pos;
    // Once, when the function is entered: a jump to its first instruction comes behind them.
    std::vector<size_t> first;
    for (size_t i = 0; i < f.labels.size(); ++i)
      if (f.labels[i].instruction == 0) first.push_back(i);
    const auto n = static_cast<uint32_t>(code.size());
    insertInstructions(f, 0, std::move(code));
    for (size_t i : first) f.labels[i].instruction = n;
  }
}

}  // namespace sonde::ptx
