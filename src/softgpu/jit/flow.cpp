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

bool leavesFunction(Opcode op) { return op == Opcode::ret || op == Opcode::exit || op == Opcode::trap; }
bool endsBlock(const Instruction& in) { return in.op == Opcode::bra || in.op == Opcode::brx || leavesFunction(in.op); }

// Waiting for somebody: a read of memory that the program says may change.
bool observesOthers(const Instruction& in) {
  switch (in.op) {
    case Opcode::atom: return true;
    case Opcode::ld:
      return in.has(Mod::volatile_) || in.has(Mod::relaxed) || in.has(Mod::acquire) || in.has(Mod::mmio) ||
             in.has(Mod::cv);
    case Opcode::mbarrier: return in.has(Mod::test_wait) || in.has(Mod::try_wait);
    case Opcode::mov: {  // for time to pass: other blocks may run meanwhile
      const Operand& o = in.operands[1];
      return o.kind == Operand::Kind::special &&
             (o.special == ptx::SpecialReg::clock || o.special == ptx::SpecialReg::clock64 ||
              o.special == ptx::SpecialReg::globaltimer || o.special == ptx::SpecialReg::globaltimer_lo);
    }
    default: return false;
  }
}

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

Flow::Flow(const ptx::Module& module, const ptx::Function& function, bool isKernel)
    : module_(module), function_(function), isKernel_(isKernel) {
  syncAt_.assign(function.body.size(), false);
  analyze();
  if (!findWaitingSyncs()) return;
  blocks.clear();
  chain.clear();
  analyze();
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
      if (isWarpSync(function_.body[k])) syncAt_[k] = found = true;
  }
  return found;
}

void Flow::buildBlocks() {
  const auto& body = function_.body;
  const size_t n = body.size();
  std::vector<bool> leader(n + 1, false);
  leader[0] = true;
  for (const auto& label : function_.labels)
    if (label.instruction <= n) leader[label.instruction] = true;
  for (size_t i = 0; i < n; ++i)
    if (endsBlock(body[i])) leader[i + 1] = true;
  for (size_t i = 0; i < n; ++i)
    if (syncAt_[i]) leader[i] = true;

  std::vector<uint32_t> blockOf(n + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    if (leader[i]) {
      Block b;
      b.begin = static_cast<uint32_t>(i);
      blocks.push_back(b);
    }
    blockOf[i] = static_cast<uint32_t>(blocks.size() - 1);
    blocks.back().end = static_cast<uint32_t>(i + 1);
    blocks.back().calls |= body[i].op == Opcode::call;
  }
  // A label (or a fall-through) behind the last instruction: an empty block
  // that leaves.
  Block tail;
  tail.begin = tail.end = static_cast<uint32_t>(n);
  tail.kind = BlockEnd::leave;
  tail.leaves = true;
  blocks.push_back(tail);
  blockOf[n] = static_cast<uint32_t>(blocks.size() - 1);

  auto labelBlock = [&](uint32_t label) { return blockOf[function_.labels[label].instruction]; };
  for (size_t b = 0; b + 1 < blocks.size(); ++b) {
    Block& block = blocks[b];
    const Instruction& last = body[block.end - 1];
    const bool guarded = last.guard.reg != ptx::kNoId;
    const auto next = static_cast<uint32_t>(b + 1);
    if (last.op == Opcode::bra) {
      block.kind = BlockEnd::branch;
      block.successors.push_back(labelBlock(last.operands[0].index));
      if (guarded && block.successors[0] != next) block.successors.push_back(next);
    } else if (last.op == Opcode::brx) {
      block.kind = BlockEnd::indexed;
      const Operand& list = last.operands.back();
      for (uint32_t label : function_.branchTargets[list.refId].ids) block.successors.push_back(labelBlock(label));
      if (guarded) block.successors.push_back(next);
    } else if (leavesFunction(last.op)) {
      block.kind = BlockEnd::leave;
      block.leaves = true;
      if (guarded) block.successors.push_back(next);
    } else {
      block.successors.push_back(next);
    }
  }
}

// Topological order of the strongly connected components; within a loop the
// same again without the edges to its header. Keeps loops contiguous.
void Flow::orderBlocks() {
  const size_t n = blocks.size();
  std::vector<std::vector<uint32_t>> preds(n);
  for (uint32_t b = 0; b < n; ++b)
    for (uint32_t s : blocks[b].successors) preds[s].push_back(b);
  std::vector<uint32_t> order;
  std::vector<uint32_t> region(n, 0);  // which nodes belong to the sub-graph being ordered
  uint32_t regions = 0;

  // Iterative Tarjan, so that very long functions do not exhaust the stack.
  std::function<void(uint32_t, uint32_t)> visit = [&](uint32_t id, uint32_t header) {
    struct Frame {
      uint32_t node;
      size_t next;
      std::vector<uint32_t> succ;
    };
    std::vector<int64_t> index(n, -1), low(n, 0);
    std::vector<bool> onStack(n, false);
    std::vector<uint32_t> stack;
    std::vector<std::vector<uint32_t>> components;
    int64_t counter = 0;
    std::vector<Frame> frames;
    auto open = [&](uint32_t v) {
      index[v] = low[v] = counter++;
      stack.push_back(v);
      onStack[v] = true;
      Frame f{v, 0, {}};
      for (uint32_t s : blocks[v].successors)
        if (region[s] == id && (s != header || id == 0)) f.succ.push_back(s);
      std::sort(f.succ.rbegin(), f.succ.rend());  // later ones first: they end up behind
      frames.push_back(std::move(f));
    };
    open(header);
    while (!frames.empty()) {
      Frame& f = frames.back();
      if (f.next < f.succ.size()) {
        const uint32_t s = f.succ[f.next++];
        if (index[s] < 0)
          open(s);
        else if (onStack[s])
          low[f.node] = std::min(low[f.node], index[s]);
        continue;
      }
      const uint32_t v = f.node;
      if (low[v] == index[v]) {
        std::vector<uint32_t> c;
        for (;;) {
          const uint32_t w = stack.back();
          stack.pop_back();
          onStack[w] = false;
          c.push_back(w);
          if (w == v) break;
        }
        components.push_back(std::move(c));
      }
      const int64_t l = low[v];
      frames.pop_back();
      if (!frames.empty()) low[frames.back().node] = std::min(low[frames.back().node], l);
    }
    for (auto c = components.rbegin(); c != components.rend(); ++c) {
      if (c->size() == 1) {
        order.push_back(c->front());
        continue;
      }
      std::sort(c->begin(), c->end());
      const uint32_t sub = ++regions;
      std::vector<bool> inside(n, false);
      for (uint32_t v : *c) inside[v] = true;
      uint32_t head = c->front();
      if (inside[0]) {
        head = 0;
      } else {
        for (uint32_t v : *c) {
          const bool entered = std::any_of(preds[v].begin(), preds[v].end(), [&](uint32_t p) { return !inside[p]; });
          if (entered) {
            head = v;
            break;
          }
        }
      }
      for (uint32_t v : *c) region[v] = sub;
      visit(sub, head);
    }
  };
  visit(0, 0);

  std::vector<uint32_t> position(n, kNever);
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  std::vector<Block> ordered;
  ordered.reserve(order.size());
  for (uint32_t old : order) {
    Block b = std::move(blocks[old]);
    for (uint32_t& s : b.successors) s = position[s];
    ordered.push_back(std::move(b));
  }
  blocks = std::move(ordered);

  // The chain: behind the last block that branches back to a header, a look
  // back at that header; inner loops first.
  std::vector<uint32_t> spanEnd(blocks.size(), kNever);
  for (uint32_t b = 0; b < blocks.size(); ++b)
    for (uint32_t s : blocks[b].successors)
      if (s <= b) spanEnd[s] = spanEnd[s] == kNever ? b : std::max(spanEnd[s], b);
  std::vector<std::vector<uint32_t>> headersOf(blocks.size());  // of loops that end with this block
  for (uint32_t h = static_cast<uint32_t>(blocks.size()); h-- > 0;)
    if (spanEnd[h] != kNever) headersOf[spanEnd[h]].push_back(h);
  ownIndex_.assign(blocks.size(), 0);
  indices_.assign(blocks.size(), {});
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    ownIndex_[b] = static_cast<uint32_t>(chain.size());
    chain.push_back({b, false});
    for (const uint32_t h : headersOf[b]) chain.push_back({h, true});
  }
  for (uint32_t i = 0; i < chain.size(); ++i) indices_[chain[i].block].push_back(i);
  spinHeader.assign(blocks.size(), false);
}

void Flow::liveness() {
  const size_t registers = function_.registers.size() + 1;
  std::vector<BitSet> gen, kill;
  for (Block& b : blocks) {
    BitSet g(registers), k(registers);
    for (uint32_t i = b.begin; i < b.end; ++i) {
      const Instruction& in = function_.body[i];
      auto use = [&](size_t r) {
        if (!k.test(r)) g.set(r);
      };
      forEachUse(in, use);
      if (readsCarry(in)) use(registers - 1);
      if (in.op == Opcode::ret && !isKernel_)
        for (const auto& v : function_.returns)
          if (v.regId != ptx::kNoId) use(v.regId);
      if (in.guard.reg == ptx::kNoId) {
        forEachDef(in, [&](ptx::RegId r) { k.set(r); });
        if (writesCarry(in)) k.set(registers - 1);
      }
    }
    if (b.begin == b.end && !isKernel_)
      for (const auto& v : function_.returns)
        if (v.regId != ptx::kNoId && !k.test(v.regId)) g.set(v.regId);
    b.liveIn = g;
    gen.push_back(std::move(g));
    kill.push_back(std::move(k));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = blocks.size(); i-- > 0;) {
      Block& b = blocks[i];
      BitSet out(registers);
      for (uint32_t s : b.successors) out.merge(blocks[s].liveIn);
      changed |= b.liveIn.transfer(gen[i], out, kill[i]);
    }
  }
}

void Flow::findSpinLoops() {
  for (const Instruction& in : function_.body)
    if (in.op == Opcode::bar || in.op == Opcode::barrier || in.op == Opcode::nanosleep) mayYield = true;
  holdsBarrier.assign(blocks.size(), false);
  startsSync.assign(blocks.size(), false);
  for (size_t i = 0; i < blocks.size(); ++i)
    startsSync[i] = blocks[i].begin < blocks[i].end && syncAt_[blocks[i].begin];
  for (size_t i = 0; i < blocks.size(); ++i)
    for (uint32_t k = blocks[i].begin; k < blocks[i].end; ++k) {
      const Instruction& in = function_.body[k];
      if ((in.op == Opcode::bar || in.op == Opcode::barrier) && !in.has(ptx::Mod::warp)) holdsBarrier[i] = true;
    }
  for (uint32_t i = 0; i < chain.size(); ++i) {
    if (!chain[i].header) continue;
    const uint32_t first = chain[i].block;
    uint32_t last = first;
    for (uint32_t j = i; j-- > 0;)
      if (!chain[j].header) {
        last = chain[j].block;
        break;
      }
    // What decides about leaving the loop, and does that read shared state?
    std::vector<bool> slice(function_.registers.size(), false);
    bool sleeps = false;
    for (uint32_t b = first; b <= last; ++b) {
      if (blocks[b].end == blocks[b].begin) continue;
      const Instruction& end = function_.body[blocks[b].end - 1];
      if (end.guard.reg != ptx::kNoId && endsBlock(end)) slice[end.guard.reg] = true;
      for (uint32_t k = blocks[b].begin; k < blocks[b].end; ++k) sleeps |= function_.body[k].op == Opcode::nanosleep;
    }
    bool spins = sleeps || exec::kernelTimeLimit() != 0;
    for (bool changed = true; changed && !spins;) {
      changed = false;
      for (uint32_t b = first; b <= last && !spins; ++b)
        for (uint32_t k = blocks[b].begin; k < blocks[b].end; ++k) {
          const Instruction& in = function_.body[k];
          bool defines = in.op == Opcode::call;
          forEachDef(in, [&](ptx::RegId r) { defines |= slice[r]; });
          if (!defines) continue;
          if (observesOthers(in)) {
            spins = true;
            break;
          }
          if (in.op == Opcode::call) continue;
          forEachUse(in, [&](ptx::RegId r) {
            if (!slice[r]) slice[r] = changed = true;
          });
        }
    }
    if (spins) {
      spinHeader[first] = true;
      mayYield = true;
    }
  }
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
    if (!waitsForSpinning(b) && !waitsForMembers(b)) continue;
    if (startsSync[b]) spinning.set(b);
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
  blocks[block].pending.forEach([&](size_t h) { any |= spinHeader[h]; });
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
    if (round_.test(i)) {
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
