// SPDX-License-Identifier: Apache-2.0
// Device work and allocations: who wants their records is decided when the work
// is enqueued; until it is done it is known as unfinished.
#ifndef SONDE_CORE_WORK_H_
#define SONDE_CORE_WORK_H_

#include "core/client.h"
#include "platform/tools_api.h"

namespace sonde::core {

// Listener functions of the same names.
void workEnqueued(void*, SondeWork* work);
void workCompleted(void*, const SondeWork* work);

// An allocation for kind MEMORY: kept when made, a record when released.
void trackAllocation(ThreadState& thread, Client& client, const SondeResource& event);

// The context goes, and with it what is still allocated there (0: nobody looks at any allocation any more): records
// whose end is unknown.
void allocationsGo(ThreadState& thread, Client& client, uint32_t contextUid);

// For a forced flush: records of the client's unfinished work (start, end and
// completion are CUPTI_TIMESTAMP_UNKNOWN) and live allocations (end unknown),
// each once. Their finished form follows when they are done.
void reportUnfinished(Client& client);

// A client begins a life.
uint32_t newLife();

// Around a fork.
void lockWork();
void unlockWork();
void forgetWork();

}  // namespace sonde::core

#endif  // SONDE_CORE_WORK_H_
