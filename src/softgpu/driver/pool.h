// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "softgpu/driver/driver.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

class Pool final : public Object {
 public:
  static constexpr Type kType = Type::pool;
  Pool(Device* device, bool isDefault) : Object(kType), device_(device), isDefault_(isDefault) {}
  ~Pool() override;
  Device* device() const { return device_; }
  bool isDefault() const { return isDefault_; }

  std::atomic<uint64_t> used{0}, usedHigh{0}, releaseThreshold{0};
  std::atomic<int> reuse[3] = {1, 1, 1};
  bool shareable = false;     // made for CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
  uint32_t importedFrom = 0;  // the process that has the pool; 0: this one
  uint64_t importedId = 0;    // and its name there

 private:
  Device* const device_;
  const bool isDefault_;
};

// An allocation that may have come from a pool is gone.
void poolReleased(const memory::Allocation& was);

}  // namespace sonde::softgpu::driver
