// SPDX-License-Identifier: Apache-2.0
//
// Allocations, releases and memory pools, as the listener hears of them.
#pragma once

#include <cstdint>
#include <span>

namespace sonde::platform::nvidia {

struct Context;

std::span<const uint32_t> memoryCallbacks();
// The context goes with all that is allocated in it.
void forgetAllocations(const Context& context);
// Around a call of one of them.
void beforeMemory(uint32_t cbid, const void* params);
void reportMemory(uint32_t cbid, bool perThread, const void* params, int32_t result, uint32_t correlation);

}  // namespace sonde::platform::nvidia
