// SPDX-License-Identifier: Apache-2.0
//
// A lock that a fault handler may take: while a thread holds it no signal
// handler runs on that thread, so that none can wait for its own thread.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <csignal>

namespace sonde::softgpu::memory {

class SignalLock {
 public:
  void lock() {
    sigset_t all, before;
    sigfillset(&all);
    // These come from the instruction at hand; blocked they would only kill.
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned spins = 0; held_.exchange(true, std::memory_order_acquire); spins++)
      if (spins > 64) sched_yield();
    before_ = before;
  }
  void unlock() {
    const sigset_t before = before_;
    held_.store(false, std::memory_order_release);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  // In a forked child, whose other threads are gone.
  void reset() { held_.store(false); }

 private:
  std::atomic<bool> held_{false};
  sigset_t before_;  // of the holder
};

}  // namespace sonde::softgpu::memory
