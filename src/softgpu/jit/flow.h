// SPDX-License-Identifier: Apache-2.0
//
// Control flow of one PTX function as the warp executor schedules it.
//
// Basic blocks get a linear order (loops contiguous, otherwise topological).
// A block that lanes may have to wait at has a mask of pending lanes. After a
// block ends, the next one to run is the first in the *chain* with a non-empty
// mask: the blocks behind it in the order, where the end of a loop is followed
// by a look back at the loop's header. So lanes meet again at the earliest
// place, whatever the shape of the flow.
//
// The analysis here finds which blocks can be pending while another runs. From
// that follow: branches that need no test, writes that need no blend with the
// old value (nobody who waits will read the register), and which registers hold
// one value for the whole warp.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/ast.h"

namespace sonde::softgpu::jit {

class BitSet {
 public:
  BitSet() = default;
  explicit BitSet(size_t bits) : words_((bits + 63) / 64) {}
  void set(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void reset(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  bool test(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  bool any() const {
    for (uint64_t w : words_)
      if (w) return true;
    return false;
  }
  bool merge(const BitSet& other) {  // true when something was added
    uint64_t added = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      added |= other.words_[i] & ~words_[i];
      words_[i] |= other.words_[i];
    }
    return added != 0;
  }
  // Adds `use` and what of `out` is not in `kill`.
  bool transfer(const BitSet& use, const BitSet& out, const BitSet& kill) {
    uint64_t added = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t now = use.words_[i] | (out.words_[i] & ~kill.words_[i]);
      added |= now & ~words_[i];
      words_[i] |= now;
    }
    return added != 0;
  }
  bool contains(const BitSet& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if (other.words_[i] & ~words_[i]) return false;
    return true;
  }
  void remove(const BitSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }
  void intersect(const BitSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  bool insert(size_t i) {
    if (test(i)) return false;
    set(i);
    return true;
  }
  size_t count() const {
    size_t n = 0;
    for (uint64_t w : words_) n += static_cast<size_t>(__builtin_popcountll(w));
    return n;
  }
  template <class F>
  void forEach(F&& f) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t bits = words_[w]; bits; bits &= bits - 1) f(w * 64 + static_cast<size_t>(__builtin_ctzll(bits)));
  }

 private:
  std::vector<uint64_t> words_;
};

enum class BlockEnd : uint8_t { fallThrough, branch, indexed, leave };  // leave: ret, exit, trap

struct Block {
  uint32_t begin = 0, end = 0;  // instructions [begin, end)
  BlockEnd kind = BlockEnd::fallThrough;
  std::vector<uint32_t> successors;  // positions; branch: target, then the fall-through of a guarded one
  bool leaves = false;               // some lanes may leave here (ret, exit)
  bool calls = false;                // holds a call
  BitSet liveIn;                     // registers, and the carry flag last
  // results of the analysis
  bool divergentEnd = false;  // lanes may go different ways
  BitSet pending;             // blocks that may have waiting lanes while this one runs
  BitSet liveElsewhere;       // registers that waiting lanes will still read
  bool convergent() const { return !pending.any(); }
};

struct ChainEntry {
  uint32_t block = 0;
  bool header = false;  // a look back at a loop's header
};

// What calls may do, by function of the module; empty: nothing.
struct CalleeTraits {
  std::vector<bool> observes;  // reads what others write, or lets time pass, itself or in a function that it calls
  std::vector<bool> waits;     // does so in a loop
  bool indirectObserves = false, indirectWaits = false;  // what a call through a pointer may reach

  bool callObserves(const ptx::Instruction& call) const { return ask(call, observes, indirectObserves); }
  bool callWaits(const ptx::Instruction& call) const { return ask(call, waits, indirectWaits); }

 private:
  static bool ask(const ptx::Instruction& call, const std::vector<bool>& direct, bool indirect) {
    if (call.operands.empty() || call.operands[0].ref != ptx::Operand::Ref::function) return indirect;
    return call.operands[0].refId < direct.size() && direct[call.operands[0].refId];
  }
};
// Of these functions; `indirect`: those that calls through pointers may reach.
CalleeTraits calleeTraits(const ptx::Module& module, const std::vector<uint32_t>& functions,
                          const std::vector<uint32_t>& indirect);

class Flow {
 public:
  static constexpr uint32_t kNever = 0xffffffffu;

  // Blocks are in execution order; block 0 is the entry. `linearWarps`: %tid.y
  // and %tid.z are the same for all lanes of a warp.
  Flow(const ptx::Function& function, bool isKernel, const CalleeTraits& callees = {});

  std::vector<Block> blocks;
  std::vector<ChainEntry> chain;
  std::vector<bool> pendable;      // block has a pending mask
  std::vector<bool> spinHeader;    // header of a loop that may wait for another lane, warp or block
  std::vector<bool> holdsBarrier;  // block has a barrier of the whole thread block
  std::vector<bool> startsSync;    // block starts with a .sync instruction of the warp that may have to wait
  // Headers of loops that do not spin, while kernels have a time limit: the instructions of the loop; else 0.
  std::vector<uint32_t> timedInstructions;
  std::vector<bool> startsCall;  // block starts with a call that may wait, on one way of several
  bool mayYield = false;         // barriers or spin loops: warps need stacks of their own

  bool uniform(ptx::RegId reg) const { return !varying_[reg]; }
  bool carryUniform() const { return !varying_[function_.registers.size()]; }
  bool sourcesUniform(const ptx::Instruction& instruction) const;
  bool operandUniform(const ptx::Operand& operand) const;
  bool guardUniform(const ptx::Instruction& in) const { return in.guard.reg == ptx::kNoId || uniform(in.guard.reg); }
  bool needsBlend(uint32_t block, ptx::RegId reg) const { return blocks[block].liveElsewhere.test(reg); }

  // First chain index after block `from` that `block` stands at.
  uint32_t occurrence(uint32_t from, uint32_t block) const;
  // Lanes that come to a barrier while others of their warp go round a spin
  // loop wait at the block's start: the barrier counts whole warps.
  bool waitsForSpinning(uint32_t block) const;
  // Lanes that come to the .sync instruction at the block's start wait for the
  // members that are still elsewhere.
  bool waitsForMembers(uint32_t block) const { return startsSync[block] && blocks[block].pending.any(); }
  // The call at the block's start is one that lanes elsewhere go on beside: they may be what it waits for.
  bool waitsForCall(uint32_t block) const { return startsCall[block] && blocks[block].pending.any(); }
  // Lanes that wait here go on by themselves: the warp goes round.
  bool mayRotate(size_t block) const { return spinHeader[block] || waitsForCall(static_cast<uint32_t>(block)); }
  uint32_t chainIndex(uint32_t block) const { return ownIndex_[block]; }
  // A branch that all active lanes take may jump without looking at the chain.
  bool directJump(uint32_t from, uint32_t to) const;
  // Largest number of 32-bit values live at once: the register estimate.
  uint32_t maxLiveRegisters() const;

 private:
  void analyze();
  bool findWaitingSyncs();
  bool findWaitingCalls();
  void buildBlocks();
  void orderBlocks();
  void findSpinLoops();
  void liveness();
  void solve();
  bool propagate();
  void propagateChain(uint32_t from, const BitSet& waiting);
  bool addWaiting(uint32_t block, const BitSet& lanes);
  void addLiveElsewhere();
  bool spreadVarying();
  bool resultVarying(const ptx::Instruction& in) const;

  const ptx::Function& function_;
  bool isKernel_;
  const CalleeTraits callees_;
  std::vector<bool> varying_;
  std::vector<uint32_t> ownIndex_;
  std::vector<bool> dirty_;  // while solving: blocks whose pending set has grown
  BitSet round_;             // while solving: headers each of which may wait while any other of them runs
  std::vector<std::vector<uint32_t>> indices_;  // chain indices of each block, ascending
  std::vector<bool> syncAt_, callAt_;           // instructions that start a block, see startsSync, startsCall
};

}  // namespace sonde::softgpu::jit
