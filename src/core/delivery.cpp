// SPDX-License-Identifier: Apache-2.0
#include "core/delivery.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/core.h"
#include "core/pass.h"

namespace sonde::core {
namespace {

std::chrono::milliseconds flushWait() {
  static const int milliseconds = [] {
    const char* text = std::getenv("SONDE_FLUSH_WAIT_MS");
    return text != nullptr && std::atoi(text) > 0 ? std::atoi(text) : 1000;
  }();
  return std::chrono::milliseconds(milliseconds);
}

// Left behind by forks; kept where a leak checker finds them.
ThreadQueue* queuesOfParents = nullptr;

// -------------------------------------------------------- delivery thread --

struct Deliverer {
  Deliverer() { sem_init(&wake, 0, 0); }
  std::mutex mutex;
  bool started = false;
  std::atomic<bool> exiting{false};
  sem_t wake;
};
Deliverer& deliverer() {
  static Deliverer& instance = *new Deliverer;
  return instance;
}

uint64_t steadyNow() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t samplePeriod() {
  static const uint64_t period = [] {
    const char* text = std::getenv("SONDE_ENVIRONMENT_PERIOD_MS");
    return text != nullptr && *text != 0 ? static_cast<uint64_t>(std::strtoul(text, nullptr, 10)) : 1000;
  }();
  return period * 1000000u;
}

// Held while one set of samples is taken.
std::mutex& samplingMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

// Samples the environment for clients that want it; the time of the next
// sample, or 0 for none.
uint64_t samplesDue() {
  uint64_t next = 0;
  const uint32_t kind = CUPTI_ACTIVITY_KIND_ENVIRONMENT;
  for (uint32_t mask = wantedKinds[kind].load(); mask != 0; mask &= mask - 1) {
    Client& client = clients()[__builtin_ctz(mask)];
    const uint64_t time = steadyNow();
    bool due = false;
    {
      std::lock_guard lock(client.deliveryMutex);
      if (client.nextSample == 0) continue;
      due = client.nextSample <= time;
      if (due) client.nextSample = time + samplePeriod();
      if (next == 0 || client.nextSample < next) next = client.nextSample;
    }
    if (!due) continue;
    std::lock_guard one(samplingMutex());
    const bool wanted = (wantedKinds[kind].load() & mask & -mask) != 0;
    if (wanted && client.inUse() && !deliverer().exiting.load()) reportExisting(&client, kind, true);
  }
  return next;
}

// Flushes what is due; the time of the next flush, or 0 for none.
uint64_t flushDue() {
  uint64_t next = 0;
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    Client& client = clients()[i];
    const uint32_t period = client.flushPeriodMs.load(std::memory_order_relaxed);
    if (!client.inUse() || period == 0) continue;
    const uint64_t time = steadyNow();
    uint64_t due;
    {
      std::lock_guard lock(client.deliveryMutex);
      due = client.nextFlush;
      if (due <= time) client.nextFlush = time + uint64_t{period} * 1000000u;
      if (due > time) due = 0;
      if (next == 0 || client.nextFlush < next) next = client.nextFlush;
    }
    if (due != 0 && !deliverer().exiting.load()) deliver(client, Deliver::kEverything);
  }
  return next;
}

void* deliveryMain(void*) {
  Deliverer& d = deliverer();
  while (!d.exiting.load()) {
    uint64_t next = samplesDue();
    if (const uint64_t flush = flushDue(); next == 0 || (flush != 0 && flush < next)) next = flush;
    if (next == 0) {
      while (sem_wait(&d.wake) != 0) {
      }
    } else {
      // sem_timedwait wants the real-time clock.
      timespec limit;
      clock_gettime(CLOCK_REALTIME, &limit);
      const uint64_t time = steadyNow();
      const uint64_t wait = next > time ? next - time : 0;
      limit.tv_sec += static_cast<time_t>(wait / 1000000000u);
      limit.tv_nsec += static_cast<long>(wait % 1000000000u);
      if (limit.tv_nsec >= 1000000000) {
        limit.tv_nsec -= 1000000000;
        ++limit.tv_sec;
      }
      sem_timedwait(&d.wake, &limit);
    }
    for (uint32_t i = 0; i < kMaxClients && !d.exiting.load(); ++i) {
      Client& client = clients()[i];
      if (client.wakeRequested.exchange(false) && client.inUse()) deliver(client, Deliver::kFullBuffers);
    }
  }
  return nullptr;
}

// At exit client code may already be half destroyed: the thread calls no more
// of it. A flush by the client itself still works.
void stopAtExit() {
  Deliverer& d = deliverer();
  d.exiting.store(true);
  sem_post(&d.wake);
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    Client& client = clients()[i];
    std::unique_lock lock(client.deliveryMutex);
    client.delivererGone.wait_for(lock, flushWait(), [&] {
      return client.deliverer == std::thread::id() || client.deliverer == std::this_thread::get_id();
    });
  }
}

// Hands the client over to whoever waits for it; releases the lock.
void endDelivery(Client& client, std::unique_lock<std::mutex>& lock, bool alone) {
  client.deliverAgain = client.deliverAgainAll = false;
  if (!alone || client.deliverer != std::this_thread::get_id()) return;
  client.deliverer = std::thread::id();
  lock.unlock();
  client.delivererGone.notify_all();
}

bool anyRecord(Client& client) {
  for (ThreadQueue* queue = client.queues; queue != nullptr; queue = queue->next)
    if (queue->records.peek() != nullptr) return true;
  return false;
}

void askForBuffer(Client& client, std::unique_lock<std::mutex>& lock) {
  const uint32_t epoch = client.epoch;
  Pass(client, lock, false).prepare();
  // A flush from within the callback.
  while (client.deliverAgain && client.epoch == epoch) {
    client.deliverAgain = false;
    Pass(client, lock, std::exchange(client.deliverAgainAll, false)).run();
    if (client.epoch == epoch) Pass(client, lock, false).noteNeed();
  }
}

}  // namespace

void deliver(Client& client, Deliver what) {
  std::unique_lock lock(client.deliveryMutex);
  const std::thread::id self = std::this_thread::get_id();
  if (client.deliverer == self) {
    client.deliverAgain = true;
    client.deliverAgainAll = client.deliverAgainAll || what == Deliver::kEverything;
    return;
  }
  // Waits as long as the other delivery gets on.
  bool alone = false;
  for (uint64_t seen = client.progress + 1; !alone && seen != client.progress;) {
    seen = client.progress;
    alone = client.delivererGone.wait_for(lock, flushWait(), [&] { return client.deliverer == std::thread::id(); });
  }
  if (alone) client.deliverer = self;
  const uint32_t epoch = client.epoch;
  do {
    client.deliverAgain = false;
    const bool everything = what == Deliver::kEverything || client.deliverAgainAll;
    client.deliverAgainAll = false;
    Pass(client, lock, everything).run();
  } while (client.deliverAgain && client.epoch == epoch);
  if (client.epoch == epoch) Pass(client, lock, false).noteNeed();
  // A record came meanwhile that could not ask for a buffer itself.
  if (alone && what == Deliver::kFullBuffers && client.epoch == epoch && client.needsBuffer.load() && anyRecord(client))
    askForBuffer(client, lock);
  endDelivery(client, lock, alone);
}

void offerBuffer(Client& client, ThreadState& thread) {
  if (deliverer().exiting.load(std::memory_order_relaxed) || thread.inClient[client.index].load() != 0) return;
  std::unique_lock lock(client.deliveryMutex, std::try_to_lock);
  if (!lock.owns_lock() || client.deliverer != std::thread::id()) {
    wakeDelivery(client);  // asks when it can
    return;
  }
  if (!client.needsBuffer.load()) return;
  client.deliverer = std::this_thread::get_id();
  askForBuffer(client, lock);
  endDelivery(client, lock, true);
}

void reportFlush(Client& client, uint64_t start) {
  reportOverhead(client, threadState(), CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, start);
}

uint64_t takeDropped(Client& client) {
  std::lock_guard lock(client.deliveryMutex);
  for (ThreadQueue* queue = client.queues; queue != nullptr; queue = queue->next) {
    client.dropped += queue->lost.exchange(0, std::memory_order_relaxed);
  }
  return std::exchange(client.dropped, 0);
}

void wakeDelivery(Client& client) {
  if (!client.wakeRequested.exchange(true)) sem_post(&deliverer().wake);
}

void delivererReschedule() { sem_post(&deliverer().wake); }

void startSampling(Client& client) {
  {
    std::lock_guard lock(client.deliveryMutex);
    client.nextSample = samplePeriod() == 0 ? 0 : steadyNow() + samplePeriod();
  }
  delivererReschedule();
}

void stopSampling(Client& client) {
  {
    std::lock_guard lock(client.deliveryMutex);
    client.nextSample = 0;
  }
  std::lock_guard wait(samplingMutex());
}

void startDelivery() {
  Deliverer& d = deliverer();
  std::lock_guard lock(d.mutex);
  if (d.started || d.exiting.load()) return;
  d.started = true;
  static const bool once = [] {
    std::atexit(stopAtExit);
    return true;
  }();
  (void)once;
  // The application's signals are not for this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, deliveryMain, nullptr) == 0) {
    pthread_setname_np(thread, "sonde-delivery");
    pthread_detach(thread);
  } else {
    d.started = false;
    warn("the delivery thread cannot be started; records are delivered by flushes only");
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void discardQueues(Client& client) {
  std::lock_guard lock(client.deliveryMutex);
  ++client.epoch;
  while (ThreadQueue* queue = client.queues) {
    client.queues = queue->next;
    forgetAll(*queue);
    queue->release(ThreadQueue::kClient);
  }
  client.lastQueue = nullptr;
  client.queueOfThread.clear();
  client.open = {};
  client.spares.clear();
  client.enqueued.clear();
  {
    std::lock_guard reported(client.reportedMutex);
    client.locators.clear();
  }
  client.dropped = 0;
  client.deliverAgain = client.deliverAgainAll = false;
  client.needsBuffer.store(false);
}

void lockSampling() { samplingMutex().lock(); }
void unlockSampling() { samplingMutex().unlock(); }

void lockDelivery() {
  deliverer().mutex.lock();
  for (uint32_t i = 0; i < kMaxClients; ++i) clients()[i].deliveryMutex.lock();
  for (uint32_t i = 0; i < kMaxClients; ++i) clients()[i].reportedMutex.lock();
}

void unlockDelivery() {
  for (uint32_t i = kMaxClients; i-- > 0;) clients()[i].reportedMutex.unlock();
  for (uint32_t i = kMaxClients; i-- > 0;) clients()[i].deliveryMutex.unlock();
  deliverer().mutex.unlock();
}

void restartDeliveryInChild() {
  Deliverer& d = deliverer();
  const bool had = d.started;
  d.started = false;
  if (had) sem_init(&d.wake, 0, 0);
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    Client& client = clients()[i];
    // The parent delivers what was recorded before the fork.
    ++client.epoch;
    // The threads that wrote the queues do not exist here, and may have been in
    // the midst of a change: nothing of them is touched again.
    if (client.queues != nullptr) {
      client.lastQueue->next = queuesOfParents;
      queuesOfParents = client.queues;
    }
    client.queues = client.lastQueue = nullptr;
    client.queueOfThread.clear();
    client.open = {};
    client.spares.clear();
    client.enqueued.clear();
    client.locators.clear();
    client.allocations.clear();
    client.deviceBuffers.forgetInChild();
    client.dropped = 0;
    if (client.deliverer != std::this_thread::get_id()) client.deliverer = std::thread::id();
    new (&client.delivererGone) std::condition_variable;
    client.wakeRequested.store(false);
    client.needsBuffer.store(client.buffers.load() != nullptr);
  }
}

}  // namespace sonde::core
