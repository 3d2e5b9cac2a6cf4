// SPDX-License-Identifier: Apache-2.0
#include "ptx/mnemonic.h"

#include "ptx/names.h"

namespace sonde::ptx {

Mnemonic decodeMnemonic(std::string_view text) {
  Mnemonic m;
  size_t dot = text.find('.');
  const std::string_view opcode = text.substr(0, dot);
  auto quoted = [](std::string_view s) { return "'" + std::string(s.substr(0, 60)) + "'"; };
  m.op = opcodeFromName(opcode);
  if (m.op == Opcode::invalid) {
    m.error = "unknown instruction " + quoted(opcode);
    if (const auto near = nearestOpcode(opcode); !near.empty()) m.error += "; did you mean " + quoted(near) + "?";
    return m;
  }
  while (dot != std::string_view::npos) {
    const size_t start = dot + 1;
    dot = text.find('.', start);
    const std::string_view word = text.substr(start, dot == std::string_view::npos ? dot : dot - start);
    if (const auto type = typeFromName(word); type != ScalarType::none) {
      m.types.push_back(type);
    } else if (const auto space = spaceFromName(word); space != StateSpace::none) {
      if (m.space == StateSpace::none)
        m.space = space;
      else
        m.space2 = space;
    } else if (word == "v2" || word == "v4" || word == "v8") {
      m.vectorWidth = static_cast<uint8_t>(word[1] - '0');
    } else if (const Mod mod = modFromName(word); mod != Mod::invalid && mod != Mod::mnk) {
      shapeFromName(word, m.shape);
      m.mods.push_back(mod);
    } else if (shapeFromName(word, m.shape)) {
      m.mods.push_back(Mod::mnk);
    } else {
      m.error = "unknown modifier '." + std::string(word.substr(0, 60)) + "' of " + quoted(opcode);
      if (const auto near = nearestMod(word); !near.empty()) m.error += "; did you mean '." + std::string(near) + "'?";
      m.errorOffset = start - 1;
      return m;
    }
  }
  return m;
}

void apply(const Mnemonic& m, Instruction& i) {
  i.op = m.op;
  i.mods = m.mods;
  i.types = m.types;
  i.space = m.space;
  i.space2 = m.space2;
  i.vectorWidth = m.vectorWidth;
  i.shape = m.shape;
}

}  // namespace sonde::ptx
