// SPDX-License-Identifier: Apache-2.0
// Where records wait between the thread that makes them and the one that
// delivers them: a chain of chunks with one writer and one reader. Writing is a
// bump of a position and one release store; a chunk is allocated only when the
// reader has not yet given one back.
#ifndef SONDE_CORE_RECORD_QUEUE_H_
#define SONDE_CORE_RECORD_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace sonde::core {

class RecordQueue {
 public:
  RecordQueue() = default;
  RecordQueue(const RecordQueue&) = delete;
  RecordQueue& operator=(const RecordQueue&) = delete;
  ~RecordQueue() {
    freeChain(head_ != nullptr ? head_ : first_.load(std::memory_order_relaxed));
    freeChain(recycled_.load(std::memory_order_relaxed));
    freeChain(spare_);
  }

  // Writer. Room for `bytes` (a multiple of 8, at most kChunkBytes), aligned to
  // 8; nullptr when there is no memory. Invisible to the reader until commit.
  // `*startedChunk` is set when this opened a new chunk: time to wake a reader.
  void* reserve(uint32_t bytes, bool* startedChunk) noexcept {
    if (tail_ == nullptr || position_ + bytes > kChunkBytes) {
      if (!openChunk()) return nullptr;
      *startedChunk = true;
    }
    return tail_->data + position_;
  }
  void commit(uint32_t bytes) noexcept {
    position_ += bytes;
    tail_->committed.store(position_, std::memory_order_release);
  }

  // Reader. The oldest record not yet popped, or nullptr.
  const void* peek() noexcept {
    Chunk* chunk = head_;
    if (chunk == nullptr) {
      chunk = head_ = first_.load(std::memory_order_acquire);
      if (chunk == nullptr) return nullptr;
    }
    for (;;) {
      if (readPosition_ < chunk->committed.load(std::memory_order_acquire)) return chunk->data + readPosition_;
      Chunk* next = chunk->next.load(std::memory_order_acquire);
      if (next == nullptr) return nullptr;
      // The writer commits to a chunk before it links the next one.
      if (readPosition_ < chunk->committed.load(std::memory_order_acquire)) return chunk->data + readPosition_;
      recycle(chunk);
      chunk = head_ = next;
      readPosition_ = 0;
    }
  }
  void pop(uint32_t bytes) noexcept {
    readPosition_ += bytes;
    popped_ += bytes;
  }

  // A place in the queue, in bytes since its beginning: everything committed
  // before `end` was called lies before it.
  using Mark = uint64_t;
  Mark end() noexcept {
    if (peek() == nullptr) return popped_;
    Mark place = popped_ - readPosition_;
    for (Chunk* chunk = head_; chunk != nullptr;) {
      // Once there is a next one, nothing is added to this one.
      Chunk* next = chunk->next.load(std::memory_order_acquire);
      place += chunk->committed.load(std::memory_order_acquire);
      chunk = next;
    }
    return place;
  }
  bool reached(Mark mark) const noexcept { return popped_ >= mark; }

  // Chunks in use or kept for reuse; for memory limits and tests.
  uint32_t chunks() const noexcept { return chunks_.load(std::memory_order_relaxed); }

  static constexpr uint32_t kChunkBytes = 64 * 1024 - 64;

 private:
  struct Chunk {
    std::atomic<uint32_t> committed{0};
    std::atomic<Chunk*> next{nullptr};
    alignas(8) unsigned char data[kChunkBytes];
  };
  // Chunks beyond this number go back to the allocator once read.
  static constexpr uint32_t kKeepChunks = 4;

  bool openChunk() noexcept {
    if (spare_ == nullptr) spare_ = recycled_.exchange(nullptr, std::memory_order_acquire);
    Chunk* chunk = spare_;
    if (chunk != nullptr) {
      spare_ = chunk->next.load(std::memory_order_relaxed);
      chunk->committed.store(0, std::memory_order_relaxed);
      chunk->next.store(nullptr, std::memory_order_relaxed);
    } else {
      chunk = new (std::nothrow) Chunk;
      if (chunk == nullptr) return false;
      chunks_.fetch_add(1, std::memory_order_relaxed);
    }
    if (tail_ == nullptr) {
      first_.store(chunk, std::memory_order_release);
    } else {
      tail_->next.store(chunk, std::memory_order_release);
    }
    tail_ = chunk;
    position_ = 0;
    return true;
  }

  void recycle(Chunk* chunk) noexcept {
    if (chunks_.load(std::memory_order_relaxed) > kKeepChunks) {
      delete chunk;
      chunks_.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    Chunk* top = recycled_.load(std::memory_order_relaxed);
    do {
      chunk->next.store(top, std::memory_order_relaxed);
    } while (!recycled_.compare_exchange_weak(top, chunk, std::memory_order_release, std::memory_order_relaxed));
  }

  static void freeChain(Chunk* chunk) noexcept {
    while (chunk != nullptr) {
      Chunk* next = chunk->next.load(std::memory_order_relaxed);
      delete chunk;
      chunk = next;
    }
  }

  // Writer's.
  Chunk* tail_ = nullptr;
  uint32_t position_ = 0;
  Chunk* spare_ = nullptr;
  // Shared.
  alignas(64) std::atomic<Chunk*> first_{nullptr};
  std::atomic<Chunk*> recycled_{nullptr};
  std::atomic<uint32_t> chunks_{0};
  // Reader's.
  alignas(64) Chunk* head_ = nullptr;
  uint32_t readPosition_ = 0;
  uint64_t popped_ = 0;
};

}  // namespace sonde::core

#endif  // SONDE_CORE_RECORD_QUEUE_H_
