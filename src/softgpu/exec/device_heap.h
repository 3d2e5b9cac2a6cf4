// SPDX-License-Identifier: Apache-2.0
//
// malloc and free of device code: one heap for each device, made at the first
// malloc with the size that the limit has then, and kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace sonde::softgpu::exec {

class DeviceHeap {
 public:
  // The heap of the device that `device` stands for. `bytes` counts when it is made.
  static DeviceHeap& of(const void* device, uint64_t bytes);

  uint64_t allocate(uint64_t bytes);  // device address, 16-byte aligned; 0: no room
  bool release(uint64_t address);     // false: not the start of a block

 private:
  explicit DeviceHeap(uint64_t bytes);
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> free_;  // address -> bytes
  std::map<uint64_t, uint64_t> used_;
};

}  // namespace sonde::softgpu::exec
