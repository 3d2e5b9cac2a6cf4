// SPDX-License-Identifier: Apache-2.0
//
// PTX text to Module. Accepts PTX ISA 1.0 to 9.0 as compilers write it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

struct ParseOptions {
  // Parsing goes on after an error so that several can be shown; it ends after this many.
  unsigned maxErrors = 20;
};

struct ParseResult {
  Module module;
  std::vector<Diagnostic> diagnostics;  // in the order of the text

  // No errors (there may be warnings).
  bool ok() const;
};

// Never throws on any input; a NUL in the text ends it. Names are resolved, so that an undefined register, variable,
// function or label is an error here; whether operands suit their instruction is check()'s matter.
ParseResult parse(std::string_view text, const ParseOptions& options = {});

// "ptx:12:7: error: …", one line.
std::string format(const Diagnostic& diagnostic, std::string_view fileName = "ptx");

}  // namespace sonde::ptx
