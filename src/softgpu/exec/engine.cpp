// SPDX-License-Identifier: Apache-2.0
//
// Worker threads and the life of a grid.
#include <sched.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <thread>

#include "platform/clock.h"
#include "softgpu/exec/cost_model.h"
#include "softgpu/exec/cta.h"
#include "softgpu/exec/device_launch.h"
#include "softgpu/exec/device_memory.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/program_impl.h"
#include "softgpu/exec/time_limit.h"

namespace sonde::softgpu::exec {

namespace {

bool flag(const char* name) {
  const char* v = std::getenv(name);
  return v && *v && *v != '0';
}

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

// Transactions are part of what a source-level run counts.
CountLevel effectiveLevel(CountLevel level, bool sourceLevel) {
  return sourceLevel ? std::max(level, CountLevel::requests) : level;
}

class EngineImpl final : public Engine {
 public:
  CompileInfo compile(const Program& program, uint32_t kernel, CountLevel level, bool sourceLevel) override {
    CompileInfo info;
    static_cast<const ProgramImpl&>(program).compiled(kernel, effectiveLevel(level, sourceLevel), sourceLevel, &info);
    return info;
  }
  LaunchOutcome run(const LaunchRequest& request) override;
  uint32_t occupancy(const Program& program, uint32_t kernel, uint32_t blockThreads, uint64_t dynamicShared,
                     const model::DeviceModel& device) override;
  void afterForkInChild() override {
    // The threads are gone with the parent; what they held is abandoned.
    state_ = new State();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<GridRun*> grids;
    unsigned threads = 0;
    unsigned idle = 0;
  };
  void ensureThreads(State& state);
  void workerMain(State& state);
  void runBlocks(GridRun& grid, bool owner);
  static void runLaunched(GridRun& grid, Cta& cta);

  State* state_ = new State();
  std::atomic<uint64_t> serial_{0};
};

unsigned wantedThreads() {
  static const unsigned n = [] {
    if (const char* v = std::getenv("SONDE_THREADS"); v && std::atoi(v) > 0) return static_cast<unsigned>(std::atoi(v));
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set)) + 0u;
    return std::max(1u, std::thread::hardware_concurrency());
  }();
  return n;
}

void EngineImpl::ensureThreads(State& state) {
  // Under the mutex. The caller works as well, hence one fewer.
  while (state.threads + 1 < wantedThreads()) {
    ++state.threads;
    std::thread([this, &state] { workerMain(state); }).detach();
  }
}

void EngineImpl::workerMain(State& state) {
  prepareThreadForFaults();
  std::unique_lock lock(state.mutex);
  for (;;) {
    GridRun* grid = nullptr;
    for (GridRun* g : state.grids)
      if (g->nextUnit.load(std::memory_order_relaxed) < g->units && !g->failed.load(std::memory_order_relaxed)) {
        grid = g;
        break;
      }
    if (!grid) {
      ++state.idle;
      state.wake.wait(lock);
      --state.idle;
      continue;
    }
    grid->workers.fetch_add(1);
    lock.unlock();
    runBlocks(*grid, false);
    {
      std::lock_guard g(grid->mutex);
      grid->workers.fetch_sub(1);
      grid->done.notify_all();
    }
    lock.lock();
  }
}

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
void EngineImpl::runLaunched(GridRun& grid, Cta& cta) {
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

// Takes blocks until there are none left. A block that only waits (for another
// block, say) does not keep the others of its thread from starting.
void EngineImpl::runBlocks(GridRun& grid, bool) {
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

// What a grid has counted so far. Rows are written by their threads alone and
// may be looked at meanwhile: each value only grows.
CounterValues countersOf(GridRun& grid, bool finished, uint64_t* cycles) {
  const LaunchRequest& request = *grid.request;
  const jit::CounterPlan& plan = grid.kernel->counters;
  CounterValues out;
  out.instances = grid.caches ? std::max(grid.smCount, grid.caches->model().instances()) : grid.smCount;
  out.values.resize(size_t{out.instances} * kRawCounterCount);
  {
    std::lock_guard lock(grid.mutex);
    for (const auto& row : grid.counterRows)
      for (uint32_t sm = 0; sm < grid.smCount; ++sm)
        plan.fold(row.get() + size_t{sm} * plan.slots, out.values.data() + size_t{sm} * kRawCounterCount);
  }
  if (request.device) {
    const CostInput input{grid.smCount, grid.residentBlocks * grid.warpsPerBlock, request.smClockMHz, finished};
    const uint64_t total = applyCostModel(out.values, *request.device, input);
    if (cycles) *cycles = total;
  }
  if (grid.caches) grid.caches->model().addTo(out.values.data());
  return out;
}

LaunchOutcome EngineImpl::run(const LaunchRequest& request) {
  const auto& program = static_cast<const ProgramImpl&>(*request.program);
  GridRun grid;
  grid.outcome.startNs = platform::nowNs();
  CompileInfo info;
  const bool sourceLevel = request.instructions != nullptr;
  grid.kernel = program.compiled(request.kernel, effectiveLevel(request.count, sourceLevel), sourceLevel, &info);
  if (!grid.kernel) {
    grid.outcome.error = info.error;
    grid.outcome.message = info.message;
    grid.outcome.endNs = platform::nowNs();
    return std::move(grid.outcome);
  }
  prepareThreadForFaults();
  keepFaultHandlers(grid.outcome.startNs);
  grid.request = &request;
  grid.program = &program;
  grid.serial = ++serial_;
  grid.blocks = grid.units = request.grid.count();
  if (request.cluster.x) {
    grid.clusterSize = static_cast<uint32_t>(request.cluster.count());
    grid.units = grid.blocks / grid.clusterSize;
  }
  grid.threadsPerBlock = static_cast<uint32_t>(request.block.count());
  grid.warpsPerBlock = (grid.threadsPerBlock + kLanes - 1) / kLanes;
  grid.smCount = request.device ? std::max(1u, request.device->smCount) : 1;
  grid.sharedBytes = grid.kernel->staticSharedBytes + request.dynamicSharedBytes;
  uint64_t local = grid.kernel->localBytes;
  if (grid.kernel->recursive) local += request.stackBytes;
  grid.localStride = (local + 15) / 16 * 16;
  grid.fibers = request.cooperative || grid.clusterSize > 1 || grid.kernel->recursive ||
                (grid.kernel->mayYield && grid.warpsPerBlock > 1) || (grid.kernel->spins && grid.blocks > 1) ||
                grid.kernel->waitsForChildren;
  static const bool deterministic = flag("SONDE_DETERMINISTIC");
  grid.deterministic = deterministic;
  // The packed parameters, padded: code may read to the end of the last word.
  std::vector<uint8_t> params(std::max<size_t>(program.kernels()[request.kernel].paramBytes, request.params.size()) +
                              16);
  std::copy_n(reinterpret_cast<const uint8_t*>(request.params.data()), request.params.size(), params.data());
  grid.params = params.data();
  grid.globals = program.addressTable();

  const bool counting = request.count != CountLevel::off && request.counters;
  grid.counting = counting || sourceLevel;
  std::unique_ptr<CacheModel> caches;
  if (counting) {
    grid.residentBlocks = 1;
    if (request.device)
      grid.residentBlocks = std::max(
          1u, occupancy(program, request.kernel, grid.threadsPerBlock, request.dynamicSharedBytes, *request.device));
    if (request.count >= CountLevel::caches && request.device) {
      caches = CachePool::get().take(*request.device);
      grid.caches = std::make_unique<CacheRun>(
          *caches, grid.smCount, request.sms, wantedThreads(),
          !request.cooperative && grid.clusterSize == 1 && !(grid.kernel->spins && grid.blocks > 1), grid.failed);
    }
    if (request.monitor) request.monitor->attach([&grid] { return countersOf(grid, false, nullptr); });
  }

  if (grid.blocks > 0 && grid.warpsPerBlock > 0) {
    State& state = *state_;
    const bool alone = grid.units == 1 || grid.deterministic || wantedThreads() == 1;
    if (!alone) {
      std::lock_guard lock(state.mutex);
      ensureThreads(state);
      state.grids.push_back(&grid);
      for (unsigned i = 0; i < std::min<uint64_t>(state.threads, grid.units - 1); ++i) state.wake.notify_one();
    }
    runBlocks(grid, true);
    if (!alone) {
      {
        std::lock_guard lock(state.mutex);
        std::erase(state.grids, &grid);
      }
      std::unique_lock lock(grid.mutex);
      grid.done.wait(lock, [&] { return grid.workers.load() == 0; });
    }
  }

  if (sourceLevel) {
    std::vector<uint64_t> slots(grid.kernel->counters.slots);
    for (const auto& row : grid.counterRows)
      for (size_t at = 0; at < size_t{grid.smCount} * slots.size(); at += slots.size())
        for (size_t i = 0; i < slots.size(); ++i) slots[i] += row[at + i];
    program.describe(grid.kernel->counters, slots, *request.instructions);
  }
  if (counting) {
    CounterValues values = countersOf(grid, true, &grid.outcome.cycles);
    CounterValues& out = *request.counters;
    out.instances = std::max(out.instances, values.instances);
    if (out.values.size() < values.values.size()) out.values.resize(values.values.size());
    for (size_t i = 0; i < values.values.size(); ++i) out.values[i] += values.values[i];
    if (request.monitor) request.monitor->settle(std::move(values));
    if (caches) {
      grid.caches.reset();
      CachePool::get().give(std::move(caches));
    }
  }
  if (!grid.printed.empty() && request.print) {
    std::sort(grid.printed.begin(), grid.printed.end(), [](const auto& a, const auto& b) { return a.block < b.block; });
    for (const auto& p : grid.printed) request.print(p.text);
  }
  grid.outcome.endNs = platform::nowNs();
  return std::move(grid.outcome);
}

uint32_t EngineImpl::occupancy(const Program& program, uint32_t kernel, uint32_t blockThreads, uint64_t dynamicShared,
                               const model::DeviceModel& d) {
  const KernelInfo& k = program.kernels()[kernel];
  if (blockThreads == 0 || blockThreads > k.maxThreadsPerBlock || blockThreads > d.maxThreadsPerBlock) return 0;
  const uint32_t warps = (blockThreads + kLanes - 1) / kLanes;
  uint64_t blocks = std::min(d.maxBlocksPerSm, d.maxWarpsPerSm / warps);
  // Registers come in units of 256 for each warp. Their number is an estimate, which must not say that nothing fits.
  const uint64_t perWarp = (uint64_t{k.registersPerThread} * kLanes + 255) / 256 * 256;
  if (perWarp) blocks = std::min<uint64_t>(blocks, std::max<uint64_t>(1, d.registersPerSm / perWarp / warps));
  const uint64_t shared = (k.staticSharedBytes + dynamicShared + d.sharedReservedPerBlock + 127) / 128 * 128;
  if (k.staticSharedBytes + dynamicShared > d.sharedPerBlockOptin) return 0;
  if (shared) blocks = std::min<uint64_t>(blocks, d.sharedPerSm / shared);
  return static_cast<uint32_t>(blocks);
}

}  // namespace

Engine& Engine::get() {
  static Engine* engine = new EngineImpl();  // its threads outlive static destructors
  return *engine;
}

}  // namespace sonde::softgpu::exec
