// SPDX-License-Identifier: Apache-2.0
//
// Memory without an address (cuMemCreate): a memory file, which a program can
// map, and hand to another process as a file descriptor.
#pragma once

#include <sys/types.h>

#include <mutex>

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

class PhysicalMemory final : public Object {
 public:
  static constexpr Type kType = Type::physicalMemory;
  // The size has been charged to the device; the object refunds it. Null: no memory.
  static Ref<PhysicalMemory> create(uint64_t bytes, const CUmemAllocationProp& properties);
  // What a descriptor names, that `share` of this or another process gave:
  // the object of this process where it has one. Null: it is something else.
  static Ref<PhysicalMemory> import(int descriptor);
  ~PhysicalMemory() override;

  // A descriptor for another process, the caller's to close. -1: errno says why.
  int share() const;

  // Counts another handle; all have the same value.
  CUresult addHandle(CUmemGenericAllocationHandle* handle);
  // False: there is none.
  bool dropHandle();

  const int descriptor;
  const uint64_t bytes;
  const CUmemAllocationProp properties;

 private:
  PhysicalMemory(int descriptor, uint64_t bytes, const CUmemAllocationProp& properties, bool imported);
  std::mutex mutex_;
  unsigned handles_ = 0;
  const bool imported_;  // another process pays for it
};

CUresult findMemory(CUmemGenericAllocationHandle handle, Ref<PhysicalMemory>& out);

}  // namespace sonde::softgpu::driver
