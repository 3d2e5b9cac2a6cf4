// SPDX-License-Identifier: Apache-2.0
//
// A grid while it runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "softgpu/exec/cache_run.h"
#include "softgpu/exec/engine.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/compiler.h"

namespace sonde::softgpu::exec {

class ProgramImpl;

struct GridRun {
  const LaunchRequest* request = nullptr;
  const ProgramImpl* program = nullptr;
  bool counting = false;  // rows of counter slots are kept
  std::shared_ptr<const jit::CompiledKernel> kernel;
  uint64_t serial = 0;  // tells grids apart for the workers' CTAs
  uint64_t blocks = 0;
  uint32_t clusterSize = 1;  // blocks that run together, on one thread
  uint64_t units = 0;        // clusters, or blocks
  uint32_t warpsPerBlock = 0, threadsPerBlock = 0;
  uint32_t smCount = 1;
  uint32_t sharedBytes = 0;  // static + dynamic
  uint64_t localStride = 0;
  bool fibers = false;
  bool deterministic = false;
  const uint8_t* params = nullptr;
  const uint64_t* globals = nullptr;

  std::atomic<uint64_t> nextUnit{0};
  std::atomic<uint64_t> doneBlocks{0};
  std::atomic<bool> failed{false};
  std::atomic<bool> idleSaid{false};  // that all its warps wait (time_limit.h)
  std::atomic<uint32_t> workers{0};   // threads inside
  std::mutex mutex;                   // guards what follows
  std::condition_variable done;
  LaunchOutcome outcome;
  uint64_t outcomeBlock = ~uint64_t{0};
  // Counter slots: [thread][sm * slots + slot], folded at the end.
  std::vector<std::unique_ptr<uint64_t[]>> counterRows;
  // Device printf: finished text of each block, in block order.
  struct Text {
    uint64_t block;
    std::string text;
  };
  std::vector<Text> printed;

  std::unique_ptr<CacheRun> caches;  // when the caches are counted
  uint32_t residentBlocks = 1;       // of an SM

  void outOfMemory() {
    std::lock_guard lock(mutex);
    failed = true;
    if (outcome.error) return;
    outcome.error = 2;  // CUDA_ERROR_OUT_OF_MEMORY
    outcome.message = "not enough host memory for the shared or local memory of a block";
  }
  // Multiprocessors that take blocks, and which of them takes this one.
  uint32_t smsUsed() const { return request->sms.empty() ? smCount : static_cast<uint32_t>(request->sms.size()); }
  uint32_t smOf(uint64_t block) const {
    const auto& sms = request->sms;
    return sms.empty() ? static_cast<uint32_t>(block % smCount) : sms[block % sms.size()];
  }
};

}  // namespace sonde::softgpu::exec
