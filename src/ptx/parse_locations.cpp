// SPDX-License-Identifier: Apache-2.0
//
// .loc, and the names of inlined functions that it takes from .debug_str.
#include <algorithm>
#include <charconv>
#include <optional>

#include "ptx/parser_impl.h"

namespace sonde::ptx {

uint32_t Parser::internLocation(const Location& l) {
  const auto key = std::make_tuple(l.file, l.line, l.column, l.inlinedAt, l.functionLabel, l.functionOffset);
  auto [it, isNew] = locationIds_.try_emplace(key, static_cast<uint32_t>(module_.locations.size()));
  if (isNew) module_.locations.push_back(l);
  latestLocation_[{l.file, l.line, l.column}] = it->second;
  return it->second;
}

// .loc file line column [, function_name label [+ offset], inlined_at file line column]
bool Parser::loc() {
  advance();
  Location location;
  auto position = [&](uint32_t& file, uint32_t& line, uint32_t& column) {
    uint64_t f, l, c;
    if (!integerToken(f, "the file number of .loc", 0xffffffff) || !integerToken(l, "the line of .loc", 0xffffffff) ||
        !integerToken(c, "the column of .loc", 0xffffffff))
      return false;
    file = static_cast<uint32_t>(f);
    line = static_cast<uint32_t>(l);
    column = static_cast<uint32_t>(c);
    return true;
  };
  if (!position(location.file, location.line, location.column)) return false;
  while (accept(',')) {
    if (tok_.isName() && tok_.text == "function_name") {
      advance();
      if (!tok_.isName()) return unexpected("the label of a function name in .debug_str");
      location.functionLabel = tok_.text;
      advance();
      if (accept('+') && !integerToken(location.functionOffset, "the offset of function_name")) return false;
    } else if (tok_.isName() && tok_.text == "inlined_at") {
      advance();
      uint32_t file, line, column;
      if (!position(file, line, column)) return false;
      // The call's own place may have been inlined too: the last .loc that named it says where.
      const auto outer = latestLocation_.find({file, line, column});
      location.inlinedAt = outer != latestLocation_.end()
                               ? outer->second
                               : internLocation(Location{file, line, column, kNoId, {}, {}, 0});
    } else {
      return unexpected("'function_name' or 'inlined_at'");
    }
  }
  accept(';');
  currentLoc_ = internLocation(location);
  return true;
}

namespace {

// The bytes of a .section, and where each label stands in them.
struct SectionBytes {
  std::string bytes;
  std::unordered_map<std::string, size_t> labels;
};

SectionBytes readSection(std::string_view text) {
  SectionBytes section;
  Lexer lex(text);
  unsigned width = 0;
  for (Token t = lex.next(); t.kind != Token::Kind::end; t = lex.next()) {
    if (t.isName() && lex.colonFollows()) {
      section.labels.emplace(t.text, section.bytes.size());
    } else if (t.kind == Token::Kind::directive) {
      width = t.text == ".b8" ? 1 : t.text == ".b16" ? 2 : t.text == ".b32" ? 4 : t.text == ".b64" ? 8 : 0;
    } else if (t.kind == Token::Kind::integer) {
      for (unsigned i = 0; i < width; ++i) section.bytes.push_back(static_cast<char>(t.value >> (8 * i)));
    } else if (t.isName()) {
      section.bytes.append(width, '\0');
    }
  }
  return section;
}

}  // namespace

void Parser::resolveFunctionNames() {
  bool needed = false;
  for (const auto& l : module_.locations) needed |= !l.functionLabel.empty();
  if (!needed) return;
  SectionBytes strings;
  for (const auto& raw : module_.dwarfSections) {
    if (!std::string_view(raw).starts_with(".section .debug_str")) continue;
    const auto brace = raw.find('{');
    if (brace != std::string::npos) strings = readSection(std::string_view(raw).substr(brace + 1));
  }
  for (auto& l : module_.locations) {
    const auto label = strings.labels.find(l.functionLabel);
    if (label == strings.labels.end()) continue;
    const size_t start = label->second + l.functionOffset;
    if (start < label->second || start >= strings.bytes.size()) continue;
    l.functionName =
        strings.bytes.substr(start, std::min(strings.bytes.find('\0', start), strings.bytes.size()) - start);
  }
}

}  // namespace sonde::ptx
