// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/fidelity.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <tuple>
#include <vector>

namespace sonde::cli {

namespace {

constexpr std::array<const char*, 4> kClasses = {"exact", "within bound", "order-dependent", "unsupported"};

struct Kernel {
  std::array<uint64_t, kClasses.size()> count{};
  // Class, mnemonic -> count, remark.
  std::map<std::pair<size_t, std::string>, std::pair<uint64_t, std::string>> special;
};

}  // namespace

std::string fidelityTables(const std::string& lines) {
  std::map<std::string, Kernel> kernels;
  std::set<std::string> seen;  // several processes, or a kernel compiled at several levels, say the same again
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    if (!seen.insert(line).second) continue;
    std::vector<std::string> fields(1);
    for (const char c : line)
      if (c == '\t')
        fields.emplace_back();
      else
        fields.back() += c;
    if (fields.size() != 5) continue;
    size_t which = 0;
    while (which < kClasses.size() && fields[1] != kClasses[which]) ++which;
    if (which == kClasses.size()) continue;
    Kernel& k = kernels[fields[0]];
    const uint64_t n = std::strtoull(fields[2].c_str(), nullptr, 10);
    k.count[which] += n;
    if (which != 0) k.special[{which, fields[3]}] = {n, fields[4]};
  }
  if (kernels.empty()) return "Fidelity: no kernel was prepared.\n";
  std::string out = "Fidelity of the kernels' PTX instructions (docs/INSTRUCTIONS.md says what the words mean)\n";
  for (const auto& [name, k] : kernels) {
    out += fmt::format("\n  {}\n    {} exact, {} within bound, {} order-dependent, {} unsupported\n", name, k.count[0],
                       k.count[1], k.count[2], k.count[3]);
    for (const auto& [what, rest] : k.special)
      out += fmt::format("    {:>6}  {:<16} {}{}{}\n", rest.first, kClasses[what.first], what.second,
                         rest.second.empty() ? "" : "  ", rest.second);
  }
  return out;
}

}  // namespace sonde::cli
