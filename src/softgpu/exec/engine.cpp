// SPDX-License-Identifier: Apache-2.0
//
// Worker threads and the life of a grid.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <thread>

#include "platform/clock.h"
#include "softgpu/exec/cost_model.h"
#include "softgpu/exec/cta.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/program_impl.h"
#include "softgpu/exec/run_blocks.h"

namespace sonde::softgpu::exec {

namespace {

bool flag(const char* name) {
  const char* v = std::getenv(name);
  return v && *v && *v != '0';
}

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
    runBlocks(*grid);
    {
      std::lock_guard g(grid->mutex);
      grid->workers.fetch_sub(1);
      grid->done.notify_all();
    }
    lock.lock();
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
                grid.kernel->waitsForChildren || grid.kernel->lanesWait;
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
    runBlocks(grid);
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
