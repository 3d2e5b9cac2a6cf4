// SPDX-License-Identifier: Apache-2.0
// The annotated source as one HTML document.
#include <fmt/format.h>

#include <cmath>

#include "cli/reports/source_lines.h"

namespace sonde::reports {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--line:#8884;--dim:#888}
body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem}
h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}
th,td{padding:1px 8px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}
th{position:sticky;top:0;background:Canvas;cursor:pointer}
td.s{text-align:left;font:13px/1.35 ui-monospace,monospace;white-space:pre;width:99%}
th.s{text-align:left}
td.n a{color:inherit;text-decoration:none}
tr.gap td{color:var(--dim);border:0}
tr:target td{outline:2px solid #58f}
p.note{color:var(--dim)}
)";

// Sorts a table by the column whose head is clicked: greatest first.
constexpr const char* kScript = R"(
for(const t of document.querySelectorAll('table.sort'))for(const h of t.tHead.rows[0].cells)h.onclick=()=>{
const i=h.cellIndex,v=r=>{const c=r.cells[i];return c.dataset.v!==undefined?+c.dataset.v:c.textContent};
[...t.tBodies[0].rows].sort((a,b)=>{const x=v(a),y=v(b);return typeof x=='number'?y-x:x<y?-1:x>y?1:0})
.forEach(r=>t.tBodies[0].append(r))}
)";

constexpr const char* kHead =
    "<th title='warp instructions and memory transactions of the line, of all'>Cost</th>"
    "<th title='instructions executed by warps'>Executed</th>"
    "<th title='threads that did something, of 32 in each of these'>Threads</th>"
    "<th title='branches after which threads of a warp go different ways'>Diverged</th>"
    "<th title='transactions of 32 bytes with global memory'>Global</th><th title='the fewest that would do'>Ideal</th>"
    "<th title='passes over the banks of shared memory'>Shared</th><th title='without bank conflicts'>Ideal</th>";

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  return out;
}

std::string count(uint64_t n) {
  return fmt::format("<td data-v='{}'>{}</td>", n, n == 0 ? std::string() : formatCount(n));
}

std::string percent(double v) {
  return std::isnan(v) ? std::string("<td data-v='-1'></td>") : fmt::format("<td data-v='{0:.4f}'>{0:.1f}%</td>", v);
}

std::string cells(const LineCounts& c, uint64_t all) {
  const double share = all == 0 ? 0 : 100.0 * static_cast<double>(c.cost()) / static_cast<double>(all);
  // The background says how hot the line is.
  std::string out = fmt::format("<td data-v='{0:.6f}' style='background:rgba(230,60,30,{1:.3f})'>{0:.1f}%</td>", share,
                                std::min(0.8, share / 40));
  out += count(c.executed) + percent(c.threadEfficiency()) + percent(c.divergence());
  out += count(c.global.transactions) + count(c.global.ideal);
  out += count(c.shared.transactions) + count(c.shared.ideal);
  return out;
}

std::string anchor(const SourceProfile& p, const SourceFile& file, uint32_t line) {
  return fmt::format("f{}l{}", &file - p.files.data(), line);
}

std::string link(const SourceProfile& p, const SourceProfile::Line& l) {
  return fmt::format("<td class='n' style='text-align:left'><a href='#{}'>{}</a></td>", anchor(p, *l.file, l.line),
                     escaped(l.label()));
}

std::string ofNoLine(const std::string& function) { return "in " + function; }

void listing(std::string& out, const SourceProfile& p, const SourceFile& file, unsigned context) {
  const uint64_t all = p.total.cost();
  out += fmt::format("<h2>{}</h2>\n", escaped(file.name));
  if (file.text.empty()) out += "<p class='note'>The text of this file was not found.</p>\n";
  out += fmt::format("<table><thead><tr>{}<th>Line</th><th class='s'>Source</th></tr></thead><tbody>\n", kHead);
  auto plain = [&](uint32_t line) {
    out += fmt::format("<tr><td colspan='8'></td><td>{}</td><td class='s'>{}</td></tr>\n", line,
                       escaped(file.text[line - 1]));
  };
  for (const auto& [function, counts] : file.noLine)
    out += fmt::format("<tr id='{}'>{}<td>&ndash;</td><td class='s'>(no line) {}</td></tr>\n", anchor(p, file, 0),
                       cells(counts, all), escaped(ofNoLine(function)));
  const auto last = static_cast<uint32_t>(file.text.size());
  uint32_t next = 1;  // first line that is not there yet
  for (const auto& [line, counts] : file.lines) {
    if (last != 0) {
      const uint32_t from = std::max(next, line > context ? line - context : 1);
      if (from > next && next != 1) out += "<tr class='gap'><td colspan='8'></td><td>&#8943;</td><td></td></tr>\n";
      for (uint32_t l = from; l < line && l <= last; ++l) plain(l);
    }
    const bool known = line >= 1 && line <= last;
    out += fmt::format("<tr id='{0}'>{1}<td>{2}</td><td class='s' title='{3}'>{4}</td></tr>\n", anchor(p, file, line),
                       cells(counts, all), line, escaped(fmt::format("{}", fmt::join(counts.functions, "\n"))),
                       known ? escaped(file.text[line - 1]) : std::string());
    next = line + 1;
    const auto after = file.lines.upper_bound(line);
    uint32_t until = std::min(last, line + context);
    if (after != file.lines.end()) until = std::min(until, after->first - 1);
    for (; next <= until; ++next) plain(next);
  }
  out += "</tbody></table>\n";
}

}  // namespace

std::string sourceHtml(const SourceProfile& p, const std::string& title, unsigned context) {
  const uint64_t all = p.total.cost();
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>{0}</title><style>{1}</style></head>\n"
      "<body><h1>{0}</h1>\n<p class='note'>Cost: warp instructions executed and transactions with global and shared "
      "memory. A click on a column's head sorts.</p>\n",
      escaped(title), kStyle);
  out += fmt::format(
      "<h2>Lines by cost</h2>\n<table class='sort'><thead><tr>{}<th class='s'>Line</th><th class='s'>Source</th></tr>"
      "</thead><tbody>\n",
      kHead);
  for (const auto& l : p.byCost) {
    const bool known = l.line >= 1 && l.line <= l.file->text.size();
    out += fmt::format("<tr>{}{}<td class='s'>{}</td></tr>\n", cells(*l.counts, all), link(p, l),
                       escaped(l.line == 0 ? ofNoLine(l.function)
                               : known     ? l.file->text[l.line - 1]
                                           : std::string()));
  }
  out += "</tbody></table>\n";
  out += "<p class='note'>(no line): code that the compiler made for several lines or for none.</p>\n";
  out += "<h2>Cost above the ideal</h2>\n";
  const auto remarks = remarksOn(p, 10);
  if (remarks.empty()) out += "<p class='note'>Nothing that is worth a percent of the cost.</p>\n";
  if (!remarks.empty()) out += "<table><tbody>\n";
  for (const Remark& r : remarks)
    out +=
        fmt::format("<tr><td>{:.1f}%</td>{}<td class='s'>{}</td></tr>\n", r.savings, link(p, *r.line), escaped(r.text));
  if (!remarks.empty()) out += "</tbody></table>\n";
  for (const SourceFile& file : p.files) listing(out, p, file, context);
  out += fmt::format("<script>{}</script></body></html>\n", kScript);
  return out;
}

}  // namespace sonde::reports
