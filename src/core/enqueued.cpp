// SPDX-License-Identifier: Apache-2.0
#include "core/enqueued.h"

#include <cstring>

namespace sonde::core {
namespace {

struct Place {
  uint32_t context = 0, stream = 0;
};

template <typename Record>
Place placeIn(const void* record) {
  const auto& r = *static_cast<const Record*>(record);
  return {r.contextId, r.streamId};
}

// Where the record's work ran; nowhere for those of the host.
Place placeOf(uint32_t kind, const void* record) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return placeIn<CUpti_ActivityKernel10>(record);
    case CUPTI_ACTIVITY_KIND_CDP_KERNEL: return placeIn<CUpti_ActivityCdpKernel>(record);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return placeIn<CUpti_ActivityMemcpy6>(record);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return placeIn<CUpti_ActivityMemcpyPtoP4>(record);
    case CUPTI_ACTIVITY_KIND_MEMSET: return placeIn<CUpti_ActivityMemset4>(record);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return placeIn<CUpti_ActivityCudaEvent2>(record);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return placeIn<CUpti_ActivityGraphTrace2>(record);
    default: return {};
  }
}

}  // namespace

const EnqueuedBuffers::Queue* EnqueuedBuffers::find(uint32_t context, uint32_t stream) const {
  for (const Queue& queue : queues_) {
    if (queue.context == context && queue.stream == stream) return &queue;
  }
  return nullptr;
}

void EnqueuedBuffers::enqueue(uint32_t context, uint32_t stream, uint8_t* data, size_t size) {
  Queue* queue = find(context, stream);
  if (queue == nullptr) queue = &queues_.emplace_back(Queue{context, stream, {}});
  OpenBuffer buffer;
  buffer.data = data;
  buffer.size = size;
  queue->buffers.push_back(buffer);
}

bool EnqueuedBuffers::dequeue(uint32_t context, uint32_t stream, uint8_t** data, size_t* valid) {
  Queue* queue = find(context, stream);
  if (queue == nullptr || queue->buffers.empty()) return false;
  *data = queue->buffers.front().data;
  *valid = queue->buffers.front().used;
  queue->buffers.pop_front();
  return true;
}

bool EnqueuedBuffers::query(uint32_t context, uint32_t stream, size_t* valid, bool* full) const {
  const Queue* queue = find(context, stream);
  if (queue == nullptr || queue->buffers.empty()) return false;
  *valid = queue->buffers.front().used;
  *full = queue->buffers.front().maxRecords != 0;
  return true;
}

bool EnqueuedBuffers::put(const void* record, const Layouts& layouts) {
  uint32_t kind;
  std::memcpy(&kind, record, sizeof kind);
  const Place place = placeOf(kind, record);
  Queue* queue = find(place.context, place.stream);
  if (queue == nullptr) queue = find(place.context, 0);
  if (queue == nullptr) queue = find(0, 0);
  if (queue == nullptr) return false;
  const uint32_t size = recordSize(kind, layouts);
  for (OpenBuffer& buffer : queue->buffers) {
    if (buffer.maxRecords != 0) continue;
    if (buffer.size - buffer.used < size) {
      buffer.maxRecords = 1;
      continue;
    }
    convertRecord(record, layouts, buffer.data + buffer.used);
    buffer.used += size;
    return true;
  }
  return false;
}

}  // namespace sonde::core
