// SPDX-License-Identifier: Apache-2.0
#include "core/record_queue.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

using sonde::core::RecordQueue;

namespace {

void put(RecordQueue& queue, uint64_t value, uint32_t bytes = 24) {
  bool started = false;
  void* room = queue.reserve(bytes, &started);
  ASSERT_NE(nullptr, room);
  std::memcpy(room, &value, sizeof value);
  queue.commit(bytes);
}

uint64_t front(RecordQueue& queue) {
  uint64_t value = 0;
  std::memcpy(&value, queue.peek(), sizeof value);
  return value;
}

TEST(RecordQueue, NothingIsVisibleBeforeCommit) {
  RecordQueue queue;
  EXPECT_EQ(nullptr, queue.peek());
  bool started = false;
  ASSERT_NE(nullptr, queue.reserve(24, &started));
  EXPECT_TRUE(started);
  EXPECT_EQ(nullptr, queue.peek());
  queue.commit(24);
  EXPECT_NE(nullptr, queue.peek());
}

TEST(RecordQueue, KeepsOrderAcrossChunks) {
  RecordQueue queue;
  for (uint64_t i = 0; i < 10000; ++i) put(queue, i, i % 2 != 0 ? 216 : 40);
  for (uint64_t i = 0; i < 10000; ++i) {
    ASSERT_EQ(i, front(queue));
    queue.pop(i % 2 != 0 ? 216 : 40);
  }
  EXPECT_EQ(nullptr, queue.peek());
}

TEST(RecordQueue, MemoryStaysFlatWhenRead) {
  RecordQueue queue;
  for (uint64_t i = 0; i < 1000000; ++i) {
    put(queue, i);
    ASSERT_EQ(i, front(queue));
    queue.pop(24);
  }
  EXPECT_LE(queue.chunks(), 4u);
}

TEST(RecordQueue, MarkEndsWhatWasThere) {
  RecordQueue queue;
  put(queue, 1);
  put(queue, 2);
  const RecordQueue::Mark mark = queue.end();
  put(queue, 3);
  int before = 0;
  while (!queue.reached(mark)) {
    ASSERT_NE(nullptr, queue.peek());
    queue.pop(24);
    ++before;
  }
  EXPECT_EQ(2, before);
  EXPECT_EQ(3u, front(queue));
}

// Also when the reader has gone on to a later chunk since.
TEST(RecordQueue, AMarkStaysReached) {
  RecordQueue queue;
  uint64_t written = 0;
  const RecordQueue::Mark beginning = queue.end();
  EXPECT_TRUE(queue.reached(beginning));
  for (int round = 0; round < 3; ++round) {
    const RecordQueue::Mark empty = queue.end();
    put(queue, ++written);
    const RecordQueue::Mark one = queue.end();
    for (int i = 0; i < 5000; ++i) put(queue, ++written);  // more than a chunk
    const RecordQueue::Mark all = queue.end();
    EXPECT_TRUE(queue.reached(empty));
    EXPECT_FALSE(queue.reached(one));
    ASSERT_NE(nullptr, queue.peek());
    queue.pop(24);
    EXPECT_TRUE(queue.reached(one));
    for (int i = 0; i < 5000; ++i) {
      ASSERT_FALSE(queue.reached(all)) << i;
      ASSERT_NE(nullptr, queue.peek());
      queue.pop(24);
    }
    EXPECT_TRUE(queue.reached(empty));
    EXPECT_TRUE(queue.reached(one));
    EXPECT_TRUE(queue.reached(all));
    EXPECT_EQ(nullptr, queue.peek());
    EXPECT_TRUE(queue.reached(all));
  }
  EXPECT_TRUE(queue.reached(beginning));
}

TEST(RecordQueue, OneWriterOneReader) {
  RecordQueue queue;
  constexpr uint64_t kCount = 300000;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kCount; ++i) put(queue, i);
  });
  for (uint64_t i = 0; i < kCount;) {
    if (queue.peek() == nullptr) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(i, front(queue));
    queue.pop(24);
    ++i;
  }
  writer.join();
}

}  // namespace
