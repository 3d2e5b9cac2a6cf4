// SPDX-License-Identifier: Apache-2.0
#include "cli/exports/exports.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/exports/output_file.h"

namespace sonde::exports {
namespace {

constexpr std::array kFormats = {
    FormatInfo{Format::Perfetto, "perfetto", ".pftrace", "open it at https://ui.perfetto.dev"},
    FormatInfo{Format::Sqlite, "sqlite", ".sqlite", "sqlite3 FILE 'SELECT * FROM kernel LIMIT 10'"},
    FormatInfo{Format::Chrome, "chrome", ".json", "open it in chrome://tracing, speedscope or Perfetto"},
    FormatInfo{Format::Csv, "csv", ".csv", ""},
    FormatInfo{Format::Json, "json", ".json", ""},
};

}  // namespace

std::span<const FormatInfo> formats() { return kFormats; }

const FormatInfo* findFormat(std::string_view name) {
  for (const FormatInfo& f : kFormats)
    if (f.name == name) return &f;
  return nullptr;
}

bool exportTrace(Format format, const Trace& trace, const std::string& path, const Options& options,
                 std::string* error) {
  OutputFile file;
  if (!file.open(path, options.replace, error)) return false;
  const Sink sink = [&](std::string_view data) { file.write(data); };
  switch (format) {
    case Format::Perfetto: writePerfetto(trace, options, sink); break;
    case Format::Chrome: writeChrome(trace, options, sink); break;
    case Format::Csv: writeCsv(trace, options, sink); break;
    case Format::Json: writeJson(trace, options, sink); break;
    case Format::Sqlite:
      if (!writeSqlite(trace, options, file.temporaryPath(), error)) return false;
      break;
  }
  return file.commit(error);
}

std::string counterText(const Trace& trace, const CounterValue& v) {
  const auto info = trace.counterInfos.find({v.kind, v.name});
  if (v.kind == CounterKind::Event || (info != trace.counterInfos.end() && info->second.valueKind == 1))
    return fmt::format("{}", v.count);
  // JSON has no infinity and no NaN.
  return std::isfinite(v.number) ? fmt::format("{}", v.number) : "null";
}

std::string jsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool validUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t more = c < 0x80 ? 0 : (c >> 5) == 6 ? 1 : (c >> 4) == 14 ? 2 : (c >> 3) == 30 ? 3 : 4;
    if (more == 4 || i + more >= text.size()) return false;
    for (size_t k = 1; k <= more; k++)
      if ((text[i + k] & 0xc0) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

}  // namespace sonde::exports
