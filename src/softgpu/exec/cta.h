// SPDX-License-Identifier: Apache-2.0
//
// One CTA (thread block) on one host thread: its warps, their stacks, its
// barriers, its shared and local memory. A worker owns a few of these and uses
// them for block after block.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/exec/check.h"
#include "softgpu/exec/fiber.h"
#include "softgpu/exec/grid.h"
#include "softgpu/exec/lane_groups.h"
#include "softgpu/exec/warp_state.h"

namespace sonde::softgpu::exec {

inline constexpr uint32_t kBarriers = 16;

enum class WarpStatus : uint8_t { ready, yielded, atBarrier, atClusterBarrier, atChildren, done };

struct Barrier {
  uint32_t arrivedThreads = 0;
  uint32_t arrivedWarps = 0;
  uint32_t expected = 0;  // threads; 0: all warps of the block that still run
  uint32_t waiting = 0;   // warps
  uint32_t popc = 0, andBits = 1, orBits = 0;
};

struct WarpControl {
  Fiber fiber;
  FiberStack stack;
  WarpStatus status = WarpStatus::done;
  uint32_t barrier = 0;
  uint32_t barrierResult = 0;
  uint32_t clusterArrived = 0;   // lanes that have come to the cluster's barrier
  bool clusterComplete = false;  // … and no lane is missing
  // The last mbarrier that this warp waited for in vain, where the host sees it.
  const volatile uint64_t* mbarrier = nullptr;
  LaneSplit* split = nullptr;  // of the lanes that run, when they are a part of the warp
  LaneGroups groups;
  uint32_t mbarrierWaits = 0, mbarrierSeen = 0;  // how often, and when IdleWatch looked last
};

struct Cta;

// The blocks of a cluster, all on one host thread, and their barrier. A block
// without a cluster is one of its own.
struct ClusterGroup {
  std::vector<Cta*> ctas;  // by rank
  uint32_t liveWarps = 0;  // of all blocks
  uint32_t arrivedWarps = 0;
};

struct Cta {
  GridRun* grid = nullptr;
  uint64_t block = 0;
  uint32_t warps = 0, liveWarps = 0;
  WarpState* states = nullptr;  // `warps` of them
  std::vector<WarpControl> control;
  Barrier barriers[kBarriers];
  bool fibers = false;  // warps run on stacks of their own
  bool dead = false;    // a fault ended the block
  Fiber scheduler;
  Fiber* cameFrom = nullptr;  // who switched to the warp at hand
  WarpState* running = nullptr;
  std::jmp_buf escape;  // out of a warp that runs as a plain call
  std::vector<char> printBuffer;
  bool active = false;
  CacheLog cacheLog;
  std::unique_ptr<SharedShadow> shadow;  // when races are looked for
  // Device-side launches: each thread's last error (empty: none yet), and calls made so far.
  std::vector<int32_t> threadErrors;
  uint64_t deviceCalls = 0;
  ClusterGroup* cluster = nullptr;

  Cta();
  ~Cta();
  // Makes the CTA run blocks of `grid`: memory, stacks, thread indices. False
  // when there is not enough memory.
  // `clusterSlot`: that of the cluster's first block.
  bool attach(GridRun& grid, unsigned slot, unsigned clusterSlot);
  void start(uint64_t block, uint64_t* counters, uint32_t sm);
  // waiting: every warp that is left waits for kernels that the block launched, or at a barrier;
  // blocked: all wait for other blocks' arrival.
  enum class Step : uint8_t { finished, progressed, idle, waiting, blocked };
  // Runs each warp that can go on once (fibers) or the whole block (plain).
  Step step();
  // After `waiting`, when those kernels have run.
  void resume();
  // The running warp, whose status says why, waits: on with the next one of this
  // round, else with the scheduler. Returns when the warp's turn has come again.
  void leave(WarpControl& from);
  // Every warp waits at a barrier, of one sort or another, and at least one for
  // an mbarrier since this was asked last.
  bool onlyWaits();
  // No warp can ever go on: says who waits where, and ends the block.
  void reportDeadlock();

 private:
  Step stepFibers();
  // The first warp from w on that can run; `warps`: none. It becomes the running one.
  uint32_t takeNext(uint32_t w);
  bool progressed_ = false, wasReady_ = false;  // in this round; the running warp, when its turn came
  std::unique_ptr<WarpState[]> storage_;
  uint64_t attachedSerial_ = 0;
  uint32_t capacity_ = 0;
  ClusterGroup alone_;
};

// The CTA whose warp runs on this thread, or null. Read in signal handlers:
// plain thread-local storage that needs no allocation at first use.
extern __thread Cta* currentCta __attribute__((tls_model("initial-exec")));

// Ends the block at hand: records the fault (the first one of the grid wins)
// and leaves the warp for good.
[[noreturn]] void raiseFault(WarpState* warp, int32_t error, uint32_t lanes, uint64_t address, const char* what);
void releaseBarrier(Cta& cta, Barrier& barrier);
void yieldWarp(WarpState* warp);
// Returns when the kernels that the block launched have run. Only where warps have stacks of their own.
void waitForChildren(WarpState* warp);
void arriveAtClusterBarrier(WarpState* warp, uint32_t mask);
void waitAtClusterBarrier(WarpState* warp, uint32_t mask);
// Lanes have left the kernel: nobody waits for them any more.
void leaveCluster(WarpState* warp, uint32_t lanes);
uint32_t arriveAtBarrier(WarpState* warp, uint32_t mask, uint32_t id, uint32_t count, uint32_t kind, uint32_t votes);

}  // namespace sonde::softgpu::exec
