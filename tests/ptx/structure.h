// SPDX-License-Identifier: Apache-2.0
//
// Structural comparison of modules: everything but positions in the text and
// the numbering of locations and mnemonics.
#pragma once

#include <string>

#include "ptx/ast.h"
#include "ptx/print.h"

namespace sonde::ptx {

class ModuleComparison {
 public:
  ModuleComparison(const Module& a, const Module& b) : a_(a), b_(b) { compare(); }
  // Where they first differ; empty when they do not.
  const std::string& difference() const { return difference_; }

 private:
  template <class T>
  bool same(const T& x, const T& y, const std::string& what) {
    if (difference_.empty() && !(x == y)) difference_ = what;
    return difference_.empty();
  }

  void variables(const std::vector<Variable>& x, const std::vector<Variable>& y, const std::string& where) {
    if (!same(x.size(), y.size(), where + ": number of variables")) return;
    for (size_t i = 0; i < x.size(); ++i) {
      const Variable &p = x[i], &q = y[i];
      const std::string what = where + ": " + p.name;
      same(p.name, q.name, what + " name");
      same(p.space, q.space, what + " space");
      same(p.type, q.type, what + " type");
      same(p.vector, q.vector, what + " vector");
      same(p.align, q.align, what + " align");
      same(p.dims, q.dims, what + " dims");
      same(p.sizeBytes, q.sizeBytes, what + " size");
      same(p.isExtern, q.isExtern, what + " extern");
      same(p.isVisible, q.isVisible, what + " visible");
      same(p.isWeak, q.isWeak, what + " weak");
      same(p.isCommon, q.isCommon, what + " common");
      same(p.isManaged, q.isManaged, what + " managed");
      same(p.isPointerParam, q.isPointerParam, what + " ptr");
      same(p.pointerSpace, q.pointerSpace, what + " pointer space");
      same(p.pointerAlign, q.pointerAlign, what + " pointer align");
      same(p.regId, q.regId, what + " register");
      same(p.properties, q.properties, what + " properties");
      if (!same(p.init.size(), q.init.size(), what + " number of initial values")) return;
      for (size_t k = 0; k < p.init.size(); ++k) {
        const auto &m = p.init[k], &n = q.init[k];
        const bool zeros = m.kind == Initializer::Kind::zero && n.bits == 0 && n.symbol.empty();
        same(zeros || m.kind == n.kind, true, what + " initial value's kind");
        same(m.bits, n.bits, what + " initial value");
        same(m.symbol, n.symbol, what + " symbol");
        same(m.offset, n.offset, what + " offset");
        same(m.masked, n.masked, what + " masked");
        same(m.maskShift, n.maskShift, what + " mask");
      }
    }
  }

  void operands(const std::vector<Operand>& x, const std::vector<Operand>& y, const std::string& where) {
    if (!same(x.size(), y.size(), where + ": number of operands")) return;
    for (size_t i = 0; i < x.size(); ++i) {
      const Operand &p = x[i], &q = y[i];
      const std::string what = where + " operand " + std::to_string(i);
      same(p.kind, q.kind, what + " kind");
      same(p.negated, q.negated, what + " negated");
      same(p.is32, q.is32, what + " is32");
      same(p.component, q.component, what + " component");
      same(p.reg, q.reg, what + " reg");
      same(p.special, q.special, what + " special");
      same(p.index, q.index, what + " index");
      same(p.imm, q.imm, what + " imm");
      same(p.ref, q.ref, what + " ref");
      same(p.refId, q.refId, what + " refId");
      same(p.offset, q.offset, what + " offset");
      same(p.selector, q.selector, what + " selector");
      operands(p.elements, q.elements, what);
    }
  }

  static std::string chain(const Module& m, uint32_t loc) {
    std::string s;
    for (; loc != kNoId; loc = m.locations[loc].inlinedAt) {
      const Location& l = m.locations[loc];
      s += std::to_string(l.file) + ":" + std::to_string(l.line) + ":" + std::to_string(l.column) + " " +
           l.functionName + ";";
    }
    return s;
  }

  void function(const Function& x, const Function& y) {
    const std::string what = x.name;
    same(x.name, y.name, what + " name");
    same(x.isKernel, y.isKernel, what + " kernel");
    same(x.isExtern, y.isExtern, what + " extern");
    same(x.isVisible, y.isVisible, what + " visible");
    same(x.isWeak, y.isWeak, what + " weak");
    same(x.hasBody, y.hasBody, what + " body");
    same(x.isUnified, y.isUnified, what + " unified");
    same(x.paramOffsets, y.paramOffsets, what + " offsets");
    same(x.paramBytes, y.paramBytes, what + " parameter bytes");
    variables(x.returns, y.returns, what + " returns");
    variables(x.params, y.params, what + " params");
    variables(x.variables, y.variables, what + " variables");
    const auto &h = x.hints, &k = y.hints;
    same(h.maxntid, k.maxntid, what + " maxntid");
    same(h.reqntid, k.reqntid, what + " reqntid");
    same(h.reqnctapercluster, k.reqnctapercluster, what + " reqnctapercluster");
    same(h.maxnreg, k.maxnreg, what + " maxnreg");
    same(h.minnctapersm, k.minnctapersm, what + " minnctapersm");
    same(h.maxclusterrank, k.maxclusterrank, what + " maxclusterrank");
    same(h.noreturn, k.noreturn, what + " noreturn");
    same(h.explicitCluster, k.explicitCluster, what + " explicitcluster");
    same(x.pragmas, y.pragmas, what + " pragmas");
    if (!same(x.registers.size(), y.registers.size(), what + " number of registers")) return;
    for (size_t i = 0; i < x.registers.size(); ++i) {
      same(x.registers[i].name, y.registers[i].name, what + " register " + x.registers[i].name);
      same(x.registers[i].type, y.registers[i].type, what + " type of " + x.registers[i].name);
      same(x.registers[i].vector, y.registers[i].vector, what + " vector of " + x.registers[i].name);
    }
    if (!same(x.labels.size(), y.labels.size(), what + " number of labels")) return;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      same(x.labels[i].name, y.labels[i].name, what + " label");
      same(x.labels[i].instruction, y.labels[i].instruction, what + " place of label " + x.labels[i].name);
    }
    if (!same(x.branchTargets.size(), y.branchTargets.size(), what + " number of target tables")) return;
    for (size_t i = 0; i < x.branchTargets.size(); ++i) {
      same(x.branchTargets[i].name, y.branchTargets[i].name, what + " target table");
      same(x.branchTargets[i].targets, y.branchTargets[i].targets, what + " targets");
      same(x.branchTargets[i].ids, y.branchTargets[i].ids, what + " target ids");
    }
    if (!same(x.prototypes.size(), y.prototypes.size(), what + " number of prototypes")) return;
    for (size_t i = 0; i < x.prototypes.size(); ++i) {
      same(x.prototypes[i].name, y.prototypes[i].name, what + " prototype");
      variables(x.prototypes[i].returns, y.prototypes[i].returns, what + " prototype");
      variables(x.prototypes[i].params, y.prototypes[i].params, what + " prototype");
    }
    if (!same(x.body.size(), y.body.size(), what + " number of instructions")) return;
    for (size_t i = 0; i < x.body.size() && difference_.empty(); ++i) {
      const Instruction &p = x.body[i], &q = y.body[i];
      const std::string in = what + " instruction " + std::to_string(i) + " (" + print(p, x, a_) + ")";
      same(mnemonicText(p, a_), mnemonicText(q, b_), in);
      same(p.op, q.op, in);
      same(p.mods, q.mods, in + " mods");
      same(p.types, q.types, in + " types");
      same(p.space, q.space, in + " space");
      same(p.space2, q.space2, in + " space2");
      same(p.vectorWidth, q.vectorWidth, in + " vector");
      same(p.guard.reg, q.guard.reg, in + " guard");
      same(p.guard.negated, q.guard.negated, in + " guard");
      same(p.callPrototype, q.callPrototype, in + " prototype");
      same(p.callTargets, q.callTargets, in + " targets");
      operands(p.operands, q.operands, in);
      operands(p.callReturns, q.callReturns, in + " returns");
      operands(p.callArgs, q.callArgs, in + " arguments");
      same(chain(a_, p.loc), chain(b_, q.loc), in + " location");
    }
  }

  void compare() {
    same(a_.versionMajor, b_.versionMajor, "version");
    same(a_.versionMinor, b_.versionMinor, "version");
    same(a_.target, b_.target, "target");
    same(a_.targetSuffix, b_.targetSuffix, "target suffix");
    same(a_.targetOptions, b_.targetOptions, "target options");
    same(a_.addressSize, b_.addressSize, "address size");
    same(a_.aliases, b_.aliases, "aliases");
    same(a_.pragmas, b_.pragmas, "pragmas");
    same(a_.dwarfSections, b_.dwarfSections, "sections");
    if (same(a_.files.size(), b_.files.size(), "files"))
      for (size_t i = 0; i < a_.files.size(); ++i) same(a_.files[i].path, b_.files[i].path, "file");
    variables(a_.variables, b_.variables, "module");
    if (!same(a_.functions.size(), b_.functions.size(), "number of functions")) return;
    for (size_t i = 0; i < a_.functions.size(); ++i) function(a_.functions[i], b_.functions[i]);
  }

  const Module &a_, &b_;
  std::string difference_;
};

}  // namespace sonde::ptx
