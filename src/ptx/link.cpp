// SPDX-License-Identifier: Apache-2.0
#include "ptx/link.h"

#include <algorithm>
#include <unordered_map>

namespace sonde::ptx {
namespace {

enum Strength : uint8_t { kDeclared, kWeak, kCommon, kStrong };

class Linker {
 public:
  explicit Linker(std::vector<LinkInput> inputs) : in_(std::move(inputs)), maps_(in_.size()) {}

  LinkResult run() {
    header();
    for (size_t m = 0; m < in_.size(); ++m) collect(m);
    for (size_t m = 0; m < in_.size(); ++m) aliases(m);
    for (size_t m = 0; m < in_.size(); ++m) tables(m);
    for (auto& s : symbols_) emit(s);
    return std::move(out_);
  }

 private:
  struct Symbol {
    std::string name;  // in the result
    bool isFunction = false;
    Strength strength = kDeclared;
    size_t module = 0;
    uint32_t index = 0;  // in that module
    uint32_t id = 0;     // in the result
    uint64_t commonBytes = 0;
    uint32_t align = 0;
  };
  struct Maps {
    std::vector<uint32_t> variables, functions;  // index -> symbols_ index
    std::unordered_map<std::string, std::string> renamed;
    uint32_t firstLocation = 0;
    std::vector<uint32_t> mnemonics;
    std::unordered_map<uint32_t, uint32_t> files;
  };

  void error(size_t module, SourcePos pos, std::string message) {
    out_.diagnostics.push_back({Diagnostic::Severity::error, pos, in_[module].name + ": " + std::move(message)});
  }

  void header() {
    bool first = true;
    for (size_t m = 0; m < in_.size(); ++m) {
      const Module& in = in_[m].module;
      Module& o = out_.module;
      if (!first && in.addressSize != o.addressSize)
        error(m, {},
              "has .address_size " + std::to_string(in.addressSize) + ", others have " + std::to_string(o.addressSize));
      if (first || std::pair(in.versionMajor, in.versionMinor) > std::pair(o.versionMajor, o.versionMinor)) {
        o.versionMajor = in.versionMajor;
        o.versionMinor = in.versionMinor;
      }
      if (first || in.target > o.target || (in.target == o.target && o.targetSuffix.empty())) {
        o.target = in.target;
        o.targetSuffix = in.targetSuffix;
      }
      if (first) o.addressSize = in.addressSize;
      for (const auto& option : in.targetOptions)
        if (std::find(o.targetOptions.begin(), o.targetOptions.end(), option) == o.targetOptions.end())
          o.targetOptions.push_back(option);
      first = false;
    }
  }

  uint32_t newSymbol(Symbol s) {
    uint32_t& count = s.isFunction ? functionCount_ : variableCount_;
    s.id = count++;
    symbols_.push_back(std::move(s));
    return static_cast<uint32_t>(symbols_.size() - 1);
  }

  std::string localName(size_t module, const std::string& name) {
    std::string unique = name;
    for (unsigned k = 1; taken_.count(unique) || global(unique); ++k) unique = name + "$" + std::to_string(k);
    taken_.emplace(unique, true);
    if (unique != name) maps_[module].renamed[name] = unique;
    return unique;
  }

  // Is `name` a symbol with linkage in any module?
  bool global(const std::string& name) {
    if (globals_.empty()) {
      globals_.emplace("", true);
      for (auto& in : in_) {
        for (auto& v : in.module.variables)
          if (hasLinkage(v)) globals_.emplace(v.name, true);
        for (auto& f : in.module.functions)
          if (hasLinkage(f)) globals_.emplace(f.name, true);
      }
    }
    return globals_.count(name) != 0;
  }
  static bool hasLinkage(const Variable& v) { return v.isExtern || v.isVisible || v.isWeak || v.isCommon; }
  static bool hasLinkage(const Function& f) { return f.isKernel || f.isExtern || f.isVisible || f.isWeak; }

  void place(size_t module, uint32_t index, bool isFunction, const std::string& name, bool linkage, Strength strength,
             SourcePos pos, std::vector<uint32_t>& map) {
    if (!linkage) {
      map.push_back(newSymbol({localName(module, name), isFunction, strength, module, index, 0, 0, 0}));
      return;
    }
    const auto [it, isNew] = byName_.try_emplace(name, 0);
    if (isNew) {
      it->second = newSymbol({name, isFunction, strength, module, index, 0, 0, 0});
      map.push_back(it->second);
      return;
    }
    map.push_back(it->second);
    Symbol& s = symbols_[it->second];
    if (s.isFunction != isFunction) {
      error(module, pos,
            "'" + name + "' is a " + (isFunction ? "function" : "variable") + " here and a " +
                (isFunction ? "variable" : "function") + " in " + in_[s.module].name);
      return;
    }
    if (!fits(s, module, index)) {
      error(module, pos,
            "'" + name + "' is declared differently in " + in_[s.module].name + ", line " +
                std::to_string(position(s).line));
      return;
    }
    if (strength == kStrong && s.strength == kStrong) {
      error(
          module, pos,
          "'" + name + "' is already defined in " + in_[s.module].name + ", line " + std::to_string(position(s).line));
      return;
    }
    if (strength > s.strength) {
      s.strength = strength;
      s.module = module;
      s.index = index;
    }
  }

  SourcePos position(const Symbol& s) const {
    const Module& m = in_[s.module].module;
    return s.isFunction ? m.functions[s.index].pos : m.variables[s.index].pos;
  }

  bool fits(const Symbol& s, size_t module, uint32_t index) const {
    const Module& m = in_[module].module;
    if (!s.isFunction) {
      const Variable& a = in_[s.module].module.variables[s.index];
      const Variable& b = m.variables[index];
      if (a.space != b.space) return false;
      const bool unsized = a.sizeBytes == 0 || b.sizeBytes == 0 || (a.isCommon && b.isCommon);
      return unsized || a.sizeBytes == b.sizeBytes;
    }
    const Function& a = in_[s.module].module.functions[s.index];
    const Function& b = m.functions[index];
    auto same = [](const std::vector<Variable>& x, const std::vector<Variable>& y) {
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Variable& p, const Variable& q) {
        return p.sizeBytes == q.sizeBytes && p.space == q.space;
      });
    };
    // Clang declares a kernel of another file, whose address is taken, as a function.
    const Function& declared = a.isKernel ? b : a;
    if (a.isKernel != b.isKernel)
      return !declared.hasBody && declared.returns.empty() &&
             std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(),
                        [](const Variable& p, const Variable& q) { return p.sizeBytes == q.sizeBytes; });
    return same(a.returns, b.returns) && same(a.params, b.params);
  }

  void collect(size_t m) {
    const Module& in = in_[m].module;
    for (uint32_t i = 0; i < in.variables.size(); ++i) {
      const Variable& v = in.variables[i];
      const Strength strength = v.isExtern ? kDeclared : v.isWeak ? kWeak : v.isCommon ? kCommon : kStrong;
      place(m, i, false, v.name, hasLinkage(v), strength, v.pos, maps_[m].variables);
      Symbol& s = symbols_[maps_[m].variables.back()];
      if (v.isCommon) s.commonBytes = std::max(s.commonBytes, v.sizeBytes);
      s.align = std::max(s.align, v.align);
    }
    for (uint32_t i = 0; i < in.functions.size(); ++i) {
      const Function& f = in.functions[i];
      const bool aliased =
          std::any_of(in.aliases.begin(), in.aliases.end(), [&](const auto& a) { return a.first == f.name; });
      const Strength strength = !f.hasBody && !aliased ? kDeclared : f.isWeak ? kWeak : kStrong;
      place(m, i, true, f.name, hasLinkage(f), strength, f.pos, maps_[m].functions);
    }
  }

  // A use of an alias becomes a use of what it stands for.
  void aliases(size_t m) {
    const Module& in = in_[m].module;
    auto index = [&](const std::string& name) {
      for (uint32_t i = 0; i < in.functions.size(); ++i)
        if (in.functions[i].name == name) return i;
      return kNoId;
    };
    for (const auto& [alias, target] : in.aliases) {
      const uint32_t a = index(alias), t = index(target);
      if (a == kNoId || t == kNoId) continue;
      const Symbol& s = symbols_[maps_[m].functions[a]];
      if (s.module != m || s.index != a) continue;  // another definition won
      alias_[maps_[m].functions[a]] = maps_[m].functions[t];
      out_.module.aliases.emplace_back(s.name, symbols_[maps_[m].functions[t]].name);
    }
  }

  void tables(size_t m) {
    Module& in = in_[m].module;
    Maps& maps = maps_[m];
    for (auto& file : in.files) {
      const auto known = std::find_if(out_.module.files.begin(), out_.module.files.end(),
                                      [&](const SourceFile& f) { return f.path == file.path; });
      if (known != out_.module.files.end()) {
        maps.files[file.index] = known->index;
        continue;
      }
      const auto number = static_cast<uint32_t>(out_.module.files.size() + 1);
      maps.files[file.index] = number;
      file.index = number;
      out_.module.files.push_back(std::move(file));
    }
    maps.firstLocation = static_cast<uint32_t>(out_.module.locations.size());
    for (auto& l : in.locations) {
      if (const auto f = maps.files.find(l.file); f != maps.files.end()) l.file = f->second;
      if (l.inlinedAt != kNoId) l.inlinedAt += maps.firstLocation;
      l.functionLabel.clear();
      l.functionOffset = 0;
      out_.module.locations.push_back(std::move(l));
    }
    for (auto& text : in.mnemonics) {
      const auto [it, isNew] = mnemonics_.try_emplace(text, static_cast<uint32_t>(out_.module.mnemonics.size()));
      if (isNew) out_.module.mnemonics.push_back(text);
      maps.mnemonics.push_back(it->second);
    }
    for (auto& p : in.pragmas) out_.module.pragmas.push_back(std::move(p));
  }

  uint32_t functionId(const Maps& maps, uint32_t index) const {
    uint32_t s = maps.functions[index];
    for (unsigned i = 0; i < 8; ++i) {  // an alias of an alias
      const auto it = alias_.find(s);
      if (it == alias_.end()) break;
      s = it->second;
    }
    return symbols_[s].id;
  }

  void remap(Operand& o, const Maps& maps) {
    if (o.ref == Operand::Ref::moduleVar)
      o.refId = symbols_[maps.variables[o.refId]].id;
    else if (o.ref == Operand::Ref::function)
      o.refId = functionId(maps, o.refId);
    for (auto& e : o.elements) remap(e, maps);
  }

  void emit(Symbol& s) {
    Module& in = in_[s.module].module;
    const Maps& maps = maps_[s.module];
    if (!s.isFunction) {
      Variable v = std::move(in.variables[s.index]);
      v.name = s.name;
      v.align = std::max(v.align, s.align);
      if (v.isCommon && s.commonBytes > v.sizeBytes) {
        v.sizeBytes = s.commonBytes;
        v.dims = {s.commonBytes / std::max<uint64_t>(1, bitsOf(v.type) / 8 * v.vector)};
      }
      for (auto& i : v.init)
        if (const auto r = maps.renamed.find(i.symbol); r != maps.renamed.end()) i.symbol = r->second;
      if (s.strength == kDeclared && !(v.space == StateSpace::shared && v.sizeBytes == 0))
        out_.unresolvedVariables.push_back(v.name);
      out_.module.variables.push_back(std::move(v));
      return;
    }
    Function f = std::move(in.functions[s.index]);
    f.name = s.name;
    for (auto& i : f.body) {
      if (i.op == Opcode::call && !i.operands.empty() && i.operands[0].ref == Operand::Ref::function) {
        const Symbol& callee = symbols_[maps.functions[i.operands[0].refId]];
        if (in_[callee.module].module.functions[callee.index].isKernel)
          error(s.module, i.operands[0].pos, "'" + callee.name + "' is a kernel and cannot be called");
      }
      for (auto* list : {&i.operands, &i.callReturns, &i.callArgs})
        for (auto& o : *list) remap(o, maps);
      if (i.loc != kNoId) i.loc += maps.firstLocation;
      if (i.mnemonic != kNoId) i.mnemonic = maps.mnemonics[i.mnemonic];
    }
    for (auto& t : f.branchTargets) {
      if (!t.isCall) continue;
      for (auto& id : t.ids) id = functionId(maps, id);
      for (auto& name : t.targets)
        if (const auto r = maps.renamed.find(name); r != maps.renamed.end()) name = r->second;
    }
    if (s.strength == kDeclared) out_.unresolvedFunctions.push_back(f.name);
    out_.module.functions.push_back(std::move(f));
  }

  std::vector<LinkInput> in_;
  std::vector<Maps> maps_;
  LinkResult out_;
  std::vector<Symbol> symbols_;
  uint32_t variableCount_ = 0, functionCount_ = 0;
  std::unordered_map<std::string, uint32_t> byName_, mnemonics_;
  std::unordered_map<std::string, bool> taken_, globals_;
  std::unordered_map<uint32_t, uint32_t> alias_;
};

}  // namespace

LinkResult link(std::vector<LinkInput> inputs) { return Linker(std::move(inputs)).run(); }

}  // namespace sonde::ptx
