// SPDX-License-Identifier: Apache-2.0
//
// What the platform does about calls that make, destroy or wait for objects.
#pragma once

#include <cstdint>

#include "platform/nvidia/objects.h"

namespace sonde::platform::nvidia {

// What the listener asked for (SondeInterest).
uint64_t interest();
// Notes it and switches the handling of calls accordingly.
void setInterest(uint64_t bits);

void beforeLifetime(uint32_t cbid, const void* params);
void afterLifetime(uint32_t cbid, const void* params, int32_t result);
void reportSync(uint32_t cbid, bool perThread, const void* params, int32_t result, uint64_t started,
                uint32_t correlation);

void reportContext(Context& context);
SondeResource describe(const Context& context);
SondeResource describe(const Stream& stream);

}  // namespace sonde::platform::nvidia
