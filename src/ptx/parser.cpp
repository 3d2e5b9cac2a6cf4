// SPDX-License-Identifier: Apache-2.0
//
// Module scope: header, files, sections, linkage; and how the parser reports
// errors and recovers.
#include "ptx/parser.h"

#include <algorithm>
#include <charconv>

#include "ptx/parser_impl.h"

namespace sonde::ptx {

bool ParseResult::ok() const {
  return std::none_of(diagnostics.begin(), diagnostics.end(),
                      [](const Diagnostic& d) { return d.severity != Diagnostic::Severity::warning; });
}

std::string format(const Diagnostic& d, std::string_view fileName) {
  std::string s(fileName);
  if (d.pos.line != 0) s += ":" + std::to_string(d.pos.line) + ":" + std::to_string(d.pos.column);
  switch (d.severity) {
    case Diagnostic::Severity::warning: s += ": warning: "; break;
    case Diagnostic::Severity::error: s += ": error: "; break;
    case Diagnostic::Severity::unsupported: s += ": not supported: "; break;
  }
  return s + d.message;
}

ParseResult parse(std::string_view text, const ParseOptions& options) {
  ParseResult result;
  Parser(text, options, result).run();
  return result;
}

// --- errors

bool Parser::error(SourcePos pos, std::string message) {
  if (stopped()) return false;
  diagnostics_.push_back({Diagnostic::Severity::error, pos, std::move(message)});
  if (++errors_ >= options_.maxErrors && options_.maxErrors > 1)
    diagnostics_.push_back({Diagnostic::Severity::error, pos, "too many errors; the rest of the text was not read"});
  return false;
}

bool Parser::unexpected(std::string_view expected) {
  std::string message = "expected " + std::string(expected) + ", found " + describe(tok_);
  if (tok_.why) message += std::string(" (") + tok_.why + ")";
  return error(tok_.pos, std::move(message));
}

bool Parser::accept(char c) {
  if (!tok_.is(c)) return false;
  if (c == '{')
    ++openBraces_;
  else if (c == '}' && openBraces_ > 0)
    --openBraces_;
  advance();
  return true;
}

bool Parser::expect(char c, std::string_view after) {
  if (accept(c)) return true;
  return unexpected(std::string("'") + c + "' after " + std::string(after));
}

// Skips to behind the ';' of the statement in error, or up to the '}' that ends its block. Where a ';' is simply
// missing at a line's end, the next line is read as a new statement.
void Parser::recover(SourcePos statement) {
  unsigned depth = openBraces_;
  openBraces_ = 0;
  const uint32_t line = statement.line;
  if (tok_.is(';')) {  // the statement ends in the middle, whatever it has open
    advance();
    return;
  }
  bool first = true;
  while (tok_.kind != Token::Kind::end) {
    if (depth == 0 && first && tok_.pos.line > line &&
        (tok_.isName() || tok_.kind == Token::Kind::directive || tok_.is('@')))
      return;
    first = false;
    if (tok_.is('{')) {
      ++depth;
    } else if (tok_.is('}')) {
      if (depth == 0) return;
      --depth;
    } else if (tok_.is(';') && depth == 0) {
      advance();
      return;
    } else if (tok_.kind == Token::Kind::directive &&
               (tok_.text == ".entry" || tok_.text == ".func" || tok_.text == ".visible")) {
      return;  // surely the next function
    }
    advance();
  }
}

bool Parser::integerToken(uint64_t& value, std::string_view what, uint64_t limit) {
  if (tok_.kind != Token::Kind::integer) return unexpected("an integer for " + std::string(what));
  if (tok_.value > limit)
    return error(tok_.pos,
                 std::string(what) + " must be at most " + std::to_string(limit) + ", found " + describe(tok_));
  value = tok_.value;
  advance();
  return true;
}

bool Parser::endStatement(std::string_view what) { return expect(';', what); }

// --- module scope

void Parser::run() {
  advance();
  while (tok_.kind != Token::Kind::end && !stopped()) {
    const SourcePos start = tok_.pos;
    openBraces_ = 0;
    if (!moduleItem()) {
      recover(start);
      if (tok_.is('}')) advance();
    }
  }
  if (stopped()) return;
  if (!sawVersion_)
    error({1, 1}, "the text has no .version directive");
  else if (!sawTarget_)
    error({1, 1}, "the text has no .target directive");
  finish();
}

void Parser::finish() { resolveFunctionNames(); }

bool Parser::moduleItem() {
  if (accept(';')) return true;
  if (tok_.is('@')) {  // lines "@@DWARF …" of very old compilers
    lex_.skipLine();
    advance();
    return true;
  }
  if (tok_.kind != Token::Kind::directive) return unexpected("a directive");
  const std::string_view d = tok_.text;
  if (d == ".version") return version();
  if (!sawVersion_ && !headerComplaint_) {
    headerComplaint_ = true;
    sawVersion_ = true;
    error(tok_.pos, "expected '.version' as the first directive, found " + describe(tok_));
  }
  if (d == ".target") return target();
  if (d == ".address_size") return addressSize();
  if (d == ".file") return file();
  if (d == ".section") return section();
  if (d == ".pragma") return pragma(module_.pragmas);
  if (d == ".alias") return alias();
  if (d == ".loc") return loc();
  if (!sawTarget_ && !headerComplaint_) {
    headerComplaint_ = true;
    sawTarget_ = true;
    error(tok_.pos, "expected '.target' before " + describe(tok_));
  }
  Linkage linkage;
  for (;; advance()) {
    if (tok_.isDirective(".extern"))
      linkage.isExtern = true;
    else if (tok_.isDirective(".visible"))
      linkage.isVisible = true;
    else if (tok_.isDirective(".weak"))
      linkage.isWeak = true;
    else if (tok_.isDirective(".common"))
      linkage.isCommon = true;
    else
      break;
  }
  if (tok_.isDirective(".entry")) return function(linkage, true);
  if (tok_.isDirective(".func")) return function(linkage, false);
  if (tok_.kind == Token::Kind::directive && (spaceFromName(tok_.text.substr(1)) != StateSpace::none))
    return variableStatement(linkage, false);
  if (linkage.isExtern || linkage.isVisible || linkage.isWeak || linkage.isCommon)
    return unexpected("'.entry', '.func' or a state space after the linking directive");
  return unexpected("a directive of module scope (.entry, .func, .global, .const, .shared, .file, .section …)");
}

bool Parser::version() {
  const SourcePos pos = tok_.pos;
  if (sawVersion_ && !headerComplaint_ && module_.versionMajor != 0)
    return error(pos, "a second .version directive; a module has one");
  advance();
  // The lexer reads "9.0" as a floating-point literal; the digits count.
  if (tok_.kind != Token::Kind::float64 || tok_.text.find('.') == std::string_view::npos)
    return unexpected("a version such as 9.0 after '.version'");
  const size_t dot = tok_.text.find('.');
  auto digits = [&](std::string_view s, uint32_t& out) {
    const auto r = std::from_chars(s.data(), s.data() + s.size(), out);
    return r.ec == std::errc{} && r.ptr == s.data() + s.size();
  };
  if (!digits(tok_.text.substr(0, dot), module_.versionMajor) ||
      !digits(tok_.text.substr(dot + 1), module_.versionMinor))
    return unexpected("a version such as 9.0 after '.version'");
  sawVersion_ = true;
  advance();
  return true;
}

bool Parser::target() {
  advance();
  bool any = false;
  do {
    if (!tok_.isName()) return unexpected("a target such as sm_90 after '.target'");
    const std::string_view t = tok_.text;
    if (t.starts_with("sm_") || t.starts_with("compute_")) {
      const std::string_view rest = t.substr(t.find('_') + 1);
      uint32_t number = 0;
      const auto r = std::from_chars(rest.data(), rest.data() + rest.size(), number);
      const std::string_view suffix(r.ptr, rest.data() + rest.size() - r.ptr);
      if (r.ec != std::errc{} || number < 10 || number > 999 || (!suffix.empty() && suffix != "a" && suffix != "f"))
        return unexpected("a target such as sm_90 or sm_90a");
      if (any) return error(tok_.pos, "a second architecture " + describe(tok_) + " in .target; a module has one");
      any = true;
      module_.target = number;
      module_.targetSuffix = suffix;
    } else if (t == "texmode_unified" || t == "texmode_independent" || t == "debug" || t == "map_f64_to_f32") {
      module_.targetOptions.emplace_back(t);
    } else {
      return unexpected("a target (sm_NN) or one of texmode_unified, texmode_independent, debug, map_f64_to_f32");
    }
    advance();
  } while (accept(','));
  if (!any && module_.target == 0) return error(tok_.pos, "'.target' names no architecture (sm_NN)");
  sawTarget_ = true;
  return true;
}

bool Parser::addressSize() {
  advance();
  const SourcePos pos = tok_.pos;
  uint64_t size;
  if (!integerToken(size, ".address_size")) return false;
  if (size != 32 && size != 64) return error(pos, ".address_size must be 32 or 64, found " + std::to_string(size));
  module_.addressSize = static_cast<uint32_t>(size);
  return true;
}

bool Parser::file() {
  advance();
  SourceFile f;
  uint64_t index;
  if (!integerToken(index, "the number of .file", 0xffffffff)) return false;
  f.index = static_cast<uint32_t>(index);
  if (tok_.kind != Token::Kind::string) return unexpected("a file name in quotes");
  f.path = tok_.text;
  advance();
  if (accept(',')) {
    if (!integerToken(f.timestamp, "the time stamp of .file")) return false;
    if (accept(',') && !integerToken(f.size, "the size of .file")) return false;
  }
  accept(';');
  for (auto& known : module_.files)
    if (known.index == f.index) {
      known = std::move(f);
      return true;
    }
  module_.files.push_back(std::move(f));
  return true;
}

bool Parser::section() {
  advance();
  std::string raw = ".section ";
  if (tok_.kind == Token::Kind::directive || tok_.isName())
    raw += tok_.text;
  else
    return unexpected("a section's name, such as .debug_info");
  advance();
  if (!tok_.is('{')) return unexpected("'{' after the section's name");
  const SourcePos open = tok_.pos;
  std::string_view text;
  if (!lex_.rawBlock(text)) {
    tok_ = {};
    return error(open, "this '{' of a .section is never closed");
  }
  advance();
  raw += "\n{";
  raw += text;
  raw += "}";
  module_.dwarfSections.push_back(std::move(raw));
  return true;
}

bool Parser::pragma(std::vector<std::string>& out) {
  advance();
  do {
    if (tok_.kind != Token::Kind::string) return unexpected("a string in quotes after '.pragma'");
    out.emplace_back(tok_.text);
    advance();
  } while (accept(','));
  return endStatement(".pragma");
}

bool Parser::alias() {
  advance();
  std::string names[2];
  for (int i = 0; i < 2; ++i) {
    if (!tok_.isName()) return unexpected("a function's name");
    names[i] = tok_.text;
    if (functions_.find(names[i]) == functions_.end())
      return error(tok_.pos, "'" + names[i] + "' of .alias is not a declared function");
    advance();
    if (i == 0 && !expect(',', "the alias's name")) return false;
  }
  module_.aliases.emplace_back(std::move(names[0]), std::move(names[1]));
  return endStatement(".alias");
}

}  // namespace sonde::ptx
