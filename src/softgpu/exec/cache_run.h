// SPDX-License-Identifier: Apache-2.0
//
// The cache model behind a running grid. Each block logs its accesses; the logs
// run through the caches in an order that host threads cannot change: L1 of an
// SM sees its blocks by number, and so does each slice of L2 with what L1 let
// through. A block that runs ahead of its turn leaves its log behind.
//
// Memory is bounded: threads that are too far ahead wait before they start a
// block, and a block whose log is full waits until it is the first unfinished
// one and goes on from there straight into the caches. Grids whose blocks may
// wait for each other must not be held up: there a full log goes out of turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "softgpu/exec/cache_model.h"

namespace sonde::softgpu::exec {

// Log of the block at hand, one per Cta. The owner thread's alone.
struct CacheLog {
  std::vector<uint64_t> entries;
};

class CacheRun {
 public:
  // `model` is reset. Blocks go to `sms` in turn, or (empty) to all. `mayWait`: blocks do not wait for each other.
  CacheRun(CacheModel& model, uint32_t smCount, std::span<const uint32_t> sms, uint32_t threads, bool mayWait,
           const std::atomic<bool>& failed);
  ~CacheRun();

  static constexpr size_t kFullLog = size_t{1} << 20;   // entries
  static constexpr uint64_t kMostPending = 128u << 20;  // bytes left behind by finished blocks

  // Before a thread that has no unfinished block starts one.
  void waitForRoom();
  // The block has ended. Empties the log.
  void finish(uint64_t block, CacheLog& log);
  // The log is full. Empties it.
  void flush(uint64_t block, CacheLog& log);
  // From now on no thread waits: one of them runs several blocks in turn.
  void neverWait() { mayWait_.store(false, std::memory_order_relaxed); }
  const CacheModel& model() const { return model_; }

 private:
  // Work by number, one piece at a time: an SM's L1, or some slices of L2.
  struct Lane {
    std::mutex mutex;
    std::condition_variable idle;
    uint64_t next = 0;
    bool busy = false;  // a thread is at work, and will look at `pending` before it leaves
    std::map<uint64_t, std::vector<uint64_t>> pending;
    int32_t sm = -1;     // -1: L2
    uint32_t place = 0;  // of the SM among those in use
  };
  void process(Lane& lane, uint64_t index, const uint64_t* entries, size_t n);
  void inOrder(Lane& lane, uint64_t index, const uint64_t* entries, size_t n);
  // The lane is locked and not busy: what has its turn, if anything.
  void drain(Lane& lane, std::unique_lock<std::mutex>& lock);
  template <class F>
  void outOfOrder(Lane& lane, F&& work);
  void now(uint64_t block, const CacheLog& log);
  bool first(uint64_t block);
  void progressed();

  CacheModel& model_;
  const uint32_t used_, groups_;  // SMs that take blocks

  std::atomic<bool> mayWait_;
  const std::atomic<bool>& failed_;
  std::unique_ptr<Lane[]> sms_, slices_;
  std::atomic<uint64_t> pendingBytes_{0};
  std::atomic<uint32_t> waiting_{0};
  std::mutex roomMutex_;
  std::condition_variable room_;
};

// Cache models to use again: making one clears megabytes.
class CachePool {
 public:
  static CachePool& get();
  std::unique_ptr<CacheModel> take(const model::DeviceModel& device);
  void give(std::unique_ptr<CacheModel> model);

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CacheModel>> free_;
};

}  // namespace sonde::softgpu::exec
