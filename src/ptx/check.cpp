// SPDX-License-Identifier: Apache-2.0
#include "ptx/check.h"

#include <algorithm>

#include "ptx/checker.h"

namespace sonde::ptx {
namespace {

bool isUntyped(ScalarType t) {
  return t == ScalarType::b8 || t == ScalarType::b16 || t == ScalarType::b32 || t == ScalarType::b64 ||
         t == ScalarType::b128;
}

bool isVectorSpecial(SpecialReg r) {
  switch (r) {
    case SpecialReg::tid:
    case SpecialReg::ntid:
    case SpecialReg::ctaid:
    case SpecialReg::nctaid:
    case SpecialReg::clusterid:
    case SpecialReg::nclusterid:
    case SpecialReg::cluster_ctaid:
    case SpecialReg::cluster_nctaid: return true;
    default: return false;
  }
}

// Types that have no constants.
bool registersOnly(ScalarType t) {
  return (isFloat(t) && t != ScalarType::f32 && t != ScalarType::f64) || t == ScalarType::u16x2 ||
         t == ScalarType::s16x2;
}

template <class Range>
std::string list(const Range& items) {
  std::string s;
  for (const auto& item : items) {
    if (!s.empty()) s += ", ";
    s += "'." + std::string(name(item)) + "'";
  }
  return s;
}

bool contains(const std::vector<Mod>& mods, Mod m) { return std::find(mods.begin(), mods.end(), m) != mods.end(); }

bool keysMatch(const Instruction& i, const InstructionRule& r) {
  return std::all_of(r.keys.begin(), r.keys.end(), [&](Mod m) { return i.has(m); });
}

bool typesMatch(const Instruction& i, const InstructionRule& r) {
  if (r.openTypes) return true;
  if (r.openMods ? i.types.size() < r.types.size() : i.types.size() != r.types.size()) return false;
  for (size_t k = 0; k < r.types.size(); ++k)
    if (std::find(r.types[k].begin(), r.types[k].end(), i.types[k]) == r.types[k].end()) return false;
  return true;
}

size_t countOf(const Instruction& i, const std::vector<Mod>& group) {
  return std::count_if(i.mods.begin(), i.mods.end(), [&](Mod m) { return contains(group, m); });
}

bool groupsMatch(const Instruction& i, const InstructionRule& r) {
  return std::all_of(r.oneOf.begin(), r.oneOf.end(), [&](const auto& group) { return countOf(i, group) == 1; });
}

// The first modifier that the form does not have; invalid when all are fine.
Mod strayMod(const Instruction& i, const InstructionRule& r) {
  if (r.openMods) return Mod::invalid;
  for (Mod m : i.mods)
    if (!contains(r.keys, m) && !contains(r.optional, m) &&
        std::none_of(r.oneOf.begin(), r.oneOf.end(), [&](const auto& group) { return contains(group, m); }))
      return m;
  return Mod::invalid;
}

}  // namespace

std::vector<Diagnostic> check(const Module& module, const CheckOptions& options) {
  return Checker(module, options).run();
}

std::string describe(const Operand& o, const Function& f, const Module& m) {
  auto variable = [](const Variable& v) { return "'" + v.name + "', a variable in ." + std::string(name(v.space)); };
  switch (o.kind) {
    case Operand::Kind::reg: {
      const Register& r = f.registers[o.reg];
      std::string s = "'" + r.name + "' of type ";
      if (r.vector > 1 && o.component < 0) s += ".v" + std::to_string(r.vector) + " ";
      return s + "." + std::string(name(r.type));
    }
    case Operand::Kind::special:
      return "'" + name(o.special, o.index) + (o.component >= 0 ? std::string(".") + "xyzw"[o.component & 3] : "") +
             "'";
    case Operand::Kind::integer: return "the integer " + std::to_string(static_cast<int64_t>(o.imm));
    case Operand::Kind::floating: return "a floating-point number";
    case Operand::Kind::address: return "an address";
    case Operand::Kind::symbol:
      switch (o.ref) {
        case Operand::Ref::moduleVar: return variable(m.variables[o.refId]);
        case Operand::Ref::localVar: return variable(f.variables[o.refId]);
        case Operand::Ref::param: return variable(f.params[o.refId]);
        case Operand::Ref::returnParam: return variable(f.returns[o.refId]);
        case Operand::Ref::function: return "the function '" + m.functions[o.refId].name + "'";
        default: return "a target table";
      }
    case Operand::Kind::label: return "a label";
    case Operand::Kind::vector: return "a vector of " + std::to_string(o.elements.size());
    case Operand::Kind::predPair: return "a pair joined by '|'";
    case Operand::Kind::sink: return "'_'";
    case Operand::Kind::texture: return "a texture reference";
    case Operand::Kind::none: break;
  }
  return "nothing";
}

std::vector<Diagnostic> Checker::run() {
  if (options_.featureLevels) moduleFeatures();
  for (const auto& f : module_.functions) {
    if (out_.size() >= options_.maxErrors) break;
    function(f);
  }
  return std::move(out_);
}

void Checker::error(SourcePos pos, std::string message) {
  if (out_.size() < options_.maxErrors) out_.push_back({Diagnostic::Severity::error, pos, std::move(message)});
}

std::string Checker::mnemonic(const Instruction& i) const {
  return "'" + (i.mnemonic != kNoId ? module_.mnemonics[i.mnemonic] : std::string(name(i.op))) + "'";
}

void Checker::complain(const Instruction& i, const Operand& o, const std::string& expected) {
  error(o.pos, mnemonic(i) + " expects " + expected + ", found " + text(o));
}

void Checker::function(const Function& f) {
  fn_ = &f;
  if (options_.featureLevels) functionFeatures(f);
  for (const auto& i : f.body) {
    if (out_.size() >= options_.maxErrors) return;
    instruction(i);
  }
}

void Checker::instruction(const Instruction& i) {
  const InstructionRule* rule = choose(i);
  if (!rule) return explainNoForm(i);
  if (options_.featureLevels) instructionFeatures(i, rule);
  switch (i.op) {
    case Opcode::mov: return mov(i);
    case Opcode::ld:
    case Opcode::ldu: return load(i);
    case Opcode::st:
      if (!i.has(Mod::async) && !i.has(Mod::bulk)) return store(i);
      break;
    case Opcode::cvt: return convert(i);
    case Opcode::atom: return atomic(i, true);
    case Opcode::red:
      if (!i.has(Mod::async)) return atomic(i, false);
      break;
    case Opcode::call: return call(i);
    default: break;
  }
  if (!rule->openOperands) operandsByRule(i, *rule);
  special(i);
}

const InstructionRule* Checker::choose(const Instruction& i) {
  for (const auto& rule : rulesOf(i.op))
    if (keysMatch(i, rule) && typesMatch(i, rule) && groupsMatch(i, rule) && strayMod(i, rule) == Mod::invalid)
      return &rule;
  return nullptr;
}

void Checker::explainNoForm(const Instruction& i) {
  const auto& rules = rulesOf(i.op);
  // The forms that come nearest: with the types as written, then with the key modifiers.
  std::vector<const InstructionRule*> typed, keyed;
  for (const auto& r : rules) {
    if (typesMatch(i, r)) typed.push_back(&r);
    if (keysMatch(i, r)) keyed.push_back(&r);
  }
  if (typed.empty()) {
    const auto& from = keyed.empty() ? std::vector<const InstructionRule*>{&rules[0]} : keyed;
    size_t place = 0;
    for (const auto* r : from) {  // the furthest place that some form got to
      size_t k = 0;
      while (k < i.types.size() && k < r->types.size() &&
             std::find(r->types[k].begin(), r->types[k].end(), i.types[k]) != r->types[k].end())
        ++k;
      place = std::max(place, k);
    }
    std::vector<ScalarType> expected;
    for (const auto* r : from)
      if (place < r->types.size())
        for (ScalarType t : r->types[place])
          if (std::find(expected.begin(), expected.end(), t) == expected.end()) expected.push_back(t);
    const std::string found = place < i.types.size()
                                  ? "unexpected type '." + std::string(name(i.types[place])) + "' in "
                                  : "a type is missing in ";
    return error(i.pos, found + mnemonic(i) +
                            (expected.empty() ? "; it has no type there" : "; expected one of " + list(expected)));
  }
  std::vector<Mod> needed;
  const InstructionRule* withStray = nullptr;
  const std::vector<Mod>* doubled = nullptr;
  for (const auto* r : typed) {
    if (keysMatch(i, *r) && groupsMatch(i, *r)) {
      withStray = r;
      continue;
    }
    for (Mod m : r->keys)
      if (!i.has(m) && !contains(needed, m)) needed.push_back(m);
    for (const auto& group : r->oneOf) {
      const size_t n = countOf(i, group);
      if (n > 1) doubled = &group;
      if (n != 0) continue;
      for (Mod m : group)
        if (!contains(needed, m)) needed.push_back(m);
    }
  }
  if (withStray)
    return error(i.pos, "'." + std::string(name(strayMod(i, *withStray))) + "' cannot be used in " + mnemonic(i));
  if (doubled) return error(i.pos, mnemonic(i) + " has more than one of " + list(*doubled));
  if (needed.size() == 1) return error(i.pos, mnemonic(i) + " needs " + list(needed));
  if (needed.empty()) return error(i.pos, "the modifiers of " + mnemonic(i) + " contradict each other");
  error(i.pos, mnemonic(i) + " needs one of " + list(needed));
}

bool Checker::count(const Instruction& i, size_t least, size_t most) {
  const size_t n = i.operands.size();
  if (n >= least && n <= most) return true;
  std::string expected = least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  if (most == 0) expected = "no";
  error(n > most && most > 0 ? i.operands[most].pos : i.pos,
        mnemonic(i) + " expects " + expected + (most == 1 && least == most ? " operand" : " operands") + ", found " +
            std::to_string(n));
  return false;
}

void Checker::operandsByRule(const Instruction& i, const InstructionRule& rule) {
  const size_t most = rule.operands.size();
  const size_t least =
      std::count_if(rule.operands.begin(), rule.operands.end(), [](const auto& o) { return !o.optional; });
  if (!count(i, least, most)) return;
  for (size_t k = 0; k < i.operands.size(); ++k) operand(i, k, i.operands[k], rule.operands[k]);
}

void Checker::operand(const Instruction& i, size_t index, const Operand& o, const OperandRule& rule) {
  using Kind = OperandRule::Kind;
  const ScalarType type = rule.type != ScalarType::none ? rule.type : i.type(rule.typeIndex);
  switch (rule.kind) {
    case Kind::any: return;
    case Kind::dest:
    case Kind::destOf: return dest(i, o, type);
    case Kind::source:
    case Kind::sourceOf: return source(i, o, type);
    case Kind::wideDest: return dest(i, o, type, Fit::exact, 2);
    case Kind::wideSource: return source(i, o, type, Fit::exact, 2);
    case Kind::predDest: return predicate(i, o, true);
    case Kind::predSource: return predicate(i, o, false);
    case Kind::predPair:
      if (o.kind != Operand::Kind::predPair) return predicate(i, o, true);
      for (const auto& e : o.elements)
        if (e.kind != Operand::Kind::sink) predicate(i, e, true);
      return;
    case Kind::pairDest:
      if (o.kind != Operand::Kind::predPair) return dest(i, o, type);
      if (o.elements[0].kind != Operand::Kind::sink) dest(i, o.elements[0], type);
      if (o.elements[1].kind != Operand::Kind::sink) predicate(i, o.elements[1], true);
      return;
    case Kind::address: return address(i, o);
    case Kind::immediate:
      if (o.kind != Operand::Kind::integer) complain(i, o, "an integer constant");
      return;
    case Kind::label:
      if (o.kind != Operand::Kind::label) complain(i, o, "a label");
      return;
  }
}

ScalarType Checker::typeOf(const Operand& o) const {
  if (o.kind == Operand::Kind::reg) return fn_->registers[o.reg].type;
  if (o.kind == Operand::Kind::special) {
    switch (o.special) {
      case SpecialReg::clock64:
      case SpecialReg::globaltimer:
      case SpecialReg::pm64:
      case SpecialReg::gridid:
      case SpecialReg::current_graph_exec: return ScalarType::u64;
      case SpecialReg::is_explicit_cluster: return ScalarType::pred;
      default: return ScalarType::u32;
    }
  }
  return ScalarType::none;
}

// May a register of type `reg` stand where the instruction's type is `wanted`?
bool Checker::matches(ScalarType reg, ScalarType wanted, Fit fit, unsigned widen) const {
  if (reg == ScalarType::pred || wanted == ScalarType::pred) return reg == wanted;
  const unsigned have = bitsOf(reg), want = std::max(8u, bitsOf(wanted)) * widen;
  if (have != want && !(fit == Fit::mayBeWider && have > want)) return false;
  if (isUntyped(reg) || isUntyped(wanted)) return true;
  if (isFloat(wanted) != isFloat(reg)) return false;
  if (isFloat(wanted)) return reg == wanted;
  return true;
}

namespace {

std::string wantedText(ScalarType t, unsigned widen) {
  if (widen == 1) return "." + std::string(name(t));
  return "." + std::string(1, name(t)[0]) + std::to_string(bitsOf(t) * widen);
}

}  // namespace

void Checker::dest(const Instruction& i, const Operand& o, ScalarType t, Fit fit, unsigned widen) {
  if (o.kind == Operand::Kind::reg && !o.negated && o.offset == 0) {
    const Register& r = fn_->registers[o.reg];
    if ((r.vector == 1 || o.component >= 0) && matches(r.type, t, fit, widen)) return;
  }
  complain(i, o, "a register of type " + wantedText(t, widen) + (fit == Fit::mayBeWider ? " or wider" : ""));
}

void Checker::source(const Instruction& i, const Operand& o, ScalarType t, Fit fit, unsigned widen) {
  switch (o.kind) {
    case Operand::Kind::reg: {
      const Register& r = fn_->registers[o.reg];
      if (o.negated && t != ScalarType::pred && o.selector.empty()) break;
      if ((r.vector == 1 || o.component >= 0) && matches(r.type, t, fit, widen)) return;
      break;
    }
    case Operand::Kind::special:
      if (i.op != Opcode::mov && i.op != Opcode::cvt) {
        complain(i, o, "a register or a number");
        return;
      }
      if (o.component < 0 && isVectorSpecial(o.special)) break;
      if (matches(typeOf(o), t, fit, widen) || (typeOf(o) == ScalarType::u32 && !isFloat(t) && bitsOf(t) == 16) ||
          (o.special == SpecialReg::gridid && bitsOf(t) == 32))
        return;
      break;
    case Operand::Kind::integer:
      if (registersOnly(t)) break;
      if (!isFloat(t)) return;
      return error(o.pos, mnemonic(i) + " expects a floating-point value of type ." + std::string(name(t)) +
                              ", found " + text(o) + "; write it with a decimal point or as 0f…");
    case Operand::Kind::floating:
      if (registersOnly(t)) break;
      if (isFloat(t) || (isUntyped(t) && (o.is32 ? bitsOf(t) == 32 : bitsOf(t) == 64))) return;
      break;
    case Operand::Kind::symbol:
      if (i.op == Opcode::mov && !isFloat(t) && bitsOf(t) >= 32 && o.ref != Operand::Ref::branchTargets) return;
      break;
    default: break;
  }
  complain(i, o,
           (registersOnly(t) ? "a register of type " : "a value of type ") + wantedText(t, widen) +
               (fit == Fit::mayBeWider ? " or wider" : ""));
}

void Checker::predicate(const Instruction& i, const Operand& o, bool isDest) {
  if (o.kind == Operand::Kind::reg && fn_->registers[o.reg].type == ScalarType::pred && !(isDest && o.negated)) return;
  if (isDest && o.kind == Operand::Kind::sink) return;
  if (!isDest && o.kind == Operand::Kind::integer) return;
  complain(i, o, "a predicate register");
}

void Checker::address(const Instruction& i, const Operand& o) {
  if (o.kind != Operand::Kind::address) return complain(i, o, "an address in brackets");
  if (o.reg == kNoId) return;
  const Register& r = fn_->registers[o.reg];
  if (r.type == ScalarType::pred || isFloat(r.type) || bitsOf(r.type) < 32 || bitsOf(r.type) > 64)
    error(o.pos, mnemonic(i) + " expects an address register of 32 or 64 bits, found '" + r.name + "' of type ." +
                     std::string(name(r.type)));
}

}  // namespace sonde::ptx
