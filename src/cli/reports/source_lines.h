// SPDX-License-Identifier: Apache-2.0
// Source lines with what was counted for their instructions, and their texts.
#ifndef SONDE_CLI_REPORTS_SOURCE_LINES_H_
#define SONDE_CLI_REPORTS_SOURCE_LINES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/reports/reports.h"

namespace sonde::reports {

struct LineCounts {
  uint64_t executed = 0, threads = 0, notPredicatedOff = 0;  // warp and thread instructions
  uint64_t branches = 0, diverged = 0, branchThreads = 0;
  InstructionCounts::Memory global, shared;
  std::set<std::string> functions;

  void add(const InstructionCounts& i);
  void add(const LineCounts& other);
  // What the line keeps busy: a slot for each warp instruction and for each
  // memory transaction.
  uint64_t cost() const { return executed + global.transactions + shared.transactions; }
  // Of 100: threads that do something in the slots of the warps. NaN: nothing ran.
  double threadEfficiency() const;
  double divergence() const;                                     // of 100; NaN: no branches
  static double efficiency(const InstructionCounts::Memory& m);  // of 100; NaN: no transactions
};

struct SourceFile {
  std::string name;       // as compiled
  std::string directory;  // of the process, for relative names
  std::map<uint32_t, LineCounts> lines;
  // What compilers ascribe to no line, by function. It stands in the file that most of the function's cost is in.
  std::map<std::string, LineCounts> noLine;
  LineCounts total;
  std::vector<std::string> text;  // line i at i - 1; empty: not found
  bool isPtx = false;
};

struct SourceProfile {
  std::vector<SourceFile> files;  // the most expensive first
  LineCounts total;
  struct Line {
    const SourceFile* file;
    uint32_t line;  // 0: of no line
    const LineCounts* counts;
    std::string function;  // where line is 0
    // "matmul.cu:23", "(no line)".
    std::string label() const;
  };
  std::vector<Line> byCost;  // the most expensive first
};

// Instructions of functions that `options.kernels` selects, by file and line.
SourceProfile profileOf(const Trace& trace, const Options& options);
// Reads the files: where they were compiled, else in these folders by the longest matching end of the path.
void readTexts(SourceProfile& profile, const Trace& trace, const std::vector<std::string>& folders);

// A line whose cost is above what it could be, and why.
struct Remark {
  const SourceProfile::Line* line;
  double savings;  // of 100: share of all cost
  std::string text;
};
// Those worth a percent of all cost or more, the greatest first.
std::vector<Remark> remarksOn(const SourceProfile& profile, size_t most);

// For a terminal: the most expensive lines, then each file with its lines.
struct SourceTextOptions {
  size_t top = 20;
  unsigned context = 2;  // lines around those that ran
  bool color = false;
};
std::string sourceText(const SourceProfile& profile, const SourceTextOptions& options);
// One HTML document that needs no other file.
std::string sourceHtml(const SourceProfile& profile, const std::string& title, unsigned context);

}  // namespace sonde::reports

#endif  // SONDE_CLI_REPORTS_SOURCE_LINES_H_
