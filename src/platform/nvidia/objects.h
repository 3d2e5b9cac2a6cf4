// SPDX-License-Identifier: Apache-2.0
//
// What the platform knows of the driver's contexts, streams and kernels: ids,
// and the queues of work whose times are still to come.
//
// Objects are never freed: handles are compared, not trusted, and a thread may
// still hold the object of a handle that was destroyed.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "platform/nvidia/device_clock.h"
#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

struct Stream;

// Work that was enqueued, with the events that will give its times.
struct Item {
  SondeWork work;
  CUevent before = nullptr;  // only where the end of the previous item does not tell
  CUevent after = nullptr;
  uint64_t called = 0, returned = 0;  // host time around the driver's function
  bool synchronous = false;           // the function returned when the work was done
  bool silent = false;                // nobody wants a record of it
};

struct Context {
  CUcontext handle = nullptr;
  uint32_t uid = 0;
  uint32_t device = 0;
  std::atomic<bool> primary{false};
  std::atomic<bool> timingTried{false};
  std::atomic<bool> dead{false};
  DeviceClock clock;

  // Event pool.
  std::mutex eventMutex;
  std::vector<CUevent> events;

  std::mutex streamMutex;
  std::vector<Stream*> streams;  // live ones, and dead ones with work to report
  // Counted by work in streams that the null stream waits for, and in the null
  // stream itself, which they wait for.
  std::atomic<uint64_t> blockingWork{0}, legacyWork{0};

  // nullptr: the driver has no more.
  CUevent takeEvent();
  void giveEvent(CUevent event);
};

struct Stream {
  CUstream handle = nullptr;
  Context* context = nullptr;
  uint32_t id = 0;
  bool legacy = false;    // the null stream
  bool blocking = true;   // takes part in the null stream's implicit order
  int priority = 0;
  uint64_t thread = 0;    // of a per-thread default stream
  std::atomic<bool> dead{false};

  std::mutex mutex;        // of what follows
  std::deque<Item> items;  // not yet reported, in order
  bool unordered = true;   // something came in between: the last item's end does not say when the next can start
  uint64_t seenOther = 0;  // the count of the other side's work at our last item

  // The harvester's.
  bool haveLast = false;
  double lastEnd = 0;        // device time of the last item's event
  uint64_t lastReported = 0;  // the end that was reported last
};

// A kernel handle, CUfunction or CUkernel.
struct KernelInfo {
  const char* name = nullptr;  // for good
  uint32_t moduleId = 0, functionId = 0;
  uint32_t registers = 0, staticShared = 0, localPerThread = 0;
};

// The current context of the thread; nullptr: none, or no driver yet.
Context* currentContext();
// The object of a handle; made, and reported to the listener, when `create`.
Context* findContext(CUcontext handle, bool create);
std::vector<Context*> liveContexts();
// The stream that an API function means by `handle`.
Stream* findStream(Context& context, CUstream handle, bool perThread);
std::vector<Stream*> liveStreams(Context& context);
void forgetContext(CUcontext handle);
void forgetStream(CUstream handle);

const KernelInfo& kernelInfo(CUfunction function);
uint32_t moduleId(CUmodule module);
// After a module or library is gone its handles may come back as others.
void forgetKernels();
// A copy of the text that lives for good.
const char* keep(const char* text);

// Ids of objects that need no more than that (graphs, graph nodes).
uint32_t objectId(void* handle);
void forgetObject(void* handle);

}  // namespace sonde::platform::nvidia
