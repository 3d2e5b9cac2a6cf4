// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "softgpu/driver/driver.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

class Pool final : public Object {
 public:
  static constexpr Type kType = Type::pool;
  // kind: device, pinned (a pool of the host's memory) or managed. Those two
  // belong to no device: `device` is the first one then.
  Pool(Device* device, bool isDefault, memory::Kind kind = memory::Kind::device)
      : Object(kType),
        location{CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(device->ordinal)},
        device_(device),
        isDefault_(isDefault),
        kind_(kind) {}
  ~Pool() override;
  Device* device() const { return device_; }
  memory::Kind kind() const { return kind_; }
  bool isDefault() const { return isDefault_; }

  std::atomic<uint64_t> used{0}, usedHigh{0}, releaseThreshold{0};
  std::atomic<int> reuse[3] = {1, 1, 1};
  uint64_t maxBytes = 0;            // together; 0: no limit
  CUmemLocation location;           // as asked for
  std::atomic<uint64_t> access{0};  // of a pool of the host's memory: bit n, device n was given access
  bool shareable = false;           // made for CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
  uint32_t importedFrom = 0;        // the process that has the pool; 0: this one
  uint64_t importedId = 0;          // and its name there

 private:
  Device* const device_;
  const bool isDefault_;
  const memory::Kind kind_;
};

// What a pool at a location is of, checked.
struct PoolPlace {
  memory::Kind kind = memory::Kind::device;
  Device* device = nullptr;
};
CUresult poolPlace(const CUmemLocation* location, CUmemAllocationType type, PoolPlace& place);

// An allocation that may have come from a pool is gone.
void poolReleased(const memory::Allocation& was);

}  // namespace sonde::softgpu::driver
