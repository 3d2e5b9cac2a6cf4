// SPDX-License-Identifier: Apache-2.0
// Attributes of a device that are facts of the platform, by the name that it
// knows them under.
#ifndef SONDE_CORE_DEVICE_FACTS_H_
#define SONDE_CORE_DEVICE_FACTS_H_

#include <cupti.h>

#include <cstdint>

namespace sonde::core {

struct DeviceFact {
  CUpti_DeviceAttribute attribute;
  uint32_t bytes;    // of the value, an unsigned integer
  const char* name;  // nullptr: 0 here, whatever the device
};

inline constexpr DeviceFact kDeviceFacts[] = {
    {CUPTI_DEVICE_ATTR_GLOBAL_MEMORY_BANDWIDTH, 8, "global_memory_bandwidth_kBps"},
    {CUPTI_DEVICE_ATTR_INSTRUCTION_PER_CYCLE, 4, "instruction_per_cycle"},
    {CUPTI_DEVICE_ATTR_INSTRUCTION_THROUGHPUT_SINGLE_PRECISION, 8, "instruction_throughput_sp"},
    {CUPTI_DEVICE_ATTR_MAX_FRAME_BUFFERS, 8, "frame_buffers"},
    {CUPTI_DEVICE_ATTR_PCIE_LINK_RATE, 8, "pcie_link_rate"},
    {CUPTI_DEVICE_ATTR_PCIE_LINK_WIDTH, 8, "pcie_link_width"},
    {CUPTI_DEVICE_ATTR_PCIE_GEN, 8, "pcie_gen"},
    {CUPTI_DEVICE_ATTR_DEVICE_CLASS, 4, "device_class"},
    {CUPTI_DEVICE_ATTR_FLOP_SP_PER_CYCLE, 8, "flop_sp_per_cycle"},
    {CUPTI_DEVICE_ATTR_FLOP_DP_PER_CYCLE, 8, "flop_dp_per_cycle"},
    {CUPTI_DEVICE_ATTR_MAX_L2_UNITS, 8, "l2_units"},
    {CUPTI_DEVICE_ATTR_MAX_SHARED_MEMORY_CACHE_CONFIG_PREFER_SHARED, 8, "shared_prefer_shared"},
    {CUPTI_DEVICE_ATTR_MAX_SHARED_MEMORY_CACHE_CONFIG_PREFER_L1, 8, "shared_prefer_l1"},
    {CUPTI_DEVICE_ATTR_MAX_SHARED_MEMORY_CACHE_CONFIG_PREFER_EQUAL, 8, "shared_prefer_equal"},
    {CUPTI_DEVICE_ATTR_FLOP_HP_PER_CYCLE, 8, "flop_hp_per_cycle"},
    {CUPTI_DEVICE_ATTR_NVLINK_PRESENT, 4, nullptr},
    {CUPTI_DEVICE_ATTR_GPU_CPU_NVLINK_BW, 8, nullptr},
    {CUPTI_DEVICE_ATTR_NVSWITCH_PRESENT, 4, nullptr},
};

}  // namespace sonde::core

#endif  // SONDE_CORE_DEVICE_FACTS_H_
