// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/calibration.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>
#include <utility>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_stamps.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/kernels.h"

namespace sonde::platform::nvidia {
namespace {

constexpr uint64_t kPatience = 20'000'000, kLoading = 2'000'000'000;  // ns
constexpr uint32_t kPings = 24;
constexpr unsigned kSlowTrips = 8;
constexpr unsigned kSpins = 128;  // results that fit the device buffer

// Our own module, stream and buffers in a context. Made once, never freed
// before the context goes.
struct Bench {
  CUmodule module = nullptr;
  CUfunction spin = nullptr, ping = nullptr, stamp = nullptr;
  CUstream streams[8] = {};           // like an application's
  CUstream stream = nullptr;          // of the highest priority
  CUdeviceptr times = 0;              // kSpins pairs, on the device
  volatile uint32_t* word = nullptr;  // pinned, seen by both
  volatile uint64_t* answers = nullptr;
  uint64_t* copy = nullptr;    // pinned
  CUevent anchors[2][3] = {};  // the anchor is the first of one of the rows
  unsigned nextAnchor = 0;
  bool anchored = false;
  double lastAnchor = 0;  // device time
  double leastLate = 1e9;
  unsigned lates = 0;
  uint32_t lastPing = 0;
  uint64_t bestTrip = 0;
  unsigned slowTrips = 0;  // in a row
  std::mutex mutex;
  bool built = false, usable = false;
};

struct State {
  std::mutex mutex;
  std::unordered_map<Context*, Bench*> benches;
  std::unordered_map<uint32_t, TimingConstants> constants;
  std::unordered_map<uint32_t, StampDelays> delays;
};
State& state() {
  static State& s = *new State;
  return s;
}

bool ok(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return true;
  debug("calibration: %s answers %d", what, static_cast<int>(result));
  return false;
}
#define TRY(call) \
  if (!ok(call, #call)) return false

bool build(Bench& b) {
  if (!own.cuModuleLoadData || !own.cuModuleGetFunction || !own.cuLaunchKernel || !own.cuStreamCreateWithPriority ||
      !own.cuMemHostAlloc || !own.cuMemAlloc || !own.cuMemcpyDtoHAsync || !own.cuStreamSynchronize)
    return false;
  TRY(own.cuModuleLoadData(&b.module, kCalibrationPtx));
  TRY(own.cuModuleGetFunction(&b.spin, b.module, "sonde_spin"));
  TRY(own.cuModuleGetFunction(&b.ping, b.module, "sonde_ping"));
  TRY(own.cuModuleGetFunction(&b.stamp, b.module, "sonde_stamp"));
  if (own.cuFuncLoad) TRY(own.cuFuncLoad(b.stamp));
  int least = 0, greatest = 0;
  if (own.cuCtxGetStreamPriorityRange) own.cuCtxGetStreamPriorityRange(&least, &greatest);
  TRY(own.cuStreamCreateWithPriority(&b.stream, CU_STREAM_NON_BLOCKING, greatest));
  for (CUstream& s : b.streams) TRY(own.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, 0));
  TRY(own.cuMemAlloc(&b.times, kSpins * 16));
  void* pinned = nullptr;
  TRY(own.cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  std::fill_n(static_cast<uint8_t*>(pinned), 4096, uint8_t{0});
  b.word = static_cast<volatile uint32_t*>(pinned);
  b.answers = reinterpret_cast<volatile uint64_t*>(static_cast<uint8_t*>(pinned) + 256);
  b.copy = reinterpret_cast<uint64_t*>(static_cast<uint8_t*>(pinned) + 1024);
  for (auto& row : b.anchors)
    for (CUevent& e : row) TRY(own.cuEventCreate(&e, CU_EVENT_DEFAULT));
  return true;
}

bool launchSpin(Bench& b, CUstream stream, unsigned index, uint64_t ns) {
  CUdeviceptr out = b.times + 16 * index;
  void* params[] = {&out, &ns};
  TRY(own.cuLaunchKernel(b.spin, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  return true;
}

// Not cuStreamSynchronize: with other work on the device it may take any time.
bool waitFor(CUevent event, uint64_t limitNs) {
  const uint64_t until = platform::nowNs() + limitNs;
  CUresult r;
  while ((r = own.cuEventQuery(event)) == CUDA_ERROR_NOT_READY) {
    if (platform::nowNs() > until) return false;
    sched_yield();
  }
  return r == CUDA_SUCCESS;
}

// The distance of the clocks, from the quickest of some round trips.
bool ping(Context& context, Bench& b, uint64_t patience) {
  uint32_t first = b.lastPing + 1, count = kPings;
  b.lastPing += kPings;
  uint64_t limit = patience;
  CUdeviceptr word = reinterpret_cast<CUdeviceptr>(b.word), out = reinterpret_cast<CUdeviceptr>(b.answers);
  for (uint32_t i = 0; i < kPings; ++i) b.answers[i] = 0;
  void* params[] = {&word, &out, &first, &count, &limit};
  TRY(own.cuLaunchKernel(b.ping, 1, 1, 1, 1, 1, 1, 0, b.stream, params, nullptr));
  uint64_t bestTrip = ~0ull, bestHost = 0, bestDevice = 0;
  bool answered = true;
  for (uint32_t i = 0; i < kPings && answered; ++i) {
    const uint64_t asked = platform::nowNs();
    __atomic_store_n(b.word, first + i, __ATOMIC_SEQ_CST);
    while (b.answers[i] == 0 && answered) answered = platform::nowNs() <= asked + patience;
    if (!answered) break;
    // Read behind the answer: one from before it may be old, when the thread lost its processor in between.
    const uint64_t heard = platform::nowNs();
    // The first also wait for the kernel to start and for the link to wake.
    if (i > 3 && heard - asked < bestTrip) {
      bestTrip = heard - asked;
      bestHost = asked + bestTrip / 2;
      bestDevice = b.answers[i];
    }
  }
  __atomic_store_n(b.word, first + kPings, __ATOMIC_SEQ_CST);  // nobody waits any longer
  if (!answered) {
    debug("calibration: the device does not answer");
    return false;
  }
  // A host thread that lost its processor meanwhile has nothing to tell; but if it goes on, the way has become longer.
  const bool slow = b.bestTrip != 0 && bestTrip > b.bestTrip + b.bestTrip / 4 + 100;
  if (slow && ++b.slowTrips < kSlowTrips) return false;
  if (slow || b.bestTrip == 0 || bestTrip < b.bestTrip) b.bestTrip = bestTrip;
  b.slowTrips = 0;
  context.clock.addSample(bestHost, context.clock.relative(bestDevice) - DeviceClock::relativeHost(bestHost));
  return true;
}

// A new anchor: an event behind a kernel that tells when it ended. The stamp
// may come late when the device is busy, never early; so where the old anchor
// still tells the time of the new one, that is believed (both count the same
// timer), unless the kernel proves it to be too early.
bool anchor(Context& context, Bench& b, uint64_t patience) {
  constexpr unsigned kTries = 3;
  CUevent* events = b.anchors[b.nextAnchor];
  for (unsigned i = 0; i < kTries; ++i) {
    if (!launchSpin(b, b.stream, i, 1000)) return false;
    TRY(own.cuEventRecord(events[i], b.stream));
    if (!waitFor(events[i], patience)) {
      debug("calibration: the device has no room for a small kernel");
      return false;
    }
  }
  TRY(own.cuMemcpyDtoHAsync(b.copy, b.times, 16 * kTries, b.stream));
  TRY(own.cuStreamSynchronize(b.stream));
  double least = 0;
  for (unsigned i = 0; i < kTries; ++i) {
    float ms = 0;
    if (i > 0) TRY(own.cuEventElapsedTime(&ms, events[0], events[i]));
    const double time = context.clock.relative(b.copy[2 * i + 1]) - static_cast<double>(ms) * 1e6;
    least = i == 0 ? time : std::max(least, time);
  }
  double known;
  if (context.clock.deviceTime(events[0], &known) && b.anchored && known - b.lastAnchor < 2e9) {
    // Rounding adds up over many anchors: the smallest lateness of some is 0.
    b.leastLate = std::min(b.leastLate, known - least);
    if (++b.lates == 20) {
      known -= std::clamp(b.leastLate, 0.0, 200.0);
      b.leastLate = 1e9;
      b.lates = 0;
    }
    least = std::max(least, known);
  }
  context.clock.setAnchor(events[0], least);
  b.lastAnchor = least;
  b.anchored = true;
  b.nextAnchor ^= 1;
  return true;
}

double middle(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// What the kernels of some runs say, without the first two of each stream.
struct Run {
  std::vector<double> startAfterReturn;             // where the stream was idle
  std::vector<double> startAfterStamp, endToStamp;  // where it was not
  std::vector<double> endToStampIdle;
};

enum class How {
  kAlone,   // each kernel waits for the one before, and a while more
  kQueued,  // all are enqueued before the first can run
};

// `n` kernels of `ns` in each of `streams`, an event behind each.
bool measure(Context& context, Bench& b, unsigned streams, unsigned n, uint64_t ns, How how, Run& run) {
  const unsigned all = streams * n;
  if (all + streams > kSpins) return false;
  std::vector<CUevent> events(all);
  std::vector<uint64_t> returned(all);
  for (CUevent& e : events)
    if ((e = context.takeEvent()) == nullptr) return false;
  bool good = true;
  for (unsigned s = 0; s < streams && how == How::kQueued && good; ++s)
    good = launchSpin(b, b.streams[s], all + s, 100'000 + 8'000 * all);
  for (unsigned i = 0; i < all && good; ++i) {
    good = launchSpin(b, b.streams[i % streams], i, ns);
    returned[i] = platform::nowNs();
    good = good && own.cuEventRecord(events[i], b.streams[i % streams]) == CUDA_SUCCESS;
    if (how == How::kAlone && good) {
      good = waitFor(events[i], kLoading);
      const uint64_t until = platform::nowNs() + 20'000;  // truly idle
      while (platform::nowNs() < until) {
      }
    }
  }
  for (unsigned s = 0; s < streams; ++s) good = good && own.cuStreamSynchronize(b.streams[s]) == CUDA_SUCCESS;
  good = good && own.cuMemcpyDtoHAsync(b.copy, b.times, 16 * all, b.streams[0]) == CUDA_SUCCESS &&
         own.cuStreamSynchronize(b.streams[0]) == CUDA_SUCCESS;
  std::vector<double> stamps(all);
  for (unsigned i = 0; i < all && good; ++i) {
    if (!(good = context.clock.deviceTime(events[i], &stamps[i]))) break;
    if (i < 2 * streams) continue;
    const double start = context.clock.relative(b.copy[2 * i]), end = context.clock.relative(b.copy[2 * i + 1]);
    const double reached = context.clock.toDevice(returned[i]);
    if (stamps[i - streams] < reached) {
      run.startAfterReturn.push_back(start - reached);
      run.endToStampIdle.push_back(stamps[i] - end);
    } else if (stamps[i - streams] > reached + 2'000) {
      run.startAfterStamp.push_back(start - stamps[i - streams]);
      if (streams > 1 || i + kCounted < all) run.endToStamp.push_back(stamps[i] - end);
    }
  }
  for (CUevent e : events) context.giveEvent(e);
  return good;
}

bool measureConstants(Context& context, Bench& b, TimingConstants& c) {
  constexpr unsigned kMeasured[] = {0, 1, 3, 7};  // other streams
  Run alone, busy[4];
  if (!measure(context, b, 1, 16, 2'000, How::kAlone, alone)) return false;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned streams = kMeasured[k] + 1;
    // Kernels long enough that the device's front end keeps up with their launches; of two lengths, so that ends and
    // launches meet in more than one way.
    if (!measure(context, b, streams, k == 0 ? 32 : 12, k == 0 ? 20'000 : 100'000, How::kQueued, busy[k])) return false;
    if (k > 0 && !measure(context, b, streams, 12, 131'000, How::kQueued, busy[k])) return false;
  }
  const TimingConstants usual;
  // On a busy machine a measurement may be about something else.
  auto within = [](double value, double least, double most, double otherwise) {
    return value >= least && value <= most ? value : otherwise;
  };
  auto between = [](double* values, unsigned from, unsigned to) {
    for (unsigned i = from + 1; i < to; ++i)
      values[i] = values[from] + (values[to] - values[from]) * (i - from) / (to - from);
  };
  // Stamps are counted from a single anchor; what its own stamp was off is in
  // all of them.
  const double off = within(middle(alone.endToStampIdle), -1e3, 1e3, 0);
  if (alone.startAfterReturn.size() >= 8)
    c.startAfterReturn = within(middle(alone.startAfterReturn), -5e3, 1e5, usual.startAfterReturn);
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned others = kMeasured[k];
    c.startAfterStamp[others] = within(middle(busy[k].startAfterStamp) + off, 0, 1e5, usual.startAfterStamp[others]);
    c.endToStamp[others] = within(middle(busy[k].endToStamp) - off, -1e3, 1e5, usual.endToStamp[others]);
    if (k == 0) continue;
    for (double* values : {c.startAfterStamp, c.endToStamp}) between(values, kMeasured[k - 1], others);
  }
  c.measured = true;
  debug(
      "device %u: round trip %llu ns; start after return %.0f; by other busy streams (0 1 3 7): start after stamp %.0f "
      "%.0f %.0f %.0f, end to stamp %.0f %.0f %.0f %.0f",
      context.device, static_cast<unsigned long long>(b.bestTrip), c.startAfterReturn, c.startAfterStamp[0],
      c.startAfterStamp[1], c.startAfterStamp[3], c.startAfterStamp[7], c.endToStamp[0], c.endToStamp[1],
      c.endToStamp[3], c.endToStamp[7]);
  return true;
}

Bench& benchOf(Context& context) {
  std::lock_guard lock(state().mutex);
  Bench*& place = state().benches[&context];
  if (place == nullptr) place = new Bench;
  return *place;
}

// Whoever comes first builds it. Callers hold the bench's mutex.
bool usable(Bench& b) {
  if (!b.built) {
    b.built = true;
    b.usable = build(b);
  }
  return b.usable;
}

// A graph of stamps with kernels between them that know their own times.
bool measureDelays(Context& context, Bench& b, StampRing& ring, StampDelays& delays) {
  constexpr unsigned kKernels = 6, kLaunches = 4;
  if (!own.cuGraphCreate || !own.cuGraphInstantiateWithFlags || !own.cuGraphLaunch || !own.cuGraphExecDestroy ||
      !own.cuGraphDestroy)
    return false;
  struct Graph {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    ~Graph() {
      if (exec != nullptr) own.cuGraphExecDestroy(exec);
      if (graph != nullptr) own.cuGraphDestroy(graph);
    }
  } g;
  TRY(own.cuGraphCreate(&g.graph, 0));
  CUgraphNode last = nullptr;
  for (unsigned i = 0; i <= kKernels; ++i) {
    CUgraphNode node = nullptr;
    if (!addStampNode(ring, g.graph, last != nullptr ? std::span(&last, 1) : std::span<CUgraphNode>(), i, &node))
      return false;
    if (i == kKernels) break;
    CUdeviceptr out = b.times + 16 * i;
    uint64_t ns = 2000;
    void* params[] = {&out, &ns};
    CUDA_KERNEL_NODE_PARAMS p{};
    p.func = b.spin;
    p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
    p.kernelParams = params;
    TRY(own.cuGraphAddKernelNode(&last, g.graph, &node, 1, &p));
  }
  TRY(own.cuGraphInstantiateWithFlags(&g.exec, g.graph, 0));
  std::vector<double> starts, ends;
  const CUevent done = context.takeEvent();
  bool good = done != nullptr;
  for (unsigned l = 0; l < kLaunches && good; ++l) {
    good = own.cuGraphLaunch(g.exec, b.stream) == CUDA_SUCCESS &&
           own.cuMemcpyDtoHAsync(b.copy, b.times, 16 * kKernels, b.stream) == CUDA_SUCCESS &&
           own.cuEventRecord(done, b.stream) == CUDA_SUCCESS && waitFor(done, l == 0 ? kLoading : kPatience);
    std::vector<Stamp> stamps;
    if (good) readStamps(context, ring, kNever, &stamps);
    if (l == 0 || stamps.size() != kKernels + 1) continue;  // the first launch is not like others
    for (unsigned i = 0; i < kKernels; ++i) {
      starts.push_back(context.clock.relative(b.copy[2 * i]) - stamps[i].time);
      ends.push_back(stamps[i + 1].time - context.clock.relative(b.copy[2 * i + 1]));
    }
  }
  context.giveEvent(done);
  if (!good || starts.empty()) return false;
  const double start = middle(starts), end = middle(ends);
  if (start < 0 || start > 1e5 || end < 0 || end > 1e5) return false;
  delays.start = start;
  delays.end = end;
  debug("device %u: in graphs a start is %.0f behind a stamp, a stamp %.0f behind an end", context.device, start, end);
  return true;
}

}  // namespace

CUfunction stampKernel(Context& context) {
  Bench& b = benchOf(context);
  std::lock_guard lock(b.mutex);
  return usable(b) ? b.stamp : nullptr;
}

StampDelays stampDelays(Context& context) {
  {
    std::lock_guard lock(state().mutex);
    const StampDelays& known = state().delays[context.device];
    if (known.measured) return known;
  }
  StampDelays delays;
  if (const std::shared_ptr<StampRing> ring = takeRing(context)) {
    OutsideCapture outside;
    WithContext with(context.handle);
    Bench& b = benchOf(context);
    std::lock_guard lock(b.mutex);
    if (with && usable(b)) measureDelays(context, b, *ring, delays);
  }
  delays.measured = true;  // or not to be measured
  std::lock_guard lock(state().mutex);
  return state().delays[context.device] = delays;
}

const TimingConstants& timingOf(uint32_t device) {
  std::lock_guard lock(state().mutex);
  return state().constants[device];  // nodes stay in place
}

void calibrate(Context& context) {
  OutsideCapture outside;
  WithContext with(context.handle);
  if (!with) return;
  Bench& b = benchOf(context);
  std::lock_guard lock(b.mutex);
  if (!usable(b)) return;
  // The first launches load code: they may take long, and their times say
  // nothing.
  if (!anchor(context, b, kLoading) || !ping(context, b, kLoading)) return;
  context.clock.forgetSamples();
  b.bestTrip = 0;
  b.anchored = false;
  if (!ping(context, b, kLoading) || !anchor(context, b, kLoading)) return;
  TimingConstants c = timingOf(context.device);
  const bool measured = !c.measured && measureConstants(context, b, c);
  for (CUstream& s : b.streams)
    if (own.cuStreamDestroy != nullptr && s != nullptr) own.cuStreamDestroy(std::exchange(s, nullptr));
  if (measured) {
    std::lock_guard guard(state().mutex);
    state().constants[context.device] = c;
  }
  anchor(context, b, kPatience);
}

void recalibrate(Context& context) {
  OutsideCapture outside;
  WithContext with(context.handle);
  if (!with) return;
  Bench& b = benchOf(context);
  std::lock_guard lock(b.mutex);
  if (!usable(b)) return;
  if (ping(context, b, kPatience)) anchor(context, b, kPatience);
}

}  // namespace sonde::platform::nvidia
