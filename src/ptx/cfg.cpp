// SPDX-License-Identifier: Apache-2.0
#include "ptx/cfg.h"

#include <algorithm>
#include <unordered_map>

namespace sonde::ptx {
namespace {

bool leavesFunction(Opcode op) { return op == Opcode::ret || op == Opcode::exit || op == Opcode::trap; }

bool endsBlock(Opcode op) { return op == Opcode::bra || op == Opcode::brx || leavesFunction(op); }

// Cooper, Harvey and Kennedy's algorithm. `order`: reverse post-order positions; node 0 of it is the root.
std::vector<uint32_t> immediateDominators(const std::vector<uint32_t>& order, const std::vector<uint32_t>& index,
                                          const std::vector<std::vector<uint32_t>>& predecessors) {
  std::vector<uint32_t> idom(index.size(), kNoId);
  if (order.empty()) return idom;
  idom[order[0]] = order[0];
  auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (index[a] > index[b]) a = idom[a];
      while (index[b] > index[a]) b = idom[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 1; i < order.size(); ++i) {
      const uint32_t b = order[i];
      uint32_t best = kNoId;
      for (const uint32_t p : predecessors[b]) {
        if (index[p] == kNoId || idom[p] == kNoId) continue;
        best = best == kNoId ? p : meet(p, best);
      }
      if (best != idom[b]) {
        idom[b] = best;
        changed = true;
      }
    }
  }
  idom[order[0]] = kNoId;
  return idom;
}

// Reverse post-order of what `root` reaches.
void reversePostOrder(uint32_t root, const std::vector<std::vector<uint32_t>>& successors, std::vector<uint32_t>& order,
                      std::vector<uint32_t>& index) {
  index.assign(successors.size(), kNoId);
  order.clear();
  std::vector<std::pair<uint32_t, size_t>> stack;
  std::vector<bool> seen(successors.size(), false);
  seen[root] = true;
  stack.emplace_back(root, successors[root].size());
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == 0) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    // Last successor first: the first one ends up right behind its block where it can.
    const uint32_t s = successors[node][--next];
    if (!seen[s]) {
      seen[s] = true;
      stack.emplace_back(s, successors[s].size());
    }
  }
  std::reverse(order.begin(), order.end());
  for (uint32_t i = 0; i < order.size(); ++i) index[order[i]] = i;
}

std::vector<uint32_t> treeDepths(const std::vector<uint32_t>& order, const std::vector<uint32_t>& parent) {
  std::vector<uint32_t> depth(parent.size(), 0);
  for (const uint32_t b : order)
    if (parent[b] != kNoId) depth[b] = depth[parent[b]] + 1;
  return depth;
}

bool isAncestor(uint32_t a, uint32_t b, const std::vector<uint32_t>& parent, const std::vector<uint32_t>& depth) {
  while (b != kNoId && depth[b] > depth[a]) b = parent[b];
  return a == b;
}

}  // namespace

Cfg::Cfg(const Function& function) {
  build(function);
  depthFirst();
  dominators();
  postDominators();
  findLoops();
  placeLoops();
}

void Cfg::build(const Function& f) {
  const auto n = static_cast<uint32_t>(f.body.size());
  std::vector<bool> leader(n + 1, false);
  leader[0] = true;
  for (const auto& l : f.labels) leader[std::min(l.instruction, n)] = true;
  for (uint32_t i = 0; i < n; ++i)
    if (endsBlock(f.body[i].op)) leader[i + 1] = true;
  blockOf_.resize(n + 1);
  for (uint32_t i = 0; i < n; ++i) {
    if (leader[i]) {
      blocks_.emplace_back();
      blocks_.back().begin = i;
    }
    blocks_.back().end = i + 1;
    blockOf_[i] = static_cast<uint32_t>(blocks_.size() - 1);
  }
  // An empty block behind the last instruction, where a label there or a fall-through leads.
  blocks_.emplace_back();
  blocks_.back().begin = blocks_.back().end = n;
  blocks_.back().leaves = true;
  blockOf_[n] = static_cast<uint32_t>(blocks_.size() - 1);

  auto link = [&](uint32_t from, uint32_t to) {
    auto& s = blocks_[from].successors;
    if (std::find(s.begin(), s.end(), to) != s.end()) return;
    s.push_back(to);
    blocks_[to].predecessors.push_back(from);
  };
  auto labelBlock = [&](uint32_t label) {
    return label < f.labels.size() ? blockOf_[std::min(f.labels[label].instruction, n)] : blockOf_[n];
  };
  for (uint32_t b = 0; b + 1 < blocks_.size(); ++b) {
    const Instruction& last = f.body[blocks_[b].end - 1];
    const bool guarded = last.guard.reg != kNoId;
    bool fallsThrough = guarded || !endsBlock(last.op);
    if (last.op == Opcode::bra && !last.operands.empty()) {
      link(b, labelBlock(last.operands[0].index));
    } else if (last.op == Opcode::brx && last.operands.size() > 1 &&
               last.operands[1].ref == Operand::Ref::branchTargets) {
      for (const uint32_t label : f.branchTargets[last.operands[1].refId].ids) link(b, labelBlock(label));
    } else if (leavesFunction(last.op)) {
      blocks_[b].leaves = true;
    }
    if (fallsThrough) link(b, b + 1);
  }
}

void Cfg::depthFirst() {
  std::vector<std::vector<uint32_t>> successors(blocks_.size());
  for (uint32_t b = 0; b < blocks_.size(); ++b) successors[b] = blocks_[b].successors;
  reversePostOrder(0, successors, rpo_, rpoIndex_);
}

void Cfg::dominators() {
  std::vector<std::vector<uint32_t>> predecessors(blocks_.size());
  for (uint32_t b = 0; b < blocks_.size(); ++b) predecessors[b] = blocks_[b].predecessors;
  idom_ = immediateDominators(rpo_, rpoIndex_, predecessors);
  depth_ = treeDepths(rpo_, idom_);
}

// The same on the reversed graph, from one exit node behind all leaving blocks. Blocks that cannot leave (an endless
// loop) have none.
void Cfg::postDominators() {
  const auto n = static_cast<uint32_t>(blocks_.size());
  std::vector<std::vector<uint32_t>> successors(n + 1), predecessors(n + 1);
  for (uint32_t b = 0; b < n; ++b) {
    successors[b] = blocks_[b].predecessors;
    predecessors[b] = blocks_[b].successors;
    if (blocks_[b].leaves) {
      successors[n].push_back(b);
      predecessors[b].push_back(n);
    }
  }
  std::vector<uint32_t> order, index;
  reversePostOrder(n, successors, order, index);
  ipdom_ = immediateDominators(order, index, predecessors);
  postDepth_ = treeDepths(order, ipdom_);
  for (auto& p : ipdom_)
    if (p == n) p = kNoId;
  ipdom_.resize(n);
}

bool Cfg::dominates(uint32_t a, uint32_t b) const {
  return reachable(a) && reachable(b) && isAncestor(a, b, idom_, depth_);
}

bool Cfg::postDominates(uint32_t a, uint32_t b) const { return isAncestor(a, b, ipdom_, postDepth_); }

void Cfg::findLoops() {
  position_ = rpoIndex_;  // until placeLoops(), for reachable()
  loopOf_.assign(blocks_.size(), kNoId);
  std::vector<uint32_t> inLoop(blocks_.size(), kNoId);  // the loop last seen to hold the block
  // Headers in reverse post-order: outer loops come before inner ones.
  for (const uint32_t header : rpo_) {
    Loop loop;
    loop.header = header;
    for (const uint32_t from : blocks_[header].predecessors) {
      if (rpoIndex_[from] == kNoId) continue;
      if (dominates(header, from))
        loop.backEdgesFrom.push_back(from);
      else if (rpoIndex_[from] >= rpoIndex_[header])
        irreducible_ = true;
    }
    if (loop.backEdgesFrom.empty()) continue;
    const auto number = static_cast<uint32_t>(loops_.size());
    inLoop[header] = number;
    loop.blocks.push_back(header);
    auto add = [&](uint32_t b) {
      if (inLoop[b] == number || rpoIndex_[b] == kNoId) return;
      inLoop[b] = number;
      loop.blocks.push_back(b);
    };
    for (const uint32_t from : loop.backEdgesFrom) add(from);
    for (size_t next = 1; next < loop.blocks.size(); ++next)
      for (const uint32_t p : blocks_[loop.blocks[next]].predecessors) add(p);
    std::sort(loop.blocks.begin(), loop.blocks.end());
    loop.parent = loopOf_[header];
    if (loop.parent != kNoId) loop.depth = loops_[loop.parent].depth + 1;
    for (const uint32_t b : loop.blocks) loopOf_[b] = number;
    loops_.push_back(std::move(loop));
  }
}

// Reverse post-order may put blocks behind a loop among its blocks. Here a block that leaves a loop waits until all
// of the loop's blocks stand.
void Cfg::placeLoops() {
  // Children of each loop (and of the function: index loops_.size()) in reverse post-order: blocks and inner loops.
  const size_t root = loops_.size();
  std::vector<std::vector<std::pair<bool, uint32_t>>> children(root + 1);  // {is a loop, number}
  std::vector<bool> opened(root, false);
  auto parentOf = [&](uint32_t loop) { return loops_[loop].parent == kNoId ? root : loops_[loop].parent; };
  for (const uint32_t b : rpo_) {
    const uint32_t loop = loopOf_[b];
    // Enter the loops around b that are not entered yet, outermost first.
    std::vector<uint32_t> chain;
    for (uint32_t l = loop; l != kNoId && !opened[l]; l = loops_[l].parent) chain.push_back(l);
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
      opened[*it] = true;
      children[parentOf(*it)].emplace_back(true, *it);
    }
    children[loop == kNoId ? root : loop].emplace_back(false, b);
  }
  // A loop's place among its siblings is its header's; what the loop's exits reach comes later in reverse post-order
  // than the header, so the order stays topological apart from back edges.
  order_.clear();
  std::vector<std::pair<size_t, size_t>> stack{{root, 0}};
  while (!stack.empty()) {
    auto& [list, next] = stack.back();
    if (next == children[list].size()) {
      stack.pop_back();
      continue;
    }
    const auto [isLoop, number] = children[list][next++];
    if (isLoop)
      stack.emplace_back(number, 0);
    else
      order_.push_back(number);
  }
  position_.assign(blocks_.size(), kNoId);
  for (uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
}

// --- call graph

CallGraph callGraph(const Module& module) {
  const size_t n = module.functions.size();
  CallGraph g;
  g.callees.resize(n);
  g.callers.resize(n);
  g.recursive.assign(n, false);

  std::vector<bool> addressTaken(n, false);
  std::unordered_map<std::string_view, uint32_t> byName;
  for (uint32_t f = 0; f < n; ++f) byName.emplace(module.functions[f].name, f);
  for (const auto& v : module.variables)
    for (const auto& i : v.init)
      if (const auto f = byName.find(i.symbol); f != byName.end()) addressTaken[f->second] = true;
  auto mark = [&](auto& self, const Operand& o) -> void {
    if (o.ref == Operand::Ref::function) addressTaken[o.refId] = true;
    for (const auto& e : o.elements) self(self, e);
  };
  for (const auto& f : module.functions)
    for (const auto& i : f.body) {
      if (i.op != Opcode::call)
        for (const auto& o : i.operands) mark(mark, o);
      for (const auto& o : i.callArgs) mark(mark, o);
    }

  auto fits = [](const Function& f, const Prototype& p) {
    auto same = [](const std::vector<Variable>& a, const std::vector<Variable>& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Variable& x, const Variable& y) {
        return x.sizeBytes == y.sizeBytes && x.space == y.space;
      });
    };
    return !f.isKernel && same(f.returns, p.returns) && same(f.params, p.params);
  };
  for (uint32_t f = 0; f < n; ++f) {
    const Function& fn = module.functions[f];
    auto& out = g.callees[f];
    for (const auto& i : fn.body) {
      if (i.op != Opcode::call) continue;
      if (i.operands[0].kind == Operand::Kind::symbol) {
        out.push_back(i.operands[0].refId);
      } else if (i.callTargets != kNoId) {
        const auto& ids = fn.branchTargets[i.callTargets].ids;
        out.insert(out.end(), ids.begin(), ids.end());
      } else if (i.callPrototype != kNoId) {
        for (uint32_t t = 0; t < n; ++t)
          if (addressTaken[t] && fits(module.functions[t], fn.prototypes[i.callPrototype])) out.push_back(t);
      }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    for (const uint32_t t : out) g.callers[t].push_back(f);
  }

  // Tarjan's components, without recursion: they come out callees first.
  std::vector<uint32_t> index(n, kNoId), low(n, 0), stack;
  std::vector<bool> onStack(n, false);
  uint32_t counter = 0;
  for (uint32_t start = 0; start < n; ++start) {
    if (index[start] != kNoId) continue;
    std::vector<std::pair<uint32_t, size_t>> frames;
    auto open = [&](uint32_t v) {
      index[v] = low[v] = counter++;
      stack.push_back(v);
      onStack[v] = true;
      frames.emplace_back(v, 0);
    };
    open(start);
    while (!frames.empty()) {
      const uint32_t v = frames.back().first;
      if (frames.back().second < g.callees[v].size()) {
        const uint32_t t = g.callees[v][frames.back().second++];
        if (index[t] == kNoId)
          open(t);
        else if (onStack[t])
          low[v] = std::min(low[v], index[t]);
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) low[frames.back().first] = std::min(low[frames.back().first], low[v]);
      if (low[v] != index[v]) continue;
      const size_t first = std::find(stack.begin(), stack.end(), v) - stack.begin();
      const bool cycle = stack.size() - first > 1 || std::binary_search(g.callees[v].begin(), g.callees[v].end(), v);
      for (size_t k = first; k < stack.size(); ++k) {
        onStack[stack[k]] = false;
        g.recursive[stack[k]] = cycle;
        g.bottomUp.push_back(stack[k]);
      }
      stack.resize(first);
    }
  }
  return g;
}

}  // namespace sonde::ptx
