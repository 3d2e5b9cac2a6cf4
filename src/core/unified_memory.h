// SPDX-License-Identifier: Apache-2.0
// Counters of unified memory: which client wants which of which device.
#ifndef SONDE_CORE_UNIFIED_MEMORY_H_
#define SONDE_CORE_UNIFIED_MEMORY_H_

#include <cupti.h>

#include "core/client.h"
#include "platform/tools_api.h"

namespace sonde::core {

// Checks all structures, then takes them over; nothing changes on an error.
CUptiResult configureUnifiedMemory(Client* client, const CUpti_ActivityUnifiedMemoryCounterConfig* config,
                                   uint32_t count);
// Tells the platform what the clients with the kind on want together.
void updateUnifiedMemory();
// From the listener, on any thread.
void recordUnifiedMemory(const SondeUnifiedMemory& event);

}  // namespace sonde::core

#endif  // SONDE_CORE_UNIFIED_MEMORY_H_
