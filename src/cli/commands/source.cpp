// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/commands/results.h"
#include "cli/exports/output_file.h"
#include "cli/reports/source_lines.h"

namespace sonde::cli {

namespace fs = std::filesystem;

bool checkSourceSettings(const RunSettings& s, std::string* error) {
  std::error_code ec;
  for (const std::string& folder : s.source.folders) {
    if (fs::is_directory(folder, ec)) continue;
    *error = fmt::format("--source-dir {}: there is no such folder", folder);
    return false;
  }
  if (s.source.output.empty()) return true;
  std::string path;
  if (!expandPattern(s.source.output, static_cast<unsigned>(::getpid()), &path, error)) return false;
  if (!s.exports.force && fs::exists(path, ec)) {
    *error = fmt::format("{} exists already; -f replaces it", path);
    return false;
  }
  const auto folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ec)) {
    *error = fmt::format("{}: there is no folder {}", path, folder.string());
    return false;
  }
  return true;
}

bool printSource(const Trace& trace, const RunSettings& s, Console& console, std::string* error) {
  reports::Options options;
  if (!reportOptions(s.report, &options, error)) return false;
  if (s.report.csv) {
    reports::Table table;
    if (!reports::makeReport("source_lines", trace, options, &table, error)) return false;
    console.result(reports::renderCsv(table));
  }
  reports::SourceProfile profile = reports::profileOf(trace, options);
  if (profile.byCost.empty()) {
    console.warning(trace.instructions.empty() ? "no instruction was counted; only the software GPU counts them"
                                               : "no function matches --kernels");
    return true;
  }
  reports::readTexts(profile, trace, s.source.folders);
  bool noLines = false;
  for (const auto& file : profile.files) noLines = noLines || file.isPtx;
  if (!s.report.csv && !s.report.noReport) {
    reports::SourceTextOptions text;
    text.top = s.source.top;
    text.context = s.source.context;
    text.color = console.resultColor();
    console.result(reports::sourceText(profile, text));
  }
  console.flush();
  if (noLines)
    console.info(
        "some code has no line information and is shown as PTX; -lineinfo (nvcc, sondecc) or "
        "-gline-tables-only (clang) adds it");
  if (s.source.output.empty()) return true;
  std::string path;
  if (!expandPattern(s.source.output, static_cast<unsigned>(::getpid()), &path, error)) return false;
  exports::OutputFile file;
  if (!file.open(path, s.exports.force, error)) return false;
  file.write(
      reports::sourceHtml(profile, fmt::format("{}: source by cost", fmt::join(s.command, " ")), s.source.context));
  if (!file.commit(error)) return false;
  console.info(fmt::format("wrote {}; a browser shows it", path));
  return true;
}

}  // namespace sonde::cli
