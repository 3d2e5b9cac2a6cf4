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
// `mode`: 1 base (what the card is rated for), 2 boost (its highest clock).
// Changes the card for everyone on it until it is unlocked. Refused on a card
// that is divided (MIG), and by a driver that could not undo it.
int32_t nvmlClockLock(const char* busId, uint32_t mode);
// Frees what this process locked; does nothing otherwise.
int32_t nvmlClockUnlock(const char* busId);
// A CUpti_ClockControl_Status; `ours`: locked by this process. NVML does not
// tell a lock as such: it is one when it is ours, or when set clocks are what
// holds the clocks now. Boost counts as switched on or off where that is not
// the card's default.
int32_t nvmlClockStatus(const char* busId, uint32_t* status, int* ours);
// NVML does not say who asked. This process did where CUDA_AUTO_BOOST of its
// environment is what holds; otherwise `pid` is 0.
int32_t nvmlAutoBoost(const char* busId, uint32_t* enabled, uint32_t* pid);

// Tests: forget the library, so that another can take its place.
void nvmlForget();

}  // namespace sonde::platform::nvidia
