// SPDX-License-Identifier: Apache-2.0
//
// The one thing that hooking needs of an x86-64 decoder: how long an
// instruction is and what in it depends on where it stands.
//
// Zydis does the decoding. It is loaded with dlopen at the first use, because
// libcupti may not depend on it: only a process whose vendor driver is attached
// to needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sonde::platform::nvidia {

struct DecodedInstruction {
  uint8_t length = 0;
  // Offset and size in bytes of a displacement or branch distance relative to
  // the end of the instruction; size 0: the instruction can stand anywhere.
  uint8_t relativeOffset = 0, relativeSize = 0;
  int64_t relative = 0;
  bool endsFlow = false;  // ret, jmp, int3 …: what follows need not be code
};

// False: no decoder, or no valid instruction; `why` says which.
bool decodeInstruction(const uint8_t* code, size_t room, DecodedInstruction* out, std::string* why);

}  // namespace sonde::platform::nvidia
