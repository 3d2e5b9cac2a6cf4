// SPDX-License-Identifier: Apache-2.0
//
// The checker's inside: check.cpp (choice of the instruction's form, its
// operands), check_memory.cpp (ld, st, atom, mov, cvt …), check_special.cpp
// (single opcodes' extra rules), check_features.cpp (what .version and .target allow).
#pragma once

#include <string>

#include "ptx/check.h"
#include "ptx/check_rules.h"

namespace sonde::ptx {

class Checker {
 public:
  Checker(const Module& module, const CheckOptions& options) : module_(module), options_(options) {}
  std::vector<Diagnostic> run();

 private:
  enum class Fit { exact, mayBeWider };

  // --- check.cpp
  void function(const Function& f);
  void instruction(const Instruction& i);
  const InstructionRule* choose(const Instruction& i);
  void explainNoForm(const Instruction& i);
  void operandsByRule(const Instruction& i, const InstructionRule& rule);
  void operand(const Instruction& i, size_t index, const Operand& o, const OperandRule& rule);
  void special(const Instruction& i);  // what the table cannot say of an instruction (check_special.cpp)
  void matrixSizes(const Instruction& i);
  bool count(const Instruction& i, size_t least, size_t most);
  void dest(const Instruction& i, const Operand& o, ScalarType t, Fit fit = Fit::exact, unsigned widen = 1);
  void source(const Instruction& i, const Operand& o, ScalarType t, Fit fit = Fit::exact, unsigned widen = 1);
  void predicate(const Instruction& i, const Operand& o, bool isDest);
  void address(const Instruction& i, const Operand& o);
  bool matches(ScalarType reg, ScalarType wanted, Fit fit, unsigned widen) const;
  ScalarType typeOf(const Operand& o) const;  // of a register or special register; none otherwise
  void complain(const Instruction& i, const Operand& o, const std::string& expected);
  void error(SourcePos pos, std::string message);
  std::string mnemonic(const Instruction& i) const;
  std::string text(const Operand& o) const { return describe(o, *fn_, module_); }

  // --- check_memory.cpp
  void mov(const Instruction& i);
  void load(const Instruction& i);
  void store(const Instruction& i);
  void valueList(const Instruction& i, const Operand& o, bool isDest);
  void memorySpace(const Instruction& i, const Operand& address, std::initializer_list<StateSpace> allowed);
  void memoryOrder(const Instruction& i);
  void vectorSize(const Instruction& i);
  void convert(const Instruction& i);
  void atomic(const Instruction& i, bool hasResult);
  void call(const Instruction& i);
  void callList(const Instruction& i, const std::vector<Operand>& actual, const std::vector<Variable>& formal,
                std::string_view what);

  // --- check_features.cpp
  void moduleFeatures();
  void functionFeatures(const Function& f);
  void instructionFeatures(const Instruction& i, const InstructionRule* rule);
  // An error unless .version and .target are at least these (version times 10; 0: any).
  void require(SourcePos pos, const std::string& feature, unsigned version, unsigned target);
  void requireSuffix(SourcePos pos, const std::string& feature, unsigned target);

  const Module& module_;
  const CheckOptions& options_;
  const Function* fn_ = nullptr;
  std::vector<Diagnostic> out_;
};

}  // namespace sonde::ptx
