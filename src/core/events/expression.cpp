// SPDX-License-Identifier: Apache-2.0
#include "core/events/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace sonde::core::events {

// Recursive descent; formulas are short, but depth is limited all the same.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Expression run() {
    sum();
    skipSpace();
    if (at_ != text_.size()) fail("end of formula");
    return std::move(result_);
  }

 private:
  using Op = Expression::Op;

  [[noreturn]] void fail(std::string_view expected) const {
    throw std::invalid_argument("formula \"" + std::string(text_) + "\", column " + std::to_string(at_ + 1) +
                                ": expected " + std::string(expected));
  }
  void skipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool eat(char c) {
    skipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void emit(Op op) { result_.nodes_.push_back({op}); }

  void sum() {
    if (++depth_ > 64) fail("fewer nested parentheses");
    product();
    for (;;) {
      if (eat('+'))
        product(), emit(Op::add);
      else if (eat('-'))
        product(), emit(Op::subtract);
      else
        break;
    }
    --depth_;
  }
  void product() {
    factor();
    for (;;) {
      if (eat('*'))
        factor(), emit(Op::multiply);
      else if (eat('/'))
        factor(), emit(Op::divide);
      else
        break;
    }
  }
  void factor() {
    skipSpace();
    if (eat('(')) {
      sum();
      if (!eat(')')) fail("')'");
      return;
    }
    if (at_ >= text_.size()) fail("a number or a name");
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c))) return number();
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') return name();
    fail("a number or a name");
  }
  void number() {
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("a number");
    at_ = static_cast<size_t>(end - text_.data());
    result_.nodes_.push_back({Op::constant, value});
  }
  void name() {
    const size_t start = at_;
    auto isNameChar = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
    while (at_ < text_.size() && isNameChar(static_cast<unsigned char>(text_[at_]))) ++at_;
    std::string id(text_.substr(start, at_ - start));
    if (id == "min" || id == "max") {
      if (!eat('(')) fail("'('");
      sum();
      if (!eat(',')) fail("','");
      sum();
      if (!eat(')')) fail("')'");
      return emit(id == "min" ? Op::minimum : Op::maximum);
    }
    auto& names = result_.names_;
    auto it = std::find(names.begin(), names.end(), id);
    if (it == names.end()) it = names.insert(names.end(), std::move(id));
    result_.nodes_.push_back({Op::name, 0, static_cast<uint32_t>(it - names.begin())});
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Expression result_;
};

Expression Expression::parse(std::string_view text) { return ExpressionParser(text).run(); }

double Expression::evaluate(const std::function<double(size_t)>& value) const {
  std::vector<double> stack;
  for (const Node& n : nodes_) {
    if (n.op == Op::constant) {
      stack.push_back(n.constant);
    } else if (n.op == Op::name) {
      stack.push_back(value(n.name));
    } else {
      const double b = stack.back();
      stack.pop_back();
      double& a = stack.back();
      switch (n.op) {
        case Op::add: a += b; break;
        case Op::subtract: a -= b; break;
        case Op::multiply: a *= b; break;
        case Op::divide: a = b == 0 ? 0 : a / b; break;
        case Op::minimum: a = std::min(a, b); break;
        case Op::maximum: a = std::max(a, b); break;
        default: break;
      }
    }
  }
  return stack.back();
}

bool Expression::linear(std::vector<int64_t>& coefficients) const {
  // Linear with no constant part: f(0) = 0, and f of a few probe points is the
  // sum of the unit responses.
  for (const Node& n : nodes_)
    if (n.op == Op::divide || n.op == Op::minimum || n.op == Op::maximum) return false;
  if (evaluate([](size_t) { return 0.0; }) != 0) return false;
  coefficients.assign(names_.size(), 0);
  double atProbe = 0;
  auto probe = [](size_t i) { return static_cast<double>(3 + 2 * i); };
  for (size_t i = 0; i < names_.size(); ++i) {
    const double c = evaluate([i](size_t k) { return k == i ? 1.0 : 0.0; });
    if (c != std::floor(c)) return false;
    coefficients[i] = static_cast<int64_t>(c);
    atProbe += c * probe(i);
  }
  return evaluate(probe) == atProbe;
}

}  // namespace sonde::core::events
