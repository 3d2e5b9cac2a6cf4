// SPDX-License-Identifier: Apache-2.0
// Activity API: switching kinds on and off, buffers, flushing, reading records.
#include <cstring>

#include "core/delivery.h"
#include "core/no_platform.h"
#include "core/unified_memory.h"
#include "core/work.h"
#include "cupti/entry.h"

using namespace sonde::core;

namespace {

// NULL or destroyed contexts are refused before anything changes.
CUptiResult checkContext(const Client* client, CUcontext context) {
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return noPlatform(client);
  uint32_t id;
  if (context == nullptr || platform->contextId(context, &id) != 0) {
    return fail(CUPTI_ERROR_INVALID_CONTEXT, "%p is not a context; pass one that exists", static_cast<void*>(context));
  }
  return CUPTI_SUCCESS;
}

CUptiResult registerCallbacks(Client* client, CUpti_BuffersCallbackRequestFunc requested,
                              CUpti_BuffersCallbackCompleteFunc completed, bool manual6050) {
  if (manual6050) {
    std::lock_guard lock(client->deliveryMutex);
    client->manual6050 = true;
    // What SONDE_RECORD_LAYOUT chose stays chosen.
    const Layouts old = layouts6050();
    auto* chosen = new Layouts(*client->layouts.load());
    for (uint32_t kind = 0; kind < kKindCount; ++kind) {
      if (chosen->version[kind] == 0) chosen->version[kind] = old.version[kind];
    }
    keepForEver(chosen);
    client->layouts.store(chosen);
    client->attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = 4194304;
    client->attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = 4;
    client->attributes[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = 0;
    client->applyAttributes();
  }
  const BufferCallbacks* now = client->buffers.load();
  if (now == nullptr || now->request != requested || now->complete != completed) {
    const auto* callbacks = new BufferCallbacks{requested, completed};
    keepForEver(callbacks);
    client->buffers.store(callbacks);
    client->needsBuffer.store(true);
  }
  startDelivery();
  return CUPTI_SUCCESS;
}

// No record is smaller.
constexpr size_t kSmallestRecord = 24;

// The queue of enqueued buffers that is meant, by the id of its context.
CUptiResult queueOf(const Client* client, CUcontext context, uint32_t streamId, uint32_t* contextId) {
  if (client->buffers.load() != nullptr) {
    return fail(CUPTI_ERROR_INVALID_OPERATION,
                "buffer callbacks are registered: there are no queues of buffers any more");
  }
  if (context == nullptr) {
    if (streamId == 0) return CUPTI_SUCCESS;
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "stream %u needs a context", streamId);
  }
  if (const CUptiResult bad = checkContext(client, context); bad != CUPTI_SUCCESS) return bad;
  requirePlatform()->contextId(context, contextId);
  return CUPTI_SUCCESS;
}

void flushOne(Client& client, uint32_t flag) {
  // The 6.5 manual promises that the work itself is waited for.
  if (client.manual6050) attachedPlatform()->synchronizeAll();
  const uint64_t start = now();
  collectFinishedWork();
  if ((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0) reportUnfinished(client);
  deliver(client, Deliver::kEverything);
  reportFlush(client, start);
}

// `client` is nullptr when the caller is none and there are several: all of
// them are flushed then.
CUptiResult flush(Client* client, uint32_t flag) {
  if (requirePlatform() == nullptr) return noPlatform(client);
  bool any = false;
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    Client& one = clients()[i];
    if ((client != nullptr && client != &one) || !one.inUse() || one.buffers.load() == nullptr) continue;
    flushOne(one, flag);
    any = true;
  }
  if (any) return CUPTI_SUCCESS;
  return fail(CUPTI_ERROR_INVALID_OPERATION,
              "no buffer callbacks: call cuptiActivityRegisterCallbacks before flushing");
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiActivityConfigureUnifiedMemoryCounter(CUpti_ActivityUnifiedMemoryCounterConfig* config,
                                                                uint32_t count) {
  if (config == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "config is NULL");
  SONDE_CLIENT(client);
  return configureUnifiedMemory(client, config, count);
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  SONDE_CLIENT(client);
  return enableKind(client, static_cast<uint32_t>(kind), nullptr, false);
}

CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind) {
  SONDE_CLIENT(client);
  return enableKind(client, static_cast<uint32_t>(kind), nullptr, client->buffers.load() != nullptr);
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  SONDE_CLIENT(client);
  return disableKind(client, static_cast<uint32_t>(kind), nullptr);
}

CUptiResult CUPTIAPI cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind) {
  SONDE_CLIENT(client);
  if (const CUptiResult bad = checkContext(client, context); bad != CUPTI_SUCCESS) return bad;
  return enableKind(client, static_cast<uint32_t>(kind), context, false);
}

CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind) {
  SONDE_CLIENT(client);
  if (const CUptiResult bad = checkContext(client, context); bad != CUPTI_SUCCESS) return bad;
  return disableKind(client, static_cast<uint32_t>(kind), context);
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                                    CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  if (funcBufferRequested == nullptr || funcBufferCompleted == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "both buffer callbacks are needed");
  }
  SONDE_CLIENT(client);
  return registerCallbacks(client, funcBufferRequested, funcBufferCompleted, false);
}

// What cuptiActivityRegisterCallbacks is with -DCUPTI_RECORD_ABI=6050.
CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks_v6050(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                                                          CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  if (funcBufferRequested == nullptr || funcBufferCompleted == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "both buffer callbacks are needed");
  }
  SONDE_CLIENT(client);
  return registerCallbacks(client, funcBufferRequested, funcBufferCompleted, true);
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) { return flush(existingClient(SONDE_CALLER()), flag); }

CUptiResult CUPTIAPI cuptiActivityFlush(CUcontext context, uint32_t streamId, uint32_t flag) {
  return flush(existingClient(SONDE_CALLER()), flag);
}

CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t time) {
  SONDE_CLIENT(client);
  client->flushPeriodMs.store(time);
  {
    std::lock_guard lock(client->deliveryMutex);
    client->nextFlush = 0;
  }
  startDelivery();
  delivererReschedule();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t streamId, size_t* dropped) {
  if (dropped == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "dropped is NULL");
  // All buffers are global since CUPTI 6.0: context and stream select nothing.
  Client* client = existingClient(SONDE_CALLER());
  *dropped = client != nullptr ? takeDropped(*client) : 0;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes, CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", buffer == nullptr ? "buffer" : "record");
  }
  const Client* client = existingClient(SONDE_CALLER());
  static const Layouts newest;
  const Layouts& layouts = client != nullptr ? *client->layouts.load(std::memory_order_acquire) : newest;
  auto sizeAt = [&](size_t offset) -> uint32_t {
    uint32_t kind;
    if (validBufferSizeBytes - offset < sizeof kind) return 0;
    std::memcpy(&kind, buffer + offset, sizeof kind);
    const uint32_t size = recordSize(kind, layouts);
    return size != 0 && size <= validBufferSizeBytes - offset ? size : 0;
  };
  size_t offset = 0;
  if (*record != nullptr) {
    const auto previous = reinterpret_cast<uintptr_t>(*record);
    const auto begin = reinterpret_cast<uintptr_t>(buffer);
    if (previous < begin || previous - begin >= validBufferSizeBytes) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "*record does not point into the buffer; start with NULL");
    }
    offset = previous - begin;
    const uint32_t size = sizeAt(offset);
    if (size == 0) return fail(CUPTI_ERROR_INVALID_KIND, "the record at offset %zu is damaged", offset);
    offset += size;
  }
  if (offset == validBufferSizeBytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (sizeAt(offset) == 0) {
    return fail(CUPTI_ERROR_INVALID_KIND, "there is no whole record of a known kind at offset %zu of %zu", offset,
                validBufferSizeBytes);
  }
  *record = reinterpret_cast<CUpti_Activity*>(buffer + offset);
  return CUPTI_SUCCESS;
}

// The calls that came before the callbacks.
CUptiResult CUPTIAPI cuptiActivityEnqueueBuffer(CUcontext context, uint32_t streamId, uint8_t* buffer,
                                                size_t bufferSizeBytes) {
  if (buffer == nullptr || reinterpret_cast<uintptr_t>(buffer) % ACTIVITY_RECORD_ALIGNMENT != 0) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "buffer %p is not an address aligned to %d", static_cast<void*>(buffer),
                ACTIVITY_RECORD_ALIGNMENT);
  }
  if (bufferSizeBytes < kSmallestRecord) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%zu bytes hold no record", bufferSizeBytes);
  }
  SONDE_CLIENT(client);
  uint32_t id = 0;
  if (const CUptiResult bad = queueOf(client, context, streamId, &id); bad != CUPTI_SUCCESS) return bad;
  std::lock_guard lock(client->deliveryMutex);
  client->enqueued.enqueue(id, streamId, buffer, bufferSizeBytes);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityDequeueBuffer(CUcontext context, uint32_t streamId, uint8_t** buffer,
                                                size_t* validBufferSizeBytes) {
  if (buffer == nullptr || validBufferSizeBytes == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "buffer or validBufferSizeBytes is NULL");
  }
  SONDE_CLIENT(client);
  uint32_t id = 0;
  if (const CUptiResult bad = queueOf(client, context, streamId, &id); bad != CUPTI_SUCCESS) return bad;
  collectFinishedWork();
  deliver(*client, Deliver::kFullBuffers);
  std::lock_guard lock(client->deliveryMutex);
  if (client->enqueued.dequeue(id, streamId, buffer, validBufferSizeBytes)) return CUPTI_SUCCESS;
  return fail(CUPTI_ERROR_QUEUE_EMPTY, "no buffer is enqueued for this context and stream");
}

CUptiResult CUPTIAPI cuptiActivityQueryBuffer(CUcontext context, uint32_t streamId, size_t* validBufferSizeBytes) {
  if (validBufferSizeBytes == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "validBufferSizeBytes is NULL");
  SONDE_CLIENT(client);
  uint32_t id = 0;
  if (const CUptiResult bad = queueOf(client, context, streamId, &id); bad != CUPTI_SUCCESS) return bad;
  collectFinishedWork();
  deliver(*client, Deliver::kFullBuffers);
  std::lock_guard lock(client->deliveryMutex);
  bool full = false;
  if (!client->enqueued.query(id, streamId, validBufferSizeBytes, &full)) {
    return fail(CUPTI_ERROR_QUEUE_EMPTY, "no buffer is enqueued for this context and stream");
  }
  if (full) return fail(CUPTI_ERROR_MAX_LIMIT_REACHED, "the buffer is full: dequeue it");
  return CUPTI_SUCCESS;
}

}  // extern "C"
