// SPDX-License-Identifier: Apache-2.0
//
// Control flow of one function: basic blocks, dominators, post-dominators,
// loops. Also the module's call graph.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

struct BasicBlock {
  uint32_t begin = 0, end = 0;                     // instructions [begin, end) of Function::body
  std::vector<uint32_t> successors, predecessors;  // blocks; a branch's target first, then what follows it
  bool leaves = false;                             // ends in ret, exit or trap, or behind the last instruction
};

struct Loop {
  uint32_t header = 0;
  uint32_t parent = kNoId;              // the loop around it
  uint32_t depth = 1;                   // 1: outermost
  std::vector<uint32_t> blocks;         // ascending, the header and inner loops included
  std::vector<uint32_t> backEdgesFrom;  // blocks that jump back to the header
};

// A call does not end a block. A guarded ret, exit or branch does, and goes on to the next block as well. Blocks are
// numbered in the order of the text; block 0 is the entry. Unreachable blocks have no dominators (kNoId).
class Cfg {
 public:
  explicit Cfg(const Function& function);

  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  uint32_t blockOf(uint32_t instruction) const { return blockOf_[instruction]; }
  bool reachable(uint32_t block) const { return position_[block] != kNoId; }

  // Reachable blocks in reverse post-order in which the blocks of a natural loop stand together.
  const std::vector<uint32_t>& order() const { return order_; }
  uint32_t position(uint32_t block) const { return position_[block]; }  // in order(); kNoId when unreachable

  // Immediate dominator; kNoId for the entry.
  uint32_t dominator(uint32_t block) const { return idom_[block]; }
  bool dominates(uint32_t a, uint32_t b) const;
  // Immediate post-dominator; kNoId where lanes meet again only by leaving (or never, in an endless loop).
  uint32_t postDominator(uint32_t block) const { return ipdom_[block]; }
  bool postDominates(uint32_t a, uint32_t b) const;

  // Natural loops, outer ones before inner ones.
  const std::vector<Loop>& loops() const { return loops_; }
  uint32_t loopOf(uint32_t block) const { return loopOf_[block]; }  // innermost; kNoId: none
  bool isBackEdge(uint32_t from, uint32_t to) const { return reachable(from) && reachable(to) && dominates(to, from); }
  // Some cycle is entered at more than one place.
  bool irreducible() const { return irreducible_; }

 private:
  void build(const Function& f);
  void depthFirst();
  void findLoops();
  void placeLoops();
  void dominators();
  void postDominators();

  std::vector<BasicBlock> blocks_;
  std::vector<uint32_t> blockOf_, order_, position_, idom_, ipdom_, loopOf_;
  std::vector<uint32_t> depth_, postDepth_;  // in the dominator trees
  std::vector<uint32_t> rpo_, rpoIndex_;
  std::vector<Loop> loops_;
  bool irreducible_ = false;
};

// Who calls whom. Indirect calls go to the functions of their .calltargets, or to every function whose address is taken
// and whose signature fits the prototype.
struct CallGraph {
  std::vector<std::vector<uint32_t>> callees, callers;  // of each function of the module, ascending
  std::vector<bool> recursive;                          // is on a cycle
  std::vector<uint32_t> bottomUp;                       // callees before callers (cycles in any order)
};
CallGraph callGraph(const Module& module);

}  // namespace sonde::ptx
