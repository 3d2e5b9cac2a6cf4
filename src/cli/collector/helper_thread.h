// SPDX-License-Identifier: Apache-2.0
// A thread of the collector's own, for two things: flushing now and then where
// the library cannot, and finishing on behalf of a fatal signal's handler or of
// _exit, which programs call in their own handlers. There next to nothing is
// allowed (the signal can interrupt malloc or CUPTI while they hold their
// locks), so this thread is asked through a pipe and waited for a bounded time.
#ifndef SONDE_CLI_COLLECTOR_HELPER_THREAD_H_
#define SONDE_CLI_COLLECTOR_HELPER_THREAD_H_

#include <cstdint>

#include "cli/spool/format.h"

namespace sonde::collector {

// periodMs: how often to flush; 0: never. Also installs the handlers, for
// those fatal signals whose disposition is still the default.
void startHelperThread(uint32_t periodMs);

// Async-signal-safe. Returns when all is written, or after three seconds.
void finishByHelper(spool::EndReason reason, int32_t value);

}  // namespace sonde::collector

#endif  // SONDE_CLI_COLLECTOR_HELPER_THREAD_H_
