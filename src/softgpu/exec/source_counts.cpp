// SPDX-License-Identifier: Apache-2.0
//
// What the slots of a source-level run mean, instruction by instruction.
#include <algorithm>

#include "softgpu/exec/program_impl.h"
#include "softgpu/jit/instruction_class.h"

namespace sonde::softgpu::exec {

using ptx::Instruction;
using ptx::Opcode;
using ptx::StateSpace;

namespace {

// Of one thread; of matrices its share.
uint16_t accessBytes(const Instruction& in) {
  const auto registers = [](const ptx::Operand& o) { return o.elements.empty() ? size_t{1} : o.elements.size(); };
  switch (in.op) {
    case Opcode::cp: return in.operands.size() > 2 ? static_cast<uint16_t>(in.operands[2].imm) : 0;
    case Opcode::ldmatrix: return static_cast<uint16_t>(4 * registers(in.operands[0]));
    case Opcode::stmatrix: return static_cast<uint16_t>(4 * registers(in.operands[1]));
    case Opcode::wmma: return static_cast<uint16_t>(4 * registers(in.operands[in.has(ptx::Mod::store) ? 1 : 0]));
    default: return static_cast<uint16_t>(ptx::bitsOf(in.type()) / 8 * in.vectorWidth);
  }
}

}  // namespace

std::string_view ProgramImpl::functionName(uint32_t function) const {
  return function < module_.functions.size() ? std::string_view(module_.functions[function].name) : std::string_view();
}

uint32_t ProgramImpl::kernelOf(uint32_t function) const {
  const auto found = std::find(kernelFunctions_.begin(), kernelFunctions_.end(), function);
  return static_cast<uint32_t>(found - kernelFunctions_.begin());
}

void ProgramImpl::describe(const jit::CounterPlan& plan, const std::vector<uint64_t>& slots,
                           std::vector<InstructionCount>& out) const {
  const size_t first = out.size();
  for (const jit::CounterSite& site : plan.sites) {
    if (slots[site.warps] == 0 || site.function >= module_.functions.size()) continue;
    const ptx::Function& function = module_.functions[site.function];
    if (site.instruction >= function.body.size()) continue;
    const Instruction& in = function.body[site.instruction];
    InstructionCount& c = out.emplace_back();
    c.function = site.function;
    c.index = site.instruction;
    c.ptxLine = in.pos.line;
    if (in.loc < module_.locations.size()) {
      const ptx::Location& loc = module_.locations[in.loc];
      for (const auto& file : module_.files)
        if (file.index == loc.file) c.file = file.path;
      c.line = loc.line;
    }
    c.recordClass = static_cast<uint8_t>(jit::recordClass(in, function.isKernel));
    c.executed = slots[site.warps];
    c.threads = slots[site.threads];
    c.onThreads = slots[site.onThreads];
    c.isBranch = in.op == Opcode::bra || in.op == Opcode::brx;
    if (site.diverged) c.diverged = slots[site.diverged];
    if (!site.access) continue;
    const uint32_t kind = site.what & 7;
    c.access = static_cast<uint8_t>(kind + 1);
    c.cached = (kind == 0 || kind == jit::kCopySite) && !(site.what & 8);
    c.accessBytes = accessBytes(in);
    auto at = [&](uint32_t which) { return slots[site.access + which]; };
    auto known = [&](uint32_t transactions) {
      return InstructionCount::Traffic{slots[site.onWarps], c.onThreads, at(transactions), at(transactions + 1)};
    };
    const bool named = in.op == Opcode::ld || in.op == Opcode::ldu || in.op == Opcode::st || in.op == Opcode::atom ||
                       in.op == Opcode::red;
    switch (named ? in.space : StateSpace::none) {
      case StateSpace::global: c.global = known(jit::kGlobalTransactions); break;
      case StateSpace::shared:
      case StateSpace::sharedCta: c.shared = known(jit::kSharedTransactions); break;
      default:
        c.global = {at(jit::kGlobalRequests), at(jit::kGlobalThreads), at(jit::kGlobalTransactions),
                    at(jit::kGlobalIdeal)};
        c.shared = {at(jit::kSharedRequests), at(jit::kSharedThreads), at(jit::kSharedTransactions),
                    at(jit::kSharedIdeal)};
        break;
    }
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), [](const auto& a, const auto& b) {
    return a.function != b.function ? a.function < b.function : a.index < b.index;
  });
}

}  // namespace sonde::softgpu::exec
