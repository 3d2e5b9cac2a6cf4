// SPDX-License-Identifier: Apache-2.0
//
// Variables of every state space, parameters, initialisers.
#include <algorithm>
#include <bit>

#include "ptx/parser_impl.h"

namespace sonde::ptx {
namespace {

// IEEE binary16 and bfloat16 of a double, round to nearest even, for initial values.
uint64_t narrowFloat(double d, unsigned mantissaBits, unsigned exponentBits) {
  const uint64_t bits = std::bit_cast<uint64_t>(d);
  const uint64_t sign = bits >> 63;
  const int bias = (1 << (exponentBits - 1)) - 1;
  const int maxExponent = (1 << exponentBits) - 1;
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  uint64_t result;
  if (exponent == 0x7ff) {
    result = static_cast<uint64_t>(maxExponent) << mantissaBits | (mantissa ? uint64_t{1} << (mantissaBits - 1) : 0);
  } else {
    exponent += bias - 1023;
    mantissa |= uint64_t{1} << 52;
    int shift = 52 - static_cast<int>(mantissaBits);
    if (exponent <= 0) {
      shift += 1 - exponent;
      exponent = 0;
    }
    if (shift > 54) shift = 54;
    const uint64_t half = uint64_t{1} << (shift - 1), rest = mantissa & ((uint64_t{1} << shift) - 1);
    uint64_t m = mantissa >> shift;
    if (rest > half || (rest == half && (m & 1))) ++m;
    // A normal number's hidden bit adds one to the exponent field; so does a carry.
    result = (static_cast<uint64_t>(exponent == 0 ? 0 : exponent - 1) << mantissaBits) + m;
    if (result >> mantissaBits >= static_cast<uint64_t>(maxExponent))
      result = static_cast<uint64_t>(maxExponent) << mantissaBits;
  }
  return result | sign << (mantissaBits + exponentBits);
}

bool fundamental(ScalarType t) {
  return (t > ScalarType::none && t <= ScalarType::bf16x2) || t == ScalarType::f32 || t == ScalarType::f64 ||
         t == ScalarType::pred || t == ScalarType::texref || t == ScalarType::samplerref || t == ScalarType::surfref ||
         t == ScalarType::f32x2;
}

}  // namespace

// .attribute( .managed | .unified(a, b) [, …] )
bool Parser::attributes(bool& managed, bool& unified, uint64_t (&id)[2]) {
  advance();
  if (!expect('(', "'.attribute'")) return false;
  do {
    if (tok_.isDirective(".managed")) {
      managed = true;
      advance();
    } else if (tok_.isDirective(".unified")) {
      unified = true;
      advance();
      if (!expect('(', "'.unified'") || !integerToken(id[0], ".unified") || !expect(',', "the first number") ||
          !integerToken(id[1], ".unified") || !expect(')', "the second number"))
        return false;
    } else {
      return unexpected("'.managed' or '.unified'");
    }
  } while (accept(','));
  return expect(')', "the attributes");
}

// Space, attributes, alignment, vector width and type, up to the name.
bool Parser::variableHead(Variable& v, VariableScope scope) {
  v.pos = tok_.pos;
  for (;;) {
    if (tok_.kind != Token::Kind::directive) break;
    const std::string_view word = tok_.text.substr(1);
    if (word == "align") {
      advance();
      const SourcePos pos = tok_.pos;
      uint64_t align;
      if (!integerToken(align, ".align", 1u << 20)) return false;
      if (align == 0 || !std::has_single_bit(align))
        return error(pos, ".align must be a power of two, found " + std::to_string(align));
      (v.isPointerParam ? v.pointerAlign : v.align) = static_cast<uint32_t>(align);
      continue;
    }
    if (word == "attribute") {
      bool unified = false;
      uint64_t id[2];
      if (!attributes(v.isManaged, unified, id)) return false;
      continue;
    }
    if (word == "ptr") {
      if (scope != VariableScope::parameter) return error(tok_.pos, "'.ptr' is for kernel parameters only");
      v.isPointerParam = true;
      v.pointerAlign = 4;
      advance();
      continue;
    }
    if (word == "v2" || word == "v4") {
      v.vector = static_cast<uint8_t>(word[1] - '0');
      advance();
      continue;
    }
    if (const auto space = spaceFromName(word); space != StateSpace::none) {
      if (v.isPointerParam)
        v.pointerSpace = space;
      else if (v.space == StateSpace::none)
        v.space = space;
      else
        return error(tok_.pos, "a second state space " + describe(tok_) + " in this declaration");
      advance();
      // .const[2]: bank numbers of very old texts.
      if (space == StateSpace::const_ && accept('[')) {
        uint64_t bank;
        if (!integerToken(bank, "the bank", 10) || !expect(']', "the bank")) return false;
      }
      continue;
    }
    if (const auto type = typeFromName(word); type != ScalarType::none) {
      if (!fundamental(type))
        return error(tok_.pos, "a variable cannot have the type " + describe(tok_) + "; declare it with .b" +
                                   std::to_string(std::max(8u, bitsOf(type))));
      if (v.type != ScalarType::none)
        return error(tok_.pos, "a second type " + describe(tok_) + " in this declaration");
      v.type = type;
      advance();
      continue;
    }
    return unexpected("a type, '.align' or a vector width in this declaration");
  }
  if (v.type == ScalarType::none) return unexpected("a type such as .b32");
  if (v.type == ScalarType::pred && v.space != StateSpace::reg)
    return error(v.pos, "only registers can be of type .pred");
  if (v.align == 0) v.align = std::max(1u, bitsOf(v.type) / 8) * v.vector;
  return true;
}

// The name with its dimensions; sizes.
bool Parser::variableName(Variable& v, VariableScope scope) {
  if (!tok_.isName()) return unexpected("a name");
  v.name = tok_.text;
  v.pos = tok_.pos;
  advance();
  while (accept('[')) {
    if (tok_.is(']')) {
      if (!v.dims.empty()) return error(tok_.pos, "only the first dimension may be left open");
      v.dims.push_back(0);
    } else {
      const SourcePos pos = tok_.pos;
      int64_t n;
      if (!integerExpression(n, "the array's size")) return false;
      if (n < 0 || (n == 0 && scope == VariableScope::module && !v.dims.empty()))
        return error(pos, "an array's size must not be negative, found " + std::to_string(n));
      if (v.dims.size() >= 16) return error(pos, "too many dimensions");
      v.dims.push_back(static_cast<uint64_t>(n));
    }
    if (!expect(']', "the array's size")) return false;
  }
  uint64_t size = static_cast<uint64_t>(std::max(1u, bitsOf(v.type) / 8)) * v.vector;
  for (const uint64_t d : v.dims) {
    if (d != 0 && size > kMaxObjectBytes / d) return error(v.pos, "'" + v.name + "' is too large");
    size *= d;
  }
  v.sizeBytes = size;
  return true;
}

bool Parser::initializerElement(Variable& v) {
  Initializer e;
  const SourcePos pos = tok_.pos;
  const unsigned bits = bitsOf(v.type);
  const bool isFloatElement =
      v.type == ScalarType::f16 || v.type == ScalarType::bf16 || v.type == ScalarType::f32 || v.type == ScalarType::f64;
  // symbol [+- offset] or generic(symbol) [+- offset]
  auto symbol = [&]() {
    e.kind = Initializer::Kind::symbol;
    bool parenthesis = false;
    if (tok_.text == "generic") {
      e.kind = Initializer::Kind::genericSymbol;
      advance();
      if (!expect('(', "'generic'")) return false;
      parenthesis = true;
      if (!tok_.isName()) return unexpected("a variable's name");
    }
    e.symbol = tok_.text;
    if (moduleVariables_.find(e.symbol) == moduleVariables_.end() && functions_.find(e.symbol) == functions_.end() &&
        e.symbol != v.name)
      return error(tok_.pos, "undefined name " + describe(tok_) + " in an initial value");
    advance();
    if (parenthesis && !expect(')', "the variable's name")) return false;
    if (tok_.is('+') || tok_.is('-')) {
      const bool minus = tok_.is('-');
      advance();
      int64_t offset;
      if (!integerExpression(offset, "the offset")) return false;
      e.offset = minus ? static_cast<int64_t>(0 - static_cast<uint64_t>(offset)) : offset;
    }
    return true;
  };
  if (tok_.isName() && tok_.text != "WARP_SZ") {
    if (!symbol()) return false;
    if (bits < 32)
      return error(pos, "an address does not fit into ." + std::string(name(v.type)) + "; use a mask such as 0xFF(" +
                            e.symbol + ")");
  } else {
    if (!startsExpression()) return unexpected("an initial value");
    Value value;
    if (!expression(value)) return false;
    if (!value.isFloat && accept('(')) {  // mask(symbol)
      const uint64_t mask = value.bits;
      e.maskShift = mask ? static_cast<uint32_t>(std::countr_zero(mask)) : 1;
      if (e.maskShift % 8 != 0 || mask >> e.maskShift != 0xff)
        return error(pos, "a mask selects one byte: 0xFF, 0xFF00, 0xFF0000 …");
      e.masked = true;
      if (!tok_.isName()) return unexpected("a variable's or function's name");
      if (!symbol() || !expect(')', "the masked address")) return false;
    } else if (isFloatElement) {
      e.kind = Initializer::Kind::floating;
      const double d = value.number();
      switch (v.type) {
        case ScalarType::f32:
          e.bits = value.isFloat && value.is32 ? value.bits : std::bit_cast<uint32_t>(static_cast<float>(d));
          break;
        case ScalarType::f64: e.bits = value.isFloat && !value.is32 ? value.bits : std::bit_cast<uint64_t>(d); break;
        case ScalarType::f16: e.bits = narrowFloat(d, 10, 5); break;
        default: e.bits = narrowFloat(d, 7, 8); break;
      }
    } else {
      if (value.isFloat && !(value.is32 && bits == 32) && bits != 64)
        return error(pos, "a floating-point initial value for the integer type ." + std::string(name(v.type)));
      e.bits = value.bits;
      if (bits < 64) e.bits &= (uint64_t{1} << bits) - 1;
    }
  }
  v.init.push_back(std::move(e));
  return true;
}

// One brace level. `budget`: how many elements this level holds (0: open).
bool Parser::initializerList(Variable& v, size_t level, uint64_t budget) {
  const size_t start = v.init.size();
  const SourcePos pos = tok_.pos;
  if (level > 17) return error(pos, "an initialiser nested too deeply");
  if (!accept('{')) return unexpected("'{'");
  const size_t levels = v.dims.size() + (v.vector > 1 ? 1 : 0);
  uint64_t inner = 1;
  for (size_t i = level + 1; i < v.dims.size(); ++i) inner *= v.dims[i];
  if (level < v.dims.size()) inner *= v.vector;
  while (!tok_.is('}')) {
    if (tok_.is('{')) {
      if (level + 1 >= levels) return error(tok_.pos, "more braces than dimensions in this initialiser");
      const size_t rowStart = v.init.size();
      if (!initializerList(v, level + 1, inner)) return false;
      const uint64_t missing = inner - (v.init.size() - rowStart);
      if (tok_.is(',')) {  // fill the row up before the next
        if (missing > kMaxInitializerPadding - padding_) return error(pos, "this initialiser has too many short rows");
        padding_ += static_cast<uint32_t>(missing);
        v.init.resize(v.init.size() + missing, Initializer{Initializer::Kind::zero, 0, {}, 0, 0, false});
      }
    } else if (!initializerElement(v)) {
      return false;
    }
    if (budget != 0 && v.init.size() - start > budget)
      return error(v.pos, "'" + v.name + "' has more initial values than elements (" + std::to_string(budget) + ")");
    if (!accept(',')) break;
  }
  return expect('}', "the initial values");
}

// { addr_mode_0 = wrap, filter_mode = linear, … }
bool Parser::samplerInitializer(Variable& v) {
  if (!expect('{', "'='")) return false;
  do {
    if (!tok_.isName()) return unexpected("a field such as addr_mode_0");
    std::string key(tok_.text);
    advance();
    if (!expect('=', "the field's name")) return false;
    if (!tok_.isName() && tok_.kind != Token::Kind::integer) return unexpected("the field's value");
    v.properties.emplace_back(std::move(key), std::string(tok_.text));
    advance();
  } while (accept(','));
  return expect('}', "the fields");
}

bool Parser::initializer(Variable& v) {
  if (v.type == ScalarType::samplerref || v.type == ScalarType::texref || v.type == ScalarType::surfref)
    return samplerInitializer(v);
  if (v.space != StateSpace::global && v.space != StateSpace::const_)
    return error(tok_.pos, "only .global and .const variables can have initial values");
  const bool open = !v.dims.empty() && v.dims[0] == 0;
  if (!tok_.is('{')) {
    if (!v.dims.empty() || v.vector > 1) return unexpected("'{' before the initial values of an array");
    return initializerElement(v);
  }
  uint64_t elements = v.vector;
  for (const uint64_t d : v.dims) elements *= d;
  if (!initializerList(v, 0, open ? 0 : elements)) return false;
  if (open) {
    uint64_t inner = v.vector;
    for (size_t i = 1; i < v.dims.size(); ++i) inner *= v.dims[i];
    if (inner == 0) inner = 1;
    v.dims[0] = (v.init.size() + inner - 1) / inner;
    v.sizeBytes = v.dims[0] * inner * std::max(1u, bitsOf(v.type) / 8);
  }
  return true;
}

void Parser::declareModuleVariable(Variable v) {
  const auto known = moduleVariables_.find(v.name);
  if (known != moduleVariables_.end()) {
    Variable& old = module_.variables[known->second];
    if (!old.isExtern && !v.isExtern && !(old.isWeak || v.isWeak || old.isCommon || v.isCommon)) {
      error(v.pos, "'" + v.name + "' is already defined at line " + std::to_string(old.pos.line));
      return;
    }
    if (old.type != v.type || old.space != v.space || old.vector != v.vector) {
      error(v.pos, "'" + v.name + "' was declared differently at line " + std::to_string(old.pos.line));
      return;
    }
    if (!v.isExtern) old = std::move(v);
    return;
  }
  if (functions_.count(v.name)) {
    error(v.pos, "'" + v.name + "' is already the name of a function");
    return;
  }
  moduleVariables_.emplace(v.name, static_cast<uint32_t>(module_.variables.size()));
  module_.variables.push_back(std::move(v));
}

bool Parser::variableStatement(const Linkage& linkage, bool inFunction) {
  Variable head;
  head.isExtern = linkage.isExtern;
  head.isVisible = linkage.isVisible;
  head.isWeak = linkage.isWeak;
  head.isCommon = linkage.isCommon;
  const VariableScope scope = inFunction ? VariableScope::function : VariableScope::module;
  const Token first = tok_;
  if (!variableHead(head, scope)) return false;
  const StateSpace s = head.space;
  if (!inFunction &&
      (s == StateSpace::reg || s == StateSpace::local || s == StateSpace::param || s == StateSpace::sreg))
    return error(first.pos, describe(first) + " variables must be declared inside a function");
  do {
    Variable v = head;
    const Token nameToken = tok_;
    if (!variableName(v, scope)) return false;
    if (accept('=')) {
      if (v.isExtern) return error(v.pos, "an .extern variable cannot have an initial value");
      if (!initializer(v)) return false;
    }
    if (!inFunction) {
      declareModuleVariable(std::move(v));
    } else if (s == StateSpace::global || s == StateSpace::const_ || s == StateSpace::tex) {
      // A module variable that only this block can name.
      for (unsigned k = 1; moduleVariables_.count(v.name) || functions_.count(v.name); ++k)
        v.name = std::string(nameToken.text) + "$" + std::to_string(k);
      if (!bind(nameToken, Binding::Kind::moduleVariable, static_cast<uint32_t>(module_.variables.size())))
        return false;
      declareModuleVariable(std::move(v));
    } else {
      const auto id = static_cast<uint32_t>(fn_->variables.size());
      v.name = uniqueName(nameToken.text);
      if (!bind(nameToken, Binding::Kind::variable, id)) return false;
      fn_->variables.push_back(std::move(v));
    }
  } while (accept(','));
  return endStatement("the declaration");
}

// ( .param .b32 a, .reg .u32 b, … ); the '(' is the current token.
bool Parser::parameterList(std::vector<Variable>& out, VariableScope scope) {
  if (!expect('(', "the name")) return false;
  if (accept(')')) return true;
  do {
    if (!tok_.isDirective(".param") && !tok_.isDirective(".reg")) return unexpected("'.param' or '.reg'");
    Variable v;
    if (!variableHead(v, scope)) return false;
    if (!variableName(v, scope)) return false;
    out.push_back(std::move(v));
  } while (accept(','));
  return expect(')', "the parameters");
}

}  // namespace sonde::ptx
