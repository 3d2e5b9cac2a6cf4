// SPDX-License-Identifier: Apache-2.0
//
// Memory that belongs to graphs: an allocation node has its address from the
// day it is made. The memory is in use from a launch of that node until a node
// or a call frees it; counted when the calls are made, so that the numbers do
// not depend on how far the streams have come.
#pragma once

#include <memory>

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

class GraphMemory {
 public:
  // Null: not enough memory.
  static std::shared_ptr<GraphMemory> create(Context& context, size_t bytes);
  // The memory at this address; null: it is none of a graph's.
  static std::shared_ptr<GraphMemory> find(CUdeviceptr address);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  CUdeviceptr address() const { return address_; }
  // A launch uses it. False: it is in use.
  bool take();
  // False: it is not in use.
  bool give();
  bool inUse() const;

 private:
  GraphMemory(uint32_t device, CUdeviceptr address, size_t bytes) : device_(device), address_(address), bytes_(bytes) {}
  const uint32_t device_;
  const CUdeviceptr address_;
  const size_t bytes_;
  bool inUse_ = false;
  std::shared_ptr<GraphMemory> self_;  // while in use: a program may still free it when the graph is gone
};

}  // namespace sonde::softgpu::driver
