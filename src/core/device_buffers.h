// SPDX-License-Identifier: Apache-2.0
// Room for device work whose record is not made yet: what the attributes
// DEVICE_BUFFER_SIZE, …_CDP, …_POOL_LIMIT and …_PRE_ALLOCATE_VALUE steer.
//
// A context has a pool of buffers; a piece of work takes a slot when it is
// enqueued and gives it back when it is done. Any thread; one atomic addition
// while there is room.
#ifndef SONDE_CORE_DEVICE_BUFFERS_H_
#define SONDE_CORE_DEVICE_BUFFERS_H_

#include <atomic>
#include <cstdint>
#include <mutex>

namespace sonde::core {

class DeviceBuffers {
 public:
  // What one piece of work takes of a buffer.
  static constexpr uint64_t kSlotBytes = 512;

  struct Settings {
    uint64_t bytes, cdpBytes;     // per buffer; rounded up to whole slots
    uint64_t limit, preAllocate;  // buffers of a context
  };
  // For buffers that are allocated from now on.
  void configure(const Settings& settings);
  // All buffers are gone.
  void reset();

  // The context's first buffers, before there is work; taking a slot does it too.
  void prepare(uint32_t contextUid) { poolOf(contextUid); }

  // A slot of the context. False: every buffer is full and there may be no more
  // of them; with `must` the slot is taken all the same.
  bool take(uint32_t contextUid, bool must);
  // Gives the slot back. True: the work done since the last time fills a buffer.
  bool release(uint32_t contextUid);
  // The same for work launched by kernels; one buffer a context.
  bool takeCdp(uint32_t contextUid);
  void releaseCdp(uint32_t contextUid);

  // In a forked child, where other threads may have held the lock.
  void forgetInChild();

  // Buffers that the context has; for tests.
  uint64_t buffers(uint32_t contextUid);

 private:
  // Contexts are told apart by the low bits of their ids: two that live at the
  // same time and agree in them share a pool.
  static constexpr uint32_t kPools = 64;
  struct Pool {
    std::atomic<uint32_t> context{0};
    std::atomic<uint64_t> used{0}, capacity{0}, done{0}, slotsPerBuffer{1};
    std::atomic<uint64_t> cdpUsed{0}, cdpCapacity{0};
    uint64_t buffers = 0;
  };
  Pool& poolOf(uint32_t contextUid);
  void adopt(Pool& pool, uint32_t contextUid);

  std::mutex mutex_;  // settings_, buffers
  Settings settings_{};
  Pool pools_[kPools];
};

}  // namespace sonde::core

#endif  // SONDE_CORE_DEVICE_BUFFERS_H_
