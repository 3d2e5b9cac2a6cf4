// SPDX-License-Identifier: Apache-2.0
//
// The runtime function in which a thread is when the hooks come, as when a
// library is injected by the first call of a program: its entry was not seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {

// Where the code of a hooked runtime function lies.
struct RuntimeRange {
  uintptr_t begin = 0, end = 0;
  uint32_t cbid = 0;
  const char* name = nullptr;  // for good
};

// The hooks on the runtime are in: looks for such a function on the stack of
// this thread.
void findUnderWay(const std::vector<RuntimeRange>& ranges);

// At the entry of a hooked call of a thread with one: reports that it began, or,
// when it is not on the stack any more, that it has ended.
void checkUnderWay(ThreadCalls& thread);

// Nobody listens any more: what is under way is nobody's.
void forgetUnderWay();

}  // namespace sonde::platform::nvidia
