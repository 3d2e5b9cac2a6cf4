// SPDX-License-Identifier: Apache-2.0
// One pass over a client's queues: records are copied into the client's
// buffers, and buffers handed over.
#ifndef SONDE_CORE_PASS_H_
#define SONDE_CORE_PASS_H_

#include <mutex>
#include <vector>

#include "core/client.h"

namespace sonde::core {

// `lock` holds the client's deliveryMutex, and does so again when a function
// returns; it is let go around client code. With `everything`, buffers that are
// not full are handed over too.
class Pass {
 public:
  Pass(Client& client, std::unique_lock<std::mutex>& lock, bool everything)
      : client_(client), lock_(lock), everything_(everything), epoch_(client.epoch) {}

  // Delivers what is in the queues. Of each thread first its calls, then the
  // work that they launched.
  void run();
  // Asks for a buffer that the next records go to.
  void prepare();
  // Notes whether the client has no buffer out: the next record will ask then.
  void noteNeed();

 private:
  // The oldest record of a queue. `owner`: the thread that launched the work
  // which it tells of; 0: the queue's own.
  struct Record {
    const void* data = nullptr;  // nullptr: none
    uint32_t kind = 0, size = 0;
    uint64_t owner = 0;
  };
  Record oldest(ThreadQueue& queue) const;
  void drop(ThreadQueue& queue);

  void stageDeviceWork();
  OpenBuffer& bufferOf(ThreadQueue& queue) {
    return client_.perThreadBuffers.load(std::memory_order_relaxed) ? queue.open : client_.open;
  }

  // Each returns false when the client ended meanwhile: touch nothing then.
  bool deliverLocators();
  enum class Part { kCalls, kWork };
  bool runOver(Part part, bool ofDevice);
  bool drain(ThreadQueue& queue);
  bool drainStaged(ThreadQueue& queue, std::vector<unsigned char> ThreadQueue::* list);
  bool completeIfDue(ThreadQueue& queue);
  enum class Put { kDone, kRetry, kRefused, kWaiting, kEnded };
  Put put(ThreadQueue& queue, const void* record, uint32_t kind);
  bool request(const BufferCallbacks& callbacks, OpenBuffer* fresh);
  bool complete(OpenBuffer& buffer);

  void removeFinished();

  Client& client_;
  std::unique_lock<std::mutex>& lock_;
  const bool everything_;
  const uint32_t epoch_;
  bool staging_ = false;
};

// For records that no client gets: frees what they own.
void forget(const void* record, uint32_t kind);
void forgetAll(ThreadQueue& queue);

// An OVERHEAD record from `start` until now, if the client wants such.
void reportOverhead(Client& client, ThreadState& thread, CUpti_ActivityOverheadKind kind, uint64_t start);

}  // namespace sonde::core

#endif  // SONDE_CORE_PASS_H_
