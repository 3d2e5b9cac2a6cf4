// SPDX-License-Identifier: Apache-2.0
//
// Shared and local memory of resident blocks: pieces of the address space's
// shared and local windows. A slot belongs to one Cta object for its life.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace sonde::softgpu::exec {

// From one slot's shared memory to the next: the largest block's and a gap.
inline constexpr unsigned kSharedStrideLog = 19;
inline constexpr uint64_t kSharedStride = uint64_t{1} << kSharedStrideLog;

class DeviceScratch {
 public:
  static DeviceScratch& get();
  // The first of `count` slots that lie side by side, kSharedStride apart.
  unsigned takeSlots(unsigned count = 1);
  void giveSlots(unsigned first, unsigned count = 1);
  // Generic address of the slot's shared memory, at least `bytes` of it mapped.
  bool shared(unsigned slot, uint64_t bytes, uint64_t& base);
  // The slot's local memory; contents are lost when it grows.
  bool local(unsigned slot, uint64_t bytes, uint64_t& base);

 private:
  struct Slot {
    uint64_t sharedMapped = 0;
    uint64_t localBase = 0, localBytes = 0;
  };
  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::multimap<unsigned, unsigned> freeSlots_;  // count -> first
  std::multimap<uint64_t, uint64_t> freeLocal_;  // bytes -> address
  uint64_t nextLocal_ = 0;
};

}  // namespace sonde::softgpu::exec
