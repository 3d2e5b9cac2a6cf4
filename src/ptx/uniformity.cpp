// SPDX-License-Identifier: Apache-2.0
#include "ptx/uniformity.h"

#include "ptx/defuse.h"

namespace sonde::ptx {
namespace {

bool laneDependent(const Operand& o) {
  switch (o.special) {
    case SpecialReg::tid:
    case SpecialReg::laneid:
    case SpecialReg::lanemask_eq:
    case SpecialReg::lanemask_le:
    case SpecialReg::lanemask_lt:
    case SpecialReg::lanemask_ge:
    case SpecialReg::lanemask_gt: return true;
    default: return false;
  }
}

}  // namespace

Uniformity::Uniformity(const Module&, const Function& f, const Cfg& cfg, const Liveness& liveness)
    : function_(f),
      cfg_(cfg),
      liveness_(liveness),
      varying_(f.registers.size(), false),
      divergent_(cfg.blocks().size(), false) {
  for (const auto& p : f.params)
    if (p.regId != kNoId) varying_[p.regId] = true;
  while (spread()) {
  }
}

bool Uniformity::uniform(const Operand& o) const {
  switch (o.kind) {
    case Operand::Kind::reg:
    case Operand::Kind::address: return o.reg == kNoId || !varying_[o.reg];
    case Operand::Kind::special: return !laneDependent(o);
    case Operand::Kind::symbol:
      // Local memory is each lane's own, though its address has one name.
      return o.ref != Operand::Ref::localVar || function_.variables[o.refId].space != StateSpace::local;
    default:
      for (const auto& e : o.elements)
        if (!uniform(e)) return false;
      return true;
  }
}

bool Uniformity::sourcesUniform(const Instruction& i) const {
  for (size_t k = destinationCount(i); k < i.operands.size(); ++k)
    if (!uniform(i.operands[k])) return false;
  return !readsCarry(i) || !carryVarying_;
}

bool Uniformity::resultVarying(const Instruction& i) const {
  switch (i.op) {
    case Opcode::atom:
    case Opcode::match:
    case Opcode::shfl:
    case Opcode::call:
    case Opcode::mbarrier:
    case Opcode::tex:
    case Opcode::tld4:
    case Opcode::suld:
    case Opcode::wmma:
    case Opcode::mma:
    case Opcode::ldmatrix:
    case Opcode::movmatrix:
    case Opcode::wgmma:
    case Opcode::elect:
    case Opcode::alloca:
    case Opcode::tcgen05:
    case Opcode::stacksave: return true;
    case Opcode::activemask:
    case Opcode::bar:
    case Opcode::barrier: return false;
    case Opcode::vote:
    case Opcode::redux:
      // One answer for all lanes that name the same members.
      return i.has(Mod::sync) && !uniform(i.operands.back());
    case Opcode::ld:
    case Opcode::ldu: {
      const Operand& address = i.operands[1];
      if (i.space == StateSpace::local) return true;
      if (i.has(Mod::volatile_) || i.has(Mod::relaxed) || i.has(Mod::acquire) || i.has(Mod::mmio)) return true;
      if (i.space == StateSpace::param || i.space == StateSpace::paramFunc || i.space == StateSpace::paramEntry) {
        const bool kernelParameter =
            function_.isKernel && (address.ref == Operand::Ref::param || i.space == StateSpace::paramEntry);
        if (!kernelParameter && address.reg == kNoId) return true;
      }
      if (address.ref == Operand::Ref::localVar && function_.variables[address.refId].space == StateSpace::local)
        return true;
      return !uniform(address);
    }
    case Opcode::cvta:
      if (i.space == StateSpace::local && !i.has(Mod::to)) return true;
      return !sourcesUniform(i);
    default: return !sourcesUniform(i);
  }
}

bool Uniformity::mark(RegId r) {
  if (varying_[r]) return false;
  varying_[r] = true;
  return true;
}

bool Uniformity::endDiverges(uint32_t block) const {
  const BasicBlock& b = cfg_.blocks()[block];
  if (b.begin == b.end) return false;
  const Instruction& last = function_.body[b.end - 1];
  if (last.op == Opcode::brx) return !guardUniform(last) || !uniform(last.operands[0]);
  if (last.op == Opcode::bra) return b.successors.size() > 1 && !guardUniform(last);
  // A guarded ret or exit takes lanes away; those that stay agree on everything they agreed on before.
  return false;
}

bool Uniformity::spread() {
  bool changed = false;
  for (const uint32_t b : cfg_.order()) {
    const BasicBlock& block = cfg_.blocks()[b];
    for (uint32_t k = block.begin; k < block.end; ++k) {
      const Instruction& i = function_.body[k];
      if (guardUniform(i) && !resultVarying(i)) continue;
      forEachDef(i, [&](RegId r) { changed |= mark(r); });
      if (writesCarry(i) && !carryVarying_) carryVarying_ = changed = true;
    }
    if (!divergent_[b] && endDiverges(b)) {
      divergent_[b] = changed = true;
      separate(b);
    }
  }
  return changed;
}

// Lanes go different ways from here to the post-dominator. A register written on the way and read where ways join
// may differ between them.
void Uniformity::separate(uint32_t branch) {
  const auto& blocks = cfg_.blocks();
  const uint32_t join = cfg_.postDominator(branch);
  std::vector<bool> in(blocks.size(), false);
  std::vector<uint32_t> region;
  auto add = [&](uint32_t b) {
    if (b == join || in[b]) return;
    in[b] = true;
    region.push_back(b);
  };
  for (const uint32_t s : blocks[branch].successors) add(s);
  for (size_t next = 0; next < region.size(); ++next)
    for (const uint32_t s : blocks[region[next]].successors) add(s);
  BitSet needed(function_.registers.size());
  if (join != kNoId) needed.merge(liveness_.liveIn(join));
  for (const uint32_t b : region)
    if (blocks[b].predecessors.size() > 1) needed.merge(liveness_.liveIn(b));
  bool carry = false;
  for (const uint32_t b : region)
    for (uint32_t k = blocks[b].begin; k < blocks[b].end; ++k) {
      forEachDef(function_.body[k], [&](RegId r) {
        if (needed.test(r)) mark(r);
      });
      carry |= writesCarry(function_.body[k]);
    }
  carryVarying_ |= carry;
}

}  // namespace sonde::ptx
