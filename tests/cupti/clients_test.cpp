// SPDX-License-Identifier: Apache-2.0
// Several clients at once: this program and shared objects that it loads.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "core/fake_driver.h"
#include "cupti/collector.h"
#include "cupti/plugin.h"

using testing_support::Collector;
using testing_support::Plugin;

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;
constexpr uint32_t kRuntime = CUPTI_ACTIVITY_KIND_RUNTIME;
constexpr uint32_t kKernel = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;

class Clients : public ::testing::Test {
 protected:
  void SetUp() override { context_ = fake::createContext(); }
  void TearDown() override {
    a_.call("pluginFinalize");
    b_.call("pluginFinalize");
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    fake::destroyContext(context_);
  }
  void work(uint32_t calls, uint32_t kernels) {
    for (uint32_t i = 0; i < calls; ++i) fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
    for (uint32_t i = 0; i < kernels; ++i) fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
    fake::waitWork();
  }
  Plugin a_{PLUGIN_A}, b_{PLUGIN_B};
  Collector& collector_ = Collector::instance();
  SondeHandle context_ = nullptr;
};

TEST_F(Clients, EachHasItsOwnKindsAndBuffers) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  const uint32_t a = a_.records(kKernel), b = b_.records(kRuntime);
  ASSERT_EQ(0, a_.call("pluginStart", kKernel));
  ASSERT_EQ(0, b_.call("pluginStart", kRuntime));
  work(3, 2);
  EXPECT_EQ(3u, collector_.flush().size());
  EXPECT_EQ(0, a_.call("pluginFlush"));
  EXPECT_EQ(0, b_.call("pluginFlush"));
  EXPECT_EQ(a + 2, a_.records(kKernel));
  EXPECT_EQ(0u, a_.records(kRuntime));
  EXPECT_EQ(b + 3, b_.records(kRuntime));
  // A disables; the others go on.
  EXPECT_EQ(0, a_.call("pluginDisable", kKernel));
  work(1, 1);
  EXPECT_EQ(4u, collector_.flush().size());
  EXPECT_EQ(0, a_.call("pluginFlush"));
  EXPECT_EQ(a + 2, a_.records(kKernel));
}

TEST_F(Clients, EachMayHaveOneSubscriber) {
  static std::atomic<int> mine{0};
  mine = 0;
  CUpti_SubscriberHandle subscriber;
  ASSERT_EQ(
      CUPTI_SUCCESS,
      cuptiSubscribe(&subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) { ++mine; }, nullptr));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API));
  const auto before = static_cast<uint32_t>(a_.call("pluginCallbacks"));
  ASSERT_EQ(0, a_.call("pluginSubscribe", uint32_t{CUPTI_CB_DOMAIN_RUNTIME_API}, kMalloc));
  EXPECT_EQ(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
            a_.call("pluginSubscribe", uint32_t{CUPTI_CB_DOMAIN_RUNTIME_API}, kMalloc));
  work(5, 0);
  EXPECT_EQ(10, mine);
  EXPECT_EQ(before + 10, static_cast<uint32_t>(a_.call("pluginCallbacks")));
  ASSERT_EQ(0, a_.call("pluginUnsubscribe"));
  work(1, 0);
  EXPECT_EQ(12, mine);
  EXPECT_EQ(before + 10, static_cast<uint32_t>(a_.call("pluginCallbacks")));
}

TEST_F(Clients, OneThatRefusesBuffersDoesNotHarmTheOthers) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  a_.call("pluginRefuse", 1);
  ASSERT_EQ(0, a_.call("pluginStart", kRuntime));
  const uint32_t before = a_.records(kRuntime);
  work(40, 0);
  EXPECT_EQ(0, a_.call("pluginFlush"));
  EXPECT_EQ(40u, collector_.flush().size());
  EXPECT_EQ(before, a_.records(kRuntime));
  EXPECT_EQ(40, a_.call("pluginDropped"));
  size_t dropped = 99;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(0u, dropped);
  a_.call("pluginRefuse", 0);
}

TEST_F(Clients, ASlowOneDoesNotHoldUpAnother) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(0, a_.call("pluginStart", kRuntime));
  std::atomic<bool> inside{false}, go{false};
  collector_.onComplete = [&](uint8_t*, size_t, size_t) {
    inside = true;
    while (!go) std::this_thread::yield();
  };
  work(2, 0);
  std::thread slow([] { EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0)); });
  while (!inside) std::this_thread::yield();
  const uint32_t before = a_.records(kRuntime);
  work(3, 0);
  EXPECT_EQ(0, a_.call("pluginFlush"));
  EXPECT_EQ(before + 5, a_.records(kRuntime));
  go = true;
  slow.join();
  collector_.onComplete = nullptr;
}

TEST_F(Clients, FinalizeEndsOneClientOnly) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(0, a_.call("pluginStart", kRuntime));
  const uint32_t before = a_.records(kRuntime);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  work(4, 0);
  EXPECT_EQ(0, a_.call("pluginFlush"));
  EXPECT_EQ(before + 4, a_.records(kRuntime));
}

TEST_F(Clients, LayoutsBelongToTheClient) {
  Plugin old(PLUGIN_6050);
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  const auto bytes = static_cast<uint32_t>(old.call("pluginBytes"));
  const uint32_t before = old.records(kKernel);
  ASSERT_EQ(0, old.call("pluginStart", kKernel));
  work(0, 3);
  const uint32_t synchronized = fake::synchronizations();
  EXPECT_EQ(0, old.call("pluginFlush"));
  EXPECT_EQ(synchronized + 1, fake::synchronizations());  // ACT-090: as 6.5 did
  EXPECT_EQ(before + 3, old.records(kKernel));
  EXPECT_EQ(bytes + 3 * sizeof(CUpti_ActivityKernel2), static_cast<uint32_t>(old.call("pluginBytes")));
  const auto records = collector_.flush();
  ASSERT_EQ(3u, records.size());
  EXPECT_EQ(sizeof(CUpti_ActivityKernel10), records[0].words.size() * 8);
  EXPECT_EQ(0, old.call("pluginFinalize"));
}

// 6.5 knows no buffers of single threads, and has other defaults.
TEST_F(Clients, ACT_019_ACT_023_AClientOf65HasItsAttributesAndSharedBuffers) {
  Plugin old(PLUGIN_6050);
  ASSERT_EQ(0, old.call("pluginStart", kRuntime));
  ASSERT_EQ(0, a_.call("pluginStart", kRuntime));
  const auto attribute = [](Plugin& plugin, CUpti_ActivityAttribute which) {
    return plugin.call("pluginAttribute", static_cast<uint32_t>(which));
  };
  EXPECT_EQ(0, attribute(old, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER));
  EXPECT_EQ(1, attribute(a_, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER));
  EXPECT_EQ(4194304, attribute(old, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE));  // ACT-019
  EXPECT_EQ(3200000, attribute(a_, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE));
  EXPECT_EQ(4, attribute(old, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT));  // ACT-026
  EXPECT_EQ(250, attribute(a_, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT));
  EXPECT_EQ(8388608, attribute(old, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP));  // ACT-023
  EXPECT_EQ(8388608, attribute(a_, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP));
  EXPECT_EQ(0, old.call("pluginFlush"));
  EXPECT_EQ(0, a_.call("pluginFlush"));
  // Two threads that both live until the flush.
  const int oldBuffers = old.call("pluginBuffers"), newBuffers = a_.call("pluginBuffers");
  std::atomic<int> called{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      work(3, 0);
      ++called;
      while (!go) std::this_thread::yield();
    });
  }
  while (called < 2) std::this_thread::yield();
  EXPECT_EQ(0, old.call("pluginFlush"));
  EXPECT_EQ(0, a_.call("pluginFlush"));
  EXPECT_EQ(oldBuffers + 1, old.call("pluginBuffers"));
  EXPECT_EQ(newBuffers + 2, a_.call("pluginBuffers"));
  go = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, old.call("pluginFinalize"));
}

TEST_F(Clients, ACT_090_ACT_094_FlushesOf65WaitForTheStreams) {
  Plugin old(PLUGIN_6050);
  ASSERT_EQ(0, old.call("pluginStart", kKernel));
  ASSERT_EQ(0, a_.call("pluginStart", kKernel));
  for (const char* flush : {"pluginFlush", "pluginFlushOne"}) {
    SCOPED_TRACE(flush);
    const uint32_t before = fake::synchronizations();
    EXPECT_EQ(0, a_.call(flush));
    EXPECT_EQ(before, fake::synchronizations());
    EXPECT_EQ(0, old.call(flush));
    EXPECT_EQ(before + 1, fake::synchronizations());
  }
  EXPECT_EQ(0, old.call("pluginFinalize"));
}

TEST_F(Clients, OnlyAClientOf65EnablesUnconfiguredCounters) {
  Plugin old(PLUGIN_6050);
  ASSERT_EQ(0, old.call("pluginStart", kKernel));
  ASSERT_EQ(0, a_.call("pluginStart", kKernel));
  const uint32_t counters = CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER;
  EXPECT_EQ(CUPTI_SUCCESS, old.call("pluginEnable", counters));
  EXPECT_EQ(CUPTI_ERROR_NOT_READY, a_.call("pluginEnable", counters));
  EXPECT_EQ(0, a_.call("pluginDisable", counters));
  EXPECT_EQ(0, old.call("pluginFinalize"));
}

TEST_F(Clients, AClientOf65FindsItsBytesBehindTheRecords) {
  Plugin old(PLUGIN_6050);
  ASSERT_EQ(0, old.call("pluginStart", kRuntime));
  ASSERT_EQ(0, a_.call("pluginStart", kRuntime));
  const int oldBytes = old.call("pluginUntouched"), newBytes = a_.call("pluginUntouched");
  work(3, 0);
  EXPECT_EQ(0, old.call("pluginFlush"));
  EXPECT_EQ(0, a_.call("pluginFlush"));
  EXPECT_EQ(oldBytes + 8192 - 3 * static_cast<int>(sizeof(CUpti_ActivityAPI)), old.call("pluginUntouched"));
  EXPECT_EQ(newBytes, a_.call("pluginUntouched"));
  EXPECT_EQ(0, old.call("pluginFinalize"));
}

// The callers of these functions are the plugin, although no frame of it is
// left when the library is entered. The calls are direct ones.
extern "C" int pluginFlushByJump();
extern "C" int pluginEnableByJump(uint32_t kind);

TEST_F(Clients, AJumpIntoTheLibraryIsItsObjectsCall) {
  Plugin linked(PLUGIN_LINKED);
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(0, linked.call("pluginStart", kRuntime));
  const int enabled = pluginEnableByJump(kKernel);
  EXPECT_EQ(0, enabled);
  const uint32_t calls = linked.records(kRuntime), kernels = linked.records(kKernel);
  work(2, 3);
  const int flushed = pluginFlushByJump();
  EXPECT_EQ(0, flushed);
  EXPECT_EQ(calls + 2, linked.records(kRuntime));
  EXPECT_EQ(kernels + 3, linked.records(kKernel));
  EXPECT_EQ(2u, collector_.flush().size());  // no kernels here
  EXPECT_EQ(0, linked.call("pluginFinalize"));
}

// The records of a client that was closed with dlclose still go to it: its code
// stays mapped.
TEST_F(Clients, ClosingAClientsObjectIsHarmless) {
  Plugin b(PLUGIN_B);
  ASSERT_EQ(0, b.call("pluginStart", kRuntime));
  ASSERT_EQ(0, b.call("pluginSubscribe", uint32_t{CUPTI_CB_DOMAIN_RUNTIME_API}, kMalloc));
  b.close();
  b_.close();
  work(3, 0);
  Plugin again(PLUGIN_B);
  EXPECT_EQ(0, again.call("pluginFlush"));
  EXPECT_GE(again.records(kRuntime), 3u);
  EXPECT_EQ(0, again.call("pluginFinalize"));
  b_ = Plugin(PLUGIN_B);
}

}  // namespace
