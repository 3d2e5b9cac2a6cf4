// SPDX-License-Identifier: Apache-2.0
// A thread of the collector's own, for two things: flushing now and then where
// the library cannot, and flushing on behalf of a fatal signal's handler. The
// handler itself may do next to nothing (the signal can interrupt malloc or
// CUPTI while they hold their locks), so it asks this thread through a pipe
// and waits a bounded time for the answer.
#ifndef SONDE_CLI_COLLECTOR_HELPER_THREAD_H_
#define SONDE_CLI_COLLECTOR_HELPER_THREAD_H_

#include <cstdint>

namespace sonde::collector {

// periodMs 0: only signals. Also installs the handlers, for those fatal
// signals whose disposition is still the default.
void startHelperThread(uint32_t periodMs);

}  // namespace sonde::collector

#endif  // SONDE_CLI_COLLECTOR_HELPER_THREAD_H_
