// SPDX-License-Identifier: Apache-2.0
//
// The one address range that everything a kernel can address lies in. It is
// reserved twice, at a fixed distance: the host's view at the address itself
// and the device's view at address + deviceDelta. So a kernel's access is one
// compare (inside the range?) and one addition, and each side has page
// protections of its own:
//
//   plain device memory   host view PROT_NONE      device view read-write
//   pinned host memory    both views read-write, the same pages
//   managed memory        both views on the same pages; protections say where
//                         a page resides
//   shared, local         device view only
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::softgpu::memory {

struct Window {
  uint64_t base = 0;
  uint64_t size = 0;
  bool contains(uint64_t address, uint64_t bytes = 1) const {
    return address - base < size && bytes <= size - (address - base);
  }
  uint64_t end() const { return base + size; }
};

// Process-wide, reserved at first use, never given back. Throws std::bad_alloc
// when not even the smallest range can be reserved.
class AddressSpace {
 public:
  static const AddressSpace& get();

  Window all;     // = shared + local + global, in this order, no gaps
  Window shared;  // resident blocks' shared memory; slots are handed out by exec
  Window local;   // per-lane local memory; slots are handed out by exec
  Window global;  // device, pinned and managed allocations, constants, module variables
  int64_t deviceDelta = 0;

  std::byte* deviceView(uint64_t address) const {
    return reinterpret_cast<std::byte*>(address + static_cast<uint64_t>(deviceDelta));
  }

 private:
  AddressSpace();
};

}  // namespace sonde::softgpu::memory
