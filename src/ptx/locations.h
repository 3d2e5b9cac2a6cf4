// SPDX-License-Identifier: Apache-2.0
//
// From a PTX instruction to the source: file, line, function, and the calls
// that were inlined around it. Needs .loc directives (nvcc -lineinfo, clang
// -gline-tables-only).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

struct SourceFrame {
  std::string_view file;  // path as compiled; "" when its .file is missing
  uint32_t line = 0, column = 0;
  std::string_view function;  // as the compiler names it (mangled): of the inlined function, or of the outermost one
};

// Text is owned by the module, which must outlive this and not change.
class SourceMap {
 public:
  explicit SourceMap(const Module& module);

  // Where an instruction comes from, innermost first; the last frame is in the function itself. Empty when the
  // instruction has no .loc.
  std::vector<SourceFrame> frames(const Function& function, const Instruction& instruction) const;

  // One line of one file, for grouping instructions; equal lines have equal numbers. kNoId: no .loc. With `outermost`
  // the line in the function itself, at which the inlined code was called.
  uint32_t line(const Instruction& instruction, bool outermost = false) const;
  struct Line {
    uint32_t file = 0;  // SourceFile::index
    uint32_t line = 0;
  };
  const std::vector<Line>& lines() const { return lines_; }
  std::string_view path(uint32_t fileIndex) const;

 private:
  const Module& module_;
  std::vector<Line> lines_;
  std::vector<uint32_t> lineOf_, outerLineOf_;  // of each Module::locations
};

}  // namespace sonde::ptx
