// SPDX-License-Identifier: Apache-2.0
//
// Errors of the device's own run time: numbers of cudaError_t.
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

inline constexpr int32_t kDeviceInvalidValue = 1;
inline constexpr int32_t kDeviceMemoryAllocation = 2;
inline constexpr int32_t kDeviceInvalidConfiguration = 9;
inline constexpr int32_t kDeviceLaunchMaxDepthExceeded = 65;
inline constexpr int32_t kDeviceSyncDepthExceeded = 68;
inline constexpr int32_t kDeviceLaunchPendingCountExceeded = 69;
inline constexpr int32_t kDeviceInvalidDeviceFunction = 98;
inline constexpr int32_t kDeviceInvalidDevice = 101;
inline constexpr int32_t kDeviceInvalidResourceHandle = 400;
inline constexpr int32_t kDeviceNotSupported = 801;

// "cudaErrorInvalidValue" and a sentence; of a number that is none of these, a text that says so.
const char* deviceErrorName(int32_t error);
const char* deviceErrorText(int32_t error);

}  // namespace sonde::softgpu::exec
