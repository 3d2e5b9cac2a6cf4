// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "platform/clock.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver {
namespace {

// How long a thread that has nothing to do looks for more before it sleeps.
// Waking a sleeper costs several microseconds; on one processor, looking is
// only in the way.
constexpr uint64_t kSpinNs = 20000;
constexpr uint32_t kMaxWorkers = 128;
// A worker leaves new work alone for this long: a host thread that waits for
// it at once runs it itself, which saves two changes of thread.
constexpr uint64_t kCourtesyNs = 1500;

bool worthSpinning() {
  static const bool worth = std::thread::hardware_concurrency() > 1;
  return worth;
}

// Calls `ready` until it is true or the time is up.
template <class F>
bool spin(F&& ready) {
  if (ready()) return true;
  if (!worthSpinning()) return false;
  const uint64_t end = platform::nowNs() + kSpinNs;
  for (;;) {
    for (int i = 0; i < 32; i++) {
      if (ready()) return true;
      __builtin_ia32_pause();
    }
    if (platform::nowNs() >= end) return ready();
  }
}

}  // namespace

// ----------------------------------------------------------------- stream --

Stream::Stream(Context* context, Role role, uint32_t flags, int priority)
    : Object(kType), context_(context), role_(role), flags_(flags), priority_(priority) {
  // The first null stream is 7, as tools expect.
  id_ = role == Role::legacyDefault && context->uid() == 1 ? 7 : nextStreamId();
}

Stream::~Stream() {
  for (Command* list : {head_, spare_})
    while (list) {
      Command* next = list->next;
      delete list;
      list = next;
    }
}

Command* Stream::newCommand(CommandKind kind) {
  Command* command = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (spare_) {
      command = spare_;
      spare_ = command->next;
    }
  }
  if (!command) command = new Command();
  command->next = nullptr;
  command->kind = kind;
  command->correlationId = 0;
  return command;
}

void Stream::free(Command* command) {
  command->next = spare_;
  spare_ = command;
}

void Stream::giveBack(Command* command) {
  command->recycle();
  std::lock_guard lock(mutex_);
  free(command);
}

uint64_t Stream::append(Command* command) {
  bool wake = false;
  uint64_t sequence;
  {
    std::lock_guard lock(mutex_);
    sequence = enqueued_.load(std::memory_order_relaxed) + 1;
    command->sequence = sequence;
    command->next = nullptr;
    (tail_ ? tail_->next : head_) = command;
    tail_ = command;
    enqueued_.store(sequence, std::memory_order_release);
    if (state_.load(std::memory_order_relaxed) == State::idle) {
      state_.store(State::ready, std::memory_order_release);
      wake = true;
    }
  }
  if (wake) Scheduler::get().push(Ref<Stream>(this));
  return sequence;
}

bool Stream::tryRun() {
  State expected = State::ready;
  if (!state_.compare_exchange_strong(expected, State::running, std::memory_order_acq_rel)) return false;
  run(false, 0);
  return true;
}

void Stream::run(bool helper, uint64_t until) {
  const Ref<Stream> self(this);
  std::vector<Parked> wakeUp;
  std::unique_lock lock(mutex_);
  for (;;) {
    Command* command = head_;
    if (!command) {
      state_.store(State::idle, std::memory_order_release);
      return;
    }
    // A helper does what it waits for, and never runs the user's functions.
    if (helper && (completed() >= until || command->kind == CommandKind::hostFunction ||
                   command->kind == CommandKind::callback)) {
      state_.store(State::ready, std::memory_order_release);
      lock.unlock();
      Scheduler::get().push(self);
      return;
    }
    lock.unlock();
    if (command->kind == CommandKind::wait) {
      Stream& target = *command->target;
      const uint64_t sequence = command->targetSequence;
      if (target.completed() < sequence) {
        state_.store(State::parked, std::memory_order_release);
        std::unique_lock targetLock(target.mutex_);
        if (target.completed() < sequence) {
          target.parked_.push_back({self, sequence});
          return;  // from here on the target may set this stream going again
        }
        targetLock.unlock();
        state_.store(State::running, std::memory_order_release);
      }
    } else {
      execute(*this, *command);
    }
    const uint64_t sequence = command->sequence;
    command->recycle();

    lock.lock();
    head_ = command->next;
    if (!head_) tail_ = nullptr;
    free(command);
    completed_.store(sequence, std::memory_order_release);
    if (hostWaiters_) done_.notify_all();
    if (!parked_.empty()) {
      auto ready = std::partition(parked_.begin(), parked_.end(), [&](auto& p) { return p.sequence > sequence; });
      wakeUp.insert(wakeUp.end(), std::make_move_iterator(ready), std::make_move_iterator(parked_.end()));
      parked_.erase(ready, parked_.end());
      if (!wakeUp.empty()) {
        lock.unlock();
        for (auto& p : wakeUp) {
          p.stream->state_.store(State::ready, std::memory_order_release);
          Scheduler::get().push(std::move(p.stream));
        }
        wakeUp.clear();
        lock.lock();
      }
    }
  }
}

AccessPolicy Stream::accessPolicy() const {
  if (!hasPolicy_.load(std::memory_order_acquire)) return std::nullopt;
  std::lock_guard lock(policyMutex_);
  return policy_;
}

void Stream::setAccessPolicy(const AccessPolicy& policy) {
  std::lock_guard lock(policyMutex_);
  policy_ = policy;
  hasPolicy_.store(policy.has_value(), std::memory_order_release);
}

void Stream::waitFor(uint64_t sequence) {
  if (completed() >= sequence) return;
  const bool mayHelp = !thread().inHostFunction;
  const bool done = spin([&] {
    if (completed() >= sequence) return true;
    State expected = State::ready;
    if (mayHelp && state_.load(std::memory_order_relaxed) == State::ready &&
        state_.compare_exchange_strong(expected, State::running, std::memory_order_acq_rel))
      run(true, sequence);
    return completed() >= sequence;
  });
  if (done) return;
  std::unique_lock lock(mutex_);
  hostWaiters_++;
  done_.wait(lock, [&] { return completed() >= sequence; });
  hostWaiters_--;
}

namespace {

uint64_t appendInOrder(Stream& stream, Command* command) {
  if (!stream.blocking()) return stream.append(command);
  Context& context = *stream.context();
  std::lock_guard lock(context.order);
  auto waitFor = [&](Stream& target) {
    Command* wait = stream.newCommand(CommandKind::wait);
    wait->target = Ref<Stream>(&target);
    wait->targetSequence = target.enqueued();
    stream.append(wait);
  };
  if (stream.role() == Stream::Role::legacyDefault) {
    std::erase_if(context.blockingStreams, [](auto& s) { return s->destroyed.load() && s->idle(); });
    for (auto& other : context.blockingStreams)
      if (!other->idle()) waitFor(*other);
  } else {
    Stream& legacy = *context.legacy();
    if (!legacy.idle() && stream.lastLegacyWait < legacy.enqueued()) {
      stream.lastLegacyWait = legacy.enqueued();
      waitFor(legacy);
    }
  }
  return stream.append(command);
}

// So much may be launched ahead of the device before a launch waits, as a card's
// own queue has an end: else a program that never synchronises grows without end.
constexpr uint64_t kMaxPending = 4096;

void waitForRoom(Stream& stream, const Command& command) {
  const bool counts =
      command.kind == CommandKind::kernel || command.kind == CommandKind::copy || command.kind == CommandKind::set;
  // The nodes of a graph are launched under its lock; host functions launch nothing.
  if (!counts || command.graphId != 0 || thread().inHostFunction) return;
  const uint64_t last = stream.enqueued();
  if (last - stream.completed() < kMaxPending) return;
  const uint64_t start = platform::nowNs();
  stream.waitFor(last - kMaxPending / 2);
  if (!tools::wants(SONDE_INTEREST_OVERHEAD)) return;
  SondeOverhead o{};
  o.size = sizeof o;
  o.kind = SONDE_OVERHEAD_QUEUE_FULL;
  o.start = start;
  o.end = platform::nowNs();
  o.correlationId = command.correlationId;
  o.contextUid = stream.context()->uid();
  o.deviceId = stream.context()->device()->ordinal;
  o.what = "";
  o.channelId = stream.id();
  o.channelType = command.kind == CommandKind::kernel ? 1 : 2;
  tools::reportOverhead(o);
}

}  // namespace

uint64_t submit(Stream& stream, Command* command) {
  // Where streams wait is decided by how far they are: such a command takes no
  // number that another run would not take.
  const bool work = command->kind != CommandKind::wait && command->kind != CommandKind::marker;
  if (work && command->correlationId == 0) command->correlationId = currentCorrelation();
  waitForRoom(stream, *command);
  announce(stream, *command);
  if (command->kind == CommandKind::kernel && managed::concernsLaunches(*stream.context()->device())) {
    managed::launching(stream);
    const uint64_t place = appendInOrder(stream, command);
    memory::ManagedMemory::get().launched(stream.id(), place);
    return place;
  }
  return appendInOrder(stream, command);
}

// -------------------------------------------------------------- scheduler --

Scheduler& Scheduler::get() {
  static Scheduler* scheduler = new Scheduler();  // its threads outlive static destructors
  return *scheduler;
}

void Scheduler::push(Ref<Stream> stream) {
  // An entry that nobody has come to yet serves this time too.
  if (stream->queued.exchange(true, std::memory_order_acq_rel)) return;
  std::unique_lock lock(mutex_);
  auto place = ready_.end();
  while (place != ready_.begin() && (*std::prev(place))->priority() > stream->priority()) --place;
  ready_.insert(place, std::move(stream));
  const uint32_t waiting = static_cast<uint32_t>(ready_.size());
  readyCount_.store(waiting, std::memory_order_release);
  if (waiting <= spinning_.load(std::memory_order_acquire)) return;
  if (sleeping_ > 0) {
    // Counted here, so that two pushes in a row wake two sleepers.
    sleeping_--;
    wakes_++;
    wake_.notify_one();
    return;
  }
  if (workers_ >= kMaxWorkers) return;
  workers_++;
  lock.unlock();
  // Signals are the application's: no handler of its may run on our threads.
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, s);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  std::thread([this] { worker(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Ref<Stream> Scheduler::pop() {
  std::lock_guard lock(mutex_);
  if (ready_.empty()) return {};
  Ref<Stream> stream = std::move(ready_.front());
  ready_.pop_front();
  readyCount_.store(static_cast<uint32_t>(ready_.size()), std::memory_order_release);
  stream->queued.store(false, std::memory_order_release);
  return stream;
}

void Scheduler::worker() {
  pthread_setname_np(pthread_self(), "sonde-stream");
  for (;;) {
    if (Ref<Stream> stream = pop()) {
      stream->tryRun();
      continue;
    }
    // One looks out for all.
    const bool first = spinning_.fetch_add(1, std::memory_order_acq_rel) == 0;
    const bool more = first && spin([&] { return readyCount_.load(std::memory_order_acquire) != 0; });
    if (more) {
      const uint64_t until = platform::nowNs() + kCourtesyNs;
      while (platform::nowNs() < until) __builtin_ia32_pause();
    }
    spinning_.fetch_sub(1, std::memory_order_acq_rel);
    if (more) continue;
    std::unique_lock lock(mutex_);
    if (!ready_.empty()) continue;
    sleeping_++;
    wake_.wait(lock, [&] { return wakes_ != 0; });
    wakes_--;
  }
}

}  // namespace sonde::softgpu::driver
