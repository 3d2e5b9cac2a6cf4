// SPDX-License-Identifier: Apache-2.0
//
// Constant expressions: C's operators on 64-bit integers (signed unless an
// operand is unsigned) and on doubles.
#include <bit>
#include <cmath>

#include "ptx/parser_impl.h"

namespace sonde::ptx {
namespace {

int precedence(const Token& t) {
  if (t.kind != Token::Kind::punct) return -1;
  const std::string_view s = t.text;
  if (s == "||") return 1;
  if (s == "&&") return 2;
  if (s == "|") return 3;
  if (s == "^") return 4;
  if (s == "&") return 5;
  if (s == "==" || s == "!=") return 6;
  if (s == "<" || s == "<=" || s == ">" || s == ">=") return 7;
  if (s == "<<" || s == ">>") return 8;
  if (s == "+" || s == "-") return 9;
  if (s == "*" || s == "/" || s == "%") return 10;
  return -1;
}

}  // namespace

double Parser::Value::number() const {
  if (!isFloat) return isUnsigned ? static_cast<double>(bits) : static_cast<double>(integer());
  return is32 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))) : std::bit_cast<double>(bits);
}

bool Parser::startsExpression() const {
  switch (tok_.kind) {
    case Token::Kind::integer:
    case Token::Kind::float32:
    case Token::Kind::float64: return true;
    case Token::Kind::punct: return tok_.is('-') || tok_.is('+') || tok_.is('~') || tok_.is('!') || tok_.is('(');
    case Token::Kind::identifier: return tok_.text == "WARP_SZ";
    default: return false;
  }
}

bool Parser::unary(Value& v, unsigned depth) {
  if (depth > kMaxExpressionDepth) return error(tok_.pos, "this expression is nested too deeply");
  switch (tok_.kind) {
    case Token::Kind::integer:
      v = {false, false, tok_.isUnsigned, tok_.value};
      advance();
      return true;
    case Token::Kind::float32:
    case Token::Kind::float64:
      v = {true, tok_.kind == Token::Kind::float32, false, tok_.value};
      advance();
      return true;
    case Token::Kind::identifier:
      if (tok_.text == "WARP_SZ") {
        v = {false, false, false, 32};
        advance();
        return true;
      }
      break;
    case Token::Kind::punct: {
      const char op = tok_.text.size() == 1 ? tok_.text[0] : '\0';
      if (op == '(') {
        advance();
        if (tok_.kind == Token::Kind::directive && (tok_.text == ".s64" || tok_.text == ".u64")) {
          const bool toUnsigned = tok_.text == ".u64";
          advance();
          if (!expect(')', "the cast's type") || !unary(v, depth + 1)) return false;
          if (v.isFloat) return error(tok_.pos, "a cast to .s64 or .u64 needs an integer");
          v.isUnsigned = toUnsigned;
          return true;
        }
        return expression(v, depth + 1) && expect(')', "the expression");
      }
      if (op == '-' || op == '+' || op == '~' || op == '!') {
        const SourcePos pos = tok_.pos;
        advance();
        return unary(v, depth + 1) && applySign(v, op, pos);
      }
      break;
    }
    default: break;
  }
  return unexpected("a constant expression");
}

bool Parser::applySign(Value& v, char sign, SourcePos pos) {
  if (sign == '+') return true;
  if (v.isFloat) {
    if (sign != '-') return error(pos, std::string("'") + sign + "' needs an integer, found a floating-point value");
    v.bits ^= v.is32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
    return true;
  }
  if (sign == '-')
    v.bits = 0 - v.bits;
  else if (sign == '~')
    v.bits = ~v.bits;
  else
    v = {false, false, false, v.bits == 0};
  return true;
}

bool Parser::binary(Value& v, int minPrecedence, unsigned depth) {
  return unary(v, depth) && binaryRest(v, minPrecedence, depth);
}

bool Parser::binaryRest(Value& v, int minPrecedence, unsigned depth) {
  for (;;) {
    const int level = precedence(tok_);
    if (level < minPrecedence || level < 0) return true;
    const Token op = tok_;
    advance();
    Value w;
    if (!binary(w, level + 1, depth + 1)) return false;
    const std::string_view s = op.text;
    if (v.isFloat || w.isFloat) {
      const double a = v.number(), b = w.number();
      auto set = [&](double d) { v = {true, false, false, std::bit_cast<uint64_t>(d)}; };
      auto test = [&](bool t) { v = {false, false, false, t}; };
      if (s == "+")
        set(a + b);
      else if (s == "-")
        set(a - b);
      else if (s == "*")
        set(a * b);
      else if (s == "/") {
        if (b == 0) return error(op.pos, "division by zero in a constant expression");
        set(a / b);
      } else if (s == "<")
        test(a < b);
      else if (s == "<=")
        test(a <= b);
      else if (s == ">")
        test(a > b);
      else if (s == ">=")
        test(a >= b);
      else if (s == "==")
        test(a == b);
      else if (s == "!=")
        test(a != b);
      else
        return error(op.pos, "'" + std::string(s) + "' needs integers, found a floating-point value");
      continue;
    }
    const uint64_t a = v.bits, b = w.bits;
    const bool u = v.isUnsigned || w.isUnsigned;
    auto set = [&](uint64_t r) { v = {false, false, u, r}; };
    auto test = [&](bool t) { v = {false, false, false, t}; };
    const auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    if (s == "+")
      set(a + b);
    else if (s == "-")
      set(a - b);
    else if (s == "*")
      set(a * b);
    else if (s == "/" || s == "%") {
      if (b == 0) return error(op.pos, "division by zero in a constant expression");
      const bool quotient = s == "/";
      if (u)
        set(quotient ? a / b : a % b);
      else if (sb == -1)
        set(quotient ? 0 - a : 0);
      else
        set(static_cast<uint64_t>(quotient ? sa / sb : sa % sb));
    } else if (s == "<<")
      v.bits = b < 64 ? a << b : 0;
    else if (s == ">>")
      v.bits = v.isUnsigned ? (b < 64 ? a >> b : 0) : static_cast<uint64_t>(sa >> (b < 64 ? b : 63));
    else if (s == "&")
      set(a & b);
    else if (s == "|")
      set(a | b);
    else if (s == "^")
      set(a ^ b);
    else if (s == "&&")
      test(a && b);
    else if (s == "||")
      test(a || b);
    else if (s == "==")
      test(a == b);
    else if (s == "!=")
      test(a != b);
    else if (s == "<")
      test(u ? a < b : sa < sb);
    else if (s == "<=")
      test(u ? a <= b : sa <= sb);
    else if (s == ">")
      test(u ? a > b : sa > sb);
    else
      test(u ? a >= b : sa >= sb);
  }
}

bool Parser::expression(Value& v, unsigned depth) { return binary(v, 0, depth) && choice(v, depth); }

bool Parser::signedExpression(Value& v, const Token& sign) {
  return unary(v, 0) && applySign(v, sign.text[0], sign.pos) && binaryRest(v, 0, 0) && choice(v, 0);
}

bool Parser::choice(Value& v, unsigned depth) {
  if (!tok_.is('?')) return true;
  if (depth > kMaxExpressionDepth) return error(tok_.pos, "this expression is nested too deeply");
  advance();
  Value yes, no;
  if (!expression(yes, depth + 1) || !expect(':', "the first choice of '?'") || !expression(no, depth + 1))
    return false;
  v = v.number() != 0 ? yes : no;
  return true;
}

bool Parser::integerExpression(int64_t& value, std::string_view what) {
  const SourcePos pos = tok_.pos;
  Value v;
  if (!expression(v)) return false;
  if (v.isFloat) return error(pos, "expected an integer for " + std::string(what) + ", found a floating-point value");
  value = v.integer();
  return true;
}

}  // namespace sonde::ptx
