// SPDX-License-Identifier: Apache-2.0
// Traces for other programs. In every format events are ordered by start
// time, then by process and record number.
#ifndef SONDE_CLI_EXPORTS_EXPORTS_H_
#define SONDE_CLI_EXPORTS_EXPORTS_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/reports/names.h"
#include "cli/spool/trace.h"

namespace sonde::exports {

enum class Format { Perfetto, Sqlite, Chrome, Csv, Json };

struct FormatInfo {
  Format format;
  std::string_view name;       // as given to --export
  std::string_view extension;  // with the dot
  std::string_view openWith;   // the next thing to do with the file
};

std::span<const FormatInfo> formats();
const FormatInfo* findFormat(std::string_view name);

struct Options {
  reports::NameStyle names = reports::NameStyle::Full;
  bool replace = false;
};

bool exportTrace(Format format, const Trace& trace, const std::string& path, const Options& options,
                 std::string* error);

// Receives the pieces of a file in order.
using Sink = std::function<void(std::string_view)>;
void writePerfetto(const Trace& trace, const Options& options, const Sink& sink);
void writeChrome(const Trace& trace, const Options& options, const Sink& sink);
void writeCsv(const Trace& trace, const Options& options, const Sink& sink);
void writeJson(const Trace& trace, const Options& options, const Sink& sink);
// SQLite writes its file itself.
bool writeSqlite(const Trace& trace, const Options& options, const std::string& path, std::string* error);

// A counter's value as JSON and CSV write it: "null" where there is no number.
std::string counterText(const Trace& trace, const CounterValue& value);

// With its quotation marks; bytes that are no UTF-8 become U+FFFD.
std::string jsonString(std::string_view text);
bool validUtf8(std::string_view text);

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_EXPORTS_H_
