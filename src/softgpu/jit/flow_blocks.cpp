// SPDX-License-Identifier: Apache-2.0
//
// Blocks, their order and what is alive in them; loops that wait for others.
#include <algorithm>
#include <functional>

#include "ptx/defuse.h"
#include "softgpu/exec/time_limit.h"
#include "softgpu/jit/flow.h"

namespace sonde::softgpu::jit {

using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::StateSpace;

namespace {

bool leavesFunction(Opcode op) { return op == Opcode::ret || op == Opcode::exit || op == Opcode::trap; }
bool endsBlock(const Instruction& in) { return in.op == Opcode::bra || in.op == Opcode::brx || leavesFunction(in.op); }

bool isBlockBarrier(const Instruction& in) {
  return (in.op == Opcode::bar || in.op == Opcode::barrier) && !in.has(Mod::warp);
}

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

}  // namespace

CalleeTraits calleeTraits(const ptx::Module& module, const std::vector<uint32_t>& functions,
                          const std::vector<uint32_t>& indirect) {
  CalleeTraits t;
  if (functions.size() < 2) return t;
  t.observes.assign(module.functions.size(), false);
  t.waits = t.observes;
  std::vector<bool> loops = t.observes;
  for (const uint32_t f : functions) {
    const ptx::Function& function = module.functions[f];
    for (size_t i = 0; i < function.body.size(); ++i) {
      const Instruction& in = function.body[i];
      if (observesOthers(in) || in.op == Opcode::nanosleep) t.observes[f] = true;
      const auto back = [&](uint32_t label) { loops[f] = loops[f] || function.labels[label].instruction <= i; };
      if (in.op == Opcode::bra) back(in.operands[0].index);
      if (in.op == Opcode::brx)
        for (uint32_t label : function.branchTargets[in.operands.back().refId].ids) back(label);
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    const auto learn = [&](std::vector<bool>& list, size_t f, bool value) {
      if (value && !list[f]) list[f] = changed = true;
    };
    for (const uint32_t f : functions) {
      for (const Instruction& in : module.functions[f].body)
        if (in.op == Opcode::call) {
          learn(t.observes, f, t.callObserves(in));
          learn(t.waits, f, t.callWaits(in));
        }
      learn(t.waits, f, loops[f] && t.observes[f]);
    }
    for (const uint32_t f : indirect) {
      if (t.observes[f] && !t.indirectObserves) t.indirectObserves = changed = true;
      if (t.waits[f] && !t.indirectWaits) t.indirectWaits = changed = true;
    }
  }
  return t;
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
    if (syncAt_[i] || callAt_[i]) leader[i] = true;
  // Lanes at a block's start wait for others if it has a barrier: not where that would hold up a call.
  if (std::find(callAt_.begin(), callAt_.end(), true) != callAt_.end())
    for (size_t i = 0; i < n; ++i)
      if (isBlockBarrier(body[i])) leader[i] = true;

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
  startsCall.assign(blocks.size(), false);
  timedInstructions.assign(blocks.size(), 0);
  for (size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i].begin < blocks[i].end) {
      startsSync[i] = syncAt_[blocks[i].begin];
      startsCall[i] = callAt_[blocks[i].begin];
    }
  for (size_t i = 0; i < blocks.size(); ++i)
    for (uint32_t k = blocks[i].begin; k < blocks[i].end; ++k) {
      const Instruction& in = function_.body[k];
      if (isBlockBarrier(in)) holdsBarrier[i] = true;
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
    std::vector<bool> cells(function_.variables.size(), false);  // parameters of calls, the same
    bool sleeps = false;
    for (uint32_t b = first; b <= last; ++b) {
      if (blocks[b].end == blocks[b].begin) continue;
      const Instruction& end = function_.body[blocks[b].end - 1];
      if (end.guard.reg != ptx::kNoId && endsBlock(end)) slice[end.guard.reg] = true;
      for (uint32_t k = blocks[b].begin; k < blocks[b].end; ++k) sleeps |= function_.body[k].op == Opcode::nanosleep;
    }
    bool spins = sleeps;
    for (bool changed = true; changed && !spins;) {
      changed = false;
      for (uint32_t b = first; b <= last && !spins; ++b)
        for (uint32_t k = blocks[b].begin; k < blocks[b].end; ++k) {
          const Instruction& in = function_.body[k];
          bool defines = false;
          forEachDef(in, [&](ptx::RegId r) { defines |= slice[r]; });
          for (const Operand& r : in.callReturns) defines |= r.ref == Operand::Ref::localVar && cells[r.refId];
          if (!defines) continue;
          if (observesOthers(in) || (in.op == Opcode::call && callees_.callObserves(in))) {
            spins = true;
            break;
          }
          if (in.op == Opcode::call) continue;
          if (in.op == Opcode::ld && in.operands[1].ref == Operand::Ref::localVar && !cells[in.operands[1].refId])
            cells[in.operands[1].refId] = changed = true;
          forEachUse(in, [&](ptx::RegId r) {
            if (!slice[r]) slice[r] = changed = true;
          });
        }
    }
    if (spins) {
      spinHeader[first] = true;
      mayYield = true;
    } else if (exec::kernelTimeLimit() != 0) {
      for (uint32_t b = first; b <= last; ++b) timedInstructions[first] += blocks[b].end - blocks[b].begin;
    }
  }
}

}  // namespace sonde::softgpu::jit
