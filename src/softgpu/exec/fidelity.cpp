// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/fidelity.h"

#include <map>
#include <set>

namespace sonde::softgpu::exec {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;

OpcodeFidelity fidelityOf(Opcode opcode) {
  using enum Fidelity;
  switch (opcode) {
    // Not there.
    case Opcode::wgmma: return {unsupported, "use mma.sync"};
    case Opcode::tcgen05: return {unsupported, "use mma.sync"};
    case Opcode::multimem: return {unsupported, "no multicast objects"};
    case Opcode::clusterlaunchcontrol: return {unsupported, ""};
    case Opcode::sured: return {unsupported, ""};
    case Opcode::istypep: return {unsupported, "of texture references"};

    // Approximations.
    case Opcode::cos:
    case Opcode::sin:
    case Opcode::ex2:
    case Opcode::lg2:
    case Opcode::rsqrt:
    case Opcode::tanh: return {withinBound, "docs/ARITHMETIC.md"};
    case Opcode::rcp:
    case Opcode::sqrt: return {exact, ".approx: within bound"};
    case Opcode::div: return {exact, ".approx and .full: within bound"};
    case Opcode::tex:
    case Opcode::tld4: return {withinBound, "filters with 8-bit fractions"};

    // What other threads do first is left open.
    case Opcode::atom: return {orderDependent, "the old value; sums of floating-point numbers also in memory"};
    case Opcode::red: return {exact, "sums of floating-point numbers: order-dependent"};
    case Opcode::activemask: return {orderDependent, "lanes meet again as early as they can"};

    // Forms that are missing.
    case Opcode::cvt: return {exact, ".rs (stochastic rounding): unsupported"};
    case Opcode::mma: return {exact, "bit for bit as an H200; .sp and .block_scale: unsupported"};
    case Opcode::wmma: return {exact, "fragments have a layout of our own"};
    case Opcode::cp:
      return {exact,
              "done when issued; im2col::w, .cp_mask, .ignore_oob and .cta_group: unsupported; "
              "reductions of floating-point numbers: order-dependent"};
    case Opcode::mov: return {exact, "%clock and %globaltimer read the host's clock"};

    // Nothing to see of them.
    case Opcode::applypriority:
    case Opcode::createpolicy:
    case Opcode::discard:
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::setmaxnreg: return {exact, "no effect"};
    case Opcode::griddepcontrol: return {exact, "no effect: grids of a stream do not overlap"};
    case Opcode::nanosleep: return {exact, "lets other warps run; takes no time"};
    case Opcode::mbarrier: return {exact, "the object has an encoding of our own"};
    case Opcode::tensormap: return {exact, "of maps made by cuTensorMapEncode*; no interleaved layouts"};
    case Opcode::pmevent: return {exact, "counted"};
    case Opcode::brkpt: return {exact, "ends the kernel: there is no debugger"};
    default: return {};
  }
}

Fidelity fidelityOf(const Instruction& in) {
  using enum Fidelity;
  const Fidelity plain = fidelityOf(in.op).fidelity;
  if (plain == unsupported) return plain;
  const ScalarType t = in.type();
  switch (in.op) {
    case Opcode::rcp:
    case Opcode::sqrt:
    case Opcode::div: return in.has(Mod::approx) || in.has(Mod::full) ? withinBound : exact;
    case Opcode::red: return ptx::isFloat(t) && in.has(Mod::add) ? orderDependent : exact;
    case Opcode::cp: return in.has(Mod::reduce) && (in.has(Mod::tensor) || ptx::isFloat(t)) ? orderDependent : exact;
    case Opcode::mma:
      return in.has(Mod::sp) || in.has(Mod::sp_ordered_metadata) || in.has(Mod::block_scale) ? unsupported : exact;
    case Opcode::mov:
      for (const Operand& o : in.operands)
        if (o.kind == Operand::Kind::special) switch (o.special) {
            case ptx::SpecialReg::clock:
            case ptx::SpecialReg::clock_hi:
            case ptx::SpecialReg::clock64:
            case ptx::SpecialReg::globaltimer:
            case ptx::SpecialReg::globaltimer_lo:
            case ptx::SpecialReg::globaltimer_hi: return orderDependent;
            default: break;
          }
      return exact;
    case Opcode::cvt: return in.has(Mod::rs) ? unsupported : exact;
    default: return plain;
  }
}

const char* name(Fidelity f) {
  switch (f) {
    case Fidelity::exact: return "exact";
    case Fidelity::withinBound: return "within bound";
    case Fidelity::orderDependent: return "order-dependent";
    case Fidelity::unsupported: return "unsupported";
  }
  return "";
}

std::string fidelityReport(const ptx::Module& module, uint32_t kernel) {
  std::set<uint32_t> seen{kernel};
  std::vector<uint32_t> functions{kernel};
  std::map<std::string, std::pair<const Instruction*, uint64_t>> found;
  for (size_t i = 0; i < functions.size(); ++i)
    for (const Instruction& in : module.functions[functions[i]].body) {
      std::string mnemonic =
          in.mnemonic < module.mnemonics.size() ? module.mnemonics[in.mnemonic] : std::string(ptx::name(in.op));
      // Which register decides about these.
      if (in.op == Opcode::mov && fidelityOf(in) != Fidelity::exact) mnemonic += " of a clock";
      auto& entry = found[mnemonic];
      if (!entry.first) entry.first = &in;
      ++entry.second;
      if (in.op == Opcode::call && !in.operands.empty() && in.operands[0].ref == Operand::Ref::function &&
          seen.insert(in.operands[0].refId).second)
        functions.push_back(in.operands[0].refId);
    }
  std::string text;
  for (const auto& [mnemonic, entry] : found)
    text += module.functions[kernel].name + "\t" + name(fidelityOf(*entry.first)) + "\t" +
            std::to_string(entry.second) + "\t" + mnemonic + "\t" + fidelityOf(entry.first->op).remark + "\n";
  return text;
}

}  // namespace sonde::softgpu::exec
