// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/harvester.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>

#include "platform/clock.h"
#include "platform/nvidia/batch.h"
#include "platform/nvidia/calibration.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/lifetimes.h"
#include "platform/nvidia/uvm_tools.h"
#include "platform/nvidia/work.h"
#include "platform/nvidia/work_times.h"

namespace sonde::platform::nvidia {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(4);
constexpr uint64_t kRecalibrateNs = 100'000'000, kFirstRecalibrationsNs = 25'000'000;

struct Harvester {
  std::mutex harvestMutex;  // one thread at a time reads events and reports
  std::atomic<bool> stopped{true};

  std::mutex sleepMutex;
  std::condition_variable wake, done;
  std::atomic<bool> sleeping{false};
  std::atomic<int64_t> pending{0};
  uint64_t asked = 0, answered = 0;  // collect() calls; guarded by sleepMutex
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

// The nodes of a graph that has stamps: each time that the stamp behind a node
// was written it has run.
void reportStamped(Context& context, const ListenerUse& use, Stream& s, GraphLaunch& launch, double from,
                   double until) {
  TracedGraph& graph = *launch.graph;
  const StampDelays delays = stampDelays(context);
  std::vector<Stamp> stamps;
  readStamps(context, *graph.ring, until, &stamps);
  // Those of earlier launches that nobody recorded come before.
  const auto first = std::find_if(stamps.rbegin(), stamps.rend(), [](const Stamp& stamp) { return stamp.name == 0; });
  if (first != stamps.rend()) stamps.erase(stamps.begin(), std::prev(first.base()));
  std::lock_guard lock(graph.mutex);
  constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> nodeOf(graph.stamps, kNone), workOf(graph.nodes.size(), kNone);
  for (size_t i = 0; i < graph.nodes.size(); ++i) nodeOf[graph.nodes[i].endEvent] = i;
  for (size_t i = 0; i < launch.nodes.size(); ++i) workOf[launch.nodes[i]] = i;
  std::vector<double> last(graph.stamps, -kNever);
  std::vector<uint64_t> ends(graph.stamps, 0);
  auto place = [&](SondeWork& work, const TracedNode& node, double stamp) {
    double start = -kNever;
    uint64_t before = s.lastReported;
    for (const uint32_t e : node.startEvents) {
      start = std::max(start, last[e] + delays.start);
      before = std::max(before, ends[e]);
    }
    const double end = stamp - delays.end;
    start = std::min(start == -kNever ? from : start, end);
    work.start = std::max(context.clock.toHost(start), before);
    work.end = std::max(context.clock.toHost(end), work.start + 1);
    ends[node.endEvent] = work.end;
  };
  uint64_t reported = s.lastReported;
  for (const Stamp& stamp : stamps) {
    if (stamp.name >= graph.stamps) continue;
    const size_t at = nodeOf[stamp.name];
    if (at != kNone && graph.nodes[at].enabled) {
      const TracedNode& node = graph.nodes[at];
      if (workOf[at] != kNone) {
        place(launch.works[workOf[at]], node, stamp.time);
        reported = std::max(reported, launch.works[workOf[at]].end);
      } else if (node.inBody && (interest() & interestFor(node.work.kind)) != 0) {
        SondeWork work = nodeWork(graph, node, launch.like);
        place(work, node, stamp.time);
        reported = std::max(reported, work.end);
        if (use && use->workEnqueued) use->workEnqueued(use->self, &work);
        // Of the thread that launched the graph; not known where all of it is in bodies.
        if (launch.like.listenerWord3 != 0) work.listenerWord3 = launch.like.listenerWord3;
        if (use && use->workCompleted) use->workCompleted(use->self, &work);
      }
    }
    last[stamp.name] = stamp.time;
  }
  s.lastReported = reported;
  if (use && use->workCompleted)
    for (const SondeWork& work : launch.works) use->workCompleted(use->self, &work);
}

// The nodes of a graph, by the events between them. Within a graph of one line
// nothing competes and stamps come at once.
void reportGraph(Context& context, const ListenerUse& use, Stream& s, GraphLaunch& launch, bool known, double from,
                 double until, double stamp) {
  const TimingConstants& c = timingOf(context.device);
  TracedGraph& graph = *launch.graph;
  if (graph.ring != nullptr && known) {
    // The next launch writes its first stamp some microseconds after this one's end.
    reportStamped(context, use, s, launch, from, stamp + 1000);
    return;
  }
  if (graph.copy == nullptr || !known) {  // without times
    if (use && use->workCompleted)
      for (const SondeWork& work : launch.works) use->workCompleted(use->self, &work);
    return;
  }
  std::vector<double> stamps(launch.events->events.size(), -kNever);
  for (size_t i = 0; i < stamps.size(); ++i) context.clock.deviceTime(launch.events->events[i], &stamps[i]);
  const unsigned others = graph.oneLine ? 0 : 3;
  const double late = graph.oneLine ? 0 : c.endToStamp[others];
  // In the order of their ends, so that those before a node are known: by the
  // event behind it, as reported, and of all nodes until a stamp for events
  // behind something that has no end of its own (a host function, a child graph).
  std::vector<size_t> order(launch.works.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto stampOf = [&](size_t i) { return stamps[graph.nodes[launch.nodes[i]].endEvent]; };
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return stampOf(x) < stampOf(y); });
  std::vector<uint64_t> ends(stamps.size(), 0);
  std::vector<std::pair<double, uint64_t>> reached;
  for (const size_t i : order) {
    const TracedNode& node = graph.nodes[launch.nodes[i]];
    SondeWork& work = launch.works[i];
    double start = from;
    for (const uint32_t e : node.startEvents) start = std::max(start, stamps[e] + c.startAfterStamp[others]);
    double end = std::min(stamps[node.endEvent] - late, until);
    start = std::min(start, end);
    work.start = std::max(context.clock.toHost(start), s.lastReported);
    for (const uint32_t e : node.startEvents) {
      uint64_t before = ends[e];
      if (before == 0) {
        const auto at = std::upper_bound(reached.begin(), reached.end(), stamps[e],
                                         [](double stamp, const auto& r) { return stamp < r.first; });
        if (at != reached.begin()) before = std::prev(at)->second;
      }
      work.start = std::max(work.start, before);
    }
    work.end = std::max(context.clock.toHost(end), work.start + 1);
    ends[node.endEvent] = work.end;
    reached.emplace_back(stamps[node.endEvent], std::max(work.end, reached.empty() ? 0 : reached.back().second));
  }
  for (const SondeWork& work : launch.works) s.lastReported = std::max(s.lastReported, work.end);
  if (use && use->workCompleted)
    for (const SondeWork& work : launch.works) use->workCompleted(use->self, &work);
}

void report(Context& context, Batch& b, const TimedStream& times) {
  Stream& s = *b.stream;
  s.haveLast = times.haveLast;
  s.lastStamp = times.last;
  s.lastOthers = times.lastOthers;
  std::vector<CUevent> events;
  ListenerUse use;
  for (size_t i = 0; i < b.finished; ++i) {
    const Item& item = b.items[i];
    const TimedWork& t = times.works[i];
    SondeWork work;
    describeItem(s, item, &work);
    double start = 0, end = 0;
    const bool known = t.stamp == t.stamp;
    if (!known) {  // the context broke, or the driver had no event
      work.start = std::max(item.called, s.lastReported);
      work.end = std::max(work.start, item.returned);
      work.status = static_cast<uint32_t>(b.status);
    } else {
      end = t.end;
      if (item.synchronous) end = std::min(end, context.clock.toDevice(item.returned));
      start = std::min(t.start, end);
      work.start = std::max(context.clock.toHost(start), s.lastReported);
      work.end = std::max(context.clock.toHost(end), work.start + 1);
    }
    if (item.kind == SONDE_WORK_GRAPH && item.graph.launch != nullptr) {
      // Its first nodes start while the launch is still sending the others.
      const double from = t.queued ? start : context.clock.toDevice(item.called);
      reportGraph(context, use, s, *item.graph.launch, known && !context.dead.load(), from, end, t.stamp);
      finishGraphLaunch(item.graph.launch);
    }
    s.lastReported = std::max(s.lastReported, work.end);
    context.lastReturn = std::max(context.lastReturn, item.returned);
    work.submitted = std::min(item.returned, work.start);
    work.queued = std::min(item.called, work.submitted);
    if (use && use->workCompleted) use->workCompleted(use->self, &work);
    for (CUevent e : {item.before, item.after})
      if (e != nullptr) events.push_back(e);
  }
  std::lock_guard lock(s.mutex);
  s.items.pop(b.finished);
  harvester().pending.fetch_sub(static_cast<int64_t>(b.finished), std::memory_order_relaxed);
  if (!context.dead.load()) context.giveEvents(events);
}

// Reading events and launching share the driver's locks: while a thread
// launches, the harvest waits, until there is much or it is old.
constexpr uint64_t kQuietNs = 300'000, kOldNs = 50'000'000;
constexpr size_t kMuch = 3072;
// More than there are in use before a harvest gives some back: a launch that has to make one waits for it (0.7 us).
constexpr size_t kStock = 4096;

bool canWait(Context& context) {
  const uint64_t now = platform::nowNs();
  bool launching = false;
  for (Stream* stream : liveStreams(context)) {
    std::lock_guard lock(stream->mutex);
    const ItemQueue& items = stream->items;
    if (items.empty()) continue;
    if (items.size() >= kMuch || now > items.at(0).returned + kOldNs) return false;
    launching = launching || now < items.at(items.size() - 1).returned + kQuietNs;
  }
  return launching;
}

// True: there may be more that is done.
bool harvestContext(Context& context) {
  std::vector<Batch> batches;
  for (Stream* stream : liveStreams(context)) {
    std::lock_guard lock(stream->mutex);
    if (stream->items.empty()) continue;
    Batch& b = batches.emplace_back();
    b.stream = stream;
    const size_t n = std::min(stream->items.size(), kBatch + kCounted);  // the last ones only as work that waits
    b.items.reserve(n);
    for (size_t i = 0; i < n; ++i) b.items.push_back(stream->items.at(i));
  }
  if (batches.empty()) return false;
  const uint64_t sampled = context.clock.lastSample();
  const uint64_t interval = context.clock.knowsDrift() ? kRecalibrateNs : kFirstRecalibrationsNs;
  if (sampled != 0 && !context.dead.load() && platform::nowNs() > sampled + interval) recalibrate(context);
  std::optional<WithContext> with;
  if (!context.dead.load()) with.emplace(context.handle);
  bool more = false;
  for (Batch& b : batches) {
    findFinished(context, b);
    more = more || b.finished == kBatch;
  }
  const TimingConstants& constants = timingOf(context.device);
  std::vector<TimedStream> times;
  const Returns returns(context, batches);
  for (const Batch& b : batches) times.push_back(readTimes(context, constants, returns, b));
  placeWork(times, constants);
  for (size_t i = 0; i < batches.size(); ++i) report(context, batches[i], times[i]);
  return more;
}

void harvestAll(bool now) {
  Harvester& h = harvester();
  std::lock_guard lock(h.harvestMutex);
  if (h.stopped.load()) return;
  harvesting = true;
  {
    OutsideCapture outside;
    for (Context* context : liveContexts()) {
      if (!now && canWait(*context)) continue;
      while (harvestContext(*context)) {
      }
      if (!context->dead.load()) context->stockEvents(64, 192);
      std::lock_guard streams(context->streamMutex);
      std::erase_if(context->streams, [context](Stream* s) {
        if (!s->dead.load()) return false;
        std::lock_guard items(s->mutex);
        if (!s->items.empty()) return false;
        s->items.release();
        context->gone.push_back(s);
        return true;
      });
    }
  }
  harvesting = false;
}

void run() {
  pthread_setname_np(pthread_self(), "sonde-harvest");
  Harvester& h = harvester();
  std::unique_lock lock(h.sleepMutex);
  while (!h.stopped.load()) {
    const uint64_t asked = h.asked;
    if (h.pending.load(std::memory_order_relaxed) > 0 || unifiedMemoryActive()) {
      lock.unlock();
      const bool isAsked = asked != h.answered;
      if (h.pending.load(std::memory_order_relaxed) > 0) harvestAll(isAsked);
      collectUnifiedMemory(isAsked);
      lock.lock();
    }
    if (h.answered != asked) {
      h.answered = asked;
      h.done.notify_all();
    }
    auto called = [&] { return h.asked != h.answered || h.stopped.load(); };
    if (h.pending.load() > 0 || unifiedMemoryActive()) {
      h.wake.wait_for(lock, kPollInterval, called);
    } else {
      h.sleeping.store(true);
      h.wake.wait_for(lock, std::chrono::seconds(1), [&] { return h.pending.load() > 0 || called(); });
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
  h.done.notify_all();
  if (h.thread.joinable()) h.thread.join();
  std::lock_guard harvest(h.harvestMutex);
  for (Context* context : liveContexts())
    for (Stream* stream : liveStreams(*context)) {
      std::lock_guard items(stream->mutex);
      h.pending.fetch_sub(static_cast<int64_t>(stream->items.size()));
      for (size_t i = 0; i < stream->items.size(); ++i) {
        const Item& item = stream->items.at(i);
        context->giveEvent(item.before);
        context->giveEvent(item.after);
        if (item.kind == SONDE_WORK_GRAPH && item.graph.launch != nullptr) finishGraphLaunch(item.graph.launch);
      }
      stream->items.pop(stream->items.size());
      stream->unordered = true;
      stream->haveLast = false;
    }
}

void enqueue(Stream& stream, const Item& item, uint64_t other) {
  Harvester& h = harvester();
  {
    std::lock_guard lock(stream.mutex);
    stream.items.push(item);
    stream.unordered.store(item.after == nullptr, std::memory_order_relaxed);
    stream.seenOther.store(other, std::memory_order_relaxed);
  }
  h.pending.fetch_add(1);
  if (h.sleeping.load()) h.wake.notify_one();
}

void pendingWork(void (*visit)(void* self, const SondeWork* work), void* self) {
  for (Context* context : liveContexts())
    for (Stream* stream : liveStreams(*context)) {
      std::lock_guard lock(stream->mutex);
      for (size_t i = 0; i < stream->items.size(); ++i) {
        SondeWork work;
        const Item& item = stream->items.at(i);
        describeItem(*stream, item, &work);
        visit(self, &work);
        if (item.kind != SONDE_WORK_GRAPH || item.graph.launch == nullptr) continue;
        for (const SondeWork& node : item.graph.launch->works) visit(self, &node);
      }
    }
}

// The harvester's thread does it: records of device work come from one thread.
void collect() {
  Harvester& h = harvester();
  if (harvesting || (h.pending.load() == 0 && !unifiedMemoryActive())) return;
  {
    std::unique_lock lock(h.sleepMutex);
    const uint64_t mine = ++h.asked;
    h.wake.notify_one();
    // A thread that the process has lost (fork, exit) answers nothing.
    if (h.done.wait_for(lock, std::chrono::seconds(2), [&] { return h.answered >= mine || h.stopped.load(); })) return;
  }
  harvestAll(true);
  collectUnifiedMemory(true);
}

void wakeHarvester() { harvester().wake.notify_one(); }

void retire(Context& context) {
  collect();
  context.dead.store(true);
  collect();
  // Whoever harvests saw the context alive, and is now done with it.
  if (!harvesting) std::lock_guard wait(harvester().harvestMutex);
}

void prepareTiming(Context& context) {
  // Not a lock at each launch.
  if (context.timingTried.load(std::memory_order_relaxed) || context.timingTried.exchange(true)) return;
  calibrate(context);
  context.stockEvents(kStock, kStock);
}

}  // namespace sonde::platform::nvidia
