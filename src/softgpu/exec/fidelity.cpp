// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/fidelity.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "ptx/print.h"

namespace sonde::softgpu::exec {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;

Fidelity fidelityOf(Opcode op) {
  switch (op) {
    // Approximations: the hardware's bits are documented only as bounds.
    case Opcode::cos:
    case Opcode::ex2:
    case Opcode::lg2:
    case Opcode::rsqrt:
    case Opcode::sin:
    case Opcode::tanh:
    case Opcode::tex:
    case Opcode::tld4: return Fidelity::withinBound;
    // What they give depends on who comes first.
    case Opcode::atom: return Fidelity::orderDependent;
    case Opcode::alloca:
    case Opcode::clusterlaunchcontrol:
    case Opcode::createpolicy:
    case Opcode::getctarank:
    case Opcode::istypep:
    case Opcode::mapa:
    case Opcode::multimem:
    case Opcode::stackrestore:
    case Opcode::stacksave:
    case Opcode::sured:
    case Opcode::tcgen05:
    case Opcode::tensormap:
    case Opcode::wgmma: return Fidelity::unsupported;
    default: return Fidelity::exact;
  }
}

Fidelity fidelityOf(const Instruction& in) {
  const bool real = !in.types.empty() && ptx::isFloat(in.types[0]);
  switch (in.op) {
    case Opcode::div:
    case Opcode::rcp:
    case Opcode::sqrt: return in.has(Mod::approx) || in.has(Mod::full) ? Fidelity::withinBound : Fidelity::exact;
    case Opcode::rsqrt:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::lg2:
    case Opcode::ex2:
    case Opcode::tanh: return Fidelity::withinBound;
    // Sums of integers do not depend on the order; those of floating-point numbers do.
    case Opcode::red: return real && in.has(Mod::add) ? Fidelity::orderDependent : Fidelity::exact;
    case Opcode::cp: return in.has(Mod::bulk) ? Fidelity::unsupported : Fidelity::exact;
    default: return fidelityOf(in.op);
  }
}

const char* nameOf(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::exact: return "exact";
    case Fidelity::withinBound: return "within bound";
    case Fidelity::orderDependent: return "order-dependent";
    case Fidelity::unsupported: return "unsupported";
  }
  return "?";
}

std::string fidelityReport(const ptx::Module& module, uint32_t function) {
  std::map<Fidelity, std::map<std::string, std::pair<uint32_t, uint32_t>>> found;  // text -> count, first line
  std::set<uint32_t> seen{function};
  std::vector<uint32_t> open{function};
  while (!open.empty()) {
    const ptx::Function& f = module.functions[open.back()];
    open.pop_back();
    for (const Instruction& in : f.body) {
      if (in.op == Opcode::call && !in.operands.empty() && in.operands[0].ref == ptx::Operand::Ref::function &&
          seen.insert(in.operands[0].refId).second)
        open.push_back(in.operands[0].refId);
      const Fidelity fidelity = fidelityOf(in);
      if (fidelity == Fidelity::exact) continue;
      auto& entry = found[fidelity][ptx::mnemonicText(in, module)];
      if (entry.first++ == 0) entry.second = in.pos.line;
    }
  }
  std::string text = fmt::format("fidelity of kernel '{}':", module.functions[function].name);
  if (found.empty()) return text + " exact";
  for (const auto& [fidelity, instructions] : found) {
    text += fmt::format("{} {}:", &fidelity == &found.begin()->first ? "" : ";", nameOf(fidelity));
    bool first = true;
    for (const auto& [mnemonic, entry] : instructions) {
      text += fmt::format("{} {} ({} at PTX line {}{})", first ? "" : ",", mnemonic, entry.first, entry.second,
                          entry.first > 1 ? " first" : "");
      first = false;
    }
  }
  return text;
}

}  // namespace sonde::softgpu::exec
