// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/flow.h"

#include <algorithm>
#include <functional>

#include "ptx/defuse.h"
#include "softgpu/exec/time_limit.h"

namespace sonde::softgpu::jit {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::StateSpace;

namespace {

// Lanes wait here for the members of the last operand.
bool isWarpSync(const Instruction& in) {
  if (in.guard.reg != ptx::kNoId) return false;
  switch (in.op) {
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect: return in.has(Mod::sync);
    case Opcode::bar: return in.has(Mod::warp);
    default: return false;
  }
}

}  // namespace

Flow::Flow(const ptx::Function& function, bool isKernel, const CalleeTraits& callees)
    : function_(function), isKernel_(isKernel), callees_(callees) {
  syncAt_.assign(function.body.size(), false);
  callAt_.assign(function.body.size(), false);
  for (;;) {
    analyze();
    const bool syncs = findWaitingSyncs(), calls = findWaitingCalls();
    if (!syncs && !calls) return;
    blocks.clear();
    chain.clear();
  }
}

void Flow::analyze() {
  varying_.assign(function_.registers.size() + 1, false);
  // What comes from a caller and goes back to it in registers is one value for each lane.
  for (const auto* list : {&function_.params, &function_.returns})
    for (const ptx::Variable& v : *list)
      if (v.regId != ptx::kNoId) varying_[v.regId] = true;
  buildBlocks();
  orderBlocks();
  liveness();
  findSpinLoops();
  solve();
}

// Calls that may wait while lanes are elsewhere: those may be what they wait for. Marks the instructions.
bool Flow::findWaitingCalls() {
  bool found = false;
  for (const Block& b : blocks) {
    if (!b.calls || !b.pending.any()) continue;
    for (uint32_t k = b.begin; k < b.end; ++k) {
      const Instruction& in = function_.body[k];
      if (in.op == Opcode::call && in.guard.reg == ptx::kNoId && !callAt_[k] && callees_.callWaits(in))
        callAt_[k] = found = true;
    }
  }
  return found;
}

// Where lanes at a .sync instruction may have to wait for others: those that go
// round a spin loop, and those that come to a .sync instruction of their own on
// a way that has not joined this one. Marks the instructions.
bool Flow::findWaitingSyncs() {
  const size_t n = blocks.size();
  std::vector<bool> syncs(n, false);
  bool candidate = false;
  for (size_t b = 0; b < n; ++b)
    for (uint32_t k = blocks[b].begin; k < blocks[b].end; ++k)
      if (isWarpSync(function_.body[k])) {
        syncs[b] = true;
        candidate |= blocks[b].pending.any();
      }
  if (!candidate) return false;
  // Post-dominators; ways out of the kernel end nothing here.
  std::vector<BitSet> after(n, BitSet(n));
  for (size_t b = 0; b < n; ++b) {
    if (blocks[b].successors.empty())
      after[b].set(b);
    else
      for (size_t i = 0; i < n; ++i) after[b].set(i);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = n; b-- > 0;) {
      if (blocks[b].successors.empty()) continue;
      BitSet common = after[blocks[b].successors[0]];
      for (uint32_t s : blocks[b].successors) common.intersect(after[s]);
      common.set(b);
      if (common.count() != after[b].count()) {
        after[b] = common;
        changed = true;
      }
    }
  }
  bool found = false;
  for (size_t b = 0; b < n; ++b) {
    if (!syncs[b] || !blocks[b].pending.any()) continue;
    BitSet seen(n);
    std::vector<uint32_t> work;
    bool waits = false;
    blocks[b].pending.forEach([&](size_t y) {
      waits |= spinHeader[y];
      if (!after[b].test(y) && seen.insert(y)) work.push_back(static_cast<uint32_t>(y));
    });
    while (!waits && !work.empty()) {
      const uint32_t y = work.back();
      work.pop_back();
      waits |= syncs[y];
      for (uint32_t s : blocks[y].successors)
        if ((s == b || !after[b].test(s)) && seen.insert(s)) work.push_back(s);
    }
    if (!waits) continue;
    for (uint32_t k = blocks[b].begin; k < blocks[b].end; ++k)
      if (isWarpSync(function_.body[k]) && !syncAt_[k]) syncAt_[k] = found = true;
  }
  return found;
}

uint32_t Flow::occurrence(uint32_t from, uint32_t block) const {
  for (uint32_t i : indices_[block])
    if (i > ownIndex_[from]) return i;
  return static_cast<uint32_t>(chain.size()) + indices_[block].front();
}

bool Flow::directJump(uint32_t from, uint32_t to) const {
  const Block& b = blocks[from];
  if (b.convergent()) return true;
  if (to <= from && spinHeader[to]) return false;
  const uint32_t target = occurrence(from, to);
  bool direct = true;
  b.pending.forEach([&](size_t y) {
    if (y != to && occurrence(from, static_cast<uint32_t>(y)) < target) direct = false;
  });
  return direct;
}

bool Flow::addWaiting(uint32_t block, const BitSet& lanes) {
  if (!blocks[block].pending.merge(lanes)) return false;
  dirty_[block] = true;
  return true;
}

// Lanes wait at all of `waiting`, and the next to run is the first in the chain behind `from`. The headers in round_
// know of each other: only the rest is looked at one by one.
void Flow::propagateChain(uint32_t from, const BitSet& waiting) {
  BitSet known = waiting, rest = waiting;
  known.intersect(round_);
  rest.remove(round_);
  std::vector<std::pair<uint32_t, uint32_t>> order;
  rest.forEach([&](size_t b) {
    order.emplace_back(occurrence(from, static_cast<uint32_t>(b)), static_cast<uint32_t>(b));
    pendable[b] = true;
  });
  std::sort(order.begin(), order.end());
  // Whoever runs first leaves those behind it waiting. A spin loop that has used up its budget is passed by with lanes
  // waiting at its header.
  BitSet behind(blocks.size()), spinning(blocks.size());
  bool anySpins = false;
  auto add = [&](uint32_t to, const BitSet& set) {
    if (!set.test(to)) {
      addWaiting(to, set);
      return;
    }
    BitSet s = set;
    s.reset(to);
    addWaiting(to, s);
  };
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    add(it->second, behind);
    behind.set(it->second);
  }
  for (const auto& [index, b] : order) {
    if (anySpins) add(b, spinning);
    add(b, known);
    if (spinHeader[b]) {
      spinning.set(b);
      anySpins = true;
    }
  }
  if (order.empty()) return;
  known.forEach([&](size_t h) {
    const uint32_t at = occurrence(from, static_cast<uint32_t>(h));
    for (const auto& [index, b] : order) {
      if (index < at && !spinHeader[b]) continue;
      if (blocks[h].pending.insert(b)) dirty_[h] = true;
    }
  });
}

bool Flow::propagate() {
  bool changed = false;
  BitSet spinning(blocks.size());
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    if (!dirty_[b]) continue;
    dirty_[b] = false;
    changed = true;
    Block& block = blocks[b];
    if (block.divergentEnd || (block.leaves && block.successors.empty())) {
      BitSet waiting = block.pending;
      for (uint32_t s : block.successors) waiting.set(s);
      waiting.forEach([&](size_t h) {
        if (spinHeader[h]) spinning.set(h);
      });
      propagateChain(b, waiting);
      continue;
    }
    // All lanes may leave here, or inside a function called here.
    if (block.leaves || block.calls) propagateChain(b, block.pending);
    for (uint32_t s : block.successors) {
      BitSet waiting = block.pending;
      if (directJump(b, s)) {
        waiting.reset(s);
        addWaiting(s, waiting);
      } else {
        waiting.set(s);
        if (spinHeader[s]) spinning.set(s);
        propagateChain(b, waiting);
      }
    }
  }
  // Lanes held at a barrier go round the chain with whoever else waits.
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    const bool parts = waitsForMembers(b) || waitsForCall(b);
    if (!waitsForSpinning(b) && !parts) continue;
    if (parts) {
      spinning.set(b);
      // Some of the lanes there go on, and others stay.
      if (blocks[b].pending.insert(b)) dirty_[b] = changed = true;
    }
    pendable[b] = true;
    BitSet waiting = blocks[b].pending;
    waiting.set(b);
    waiting.forEach([&](size_t x) {
      BitSet others = waiting;
      others.reset(x);
      changed |= addWaiting(static_cast<uint32_t>(x), others);
    });
  }
  // Round again from the top with only spinning loops left.
  if (round_.merge(spinning)) {
    round_.forEach([&](size_t h) {
      BitSet others = round_;
      others.reset(h);
      changed |= addWaiting(static_cast<uint32_t>(h), others);
      pendable[h] = true;
    });
  }
  return changed;
}

bool Flow::waitsForSpinning(uint32_t block) const {
  if (!holdsBarrier[block]) return false;
  bool any = false;
  blocks[block].pending.forEach([&](size_t h) { any |= mayRotate(h); });
  return any;
}

bool Flow::operandUniform(const Operand& o) const {
  switch (o.kind) {
    case Operand::Kind::reg: return !varying_[o.reg];
    case Operand::Kind::special:
      switch (o.special) {
        case ptx::SpecialReg::tid:
        case ptx::SpecialReg::laneid:
        case ptx::SpecialReg::lanemask_eq:
        case ptx::SpecialReg::lanemask_le:
        case ptx::SpecialReg::lanemask_lt:
        case ptx::SpecialReg::lanemask_ge:
        case ptx::SpecialReg::lanemask_gt: return false;
        default: return true;
      }
    case Operand::Kind::address: return o.reg == ptx::kNoId || !varying_[o.reg];
    default:
      for (const Operand& e : o.elements)
        if (!operandUniform(e)) return false;
      return true;
  }
}

bool Flow::sourcesUniform(const Instruction& in) const {
  for (size_t i = destinationCount(in); i < in.operands.size(); ++i)
    if (!operandUniform(in.operands[i])) return false;
  if (readsCarry(in) && varying_[function_.registers.size()]) return false;
  return true;
}

bool Flow::resultVarying(const Instruction& in) const {
  switch (in.op) {
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
    case Opcode::alloca: return true;
    case Opcode::activemask: return false;
    case Opcode::vote:
    case Opcode::redux:
      // One value for all when all name the same members; the voted predicate
      // or value itself does not matter.
      return !operandUniform(in.operands.back());
    case Opcode::bar:
    case Opcode::barrier: return false;
    case Opcode::ld:
    case Opcode::ldu: {
      const Operand& address = in.operands[1];
      if (in.space == StateSpace::local) return true;
      const bool entryParam = isKernel_ && address.ref == Operand::Ref::param;
      if ((in.space == StateSpace::param || in.space == StateSpace::paramFunc || in.space == StateSpace::paramEntry) &&
          !entryParam && address.reg == ptx::kNoId)
        return true;  // a call's argument or result
      return !operandUniform(address);
    }
    case Opcode::cvta:
      if (in.space == StateSpace::local && !in.has(Mod::to)) return true;
      return !sourcesUniform(in);
    default: return !sourcesUniform(in);
  }
}

bool Flow::spreadVarying() {
  bool changed = false;
  auto mark = [&](size_t r) {
    if (!varying_[r]) varying_[r] = changed = true;
  };
  for (Block& b : blocks) {
    for (uint32_t i = b.begin; i < b.end; ++i) {
      const Instruction& in = function_.body[i];
      const bool varying = !guardUniform(in) || resultVarying(in);
      auto define = [&](size_t r) {
        if (varying || b.liveElsewhere.test(r)) mark(r);
      };
      forEachDef(in, define);
      if (writesCarry(in)) define(function_.registers.size());
    }
    if (b.end == b.begin || b.divergentEnd) continue;
    const Instruction& last = function_.body[b.end - 1];
    bool divergent = false;
    if (b.kind == BlockEnd::indexed)
      divergent = !guardUniform(last) || !operandUniform(last.operands[0]);
    else if (b.kind != BlockEnd::fallThrough && !b.successors.empty())
      divergent = !guardUniform(last);
    if (divergent) b.divergentEnd = changed = true;
  }
  return changed;
}

void Flow::solve() {
  const size_t registers = function_.registers.size() + 1;
  pendable.assign(blocks.size(), false);
  for (Block& b : blocks) {
    b.pending = BitSet(blocks.size());
    b.liveElsewhere = BitSet(registers);
  }
  round_ = BitSet(blocks.size());
  for (bool changed = true; changed;) {
    // Divergence found since the last time changes what the blocks themselves do.
    dirty_.assign(blocks.size(), true);
    while (propagate()) {
    }
    addLiveElsewhere();
    changed = false;
    while (spreadVarying()) changed = true;
  }
}

void Flow::addLiveElsewhere() {
  // What is alive at the headers that all may wait at once, and what at more than one of them: the union for a block
  // that is one of the headers leaves out its own.
  const size_t registers = function_.registers.size() + 1;
  BitSet once(registers), twice(registers);
  round_.forEach([&](size_t h) {
    BitSet again = blocks[h].liveIn;
    again.intersect(once);
    twice.merge(again);
    once.merge(blocks[h].liveIn);
  });
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    Block& b = blocks[i];
    BitSet known = round_;
    if (known.test(i)) known.reset(i);
    const auto add = [&](size_t y) { b.liveElsewhere.merge(blocks[y].liveIn); };
    if (!b.pending.contains(known)) {
      b.pending.forEach(add);
      continue;
    }
    BitSet live = once;
    if (round_.test(i) && !b.pending.test(i)) {
      live.remove(b.liveIn);
      live.merge(twice);
    }
    b.liveElsewhere.merge(live);
    BitSet rest = b.pending;
    rest.remove(round_);
    rest.forEach(add);
  }
}

uint32_t Flow::maxLiveRegisters() const {
  const size_t registers = function_.registers.size();
  auto words = [&](size_t r) -> uint32_t {
    if (r >= registers) return 0;
    const auto& reg = function_.registers[r];
    const unsigned bits = ptx::bitsOf(reg.type);
    return bits <= 1 ? 0 : (bits + 31) / 32 * reg.vector;
  };
  uint32_t best = 0;
  for (const Block& b : blocks) {
    BitSet live(registers + 1);
    uint32_t now = 0;
    auto set = [&](size_t r) {
      if (live.insert(r)) now += words(r);
    };
    for (uint32_t s : b.successors) blocks[s].liveIn.forEach(set);
    best = std::max(best, now);
    for (uint32_t i = b.end; i-- > b.begin;) {
      const Instruction& in = function_.body[i];
      if (in.guard.reg == ptx::kNoId)
        forEachDef(in, [&](ptx::RegId r) {
          if (live.test(r)) {
            live.reset(r);
            now -= words(r);
          }
        });
      forEachUse(in, set);
      best = std::max(best, now);
    }
  }
  return best;
}

}  // namespace sonde::softgpu::jit
