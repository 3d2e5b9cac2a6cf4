// SPDX-License-Identifier: Apache-2.0
// What the core keeps per thread. Found by one thread-local load; owned by the
// thread until it ends, read by others only where said.
#ifndef SONDE_CORE_THREAD_STATE_H_
#define SONDE_CORE_THREAD_STATE_H_

#include <cupti.h>

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/directives.h"
#include "core/record_queue.h"

namespace sonde::core {

inline constexpr uint32_t kMaxClients = 16;

// A client's buffer while records are copied into it.
struct OpenBuffer {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0, maxRecords = 0, records = 0;

  // Nothing more may or can go into it.
  bool full() const {
    constexpr size_t kSmallestRecord = 24;
    return data != nullptr && ((maxRecords != 0 && records >= maxRecords) || size - used < kSmallestRecord);
  }
};

// Stands before a record of device work in the queue of the thread that made it
// when it belongs in the buffer of the thread that launched the work.
struct OwnerTag {
  uint32_t kind;  // kOwnerTag
  uint32_t reserved;
  uint64_t thread;  // ThreadState::serial
};
inline constexpr uint32_t kOwnerTag = 0x7fff0001;

// The records of one thread for one client. Belongs to two owners, the thread
// (which writes) and the client (which reads); the last one out frees it.
struct ThreadQueue {
  RecordQueue records;
  uint64_t thread = 0;  // ThreadState::serial
  OpenBuffer open;      // reader's: with per-thread buffers
  // Reader's, for the pass under way: records from this queue, and those of work
  // that this thread launched and another one made; and what comes with the next.
  std::vector<unsigned char> staged, stagedWork, heldWork;
  RecordQueue::Mark mark{};           // reader's: where others' work ends for the pass under way
  bool marked = false;                // reader's
  ThreadQueue* next = nullptr;        // reader's: the client's list
  uint32_t pins = 0;                  // reader's: deliveries that will come back to it
  std::atomic<bool> ofDevice{false};  // holds records of device work: delivered after those of calls
  std::atomic<uint32_t> lost{0};      // writer found no memory
  std::atomic<uint32_t> owners{3};    // bit 0 thread, bit 1 client

  static constexpr uint32_t kThread = 1, kClient = 2;
  bool threadGone() const { return (owners.load(std::memory_order_acquire) & kThread) == 0; }
  // Gives up one owner's share; `this` may be gone afterwards.
  void release(uint32_t owner) {
    if (owners.fetch_and(~owner, std::memory_order_acq_rel) == owner) delete this;
  }
};

// Kept from the entry of an API call to its exit, for clients that need it.
struct CallFrame {
  CallFrame* below = nullptr;
  uint64_t correlationData[kMaxClients];
  uint64_t start[kMaxClients];  // in the clock of a client that has one of its own
};

struct ExternalId {
  CUpti_ExternalCorrelationKind kind;
  uint64_t id;
};

// An NVTX range that is open, and the clients that have its start.
struct OpenRange {
  uint32_t id;
  uint32_t clients;
};

struct ThreadState {
  // The queue per client, valid while the client's generation is the noted one.
  ThreadQueue* queue[kMaxClients] = {};
  uint32_t queueGeneration[kMaxClients] = {};
  // Clients that record the runtime call which this thread is in.
  uint32_t runtimeRecorded = 0;
  uint64_t serial = 0;  // unlike ids, never used again
  // While a record of work that another thread launched is appended: its serial.
  uint64_t recordOwner = 0;
  uint32_t pthreadId = 0;  // low 32 bits of pthread_self
  uint32_t systemId = 0;   // gettid
  // Stack of external ids per client; the generation says whose.
  std::vector<ExternalId> external[kMaxClients];
  uint32_t externalGeneration[kMaxClients] = {};
  CallFrame* freeFrames = nullptr;
  // Pushed NVTX ranges by domain.
  std::unordered_map<const void*, std::vector<OpenRange>> pushedRanges;
  DirectiveState directives;
  // Where the last call of this thread's clients came from (client.cpp).
  uintptr_t callerBegin = 0, callerEnd = 0;
  uint32_t callerClient = 0, callerGeneration = 0;

  // How deep this thread is in code of each client. Written by the thread, read
  // by a thread that must wait until a client's code has returned.
  std::atomic<uint32_t> inClient[kMaxClients] = {};
  ThreadState* next = nullptr;  // list of all; guarded by the registry lock
  ThreadState* previous = nullptr;

  CallFrame* takeFrame();
  void giveFrame(CallFrame* frame);
};

extern thread_local ThreadState* tlsThreadState __attribute__((tls_model("initial-exec")));
ThreadState* createThreadState();

// This thread's state; made at the first call. Never nullptr.
inline ThreadState& threadState() {
  ThreadState* state = tlsThreadState;
  return *(state != nullptr ? state : createThreadState());
}

// Waits until no other thread is in code of client `index`, at most
// `milliseconds`. False: one still is.
bool waitForClientCode(uint32_t index, int milliseconds);

// The registry of threads around a fork.
void lockThreads();
void unlockThreads();
void forgetOtherThreads();  // in the child; the lock is held by the caller

}  // namespace sonde::core

#endif  // SONDE_CORE_THREAD_STATE_H_
