// SPDX-License-Identifier: Apache-2.0
//
// The vendor's driver as a platform.
#pragma once

#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

// The platform over the driver behind `handle` (from dlopen, kept open). Hooks
// are put in when somebody attaches. `*why`: a sentence, when the answer is
// nullptr or when attaching fails.
const SondePlatform* platformFor(void* handle);
// Why the last attach failed; valid until the next one.
const char* attachFailure();

}  // namespace sonde::platform::nvidia
