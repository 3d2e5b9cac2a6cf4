// SPDX-License-Identifier: Apache-2.0
// Names for messages while the tree has no PTX library.
#include "ptx/opcodes.h"

namespace sonde::ptx {
std::string_view name(Opcode) { return "instruction"; }
std::string_view name(Mod) { return "modifier"; }
std::string_view name(ScalarType) { return "type"; }
}  // namespace sonde::ptx
