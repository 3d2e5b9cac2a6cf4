// SPDX-License-Identifier: Apache-2.0
//
// Instructions whose rules do not fit into the table.
#include <algorithm>

#include "ptx/checker.h"

namespace sonde::ptx {
namespace {

bool isPlainNumber(ScalarType t) {
  using enum ScalarType;
  switch (t) {
    case u8:
    case u16:
    case u32:
    case u64:
    case s8:
    case s16:
    case s32:
    case s64:
    case f16:
    case bf16:
    case f32:
    case f64: return true;
    default: return false;
  }
}

}  // namespace

void Checker::mov(const Instruction& i) {
  if (!count(i, 2, 2)) return;
  const ScalarType t = i.type();
  const Operand& d = i.operands[0];
  const Operand& s = i.operands[1];
  if (i.vectorWidth > 1) {
    for (const auto* o : {&d, &s})
      if (o->kind == Operand::Kind::vector && o->elements.size() != i.vectorWidth)
        error(o->pos, mnemonic(i) + " expects a vector of " + std::to_string(i.vectorWidth) + " elements, found " +
                          std::to_string(o->elements.size()));
    return;
  }
  const bool untyped = t == ScalarType::b16 || t == ScalarType::b32 || t == ScalarType::b64 || t == ScalarType::b128;
  auto pack = [&](const Operand& v, bool isDest) {
    if (!untyped) return error(v.pos, mnemonic(i) + " cannot take a vector apart; use .b32, .b64 or .b128");
    const size_t n = v.elements.size();
    if (n != 2 && n != 4)
      return error(v.pos, mnemonic(i) + " expects a vector of 2 or 4 elements, found " + std::to_string(n));
    const unsigned each = bitsOf(t) / static_cast<unsigned>(n);
    const ScalarType element = each == 8    ? ScalarType::b8
                               : each == 16 ? ScalarType::b16
                               : each == 32 ? ScalarType::b32
                                            : ScalarType::b64;
    for (const auto& e : v.elements) {
      if (isDest && e.kind == Operand::Kind::sink) continue;
      if (isDest)
        dest(i, e, element);
      else
        source(i, e, element);
    }
  };
  if (d.kind == Operand::Kind::vector) {
    pack(d, true);
    return source(i, s, t);
  }
  if (d.kind == Operand::Kind::reg && fn_->registers[d.reg].vector > 1 && d.component < 0) return;
  dest(i, d, t);
  if (s.kind == Operand::Kind::vector) return pack(s, false);
  if (s.ref == Operand::Ref::localVar && fn_->variables[s.refId].space == StateSpace::param)
    return complain(i, s, "a value; a .param variable of a call has no address");
  source(i, s, t);
}

// The value operand of ld and st: one register, or as many as the vector width says.
void Checker::valueList(const Instruction& i, const Operand& o, bool isDest) {
  auto one = [&](const Operand& e) {
    if (isDest && e.kind == Operand::Kind::sink && i.vectorWidth > 1) return;
    if (isDest)
      dest(i, e, i.type(), Fit::mayBeWider);
    else
      source(i, e, i.type(), Fit::mayBeWider);
  };
  if (o.kind == Operand::Kind::vector) {
    if (o.elements.size() != i.vectorWidth)
      return error(o.pos, mnemonic(i) + " expects a vector of " + std::to_string(i.vectorWidth) + " elements, found " +
                              std::to_string(o.elements.size()));
    for (const auto& e : o.elements) one(e);
    unsigned width = 0;
    for (const auto& e : o.elements) {
      const unsigned bits = bitsOf(typeOf(e));
      if (bits != 0 && width != 0 && bits != width)
        return error(e.pos, "the elements of a vector must be equally wide, in " + mnemonic(i));
      if (bits != 0) width = bits;
    }
  } else if (i.vectorWidth > 1) {
    if (o.kind == Operand::Kind::reg && o.component < 0 && fn_->registers[o.reg].vector == i.vectorWidth) return;
    complain(i, o, "a vector of " + std::to_string(i.vectorWidth) + " elements");
  } else {
    one(o);
  }
}

void Checker::vectorSize(const Instruction& i) {
  const unsigned bits = bitsOf(i.type()) * i.vectorWidth;
  if (bits <= 128 && i.vectorWidth <= 4) return;
  if (bits > 256)
    return error(i.pos, mnemonic(i) + " moves " + std::to_string(bits) +
                            " bits; at most 128 (256 in .global) can be moved at once");
  if (i.space != StateSpace::global)
    return error(i.pos, mnemonic(i) + " moves 256 bits, which only .global accesses can");
  if (options_.featureLevels) require(i.pos, "a 256-bit " + std::string(name(i.op)), 88, 100);
}

void Checker::memorySpace(const Instruction& i, const Operand& a, std::initializer_list<StateSpace> allowed) {
  if (std::find(allowed.begin(), allowed.end(), i.space) == allowed.end())
    return error(i.pos, i.space == StateSpace::none
                            ? mnemonic(i) + " needs a state space"
                            : "'" + std::string(name(i.op)) + "' cannot access ." + std::string(name(i.space)));
  const Variable* v = a.ref == Operand::Ref::moduleVar     ? &module_.variables[a.refId]
                      : a.ref == Operand::Ref::localVar    ? &fn_->variables[a.refId]
                      : a.ref == Operand::Ref::param       ? &fn_->params[a.refId]
                      : a.ref == Operand::Ref::returnParam ? &fn_->returns[a.refId]
                                                           : nullptr;
  if (!v || i.space == StateSpace::none) return;
  auto base = [](StateSpace s) {
    switch (s) {
      case StateSpace::sharedCta:
      case StateSpace::sharedCluster: return StateSpace::shared;
      case StateSpace::paramEntry:
      case StateSpace::paramFunc: return StateSpace::param;
      default: return s;
    }
  };
  if (base(v->space) != base(i.space))
    error(a.pos, mnemonic(i) + " accesses ." + std::string(name(i.space)) + ", but '" + v->name + "' is in ." +
                     std::string(name(v->space)));
}

// .relaxed, .acquire and .release say for whom.
void Checker::memoryOrder(const Instruction& i) {
  if ((i.has(Mod::relaxed) || i.has(Mod::acquire) || i.has(Mod::release)) && !i.has(Mod::cta) && !i.has(Mod::cluster) &&
      !i.has(Mod::gpu) && !i.has(Mod::sys))
    error(i.pos, mnemonic(i) + " needs a scope: one of '.cta', '.cluster', '.gpu', '.sys'");
}

void Checker::load(const Instruction& i) {
  if (!count(i, 2, i.has(Mod::L2_cache_hint) ? 3 : 2)) return;
  address(i, i.operands[1]);
  using enum StateSpace;
  if (i.op == Opcode::ldu)
    memorySpace(i, i.operands[1], {none, global});
  else
    memorySpace(i, i.operands[1],
                {none, const_, global, local, param, shared, sharedCta, sharedCluster, paramEntry, paramFunc});
  if (i.has(Mod::nc) && i.space != global) error(i.pos, "'.nc' is for .global loads only, in " + mnemonic(i));
  memoryOrder(i);
  vectorSize(i);
  valueList(i, i.operands[0], true);
}

void Checker::store(const Instruction& i) {
  if (!count(i, 2, i.has(Mod::L2_cache_hint) ? 3 : 2)) return;
  address(i, i.operands[0]);
  using enum StateSpace;
  memorySpace(i, i.operands[0], {none, global, local, param, shared, sharedCta, sharedCluster, paramFunc});
  if (fn_->isKernel && i.operands[0].ref == Operand::Ref::param)
    error(i.operands[0].pos, mnemonic(i) + " writes to a parameter of a kernel, which is read-only");
  memoryOrder(i);
  vectorSize(i);
  valueList(i, i.operands[1], false);
}

void Checker::convert(const Instruction& i) {
  if (i.types.size() < 2) return error(i.pos, mnemonic(i) + " needs two types, of the result and of the operand");
  const ScalarType to = i.type(0), from = i.type(1);
  if (i.has(Mod::pack)) {
    if (count(i, 3, 4)) dest(i, i.operands[0], ScalarType::b32);
    return;
  }
  if (!isPlainNumber(to) || !isPlainNumber(from)) {
    // A packed result of two f32 takes them as two operands; x4 as a vector; .rs adds the random bits.
    const bool pair = from == ScalarType::f32 && bitsOf(to) <= 32 && std::string_view(name(to)).ends_with("x2");
    const size_t n = (pair ? 3 : 2) + (i.has(Mod::rs) ? 1 : 0);
    if (count(i, n, n) && to == ScalarType::tf32)
      dest(i, i.operands[0], ScalarType::b32), source(i, i.operands[1], from);
    return;
  }
  if (!count(i, 2, i.has(Mod::rs) ? 3 : 2)) return;
  // A value narrower than its register sits in the low bits; floating-point registers must fit exactly.
  const auto fit = [](ScalarType t) { return isFloat(t) && bitsOf(t) >= 32 ? Fit::exact : Fit::mayBeWider; };
  dest(i, i.operands[0], to, fit(to));
  source(i, i.operands[1], from, fit(from));
  const bool floatRounding =
      i.has(Mod::rn) || i.has(Mod::rz) || i.has(Mod::rm) || i.has(Mod::rp) || i.has(Mod::rna) || i.has(Mod::rs);
  const bool integerRounding = i.has(Mod::rni) || i.has(Mod::rzi) || i.has(Mod::rmi) || i.has(Mod::rpi);
  const bool toFloat = isFloat(to), fromFloat = isFloat(from);
  // f16 and bf16 do not contain each other.
  const bool narrows =
      toFloat && fromFloat && to != from && (bitsOf(to) < bitsOf(from) || (bitsOf(to) == 16 && bitsOf(from) == 16));
  if (!toFloat && fromFloat) {
    if (!integerRounding) error(i.pos, mnemonic(i) + " needs one of '.rni', '.rzi', '.rmi', '.rpi'");
  } else if (to == ScalarType::f16 && from == ScalarType::bf16) {
    // .rn is the only choice and may be left out
  } else if (toFloat && fromFloat && floatRounding && !narrows) {
    error(i.pos, "this conversion is exact and takes no rounding modifier: " + mnemonic(i));
  } else if ((toFloat && !fromFloat) || narrows) {
    if (!floatRounding) error(i.pos, mnemonic(i) + " needs one of '.rn', '.rz', '.rm', '.rp'");
  } else if (!toFloat && (integerRounding || floatRounding)) {
    error(i.pos, "a conversion between integers does not round, in " + mnemonic(i));
  }
}

void Checker::atomic(const Instruction& i, bool hasResult) {
  using enum ScalarType;
  const ScalarType t = i.type();
  Mod op = Mod::invalid;
  for (Mod m : {Mod::add, Mod::min, Mod::max, Mod::inc, Mod::dec, Mod::and_, Mod::or_, Mod::xor_, Mod::exch, Mod::cas})
    if (i.has(m)) op = m;
  if (op == Mod::invalid || (!hasResult && (op == Mod::exch || op == Mod::cas)))
    return error(i.pos,
                 mnemonic(i) +
                     " needs an operation: one of '.add', '.min', '.max', '.inc', '.dec', '.and', '.or', '.xor'" +
                     (hasResult ? ", '.exch', '.cas'" : ""));
  auto oneOf = [&](std::initializer_list<ScalarType> types) {
    return std::find(types.begin(), types.end(), t) != types.end();
  };
  bool fits = true;
  switch (op) {
    case Mod::add: fits = oneOf({u32, s32, u64, f32, f64, f16, f16x2, bf16, bf16x2}); break;
    case Mod::min:
    case Mod::max:
      fits = oneOf({u32, s32, u64, s64, f16, f16x2, bf16, bf16x2}) || (i.vectorWidth > 1 && t == f32);
      break;
    case Mod::inc:
    case Mod::dec: fits = oneOf({u32}); break;
    case Mod::cas: fits = oneOf({b16, b32, b64, b128}); break;
    case Mod::exch: fits = oneOf({b32, b64, b128}); break;
    default: fits = oneOf({b32, b64}); break;
  }
  if (!fits) return error(i.pos, "unexpected type '." + std::string(name(t)) + "' in " + mnemonic(i));
  const size_t first = hasResult ? 1 : 0;
  const size_t values = op == Mod::cas ? 2 : 1;
  if (!count(i, first + 1 + values, first + 1 + values + (i.has(Mod::L2_cache_hint) ? 1 : 0))) return;
  address(i, i.operands[first]);
  memorySpace(
      i, i.operands[first],
      {StateSpace::none, StateSpace::global, StateSpace::shared, StateSpace::sharedCta, StateSpace::sharedCluster});
  if (i.vectorWidth > 1) return;
  if (op == Mod::add && (t == f16 || t == f16x2 || t == bf16 || t == bf16x2) && !i.has(Mod::noftz))
    return error(i.pos, mnemonic(i) + " needs '.noftz'");
  if (hasResult && i.operands[0].kind != Operand::Kind::sink) dest(i, i.operands[0], t);
  for (size_t k = 0; k < values; ++k) source(i, i.operands[first + 1 + k], t);
}

// Arguments or return values against the parameters they are for.
void Checker::callList(const Instruction& i, const std::vector<Operand>& actual, const std::vector<Variable>& formal,
                       std::string_view what) {
  const bool open = !formal.empty() && !formal.back().dims.empty() && formal.back().dims[0] == 0;  // variable arguments
  if (open ? actual.size() + 1 < formal.size() : actual.size() != formal.size())
    return error(i.pos, "this call has " + std::to_string(actual.size()) + " " + std::string(what) +
                            "; the callee has " + std::to_string(formal.size()));
  for (size_t k = 0; k < actual.size() && k < formal.size() - open; ++k) {
    const Operand& o = actual[k];
    const Variable* v = o.ref == Operand::Ref::localVar      ? &fn_->variables[o.refId]
                        : o.ref == Operand::Ref::param       ? &fn_->params[o.refId]
                        : o.ref == Operand::Ref::returnParam ? &fn_->returns[o.refId]
                                                             : nullptr;
    if (o.kind == Operand::Kind::symbol && v && v->space == StateSpace::param) {
      if (v->sizeBytes != formal[k].sizeBytes)
        error(o.pos, "'" + v->name + "' has " + std::to_string(v->sizeBytes) + " bytes; the callee expects " +
                         std::to_string(formal[k].sizeBytes));
    } else if (o.kind == Operand::Kind::vector && formal[k].vector > 1) {
      if (o.elements.size() != formal[k].vector)
        complain(i, o, "a vector of " + std::to_string(formal[k].vector) + " elements");
    } else if (o.kind == Operand::Kind::reg) {
      const ScalarType t = fn_->registers[o.reg].type;
      if (bitsOf(t) != bitsOf(formal[k].type))
        complain(i, o, "a register of type ." + std::string(name(formal[k].type)));
    } else if (o.kind != Operand::Kind::integer && o.kind != Operand::Kind::floating &&
               o.kind != Operand::Kind::special && o.kind != Operand::Kind::sink &&
               !(o.kind == Operand::Kind::symbol && v == nullptr)) {
      complain(i, o, "a .param variable or a register");
    }
  }
}

void Checker::call(const Instruction& i) {
  const Operand& callee = i.operands[0];
  if (callee.kind == Operand::Kind::symbol) {
    const Function& f = module_.functions[callee.refId];
    if (f.isKernel) return error(callee.pos, "'" + f.name + "' is a kernel and cannot be called");
    callList(i, i.callReturns, f.returns, "return values");
    callList(i, i.callArgs, f.params, "arguments");
    return;
  }
  if (bitsOf(fn_->registers[callee.reg].type) != module_.addressSize)
    complain(i, callee,
             "a register of " + std::to_string(module_.addressSize) + " bits that holds a function's address");
  if (i.callPrototype == kNoId) return;
  const Prototype& p = fn_->prototypes[i.callPrototype];
  callList(i, i.callReturns, p.returns, "return values");
  callList(i, i.callArgs, p.params, "arguments");
}

}  // namespace sonde::ptx
