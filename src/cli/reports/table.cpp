// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sonde::reports {
namespace {

double number(const Cell& cell) {
  if (const auto* n = std::get_if<uint64_t>(&cell)) return static_cast<double>(*n);
  if (const auto* d = std::get_if<double>(&cell)) return *d;
  return 0;
}

// What a file says may be any number.
uint64_t whole(double value) {
  if (!(value > 0)) return 0;
  return value < 0x1p64 ? static_cast<uint64_t>(value) : UINT64_MAX;
}

uint64_t count(const Cell& cell) {
  const auto* n = std::get_if<uint64_t>(&cell);
  return n != nullptr ? *n : whole(number(cell));
}

std::string separated(std::string digits) {
  size_t end = digits.find('.');
  if (end == std::string::npos) end = digits.size();
  for (size_t at = end; at > 3 && digits[at - 4] != '-'; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

// Instants are read one under the other, so they share a unit: that of the largest.
TimeUnit columnUnit(const Table& t, size_t column, TimeUnit unit) {
  if (t.columns[column].kind != CellKind::Instant || unit != TimeUnit::Auto) return unit;
  double largest = 0;
  for (const auto& row : t.rows) largest = std::max(largest, number(row[column]));
  return largest < 1e6 ? TimeUnit::Us : largest < 1e9 ? TimeUnit::Ms : TimeUnit::S;
}

std::string quantityText(const Quantity& q) {
  switch (q.kind) {
    case QuantityKind::Count: return formatCount(whole(q.value));
    case QuantityKind::Percent: return fmt::format("{:.2f}%", q.value);
    case QuantityKind::Throughput: return formatBytes(q.value) + "/s";
    case QuantityKind::Level: {  // the steps of CUpti_MetricValueUtilizationLevel
      const uint64_t level = whole(q.value);
      const char* name = level == 0 ? "Idle" : level < 5 ? "Low" : level < 8 ? "Mid" : level < 10 ? "High" : "Max";
      return fmt::format("{} ({})", name, level);
    }
    case QuantityKind::Number: break;
  }
  return separated(fmt::format("{:.6f}", q.value));
}

std::string quantityCsv(const Quantity& q) {
  const bool whole = q.kind == QuantityKind::Count || q.kind == QuantityKind::Level;
  return whole ? fmt::format("{:.0f}", q.value) : fmt::format("{:.6f}", q.value);
}

std::string cellText(const Cell& cell, CellKind kind, TimeUnit unit) {
  if (const auto* q = std::get_if<Quantity>(&cell)) return quantityText(*q);
  if (std::holds_alternative<std::monostate>(cell)) return {};
  if (const auto* s = std::get_if<std::string>(&cell)) return *s;
  switch (kind) {
    case CellKind::Percent: return fmt::format("{:.1f}", number(cell));
    case CellKind::Time:
    case CellKind::Instant: return formatTime(number(cell), unit);
    case CellKind::Bytes: return formatBytes(number(cell));
    case CellKind::Throughput: return formatBytes(number(cell)) + "/s";
    case CellKind::Id: return fmt::format("{}", count(cell));
    default: return formatCount(count(cell));
  }
}

std::string cellCsv(const Cell& cell, CellKind kind) {
  if (const auto* q = std::get_if<Quantity>(&cell)) return quantityCsv(*q);
  if (std::holds_alternative<std::monostate>(cell)) return {};
  if (const auto* s = std::get_if<std::string>(&cell)) return csvField(*s);
  switch (kind) {
    case CellKind::Percent: return fmt::format("{:.1f}", number(cell));
    case CellKind::Bytes: return fmt::format("{:.6f}", number(cell) / 1e6);  // to the byte
    case CellKind::Throughput: return fmt::format("{:.3f}", number(cell) / 1e6);
    default:
      if (const auto* d = std::get_if<double>(&cell)) return fmt::format("{:.1f}", *d);
      return fmt::format("{}", std::get<uint64_t>(cell));
  }
}

bool leftAligned(CellKind kind) { return kind == CellKind::Text; }

// Columns that a terminal shows for UTF-8 text, near enough: code points.
size_t shownWidth(std::string_view s) {
  return static_cast<size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Kernel names are long at their end; file-like names are rare here.
std::string shortened(const std::string& s, size_t width) {
  if (shownWidth(s) <= width) return s;
  size_t at = 0, seen = 0;
  while (at < s.size() && seen < width - 3) {
    at++;
    while (at < s.size() && (s[at] & 0xc0) == 0x80) at++;
    seen++;
  }
  return s.substr(0, at) + "...";
}

std::string headerText(const Column& c, TimeUnit unit) {
  if (c.kind == CellKind::Percent) return c.header + " (%)";
  if ((c.kind != CellKind::Time && c.kind != CellKind::Instant) || unit == TimeUnit::Auto) return c.header;
  constexpr const char* kNames[] = {"", " (ns)", " (us)", " (ms)", " (s)"};
  return c.header + kNames[static_cast<int>(unit)];
}

std::string headerCsv(const Column& c) {
  switch (c.kind) {
    case CellKind::Percent: return c.header + " (%)";
    case CellKind::Time:
    case CellKind::Instant: return c.header + " (ns)";
    case CellKind::Bytes: return c.header + " (MB)";
    case CellKind::Throughput: return c.header + " (MB/s)";
    default: return c.header;
  }
}

}  // namespace

std::optional<TimeUnit> parseTimeUnit(std::string_view text) {
  if (text == "auto") return TimeUnit::Auto;
  if (text == "ns") return TimeUnit::Ns;
  if (text == "us") return TimeUnit::Us;
  if (text == "ms") return TimeUnit::Ms;
  if (text == "s") return TimeUnit::S;
  return std::nullopt;
}

std::string formatTime(double ns, TimeUnit unit) {
  const bool whole = ns == std::floor(ns);
  switch (unit) {
    case TimeUnit::Ns: return separated(whole ? fmt::format("{:.0f}", ns) : fmt::format("{:.1f}", ns));
    case TimeUnit::Us: return separated(fmt::format("{:.3f}", ns / 1e3));
    case TimeUnit::Ms: return separated(fmt::format("{:.6f}", ns / 1e6));
    case TimeUnit::S: return fmt::format("{:.9f}", ns / 1e9);
    case TimeUnit::Auto: break;
  }
  // The limits are those at which the rounded figure would read "1000.000".
  if (ns < 999.95) return (whole ? fmt::format("{:.0f} ns", ns) : fmt::format("{:.1f} ns", ns));
  if (ns < 999'999.5) return fmt::format("{:.3f} us", ns / 1e3);
  if (ns < 999'999'500) return fmt::format("{:.3f} ms", ns / 1e6);
  return separated(fmt::format("{:.3f}", ns / 1e9)) + " s";
}

std::string formatBytes(double bytes) {
  if (bytes < 999.5)
    return bytes == std::floor(bytes) ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} B", bytes);
  if (bytes < 999'999.5) return fmt::format("{:.3f} kB", bytes / 1e3);
  if (bytes < 999'999'500) return fmt::format("{:.3f} MB", bytes / 1e6);
  if (bytes < 999'999'500'000) return fmt::format("{:.3f} GB", bytes / 1e9);
  return separated(fmt::format("{:.3f}", bytes / 1e12)) + " TB";
}

std::string formatCount(uint64_t n) { return separated(fmt::format("{}", n)); }

std::string csvField(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

namespace {

// Lines of at most `width` columns, broken at spaces.
std::string paragraph(const std::string& text, size_t width) {
  std::string out = " - ";
  size_t column = 3;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > 3 && column + 1 + shownWidth(word) > width) {
      out += "\n   ";
      column = 3;
    } else if (column > 3) {
      out += ' ';
      column++;
    }
    out += word;
    column += shownWidth(word);
    at = end + 1;
  }
  return out + "\n";
}

}  // namespace

std::string renderText(const Table& t, const TextStyle& style) {
  if (t.prose) {
    const std::string headline = fmt::format("** {} ({})", t.title, t.name);
    std::string out = (style.color ? "\x1b[1m" + headline + "\x1b[0m" : headline) + "\n\n";
    for (const auto& row : t.rows) {
      const auto* text = std::get_if<std::string>(&row.back());
      out += paragraph(text != nullptr ? *text : std::string(), style.width != 0 ? std::max(style.width, 40u) : 100);
    }
    return out + "\n";
  }
  const size_t columns = t.columns.size();
  std::vector<std::vector<std::string>> cells;
  std::vector<size_t> widths;
  std::vector<TimeUnit> units;
  for (size_t i = 0; i < columns; i++) {
    units.push_back(columnUnit(t, i, style.unit));
    widths.push_back(headerText(t.columns[i], units[i]).size());
  }
  for (const auto& row : t.rows) {
    auto& texts = cells.emplace_back();
    for (size_t i = 0; i < columns; i++) {
      texts.push_back(cellText(row[i], t.columns[i].kind, units[i]));
      widths[i] = std::max(widths[i], shownWidth(texts.back()));
    }
  }
  const size_t first = t.groupColumns;
  size_t line = 1;
  for (size_t i = first; i < columns; i++) line += widths[i] + (i + 1 < columns ? 2 : 0);
  if (style.width != 0 && line > style.width) {
    const size_t others = line - widths.back();
    widths.back() = std::max<size_t>(style.width > others ? style.width - others : 0, 20);
    for (auto& row : cells) row.back() = shortened(row.back(), widths.back());
  }

  std::string out;
  const auto emphasize = [&](const std::string& s) { return style.color ? "\x1b[1m" + s + "\x1b[0m" : s; };
  const auto writeLine = [&](const std::vector<std::string>& texts) {
    std::string text = " ";
    for (size_t i = first; i < columns; i++) {
      const std::string fill(widths[i] - std::min(widths[i], shownWidth(texts[i])), ' ');
      text += leftAligned(t.columns[i].kind) ? texts[i] + fill : fill + texts[i];
      if (i + 1 < columns) text += "  ";
    }
    text.resize(text.find_last_not_of(' ') + 1);
    return text;
  };
  out += emphasize(fmt::format("** {} ({})", t.title, t.name)) + "\n\n";
  std::vector<std::string> header, rule;
  for (size_t i = 0; i < columns; i++) {
    header.push_back(headerText(t.columns[i], units[i]));
    rule.push_back(std::string(widths[i], '-'));
  }
  out += emphasize(writeLine(header)) + "\n" + writeLine(rule) + "\n";
  std::string group;
  for (const auto& row : cells) {
    std::string own;
    for (size_t i = 0; i < first; i++) own += fmt::format(" {}{}: {}", i != 0 ? " " : "", header[i], row[i]);
    if (own != group) {
      out += (group.empty() ? "" : "\n") + emphasize(own) + "\n";
      group = own;
    }
    out += writeLine(row) + "\n";
  }
  return out + "\n";
}

std::string renderCsv(const Table& t) {
  std::string out;
  for (size_t i = 0; i < t.columns.size(); i++) out += (i != 0 ? "," : "") + csvField(headerCsv(t.columns[i]));
  out += '\n';
  for (const auto& row : t.rows) {
    for (size_t i = 0; i < row.size(); i++) {
      if (i != 0) out += ',';
      out += cellCsv(row[i], t.columns[i].kind);
    }
    out += '\n';
  }
  return out;
}

}  // namespace sonde::reports
