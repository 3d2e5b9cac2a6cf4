// SPDX-License-Identifier: Apache-2.0
//
// Unified-memory events of this process from the kernel module: the device node
// /dev/nvidia-uvm-tools writes them into a queue in our memory.
#pragma once

#include <cstdint>

namespace sonde::platform::nvidia {

// Kinds of counters (bits) for a device; replaces the earlier set. A CUresult;
// unifiedMemoryFailure() says why not.
int32_t configureUnifiedMemory(uint32_t device, uint32_t kinds);
const char* unifiedMemoryFailure();

// Something is wanted: whoever waits for the device looks here as well.
bool unifiedMemoryActive();
// The driver may have opened its node meanwhile; after cuInit, a context.
void unifiedMemoryDriverIsUp();
// Reports what has happened. `flush`: waits until the module has written what
// is on its way.
void collectUnifiedMemory(bool flush);
void stopUnifiedMemory();

}  // namespace sonde::platform::nvidia
