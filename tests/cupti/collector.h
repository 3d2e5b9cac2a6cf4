// SPDX-License-Identifier: Apache-2.0
// A client for tests: hands out buffers and keeps a copy of every record.
#ifndef SONDE_TESTS_CUPTI_COLLECTOR_H_
#define SONDE_TESTS_CUPTI_COLLECTOR_H_

#include <cupti.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

namespace testing_support {

// One record, kept in 8-byte words so that it is aligned.
struct Record {
  std::vector<uint64_t> words;
  uint32_t kind() const {
    uint32_t k;
    std::memcpy(&k, words.data(), sizeof k);
    return k;
  }
  template <typename T>
  const T& as() const {
    return *reinterpret_cast<const T*>(words.data());
  }
};

class Collector {
 public:
  static Collector& instance() {
    static Collector& collector = *new Collector;
    return collector;
  }

  // What the next request hands out; reset by `start`.
  size_t bufferSize = 64 * 1024;
  size_t maxRecords = 0;
  // Called instead of the default request, when set.
  std::function<void(uint8_t**, size_t*, size_t*)> onRequest;
  // Called on each completed buffer, before it is read.
  std::function<void(uint8_t*, size_t, size_t)> onComplete;
  // Takes back what onRequest handed out, when set.
  std::function<void(uint8_t*)> onRelease;

  // Forgets everything and registers the callbacks anew.
  void start() {
    clear();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(requested, completed));
  }
  void clear() {
    std::lock_guard lock(mutex_);
    records_.clear();
    recordsPerBuffer_.clear();
    bufferSize = 64 * 1024;
    maxRecords = 0;
    onRequest = nullptr;
    onComplete = nullptr;
    onRelease = nullptr;
    requests = completions = 0;
  }
  std::vector<Record> records() {
    std::lock_guard lock(mutex_);
    return records_;
  }
  std::vector<Record> records(uint32_t kind) {
    std::vector<Record> out;
    for (const Record& r : records()) {
      if (r.kind() == kind) out.push_back(r);
    }
    return out;
  }
  std::vector<size_t> recordsPerBuffer() {
    std::lock_guard lock(mutex_);
    return recordsPerBuffer_;
  }
  // Flushes and returns what has come so far.
  std::vector<Record> flush(uint32_t flag = 0) {
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(flag));
    return records();
  }

  std::atomic<uint32_t> requests{0}, completions{0};

  // Buffers that no client will see again, because it ended while they were
  // out, stay known here.
  uint8_t* allocate(size_t bytes) {
    auto* buffer = static_cast<uint8_t*>(std::aligned_alloc(8, (bytes + 7) / 8 * 8));
    std::lock_guard lock(mutex_);
    out_.insert(buffer);
    return buffer;
  }
  void release(uint8_t* buffer) {
    {
      std::lock_guard lock(mutex_);
      if (out_.erase(buffer) == 0) {
        ADD_FAILURE() << "a buffer that was not handed out came back";
        return;
      }
    }
    std::free(buffer);
  }

  static void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
    Collector& c = instance();
    ++c.requests;
    if (c.onRequest) {
      c.onRequest(buffer, size, maxNumRecords);
      return;
    }
    *size = c.bufferSize;
    *buffer = c.allocate(c.bufferSize);
    *maxNumRecords = c.maxRecords;
  }

  static void CUPTIAPI completed(CUcontext context, uint32_t streamId, uint8_t* buffer, size_t size, size_t validSize) {
    Collector& c = instance();
    ++c.completions;
    EXPECT_EQ(nullptr, context);
    EXPECT_EQ(0u, streamId);
    EXPECT_LE(validSize, size);
    if (c.onComplete) c.onComplete(buffer, size, validSize);
    c.read(buffer, validSize);
    if (c.onRelease) {
      c.onRelease(buffer);
    } else if (!c.onRequest) {
      c.release(buffer);
    }
  }

  void read(uint8_t* buffer, size_t validSize) {
    std::vector<Record> found;
    CUpti_Activity* record = nullptr;
    CUptiResult result;
    std::vector<uint8_t*> starts;
    while ((result = cuptiActivityGetNextRecord(buffer, validSize, &record)) == CUPTI_SUCCESS) {
      starts.push_back(reinterpret_cast<uint8_t*>(record));
    }
    EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, result);
    for (size_t i = 0; i < starts.size(); ++i) {
      const uint8_t* end = i + 1 < starts.size() ? starts[i + 1] : buffer + validSize;
      Record r;
      r.words.resize(static_cast<size_t>(end - starts[i]) / 8);
      std::memcpy(r.words.data(), starts[i], r.words.size() * 8);
      found.push_back(std::move(r));
    }
    std::lock_guard lock(mutex_);
    recordsPerBuffer_.push_back(found.size());
    for (Record& r : found) records_.push_back(std::move(r));
  }

 private:
  std::mutex mutex_;
  std::vector<Record> records_;
  std::set<uint8_t*> out_;
  std::vector<size_t> recordsPerBuffer_;
};

}  // namespace testing_support

#endif  // SONDE_TESTS_CUPTI_COLLECTOR_H_
