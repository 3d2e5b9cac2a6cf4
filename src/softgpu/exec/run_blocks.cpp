// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/run_blocks.h"

#include <sched.h>
#include <xmmintrin.h>

#include <memory>
#include <vector>

#include "softgpu/exec/cta.h"
#include "softgpu/exec/device_launch.h"
#include "softgpu/exec/device_memory.h"
#include "softgpu/exec/time_limit.h"

namespace sonde::softgpu::exec {

namespace {

// What a thread needs to run blocks: CTAs to reuse.
struct WorkerContext {
  struct Place {
    std::unique_ptr<Cta> cta = std::make_unique<Cta>();
    unsigned slot = DeviceScratch::get().takeSlots();
    ~Place() { DeviceScratch::get().giveSlots(slot); }
  };
  // The blocks of a cluster: their shared memory lies side by side.
  struct ClusterPlace {
    explicit ClusterPlace(uint32_t size) : slot(DeviceScratch::get().takeSlots(size)), ctas(size) {
      for (auto& c : ctas) {
        c = std::make_unique<Cta>();
        c->cluster = &group;
        group.ctas.push_back(c.get());
      }
    }
    ~ClusterPlace() { DeviceScratch::get().giveSlots(slot, static_cast<unsigned>(ctas.size())); }
    unsigned slot;
    ClusterGroup group;
    std::vector<std::unique_ptr<Cta>> ctas;
  };
  std::vector<std::unique_ptr<Place>> places;
  std::vector<std::unique_ptr<ClusterPlace>> clusters;  // all of one size
  Place& place(size_t i) {
    while (places.size() <= i) places.push_back(std::make_unique<Place>());
    return *places[i];
  }
  ClusterPlace& clusterPlace(size_t i, uint32_t size) {
    if (!clusters.empty() && clusters[0]->ctas.size() != size) clusters.clear();
    while (clusters.size() <= i) clusters.push_back(std::make_unique<ClusterPlace>(size));
    return *clusters[i];
  }
};

// The context of the run at hand: a block that waits for kernels it launched has
// them run by its thread, in another context.
class ContextUse {
 public:
  ContextUse() : all_(ofThread()) {
    if (all_.depth == all_.contexts.size()) all_.contexts.push_back(std::make_unique<WorkerContext>());
    context_ = all_.contexts[all_.depth++].get();
  }
  ~ContextUse() { --all_.depth; }
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;
  WorkerContext& operator*() const { return *context_; }

 private:
  struct OfThread {
    std::vector<std::unique_ptr<WorkerContext>> contexts;
    size_t depth = 0;
  };
  static OfThread& ofThread() {
    thread_local OfThread contexts;
    return contexts;
  }
  OfThread& all_;
  WorkerContext* context_;
};

// Compiled code counts on rounding to nearest and on subnormal numbers, whatever
// the application has set for its threads (workers inherit that).
class DeviceFloatControl {
 public:
  DeviceFloatControl() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }  // all exceptions masked
  ~DeviceFloatControl() { _mm_setcsr(saved_); }
  DeviceFloatControl(const DeviceFloatControl&) = delete;
  DeviceFloatControl& operator=(const DeviceFloatControl&) = delete;

 private:
  unsigned saved_;
};

// The kernels that a block waits for, on this thread; then the block goes on.
void runLaunched(GridRun& grid, Cta& cta) {
  std::string message;
  const WarpState& w = cta.states[0];
  const int32_t error = grid.request->launches->runBlock(cta.block, {w.ctaid[0], w.ctaid[1], w.ctaid[2]}, &message);
  if (error) {
    std::lock_guard lock(grid.mutex);
    grid.failed = true;
    if (!grid.outcome.error) {
      grid.outcome.error = error;
      grid.outcome.message = message;
    }
  }
  cta.resume();
}

// Blocks of one cluster by their rank: places in the grid.
uint64_t blockOfCluster(const GridRun& grid, uint64_t cluster, uint32_t rank) {
  const Dim3 &g = grid.request->grid, &c = grid.request->cluster;
  const uint64_t nx = g.x / c.x, ny = g.y / c.y;
  const uint64_t x = cluster % nx * c.x + rank % c.x;
  const uint64_t y = cluster / nx % ny * c.y + rank / c.x % c.y;
  const uint64_t z = cluster / nx / ny * c.z + rank / c.x / c.y;
  return x + g.x * (y + g.y * z);
}

// Clusters one after the other; a cluster that waits for another one does not
// keep the others of its thread from starting.
template <class Start, class Launched, class Finish>
void runClusters(GridRun& grid, WorkerContext& context, Start&& start, Launched&& runLaunched, Finish&& finish) {
  const uint32_t size = grid.clusterSize;
  if (grid.caches) grid.caches->neverWait();
  auto begin = [&](WorkerContext::ClusterPlace& place) {
    if (grid.failed.load(std::memory_order_relaxed)) return false;
    const uint64_t unit = grid.nextUnit.fetch_add(1, std::memory_order_relaxed);
    if (unit >= grid.units) return false;
    for (uint32_t r = 0; r < size; ++r)
      if (!place.ctas[r]->attach(grid, place.slot + r, place.slot)) {
        grid.outOfMemory();
        return false;
      }
    for (uint32_t r = 0; r < size; ++r) start(*place.ctas[r], blockOfCluster(grid, unit, r));
    return true;
  };
  // finished: the whole cluster has ended.
  auto step = [&](WorkerContext::ClusterPlace& place) {
    bool progressed = false, open = false, blocked = true;
    for (auto& cta : place.ctas) {
      if (!cta->active) continue;
      const Cta::Step s = cta->step();
      if (s == Cta::Step::finished) {
        // Its shared memory stays until the others have ended too.
        cta->active = false;
        progressed = true;
        continue;
      }
      open = true;
      if (s == Cta::Step::waiting) runLaunched(*cta);
      progressed |= s == Cta::Step::progressed || s == Cta::Step::waiting;
      blocked &= s == Cta::Step::blocked;
    }
    if (open && blocked && !progressed && !grid.failed.load(std::memory_order_relaxed))
      for (auto& cta : place.ctas)
        if (cta->active) {
          cta->reportDeadlock();
          break;
        }
    if (!open || grid.failed.load(std::memory_order_relaxed)) {
      for (auto& cta : place.ctas) finish(*cta);
      return Cta::Step::finished;
    }
    return progressed ? Cta::Step::progressed : Cta::Step::idle;
  };
  size_t resident = 0;
  bool more = true;
  uint32_t idleRounds = 0;
  const uint32_t patience = grid.request->cooperative ? 0 : 64;
  IdleWatch watch;
  while (true) {
    if (resident == 0 || (more && idleRounds > patience)) {
      if (more && begin(context.clusterPlace(resident, size))) {
        ++resident;
        idleRounds = 0;
      } else {
        more = false;
        if (resident == 0) return;
      }
    }
    bool progressed = false;
    for (size_t i = 0; i < resident;) {
      const Cta::Step s = step(*context.clusters[i]);
      if (s == Cta::Step::finished) {
        std::swap(context.clusters[i], context.clusters[--resident]);
        progressed = true;
        continue;
      }
      progressed |= s == Cta::Step::progressed;
      ++i;
    }
    if (progressed) {
      idleRounds = 0;
      watch.progressed();
    } else {
      ++idleRounds;
      if (!more || idleRounds > patience)
        watch.idle(grid, [&] {
          std::vector<Cta*> blocks;
          for (size_t i = 0; i < resident; ++i)
            for (auto& cta : context.clusters[i]->ctas) blocks.push_back(cta.get());
          return blocks;
        });
      if (!more || idleRounds > patience) sched_yield();
    }
  }
}

}  // namespace

void runBlocks(GridRun& grid) {
  const DeviceFloatControl floatControl;
  const ContextUse use;
  WorkerContext& context = *use;
  const bool counting = grid.counting;
  uint64_t* row = nullptr;
  const uint64_t slots = grid.kernel->counters.slots;
  if (counting) {
    auto memory = std::make_unique<uint64_t[]>(slots * grid.smCount);
    row = memory.get();
    std::lock_guard lock(grid.mutex);
    grid.counterRows.push_back(std::move(memory));
  }
  auto begin = [&](WorkerContext::Place& place, bool alone) {
    if (grid.failed.load(std::memory_order_relaxed)) return false;
    if (grid.caches) {
      if (alone)
        grid.caches->waitForRoom();
      else
        grid.caches->neverWait();
    }
    const uint64_t block = grid.nextUnit.fetch_add(1, std::memory_order_relaxed);
    if (block >= grid.units) return false;
    Cta& cta = *place.cta;
    if (!cta.attach(grid, place.slot, place.slot)) {
      grid.outOfMemory();
      return false;
    }
    const uint32_t sm = grid.smOf(block);
    cta.start(block, row ? row + sm * slots : nullptr, sm);
    return true;
  };
  auto finish = [&](Cta& cta) {
    cta.active = false;
    if (grid.caches) grid.caches->finish(cta.block, cta.cacheLog);
    if (cta.printBuffer.empty()) return;
    std::lock_guard lock(grid.mutex);
    grid.printed.push_back({cta.block, std::string(cta.printBuffer.begin(), cta.printBuffer.end())});
    cta.printBuffer.clear();
  };
  if (grid.clusterSize > 1) {
    runClusters(
        grid, context,
        [&](Cta& cta, uint64_t block) {
          const uint32_t sm = grid.smOf(block);
          cta.start(block, row ? row + sm * slots : nullptr, sm);
        },
        [&](Cta& cta) { runLaunched(grid, cta); }, finish);
    return;
  }
  BlockTimes times;
  if (!grid.fibers) {
    WorkerContext::Place& place = context.place(0);
    while (begin(place, true)) {
      place.cta->step();
      times.ended(grid, place.cta->states[0]);
      finish(*place.cta);
    }
    return;
  }
  IdleWatch watch;
  size_t resident = 0;
  bool more = true;
  uint32_t idleRounds = 0;
  const uint32_t patience = grid.request->cooperative ? 0 : 64;
  while (true) {
    if (resident == 0 || (more && idleRounds > patience)) {
      if (more && begin(context.place(resident), resident == 0)) {
        ++resident;
        idleRounds = 0;
      } else {
        more = false;
        if (resident == 0) return;
      }
    }
    bool progressed = false;
    for (size_t i = 0; i < resident;) {
      const Cta::Step step = context.places[i]->cta->step();
      if (step == Cta::Step::finished) {
        times.ended(grid, context.places[i]->cta->states[0]);
        finish(*context.places[i]->cta);
        std::swap(context.places[i], context.places[resident - 1]);
        --resident;
        progressed = true;
        continue;
      }
      if (step == Cta::Step::waiting) runLaunched(grid, *context.places[i]->cta);
      progressed |= step != Cta::Step::idle;
      ++i;
    }
    if (progressed) {
      idleRounds = 0;
      watch.progressed();
    } else if (resident) {
      ++idleRounds;
      if (!more || idleRounds > patience)
        watch.idle(grid, [&] {
          std::vector<Cta*> blocks;
          for (size_t i = 0; i < resident; ++i) blocks.push_back(context.places[i]->cta.get());
          return blocks;
        });
      if (!more || idleRounds > patience) sched_yield();
      if (grid.failed.load(std::memory_order_relaxed)) more = false;
    }
  }
}

}  // namespace sonde::softgpu::exec
