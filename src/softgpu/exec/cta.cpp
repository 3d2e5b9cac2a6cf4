// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/cta.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "softgpu/exec/device_memory.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/mbarrier.h"
#include "softgpu/exec/program_impl.h"
#include "softgpu/exec/time_limit.h"
#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::exec {

__thread Cta* currentCta __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

void warpMain(void* argument) {
  auto* warp = static_cast<WarpState*>(argument);
  Cta& cta = *warp->cta;
  fiberStarted(*cta.cameFrom);
  cta.grid->kernel->entry(warp, warp->initialMask, nullptr, nullptr);
  WarpControl& control = cta.control[warp->warpid];
  leaveCluster(warp, ~0u);
  control.status = WarpStatus::done;
  --cta.liveWarps;
  switchFiber(control.fiber, cta.scheduler, true);
  __builtin_unreachable();
}

}  // namespace

Cta::Cta() = default;

Cta::~Cta() {
  for (WarpControl& c : control) releaseFiber(c.fiber);
}

bool Cta::attach(GridRun& g, unsigned slot, unsigned clusterSlot) {
  grid = &g;
  if (attachedSerial_ == g.serial) return true;
  attachedSerial_ = 0;
  fibers = g.fibers;
  warps = g.warpsPerBlock;
  if (warps > capacity_) {
    storage_ = std::make_unique<WarpState[]>(warps);
    for (WarpControl& c : control) releaseFiber(c.fiber);
    control = std::vector<WarpControl>(warps);
    capacity_ = warps;
  }
  states = storage_.get();
  const auto& space = memory::AddressSpace::get();
  uint64_t sharedBase = 0, localBase = 0;
  if (!cluster) {
    alone_.ctas = {this};
    cluster = &alone_;
  }
  if (!DeviceScratch::get().shared(slot, g.sharedBytes, sharedBase)) return false;
  const uint64_t perWarp = g.localStride * kLanes;
  if (!DeviceScratch::get().local(slot, perWarp * warps + g.kernel->paramCopyBytes, localBase)) return false;
  const uint64_t paramAt = localBase + perWarp * warps;
  if (g.kernel->paramCopyBytes && g.params) std::memcpy(space.deviceView(paramAt), g.params, g.kernel->paramCopyBytes);
  if (fibers)
    for (uint32_t w = 0; w < warps; ++w)
      if (!control[w].stack.reserve(g.kernel->stackBytes)) return false;

  const LaunchRequest& r = *g.request;
  const uint32_t threads = g.threadsPerBlock;
  for (uint32_t w = 0; w < warps; ++w) {
    WarpState& s = states[w];
    std::memset(static_cast<void*>(&s), 0, sizeof s);
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t linear = w * kLanes + l;
      s.tid[0][l] = static_cast<int32_t>(linear % r.block.x);
      s.tid[1][l] = static_cast<int32_t>(linear / r.block.x % r.block.y);
      s.tid[2][l] = static_cast<int32_t>(linear / r.block.x / r.block.y);
      if (linear < threads) s.initialMask |= 1u << l;
    }
    const Dim3* from[] = {&r.grid, &r.block};
    uint32_t* to[] = {s.nctaid, s.ntid};
    for (int i = 0; i < 2; ++i) {
      to[i][0] = from[i]->x;
      to[i][1] = from[i]->y;
      to[i][2] = from[i]->z;
    }
    const bool cluster = r.cluster.x != 0;
    const uint32_t c[3] = {cluster ? r.cluster.x : 1, cluster ? r.cluster.y : 1, cluster ? r.cluster.z : 1};
    const uint32_t n[3] = {r.grid.x, r.grid.y, r.grid.z};
    for (int i = 0; i < 3; ++i) {
      s.clusterNctaid[i] = c[i];
      s.nclusterid[i] = n[i] / c[i];
    }
    s.clusterSize = c[0] * c[1] * c[2];
    s.explicitCluster = cluster;
    s.nsmid = g.smCount;
    s.warpid = w;
    s.nwarpid = (r.device ? r.device->maxWarpsPerSm : 64);
    s.gridid = r.gridId;
    s.gridWorkspace = r.gridWorkspace;
    s.dynamicSharedBytes = r.dynamicSharedBytes;
    s.totalSharedBytes = g.sharedBytes;
    s.windowBase = space.all.base;
    s.windowSize = space.all.size;
    s.deviceDelta = static_cast<uint64_t>(space.deviceDelta);
    s.sharedBase = sharedBase;
    s.clusterBase = sharedBase - (slot - clusterSlot) * kSharedStride;
    s.sharedWindowBase = space.shared.base;
    s.sharedWindowSize = space.shared.size;
    s.localBase = localBase + perWarp * w;
    s.localStride = g.localStride;
    s.localLimit = static_cast<uint32_t>(g.localStride);
    s.localWindowBase = space.local.base;
    s.localWindowSize = space.local.size;
    s.paramGeneric = paramAt;
    s.params = g.params;
    s.globals = g.globals;
    s.cta = this;
  }
  attachedSerial_ = g.serial;
  return true;
}

void Cta::start(uint64_t index, uint64_t* counters, uint32_t sm) {
  block = index;
  const Dim3& n = grid->request->grid;
  const auto x = static_cast<uint32_t>(index % n.x);
  const auto y = static_cast<uint32_t>(index / n.x % n.y);
  const auto z = static_cast<uint32_t>(index / n.x / n.y);
  liveWarps = warps;
  dead = false;
  active = true;
  // The same for all warps; divisions are what a block of an empty kernel would cost most.
  const uint32_t c[3] = {x, y, z};
  uint32_t clusterOf[3], inCluster[3];
  const uint32_t* size = states[0].clusterNctaid;
  for (int i = 0; i < 3; ++i) {
    clusterOf[i] = size[i] == 1 ? c[i] : c[i] / size[i];
    inCluster[i] = c[i] - clusterOf[i] * size[i];
  }
  const uint32_t rank = inCluster[0] + size[0] * (inCluster[1] + size[1] * inCluster[2]);
  // Blocks take the places of an SM in turn, and with them its local memory.
  const uint64_t place =
      grid->caches ? sm * uint64_t{grid->residentBlocks} + index / grid->smsUsed() % grid->residentBlocks : 0;
  for (uint32_t w = 0; w < warps; ++w) {
    WarpState& s = states[w];
    for (int i = 0; i < 3; ++i) {
      s.ctaid[i] = c[i];
      s.clusterid[i] = clusterOf[i];
      s.clusterCtaid[i] = inCluster[i];
    }
    s.clusterRank = rank;
    s.smid = sm;
    s.counters = counters;
    s.cacheLog = grid->caches ? &cacheLog : nullptr;
    s.localLine = kLocalLines | ((place * warps + w) * (grid->localStride / 4) & (kLocalLines - 1));
    s.localTop = 0;
    s.timeBudget = kTimeBudget;
    s.liveMask = s.initialMask;
  }
  if (checks().race) {
    if (!shadow) shadow = std::make_unique<SharedShadow>();
    shadow->begin(grid->sharedBytes);
  }
  if (counters) {
    addCount(counters, RawCounter::blocks_launched, 1);
    addCount(counters, RawCounter::warps_launched, warps);
    addCount(counters, RawCounter::threads_launched, grid->threadsPerBlock);
  }
  threadErrors.clear();
  deviceCalls = 0;
  if (!fibers) return;
  for (Barrier& b : barriers) b = {};
  if (cluster->ctas.front() == this) {
    cluster->liveWarps = warps * static_cast<uint32_t>(cluster->ctas.size());
    cluster->arrivedWarps = 0;
  }
  for (uint32_t w = 0; w < warps; ++w) {
    control[w].status = WarpStatus::ready;
    control[w].clusterArrived = 0;
    control[w].mbarrier = nullptr;
    control[w].split = nullptr;
    for (const auto& group : control[w].groups) group->used = false;
    control[w].mbarrierWaits = control[w].mbarrierSeen = 0;
    control[w].clusterComplete = false;
    prepareFiber(control[w].fiber, control[w].stack, &warpMain, &states[w], w);
  }
}

Cta::Step Cta::step() {
  if (fibers) return stepFibers();
  currentCta = this;
  const WarpFunction entry = grid->kernel->entry;
  if (_setjmp(escape) == 0) {
    for (uint32_t w = 0; w < warps; ++w) {
      running = &states[w];
      entry(running, running->initialMask, nullptr, nullptr);
    }
  }
  running = nullptr;
  currentCta = nullptr;
  return Step::finished;
}

uint32_t Cta::takeNext(uint32_t w) {
  for (; w < warps; ++w) {
    WarpControl& c = control[w];
    if (c.status != WarpStatus::ready && c.status != WarpStatus::yielded) continue;
    wasReady_ = c.status == WarpStatus::ready;
    c.status = WarpStatus::ready;
    running = &states[w];
    break;
  }
  return w;
}

void Cta::leave(WarpControl& from) {
  progressed_ |= wasReady_ || from.status != WarpStatus::yielded;
  // Straight to the next warp: half the switches, and the processor foresees where each returns to.
  const uint32_t next = takeNext(running->warpid + 1);
  cameFrom = &from.fiber;
  switchFiber(from.fiber, next < warps ? control[next].fiber : scheduler);
}

Cta::Step Cta::stepFibers() {
  bool runnable = false;
  progressed_ = false;
  for (uint32_t w = 0; !dead && (w = takeNext(w)) < warps; ++w) {
    runnable = true;
    currentCta = this;
    cameFrom = &scheduler;
    switchFiber(scheduler, control[w].fiber);
    w = running->warpid;  // the last one of those that ran
    running = nullptr;
    currentCta = nullptr;
    if (control[w].status == WarpStatus::done) {
      progressed_ = true;
      // A warp that has ended counts as arrived where all warps are expected.
      for (Barrier& b : barriers)
        if (b.waiting && b.expected == 0 && b.arrivedWarps >= liveWarps) releaseBarrier(*this, b);
    }
  }
  if (dead || liveWarps == 0) return Step::finished;
  if (!runnable) {
    for (uint32_t w = 0; w < warps; ++w)
      if (control[w].status == WarpStatus::atChildren) return Step::waiting;
    if (cluster->ctas.size() > 1) return Step::blocked;
    reportDeadlock();
    return Step::finished;
  }
  return progressed_ ? Step::progressed : Step::idle;
}

void Cta::resume() {
  for (uint32_t w = 0; w < warps; ++w)
    if (control[w].status == WarpStatus::atChildren) control[w].status = WarpStatus::ready;
}

bool Cta::onlyWaits() {
  bool any = false, only = true;
  for (uint32_t w = 0; w < warps; ++w) {
    WarpControl& c = control[w];
    const bool waits = c.mbarrierWaits != c.mbarrierSeen;
    c.mbarrierSeen = c.mbarrierWaits;
    if (c.status == WarpStatus::done || c.status == WarpStatus::atBarrier || c.status == WarpStatus::atClusterBarrier)
      continue;
    only &= waits;
    any |= waits;
  }
  return any && only;
}

void Cta::reportDeadlock() {
  // Name one waiting warp, and who waits where.
  std::string text;
  const WarpState* first = nullptr;
  auto add = [&](uint32_t w) {
    if (!first) first = &states[w];
    text += fmt::format(" {} ({})", w, grid->program->place(states[w].position));
  };
  for (uint32_t id = 0; id < kBarriers; ++id) {
    if (!barriers[id].waiting) continue;
    text +=
        fmt::format("{}barrier {} has {} of {} threads; waiting warps:", text.empty() ? "" : "; ", id,
                    barriers[id].arrivedThreads, barriers[id].expected ? barriers[id].expected : liveWarps * kLanes);
    for (uint32_t w = 0; w < warps; ++w)
      if (control[w].status == WarpStatus::atBarrier && control[w].barrier == id) add(w);
  }
  bool atCluster = false;
  for (uint32_t w = 0; w < warps; ++w) {
    if (control[w].status != WarpStatus::atClusterBarrier) continue;
    if (!atCluster)
      text += fmt::format("{}the cluster's barrier has {} of {} warps; waiting warps:", text.empty() ? "" : "; ",
                          cluster->arrivedWarps, cluster->liveWarps);
    atCluster = true;
    add(w);
  }
  std::set<const volatile uint64_t*> mbarriers;
  for (uint32_t w = 0; w < warps; ++w)
    if (control[w].status == WarpStatus::yielded && control[w].mbarrier) mbarriers.insert(control[w].mbarrier);
  const auto& space = memory::AddressSpace::get();
  for (const auto* object : mbarriers) {
    const uint64_t address = reinterpret_cast<uint64_t>(object) - static_cast<uint64_t>(space.deviceDelta);
    if (!space.shared.contains(address, 8)) continue;
    const Mbarrier b(*object);
    const bool own = address - states[0].sharedBase < states[0].sharedWindowSize;
    text += fmt::format("{}the mbarrier at {} 0x{:x} has {} of {} arrivals", text.empty() ? "" : "; ",
                        own ? "shared address" : "address", own ? address - states[0].sharedBase : address,
                        b.expected - std::min(b.pending, b.expected), b.expected);
    if (b.bytes != 0) text += fmt::format(" and waits for {} more bytes", b.bytes);
    text += "; waiting warps:";
    for (uint32_t w = 0; w < warps; ++w)
      if (control[w].status == WarpStatus::yielded && control[w].mbarrier == object) add(w);
  }
  if (!first) first = &states[0];
  recordFault(*grid, *first, kErrorTimeout, 0, 0, fmt::format("deadlock: {}", text).c_str());
  dead = true;
}

void releaseBarrier(Cta& cta, Barrier& b) {
  if (cta.shadow) cta.shadow->barrier();
  const auto id = static_cast<uint32_t>(&b - cta.barriers);
  for (uint32_t w = 0; w < cta.warps; ++w) {
    WarpControl& c = cta.control[w];
    if (c.status != WarpStatus::atBarrier || c.barrier != id) continue;
    c.status = WarpStatus::ready;
    c.barrierResult = c.barrierResult == 2 ? b.popc : c.barrierResult == 3 ? b.andBits : b.orBits;
  }
  b = {};
}

void yieldWarp(WarpState* warp) {
  Cta& cta = *warp->cta;
  if (cta.grid->failed.load(std::memory_order_relaxed)) leaveWarp(warp);
  checkTime(warp);
  if (!cta.fibers) {
    sched_yield();
    return;
  }
  if (yieldToNextGroup(warp)) return;
  WarpControl& c = cta.control[warp->warpid];
  c.status = WarpStatus::yielded;
  cta.leave(c);
}

void waitForChildren(WarpState* warp) {
  Cta& cta = *warp->cta;
  WarpControl& c = cta.control[warp->warpid];
  c.status = WarpStatus::atChildren;
  cta.leave(c);
  if (cta.grid->failed.load(std::memory_order_relaxed)) leaveWarp(warp);
}

namespace {

void finishClusterBarrier(ClusterGroup& g) {
  if (g.arrivedWarps == 0 || g.arrivedWarps < g.liveWarps) return;
  g.arrivedWarps = 0;
  for (Cta* cta : g.ctas)
    for (uint32_t w = 0; w < cta->warps; ++w) {
      WarpControl& c = cta->control[w];
      c.clusterArrived = 0;
      c.clusterComplete = false;
      if (c.status == WarpStatus::atClusterBarrier) c.status = WarpStatus::ready;
    }
}

void noteClusterArrival(ClusterGroup& g, WarpControl& c, uint32_t live) {
  const bool complete = c.clusterArrived != 0 && (live & ~c.clusterArrived) == 0;
  if (complete != c.clusterComplete) g.arrivedWarps += complete ? 1 : ~0u;
  c.clusterComplete = complete;
}

}  // namespace

void arriveAtClusterBarrier(WarpState* warp, uint32_t mask) {
  Cta& cta = *warp->cta;
  if (!cta.fibers) return;  // the only warp
  WarpControl& c = cta.control[warp->warpid];
  if (c.clusterArrived & mask)
    raiseFault(warp, kErrorIllegalInstruction, c.clusterArrived & mask, 0,
               "a second arrival at the cluster's barrier without a wait between them");
  c.clusterArrived |= mask;
  noteClusterArrival(*cta.cluster, c, warp->liveMask);
  finishClusterBarrier(*cta.cluster);
}

void waitAtClusterBarrier(WarpState* warp, uint32_t mask) {
  Cta& cta = *warp->cta;
  if (!cta.fibers) return;
  WarpControl& c = cta.control[warp->warpid];
  while (c.clusterArrived & mask) {
    c.status = WarpStatus::atClusterBarrier;
    cta.leave(c);
  }
}

void leaveCluster(WarpState* warp, uint32_t lanes) {
  Cta& cta = *warp->cta;
  if (!cta.fibers) return;
  ClusterGroup& g = *cta.cluster;
  WarpControl& c = cta.control[warp->warpid];
  if (warp->liveMask == 0) return;  // has ended already
  warp->liveMask &= ~lanes;
  c.clusterArrived &= ~lanes;
  noteClusterArrival(g, c, warp->liveMask);
  if (warp->liveMask == 0) --g.liveWarps;
  finishClusterBarrier(g);
}

uint32_t arriveAtBarrier(WarpState* warp, uint32_t mask, uint32_t id, uint32_t count, uint32_t kind, uint32_t votes) {
  Cta& cta = *warp->cta;
  if (id >= kBarriers) raiseFault(warp, kErrorIllegalInstruction, mask, id, "a barrier number above 15");
  if (count % kLanes)
    raiseFault(warp, kErrorIllegalInstruction, mask, count, "a barrier thread count that is not a multiple of 32");
  const uint32_t here = warp->initialMask;
  if (!cta.fibers) {  // the only warp
    if (cta.shadow) cta.shadow->barrier();
    if (count > kLanes && kind != 1)
      raiseFault(warp, kErrorTimeout, mask, id, "a barrier that waits for more threads than the block has");
    return kind == 2   ? static_cast<uint32_t>(__builtin_popcount(votes & mask))
           : kind == 3 ? (votes & mask) == mask
                       : (votes & mask) != 0;
  }
  (void)here;
  Barrier& b = cta.barriers[id];
  WarpControl& c = cta.control[warp->warpid];
  if (b.arrivedWarps == 0) b.expected = count;
  b.arrivedWarps += 1;
  b.arrivedThreads += kLanes;
  if (votes & mask) b.popc += static_cast<uint32_t>(__builtin_popcount(votes & mask));
  b.andBits &= (votes & mask) == mask;
  b.orBits |= (votes & mask) != 0;
  const bool complete = b.expected ? b.arrivedThreads >= b.expected : b.arrivedWarps >= cta.liveWarps;
  if (kind == 1) {
    if (complete) releaseBarrier(cta, b);
    return 0;
  }
  if (complete) {
    const uint32_t result = kind == 2 ? b.popc : kind == 3 ? b.andBits : b.orBits;
    releaseBarrier(cta, b);
    return result;
  }
  b.waiting += 1;
  c.status = WarpStatus::atBarrier;
  c.barrier = id;
  c.barrierResult = kind;
  cta.leave(c);
  return c.barrierResult;
}

}  // namespace sonde::softgpu::exec
