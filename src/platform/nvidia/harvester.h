// SPDX-License-Identifier: Apache-2.0
//
// Turns the events behind finished work into times and reports the work, in
// batches, on a thread of its own.
#pragma once

#include "platform/nvidia/objects.h"

namespace sonde::platform::nvidia {

void startHarvester();
// After this nothing is reported any more; what is still queued is dropped.
void stopHarvester();
// There is a new reason to look.
void wakeHarvester();

// Takes an item over, as the last of its stream.
// `other`: the work of the other side of the null stream that it comes after.
void enqueue(Stream& stream, const Item& item, uint64_t other);

// The work that is not reported yet.
void pendingWork(void (*visit)(void* self, const SondeWork* work), void* self);

// Reports what has finished by now.
void collect();

// Before a context is destroyed: reports its work, finished or not, and makes
// sure that nothing of ours is in the context afterwards.
void retire(Context& context);

// Calibrates the context's clock unless that was done. Before the first work
// of a context, on the thread that brings it: the device is idle then.
void prepareTiming(Context& context);

}  // namespace sonde::platform::nvidia
