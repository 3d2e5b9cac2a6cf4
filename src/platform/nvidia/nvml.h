// SPDX-License-Identifier: Apache-2.0
//
// Clocks, power and temperature from NVML, which is loaded when it is first
// asked for. Every function answers a CUresult.
#pragma once

#include <cstdint>

#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

// `busId` is the device's, as cuDeviceGetPCIBusId writes it.
int32_t nvmlClockInfo(const char* busId, SondeClockInfo* info);
// `mode`: 1 base, 2 boost. Changes the card for everyone on it until it is
// unlocked. Refused on a card that is divided (MIG).
int32_t nvmlClockLock(const char* busId, uint32_t mode);
int32_t nvmlClockUnlock(const char* busId);
// 1 unlocked, 2 locked; `ours`: by this process.
int32_t nvmlClockStatus(const char* busId, uint32_t* status, int* ours);
int32_t nvmlAutoBoost(const char* busId, uint32_t* enabled, uint32_t* pid);

// Tests: forget the library, so that another can take its place.
void nvmlForget();

}  // namespace sonde::platform::nvidia
