// SPDX-License-Identifier: Apache-2.0
//
// Instructions and their operands.
#include <algorithm>

#include "ptx/parser_impl.h"

namespace sonde::ptx {

bool Parser::guard(Guard& g) {
  advance();  // '@'
  if (accept('!')) g.negated = true;
  if (!tok_.isName()) return unexpected("a predicate register after '@'");
  Binding b;
  if (!lookUp(tok_.text, b)) return error(tok_.pos, "undefined predicate " + describe(tok_));
  if (b.kind != Binding::Kind::reg || fn_->registers[b.id].type != ScalarType::pred)
    return error(tok_.pos, "the guard " + describe(tok_) + " is not a register of type .pred");
  g.reg = b.id;
  advance();
  return true;
}

bool Parser::instruction() {
  Instruction i;
  if (tok_.is('@') && !guard(i.guard)) return false;
  i.pos = tok_.pos;
  if (!tok_.isName() || tok_.text[0] == '%') return unexpected("an instruction");
  std::string scratch;
  std::string_view text = lex_.mnemonic(tok_, scratch);
  auto known = mnemonicIds_.find(text);
  if (known == mnemonicIds_.end()) {
    if (!scratch.empty()) text = ownedTexts_.emplace_back(scratch);
    Mnemonic m = decodeMnemonic(text);
    if (!m.error.empty()) {
      SourcePos pos = i.pos;
      if (scratch.empty()) pos.column += static_cast<uint32_t>(m.errorOffset);
      return error(pos, std::move(m.error));
    }
    known = mnemonicIds_.emplace(text, static_cast<uint32_t>(mnemonics_.size())).first;
    mnemonics_.push_back(std::move(m));
    module_.mnemonics.emplace_back(text);
  }
  i.mnemonic = known->second;
  apply(mnemonics_[i.mnemonic], i);
  i.loc = currentLoc_;
  advance();
  pendingLabel_ = {};
  if (i.op == Opcode::call ? !call(i) : !operands(i)) return false;
  if (!tok_.is(';')) {
    if (i.op == Opcode::call || i.operands.empty())
      return unexpected("';' after '" + module_.mnemonics[i.mnemonic] + "'");
    return unexpected("',' or ';' after the operand");
  }
  advance();
  if (pendingLabel_.isName())
    scopes_.back().uses.push_back(
        {static_cast<uint32_t>(fn_->body.size()), 0, 0, pendingLabel_.text, pendingLabel_.pos});
  fn_->body.push_back(std::move(i));
  return true;
}

bool Parser::operands(Instruction& i) {
  if (tok_.is(';')) return true;
  if (i.op == Opcode::bra) {
    i.operands.emplace_back();
    return labelUse(i.operands.back());
  }
  i.operands.reserve(4);
  do {
    i.operands.emplace_back();
    if (!operand(i.operands.back())) return false;
  } while (accept(','));
  return true;
}

bool Parser::labelUse(Operand& o) {
  if (!tok_.isName()) return unexpected("a label");
  o.kind = Operand::Kind::label;
  o.pos = tok_.pos;
  pendingLabel_ = tok_;
  advance();
  return true;
}

// One operand, or two joined by '|'.
bool Parser::operand(Operand& o, unsigned depth) {
  if (!simpleOperand(o, depth)) return false;
  if (!tok_.is('|')) return true;
  advance();
  Operand pair;
  pair.kind = Operand::Kind::predPair;
  pair.pos = o.pos;
  pair.elements.push_back(std::move(o));
  pair.elements.emplace_back();
  o = std::move(pair);
  return simpleOperand(o.elements.back(), depth);
}

bool Parser::simpleOperand(Operand& o, unsigned depth) {
  o.pos = tok_.pos;
  if (tok_.isName() && tok_.text != "WARP_SZ") return nameOperand(o);
  if (tok_.is('[')) return addressOperand(o, depth);
  if (tok_.is('{')) return vectorOperand(o, depth);
  if (!startsExpression()) return unexpected("an operand");
  Value v;
  if (tok_.is('!') || tok_.is('-')) {
    const Token sign = tok_;
    advance();
    if (tok_.isName() && tok_.text != "WARP_SZ") {
      if (!nameOperand(o)) return false;
      if (o.kind != Operand::Kind::reg)
        return error(sign.pos, std::string("'") + sign.text[0] + "' must stand before a register or a number");
      o.negated = true;
      return true;
    }
    if (!startsExpression()) return unexpected("a register or a number");
    // Binds tighter than any binary operator, as in an expression: -1+2 is 1.
    if (!signedExpression(v, sign)) return false;
  } else if (!expression(v)) {
    return false;
  }
  o.kind = v.isFloat ? Operand::Kind::floating : Operand::Kind::integer;
  o.is32 = v.is32;
  o.imm = v.bits;
  return true;
}

bool Parser::resolve(const Token& t, Operand& o) {
  Binding b;
  if (lookUp(t.text, b)) {
    switch (b.kind) {
      case Binding::Kind::reg:
        o.kind = Operand::Kind::reg;
        o.reg = b.id;
        return true;
      case Binding::Kind::variable: o.ref = Operand::Ref::localVar; break;
      case Binding::Kind::moduleVariable: o.ref = Operand::Ref::moduleVar; break;
      case Binding::Kind::param: o.ref = Operand::Ref::param; break;
      case Binding::Kind::returnParam: o.ref = Operand::Ref::returnParam; break;
      case Binding::Kind::targets: o.ref = Operand::Ref::branchTargets; break;
      case Binding::Kind::prototype: return false;
    }
    o.kind = Operand::Kind::symbol;
    o.refId = b.id;
    return true;
  }
  if (t.text[0] == '%' && specialFromName(t.text, o.special, o.index)) {
    o.kind = Operand::Kind::special;
    return true;
  }
  const std::string key(t.text);
  if (const auto v = moduleVariables_.find(key); v != moduleVariables_.end()) {
    o.ref = Operand::Ref::moduleVar;
    o.refId = v->second;
  } else if (const auto f = functions_.find(key); f != functions_.end()) {
    o.ref = Operand::Ref::function;
    o.refId = f->second;
  } else {
    return false;
  }
  o.kind = Operand::Kind::symbol;
  return true;
}

// .x … of a vector register or special register, .b0 … of a video operand.
bool Parser::suffix(Operand& o, std::string_view what) {
  if (tok_.kind != Token::Kind::directive) return true;
  const std::string_view s = tok_.text.substr(1);
  const size_t component = s.size() == 1 ? std::string_view("xyzwrgba").find(s[0]) : std::string_view::npos;
  if (component != std::string_view::npos) {
    o.component = static_cast<int8_t>(component % 4);
    if (o.kind == Operand::Kind::reg && o.component >= fn_->registers[o.reg].vector)
      return error(tok_.pos, "'" + std::string(what) + "' has no component " + describe(tok_));
  } else if (o.kind == Operand::Kind::reg && (s[0] == 'b' || s[0] == 'h') && s.size() >= 2 && s.size() <= 5 &&
             s.find_first_not_of("01234567", 1) == std::string_view::npos) {
    o.selector = s;
  } else {
    return error(tok_.pos,
                 "expected a component (.x, .y, .z, .w) of '" + std::string(what) + "', found " + describe(tok_));
  }
  advance();
  return true;
}

bool Parser::nameOperand(Operand& o) {
  const Token t = tok_;
  if (t.text == "_") {
    o.kind = Operand::Kind::sink;
    advance();
    return true;
  }
  if (!resolve(t, o)) {
    Binding b;
    if (lookUp(t.text, b)) return error(t.pos, describe(t) + " is a .callprototype and cannot be an operand");
    if (t.text[0] == '%') return error(t.pos, "undefined register " + describe(t));
    return error(t.pos, "undefined name " + describe(t));
  }
  advance();
  if (o.kind == Operand::Kind::symbol) return symbolOffset(o);
  if (!suffix(o, t.text)) return false;
  if (o.kind == Operand::Kind::reg && o.component < 0 && fn_->registers[o.reg].vector > 1) {
    // A whole vector register is the vector of its components.
    Operand whole;
    whole.kind = Operand::Kind::vector;
    whole.pos = o.pos;
    whole.elements.assign(fn_->registers[o.reg].vector, o);
    for (size_t i = 0; i < whole.elements.size(); ++i) whole.elements[i].component = static_cast<int8_t>(i);
    o = std::move(whole);
    return true;
  }
  // Assemblers also take a register plus a constant, as in an address.
  if (o.kind == Operand::Kind::reg && o.selector.empty() && tok_.is('+')) {
    const ScalarType type = fn_->registers[o.reg].type;
    if (type == ScalarType::pred || isFloat(type))
      return error(tok_.pos, "only an integer register can be followed by '+' and a constant");
    advance();
    return integerExpression(o.offset, "the constant after '+'");
  }
  return true;
}

// What may follow a variable's name: [index] and + offset.
bool Parser::symbolOffset(Operand& o) {
  if (accept('[')) {
    const Variable* v = o.ref == Operand::Ref::moduleVar  ? &module_.variables[o.refId]
                        : o.ref == Operand::Ref::localVar ? &fn_->variables[o.refId]
                        : o.ref == Operand::Ref::param    ? &fn_->params[o.refId]
                                                          : nullptr;
    if (!v) return error(o.pos, "only a variable can be indexed");
    int64_t index;
    if (!integerExpression(index, "the index") || !expect(']', "the index")) return false;
    const uint64_t element = static_cast<uint64_t>(std::max(1u, bitsOf(v->type) / 8)) * v->vector;
    o.offset = static_cast<int64_t>(static_cast<uint64_t>(index) * element);
  }
  int64_t offset = 0;
  if (tok_.is('+')) {
    advance();
    if (!integerExpression(offset, "the offset")) return false;
  } else if (tok_.is('-')) {
    if (!integerExpression(offset, "the offset")) return false;
  }
  o.offset = static_cast<int64_t>(static_cast<uint64_t>(o.offset) + static_cast<uint64_t>(offset));
  return true;
}

// [base + offset], or [texture, …, {coordinates}].
bool Parser::addressOperand(Operand& o, unsigned depth) {
  if (depth > 4) return error(tok_.pos, "operands are nested too deeply");
  advance();
  o.kind = Operand::Kind::address;
  if (tok_.isName() && tok_.text != "WARP_SZ") {
    const Token t = tok_;
    Operand base;
    base.pos = t.pos;
    if (!resolve(t, base)) {
      return error(t.pos,
                   (t.text[0] == '%' ? "undefined register " : "undefined name ") + describe(t) + " in an address");
    }
    advance();
    if (base.kind == Operand::Kind::special)
      return error(t.pos, "a special register cannot be an address; move it to a register first");
    if (base.kind == Operand::Kind::reg && !suffix(base, t.text)) return false;
    if (!symbolOffset(base)) return false;
    if (tok_.is(',')) {
      o.kind = Operand::Kind::texture;
      o.elements.push_back(std::move(base));
      while (accept(',')) {
        o.elements.emplace_back();
        if (!operand(o.elements.back(), depth + 1)) return false;
      }
    } else {
      o.reg = base.reg;
      o.component = base.component;
      o.ref = base.ref;
      o.refId = base.refId;
      o.offset = base.offset;
    }
  } else if (startsExpression()) {
    if (!integerExpression(o.offset, "an address")) return false;
  } else {
    return unexpected("a register, a variable or a number in an address");
  }
  if (tok_.is(']')) {
    advance();
    return true;
  }
  return unexpected("']' after the address");
}

bool Parser::vectorOperand(Operand& o, unsigned depth) {
  if (depth > 4) return error(tok_.pos, "operands are nested too deeply");
  o.kind = Operand::Kind::vector;
  accept('{');
  if (tok_.is('}')) return unexpected("a vector element");
  do {
    o.elements.emplace_back();
    if (!operand(o.elements.back(), depth + 1)) return false;
  } while (accept(','));
  if (!tok_.is('}')) return unexpected("',' or '}' after the vector element");
  accept('}');
  return true;
}

// call [(returns),] callee [, (arguments)] [, prototype or targets];
bool Parser::call(Instruction& i) {
  auto list = [&](std::vector<Operand>& out) {
    advance();
    if (accept(')')) return true;
    do {
      out.emplace_back();
      if (!operand(out.back())) return false;
    } while (accept(','));
    return expect(')', "the list");
  };
  if (tok_.is('(')) {
    if (!list(i.callReturns) || !expect(',', "the return values")) return false;
  }
  if (!tok_.isName()) return unexpected("a function's name or a register");
  i.operands.emplace_back();
  Operand& callee = i.operands.back();
  callee.pos = tok_.pos;
  if (!resolve(tok_, callee)) {
    return error(tok_.pos, (tok_.text[0] == '%' ? "undefined register " : "undefined function ") + describe(tok_));
  }
  const bool direct = callee.kind == Operand::Kind::symbol && callee.ref == Operand::Ref::function;
  if (!direct && callee.kind != Operand::Kind::reg)
    return error(tok_.pos, describe(tok_) + " cannot be called: it is not a function");
  advance();
  while (accept(',')) {
    if (tok_.is('(')) {
      if (!list(i.callArgs)) return false;
      continue;
    }
    if (!tok_.isName()) return unexpected("'(' or a .callprototype");
    Binding b;
    if (!lookUp(tok_.text, b) || (b.kind != Binding::Kind::prototype && b.kind != Binding::Kind::targets))
      return error(tok_.pos, describe(tok_) + " is not a .callprototype or .calltargets of this function");
    if (b.kind == Binding::Kind::prototype)
      i.callPrototype = b.id;
    else
      i.callTargets = b.id;
    advance();
  }
  if (!direct && i.callPrototype == kNoId && i.callTargets == kNoId)
    return error(callee.pos, "an indirect call needs a .callprototype or .calltargets after its arguments");
  return true;
}

}  // namespace sonde::ptx
