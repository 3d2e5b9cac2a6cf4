// SPDX-License-Identifier: Apache-2.0
#include "ptx/liveness.h"

#include <algorithm>

#include "ptx/defuse.h"

namespace sonde::ptx {

namespace {

// Does the instruction overwrite the whole register? A guarded one, or one that writes a vector's component, does not.
template <class Visit>
void forEachKill(const Function& f, const Instruction& i, Visit&& visit) {
  if (i.guard.reg != kNoId) return;
  forEachDef(i, [&](RegId r) {
    if (f.registers[r].vector == 1) visit(r);
  });
}

}  // namespace

Liveness::Liveness(const Function& f, const Cfg& cfg) : function_(f), cfg_(cfg) {
  const auto& blocks = cfg.blocks();
  const size_t n = f.registers.size();
  in_.assign(blocks.size(), BitSet(n));
  out_.assign(blocks.size(), BitSet(n));
  std::vector<BitSet> use(blocks.size(), BitSet(n)), kill(blocks.size(), BitSet(n));
  for (uint32_t b = 0; b < blocks.size(); ++b)
    for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i) {
      forEachUse(f.body[i], [&](RegId r) {
        if (!kill[b].test(r)) use[b].insert(r);
      });
      forEachKill(f, f.body[i], [&](RegId r) { kill[b].insert(r); });
    }
  // A function's .reg results are read by its caller.
  BitSet results(n);
  for (const auto& r : f.returns)
    if (r.regId != kNoId) results.insert(r.regId);
  std::vector<bool> queued(blocks.size(), true);
  std::vector<uint32_t> work(blocks.size());
  for (uint32_t b = 0; b < blocks.size(); ++b) work[b] = b;  // popped from the end: backwards
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    queued[b] = false;
    for (const uint32_t s : blocks[b].successors) out_[b].merge(in_[s]);
    if (blocks[b].leaves) out_[b].merge(results);
    if (!in_[b].transfer(use[b], out_[b], kill[b])) continue;
    for (const uint32_t p : blocks[b].predecessors)
      if (!queued[p]) {
        queued[p] = true;
        work.push_back(p);
      }
  }
}

void Liveness::step(const Instruction& i, BitSet& live) const {
  forEachKill(function_, i, [&](RegId r) { live.erase(r); });
  forEachUse(i, [&](RegId r) { live.insert(r); });
}

uint32_t Liveness::maxLiveWords() const {
  auto words = [&](size_t r) -> uint32_t {
    const Register& reg = function_.registers[r];
    const unsigned bits = bitsOf(reg.type);
    return reg.type == ScalarType::pred ? 0 : (bits + 31) / 32 * reg.vector;
  };
  uint32_t best = 0;
  for (uint32_t b = 0; b < cfg_.blocks().size(); ++b) {
    BitSet live = out_[b];
    uint32_t now = 0;
    live.forEach([&](size_t r) { now += words(r); });
    best = std::max(best, now);
    const BasicBlock& block = cfg_.blocks()[b];
    for (uint32_t i = block.end; i-- > block.begin;) {
      // What is written needs a place even when nobody reads it.
      uint32_t dead = 0;
      forEachDef(function_.body[i], [&](RegId r) { dead += live.test(r) ? 0 : words(r); });
      best = std::max(best, now + dead);
      forEachKill(function_, function_.body[i], [&](RegId r) { now -= live.erase(r) ? words(r) : 0; });
      forEachUse(function_.body[i], [&](RegId r) { now += live.insert(r) ? words(r) : 0; });
      best = std::max(best, now);
    }
  }
  return best;
}

}  // namespace sonde::ptx
