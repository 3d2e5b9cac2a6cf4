// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/calibration.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/kernels.h"

namespace sonde::platform::nvidia {
namespace {

constexpr uint64_t kPatience = 20'000'000, kLoading = 2'000'000'000;  // ns
constexpr uint32_t kPings = 8;
constexpr unsigned kSpins = 64;  // results that fit the device buffer

// Our own module, stream and buffers in a context. Made once, never freed
// before the context goes.
struct Bench {
  CUmodule module = nullptr;
  CUfunction spin = nullptr, ping = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr times = 0;             // kSpins pairs, on the device
  volatile uint32_t* word = nullptr;  // pinned, seen by both
  volatile uint64_t* answers = nullptr;
  uint64_t* copy = nullptr;  // pinned
  CUevent anchors[2] = {};
  unsigned nextAnchor = 0;
  uint32_t lastPing = 0;
  uint64_t bestTrip = 0;
  std::mutex mutex;
  bool usable = false;
};

struct State {
  std::mutex mutex;
  std::unordered_map<Context*, Bench*> benches;
  std::unordered_map<uint32_t, TimingConstants> constants;
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
  int least = 0, greatest = 0;
  if (own.cuCtxGetStreamPriorityRange) own.cuCtxGetStreamPriorityRange(&least, &greatest);
  TRY(own.cuStreamCreateWithPriority(&b.stream, CU_STREAM_NON_BLOCKING, greatest));
  TRY(own.cuMemAlloc(&b.times, kSpins * 16));
  void* pinned = nullptr;
  TRY(own.cuMemHostAlloc(&pinned, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  std::fill_n(static_cast<uint8_t*>(pinned), 4096, uint8_t{0});
  b.word = static_cast<volatile uint32_t*>(pinned);
  b.answers = reinterpret_cast<volatile uint64_t*>(static_cast<uint8_t*>(pinned) + 256);
  b.copy = reinterpret_cast<uint64_t*>(static_cast<uint8_t*>(pinned) + 1024);
  for (CUevent& e : b.anchors) TRY(own.cuEventCreate(&e, CU_EVENT_DEFAULT));
  return true;
}

bool launchSpin(Bench& b, unsigned index, uint64_t ns) {
  CUdeviceptr out = b.times + 16 * index;
  void* params[] = {&out, &ns};
  TRY(own.cuLaunchKernel(b.spin, 1, 1, 1, 1, 1, 1, 0, b.stream, params, nullptr));
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
    uint64_t heard;
    do {
      heard = platform::nowNs();
      if (heard > asked + patience) answered = false;
    } while (b.answers[i] == 0 && answered);
    if (!answered) break;
    // The first also waits for the kernel to start.
    if (i > 0 && heard - asked < bestTrip) {
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
  // A host thread that lost its processor meanwhile has nothing to tell.
  if (b.bestTrip != 0 && bestTrip > 3 * b.bestTrip + 5'000) return false;
  if (b.bestTrip == 0 || bestTrip < b.bestTrip) b.bestTrip = bestTrip;
  context.clock.addSample(bestHost, context.clock.relative(bestDevice) - DeviceClock::relativeHost(bestHost));
  return true;
}

// An event behind a kernel that tells when it ended.
bool anchor(Context& context, Bench& b, uint64_t patience) {
  CUevent event = b.anchors[b.nextAnchor];
  if (!launchSpin(b, 0, 2000)) return false;
  TRY(own.cuEventRecord(event, b.stream));
  if (!waitFor(event, patience)) {
    debug("calibration: the device has no room for a small kernel");
    return false;
  }
  TRY(own.cuMemcpyDtoHAsync(b.copy, b.times, 16, b.stream));
  TRY(own.cuStreamSynchronize(b.stream));
  const TimingConstants& c = timingOf(context.device);
  context.clock.setAnchor(event, context.clock.relative(b.copy[1]) + c.endIdle);
  b.nextAnchor ^= 1;
  return true;
}

double middle(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

struct Run {
  std::vector<double> start, end;  // device times
  std::vector<double> stamp;       // of the event behind each
  std::vector<double> returned;    // when the launch returned, device time
};

// `n` kernels of `ns`, each followed by an event; idle: each waits for the one
// before.
bool measure(Context& context, Bench& b, unsigned n, uint64_t ns, bool idle, Run& run) {
  std::vector<CUevent> events(n);
  std::vector<uint64_t> returned(n);
  for (CUevent& e : events)
    if ((e = context.takeEvent()) == nullptr) return false;
  bool good = true;
  if (!idle) good = launchSpin(b, kSpins - 1, 400'000);  // lets the queue fill
  for (unsigned i = 0; i < n && good; ++i) {
    good = launchSpin(b, i, ns);
    returned[i] = platform::nowNs();
    good = good && own.cuEventRecord(events[i], b.stream) == CUDA_SUCCESS;
    if (idle && good) {
      good = waitFor(events[i], kLoading);
      const uint64_t until = platform::nowNs() + 20'000;  // truly idle
      while (platform::nowNs() < until) {
      }
    }
  }
  good = good && own.cuMemcpyDtoHAsync(b.copy, b.times, 16 * n, b.stream) == CUDA_SUCCESS &&
         own.cuStreamSynchronize(b.stream) == CUDA_SUCCESS;
  for (unsigned i = 0; i < n && good; ++i) {
    double stamp;
    if (!(good = context.clock.deviceTime(events[i], &stamp))) break;
    run.start.push_back(context.clock.relative(b.copy[2 * i]));
    run.end.push_back(context.clock.relative(b.copy[2 * i + 1]));
    run.stamp.push_back(stamp);
    run.returned.push_back(context.clock.toDevice(returned[i]));
  }
  for (CUevent e : events) context.giveEvent(e);
  return good;
}

bool measureConstants(Context& context, Bench& b, TimingConstants& c) {
  constexpr unsigned kShort = 16, kLong = 6, kQueued = 32;
  Run brief, longer, queued;
  if (!measure(context, b, kShort, 2'000, true, brief) || !measure(context, b, kLong, 60'000, true, longer) ||
      !measure(context, b, kQueued, 5'000, false, queued))
    return false;
  std::vector<double> start, startLong, startQueued, end, endLong, endQueued;
  for (unsigned i = 2; i < kShort; ++i) {
    start.push_back(brief.start[i] - brief.returned[i]);
    end.push_back(brief.stamp[i] - brief.end[i]);
  }
  for (unsigned i = 1; i < kLong; ++i) {
    startLong.push_back(longer.start[i] - longer.returned[i]);
    endLong.push_back(longer.stamp[i] - longer.end[i]);
  }
  for (unsigned i = 2; i < kQueued; ++i) {
    startQueued.push_back(queued.start[i] - queued.stamp[i - 1]);
    endQueued.push_back(queued.stamp[i] - queued.end[i]);
  }
  // Stamps are counted from a single anchor; what its own stamp was off is in
  // all of them.
  const double off = middle(end);
  c.startAfterReturn = middle(start);
  c.startAfterStamp = middle(startQueued) + off;
  c.endIdle = 0;
  c.endWaiting = middle(endQueued) - off;
  // On a busy machine a measurement may be about something else.
  const TimingConstants usual;
  auto within = [](double& value, double least, double most, double otherwise) {
    if (!(value >= least && value <= most)) value = otherwise;
  };
  within(c.startAfterReturn, -5e3, 1e5, usual.startAfterReturn);
  within(c.startAfterStamp, 0, 1e5, usual.startAfterStamp);
  within(c.endWaiting, -5e3, 1e5, usual.endWaiting);
  c.measured = true;
  debug("device %u: start after return %.0f ns (long %.0f; %.0f to %.0f), after stamp %.0f (%.0f to %.0f); "
        "end to stamp idle %.0f (%.0f to %.0f), long %.0f, queued %.0f (%.0f to %.0f)",
        context.device, c.startAfterReturn, middle(startLong), start.front(), start.back(), c.startAfterStamp,
        startQueued.front(), startQueued.back(), off, end.front(), end.back(), middle(endLong), c.endWaiting,
        endQueued.front(), endQueued.back());
  return true;
}

Bench* benchOf(Context& context) {
  Bench* b;
  {
    std::lock_guard lock(state().mutex);
    Bench*& place = state().benches[&context];
    if (place != nullptr) return place->usable ? place : nullptr;
    b = place = new Bench;
    b->mutex.lock();
  }
  b->usable = build(*b);
  b->mutex.unlock();
  return b->usable ? b : nullptr;
}

}  // namespace

const TimingConstants& timingOf(uint32_t device) {
  std::lock_guard lock(state().mutex);
  return state().constants[device];  // nodes stay in place
}

void calibrate(Context& context) {
  OutsideCapture outside;
  WithContext with(context.handle);
  if (!with) return;
  Bench* b = benchOf(context);
  if (b == nullptr) return;
  std::lock_guard lock(b->mutex);
  // The first launches load code: they may take long, and their times say
  // nothing.
  if (!anchor(context, *b, kLoading) || !ping(context, *b, kLoading) || !ping(context, *b, kLoading) ||
      !anchor(context, *b, kLoading))
    return;
  TimingConstants c = timingOf(context.device);
  if (!c.measured && measureConstants(context, *b, c)) {
    std::lock_guard guard(state().mutex);
    state().constants[context.device] = c;
  }
  anchor(context, *b, kPatience);
}

void recalibrate(Context& context) {
  OutsideCapture outside;
  WithContext with(context.handle);
  if (!with) return;
  Bench* b = benchOf(context);
  if (b == nullptr) return;
  std::lock_guard lock(b->mutex);
  if (ping(context, *b, kPatience)) anchor(context, *b, kPatience);
}

}  // namespace sonde::platform::nvidia
