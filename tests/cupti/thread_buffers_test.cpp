// SPDX-License-Identifier: Apache-2.0
// Attribute PER_THREAD_ACTIVITY_BUFFER: a buffer for each thread (the default),
// or one for all of them.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;
using testing_support::Record;

namespace {

constexpr uint32_t kLaunch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;

// A thread that does what it is told, one thing after the other.
class Worker {
 public:
  Worker() : thread_([this] { main(); }) {}
  ~Worker() { end(); }
  void run(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    task_ = std::move(task);
    changed_.notify_all();
    changed_.wait(lock, [this] { return task_ == nullptr; });
  }
  void end() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void main() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return task_ != nullptr || over_; });
      if (task_ == nullptr) return;
      lock.unlock();
      task_();
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool over_ = false;
  std::thread thread_;
};

class ThreadBuffers : public ::testing::Test {
 protected:
  void SetUp() override {
    collector_.start();
    context_ = fake::createContext();
    for (auto kind : {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                      CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION}) {
      ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind));
    }
    collector_.onComplete = [this](uint8_t* buffer, size_t, size_t valid) {
      std::vector<Record> records;
      CUpti_Activity* record = nullptr;
      while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        Record copy;
        copy.words.resize(sizeof(CUpti_ActivityKernel10) / 8);
        std::memcpy(
            copy.words.data(), record,
            record->kind == CUPTI_ACTIVITY_KIND_RUNTIME ? sizeof(CUpti_ActivityAPI) : sizeof(CUpti_ActivityKernel10));
        records.push_back(copy);
      }
      std::lock_guard lock(mutex_);
      buffers_.push_back(records);
    };
  }
  void TearDown() override {
    fake::releaseWork();
    fake::waitWork();
    collector_.onComplete = nullptr;
    collector_.onRequest = nullptr;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    fake::destroyContext(context_);
  }
  void setPerThread(uint8_t on) {
    size_t size = sizeof on;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &on));
  }
  // `count` launches, each of one kernel.
  void launch(int count) {
    for (int i = 0; i < count; ++i) {
      cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1);
      fake::call(SONDE_DOMAIN_RUNTIME, kLaunch, 0, [&] { fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL); });
      cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr);
    }
  }
  std::vector<std::vector<Record>> flushed() {
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
    std::lock_guard lock(mutex_);
    return std::exchange(buffers_, {});
  }
  bool soon(const std::function<bool()>& condition) {
    for (int i = 0; i < 5000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  }
  // Calls of one thread, and just their kernels, each behind the external id of its call (what tools join them by).
  // The number of calls.
  size_t oneThreads(const std::vector<Record>& buffer, uint32_t* threadId) {
    std::set<uint32_t> calls, external, kernels;
    for (const Record& record : buffer) {
      if (record.kind() == CUPTI_ACTIVITY_KIND_RUNTIME) {
        const auto& api = record.as<CUpti_ActivityAPI>();
        EXPECT_TRUE(calls.empty() || api.threadId == *threadId);
        *threadId = api.threadId;
        calls.insert(api.correlationId);
      } else if (record.kind() == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
        external.insert(record.as<CUpti_ActivityExternalCorrelation>().correlationId);
      } else {
        const uint32_t id = record.as<CUpti_ActivityKernel10>().correlationId;
        EXPECT_EQ(1u, external.count(id)) << "a kernel before its external id";
        kernels.insert(id);
      }
    }
    EXPECT_EQ(calls, kernels);
    EXPECT_EQ(calls, external);
    return calls.size();
  }

  Collector& collector_ = Collector::instance();
  SondeHandle context_ = nullptr;
  std::mutex mutex_;
  std::vector<std::vector<Record>> buffers_;
};

TEST_F(ThreadBuffers, EachThreadsCallsAndItsWorkAreInOneBuffer) {
  Worker a, b;
  // The delivery thread may look at the queues at any time: what it took
  // already is not what this test is about.
  a.run([&] { launch(1); });
  b.run([&] { launch(1); });
  fake::waitWork();
  flushed();
  a.run([&] { launch(3); });
  b.run([&] { launch(5); });
  launch(2);
  fake::waitWork();
  auto buffers = flushed();
  std::map<size_t, int> sizes;
  std::set<uint32_t> threads;
  for (const auto& buffer : buffers) {
    uint32_t thread = 0;
    ++sizes[oneThreads(buffer, &thread)];
    threads.insert(thread);
  }
  EXPECT_EQ((std::map<size_t, int>{{2, 1}, {3, 1}, {5, 1}}), sizes);
  EXPECT_EQ(3u, threads.size());
  // Nothing is held for threads that do nothing.
  EXPECT_EQ(collector_.requests, collector_.completions);
}

TEST_F(ThreadBuffers, WorkGoesToItsLauncherAlsoWithoutRecordsOfCalls) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
  Worker a, b;
  fake::holdWork();
  std::set<uint32_t> expected[2];
  auto launches = [&](int which, int count) {
    for (int i = 0; i < count; ++i) {
      launch(1);
      expected[which].insert(fake::lastCorrelation());
    }
  };
  a.run([&] { launches(0, 4); });
  b.run([&] { launches(1, 2); });
  a.run([&] { launches(0, 3); });
  fake::releaseWork();
  fake::waitWork();
  std::map<size_t, std::set<uint32_t>> seen;
  for (const auto& buffer : flushed()) {
    std::set<uint32_t> ids;
    for (const Record& record : buffer) ids.insert(record.as<CUpti_ActivityKernel10>().correlationId);
    const int which = expected[0].count(*ids.begin()) != 0 ? 0 : 1;
    for (uint32_t id : ids) EXPECT_EQ(1u, expected[which].count(id)) << "work of both threads in one buffer";
    seen[which].insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(expected[0], seen[0]);
  EXPECT_EQ(expected[1], seen[1]);
}

TEST_F(ThreadBuffers, OneBufferForAllWhereTheClientSaysSo) {
  setPerThread(0);
  Worker a, b;
  a.run([&] { launch(1); });
  fake::waitWork();
  flushed();
  a.run([&] { launch(2); });
  b.run([&] { launch(3); });
  fake::waitWork();
  const auto buffers = flushed();
  ASSERT_EQ(1u, buffers.size());
  EXPECT_EQ(15u, buffers[0].size());
  std::set<uint32_t> external;
  for (const Record& record : buffers[0]) {
    if (record.kind() == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
      external.insert(record.as<CUpti_ActivityExternalCorrelation>().correlationId);
    } else if (record.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      EXPECT_EQ(1u, external.count(record.as<CUpti_ActivityKernel10>().correlationId));
    }
  }
}

// Threads that wait do work of others: their queues hold calls and work.
TEST_F(ThreadBuffers, OneBufferForAllHasNoWorkBeforeItsExternalId) {
  setPerThread(0);
  Worker a, b;
  fake::holdWork();
  for (Worker* worker : {&a, &b}) {
    worker->run([&] { launch(1); });
    worker->run([] { fake::doHeldWork(); });
  }
  flushed();
  for (int round = 0; round < 4; ++round) {
    Worker &launches = round % 2 == 0 ? b : a, &waits = round % 2 == 0 ? a : b;
    launches.run([&] { launch(3); });
    if (round >= 2) waits.run([&] { launch(2); });
    waits.run([] { fake::doHeldWork(); });
    std::vector<uint32_t> kernels;
    std::set<uint32_t> external;
    for (const auto& buffer : flushed()) {
      for (const Record& record : buffer) {
        if (record.kind() == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
          external.insert(record.as<CUpti_ActivityExternalCorrelation>().correlationId);
        } else if (record.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
          kernels.push_back(record.as<CUpti_ActivityKernel10>().correlationId);
          EXPECT_EQ(1u, external.count(kernels.back())) << "a kernel before its external id, round " << round;
        }
      }
    }
    EXPECT_EQ(round < 2 ? 3u : 5u, kernels.size());
    EXPECT_EQ(kernels.size(), external.size());
    if (round < 2) EXPECT_TRUE(std::is_sorted(kernels.begin(), kernels.end())) << "as they were done";
  }
}

// As the vendor's library: no error, and it counts from the next buffer on.
TEST_F(ThreadBuffers, TheAttributeMayChangeAtAnyTime) {
  Worker a;
  a.run([&] { launch(1); });
  fake::waitWork();
  flushed();
  for (int round = 0; round < 3; ++round) {
    setPerThread(0);
    launch(2);
    a.run([&] { launch(2); });
    fake::waitWork();
    EXPECT_EQ(1u, flushed().size());
    setPerThread(1);
    launch(2);
    a.run([&] { launch(2); });
    fake::waitWork();
    EXPECT_EQ(2u, flushed().size());
  }
  // In the midst: nothing is lost.
  a.run([&] { launch(3); });
  setPerThread(0);
  a.run([&] { launch(3); });
  launch(3);
  fake::waitWork();
  size_t records = 0;
  for (const auto& buffer : flushed()) records += buffer.size();
  EXPECT_EQ(27u, records);
}

TEST_F(ThreadBuffers, AThreadsBufferComesBackWhenTheThreadHasEnded) {
  auto worker = std::make_unique<Worker>();
  worker->run([&] { launch(3); });
  fake::waitWork();
  worker->end();
  // No flush.
  EXPECT_TRUE(soon([&] {
    std::lock_guard lock(mutex_);
    size_t records = 0;
    for (const auto& buffer : buffers_) records += buffer.size();
    return records == 9;
  }));
}

TEST_F(ThreadBuffers, WorkThatOutlivesItsLauncherIsDelivered) {
  fake::holdWork();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
  for (int i = 0; i < 20; ++i) std::thread([&] { launch(2); }).join();
  flushed();
  fake::releaseWork();
  fake::waitWork();
  size_t kernels = 0;
  for (const auto& buffer : flushed()) kernels += buffer.size();
  EXPECT_EQ(40u, kernels);
}

}  // namespace
