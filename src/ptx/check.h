// SPDX-License-Identifier: Apache-2.0
//
// Does each instruction make sense? Operand counts, types and widths,
// modifiers, state spaces, and the PTX version and target that a feature needs.
#pragma once

#include <string>
#include <vector>

#include "ptx/ast.h"

namespace sonde::ptx {

struct CheckOptions {
  unsigned maxErrors = 20;
  // Report features that .version or .target does not have yet as errors, as the driver does.
  bool featureLevels = true;
};

// What is wrong with a parsed module, in the order of the functions. Empty: nothing.
std::vector<Diagnostic> check(const Module& module, const CheckOptions& options = {});

// "'%r1' of type .b32", "the number 5", …: an operand in words, for messages.
std::string describe(const Operand& operand, const Function& function, const Module& module);

}  // namespace sonde::ptx
