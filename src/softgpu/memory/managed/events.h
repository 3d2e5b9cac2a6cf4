// SPDX-License-Identifier: Apache-2.0
//
// Values of CUPTI that the events of managed memory carry.
#pragma once

#include <cstdint>

#include "platform/clock.h"

namespace sonde::softgpu::memory {

// CUpti_ActivityUnifiedMemoryCounterKind
enum : uint32_t {
  kHtoD = 1,
  kDtoH = 2,
  kCpuFault = 3,
  kGpuFault = 4,
  kThrashing = 5,
  kThrottling = 6,
  kRemoteMap = 7,
  kDtoD = 8
};
// CUpti_ActivityUnifiedMemoryMigrationCause
enum : uint32_t { kUser = 1, kCoherence = 2, kPrefetch = 3, kEviction = 4, kAccessCounters = 5 };
// CUpti_ActivityUnifiedMemoryRemoteMapCause
enum : uint32_t { kMapThrashing = 2, kMapPolicy = 3, kMapOutOfMemory = 4, kMapEviction = 5 };
// CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID, in remote maps and throttling; elsewhere the
// CPU is 0, as the real driver has it.
inline constexpr uint32_t kCpuId = 0xffffffff;
// CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU, …_THROTTLING_IN_CPU
inline constexpr uint32_t kInCpu = 1;

inline uint64_t now() { return platform::nowNs(); }

}  // namespace sonde::softgpu::memory
