// SPDX-License-Identifier: Apache-2.0
//
// Who listens, and who is inside one of its functions. Each thread counts in a
// place of its own with plain stores; the rare thread that detaches makes all
// others' stores visible first.
#include <cuda.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {

struct alignas(64) UseCount {
  std::atomic<int32_t> count{0};
  std::atomic<bool> taken{false};
  UseCount* next = nullptr;  // set before it is in the list
};

namespace {

std::atomic<const SondeListener*> listener{nullptr};
std::atomic<UseCount*> useCounts{nullptr};  // never shrinks; places are used again
// The kernel has no membarrier: every use orders its own stores.
std::atomic<bool> orderEveryUse{true};
// For threads whose own place is gone already: destructors at a thread's end.
UseCount lateUses;

std::mutex& listenerMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

UseCount* takeUseCount() {
  for (UseCount* at = useCounts.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    bool taken = false;
    if (!at->taken.load(std::memory_order_relaxed) && at->taken.compare_exchange_strong(taken, true)) return at;
  }
  auto* fresh = new UseCount;
  fresh->taken.store(true, std::memory_order_relaxed);
  fresh->next = useCounts.load(std::memory_order_relaxed);
  while (!useCounts.compare_exchange_weak(fresh->next, fresh, std::memory_order_release)) {
  }
  return fresh;
}

UseCount* usesOf(ThreadCalls& thread) {
  if (thread.uses == nullptr) {
    static thread_local struct Owner {
      UseCount* it = takeUseCount();
      ~Owner() {
        threadCalls.uses = &lateUses;
        it->taken.store(false, std::memory_order_release);
      }
    } owner;
    thread.uses = owner.it;
  }
  return thread.uses;
}

void add(UseCount& uses, int32_t n, std::memory_order order) {
  if (&uses == &lateUses) {
    uses.count.fetch_add(n, std::memory_order_seq_cst);
  } else {
    uses.count.store(uses.count.load(std::memory_order_relaxed) + n, order);
  }
}

int32_t membarrier(int command) { return static_cast<int32_t>(syscall(SYS_membarrier, command, 0, 0)); }

// A forked child has none of the parent's other threads.
void forgetOtherThreads() {
  for (UseCount* at = useCounts.load(); at != nullptr; at = at->next) {
    if (at == threadCalls.uses) continue;
    at->count.store(0);
    at->taken.store(false);
  }
}

}  // namespace

ListenerUse::ListenerUse() : inDriver_(threadCalls.inDriver), inRuntime_(threadCalls.inRuntime) {
  ThreadCalls& thread = threadCalls;
  uses_ = usesOf(thread);
  add(*uses_, 1, std::memory_order_relaxed);
  if (orderEveryUse.load(std::memory_order_relaxed)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ++thread.listening;
  thread.inDriver = thread.inRuntime = false;
  listener_ = listener.load(std::memory_order_acquire);
}

ListenerUse::~ListenerUse() {
  ThreadCalls& thread = threadCalls;
  thread.inDriver = inDriver_;
  thread.inRuntime = inRuntime_;
  --thread.listening;
  add(*uses_, -1, std::memory_order_release);
}

int32_t setListener(const SondeListener* who) {
  std::lock_guard lock(listenerMutex());
  if (listener.load() != nullptr) return CUDA_ERROR_ALREADY_ACQUIRED;
  static const bool once = pthread_atfork(nullptr, nullptr, forgetOtherThreads) == 0;
  (void)once;
  orderEveryUse.store(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) != 0);
  listener.store(who);
  return CUDA_SUCCESS;
}

void clearListener() {
  std::lock_guard lock(listenerMutex());
  listener.store(nullptr, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // A thread that counts itself from here on sees that nobody listens.
  if (!orderEveryUse.load()) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  ThreadCalls& thread = threadCalls;
  const UseCount* mine = usesOf(thread);
  auto waitFor = [&](const UseCount& uses) {
    const int32_t own = &uses == mine ? static_cast<int32_t>(thread.listening) : 0;
    while (uses.count.load(std::memory_order_acquire) > own) sched_yield();
  };
  for (const UseCount* at = useCounts.load(std::memory_order_acquire); at != nullptr; at = at->next) waitFor(*at);
  waitFor(lateUses);
}

}  // namespace sonde::platform::nvidia
