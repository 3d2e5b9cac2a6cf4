// SPDX-License-Identifier: Apache-2.0
#include "core/pass.h"

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "core/core.h"
#include "core/nvtx_payload.h"

namespace sonde::core {
namespace {

// Without buffer callbacks records wait for a client that registers later, up
// to this many chunks a thread.
constexpr uint32_t kUnregisteredChunks = 64;

uint32_t kindOf(const void* record) {
  uint32_t kind;
  std::memcpy(&kind, record, sizeof kind);
  return kind;
}

}  // namespace

void reportOverhead(Client& client, ThreadState& thread, CUpti_ActivityOverheadKind kind, uint64_t start) {
  if ((client.kinds.load(std::memory_order_relaxed) & kindBit(CUPTI_ACTIVITY_KIND_OVERHEAD)) == 0) return;
  CUpti_ActivityOverhead3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = kind;
  record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  record.objectId.pt.processId = processId();
  record.objectId.pt.threadId = threadIdFor(client, thread);
  record.start = client.toClientTime(start);
  record.end = client.toClientTime(now());
  if (const SondePlatform* platform = attachedPlatform()) record.correlationId = platform->correlationId();
  client.append(thread, record);
}

// ------------------------------------------------------------- the queues --

Pass::Record Pass::oldest(ThreadQueue& queue) const {
  Record record;
  record.data = queue.records.peek();
  if (record.data == nullptr) return record;
  record.kind = kindOf(record.data);
  if (record.kind == kOwnerTag) {
    OwnerTag tag;
    std::memcpy(&tag, record.data, sizeof tag);
    record.data = static_cast<const unsigned char*>(record.data) + sizeof tag;
    record.kind = kindOf(record.data);
    record.owner = tag.thread;
    record.size = sizeof tag;
  }
  record.size += newestSize(record.kind);
  return record;
}

void Pass::drop(ThreadQueue& queue) {
  const Record record = oldest(queue);
  if (record.data == nullptr) return;
  forget(record.data, record.kind);
  queue.records.pop(record.size);
  ++client_.dropped;
}

void forget(const void* record, uint32_t kind) {
  if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD) {
    CUpti_ActivityOverhead3 overhead;
    std::memcpy(&overhead, record, sizeof overhead);
    std::free(overhead.overheadData);
  }
  if (kind != CUPTI_ACTIVITY_KIND_MARKER_DATA) return;
  CUpti_ActivityMarkerData2 data;
  std::memcpy(&data, record, sizeof data);
  nvtx::releasePayload(data);
}

void forgetAll(ThreadQueue& queue) {
  while (const void* record = queue.records.peek()) {
    uint32_t kind = kindOf(record), before = 0;
    if (kind == kOwnerTag) {
      before = sizeof(OwnerTag);
      kind = kindOf(static_cast<const unsigned char*>(record) + before);
    }
    forget(static_cast<const unsigned char*>(record) + before, kind);
    queue.records.pop(before + newestSize(kind));
  }
}

void Pass::prepare() {
  client_.needsBuffer.store(false, std::memory_order_relaxed);
  const BufferCallbacks* callbacks = client_.buffers.load(std::memory_order_acquire);
  OpenBuffer fresh;
  if (callbacks == nullptr || !request(*callbacks, &fresh)) return;
  if (fresh.data != nullptr && fresh.size != 0) {
    client_.spares.push_back(fresh);
    return;
  }
  // Refused: that costs the oldest record, and the next one asks again.
  for (ThreadQueue* queue = client_.queues; queue != nullptr; queue = queue->next) {
    if (queue->records.peek() == nullptr) continue;
    drop(*queue);
    break;
  }
  client_.needsBuffer.store(true, std::memory_order_relaxed);
}

void Pass::noteNeed() {
  bool out = client_.open.data != nullptr || !client_.spares.empty();
  for (ThreadQueue* queue = client_.queues; queue != nullptr && !out; queue = queue->next) {
    out = queue->open.data != nullptr;
  }
  client_.needsBuffer.store(!out && client_.buffers.load(std::memory_order_relaxed) != nullptr,
                            std::memory_order_relaxed);
}

void Pass::run() {
  // When the client changed its mind about buffers of single threads, what is
  // in those of the other sort is older.
  if (client_.perThreadBuffers.load(std::memory_order_relaxed)) {
    if (!complete(client_.open)) return;
  } else {
    for (ThreadQueue* queue = client_.queues; queue != nullptr; queue = queue->next) {
      ++queue->pins;
      if (!complete(queue->open)) return;
      --queue->pins;
    }
  }
  // How far the work goes that this pass delivers: the calls of all threads are
  // looked at later, so that what the client hears of a call comes before its work.
  for (ThreadQueue* queue = client_.queues; queue != nullptr; queue = queue->next) {
    queue->mark = queue->records.end();
  }
  for (ThreadQueue* queue = client_.queues; queue != nullptr; queue = queue->next) {
    queue->marked = queue->ofDevice.load(std::memory_order_acquire);
  }
  staging_ = client_.buffers.load() != nullptr || client_.enqueued.used();
  if (staging_) stageDeviceWork();
  // In a buffer of all threads, too, work comes when the calls of every thread are there.
  if (!deliverLocators() || !runOver(Part::kCalls, false) || !runOver(Part::kCalls, true) ||
      !runOver(Part::kWork, false) || !runOver(Part::kWork, true))
    return;
  if (everything_ && !complete(client_.open)) return;
  while (everything_ && !client_.spares.empty()) {
    OpenBuffer spare = client_.spares.back();
    client_.spares.pop_back();
    if (!complete(spare)) return;
  }
  removeFinished();
}

// Records of work are made by the threads of the device, among them those that
// call and wait; those of each launching thread go to its buffer, behind its
// calls. With one buffer for all they keep the order in which they were made.
void Pass::stageDeviceWork() {
  const bool byLauncher = client_.perThreadBuffers.load(std::memory_order_relaxed);
  for (ThreadQueue* queue = client_.queues; queue != nullptr; queue = queue->next) {
    queue->stagedWork.insert(queue->stagedWork.end(), queue->heldWork.begin(), queue->heldWork.end());
    queue->heldWork.clear();
  }
  ThreadQueue* last = nullptr;
  for (ThreadQueue* queue = client_.queues; queue != nullptr; queue = queue->next) {
    if (!queue->marked) continue;
    // The queue's own calls go on to here; the launches of others' work that
    // stands behind the mark may not be known yet: it waits for the next pass.
    const RecordQueue::Mark end = queue->records.end();
    bool behind = false;
    while (!queue->records.reached(end)) {
      behind = behind || queue->records.reached(queue->mark);
      const Record record = oldest(*queue);
      if (record.data == nullptr) break;
      ThreadQueue* to = queue;
      if (record.owner != 0 && byLauncher) {
        if (last == nullptr || last->thread != record.owner) {
          const auto found = client_.queueOfThread.find(record.owner);
          // A thread that has ended: the work stays with its maker.
          last = found != client_.queueOfThread.end() ? found->second : nullptr;
        }
        if (last != nullptr) to = last;
      }
      const auto* bytes = static_cast<const unsigned char*>(record.data);
      auto& list = record.owner == 0 ? to->staged : behind ? to->heldWork : to->stagedWork;
      list.insert(list.end(), bytes, bytes + newestSize(record.kind));
      queue->records.pop(record.size);
    }
  }
}

// Every locator that a record of this pass names was made before that record,
// hence before the marks.
bool Pass::deliverLocators() {
  std::vector<Client::Locator> fresh;
  {
    std::lock_guard lock(client_.reportedMutex);
    fresh.swap(client_.locators);
  }
  if (fresh.empty()) return true;
  const auto found = client_.queueOfThread.find(fresh.front().launcher);
  ThreadQueue* const queue = found != client_.queueOfThread.end() ? found->second : client_.queues;
  size_t given = 0;
  if (queue != nullptr) {
    ++queue->pins;
    while (given < fresh.size()) {
      const Put result = put(*queue, &fresh[given].record, CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR);
      if (result == Put::kEnded) return false;
      if (result == Put::kRetry) continue;
      if (result == Put::kWaiting) break;
      ++given;
      if (result == Put::kRefused) ++client_.dropped;
      if (bufferOf(*queue).full() && !complete(bufferOf(*queue))) return false;
    }
    // Work of other threads may name them in a buffer that is handed over earlier.
    bool others = false;
    for (ThreadQueue* other = client_.queues; other != nullptr; other = other->next)
      others = others || (other != queue && !(other->staged.empty() && other->stagedWork.empty()));
    if (others && !complete(bufferOf(*queue))) return false;
    --queue->pins;
  }
  if (given < fresh.size()) {
    std::lock_guard lock(client_.reportedMutex);
    client_.locators.insert(client_.locators.begin(), fresh.begin() + static_cast<ptrdiff_t>(given), fresh.end());
  }
  return true;
}

bool Pass::runOver(Part part, bool ofDevice) {
  for (ThreadQueue* queue = client_.queues; queue != nullptr; queue = queue->next) {
    if (queue->marked != ofDevice) continue;
    ++queue->pins;
    if (part == Part::kCalls) {
      if (!drain(*queue) || !drainStaged(*queue, &ThreadQueue::staged)) return false;
    } else if (!drainStaged(*queue, &ThreadQueue::stagedWork) || !completeIfDue(*queue)) {
      return false;
    }
    --queue->pins;
  }
  return true;
}

bool Pass::completeIfDue(ThreadQueue& queue) {
  const bool over = queue.threadGone() && queue.records.peek() == nullptr && queue.heldWork.empty();
  return (!everything_ && !over) || complete(queue.open);
}

bool Pass::drain(ThreadQueue& queue) {
  client_.dropped += queue.lost.exchange(0, std::memory_order_relaxed);
  if (staging_ && queue.marked) return true;  // all of it is staged
  const RecordQueue::Mark mark = queue.marked ? queue.mark : queue.records.end();
  while (!queue.records.reached(mark)) {
    const Record record = oldest(queue);
    // Another thread's work that was not there yet at the staging: next time.
    if (record.data == nullptr || (staging_ && record.owner != 0)) break;
    switch (put(queue, record.data, record.kind)) {
      case Put::kDone: queue.records.pop(record.size); break;
      case Put::kRetry: continue;
      case Put::kWaiting:
        if (queue.records.chunks() <= kUnregisteredChunks) return true;
        [[fallthrough]];
      case Put::kRefused: drop(queue); continue;
      case Put::kEnded: return false;
    }
    if (bufferOf(queue).full() && !complete(bufferOf(queue))) return false;
  }
  return true;
}

bool Pass::drainStaged(ThreadQueue& queue, std::vector<unsigned char> ThreadQueue::* list) {
  if ((queue.*list).empty()) return true;
  const std::vector<unsigned char> staged = std::exchange(queue.*list, {});
  for (size_t at = 0; at < staged.size();) {
    const void* record = staged.data() + at;
    const uint32_t kind = kindOf(record);
    const Put result = put(queue, record, kind);
    if (result == Put::kEnded) return false;
    if (result == Put::kRetry) continue;
    at += newestSize(kind);
    if (result != Put::kDone) {
      forget(record, kind);
      ++client_.dropped;
    }
    if (bufferOf(queue).full() && !complete(bufferOf(queue))) return false;
  }
  return true;
}

// ------------------------------------------------------------ the buffers --

// One attempt to copy a record into the buffer for `queue`. Unless it is done,
// the lock may have been let go, and the record be gone from its queue.
Pass::Put Pass::put(ThreadQueue& queue, const void* record, uint32_t kind) {
  OpenBuffer& buffer = bufferOf(queue);
  const Layouts& layouts = *client_.layouts.load(std::memory_order_acquire);
  if (buffer.data == nullptr) {
    const BufferCallbacks* callbacks = client_.buffers.load(std::memory_order_acquire);
    if (callbacks == nullptr) {
      if (!client_.enqueued.used()) return Put::kWaiting;
      return client_.enqueued.put(record, layouts) ? Put::kDone : Put::kRefused;
    }
    OpenBuffer fresh;
    if (!request(*callbacks, &fresh)) return Put::kEnded;
    if (fresh.data == nullptr || fresh.size == 0) return Put::kRefused;
    if (buffer.data != nullptr) {
      client_.spares.push_back(fresh);
    } else {
      buffer = fresh;
    }
    return Put::kRetry;
  }
  const uint32_t size = recordSize(kind, layouts);
  if (size > buffer.size - buffer.used) {
    const bool tooSmall = buffer.records == 0;
    if (!complete(buffer)) return Put::kEnded;
    return tooSmall ? Put::kRefused : Put::kRetry;
  }
  convertRecord(record, layouts, buffer.data + buffer.used);
  buffer.used += size;
  ++buffer.records;
  return Put::kDone;
}

bool Pass::request(const BufferCallbacks& callbacks, OpenBuffer* fresh) {
  if (!client_.spares.empty()) {
    *fresh = client_.spares.back();
    client_.spares.pop_back();
    return true;
  }
  lock_.unlock();
  ThreadState& thread = threadState();
  const uint64_t start = now();
  // A client may set nothing at all: that is a refusal.
  thread.inClient[client_.index].fetch_add(1);
  callbacks.request(&fresh->data, &fresh->size, &fresh->maxRecords);
  thread.inClient[client_.index].fetch_sub(1);
  reportOverhead(client_, thread, CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST, start);
  lock_.lock();
  ++client_.progress;
  // If the client ended meanwhile, it will hear no more of this buffer.
  return client_.epoch == epoch_;
}

bool Pass::complete(OpenBuffer& buffer) {
  if (buffer.data == nullptr) return true;
  const OpenBuffer full = std::exchange(buffer, OpenBuffer{});
  const BufferCallbacks* callbacks = client_.buffers.load(std::memory_order_acquire);
  if (callbacks == nullptr) return true;
  lock_.unlock();
  ThreadState& thread = threadState();
  if (client_.clearBuffers.load(std::memory_order_relaxed)) {
    std::memset(full.data + full.used, 0, full.size - full.used);
  }
  thread.inClient[client_.index].fetch_add(1);
  callbacks->complete(nullptr, 0, full.data, full.size, full.used);
  thread.inClient[client_.index].fetch_sub(1);
  lock_.lock();
  ++client_.progress;
  return client_.epoch == epoch_;
}

void Pass::removeFinished() {
  ThreadQueue* last = nullptr;
  for (ThreadQueue** link = &client_.queues; *link != nullptr;) {
    ThreadQueue* queue = *link;
    if (queue->pins == 0 && queue->open.data == nullptr && queue->staged.empty() && queue->stagedWork.empty() &&
        queue->heldWork.empty() && queue->threadGone() && queue->records.peek() == nullptr) {
      client_.dropped += queue->lost.exchange(0, std::memory_order_relaxed);
      *link = queue->next;
      client_.queueOfThread.erase(queue->thread);
      queue->release(ThreadQueue::kClient);
    } else {
      last = queue;
      link = &queue->next;
    }
  }
  client_.lastQueue = last;
}

}  // namespace sonde::core
