// SPDX-License-Identifier: Apache-2.0
//
// Which registers are still needed where.
#pragma once

#include <cstdint>
#include <vector>

#include "ptx/cfg.h"

namespace sonde::ptx {

// A set of small numbers.
class BitSet {
 public:
  BitSet() = default;
  explicit BitSet(size_t size) : words_((size + 63) / 64) {}
  bool test(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  bool insert(size_t i) {  // true when it is new
    const uint64_t bit = uint64_t{1} << (i % 64);
    const bool isNew = !(words_[i / 64] & bit);
    words_[i / 64] |= bit;
    return isNew;
  }
  bool erase(size_t i) {  // true when it was there
    const bool had = test(i);
    words_[i / 64] &= ~(uint64_t{1} << (i % 64));
    return had;
  }
  bool merge(const BitSet& o) {  // true when something is new
    uint64_t added = 0;
    for (size_t w = 0; w < words_.size(); ++w) {
      added |= o.words_[w] & ~words_[w];
      words_[w] |= o.words_[w];
    }
    return added != 0;
  }
  // *this = use | (out & ~def), word by word; true when it changed.
  bool transfer(const BitSet& use, const BitSet& out, const BitSet& def) {
    uint64_t changed = 0;
    for (size_t w = 0; w < words_.size(); ++w) {
      const uint64_t next = use.words_[w] | (out.words_[w] & ~def.words_[w]);
      changed |= next ^ words_[w];
      words_[w] = next;
    }
    return changed != 0;
  }
  template <class Visit>
  void forEach(Visit&& visit) const {
    for (size_t w = 0; w < words_.size(); ++w)
      for (uint64_t bits = words_[w]; bits; bits &= bits - 1)
        visit(w * 64 + static_cast<size_t>(__builtin_ctzll(bits)));
  }

 private:
  std::vector<uint64_t> words_;
};

// Registers by block; a write under a guard leaves the old value live.
class Liveness {
 public:
  Liveness(const Function& function, const Cfg& cfg);

  const BitSet& liveIn(uint32_t block) const { return in_[block]; }
  const BitSet& liveOut(uint32_t block) const { return out_[block]; }
  // Registers live before each instruction of a block, last instruction first: visit(instruction index, set).
  template <class Visit>
  void backwards(uint32_t block, Visit&& visit) const;
  // The largest number of 32-bit values live at one place (predicates do not count): what a perfect allocator needs.
  uint32_t maxLiveWords() const;

 private:
  void step(const Instruction& i, BitSet& live) const;

  const Function& function_;
  const Cfg& cfg_;
  std::vector<BitSet> in_, out_;
};

template <class Visit>
void Liveness::backwards(uint32_t block, Visit&& visit) const {
  BitSet live = out_[block];
  const BasicBlock& b = cfg_.blocks()[block];
  for (uint32_t i = b.end; i-- > b.begin;) {
    step(function_.body[i], live);
    visit(i, static_cast<const BitSet&>(live));
  }
}

}  // namespace sonde::ptx
