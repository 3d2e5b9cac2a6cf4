// SPDX-License-Identifier: Apache-2.0
#include "ptx/print.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace sonde::ptx {
namespace {

std::string hex(uint64_t bits, int digits) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "%0*llX", digits, static_cast<unsigned long long>(bits));
  return buffer;
}

// "%r", 12 of "%r12"; false without a number that ends the name and has no leading zero.
bool splitNumber(std::string_view name, std::string_view& prefix, uint32_t& number) {
  size_t i = name.size();
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') --i;
  if (i == 0 || i == name.size() || name.size() - i > 9 || (name[i] == '0' && name.size() - i > 1)) return false;
  prefix = name.substr(0, i);
  std::from_chars(name.data() + i, name.data() + name.size(), number);
  return true;
}

float smallFloat(uint64_t bits, unsigned mantissaBits, unsigned exponentBits) {
  const int exponent = static_cast<int>(bits >> mantissaBits & ((1u << exponentBits) - 1));
  const auto mantissa = static_cast<double>(bits & ((1u << mantissaBits) - 1));
  const int bias = (1 << (exponentBits - 1)) - 1;
  const double sign = bits >> (mantissaBits + exponentBits) & 1 ? -1 : 1;
  if (exponent == (1 << exponentBits) - 1) return static_cast<float>(mantissa != 0 ? NAN : sign * INFINITY);
  const double scale = 1u << mantissaBits;
  return static_cast<float>(sign * (exponent == 0 ? std::ldexp(mantissa / scale, 1 - bias)
                                                  : std::ldexp(1 + mantissa / scale, exponent - bias)));
}

class Printer {
 public:
  Printer(const Module& m, const PrintOptions& options) : m_(m), options_(options) {}

  std::string run() {
    line(".version " + std::to_string(m_.versionMajor) + "." + std::to_string(m_.versionMinor));
    std::string target = ".target sm_" + std::to_string(m_.target) + m_.targetSuffix;
    for (const auto& o : m_.targetOptions) target += ", " + o;
    line(target);
    line(".address_size " + std::to_string(m_.addressSize));
    for (const auto& p : m_.pragmas) line(".pragma \"" + p + "\";");
    if (options_.locations)
      for (const auto& f : m_.files) {
        std::string s = ".file " + std::to_string(f.index) + " \"" + f.path + "\"";
        if (f.timestamp != 0 || f.size != 0) s += ", " + std::to_string(f.timestamp) + ", " + std::to_string(f.size);
        line(s);
      }
    out_ += '\n';
    for (const auto& f : m_.functions) {
      signature(f);
      out_ += ";\n";
    }
    for (const auto& v : m_.variables) {
      linkage(v.isExtern, v.isVisible, v.isWeak, v.isCommon);
      variable(v);
      initialiser(v);
      out_ += ";\n";
    }
    for (const auto& f : m_.functions)
      if (f.hasBody) body(f);
    for (const auto& [name, target] : m_.aliases) line(".alias " + name + ", " + target + ";");
    if (options_.locations)
      for (const auto& s : m_.dwarfSections) line(s);
    return std::move(out_);
  }

  std::string operand(const Operand& o, const Function& f) const {
    switch (o.kind) {
      case Operand::Kind::none: return "";
      case Operand::Kind::reg: {
        const Register& r = f.registers[o.reg];
        std::string s = o.negated ? (r.type == ScalarType::pred ? "!" : "-") : "";
        s += r.name;
        if (o.component >= 0) s += component(o.component);
        if (!o.selector.empty()) s += "." + o.selector;
        if (o.offset != 0) s += "+" + std::to_string(o.offset);
        return s;
      }
      case Operand::Kind::special: return name(o.special, o.index) + (o.component >= 0 ? component(o.component) : "");
      case Operand::Kind::integer: return std::to_string(static_cast<int64_t>(o.imm));
      case Operand::Kind::floating: return o.is32 ? "0f" + hex(o.imm, 8) : "0d" + hex(o.imm, 16);
      case Operand::Kind::address: {
        std::string s = "[";
        if (o.reg != kNoId)
          s += f.registers[o.reg].name + (o.component >= 0 ? component(o.component) : "");
        else if (o.ref != Operand::Ref::none)
          s += reference(o, f);
        else
          return s + std::to_string(o.offset) + "]";
        if (o.offset != 0) s += "+" + std::to_string(o.offset);
        return s + "]";
      }
      case Operand::Kind::symbol: return reference(o, f) + (o.offset != 0 ? "+" + std::to_string(o.offset) : "");
      case Operand::Kind::label: return o.index < f.labels.size() ? f.labels[o.index].name : "?";
      case Operand::Kind::vector: return "{" + list(o.elements, f) + "}";
      case Operand::Kind::predPair: return operand(o.elements[0], f) + "|" + operand(o.elements[1], f);
      case Operand::Kind::sink: return "_";
      case Operand::Kind::texture: return "[" + list(o.elements, f) + "]";
    }
    return "";
  }

  std::string instruction(const Instruction& i, const Function& f) const {
    std::string s;
    if (i.guard.reg != kNoId) s = std::string(i.guard.negated ? "@!" : "@") + f.registers[i.guard.reg].name + " ";
    s += mnemonicText(i, m_);
    std::string operands;
    if (i.op == Opcode::call) {
      if (!i.callReturns.empty()) operands += "(" + list(i.callReturns, f) + "), ";
      operands += list(i.operands, f);
      if (!i.callArgs.empty() || i.callPrototype != kNoId || i.callTargets != kNoId)
        operands += ", (" + list(i.callArgs, f) + ")";
      if (i.callPrototype != kNoId) operands += ", " + f.prototypes[i.callPrototype].name;
      if (i.callTargets != kNoId) operands += ", " + f.branchTargets[i.callTargets].name;
    } else {
      operands = list(i.operands, f);
    }
    if (!operands.empty()) s += " " + operands;
    return s + ";";
  }

 private:
  void line(const std::string& s) { out_ += s + "\n"; }

  static std::string component(int c) { return std::string(".") + "xyzw"[c & 3]; }

  std::string list(const std::vector<Operand>& operands, const Function& f) const {
    std::string s;
    for (const auto& o : operands) {
      if (!s.empty()) s += ", ";
      s += operand(o, f);
    }
    return s;
  }

  std::string reference(const Operand& o, const Function& f) const {
    switch (o.ref) {
      case Operand::Ref::moduleVar: return m_.variables[o.refId].name;
      case Operand::Ref::localVar: return f.variables[o.refId].name;
      case Operand::Ref::function: return m_.functions[o.refId].name;
      case Operand::Ref::param: return f.params[o.refId].name;
      case Operand::Ref::returnParam: return f.returns[o.refId].name;
      case Operand::Ref::branchTargets: return f.branchTargets[o.refId].name;
      // A texture reference's base in a register has no reference.
      case Operand::Ref::none: break;
    }
    return o.reg != kNoId ? f.registers[o.reg].name : "?";
  }

  void linkage(bool isExtern, bool isVisible, bool isWeak, bool isCommon) {
    if (isExtern) out_ += ".extern ";
    if (isVisible) out_ += ".visible ";
    if (isWeak) out_ += ".weak ";
    if (isCommon) out_ += ".common ";
  }

  // Without linkage and initial value.
  void variable(const Variable& v) {
    out_ += "." + std::string(name(v.space));
    if (v.isManaged) out_ += " .attribute(.managed)";
    const uint32_t natural = std::max(1u, bitsOf(v.type) / 8) * v.vector;
    if (v.align != natural && v.align != 0) out_ += " .align " + std::to_string(v.align);
    if (v.vector > 1) out_ += " .v" + std::to_string(v.vector);
    out_ += " ." + std::string(name(v.type));
    if (v.isPointerParam) {
      out_ += " .ptr";
      if (v.pointerSpace != StateSpace::none) out_ += " ." + std::string(name(v.pointerSpace));
      out_ += " .align " + std::to_string(v.pointerAlign);
    }
    out_ += " " + v.name;
    for (const uint64_t d : v.dims) out_ += d == 0 ? "[]" : "[" + std::to_string(d) + "]";
  }

  void element(const Variable& v, const Initializer& e) {
    switch (e.kind) {
      case Initializer::Kind::zero: out_ += isFloat(v.type) ? "0f00000000" : "0"; return;
      case Initializer::Kind::integer: out_ += std::to_string(e.bits); return;
      case Initializer::Kind::floating:
        switch (v.type) {
          case ScalarType::f64: out_ += "0d" + hex(e.bits, 16); return;
          case ScalarType::f16: out_ += "0f" + hex(std::bit_cast<uint32_t>(smallFloat(e.bits, 10, 5)), 8); return;
          case ScalarType::bf16: out_ += "0f" + hex(e.bits << 16, 8); return;
          default: out_ += "0f" + hex(e.bits, 8); return;
        }
      case Initializer::Kind::symbol:
      case Initializer::Kind::genericSymbol: {
        std::string s = e.kind == Initializer::Kind::symbol ? e.symbol : "generic(" + e.symbol + ")";
        if (e.offset != 0) s += "+" + std::to_string(e.offset);
        if (e.masked) s = "0x" + hex(uint64_t{0xff} << e.maskShift, 2) + "(" + s + ")";
        out_ += s;
        return;
      }
    }
  }

  // Elements [next, …) of one brace level, `size` of them in rows of `rowSizes[level]`.
  void row(const Variable& v, const std::vector<uint64_t>& sizes, size_t level, size_t& next, uint64_t count) {
    out_ += "{";
    const size_t end = next + count;
    bool first = true;
    while (next < end && next < v.init.size()) {
      if (!first) out_ += ", ";
      first = false;
      if (level + 1 < sizes.size())
        row(v, sizes, level + 1, next, sizes[level + 1]);
      else
        element(v, v.init[next++]);
    }
    out_ += "}";
  }

  void initialiser(const Variable& v) {
    if (!v.properties.empty()) {
      out_ += " = {";
      for (size_t i = 0; i < v.properties.size(); ++i)
        out_ += (i ? ", " : "") + v.properties[i].first + " = " + v.properties[i].second;
      out_ += "}";
      return;
    }
    if (v.init.empty()) return;
    out_ += " = ";
    if (v.dims.empty() && v.vector == 1) return element(v, v.init[0]);
    // sizes[level]: elements in one brace of that level.
    std::vector<uint64_t> sizes;
    uint64_t size = v.vector;
    if (v.vector > 1) sizes.push_back(size);
    for (size_t i = v.dims.size(); i-- > 0;) {
      size *= v.dims[i];
      sizes.insert(sizes.begin(), size);
    }
    size_t next = 0;
    row(v, sizes, 0, next, sizes[0]);
  }

  void parameters(const std::vector<Variable>& list) {
    out_ += "(";
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ", ";
      variable(list[i]);
    }
    out_ += ")";
  }

  void signature(const Function& f) {
    linkage(f.isExtern, f.isVisible, f.isWeak, false);
    out_ += f.isKernel ? ".entry " : ".func ";
    if (f.isUnified)
      out_ += ".attribute(.unified(" + std::to_string(f.unifiedId[0]) + ", " + std::to_string(f.unifiedId[1]) + ")) ";
    if (!f.returns.empty()) {
      parameters(f.returns);
      out_ += " ";
    }
    out_ += f.name;
    parameters(f.params);
    if (f.hints.noreturn) out_ += " .noreturn";
  }

  void directives(const Function& f) {
    const auto& h = f.hints;
    auto dims = [&](const char* word, const std::array<uint32_t, 3>& d) {
      if (d[0] != 0)
        line(std::string(word) + " " + std::to_string(d[0]) + ", " + std::to_string(d[1]) + ", " +
             std::to_string(d[2]));
    };
    auto number = [&](const char* word, uint32_t n) {
      if (n != 0) line(std::string(word) + " " + std::to_string(n));
    };
    dims(".maxntid", h.maxntid);
    dims(".reqntid", h.reqntid);
    dims(".reqnctapercluster", h.reqnctapercluster);
    number(".minnctapersm", h.minnctapersm);
    number(".maxnreg", h.maxnreg);
    number(".maxclusterrank", h.maxclusterrank);
    number(".abi_preserve", h.abiPreserve);
    number(".abi_preserve_control", h.abiPreserveControl);
    if (h.explicitCluster) line(".explicitcluster");
    if (h.blocksareclusters) line(".blocksareclusters");
    for (const auto& p : f.pragmas) line(".pragma \"" + p + "\";");
  }

  void registers(const Function& f) {
    std::vector<bool> isParameter(f.registers.size(), false);
    for (const auto* list : {&f.returns, &f.params})
      for (const auto& p : *list)
        if (p.regId != kNoId) isParameter[p.regId] = true;
    for (size_t i = 0; i < f.registers.size();) {
      if (isParameter[i]) {
        ++i;
        continue;
      }
      const Register& r = f.registers[i];
      std::string head = ".reg ";
      if (r.vector > 1) head += ".v" + std::to_string(r.vector) + " ";
      head += "." + std::string(name(r.type)) + " ";
      std::string_view prefix, other;
      uint32_t number, count = 0;
      if (splitNumber(r.name, prefix, number) && number == 0)
        while (i + count < f.registers.size() && !isParameter[i + count] && f.registers[i + count].type == r.type &&
               f.registers[i + count].vector == r.vector && splitNumber(f.registers[i + count].name, other, number) &&
               other == prefix && number == count)
          ++count;
      if (count > 1) {
        line("\t" + head + std::string(prefix) + "<" + std::to_string(count) + ">;");
        i += count;
      } else {
        line("\t" + head + r.name + ";");
        ++i;
      }
    }
  }

  void location(uint32_t id) {
    const Location& l = m_.locations[id];
    // Readers want a .loc of the place of inlining before, with its own history.
    if (l.inlinedAt != kNoId) location(l.inlinedAt);
    auto place = [](const Location& x) {
      return std::to_string(x.file) + " " + std::to_string(x.line) + " " + std::to_string(x.column);
    };
    std::string s = "\t.loc " + place(l);
    if (!l.functionLabel.empty()) {
      s += ", function_name " + l.functionLabel;
      if (l.functionOffset != 0) s += "+" + std::to_string(l.functionOffset);
    }
    if (l.inlinedAt != kNoId) s += ", inlined_at " + place(m_.locations[l.inlinedAt]);
    line(s);
  }

  void body(const Function& f) {
    out_ += '\n';
    signature(f);
    out_ += '\n';
    directives(f);
    line("{");
    registers(f);
    for (const auto& v : f.variables) {
      out_ += '\t';
      variable(v);
      initialiser(v);
      out_ += ";\n";
    }
    for (const auto& p : f.prototypes) {
      out_ += p.name + ": .callprototype ";
      if (!p.returns.empty()) {
        parameters(p.returns);
        out_ += ' ';
      }
      out_ += "_ ";
      parameters(p.params);
      out_ += p.noreturn ? " .noreturn;\n" : ";\n";
    }
    size_t label = 0, table = 0, pragma = 0;
    uint32_t loc = kNoId;
    for (uint32_t i = 0; i <= f.body.size(); ++i) {
      for (; table < f.branchTargets.size() && f.branchTargets[table].instruction <= i; ++table) {
        const auto& t = f.branchTargets[table];
        out_ += t.name + (t.isCall ? ": .calltargets " : ": .branchtargets ");
        for (size_t k = 0; k < t.targets.size(); ++k) out_ += (k ? ", " : "") + t.targets[k];
        out_ += ";\n";
      }
      for (; label < f.labels.size() && f.labels[label].instruction <= i; ++label) line(f.labels[label].name + ":");
      for (; pragma < f.bodyPragmas.size() && f.bodyPragmas[pragma].instruction <= i; ++pragma)
        line("\t.pragma \"" + f.bodyPragmas[pragma].text + "\";");
      if (i == f.body.size()) break;
      if (options_.locations && f.body[i].loc != loc && f.body[i].loc != kNoId) {
        loc = f.body[i].loc;
        location(loc);
      }
      out_ += '\t';
      out_ += instruction(f.body[i], f);
      out_ += '\n';
    }
    line("}");
  }

  const Module& m_;
  const PrintOptions& options_;
  std::string out_;
};

}  // namespace

std::string mnemonicText(const Instruction& i, const Module& m) {
  if (i.mnemonic != kNoId) return m.mnemonics[i.mnemonic];
  std::string s(name(i.op));
  // Memory accesses name their order and scope first, then the space, then the rest; so do most others.
  size_t k = 0;
  auto leads = [](Mod m) {
    return m == Mod::volatile_ || m == Mod::weak || m == Mod::mmio || m == Mod::relaxed || m == Mod::acquire ||
           m == Mod::release || m == Mod::acq_rel || m == Mod::cta || m == Mod::cluster || m == Mod::gpu ||
           m == Mod::sys || m == Mod::to || m == Mod::async || m == Mod::bulk;
  };
  for (; k < i.mods.size() && leads(i.mods[k]); ++k) s += "." + std::string(name(i.mods[k]));
  for (const StateSpace space : {i.space, i.space2})
    if (space != StateSpace::none) s += "." + std::string(name(space));
  for (; k < i.mods.size(); ++k) s += "." + std::string(name(i.mods[k]));
  if (i.vectorWidth > 1) s += ".v" + std::to_string(i.vectorWidth);
  for (const ScalarType t : i.types) s += "." + std::string(name(t));
  return s;
}

std::string print(const Module& module, const PrintOptions& options) { return Printer(module, options).run(); }

std::string print(const Instruction& i, const Function& f, const Module& m) {
  const PrintOptions options;
  return Printer(m, options).instruction(i, f);
}

std::string print(const Operand& o, const Function& f, const Module& m) {
  const PrintOptions options;
  return Printer(m, options).operand(o, f);
}

}  // namespace sonde::ptx
