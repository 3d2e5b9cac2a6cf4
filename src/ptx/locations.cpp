// SPDX-License-Identifier: Apache-2.0
#include "ptx/locations.h"

#include <map>

namespace sonde::ptx {

SourceMap::SourceMap(const Module& module) : module_(module) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
  auto number = [&](const Location& l) {
    const auto [it, isNew] = numbers.try_emplace({l.file, l.line}, static_cast<uint32_t>(lines_.size()));
    if (isNew) lines_.push_back({l.file, l.line});
    return it->second;
  };
  const auto& locations = module.locations;
  lineOf_.reserve(locations.size());
  outerLineOf_.reserve(locations.size());
  for (uint32_t i = 0; i < locations.size(); ++i) {
    lineOf_.push_back(number(locations[i]));
    const uint32_t outer = locations[i].inlinedAt;
    // What a location was inlined at stands before it in the table, so its outermost line is known already.
    outerLineOf_.push_back(outer == kNoId ? lineOf_[i] : outer < i ? outerLineOf_[outer] : number(locations[outer]));
  }
}

std::string_view SourceMap::path(uint32_t fileIndex) const {
  for (const auto& f : module_.files)
    if (f.index == fileIndex) return f.path;
  return {};
}

std::vector<SourceFrame> SourceMap::frames(const Function& function, const Instruction& i) const {
  std::vector<SourceFrame> out;
  uint32_t loc = i.loc;
  while (loc != kNoId) {
    const Location& l = module_.locations[loc];
    out.push_back(
        {path(l.file), l.line, l.column, l.inlinedAt == kNoId ? std::string_view(function.name) : l.functionName});
    // The table's order rules out cycles; a hand-made module may break it.
    if (l.inlinedAt != kNoId && l.inlinedAt >= loc) break;
    loc = l.inlinedAt;
  }
  return out;
}

uint32_t SourceMap::line(const Instruction& i, bool outermost) const {
  if (i.loc == kNoId) return kNoId;
  return outermost ? outerLineOf_[i.loc] : lineOf_[i.loc];
}

}  // namespace sonde::ptx
