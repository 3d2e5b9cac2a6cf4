// SPDX-License-Identifier: Apache-2.0
#include "ptx/names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

namespace sonde::ptx {
namespace {

constexpr std::string_view kOpcodes[] = {"",
#define SONDE_PTX_OPCODE(id, text) text,
                                         SONDE_PTX_OPCODES(SONDE_PTX_OPCODE)
#undef SONDE_PTX_OPCODE
};

constexpr std::string_view kMods[] = {"",
#define SONDE_PTX_MOD(id, text) text,
                                      SONDE_PTX_MODS(SONDE_PTX_MOD)
#undef SONDE_PTX_MOD
};

// In the order of enum ScalarType.
constexpr std::string_view kTypes[] = {
    "",       "b8",     "b16",    "b32",        "b64",     "b128",   "u8",     "u16",    "u32",    "u64",
    "s8",     "s16",    "s32",    "s64",        "f16",     "f16x2",  "bf16",   "bf16x2", "tf32",   "e4m3",
    "e5m2",   "e4m3x2", "e5m2x2", "f32",        "f32x2",   "f64",    "u16x2",  "s16x2",  "s4",     "u4",
    "b1",     "pred",   "texref", "samplerref", "surfref", "e2m1",   "e2m3",   "e3m2",   "ue8m0",  "ue4m3",
    "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2",    "e4m3x4",  "e5m2x4", "e2m1x4", "e2m3x4", "e3m2x4", "b1024"};
static_assert(std::size(kTypes) == static_cast<size_t>(ScalarType::b1024) + 1);

// In the order of enum StateSpace.
constexpr std::string_view kSpaces[] = {
    "",      "reg",    "sreg",        "const",           "global",       "local",
    "param", "shared", "shared::cta", "shared::cluster", "param::entry", "param::func",
    "tex"};
static_assert(std::size(kSpaces) == static_cast<size_t>(StateSpace::tex) + 1);

// In the order of enum SpecialReg.
constexpr std::string_view kSpecials[] = {"%tid",
                                          "%ntid",
                                          "%laneid",
                                          "%warpid",
                                          "%nwarpid",
                                          "%ctaid",
                                          "%nctaid",
                                          "%smid",
                                          "%nsmid",
                                          "%gridid",
                                          "%clusterid",
                                          "%nclusterid",
                                          "%cluster_ctaid",
                                          "%cluster_nctaid",
                                          "%cluster_ctarank",
                                          "%cluster_nctarank",
                                          "%is_explicit_cluster",
                                          "%lanemask_eq",
                                          "%lanemask_le",
                                          "%lanemask_lt",
                                          "%lanemask_ge",
                                          "%lanemask_gt",
                                          "%clock",
                                          "%clock_hi",
                                          "%clock64",
                                          "%pm",
                                          "%pm64",
                                          "%envreg",
                                          "%globaltimer",
                                          "%globaltimer_lo",
                                          "%globaltimer_hi",
                                          "%reserved_smem_offset_begin",
                                          "%reserved_smem_offset_end",
                                          "%reserved_smem_offset_cap",
                                          "%reserved_smem_offset",
                                          "%total_smem_size",
                                          "%aggr_smem_size",
                                          "%dynamic_smem_size",
                                          "%current_graph_exec"};
static_assert(std::size(kSpecials) == static_cast<size_t>(SpecialReg::current_graph_exec) + 1);

template <class E, size_t N>
std::unordered_map<std::string_view, E> invert(const std::string_view (&names)[N]) {
  std::unordered_map<std::string_view, E> map;
  map.reserve(N * 2);
  for (size_t i = 1; i < N; ++i) map.emplace(names[i], static_cast<E>(i));
  return map;
}

template <class E, size_t N>
E find(std::string_view text, const std::string_view (&names)[N]) {
  static const auto map = invert<E>(names);
  const auto it = map.find(text);
  return it == map.end() ? E{} : it->second;
}

unsigned editDistance(std::string_view a, std::string_view b) {
  constexpr size_t kLongest = 40;
  if (a.size() > kLongest || b.size() > kLongest) return kLongest;
  std::array<unsigned, kLongest + 1> row;
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    unsigned diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const unsigned up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = up;
    }
  }
  return row[b.size()];
}

void nearest(std::string_view text, const std::string_view* first, const std::string_view* last, unsigned& best,
             std::string_view& found) {
  for (; first != last; ++first) {
    const unsigned distance = editDistance(text, *first);
    if (distance < best) {
      best = distance;
      found = *first;
    }
  }
}

unsigned nearEnough(std::string_view text) { return text.size() <= 3 ? 2 : text.size() / 3 + 1; }

}  // namespace

std::string_view name(Opcode op) { return op < Opcode::count_ ? kOpcodes[static_cast<size_t>(op)] : ""; }
std::string_view name(Mod mod) { return mod < Mod::count_ ? kMods[static_cast<size_t>(mod)] : ""; }
std::string_view name(ScalarType type) { return kTypes[static_cast<size_t>(type)]; }
std::string_view name(StateSpace space) { return kSpaces[static_cast<size_t>(space)]; }

Opcode opcodeFromName(std::string_view text) { return find<Opcode>(text, kOpcodes); }
Mod modFromName(std::string_view text) { return find<Mod>(text, kMods); }
ScalarType typeFromName(std::string_view text) { return find<ScalarType>(text, kTypes); }
StateSpace spaceFromName(std::string_view text) { return find<StateSpace>(text, kSpaces); }

std::string name(SpecialReg reg, uint32_t index) {
  const std::string_view text = kSpecials[static_cast<size_t>(reg)];
  switch (reg) {
    case SpecialReg::envreg: return std::string(text) + std::to_string(index);
    case SpecialReg::pm: return "%pm" + std::to_string(index);
    case SpecialReg::pm64: return "%pm" + std::to_string(index) + "_64";
    case SpecialReg::reserved_smem_offset: return std::string(text) + "_" + std::to_string(index);
    default: return std::string(text);
  }
}

bool specialFromName(std::string_view text, SpecialReg& reg, uint32_t& index) {
  if (text.size() < 3 || text[0] != '%') return false;
  static const auto map = [] {
    std::unordered_map<std::string_view, SpecialReg> m;
    for (size_t i = 0; i < std::size(kSpecials); ++i) {
      const auto r = static_cast<SpecialReg>(i);
      if (r != SpecialReg::envreg && r != SpecialReg::pm && r != SpecialReg::pm64 &&
          r != SpecialReg::reserved_smem_offset)
        m.emplace(kSpecials[i], r);
    }
    return m;
  }();
  if (const auto it = map.find(text); it != map.end()) {
    reg = it->second;
    index = 0;
    return true;
  }
  auto numbered = [&](std::string_view prefix, std::string_view suffix, uint32_t limit, SpecialReg which) {
    if (!text.starts_with(prefix) || !text.ends_with(suffix) || text.size() <= prefix.size() + suffix.size())
      return false;
    const char* first = text.data() + prefix.size();
    const char* last = text.data() + text.size() - suffix.size();
    uint32_t n = 0;
    const auto result = std::from_chars(first, last, n);
    if (result.ec != std::errc{} || result.ptr != last || n >= limit) return false;
    reg = which;
    index = n;
    return true;
  };
  return numbered("%envreg", "", 32, SpecialReg::envreg) || numbered("%pm", "_64", 8, SpecialReg::pm64) ||
         numbered("%pm", "", 8, SpecialReg::pm) ||
         numbered("%reserved_smem_offset_", "", 2, SpecialReg::reserved_smem_offset);
}

std::string_view nearestOpcode(std::string_view text) {
  unsigned best = nearEnough(text);
  std::string_view found;
  nearest(text, kOpcodes + 1, std::end(kOpcodes), best, found);
  return found;
}

std::string_view nearestMod(std::string_view text) {
  unsigned best = nearEnough(text);
  std::string_view found;
  nearest(text, kMods + 1, std::end(kMods), best, found);
  nearest(text, kTypes + 1, std::end(kTypes), best, found);
  nearest(text, kSpaces + 1, std::end(kSpaces), best, found);
  return found;
}

bool shapeFromName(std::string_view text, Instruction::Shape& shape) {
  const char* p = text.data();
  const char* end = p + text.size();
  Instruction::Shape s;
  auto part = [&](char letter, uint16_t& value) {
    if (p == end || *p != letter) return false;
    const auto result = std::from_chars(p + 1, end, value);
    if (result.ec != std::errc{} || value == 0) return false;
    p = result.ptr;
    return true;
  };
  if (!part('m', s.m) || !part('n', s.n)) return false;
  if (p != end && !part('k', s.k)) return false;
  if (p != end) return false;
  shape = s;
  return true;
}

}  // namespace sonde::ptx
