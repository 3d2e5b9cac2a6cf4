// SPDX-License-Identifier: Apache-2.0
//
// The formulas of events and metrics: + - * / with parentheses, numbers,
// names, min(a, b) and max(a, b). Division by zero gives 0, as a ratio of
// things that did not happen.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::core::events {

class Expression {
 public:
  // Throws std::invalid_argument that quotes the text and says where and what.
  static Expression parse(std::string_view text);

  // Names in order of first appearance, each once.
  const std::vector<std::string>& names() const { return names_; }

  // `value` gives the value of names()[i].
  double evaluate(const std::function<double(size_t)>& value) const;

  // As a sum of integer multiples of names, coefficient by name index. False
  // when it is no such sum.
  bool linear(std::vector<int64_t>& coefficients) const;

 private:
  enum class Op : uint8_t { constant, name, add, subtract, multiply, divide, minimum, maximum };
  struct Node {  // in postfix order
    Op op;
    double constant = 0;
    uint32_t name = 0;
  };
  std::vector<Node> nodes_;
  std::vector<std::string> names_;

  friend class ExpressionParser;
};

}  // namespace sonde::core::events
