// SPDX-License-Identifier: Apache-2.0
//
// Look-ups over the name tables beyond those in opcodes.h, types.h and ast.h.
#pragma once

#include <string_view>

#include "ptx/ast.h"

namespace sonde::ptx {

// The known name nearest to a misspelt one (edit distance), or "" when none is near enough to be worth naming.
std::string_view nearestOpcode(std::string_view text);
std::string_view nearestMod(std::string_view text);  // of modifiers, types and state spaces

// `mNnNkN`: the three numbers; false when the word is not of this form.
bool shapeFromName(std::string_view text, Instruction::Shape& shape);

}  // namespace sonde::ptx
