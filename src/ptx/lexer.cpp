// SPDX-License-Identifier: Apache-2.0
#include "ptx/lexer.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sonde::ptx {
namespace {

enum : uint8_t { kWord = 1, kStart = 2, kDigit = 4, kSpace = 8, kHex = 16 };

constexpr std::array<uint8_t, 256> kClasses = [] {
  std::array<uint8_t, 256> c{};
  for (int i = 'a'; i <= 'z'; ++i) c[i] = kWord | kStart;
  for (int i = 'A'; i <= 'Z'; ++i) c[i] = kWord | kStart;
  for (int i = '0'; i <= '9'; ++i) c[i] = kWord | kDigit | kHex;
  for (int i = 'a'; i <= 'f'; ++i) c[i] |= kHex;
  for (int i = 'A'; i <= 'F'; ++i) c[i] |= kHex;
  c['_'] = c['$'] = kWord | kStart;
  c['%'] = kStart;
  for (char s : {' ', '\t', '\r', '\n', '\v', '\f'}) c[static_cast<uint8_t>(s)] = kSpace;
  return c;
}();

bool in(char c, uint8_t mask) { return kClasses[static_cast<uint8_t>(c)] & mask; }

unsigned digitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return (c | 32) - 'a' + 10;
}

}  // namespace

std::string describe(const Token& token) {
  if (token.kind == Token::Kind::end) return "the end of the text";
  std::string text(token.text.substr(0, 60));
  if (token.kind == Token::Kind::string) return "the string \"" + text + "\"";
  if (token.kind == Token::Kind::bad && token.text.size() == 1 && !std::isprint(static_cast<uint8_t>(token.text[0]))) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "the byte 0x%02X", static_cast<uint8_t>(token.text[0]));
    return buffer;
  }
  return "'" + text + "'";
}

Lexer::Lexer(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  if (const auto nul = text.find('\0'); nul != text.npos) text = text.substr(0, nul);
  p_ = lineStart_ = text.data();
  end_ = p_ + text.size();
}

void Lexer::skipSpace() {
  while (p_ < end_) {
    if (*p_ == '\n') {
      ++p_;
      ++line_;
      lineStart_ = p_;
    } else if (in(*p_, kSpace)) {
      ++p_;
    } else if (*p_ == '/' && p_ + 1 < end_ && p_[1] == '/') {
      skipLine();
    } else if (*p_ == '/' && p_ + 1 < end_ && p_[1] == '*') {
      const SourcePos open = here();
      p_ += 2;
      while (p_ < end_ && !(*p_ == '*' && p_ + 1 < end_ && p_[1] == '/')) {
        if (*p_ == '\n') {
          ++line_;
          lineStart_ = p_ + 1;
        }
        ++p_;
      }
      if (p_ < end_)
        p_ += 2;
      else
        openComment_ = open;
    } else if (*p_ == '#' && p_ == lineStart_) {
      skipLine();  // a preprocessor's line marker
    } else {
      return;
    }
  }
}

void Lexer::skipLine() {
  const void* nl = p_ < end_ ? std::memchr(p_, '\n', end_ - p_) : nullptr;
  p_ = nl ? static_cast<const char*>(nl) : end_;
}

Token Lexer::next() {
  skipSpace();
  Token t;
  t.pos = here();
  if (p_ >= end_) {
    if (openComment_.line != 0) {
      t.pos = openComment_;
      openComment_ = {};
      t.kind = Token::Kind::bad;
      t.text = "/*";
      t.why = "this comment is not closed";
    }
    return t;
  }
  const char* start = p_;
  const char c = *p_;
  if (in(c, kStart)) {
    ++p_;
    while (p_ < end_ && in(*p_, kWord)) ++p_;
    t.text = {start, static_cast<size_t>(p_ - start)};
    // A lone '%' is the remainder operator.
    t.kind = t.text == "%" ? Token::Kind::punct : Token::Kind::identifier;
    return t;
  }
  if (in(c, kDigit)) {
    number(t);
    return t;
  }
  if (c == '.' && p_ + 1 < end_ && in(p_[1], kWord)) {
    const char* q = p_ + 1;
    bool digitsOnly = true;
    while (q < end_ && (in(*q, kWord) || (*q == ':' && q + 2 < end_ && q[1] == ':' && in(q[2], kWord)))) {
      if (!in(*q, kDigit)) digitsOnly = false;
      q += *q == ':' ? 2 : 1;
    }
    if (digitsOnly) {
      decimal(t, start);
      return t;
    }
    p_ = q;
    t.kind = Token::Kind::directive;
    t.text = {start, static_cast<size_t>(p_ - start)};
    return t;
  }
  if (c == '"') {
    ++p_;
    while (p_ < end_ && *p_ != '"' && *p_ != '\n') p_ += (*p_ == '\\' && p_ + 1 < end_ && p_[1] != '\n') ? 2 : 1;
    t.text = {start + 1, static_cast<size_t>(p_ - start - 1)};
    if (p_ < end_ && *p_ == '"') {
      ++p_;
      t.kind = Token::Kind::string;
    } else {
      t.kind = Token::Kind::bad;
      t.why = "this string is not closed on its line";
    }
    return t;
  }
  t.kind = Token::Kind::punct;
  size_t length = 1;
  if (p_ + 1 < end_) {
    const char d = p_[1];
    if (((c == '&' || c == '|') && d == c) || ((c == '=' || c == '!' || c == '<' || c == '>') && d == '=') ||
        ((c == '<' || c == '>') && d == c))
      length = 2;
  }
  t.text = {start, length};
  if (length == 1 && (c == '\0' || !std::strchr("{}[]()<>,;:=+-*/!~@|&^?.", c))) {
    t.kind = Token::Kind::bad;
    t.why = "this character has no meaning in PTX";
  }
  p_ += length;
  return t;
}

void Lexer::decimal(Token& t, const char* start) {
  // Decimal floating literal starting at `start`: digits [. digits] [e [sign] digits].
  const char* q = start;
  while (q < end_ && in(*q, kDigit)) ++q;
  if (q < end_ && *q == '.') {
    ++q;
    while (q < end_ && in(*q, kDigit)) ++q;
  }
  if (q < end_ && (*q == 'e' || *q == 'E')) {
    const char* e = q + 1;
    if (e < end_ && (*e == '+' || *e == '-')) ++e;
    if (e < end_ && in(*e, kDigit)) {
      while (e < end_ && in(*e, kDigit)) ++e;
      q = e;
    }
  }
  double value = 0;
  const auto result = std::from_chars(start, q, value);
  t.kind = Token::Kind::float64;
  t.text = {start, static_cast<size_t>(q - start)};
  p_ = q;
  if (result.ec == std::errc::result_out_of_range) {
    // strtod tells overflow (infinity) from underflow (zero); never with the decimal comma of a program's locale.
    static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);
    value = strtod_l(std::string(t.text).c_str(), nullptr, kPlain);
  }
  t.value = std::bit_cast<uint64_t>(value);
}

void Lexer::number(Token& t) {
  const char* start = p_;
  const char* q = p_;
  auto wordEnd = [&] {
    while (q < end_ && in(*q, kWord)) ++q;
    t.text = {start, static_cast<size_t>(q - start)};
    p_ = q;
  };
  auto bad = [&](const char* why) {
    wordEnd();
    t.kind = Token::Kind::bad;
    t.why = why;
  };
  const char x = p_ + 1 < end_ && *p_ == '0' ? static_cast<char>(p_[1] | 32) : '\0';
  if (x == 'f' || x == 'd') {
    const size_t want = x == 'f' ? 8 : 16;
    q = p_ + 2;
    while (q < end_ && in(*q, kHex)) {
      t.value = t.value << 4 | digitValue(*q);
      ++q;
    }
    if (static_cast<size_t>(q - p_) - 2 != want || (q < end_ && in(*q, kWord)))
      return bad(x == 'f' ? "0f must be followed by exactly 8 hexadecimal digits"
                          : "0d must be followed by exactly 16 hexadecimal digits");
    t.kind = x == 'f' ? Token::Kind::float32 : Token::Kind::float64;
    return wordEnd();
  }
  unsigned base = 10;
  if (x == 'x')
    base = 16, q += 2;
  else if (x == 'b')
    base = 2, q += 2;
  if (base == 10) {
    const char* d = q;
    while (d < end_ && in(*d, kDigit)) ++d;
    if (d < end_ && (*d == '.' || *d == 'e' || *d == 'E')) return decimal(t, start);
    if (*q == '0' && d - q > 1) base = 8;
  }
  const char* digits = q;
  bool overflow = false;
  while (q < end_ && in(*q, kHex) && digitValue(*q) < base) {
    if (t.value > (~uint64_t{0} - digitValue(*q)) / base) overflow = true;
    t.value = t.value * base + digitValue(*q);
    ++q;
  }
  const bool none = q == digits;
  if (q < end_ && (*q == 'U' || *q == 'u')) {
    t.isUnsigned = true;
    ++q;
  }
  if (none || (q < end_ && in(*q, kWord))) return bad("this number is not well formed");
  if (overflow) return bad("this number does not fit into 64 bits");
  t.kind = Token::Kind::integer;
  if (t.value >> 63) t.isUnsigned = true;
  t.text = {start, static_cast<size_t>(q - start)};
  p_ = q;
}

bool Lexer::colonFollows() {
  skipSpace();
  return p_ < end_ && *p_ == ':' && !(p_ + 1 < end_ && p_[1] == ':');
}

std::string_view Lexer::mnemonic(const Token& first, std::string& scratch) {
  const char* start = first.text.data();
  const char* q = start + first.text.size();
  bool contiguous = p_ == q;
  if (!contiguous) scratch.assign(first.text);
  for (;;) {
    if (p_ + 1 < end_ && *p_ == '.' && in(p_[1], kWord)) {
      q = p_ + 1;
      while (q < end_ && (in(*q, kWord) || (*q == ':' && q + 2 < end_ && q[1] == ':' && in(q[2], kWord))))
        q += *q == ':' ? 2 : 1;
      if (!contiguous) scratch.append(p_, q);
      p_ = q;
      continue;
    }
    const char* before = p_;
    const char* wordsEnd = q;
    skipSpace();
    if (p_ == before || !(p_ + 1 < end_ && *p_ == '.' && in(p_[1], kWord))) {
      return contiguous ? std::string_view(start, wordsEnd - start) : std::string_view(scratch);
    }
    if (contiguous) scratch.assign(start, wordsEnd - start);
    contiguous = false;
  }
}

bool Lexer::rawBlock(std::string_view& text) {
  const char* start = p_;
  unsigned depth = 1;
  while (p_ < end_) {
    if (*p_ == '{')
      ++depth;
    else if (*p_ == '}' && --depth == 0) {
      text = {start, static_cast<size_t>(p_ - start)};
      ++p_;
      return true;
    } else if (*p_ == '\n') {
      ++line_;
      lineStart_ = p_ + 1;
    }
    ++p_;
  }
  return false;
}

}  // namespace sonde::ptx
