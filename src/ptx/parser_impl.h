// SPDX-License-Identifier: Apache-2.0
//
// The recursive-descent parser; its parts live in parser.cpp (module scope),
// parse_variables.cpp, parse_function.cpp, parse_names.cpp,
// parse_instruction.cpp, parse_expression.cpp and parse_locations.cpp. A parse… function that returns
// bool returns false after it has reported an error; the caller then recovers
// at the end of the statement.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ptx/lexer.h"
#include "ptx/mnemonic.h"
#include "ptx/parser.h"

namespace sonde::ptx {

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options, ParseResult& result)
      : lex_(text),
        options_(options),
        module_(result.module),
        diagnostics_(result.diagnostics),
        maxRegisters_((1u << 20) + static_cast<uint32_t>(std::min<size_t>(text.size() / 4, 1u << 26))) {}
  void run();

 private:
  // Limits that keep hostile input from costing more than its size warrants.
  static constexpr unsigned kMaxScopes = 200, kMaxExpressionDepth = 100;
  static constexpr uint64_t kMaxObjectBytes = uint64_t{1} << 40;
  static constexpr uint32_t kMaxInitializerPadding = 1u << 20;  // zeros filled into short rows, of one module

  // --- tokens and errors (parser.cpp)
  void advance() { tok_ = lex_.next(); }
  bool error(SourcePos pos, std::string message);
  bool unexpected(std::string_view expected);  // "expected X, found Y" at the current token
  bool expect(char c, std::string_view after);
  bool accept(char c);
  bool stopped() const { return errors_ >= options_.maxErrors; }
  void recover(SourcePos statement);  // to behind the statement's end
  bool integerToken(uint64_t& value, std::string_view what, uint64_t limit = ~uint64_t{0});
  bool endStatement(std::string_view what);

  // --- module scope (parser.cpp)
  struct Linkage {
    bool isExtern = false, isVisible = false, isWeak = false, isCommon = false;
  };
  bool moduleItem();
  bool version();
  bool target();
  bool addressSize();
  bool file();
  bool section();
  bool pragma(std::vector<std::string>& out);
  bool alias();
  void finish();

  // --- variables (parse_variables.cpp)
  enum class VariableScope { module, function, parameter, prototype };
  // From the state-space directive on, up to ';' (or, for parameters, up to ',' or ')').
  bool variableStatement(const Linkage& linkage, bool inFunction);
  bool variableHead(Variable& v, VariableScope scope);
  bool variableName(Variable& v, VariableScope scope);
  bool attributes(bool& managed, bool& unified, uint64_t (&id)[2]);
  bool initializer(Variable& v);
  bool initializerList(Variable& v, size_t level, uint64_t budget);
  bool initializerElement(Variable& v);
  bool samplerInitializer(Variable& v);
  bool parameterList(std::vector<Variable>& out, VariableScope scope);
  void declareModuleVariable(Variable v);

  // --- functions (parse_function.cpp)
  bool function(const Linkage& linkage, bool kernel);
  bool functionDirectives(Function& f);
  bool dimensions(std::array<uint32_t, 3>& out);
  bool adopt(Function&& f, uint32_t& id);
  bool body(Function& f);
  bool statement();
  bool registerStatement();
  bool labelOrTable(const Token& name);
  bool callPrototype(const Token& name);
  bool targetTable(const Token& name, bool isCall);
  void layOutParameters(Function& f) const;

  // --- names of the function being parsed (parse_names.cpp)
  struct Binding {
    enum class Kind : uint8_t { reg, variable, moduleVariable, param, returnParam, prototype, targets };
    Kind kind = Kind::reg;
    uint16_t depth = 0;
    uint32_t id = 0;
  };
  struct Range {
    uint16_t depth = 0;
    uint32_t first = 0, count = 0;
  };
  struct LabelUse {
    uint32_t instruction, operand;  // operand kNoId: instruction is a branchTargets index and element the target's
    uint32_t element;
    std::string_view name;
    SourcePos pos;
  };
  struct Scope {
    std::vector<std::pair<std::string_view, Binding>> savedNames;  // to restore; id kNoId: was not there
    std::vector<std::pair<std::string_view, Range>> savedRanges;   // … count 0: was not there
    std::unordered_map<std::string_view, uint32_t> labels;
    std::vector<LabelUse> uses;
    SourcePos pos;
  };
  void openScope(SourcePos pos);
  void closeScope();
  bool bind(const Token& name, Binding::Kind kind, uint32_t id);
  bool lookUp(std::string_view name, Binding& out) const;
  bool lookUpRange(std::string_view name, uint32_t& reg, uint16_t& depth) const;
  // The name to store in the flat tables: the name itself, or with "$1" … when the function has it already.
  std::string uniqueName(std::string_view name);
  bool nameTaken(std::string_view name) const;
  uint32_t addRegister(std::string name, ScalarType type, uint8_t vector);
  bool registerRange(const Token& name, uint64_t count, ScalarType type, uint8_t vector);

  // --- instructions (parse_instruction.cpp)
  bool instruction();
  bool operands(Instruction& i);
  bool operand(Operand& o, unsigned depth = 0);
  bool simpleOperand(Operand& o, unsigned depth);
  bool nameOperand(Operand& o);
  bool suffix(Operand& o, std::string_view what);
  bool symbolOffset(Operand& o);
  bool addressOperand(Operand& o, unsigned depth);
  bool vectorOperand(Operand& o, unsigned depth);
  bool resolve(const Token& name, Operand& o);  // fills kind, reg, special, ref; false without a message: unknown
  bool call(Instruction& i);
  bool guard(Guard& g);
  bool labelUse(Operand& o);

  // --- constant expressions (parse_expression.cpp)
  struct Value {
    bool isFloat = false, is32 = false, isUnsigned = false;
    uint64_t bits = 0;  // integer; or bits of f64, of f32 when is32
    double number() const;
    int64_t integer() const { return static_cast<int64_t>(bits); }
  };
  bool startsExpression() const;
  bool expression(Value& v, unsigned depth = 0);
  bool signedExpression(Value& v, const Token& sign);  // the sign, '-' or '!', has been read
  bool binary(Value& v, int minPrecedence, unsigned depth);
  bool binaryRest(Value& v, int minPrecedence, unsigned depth);
  bool applySign(Value& v, char sign, SourcePos pos);
  bool unary(Value& v, unsigned depth);
  bool choice(Value& v, unsigned depth);
  bool integerExpression(int64_t& value, std::string_view what);

  // --- locations (parse_locations.cpp)
  bool loc();
  void resolveFunctionNames();
  uint32_t internLocation(const Location& location);

  Lexer lex_;
  Token tok_;
  const ParseOptions& options_;
  Module& module_;
  std::vector<Diagnostic>& diagnostics_;
  unsigned errors_ = 0;
  bool sawVersion_ = false, sawTarget_ = false, headerComplaint_ = false;
  uint32_t registers_ = 0, padding_ = 0;
  const uint32_t maxRegisters_;  // of one module

  std::unordered_map<std::string, uint32_t> moduleVariables_, functions_;
  std::unordered_map<std::string_view, uint32_t> mnemonicIds_;
  std::deque<Mnemonic> mnemonics_;  // parallel to Module::mnemonics
  std::deque<std::string> ownedTexts_;

  // Of the function at hand.
  Function* fn_ = nullptr;
  uint32_t functionId_ = kNoId;
  std::unordered_map<std::string_view, Binding> names_;
  std::unordered_map<std::string_view, Range> ranges_;
  std::unordered_set<std::string> declared_;                  // every name given so far
  std::unordered_map<std::string, uint32_t> declaredRanges_;  // prefix -> most registers
  std::unordered_map<std::string, uint32_t> renames_;         // name -> last number appended
  std::vector<Scope> scopes_;
  uint32_t currentLoc_ = kNoId;
  Token pendingLabel_;       // of the branch at hand
  unsigned openBraces_ = 0;  // '{' of the statement at hand, for recovery

  using LocationKey = std::tuple<uint32_t, uint32_t, uint32_t>;
  std::map<LocationKey, uint32_t> latestLocation_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, std::string, uint64_t>, uint32_t> locationIds_;
};

}  // namespace sonde::ptx
