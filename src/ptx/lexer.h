// SPDX-License-Identifier: Apache-2.0
//
// Splits PTX text into tokens. Instruction mnemonics are the one irregular
// thing ("tex.2d.v4.f32.s32" has words that start with digits), so the parser
// asks for them with mnemonic() after it has seen an identifier where a
// statement starts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/types.h"

namespace sonde::ptx {

struct Token {
  enum class Kind : uint8_t {
    end,
    identifier,  // foo, %r1, $L__BB0_1, _
    directive,   // .word, with the dot; `::` parts included
    integer,     // value
    float32,     // 0f…: value holds the 32 bits
    float64,     // 0d… or decimal: value holds the 64 bits
    string,      // text without the quotes, as written
    punct,       // text is one character, or one of && || == != <= >= << >>
    bad,         // text is what could not be read; why says what is wrong
  };
  Kind kind = Kind::end;
  bool isUnsigned = false;  // integer with a U suffix, or too large for s64
  std::string_view text;    // points into the source
  uint64_t value = 0;
  SourcePos pos;
  const char* why = nullptr;

  bool is(char c) const { return kind == Kind::punct && text.size() == 1 && text[0] == c; }
  bool is(std::string_view punct) const { return kind == Kind::punct && text == punct; }
  bool isDirective(std::string_view word) const { return kind == Kind::directive && text == word; }
  bool isName() const { return kind == Kind::identifier; }
};

// For messages: 'add', end of file, the string "…".
std::string describe(const Token& token);

class Lexer {
 public:
  // The text must outlive the lexer and its tokens. NUL ends it (embedded PTX is NUL-terminated).
  explicit Lexer(std::string_view text);

  Token next();

  // After next() returned an identifier: does a label's colon follow?
  bool colonFollows();
  // After next() returned identifier `first`: the dotted words that follow it, up to the operands. The result is a
  // slice of the source, or of `scratch` where white space stood between the words.
  std::string_view mnemonic(const Token& first, std::string& scratch);
  // After next() returned '{': the raw text up to the matching '}', which is consumed; false when there is none.
  bool rawBlock(std::string_view& text);
  // Skips the rest of the line.
  void skipLine();

 private:
  void skipSpace();
  SourcePos here() const { return {line_, static_cast<uint32_t>(p_ - lineStart_) + 1}; }
  void number(Token& t);
  void decimal(Token& t, const char* start);

  const char* p_;
  const char* end_;
  const char* lineStart_;
  uint32_t line_ = 1;
  SourcePos openComment_;  // of a comment that has no end; line 0: none
};

}  // namespace sonde::ptx
