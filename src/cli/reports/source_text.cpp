// SPDX-License-Identifier: Apache-2.0
// The annotated source for a terminal.
#include <fmt/format.h>

#include <cmath>

#include "cli/reports/source_lines.h"

namespace sonde::reports {
namespace {

constexpr const char* kHeader =
    "    Cost     Executed  Threads  Diverged         Global (ideal)         Shared (ideal)    Line  Source\n";

std::string percentOr(double value, const char* otherwise) {
  return std::isnan(value) ? otherwise : fmt::format("{:.1f}%", value);
}

std::string memory(const InstructionCounts::Memory& m) {
  return m.transactions == 0 ? "" : fmt::format("{} ({})", formatCount(m.transactions), formatCount(m.ideal));
}

double share(const LineCounts& c, uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(c.cost()) / static_cast<double>(all);
}

std::string numbers(const LineCounts* c, uint64_t all) {
  if (c == nullptr) return std::string(84, ' ');
  return fmt::format("{:>7.1f}% {:>12} {:>8} {:>9} {:>22} {:>22}", share(*c, all), formatCount(c->executed),
                     percentOr(c->threadEfficiency(), ""), percentOr(c->divergence(), ""), memory(c->global),
                     memory(c->shared));
}

std::string row(const LineCounts* c, uint64_t all, const std::string& label, const std::string& text, bool color) {
  const char* on = !color || c == nullptr ? ""
                   : share(*c, all) >= 10 ? "\033[1;31m"
                   : share(*c, all) >= 2  ? "\033[33m"
                                          : "";
  return fmt::format("{}{} {:>7}  {}{}\n", on, numbers(c, all), label, text, *on != 0 ? "\033[0m" : "");
}

std::string textOf(const SourceFile& file, uint32_t line) {
  return line >= 1 && line <= file.text.size() ? file.text[line - 1] : std::string();
}

std::string trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(" \t");
  return from == std::string::npos ? std::string() : text.substr(from);
}

constexpr const char* kLegend =
    "   Cost: share of all warp instructions and memory transactions. Executed: warp instructions. Threads: those of "
    "the\n"
    "   warps that do something. Diverged: branches at which a warp's threads part. Global: transactions of 32 bytes.\n"
    "   Shared: passes over the banks. Ideal: the fewest that would do.\n";

std::string ofNoLine(const std::string& function) { return "(no line) in " + function; }

void annotate(std::string& out, const SourceFile& file, uint64_t all, const SourceTextOptions& given) {
  SourceTextOptions options = given;
  if (share(file.total, all) < 1) options.context = 0;  // headers of which a line or two were inlined
  out += fmt::format("** {} ({:.1f}% of the cost)\n", file.name, share(file.total, all));
  if (file.text.empty()) out += "   The file was not found; --source-dir names folders to look in.\n";
  out += kHeader;
  for (const auto& [function, counts] : file.noLine) out += row(&counts, all, "-", ofNoLine(function), options.color);
  uint32_t printed = 0;  // last line that was
  for (auto it = file.lines.begin(); it != file.lines.end(); ++it) {
    const uint32_t line = it->first;
    if (!file.text.empty()) {
      const uint32_t from = line > options.context ? line - options.context : 1;
      if (printed != 0 && from > printed + 1) out += fmt::format("{} {:>7}\n", numbers(nullptr, all), "...");
      for (uint32_t l = std::max(from, printed + 1); l < line; ++l)
        out += row(nullptr, all, std::to_string(l), textOf(file, l), false);
    }
    out += row(&it->second, all, std::to_string(line), textOf(file, line), options.color);
    printed = line;
    if (file.text.empty()) continue;
    const auto next = std::next(it);
    const auto last = static_cast<uint32_t>(file.text.size());
    uint32_t until = std::min(last, line + options.context);
    if (next != file.lines.end()) until = std::min(until, next->first - 1);
    for (uint32_t l = line + 1; l <= until; ++l) out += row(nullptr, all, std::to_string(l), textOf(file, l), false);
    printed = std::max(printed, until);
  }
  out += '\n';
}

}  // namespace

std::string sourceText(const SourceProfile& profile, const SourceTextOptions& options) {
  const uint64_t all = profile.total.cost();
  std::string out = "\n** Source Lines by Cost (source_lines)\n";
  out += kLegend;
  out += kHeader;
  size_t n = 0;
  for (const auto& l : profile.byCost) {
    if (n++ == options.top) break;
    out += row(l.counts, all, "",
               l.line == 0 ? ofNoLine(l.function) : fmt::format("{}  {}", l.label(), trimmed(textOf(*l.file, l.line))),
               options.color);
  }
  if (profile.byCost.size() > options.top)
    out += fmt::format("   ... and {} more lines (--top)\n", profile.byCost.size() - options.top);
  out += '\n';
  bool noLine = false;
  for (const SourceFile& file : profile.files) noLine = noLine || !file.noLine.empty();
  if (noLine)
    out +=
        "   (no line): code that the compiler made for several lines or for none, such as addresses that it works out "
        "before a loop.\n\n";
  out += "** Cost Above the Ideal\n";
  const auto remarks = remarksOn(profile, 10);
  if (remarks.empty()) out += "   Nothing that is worth a percent of the cost.\n";
  for (const Remark& r : remarks)
    out += fmt::format("{:>7.1f}%  {}  {}\n", r.savings,
                       r.line->line == 0 ? ofNoLine(r.line->function) : r.line->label(), r.text);
  out += '\n';
  for (const SourceFile& file : profile.files) annotate(out, file, all, options);
  return out;
}

}  // namespace sonde::reports
