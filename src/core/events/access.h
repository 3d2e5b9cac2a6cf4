// SPDX-License-Identifier: Apache-2.0
// Where the entry points find the event and metric systems of the platform that
// the core is attached to.
#pragma once

#include "core/events/event_system.h"
#include "core/events/metrics.h"

namespace sonde::core::events {

// Attaches the core to a platform when needed. nullptr: there is none, or it
// has no counters; `status` says which. The objects live until the process
// ends.
EventSystem* eventSystem(Status* status);
MetricSystem* metricSystem(Status* status);

// Only after one of these succeeded.
const SondePlatform* platform();
// The platform's time that counts as the reset of its devices.
uint64_t deviceEpoch();

// Whether an event system was made.
bool active();
// For the core's listener. Does nothing when none was.
void contextDestroyed(CUcontext context);

}  // namespace sonde::core::events
