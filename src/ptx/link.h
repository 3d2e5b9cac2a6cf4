// SPDX-License-Identifier: Apache-2.0
//
// Merges several modules into one, as relocatable device code needs it.
#pragma once

#include <string>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

struct LinkInput {
  Module module;
  std::string name;  // for messages
};

struct LinkResult {
  Module module;
  std::vector<Diagnostic> diagnostics;  // errors; positions are lines of the input that the message names
  // Functions and variables that are declared .extern and defined nowhere; unsized .extern .shared arrays (dynamic
  // shared memory) are not among them. Whoever runs the module knows which of them it provides itself.
  std::vector<std::string> unresolvedFunctions, unresolvedVariables;

  bool ok() const { return diagnostics.empty(); }
};

// Symbols without linkage (.visible, .weak, .common, .extern; kernels have it always) stay local to their module and
// are renamed ("x$1") where another module has the name. Of several definitions a strong one wins over .common, .common
// over .weak, the first among equals; a .common variable takes the largest size. Two strong definitions, and a
// declaration that does not fit its definition, are errors. References to an .alias go to the function it stands for.
// The result has no DWARF sections (their offsets would be wrong); names of inlined functions are kept in
// Location::functionName.
LinkResult link(std::vector<LinkInput> inputs);

}  // namespace sonde::ptx
