// SPDX-License-Identifier: Apache-2.0
// OMPT, the tools interface of OpenMP 5.
#include <cupti.h>

#include <atomic>

#include "core/core.h"
#include "core/directives.h"

namespace sonde::core::openmp {
namespace {

// As the specification has them.
enum Callback {
  kThreadBegin = 1,
  kThreadEnd = 2,
  kParallelBegin = 3,
  kParallelEnd = 4,
  kTaskCreate = 5,
  kTaskSchedule = 6,
  kImplicitTask = 7,
  kSyncRegionWait = 16
};
enum { kScopeBegin = 1, kScopeEnd = 2 };
enum { kTaskInitial = 0x1, kTaskExplicit = 0x4 };  // flags of a task
enum { kTaskComplete = 1, kTaskCancel = 3 };       // why a thread leaves a task
constexpr int kRegionTaskwait = 5;
bool isBarrier(int region) { return (region >= 1 && region <= 4) || (region >= 8 && region <= 10); }

// Ours to use: nobody else is the tool of this runtime.
union Data {
  uint64_t value;
  void* pointer;
};
constexpr uint64_t kNotStarted = 1;  // an explicit task; later its start

std::atomic<uint32_t> runtimeVersion{0};

uint32_t wanting() { return wantedKinds[CUPTI_ACTIVITY_KIND_OPENMP].load(std::memory_order_relaxed); }

void record(CUpti_OpenMpEventKind event, uint64_t start) {
  const uint32_t mask = wanting();
  if (mask == 0 || start == 0) return;
  ThreadState& thread = threadState();
  const uint64_t end = now();
  CUpti_ActivityOpenMp r{};
  r.kind = CUPTI_ACTIVITY_KIND_OPENMP;
  r.eventKind = event;
  r.version = runtimeVersion.load(std::memory_order_relaxed);
  r.threadId = thread.directives.threadNumber;
  r.cuProcessId = processId();
  forEachClient(mask, [&](Client& client) {
    r.cuThreadId = threadIdFor(client, thread);
    r.start = client.toClientTime(start);
    r.end = client.toClientTime(end);
    client.append(thread, r);
  });
}

// 0 when nobody wants it: then nothing is recorded at its end either.
uint64_t startTime() { return wanting() != 0 ? now() : 0; }

void threadBegin(int, Data* thread) { thread->value = startTime(); }
void threadEnd(Data* thread) { record(CUPTI_OPENMP_EVENT_KIND_THREAD, thread->value); }

void parallelBegin(Data*, const void*, Data* region, unsigned, int, const void*) { region->value = startTime(); }
void parallelEnd(Data* region, Data*, int, const void*) { record(CUPTI_OPENMP_EVENT_KIND_PARALLEL, region->value); }

// A thread's share of a region. Its end may come when the region is gone.
void implicitTask(int scope, Data*, Data* task, unsigned, unsigned index, int flags) {
  if ((flags & kTaskInitial) != 0) return;  // the whole program
  DirectiveState& state = threadState().directives;
  if (scope == kScopeBegin) {
    state.threadNumber = index;
    task->value = startTime();
  } else if (scope == kScopeEnd) {
    record(CUPTI_OPENMP_EVENT_KIND_TASK, task->value);
  }
}

void taskCreate(Data*, const void*, Data* task, int flags, int, const void*) {
  if ((flags & kTaskExplicit) != 0 && task != nullptr) task->value = wanting() != 0 ? kNotStarted : 0;
}
void taskSchedule(Data* before, int status, Data* next) {
  if (before != nullptr && (status == kTaskComplete || status == kTaskCancel) && before->value > kNotStarted) {
    record(CUPTI_OPENMP_EVENT_KIND_TASK, before->value);
    before->value = 0;
  }
  if (next != nullptr && next->value == kNotStarted) next->value = startTime();
}

void syncRegionWait(int region, int scope, Data*, Data*, const void*) {
  auto& open = threadState().directives.parallel;
  const bool barrier = isBarrier(region);
  if (!barrier && region != kRegionTaskwait) return;
  if (scope == kScopeBegin) {
    open.push_back({static_cast<uint32_t>(region), 0, 0, startTime()});
  } else if (scope == kScopeEnd && !open.empty()) {
    const uint64_t start = open.back().start;
    open.pop_back();
    record(barrier ? CUPTI_OPENMP_EVENT_KIND_WAIT_BARRIER : CUPTI_OPENMP_EVENT_KIND_WAIT_TASKWAIT, start);
  }
}

}  // namespace

bool attach(Lookup lookup, uint32_t version) {
  auto set = reinterpret_cast<int (*)(int, Function)>(lookup("ompt_set_callback"));
  if (set == nullptr) return false;
  runtimeVersion = version;
  const struct {
    int which;
    Function function;
  } kCallbacks[] = {
      {kThreadBegin, reinterpret_cast<Function>(threadBegin)},
      {kThreadEnd, reinterpret_cast<Function>(threadEnd)},
      {kParallelBegin, reinterpret_cast<Function>(parallelBegin)},
      {kParallelEnd, reinterpret_cast<Function>(parallelEnd)},
      {kImplicitTask, reinterpret_cast<Function>(implicitTask)},
      {kTaskCreate, reinterpret_cast<Function>(taskCreate)},
      {kTaskSchedule, reinterpret_cast<Function>(taskSchedule)},
      {kSyncRegionWait, reinterpret_cast<Function>(syncRegionWait)},
  };
  for (const auto& c : kCallbacks) set(c.which, c.function);
  return true;
}

}  // namespace sonde::core::openmp
