// SPDX-License-Identifier: Apache-2.0
//
// Names inside a function: nested scopes, register ranges, labels used before
// they are defined.
#include <charconv>

#include "ptx/parser_impl.h"

namespace sonde::ptx {

void Parser::openScope(SourcePos pos) {
  scopes_.emplace_back();
  scopes_.back().pos = pos;
}

void Parser::closeScope() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (auto& use : scope.uses) {
    const auto label = scope.labels.find(use.name);
    if (label == scope.labels.end()) {
      if (scopes_.empty())
        error(use.pos, "undefined label '" + std::string(use.name) + "'");
      else
        scopes_.back().uses.push_back(use);
      continue;
    }
    if (use.operand == kNoId) {
      auto& table = fn_->branchTargets[use.instruction];
      table.ids[use.element] = label->second;
      table.targets[use.element] = fn_->labels[label->second].name;
    } else {
      fn_->body[use.instruction].operands[use.operand].index = label->second;
    }
  }
  for (auto it = scope.savedNames.rbegin(); it != scope.savedNames.rend(); ++it) {
    if (it->second.id == kNoId)
      names_.erase(it->first);
    else
      names_[it->first] = it->second;
  }
  for (auto it = scope.savedRanges.rbegin(); it != scope.savedRanges.rend(); ++it) {
    if (it->second.count == 0)
      ranges_.erase(it->first);
    else
      ranges_[it->first] = it->second;
  }
}

namespace {

// "%r12" -> "%r" and 12; false when the name does not end in a number without leading zeros.
bool splitNumber(std::string_view name, std::string_view& prefix, uint32_t& number) {
  size_t i = name.size();
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') --i;
  if (i == 0 || i == name.size() || name.size() - i > 9 || (name[i] == '0' && name.size() - i > 1)) return false;
  prefix = name.substr(0, i);
  std::from_chars(name.data() + i, name.data() + name.size(), number);
  return true;
}

}  // namespace

bool Parser::lookUpRange(std::string_view name, uint32_t& reg, uint16_t& depth) const {
  std::string_view prefix;
  uint32_t number;
  if (!splitNumber(name, prefix, number)) return false;
  const auto it = ranges_.find(prefix);
  if (it == ranges_.end() || number >= it->second.count) return false;
  reg = it->second.first + number;
  depth = it->second.depth;
  return true;
}

bool Parser::lookUp(std::string_view name, Binding& out) const {
  uint32_t reg;
  uint16_t depth;
  const auto it = names_.find(name);
  if (it != names_.end()) {
    out = it->second;
    if (scopes_.size() > 1 && lookUpRange(name, reg, depth) && depth > out.depth)
      out = {Binding::Kind::reg, depth, reg};
    return true;
  }
  if (!lookUpRange(name, reg, depth)) return false;
  out = {Binding::Kind::reg, depth, reg};
  return true;
}

bool Parser::bind(const Token& name, Binding::Kind kind, uint32_t id) {
  const auto depth = static_cast<uint16_t>(scopes_.size());
  Binding known;
  const bool exists = lookUp(name.text, known);
  if (exists && known.depth == depth)
    return error(name.pos, "'" + std::string(name.text) + "' is already declared in this block");
  const auto it = names_.find(name.text);
  scopes_.back().savedNames.emplace_back(name.text,
                                         it != names_.end() ? it->second : Binding{Binding::Kind::reg, 0, kNoId});
  names_[name.text] = {kind, depth, id};
  return true;
}

bool Parser::nameTaken(std::string_view name) const {
  if (declared_.count(std::string(name))) return true;
  std::string_view prefix;
  uint32_t number;
  if (splitNumber(name, prefix, number)) {
    const auto it = declaredRanges_.find(std::string(prefix));
    if (it != declaredRanges_.end() && number < it->second) return true;
  }
  return false;
}

std::string Parser::uniqueName(std::string_view name) {
  std::string s(name);
  auto taken = [&] {
    return nameTaken(s) || (scopes_.size() > 1 && (moduleVariables_.count(s) || functions_.count(s)));
  };
  if (taken()) {
    auto& next = renames_[std::string(name)];
    do {
      s = std::string(name) + "$" + std::to_string(++next);
    } while (taken());
  }
  declared_.insert(s);
  return s;
}

uint32_t Parser::addRegister(std::string name, ScalarType type, uint8_t vector) {
  ++registers_;
  fn_->registers.push_back({std::move(name), type, vector});
  return static_cast<uint32_t>(fn_->registers.size() - 1);
}

}  // namespace sonde::ptx
