// SPDX-License-Identifier: Apache-2.0
//
// Which registers hold one value for all lanes of a warp that run together,
// and which branches therefore never split a warp.
#pragma once

#include <vector>

#include "ptx/cfg.h"
#include "ptx/liveness.h"

namespace sonde::ptx {

// Lanes that a branch separated are taken to meet again at its immediate post-dominator, not before. Varying are:
// lane and thread numbers, results of atomics, shuffles, matches, calls, textures and matrix loads, loads through
// varying addresses or of local memory, what is computed from such values, and what different ways to one place write.
class Uniformity {
 public:
  Uniformity(const Module& module, const Function& function, const Cfg& cfg, const Liveness& liveness);

  bool uniform(RegId reg) const { return !varying_[reg]; }
  bool uniform(const Operand& operand) const;
  // The block's last instruction sends all lanes the same way (true also when it is no branch).
  bool uniformEnd(uint32_t block) const { return !divergent_[block]; }

 private:
  bool resultVarying(const Instruction& i) const;
  bool sourcesUniform(const Instruction& i) const;
  bool guardUniform(const Instruction& i) const { return i.guard.reg == kNoId || !varying_[i.guard.reg]; }
  bool spread();
  bool endDiverges(uint32_t block) const;
  void separate(uint32_t block);  // consequences of a divergent end
  bool mark(RegId r);

  const Function& function_;
  const Cfg& cfg_;
  const Liveness& liveness_;
  std::vector<bool> varying_, divergent_;
  bool carryVarying_ = false;
};

}  // namespace sonde::ptx
