// SPDX-License-Identifier: Apache-2.0
//
// Helpers for exchange between lanes, barriers, clocks and traps.
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "platform/clock.h"
#include "softgpu/exec/atomic_ops.h"
#include "softgpu/exec/cta.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/lane_groups.h"
#include "softgpu/exec/mbarrier.h"
#include "softgpu/exec/time_limit.h"

namespace sonde::softgpu::exec {

namespace {

void permute32(const uint32_t* in, const uint32_t* index, uint32_t* out) {
  uint32_t result[kLanes];
  for (uint32_t l = 0; l < kLanes; ++l) result[l] = in[index[l] & 31];
  std::memcpy(out, result, sizeof result);
}

void match(uint32_t mask, uint32_t all, const uint64_t* value, const uint32_t* members, uint32_t* out) {
  for (uint32_t l = 0; l < kLanes; ++l) out[l] = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    uint32_t same = 0;
    for (uint32_t n = mask & members[l]; n; n &= n - 1) {
      const auto k = static_cast<uint32_t>(__builtin_ctz(n));
      if (value[k] == value[l]) same |= 1u << k;
    }
    out[l] = all ? (same == (mask & members[l]) ? same : 0) : same;
  }
}

void redux(uint32_t mask, uint32_t what, const uint32_t* value, const uint32_t* members, uint32_t* out) {
  const uint32_t op = what & ~kReduxNan;
  auto f = [](uint32_t u) {
    float x;
    std::memcpy(&x, &u, 4);
    return x;
  };
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    bool first = true;
    uint32_t r = 0;
    for (uint32_t n = mask & members[l]; n; n &= n - 1) {
      const uint32_t v = value[__builtin_ctz(n)];
      if (first)
        r = v;
      else
        switch (op) {
          case 0: r += v; break;
          case 1: r = r < v ? r : v; break;
          case 2: r = r > v ? r : v; break;
          case 3: r = static_cast<int32_t>(r) < static_cast<int32_t>(v) ? r : v; break;
          case 4: r = static_cast<int32_t>(r) > static_cast<int32_t>(v) ? r : v; break;
          case 5: r &= v; break;
          case 6: r |= v; break;
          case 7: r ^= v; break;
          // As min and max: a NaN yields to a number, or wins with .NaN; -0 is below +0.
          default:
            if (std::isnan(f(v))) {
              if (what & kReduxNan) r = v;
            } else if (std::isnan(f(r))) {
              if (!(what & kReduxNan)) r = v;
            } else if (f(v) == f(r)) {
              r = op == 8 ? r | v : r & v;
            } else if (op == 8 ? f(v) < f(r) : f(v) > f(r)) {
              r = v;
            }
        }
      first = false;
    }
    if (op >= 8 && std::isnan(f(r))) r = 0x7fffffff;
    out[l] = r;
  }
}

uint32_t barrier(WarpState* w, uint32_t mask, uint32_t id, uint32_t count, uint32_t kind, uint32_t votes) {
  return arriveAtBarrier(w, mask, id, count, kind, votes);
}

void clusterBarrier(WarpState* w, uint32_t mask, uint32_t wait) {
  if (wait)
    waitAtClusterBarrier(w, mask);
  else
    arriveAtClusterBarrier(w, mask);
}

uint64_t clockValue(WarpState*) {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

void keepAddress(void*) {}

// Also ends warps of a grid that has failed elsewhere.
void lookAtTime(WarpState* w) {
  if (w->cta->grid->failed.load(std::memory_order_relaxed)) leaveWarp(w);
  checkTime(w);
}

uint64_t globalTimer() { return platform::nowNs(); }

void trapHelper(WarpState* w, uint32_t mask) { raiseFault(w, kErrorLaunchFailed, mask, 0, "a trap instruction"); }
void breakpoint(WarpState* w, uint32_t mask) {
  raiseFault(w, kErrorLaunchFailed, mask, 0, "a brkpt instruction without a debugger");
}
void badCall(WarpState* w, uint64_t token, uint32_t mask) {
  raiseFault(w, kErrorInvalidPc, mask, token, "an indirect call of something that is not a function, at");
}
void stackCheck(WarpState* w, uint32_t mask) {
  if (w->localTop > w->localLimit)
    raiseFault(w, kErrorIllegalAddress, mask, w->localTop,
               "the local stack is used up (see cudaLimitStackSize) at offset");
  // The host's stack for this warp.
  Cta& cta = *w->cta;
  if (cta.fibers) {
    const auto here = reinterpret_cast<std::byte*>(__builtin_frame_address(0));
    const WarpControl& c = cta.control[w->warpid];
    const FiberStack& stack = c.split ? c.split->current->stack : c.stack;
    if (here < stack.bottom() + 32 * 1024)
      raiseFault(w, kErrorIllegalAddress, mask, w->localTop, "the call stack is used up: recursion too deep");
  }
}

// Warps that try_wait has suspended. When the phase ends they are to be told so,
// whatever becomes of the barrier before they run again: a program may make it
// anew as soon as one thread has seen the end. All warps of a block are one host
// thread's.
struct SuspendedWarp {
  const WarpState* warp;
  uint64_t barrier;
  bool passed;
};
thread_local std::vector<SuspendedWarp> suspendedWarps;

void phaseEnded(uint64_t barrier) {
  for (SuspendedWarp& s : suspendedWarps) s.passed |= s.barrier == barrier;
}

// Lets the others run; has the phase of `barrier` ended meanwhile?
bool suspendAtPhase(WarpState* w, uint64_t barrier) {
  const auto mine = [&](const SuspendedWarp& s) { return s.warp == w; };
  std::erase_if(suspendedWarps, mine);  // of a warp that was ended while it waited
  suspendedWarps.push_back({w, barrier, false});
  yieldWarp(w);
  const auto it = std::find_if(suspendedWarps.begin(), suspendedWarps.end(), mine);
  const bool passed = it != suspendedWarps.end() && it->passed;
  std::erase_if(suspendedWarps, mine);
  return passed;
}

SONDE_DEVICE_CODE void mbarrier(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t what,
                                const uint64_t* amount, uint64_t* out) {
  const auto op = static_cast<MbarrierOp>(what >> 8 & 255);
  uint32_t waiting = 0;
  const volatile uint64_t* object = nullptr;  // of the first lane that waits
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    auto* p = static_cast<volatile uint64_t*>(resolveLane(w, what & 255, addresses[l], 8, l, true));
    const uint64_t old = *p;
    Mbarrier b(old);
    const uint64_t n = amount[l];
    out[l] = old;
    switch (op) {
      case MbarrierOp::init:
        b = Mbarrier(0);
        b.pending = b.expected = n & Mbarrier::kCount;
        break;
      case MbarrierOp::arriveDrop: b.expected -= n; [[fallthrough]];
      case MbarrierOp::arrive:
        if (n > b.pending)
          raiseFault(w, kErrorIllegalInstruction, 1u << l, addresses[l],
                     "more arrivals at an mbarrier than it expects");
        b.pending -= n;
        b.settle();
        break;
      case MbarrierOp::arriveExpect:
        if (b.pending == 0)
          raiseFault(w, kErrorIllegalInstruction, 1u << l, addresses[l],
                     "more arrivals at an mbarrier than it expects");
        b.bytes += static_cast<int64_t>(n);
        b.pending -= 1;
        b.settle();
        break;
      case MbarrierOp::expect: b.bytes += static_cast<int64_t>(n); break;
      case MbarrierOp::complete:
        b.bytes -= static_cast<int64_t>(n);
        b.settle();
        break;
      case MbarrierOp::testState: out[l] = (n >> 63) != b.phase; break;
      case MbarrierOp::testParity: out[l] = (n & 1) != b.phase; break;
    }
    if (op == MbarrierOp::testState || op == MbarrierOp::testParity) {
      waiting |= static_cast<uint32_t>(out[l] == 0) << l;
      if (!object && out[l] == 0) object = p;
      continue;
    }
    *p = b.pack();
    if (op != MbarrierOp::init && b.phase != Mbarrier(old).phase && !suspendedWarps.empty()) phaseEnded(addresses[l]);
  }
  if (!waiting) return;
  WarpControl& control = w->cta->control[w->warpid];
  control.mbarrier = object;
  ++control.mbarrierWaits;
  if (!(what >> 16 & 1)) return;
  const uint64_t barrier = addresses[__builtin_ctz(waiting)];
  if (!suspendAtPhase(w, barrier)) return;
  for (uint32_t m = waiting; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    if (addresses[l] == barrier) out[l] = 1;
  }
}

}  // namespace

std::span<const jit::RuntimeSymbol> warpHelpers() {
  static const jit::RuntimeSymbol symbols[] = {
      {"sonde_permute32", reinterpret_cast<void*>(&permute32)},
      {"sonde_match", reinterpret_cast<void*>(&match)},
      {"sonde_redux", reinterpret_cast<void*>(&redux)},
      {"sonde_barrier", reinterpret_cast<void*>(&barrier)},
      {"sonde_cluster_barrier", reinterpret_cast<void*>(&clusterBarrier)},
      {"sonde_cluster_leave", reinterpret_cast<void*>(&leaveCluster)},
      {"sonde_keep", reinterpret_cast<void*>(&keepAddress)},
      {"sonde_call_groups", reinterpret_cast<void*>(&callGroups)},
      {"sonde_step_call", reinterpret_cast<void*>(&stepCall)},
      {"sonde_yield", reinterpret_cast<void*>(&yieldWarp)},
      {"sonde_check_time", reinterpret_cast<void*>(&lookAtTime)},
      {"sonde_mbarrier", reinterpret_cast<void*>(&mbarrier)},
      {"sonde_clock", reinterpret_cast<void*>(&clockValue)},
      {"sonde_globaltimer", reinterpret_cast<void*>(&globalTimer)},
      {"sonde_trap", reinterpret_cast<void*>(&trapHelper)},
      {"sonde_breakpoint", reinterpret_cast<void*>(&breakpoint)},
      {"sonde_bad_call", reinterpret_cast<void*>(&badCall)},
      {"sonde_stack_check", reinterpret_cast<void*>(&stackCheck)},
  };
  return symbols;
}

}  // namespace sonde::softgpu::exec
