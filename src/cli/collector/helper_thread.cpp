// SPDX-License-Identifier: Apache-2.0
#include "cli/collector/helper_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/collector/collector.h"

namespace sonde::collector {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                            SIGFPE, SIGSEGV, SIGPIPE, SIGTERM, SIGXCPU, SIGUSR1, SIGUSR2};
constexpr int kWaitMs = 3000;

struct Request {  // small enough for one atomic write to a pipe
  spool::EndReason reason;
  int32_t value;
};

int requestPipe[2] = {-1, -1};
int answerPipe[2] = {-1, -1};
uint32_t period = 0;  // of flushing, ms; 0: never
pthread_t helper;

bool highPipe(int fds[2]) {
  int low[2];
  if (::pipe2(low, O_CLOEXEC) != 0) return false;
  for (int i = 0; i < 2; i++) {
    fds[i] = ::fcntl(low[i], F_DUPFD_CLOEXEC, 200);
    if (fds[i] < 0) {
      fds[i] = low[i];
    } else {
      ::close(low[i]);
    }
  }
  return true;
}

int64_t nowMs() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

// Flushes when it is time, and says how long to wait for the next time; -1: for ever.
int runTimer(int64_t now, int64_t* nextFlush) {
  if (period == 0) return -1;
  if (now >= *nextFlush) {
    Collector::instance().flush();
    *nextFlush = now + period;
  }
  return static_cast<int>(std::max<int64_t>(*nextFlush - now, 0));
}

void* helperMain(void*) {
  int64_t nextFlush = nowMs() + period;
  for (;;) {
    pollfd p{requestPipe[0], POLLIN, 0};
    const int ready = ::poll(&p, 1, runTimer(nowMs(), &nextFlush));
    if (ready == 0) continue;
    if (ready < 0 && errno == EINTR) continue;
    Request request{};
    if (ready < 0 || ::read(requestPipe[0], &request, sizeof request) != sizeof request) return nullptr;
    Collector::instance().finish(request.reason, request.value);
    if (::write(answerPipe[1], "", 1) != 1) return nullptr;
  }
}

// Async-signal-safe calls only.
void onFatalSignal(int number) {
  const int savedErrno = errno;
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(number, &standard, nullptr);
  finishByHelper(spool::EndReason::Signal, number);
  // Delivered when this handler returns, which is what ends the process with
  // the status its parent expects. A fault comes again by itself as well.
  ::raise(number);
  errno = savedErrno;
}

}  // namespace

void finishByHelper(spool::EndReason reason, int32_t value) {
  // The child of a fork has neither the thread nor anything to say.
  if (!Collector::instance().active() || !Collector::instance().ownProcess() || requestPipe[1] < 0 ||
      ::pthread_equal(::pthread_self(), helper)) {
    return;
  }
  const Request request{reason, value};
  if (::write(requestPipe[1], &request, sizeof request) != sizeof request) return;
  pollfd p{answerPipe[0], POLLIN, 0};
  ::poll(&p, 1, kWaitMs);
}

void startHelperThread(uint32_t periodMs) {
  period = periodMs;
  if (!highPipe(requestPipe) || !highPipe(answerPipe)) return;
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = ::pthread_create(&helper, nullptr, helperMain, nullptr) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return;
  ::pthread_detach(helper);
  ::pthread_setname_np(helper, "sonde-collect");
  for (const int number : kSignals) {
    struct sigaction current{};
    if (::sigaction(number, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0 ||
        current.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction ours{};
    ours.sa_handler = onFatalSignal;
    ours.sa_flags = SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    ::sigaction(number, &ours, nullptr);
  }
}

}  // namespace sonde::collector
