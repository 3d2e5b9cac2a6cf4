// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/harvester.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <thread>

#include "platform/clock.h"
#include "platform/nvidia/calibration.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(2);
constexpr uint64_t kRecalibrateNs = 300'000'000;
// An event that is stamped this long after the launch returned was enqueued
// before the work ended.
constexpr double kWaitedNs = 6'000;

struct Harvester {
  std::mutex harvestMutex;  // one thread at a time reads events and reports
  std::atomic<bool> stopped{true};

  std::mutex sleepMutex;
  std::condition_variable wake;
  std::atomic<bool> sleeping{false};
  std::atomic<int64_t> pending{0};
  std::thread thread;
  std::mutex lifeMutex;
};
Harvester& harvester() {
  static Harvester& h = *new Harvester;
  return h;
}

// Set while this thread harvests: a listener that asks for more from within
// gets nothing.
thread_local bool harvesting = false;

void report(const Item& item) {
  ListenerUse use;
  if (use && use->workCompleted) use->workCompleted(use->self, &item.work);
}

void timesFromHost(Stream& stream, Item& item) {
  item.work.start = std::max(item.called, stream.lastReported);
  item.work.end = std::max(item.work.start, item.returned);
}

// The model: DESIGN of times in docs/ARCHITECTURE.md, "Times on a card".
void setTimes(Stream& stream, Item& item) {
  const Context& context = *stream.context;
  const TimingConstants& c = timingOf(context.device);
  double stamp = 0;
  if (item.after == nullptr || !context.clock.deviceTime(item.after, &stamp)) {
    stream.haveLast = false;
    timesFromHost(stream, item);
    return;
  }
  const double returned = context.clock.toDevice(item.returned);
  double start = item.synchronous ? context.clock.toDevice(item.called) : returned;
  start += c.startAfterReturn;
  double before;
  if (item.before != nullptr && context.clock.deviceTime(item.before, &before)) {
    start = std::max(start, before + c.startAfterStamp);
  } else if (stream.haveLast) {
    start = std::max(start, stream.lastEnd + c.startAfterStamp);
  }
  double end = stamp - (stamp - returned > kWaitedNs ? c.endWaiting : c.endIdle);
  if (item.synchronous) end = std::min(end, returned);
  stream.haveLast = true;
  stream.lastEnd = stamp;
  start = std::min(start, end);
  item.work.start = std::max(context.clock.toHost(start), stream.lastReported);
  item.work.end = std::max(context.clock.toHost(end), item.work.start);
}

void harvestStream(Context& context, Stream& stream) {
  for (;;) {
    Item* item;
    {
      std::lock_guard lock(stream.mutex);
      if (stream.items.empty()) return;
      item = &stream.items.front();  // stays in place while others are appended
    }
    CUresult result = CUDA_SUCCESS;
    if (item->after != nullptr && !context.dead.load() &&
        (result = own.cuEventQuery(item->after)) == CUDA_ERROR_NOT_READY)
      return;
    if (context.dead.load() || result != CUDA_SUCCESS) {
      // The context is gone or broken: the work is over, and when is not known.
      stream.haveLast = false;
      timesFromHost(stream, *item);
      item->work.status = static_cast<uint32_t>(result);
    } else {
      setTimes(stream, *item);
    }
    if (!item->silent) {
      stream.lastReported = item->work.end;
      item->work.queued = item->called;
      item->work.submitted = std::min(item->returned, item->work.start);
      item->work.queued = std::min(item->work.queued, item->work.submitted);
      report(*item);
    }
    if (!context.dead.load()) {
      context.giveEvent(item->before);
      context.giveEvent(item->after);
    }
    std::lock_guard lock(stream.mutex);
    stream.items.pop_front();
    harvester().pending.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool hasItems(Context& context) {
  for (Stream* stream : liveStreams(context)) {
    std::lock_guard lock(stream->mutex);
    if (!stream->items.empty()) return true;
  }
  return false;
}

void harvestAll() {
  Harvester& h = harvester();
  std::lock_guard lock(h.harvestMutex);
  if (h.stopped.load()) return;
  harvesting = true;
  {
    OutsideCapture outside;
    for (Context* context : liveContexts()) {
      if (!hasItems(*context)) continue;
      const uint64_t sampled = context->clock.lastSample();
      if (sampled != 0 && platform::nowNs() > sampled + kRecalibrateNs) recalibrate(*context);
      WithContext with(context->handle);
      for (Stream* stream : liveStreams(*context)) harvestStream(*context, *stream);
      std::lock_guard streams(context->streamMutex);
      std::erase_if(context->streams, [](Stream* s) {
        std::lock_guard items(s->mutex);
        return s->dead.load() && s->items.empty();
      });
    }
  }
  harvesting = false;
}

void run() {
  pthread_setname_np(pthread_self(), "sonde-harvest");
  Harvester& h = harvester();
  while (!h.stopped.load()) {
    if (h.pending.load(std::memory_order_relaxed) > 0) harvestAll();
    std::unique_lock lock(h.sleepMutex);
    if (h.stopped.load()) break;
    if (h.pending.load() > 0) {
      h.wake.wait_for(lock, kPollInterval);
    } else {
      h.sleeping.store(true);
      h.wake.wait_for(lock, std::chrono::seconds(1), [&] { return h.pending.load() > 0 || h.stopped.load(); });
      h.sleeping.store(false);
    }
  }
}

}  // namespace

void startHarvester() {
  Harvester& h = harvester();
  std::lock_guard lock(h.lifeMutex);
  if (h.thread.joinable()) return;
  h.stopped.store(false);
  try {
    h.thread = std::thread(run);
  } catch (const std::system_error&) {
    debug("the thread that reads events cannot be started; work is reported by flushes only");
  }
}

void stopHarvester() {
  Harvester& h = harvester();
  std::lock_guard lock(h.lifeMutex);
  {
    std::lock_guard sleep(h.sleepMutex);
    h.stopped.store(true);
  }
  h.wake.notify_all();
  if (h.thread.joinable()) h.thread.join();
  for (Context* context : liveContexts())
    for (Stream* stream : liveStreams(*context)) {
      std::lock_guard items(stream->mutex);
      h.pending.fetch_sub(static_cast<int64_t>(stream->items.size()));
      for (Item& item : stream->items) {
        context->giveEvent(item.before);
        context->giveEvent(item.after);
      }
      stream->items.clear();
      stream->unordered = true;
    }
}

void enqueue(Stream& stream, Item&& item) {
  Harvester& h = harvester();
  {
    std::lock_guard lock(stream.mutex);
    stream.items.push_back(std::move(item));
  }
  h.pending.fetch_add(1);
  if (h.sleeping.load()) h.wake.notify_one();
}

void collect() {
  if (harvesting) return;
  harvestAll();
}

void prepareTiming(Context& context) {
  if (context.clock.hasAnchor() || context.timingTried.exchange(true)) return;
  calibrate(context);
}

}  // namespace sonde::platform::nvidia
