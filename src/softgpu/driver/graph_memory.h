// SPDX-License-Identifier: Apache-2.0
//
// Memory that belongs to graphs: an allocation node has its address from the
// day it is made. The memory is in use from a launch of that node until a node
// or a call frees it; counted when the calls are made, so that the numbers do
// not depend on how far the streams have come. A device's numbers
// (cuDeviceGetGraphMemAttribute) are of memory that is located on it: its own,
// and managed memory of a pool with that location.
#pragma once

#include <atomic>
#include <memory>

#include "softgpu/driver/driver.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

class GraphMemory {
 public:
  // What a node's properties ask for. `counted`: the device's numbers have it.
  struct Request {
    memory::Kind kind = memory::Kind::device;
    uint32_t device = 0;
    bool counted = true;
    size_t bytes = 0;
  };
  // Null: not enough memory.
  static std::shared_ptr<GraphMemory> create(const Request& request);
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
  // Notes the graph whose node allocates it, and a graph that gets a node which
  // frees it. False: no (further) node may free it there.
  void ownedBy(uint32_t graphId) { owner_ = graphId; }
  bool freedBy(uint32_t graphId);

 private:
  GraphMemory(const Request& request, CUdeviceptr address) : request_(request), address_(address) {}
  enum class Freed : uint8_t { nowhere, inOwner, elsewhere };
  const Request request_;
  const CUdeviceptr address_;
  bool inUse_ = false;
  Freed freed_ = Freed::nowhere;
  std::atomic<uint32_t> owner_{0};
  std::shared_ptr<GraphMemory> self_;  // while in use: a program may still free it when the graph is gone
};

}  // namespace sonde::softgpu::driver
