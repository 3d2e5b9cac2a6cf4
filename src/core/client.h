// SPDX-License-Identifier: Apache-2.0
// A client of the library: one shared object or executable that calls it, with
// its own kinds, buffers, callbacks, clock and record layouts.
#ifndef SONDE_CORE_CLIENT_H_
#define SONDE_CORE_CLIENT_H_

#include <cupti.h>
#include <cupti_pcsampling.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/device_buffers.h"
#include "core/enqueued.h"
#include "core/generated/callback_names.h"
#include "core/layouts.h"
#include "core/thread_state.h"

namespace sonde::core {

inline constexpr uint32_t kDomainCount = CUPTI_CB_DOMAIN_SIZE;
inline constexpr uint32_t kMaxCbids = kDriverCbidCount > kRuntimeCbidCount ? kDriverCbidCount : kRuntimeCbidCount;

// A subscription; its address is the CUpti_SubscriberHandle. Never freed, so
// that a thread which is about to call `function` may read it at any time.
struct Subscription {
  CUpti_CallbackFunc function;
  void* userdata;
  uint32_t client;
};

// The buffer callbacks, exchanged as one. Never freed either.
struct BufferCallbacks {
  CUpti_BuffersCallbackRequestFunc request;
  CUpti_BuffersCallbackCompleteFunc complete;
};

// Kinds that one context has on or off against the global setting. Replaced as
// a whole; never freed while the client lives.
struct ContextKinds {
  CUcontext context;
  uint64_t on, off;
};
using ContextTable = std::vector<ContextKinds>;

// Turns platform times into the clock of a client that registered one.
class ClientClock {
 public:
  // Reads both clocks once.
  explicit ClientClock(CUpti_TimestampCallbackFunc function);
  uint64_t read() const { return function_(); }
  // The client's time at platform time `time`; 0 stays 0 (unknown).
  uint64_t convert(uint64_t time);

 private:
  void sample(uint64_t* platform, uint64_t* client) const;

  CUpti_TimestampCallbackFunc function_;
  std::mutex mutex_;
  uint64_t platform0_ = 0, client0_ = 0, platform1_ = 0, client1_ = 0;
};

inline constexpr uint64_t kindBit(uint32_t kind) { return uint64_t{1} << kind; }

// Attributes of the activity interface, by CUpti_ActivityAttribute.
inline constexpr uint32_t kAttributeCount = CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS + 1;

inline constexpr uint32_t kMaxUnifiedMemoryDevices = 32;

struct Client {
  uint32_t index = 0;
  // Odd while the slot is in use; changes with each life of the slot.
  std::atomic<uint32_t> generation{0};
  bool inUse() const { return (generation.load(std::memory_order_acquire) & 1) != 0; }
  // Among the lives of all clients; work that was enqueued before it began is nothing to this one.
  std::atomic<uint32_t> life{0};
  uintptr_t base = 0;  // of the object
  std::atomic<uintptr_t> begin{0}, end{0};
  bool manual6050 = false;  // follows the 6.5 manual where the two differ

  // -- Callback interface. `subscription` is read on hot paths; the enabled
  // tables are guarded by the core's registry lock.
  std::atomic<const Subscription*> subscription{nullptr};
  std::vector<uint8_t> callbackOn[kDomainCount];  // by cbid
  char subscriberName[CUPTI_SUBSCRIBER_NAME_MAX_LEN + 1] = {};

  // -- Activity interface.
  std::atomic<uint64_t> kinds{0};     // on for every context
  std::atomic<uint64_t> anyKinds{0};  // on for at least one context
  std::atomic<const ContextTable*> contexts{nullptr};
  std::vector<std::unique_ptr<const ContextTable>> contextTables;  // all that ever were
  std::vector<uint8_t> apiRecordOn[3];                             // by domain (driver, runtime) and cbid
  std::atomic<ClientClock*> clock{nullptr};
  std::atomic<bool> systemThreadIds{false};
  std::atomic<bool> latencyTimestamps{false}, eventTimestamps{false}, allSyncRecords{false};
  std::atomic<bool> launchAttributes{false}, allocationSource{false};
  // By device: one bit per CUpti_ActivityUnifiedMemoryCounterKind.
  std::atomic<uint32_t> unifiedMemory[kMaxUnifiedMemoryDevices] = {};
  std::atomic<uint32_t> unifiedMemoryOfAll{0};  // kinds asked for with the scope of all devices
  std::atomic<const BufferCallbacks*> buffers{nullptr};
  std::atomic<const Layouts*> layouts{nullptr};  // replaced as a whole, never freed
  uint64_t attributes[kAttributeCount] = {};
  std::atomic<bool> perThreadBuffers{true};
  std::atomic<bool> clearBuffers{true};  // those handed back, behind the records
  DeviceBuffers deviceBuffers;
  // Follows `attributes`, which is guarded by deliveryMutex.
  void applyAttributes();
  std::atomic<CUpti_ComputeCrcCallbackFunc> computeCrc{nullptr};
  std::atomic<uint32_t> flushPeriodMs{0};

  // What was reported already, so that an object is reported once. Guarded by
  // reportedMutex.
  std::mutex reportedMutex;
  std::set<uint64_t> unfinishedReported;  // work that a forced flush told of before its end
  std::unordered_set<uint64_t> reported;  // kind << 32 | id
  struct Allocation {
    uint64_t start, bytes;
    uint32_t kind, device, contextUid;
    uint64_t pc;
    const char* name;  // of a variable; interned
    bool reported;     // its unfinished form went out
  };
  std::unordered_map<uint64_t, Allocation> allocations;  // live, for kind MEMORY
  // Source locators that were not handed over yet. Any thread's records may name
  // them, so that they are in no thread's queue: a delivery begins with them.
  struct Locator {
    CUpti_ActivitySourceLocator record;
    uint64_t launcher;  // ThreadState::serial of who launched the work that met it first
  };
  std::vector<Locator> locators;

  // -- Delivery (delivery.cpp). The mutex is never held while client code runs;
  // `deliverer` is the thread that is handing over, so that another one waits
  // for it.
  std::mutex deliveryMutex;
  std::condition_variable delivererGone;
  std::thread::id deliverer;
  bool deliverAgain = false, deliverAgainAll = false;
  uint32_t epoch = 0;             // changes when the queues are discarded
  uint64_t progress = 0;          // buffer callbacks that returned
  ThreadQueue* queues = nullptr;  // in the order of their making: thread ids are reused
  ThreadQueue* lastQueue = nullptr;
  std::unordered_map<uint64_t, ThreadQueue*> queueOfThread;  // by ThreadState::serial
  OpenBuffer open;                                           // with one buffer for all threads
  std::vector<OpenBuffer> spares;                            // asked for by two deliveries at once
  EnqueuedBuffers enqueued;                                  // instead of buffer callbacks
  uint64_t nextSample = 0;                                   // of the environment; ns of the steady clock, 0: none
  uint64_t dropped = 0;
  std::atomic<bool> wakeRequested{false};
  // The client has none of its buffers with us: the next record asks for one.
  std::atomic<bool> needsBuffer{false};
  uint64_t nextFlush = 0;  // ns of the steady clock

  bool kindOn(uint32_t kind, CUcontext context) const {
    const ContextTable* table = contexts.load(std::memory_order_acquire);
    const uint64_t bit = kindBit(kind);
    if (table != nullptr) {
      for (const ContextKinds& entry : *table) {
        if (entry.context != context) continue;
        if (entry.off & bit) return false;
        if (entry.on & bit) return true;
      }
    }
    return (kinds.load(std::memory_order_relaxed) & bit) != 0;
  }

  // True once per (kind, id).
  bool reportOnce(uint32_t kind, uint32_t id);
  // Likewise, a line of source.
  void reportLocator(uint32_t id, const char* file, uint32_t line, uint64_t launcher);
  void forgetReported(uint32_t kind, uint32_t id);

  // A time of the platform in this client's clock.
  uint64_t toClientTime(uint64_t time) const {
    ClientClock* c = clock.load(std::memory_order_acquire);
    return c == nullptr ? time : c->convert(time);
  }

  // Room for a record in this thread's queue, or nullptr (no memory: counted as
  // dropped). `commit` publishes it.
  void* reserve(ThreadState& thread, uint32_t bytes) {
    const uint32_t g = generation.load(std::memory_order_relaxed);
    ThreadQueue* queue = thread.queue[index];
    if (queue == nullptr || thread.queueGeneration[index] != g) {
      queue = openQueue(thread, g);
      if (queue == nullptr) return nullptr;
    }
    bool startedChunk = false;
    void* room = queue->records.reserve(bytes, &startedChunk);
    if (startedChunk) requestDelivery();
    if (room == nullptr) queue->lost.fetch_add(1, std::memory_order_relaxed);
    return room;
  }
  void commit(ThreadState& thread, uint32_t bytes) { thread.queue[index]->records.commit(bytes); }

  // A whole record; copied. False: no memory.
  template <typename Record>
  bool append(ThreadState& thread, const Record& record) {
    static_assert(sizeof(Record) % 8 == 0);
    const uint32_t before = thread.recordOwner != 0 ? sizeof(OwnerTag) : 0;
    if (auto* room = static_cast<unsigned char*>(reserve(thread, before + sizeof record))) {
      if (before != 0) {
        const OwnerTag tag{kOwnerTag, 0, thread.recordOwner};
        __builtin_memcpy(room, &tag, sizeof tag);
      }
      __builtin_memcpy(room + before, &record, sizeof record);
      commit(thread, before + sizeof record);
      return true;
    }
    return false;
  }

  // Makes this thread's queue, so that records of work which it launches have
  // somewhere to go.
  void haveQueue(ThreadState& thread) {
    const uint32_t g = generation.load(std::memory_order_relaxed);
    if (thread.queue[index] == nullptr || thread.queueGeneration[index] != g) openQueue(thread, g);
  }

 private:
  ThreadQueue* openQueue(ThreadState& thread, uint32_t g);
  void requestDelivery();
};

// All slots, used or not; never destroyed.
Client* clients();

}  // namespace sonde::core

#endif  // SONDE_CORE_CLIENT_H_
