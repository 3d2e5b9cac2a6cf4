// SPDX-License-Identifier: Apache-2.0
// A report's result: rows of typed cells, written as aligned text for people
// or as CSV for programs.
#ifndef SONDE_CLI_REPORTS_TABLE_H_
#define SONDE_CLI_REPORTS_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sonde::reports {

enum class CellKind {
  Text,     // left-aligned
  Label,    // text that is right-aligned, such as a memory kind
  Integer,  // a count: thousands separated in text
  Id,       // a number that is a name: no separators
  Percent,
  Time,        // a duration in ns; each cell has its own unit
  Instant,     // ns since the start of the trace; one unit for the column, exact to the ns
  Bytes,       // B; MB in CSV
  Throughput,  // B/s; MB/s in CSV
};

struct Column {
  std::string header;
  CellKind kind = CellKind::Text;
};

// A number whose unit is its own and not its column's. In CSV the plain number:
// percent of 100, bytes a second.
enum class QuantityKind : uint8_t { Count, Number, Percent, Throughput, Level };
struct Quantity {
  double value = 0;
  QuantityKind kind = QuantityKind::Number;
  bool operator==(const Quantity&) const = default;
};

// monostate: empty.
using Cell = std::variant<std::monostate, std::string, uint64_t, double, Quantity>;

struct Table {
  std::string name;   // "cuda_gpu_kern_sum"
  std::string title;  // "CUDA GPU Kernel Summary"
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::string emptyReason;  // said instead of the table when it has no rows
  // As text, rows with the same first columns stand together under one line that names them.
  size_t groupColumns = 0;
  bool prose = false;  // as text: the last column alone, a paragraph for each row
};

enum class TimeUnit { Auto, Ns, Us, Ms, S };

std::optional<TimeUnit> parseTimeUnit(std::string_view text);

struct TextStyle {
  TimeUnit unit = TimeUnit::Auto;
  bool color = false;
  unsigned width = 0;  // of the terminal; 0: never shorten the last column
};

std::string formatTime(double ns, TimeUnit unit);
std::string formatBytes(double bytes);
std::string formatCount(uint64_t n);

// The table with its headline; ends in a blank line.
std::string renderText(const Table& table, const TextStyle& style);
// Header line and rows (RFC 4180, "\n"). Times are always ns.
std::string renderCsv(const Table& table);
std::string csvField(std::string_view text);

}  // namespace sonde::reports

#endif  // SONDE_CLI_REPORTS_TABLE_H_
