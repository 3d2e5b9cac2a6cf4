// SPDX-License-Identifier: Apache-2.0
// Buffers of clients that use the calls which came before the buffer callbacks
// (cuptiActivityEnqueueBuffer and its kin): one queue per context and stream.
#ifndef SONDE_CORE_ENQUEUED_H_
#define SONDE_CORE_ENQUEUED_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/layouts.h"
#include "core/thread_state.h"

namespace sonde::core {

// Guarded by the client's delivery lock; the memory belongs to the client.
class EnqueuedBuffers {
 public:
  // Something was enqueued since the client began.
  bool used() const { return !queues_.empty(); }
  void clear() { queues_.clear(); }

  // `context` is a context id, 0 for none; `stream` 0 for all of the context.
  void enqueue(uint32_t context, uint32_t stream, uint8_t* data, size_t size);
  // Takes the oldest buffer. False: there is none.
  bool dequeue(uint32_t context, uint32_t stream, uint8_t** data, size_t* valid);
  // How much of the oldest buffer is filled; `*full`: no more records go there.
  bool query(uint32_t context, uint32_t stream, size_t* valid, bool* full) const;

  // Copies a record (in its newest form) to the queue of its stream, else that
  // of its context, else the global one. False: no room, the record is lost.
  bool put(const void* record, const Layouts& layouts);

 private:
  struct Queue {
    uint32_t context, stream;
    std::deque<OpenBuffer> buffers;  // maxRecords is 1 in those that are full
  };
  const Queue* find(uint32_t context, uint32_t stream) const;
  Queue* find(uint32_t context, uint32_t stream) {
    return const_cast<Queue*>(static_cast<const EnqueuedBuffers*>(this)->find(context, stream));
  }
  std::vector<Queue> queues_;
};

}  // namespace sonde::core

#endif  // SONDE_CORE_ENQUEUED_H_
