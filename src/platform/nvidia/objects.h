// SPDX-License-Identifier: Apache-2.0
//
// What the platform knows of the driver's contexts, streams and kernels: ids,
// and the queues of work whose times are still to come.
//
// Objects are never freed: handles are compared, not trusted, and a thread may
// still hold the object of a handle that was destroyed.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "platform/nvidia/device_clock.h"
#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

struct Stream;

struct KernelInfo;
struct GraphLaunch;
struct LaunchFacts;

// Work that was enqueued, with the events that will give its times. Small: one
// is written at each launch, on one core, and read on another.
struct Item {
  CUevent before;             // only where the end of the previous item does not tell
  CUevent after;              // nullptr: its times are not known
  uint64_t called, returned;  // host time around the driver's function
  uint64_t listenerWord, listenerWord3;
  const KernelInfo* kernel;
  uint32_t correlationId;
  uint8_t kind;      // SondeWorkKind
  bool synchronous;  // the function returned when the work was done
  bool isAsync;
  uint8_t copyKind, srcMemoryKind, dstMemoryKind;
  union {
    struct {
      uint32_t grid[3], block[3], cluster[3];
      uint32_t dynamicShared, launchType;
      int32_t priority;
      uint64_t gridId;
      const LaunchFacts* facts;
    } launch;
    struct {
      uint64_t bytes;
      uint32_t value, srcDevice, dstDevice;
    } copy;
    struct {
      uint32_t id;
      GraphLaunch* launch;  // of a graph whose nodes have times, else nullptr; the item's
    } graph;
  };
};

// A first-in first-out queue that keeps its memory.
class ItemQueue {
 public:
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const Item& at(size_t i) const { return ring_[(head_ + i) % ring_.size()]; }
  void push(const Item& item) {
    if (count_ == ring_.size()) grow();
    ring_[(head_ + count_++) % ring_.size()] = item;
  }
  void release() {
    ring_ = {};
    head_ = count_ = 0;
  }
  void pop(size_t n) {
    head_ = (head_ + n) % std::max<size_t>(ring_.size(), 1);
    count_ -= n;
  }

 private:
  void grow() {
    std::vector<Item> bigger(std::max<size_t>(64, 2 * ring_.size()));
    for (size_t i = 0; i < count_; ++i) bigger[i] = at(i);
    ring_.swap(bigger);
    head_ = 0;
  }
  std::vector<Item> ring_;
  size_t head_ = 0, count_ = 0;
};

struct Context {
  CUcontext handle = nullptr;
  uint32_t uid = 0;
  uint32_t device = 0;
  bool launchesClusters = false;  // the device does
  std::atomic<bool> primary{false};
  std::atomic<bool> timingTried{false};
  std::atomic<bool> dead{false};
  DeviceClock clock;
  uint64_t lastReturn = 0;  // the harvester's: of the launches whose work it reported

  // Event pool.
  std::mutex eventMutex;
  std::vector<CUevent> events;

  std::mutex streamMutex;
  std::vector<Stream*> streams;  // live ones, and dead ones with work to report
  std::vector<Stream*> gone;     // dead ones: a thread may still hold one
  // Counted by work in streams that the null stream waits for, and in the null
  // stream itself, which they wait for.
  std::atomic<uint64_t> blockingWork{0}, legacyWork{0};

  // nullptr: the driver has no more.
  CUevent takeEvent();
  // Makes events until there are `n`, if there are fewer than `least`.
  void stockEvents(size_t least, size_t n);
  void giveEvent(CUevent event);
  void giveEvents(const std::vector<CUevent>& some);
  void takeEvents(size_t n, std::vector<CUevent>* out);
};

struct Stream {
  CUstream handle = nullptr;
  Context* context = nullptr;
  uint32_t id = 0;
  bool legacy = false;   // the null stream
  bool blocking = true;  // takes part in the null stream's implicit order
  int priority = 0;
  uint64_t thread = 0;  // of a per-thread default stream
  std::atomic<bool> dead{false};
  // What the stream was told of the L2 cache; nullptr: nothing.
  std::atomic<const CUaccessPolicyWindow*> window{nullptr};

  std::mutex mutex;  // of the items
  ItemQueue items;   // not yet reported, in order
  // It does not capture, unless a capture is known to be under way.
  std::atomic<bool> captureKnown{false};
  // Something came in between: the last item's end does not say when the next can start.
  std::atomic<bool> unordered{true};
  std::atomic<uint64_t> seenOther{0};  // the count of the other side's work at our last item

  // The harvester's.
  bool haveLast = false;
  double lastStamp = 0;       // device time of the last item's event
  unsigned lastOthers = 0;    // other streams that were busy then
  uint64_t lastReported = 0;  // the end that was reported last
};

// A kernel handle, CUfunction or CUkernel.
struct KernelInfo {
  const char* name = nullptr;  // for good
  uint32_t moduleId = 0, functionId = 0;
  uint32_t registers = 0, staticShared = 0, localPerThread = 0;
  CUfunction real = nullptr;  // also where the handle is a CUkernel
  uint32_t cluster[3] = {};   // 0: a launch says whether it has clusters
  int32_t clusterPolicy = 0;  // CUclusterSchedulingPolicy
  uint32_t maxDynamicShared = 0;
  bool optin() const { return maxDynamicShared + staticShared > kSharedOfEveryKernel; }
  static constexpr uint32_t kSharedOfEveryKernel = 48 * 1024;
};

// The current context of the thread; nullptr: none, or no driver yet.
// `create`: it comes to life when it was reset and is still the current one.
Context* currentContext(bool create = false);
// Events of the thread's own stock, for the context: no lock as a rule.
CUevent takeThreadEvent(Context& context);
// The object of a handle; made, and reported to the listener, when `create`.
Context* findContext(CUcontext handle, bool create);
std::vector<Context*> liveContexts();
// The stream that an API function means by `handle`.
Stream* findStream(Context& context, CUstream handle, bool perThread);
// The same, without asking the driver anything; nullptr: this thread has not met it lately.
Stream* rememberedStream(const Context& context, CUstream handle);
std::vector<Stream*> liveStreams(Context& context);
// An id for a stream that only the driver has.
uint32_t newStreamId();
void forgetContext(CUcontext handle);
void forgetStream(CUstream handle);

const KernelInfo& kernelInfo(CUfunction function);
// An attribute of the kernel was set: what is known of it is asked anew.
void kernelChanged(CUfunction function);
uint32_t moduleId(CUmodule module);
// After a module or library is gone its handles may come back as others.
void forgetKernels();
// A copy of the text that lives for good.
const char* keep(const char* text);

// Ids of objects that need no more than that (graphs, graph nodes).
uint32_t objectId(void* handle);
void forgetObject(void* handle);

}  // namespace sonde::platform::nvidia
