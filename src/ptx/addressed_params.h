// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ptx/ast.h"

namespace sonde::ptx {

// A parameter of a function (not of a kernel) whose address is taken moves to
// the function's stack: its address is one in local memory. What reads it as a
// parameter still does. Compilers do so where they do not optimise.
void moveAddressedParameters(Module& module);

}  // namespace sonde::ptx
