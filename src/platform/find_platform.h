// SPDX-License-Identifier: Apache-2.0
#ifndef SONDE_PLATFORM_FIND_PLATFORM_H_
#define SONDE_PLATFORM_FIND_PLATFORM_H_

#include "platform/tools_api.h"

namespace sonde::platform {

// The platform behind the libcuda.so.1 that the process has loaded, or that it
// would load: the software driver's own, or hooks on any other driver.
// SONDE_PLATFORM=nvidia: hooks on the software driver too (tests). nullptr:
// there is no driver; `*why` is a static sentence. Not cached: a later call may
// succeed.
const SondePlatform* findPlatform(const char** why);

// More about an attach of that platform that failed; "" when there is no more.
const char* attachFailure(const SondePlatform* platform);

}  // namespace sonde::platform

#endif  // SONDE_PLATFORM_FIND_PLATFORM_H_
