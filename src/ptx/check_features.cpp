// SPDX-License-Identifier: Apache-2.0
//
// Features and the PTX ISA version and target they appeared with.
#include <algorithm>

#include "ptx/checker.h"

namespace sonde::ptx {
namespace {

struct SpecialLevel {
  SpecialReg first, last;
  uint16_t version, target;
};

constexpr SpecialLevel kSpecials[] = {
    {SpecialReg::clusterid, SpecialReg::is_explicit_cluster, 78, 90},
    {SpecialReg::total_smem_size, SpecialReg::total_smem_size, 41, 20},
    {SpecialReg::aggr_smem_size, SpecialReg::aggr_smem_size, 81, 90},
    {SpecialReg::reserved_smem_offset_begin, SpecialReg::reserved_smem_offset, 76, 80},
    {SpecialReg::current_graph_exec, SpecialReg::current_graph_exec, 80, 50},
};

struct ModLevel {
  Mod mod;
  uint16_t version, target;
};

constexpr ModLevel kMods[] = {
    {Mod::relaxed, 60, 70},
    {Mod::acquire, 60, 70},
    {Mod::release, 60, 70},
    {Mod::acq_rel, 60, 70},
    {Mod::mmio, 82, 70},
    {Mod::L1_evict_normal, 74, 70},
    {Mod::L1_evict_unchanged, 74, 70},
    {Mod::L1_evict_first, 74, 70},
    {Mod::L1_evict_last, 74, 70},
    {Mod::L1_no_allocate, 74, 70},
    {Mod::L2_cache_hint, 74, 80},
    {Mod::L2_64B, 74, 75},
    {Mod::L2_128B, 74, 75},
    {Mod::L2_256B, 74, 80},
    {Mod::multicast_cluster, 80, 90},
};

}  // namespace

void Checker::require(SourcePos pos, const std::string& feature, unsigned version, unsigned target) {
  const unsigned have = module_.versionMajor * 10 + module_.versionMinor;
  if (have < version)
    error(pos, feature + " needs PTX ISA version " + std::to_string(version / 10) + "." + std::to_string(version % 10) +
                   " or later; .version says " + std::to_string(module_.versionMajor) + "." +
                   std::to_string(module_.versionMinor));
  if (module_.target < target)
    error(pos, feature + " needs sm_" + std::to_string(target) + " or later; .target says sm_" +
                   std::to_string(module_.target) + module_.targetSuffix);
}

void Checker::requireSuffix(SourcePos pos, const std::string& feature, unsigned target) {
  if (module_.target < target || module_.targetSuffix.empty())
    error(pos, feature + " needs the architecture-specific target sm_" + std::to_string(target) +
                   "a; .target says sm_" + std::to_string(module_.target) + module_.targetSuffix);
}

void Checker::moduleFeatures() {
  for (const auto& v : module_.variables) {
    if (v.isManaged) require(v.pos, "'.attribute(.managed)'", 40, 30);
    if (v.isCommon) require(v.pos, "'.common'", 50, 20);
  }
}

void Checker::functionFeatures(const Function& f) {
  const auto& h = f.hints;
  auto given = [](const std::array<uint32_t, 3>& d) { return d[0] != 0; };
  if (given(h.maxntid) && given(h.reqntid)) error(f.pos, "'" + f.name + "' has both .maxntid and .reqntid");
  if (given(h.reqnctapercluster)) require(f.pos, "'.reqnctapercluster'", 78, 90);
  if (h.explicitCluster) require(f.pos, "'.explicitcluster'", 78, 90);
  if (h.maxclusterrank) require(f.pos, "'.maxclusterrank'", 78, 90);
  if (h.blocksareclusters) require(f.pos, "'.blocksareclusters'", 90, 90);
  if (h.noreturn) require(f.pos, "'.noreturn'", 64, 30);
  if (f.isKernel) {
    const uint64_t limit =
        module_.versionMajor * 10 + module_.versionMinor >= 81 && module_.target >= 70 ? 32764 : 4352;
    if (f.paramBytes > limit)
      error(f.pos, "the parameters of '" + f.name + "' take " + std::to_string(f.paramBytes) + " bytes; at most " +
                       std::to_string(limit) + " are allowed for this .version and .target");
  }
}

void Checker::instructionFeatures(const Instruction& i, const InstructionRule* rule) {
  if (rule->version || rule->target) require(i.pos, mnemonic(i), rule->version, rule->target);
  for (const auto& level : kMods)
    if (i.has(level.mod)) require(i.pos, "'." + std::string(name(level.mod)) + "'", level.version, level.target);
  if (i.has(Mod::cluster) || i.space == StateSpace::sharedCluster || i.space2 == StateSpace::sharedCluster)
    require(i.pos, mnemonic(i), 78, 90);
  if (i.op == Opcode::wgmma && (module_.target != 90 || module_.targetSuffix.empty()))
    error(i.pos, mnemonic(i) + " exists on sm_90a only; .target says sm_" + std::to_string(module_.target) +
                     module_.targetSuffix);
  if (i.op == Opcode::setmaxnreg) requireSuffix(i.pos, mnemonic(i), 90);
  if (i.op == Opcode::tcgen05) requireSuffix(i.pos, mnemonic(i), 100);
  if ((i.op == Opcode::vote || i.op == Opcode::shfl) && !i.has(Mod::sync) && module_.target >= 70 &&
      module_.versionMajor * 10 + module_.versionMinor >= 64)
    error(i.pos, mnemonic(i) + " without '.sync' is gone from sm_70 on (PTX ISA 6.4 and later); use '" +
                     std::string(name(i.op)) + ".sync'");
  if (i.op == Opcode::atom || i.op == Opcode::red) {
    if (i.type() == ScalarType::b128) require(i.pos, mnemonic(i), 83, 90);
    if (i.type() == ScalarType::f64 && i.has(Mod::add)) require(i.pos, mnemonic(i), 50, 60);
    if (i.vectorWidth > 1) require(i.pos, mnemonic(i), 81, 90);
  }
  if (i.op == Opcode::ldmatrix && (i.has(Mod::m16n16) || i.has(Mod::m8n16))) requireSuffix(i.pos, mnemonic(i), 100);
  for (const auto& o : i.operands) {
    if (o.kind != Operand::Kind::special) continue;
    for (const auto& level : kSpecials)
      if (o.special >= level.first && o.special <= level.last)
        require(o.pos, "'" + name(o.special, o.index) + "'", level.version, level.target);
  }
}

}  // namespace sonde::ptx
