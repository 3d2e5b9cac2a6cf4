// SPDX-License-Identifier: Apache-2.0
#ifndef SONDE_PLATFORM_SOFTGPU_FIND_PLATFORM_H_
#define SONDE_PLATFORM_SOFTGPU_FIND_PLATFORM_H_

#include "platform/tools_api.h"

namespace sonde::platform {

// The platform of the software driver, or nullptr with `*why` a static sentence
// about what is missing. Looks at the libcuda.so.1 that the process has loaded
// and loads it only when there is none. Not cached: a later call may succeed.
const SondePlatform* findSoftwarePlatform(const char** why);

}  // namespace sonde::platform

#endif  // SONDE_PLATFORM_SOFTGPU_FIND_PLATFORM_H_
