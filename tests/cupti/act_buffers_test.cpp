// SPDX-License-Identifier: Apache-2.0
// Device buffers, enqueued buffers, samples of the environment, and reading
// records: rules of the Activity API.
#include <cupti_pcsampling.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"

// Old clients declared these themselves; the headers of CUDA 6.0 and later do not.
extern "C" {
CUptiResult CUPTIAPI cuptiActivityEnqueueBuffer(CUcontext, uint32_t, uint8_t*, size_t);
CUptiResult CUPTIAPI cuptiActivityDequeueBuffer(CUcontext, uint32_t, uint8_t**, size_t*);
CUptiResult CUPTIAPI cuptiActivityQueryBuffer(CUcontext, uint32_t, size_t*);
}

using testing_support::Collector;
using testing_support::Record;

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;
constexpr size_t kSlot = 512;  // docs/COMPATIBILITY.md: what a piece of work takes

class ActBuffers : public ::testing::Test {
 protected:
  void TearDown() override {
    fake::releaseWork();
    fake::waitWork();
    if (context_ != nullptr) fake::destroyContext(context_);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  }
  CUcontext context() {
    if (context_ == nullptr) context_ = fake::createContext();
    return static_cast<CUcontext>(context_);
  }
  void set(CUpti_ActivityAttribute attribute, size_t value) {
    size_t size = sizeof value;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivitySetAttribute(attribute, &size, &value));
  }
  void pool(size_t bytes, size_t limit, size_t preAllocate) {
    set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, bytes);
    set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, limit);
    set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, preAllocate);
  }
  // Kernels that are all in flight before the first is done; how many of their
  // records have times.
  size_t timed(int kernels) {
    const size_t before = collector_.flush().size();
    fake::holdWork();
    for (int i = 0; i < kernels; ++i) {
      fake::enqueue(context(), nullptr, SONDE_WORK_KERNEL, [](SondeWork& w) {
        w.start = 500;
        w.end = 600;
      });
    }
    fake::releaseWork();
    fake::waitWork();
    const auto records = collector_.flush();
    EXPECT_EQ(before + static_cast<size_t>(kernels), records.size());
    size_t count = 0;
    for (size_t i = before; i < records.size(); ++i) {
      const auto& kernel = records[i].as<CUpti_ActivityKernel10>();
      if (kernel.start == 500 && kernel.end == 600 && kernel.completed == 600) {
        ++count;
      } else {
        EXPECT_EQ(0u, kernel.start);
        EXPECT_EQ(0u, kernel.end);
        EXPECT_EQ(0u, kernel.completed);
      }
      EXPECT_STREQ("kernel", kernel.name);
    }
    return count;
  }
  void kernels() {
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  }
  Collector& collector_ = Collector::instance();
  SondeHandle context_ = nullptr;
};

template <typename Condition>
bool soon(Condition&& condition) {
  for (int i = 0; i < 5000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

// ACT-106 with it: what has no room has no times, and its record comes all the same.
TEST_F(ActBuffers, ACT_020_SmallDeviceBuffersLoseTimes) {
  kernels();
  pool(4 * kSlot, 1, 1);
  EXPECT_EQ(4u, timed(10));
  // Room comes back when the work is done.
  EXPECT_EQ(3u, timed(3));
}

TEST_F(ActBuffers, ACT_020_LargeDeviceBuffersLoseNone) {
  kernels();
  EXPECT_EQ(5000u, timed(5000));
}

// device_buffers_test.cpp has the exact counts.
TEST_F(ActBuffers, ACT_020_SmallDeviceBuffersAreEmptiedMoreOften) {
  kernels();
  pool(8 * kSlot, 10, 1);
  collector_.maxRecords = 1;  // each record that is delivered completes a buffer
  int notBeforeTheEighth = 0;
  for (uint32_t round = 0; round < 12; ++round) {
    const uint32_t before = collector_.completions;
    for (int i = 1; i < 8; ++i) {
      fake::enqueue(context(), nullptr, SONDE_WORK_KERNEL);
      fake::waitWork();
    }
    notBeforeTheEighth += collector_.completions == before;
    fake::enqueue(context(), nullptr, SONDE_WORK_KERNEL);
    fake::waitWork();
    // Without a flush the delivery thread fills buffers.
    ASSERT_TRUE(soon([&] { return collector_.completions >= before + 7; }));
    EXPECT_EQ(8u * (round + 1), collector_.flush().size());
  }
  // The first record of a thread wakes the delivery thread as well, and a
  // delivery that begins late may find records of the next round.
  EXPECT_GE(notBeforeTheEighth, 6);
}

TEST_F(ActBuffers, ACT_021_SizeCountsForLaterBuffers) {
  kernels();
  pool(2 * kSlot, 2, 1);
  EXPECT_EQ(2u, timed(2));  // the first buffer exists
  set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 5 * kSlot);
  EXPECT_EQ(2u + 5, timed(20));
  set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 50 * kSlot);
  EXPECT_EQ(2u + 5, timed(20));
}

TEST_F(ActBuffers, ACT_022_MoreMayBeReservedThanAsked) {
  kernels();
  pool(1, 3, 1);  // a whole slot each
  EXPECT_EQ(3u, timed(6));
}

class ActCdp : public ActBuffers {
 protected:
  size_t dropped() {
    size_t count = 99;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &count));
    return count;
  }
  void launchHeld(int count) {
    fake::holdWork();
    for (int i = 0; i < count; ++i) {
      fake::enqueue(context(), nullptr, SONDE_WORK_KERNEL, [i](SondeWork& w) {
        w.name = "child";
        w.start = 700;
        w.end = 800;
        w.gridId = static_cast<uint64_t>(100 + i);
        w.parentGridId = 9;
        w.parentBlock[0] = 4, w.parentBlock[1] = 5, w.parentBlock[2] = 6;
        w.grid[0] = 2, w.block[0] = 32;
      });
    }
    fake::releaseWork();
    fake::waitWork();
  }
};

TEST_F(ActCdp, ACT_024_AFullCdpBufferDropsAndCounts) {
  kernels();
  set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, 3 * kSlot);
  launchHeld(5);
  const auto records = collector_.flush();
  ASSERT_EQ(3u, records.size());
  EXPECT_EQ(2u, dropped());
  const auto& child = records[1].as<CUpti_ActivityCdpKernel>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_CDP_KERNEL, child.kind);
  EXPECT_EQ(101, child.gridId);
  EXPECT_EQ(9, child.parentGridId);
  EXPECT_EQ(4u, child.parentBlockX);
  EXPECT_EQ(5u, child.parentBlockY);
  EXPECT_EQ(6u, child.parentBlockZ);
  EXPECT_EQ(2, child.gridX);
  EXPECT_EQ(32, child.blockX);
  EXPECT_EQ(700u, child.start);
  EXPECT_EQ(800u, child.end);
  EXPECT_EQ(800u, child.completed);
  EXPECT_STREQ("child", child.name);
}

TEST_F(ActCdp, ACT_025_CdpSizeCountsForLaterContexts) {
  kernels();
  set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, 1);  // rounded up to one
  launchHeld(2);
  EXPECT_EQ(1u, dropped());
  set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, 8 * kSlot);
  launchHeld(2);
  EXPECT_EQ(1u, dropped());
  fake::destroyContext(context_);
  context_ = nullptr;
  launchHeld(8);
  EXPECT_EQ(0u, dropped());
}

TEST_F(ActBuffers, ACT_026_PoolLimitBoundsTheBuffersOfAContext) {
  kernels();
  pool(2 * kSlot, 4, 0);
  EXPECT_EQ(8u, timed(20));
  // Of each context by itself.
  fake::holdWork();
  SondeHandle other = fake::createContext();
  for (int i = 0; i < 8; ++i) fake::enqueue(context(), nullptr, SONDE_WORK_KERNEL);
  for (int i = 0; i < 8; ++i) {
    fake::enqueue(other, nullptr, SONDE_WORK_KERNEL, [](SondeWork& w) { w.start = 500, w.end = 600; });
  }
  fake::releaseWork();
  fake::waitWork();
  uint32_t id = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(static_cast<CUcontext>(other), &id));
  size_t withTimes = 0;
  for (const Record& r : collector_.flush()) {
    const auto& kernel = r.as<CUpti_ActivityKernel10>();
    if (kernel.contextId == id && kernel.start == 500) ++withTimes;
  }
  EXPECT_EQ(8u, withTimes);
  fake::destroyContext(other);
}

TEST_F(ActBuffers, ACT_027_ALowerLimitLeavesTheBuffersThatExist) {
  kernels();
  pool(2 * kSlot, 4, 3);
  EXPECT_EQ(1u, timed(1));  // three buffers are allocated
  set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, 1);
  EXPECT_EQ(6u, timed(20));
}

TEST_F(ActBuffers, KindKernelAlwaysHasItsTimes) {
  collector_.start();
  pool(kSlot, 1, 1);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL));
  EXPECT_EQ(10u, timed(10));
}

TEST_F(ActBuffers, BytesBehindTheRecordsAreClearUnlessTheClientClearsThem) {
  alignas(8) static uint8_t memory[200];
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
    std::memset(memory, 0xee, sizeof memory);
    *buffer = memory;
    *size = 160;
  };
  uint8_t behind = 0;
  collector_.onComplete = [&](uint8_t*, size_t, size_t valid) {
    EXPECT_EQ(40u, valid);
    for (size_t i = valid; i < 160; ++i) EXPECT_EQ(behind, memory[i]) << i;
    for (size_t i = 160; i < 200; ++i) EXPECT_EQ(0xee, memory[i]) << i;
  };
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  collector_.flush();
  uint8_t on = 1;
  size_t size = 1;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &on));
  behind = 0xee;
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  collector_.flush();
  EXPECT_EQ(2u, collector_.completions);
}

// ------------------------------------------------------------ kinds, reading --

template <typename T>
void oneRecord(std::initializer_list<CUpti_ActivityKind> kinds) {
  alignas(8) uint8_t buffer[sizeof(T)] = {};
  for (CUpti_ActivityKind kind : kinds) {
    std::memcpy(buffer, &kind, sizeof kind);
    CUpti_Activity* record = nullptr;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(buffer, sizeof buffer, &record)) << kind;
    EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, sizeof buffer, &record)) << kind;
    record = nullptr;
    EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityGetNextRecord(buffer, sizeof buffer - 8, &record)) << kind;
  }
}

TEST(ActReading, ACT_061_EachKindHasOneStructure) {
  oneRecord<CUpti_ActivityKernel10>({CUPTI_ACTIVITY_KIND_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  oneRecord<CUpti_ActivityAPI>({CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME});
  oneRecord<CUpti_ActivityMemcpy6>({CUPTI_ACTIVITY_KIND_MEMCPY});
  oneRecord<CUpti_ActivityMemset4>({CUPTI_ACTIVITY_KIND_MEMSET});
  oneRecord<CUpti_ActivityEvent>({CUPTI_ACTIVITY_KIND_EVENT});
  oneRecord<CUpti_ActivityMetric>({CUPTI_ACTIVITY_KIND_METRIC});
  oneRecord<CUpti_ActivityDevice5>({CUPTI_ACTIVITY_KIND_DEVICE});
  oneRecord<CUpti_ActivityContext3>({CUPTI_ACTIVITY_KIND_CONTEXT});
  oneRecord<CUpti_ActivityName>({CUPTI_ACTIVITY_KIND_NAME});
  oneRecord<CUpti_ActivityMarker2>({CUPTI_ACTIVITY_KIND_MARKER});
  oneRecord<CUpti_ActivityMarkerData2>({CUPTI_ACTIVITY_KIND_MARKER_DATA});
  oneRecord<CUpti_ActivitySourceLocator>({CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR});
  oneRecord<CUpti_ActivityGlobalAccess3>({CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS});
  oneRecord<CUpti_ActivityBranch2>({CUPTI_ACTIVITY_KIND_BRANCH});
  oneRecord<CUpti_ActivityOverhead3>({CUPTI_ACTIVITY_KIND_OVERHEAD});
  oneRecord<CUpti_ActivityCdpKernel>({CUPTI_ACTIVITY_KIND_CDP_KERNEL});
  oneRecord<CUpti_ActivityPreemption>({CUPTI_ACTIVITY_KIND_PREEMPTION});
  oneRecord<CUpti_ActivityEnvironment>({CUPTI_ACTIVITY_KIND_ENVIRONMENT});
  oneRecord<CUpti_ActivityEventInstance>({CUPTI_ACTIVITY_KIND_EVENT_INSTANCE});
  oneRecord<CUpti_ActivityMemcpyPtoP4>({CUPTI_ACTIVITY_KIND_MEMCPY2});
  oneRecord<CUpti_ActivityMetricInstance>({CUPTI_ACTIVITY_KIND_METRIC_INSTANCE});
  oneRecord<CUpti_ActivityInstructionExecution>({CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION});
  oneRecord<CUpti_ActivityUnifiedMemoryCounter3>({CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER});
  oneRecord<CUpti_ActivityFunction>({CUPTI_ACTIVITY_KIND_FUNCTION});
  oneRecord<CUpti_ActivityModule>({CUPTI_ACTIVITY_KIND_MODULE});
  oneRecord<CUpti_ActivityDeviceAttribute>({CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE});
}

TEST_F(ActBuffers, ACT_070_MetricInstancesAreForToolsToMake) {
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_METRIC_INSTANCE));
  CUpti_ActivityMetricInstance made{};
  made.kind = CUPTI_ACTIVITY_KIND_METRIC_INSTANCE;
  made.instance = 3;
  made.value.metricValueUint64 = 77;
  CUpti_Activity* record = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(reinterpret_cast<uint8_t*>(&made), sizeof made, &record));
  EXPECT_EQ(3u, reinterpret_cast<CUpti_ActivityMetricInstance*>(record)->instance);
}

TEST(ActReading, ACT_103_NullGivesTheFirstRecordAndEachGivesItsSuccessor) {
  alignas(8) uint8_t buffer[2 * sizeof(CUpti_ActivityAPI) + sizeof(CUpti_ActivityPreemption)] = {};
  const CUpti_ActivityKind api = CUPTI_ACTIVITY_KIND_DRIVER, preemption = CUPTI_ACTIVITY_KIND_PREEMPTION;
  std::memcpy(buffer, &api, sizeof api);
  std::memcpy(buffer + sizeof(CUpti_ActivityAPI), &preemption, sizeof preemption);
  std::memcpy(buffer + sizeof(CUpti_ActivityAPI) + sizeof(CUpti_ActivityPreemption), &api, sizeof api);
  CUpti_Activity* record = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(buffer, sizeof buffer, &record));
  EXPECT_EQ(static_cast<void*>(buffer), record);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(buffer, sizeof buffer, &record));
  EXPECT_EQ(static_cast<void*>(buffer + 40), record);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(buffer, sizeof buffer, &record));
  EXPECT_EQ(static_cast<void*>(buffer + 40 + 40), record);
}

TEST(ActReading, ACT_104_TheEndIsMaxLimitReached) {
  CUpti_ActivityAPI api{};
  api.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  auto* buffer = reinterpret_cast<uint8_t*>(&api);
  CUpti_Activity* record = nullptr;
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, 0, &record));
  EXPECT_EQ(nullptr, record);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(buffer, sizeof api, &record));
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, sizeof api, &record));
  EXPECT_EQ(static_cast<void*>(&api), record);  // as it was
}

TEST_F(ActBuffers, ACT_106_TimesMayBeMissing) {
  kernels();
  pool(kSlot, 0, 0);  // no device memory at all
  EXPECT_EQ(0u, timed(3));
}

// ---------------------------------------------------------------- flushing --

TEST_F(ActBuffers, ACT_085_RecordsComeThroughBothCallbacksByThemselves) {
  collector_.start();
  collector_.bufferSize = 400;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  for (int i = 0; i < 4000; ++i) fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  // Chunks that are full are handed over without a flush.
  EXPECT_TRUE(soon([&] { return collector_.completions >= 100; }));
  EXPECT_EQ(4000u, collector_.flush().size());
  EXPECT_EQ(collector_.requests, collector_.completions);
}

TEST_F(ActBuffers, ACT_094_FlushDeliversBeforeItReturns) {
  kernels();
  SondeHandle stream = fake::createStream(context());
  fake::enqueue(context(), stream, SONDE_WORK_KERNEL);
  fake::waitWork();
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlush(context(), 0, 0));
  EXPECT_EQ(1u, collector_.records().size());
  fake::destroyStream(stream);
}

TEST_F(ActBuffers, ACT_095_AnyContextAndStreamFlushesEverything) {
  kernels();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  const uint32_t before = fake::synchronizations();
  size_t expected = 0;
  for (auto [which, stream] : {std::pair<CUcontext, uint32_t>{nullptr, 0}, {context(), 0}, {context(), 12}}) {
    fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
    fake::enqueue(context(), nullptr, SONDE_WORK_KERNEL);
    fake::waitWork();
    expected += 2;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlush(which, stream, 0));
    EXPECT_EQ(expected, collector_.records().size());
  }
  EXPECT_EQ(before, fake::synchronizations());
}

TEST_F(ActBuffers, ACT_096_FlushMayBeForced) {
  kernels();
  fake::holdWork();
  fake::enqueue(context(), nullptr, SONDE_WORK_KERNEL, [](SondeWork& w) { w.start = 5, w.end = 6; });
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlush(nullptr, 0, 0));
  EXPECT_EQ(0u, collector_.records().size());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlush(nullptr, 0, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  ASSERT_EQ(1u, collector_.records().size());
  EXPECT_EQ(0u, collector_.records()[0].as<CUpti_ActivityKernel10>().end);
}

// ------------------------------------------------------------- environment --

TEST_F(ActBuffers, ACT_068_TheEnvironmentIsSampledWhileTheKindIsOn) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_ENVIRONMENT));
  EXPECT_TRUE(soon([&] { return collector_.flush().size() >= 12; }));  // one set at once, then every 20 ms
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_ENVIRONMENT));
  const auto records = collector_.flush();
  ASSERT_EQ(0u, records.size() % 4);
  for (size_t i = 0; i < records.size(); ++i) {
    const auto& e = records[i].as<CUpti_ActivityEnvironment>();
    EXPECT_EQ(CUPTI_ACTIVITY_KIND_ENVIRONMENT, e.kind);
    EXPECT_EQ(static_cast<uint32_t>(i % 4 + 1), static_cast<uint32_t>(e.environmentKind));
    EXPECT_EQ(0u, e.deviceId);
    if (i >= 4 && i % 4 == 0 && i < 8) {
      EXPECT_GE(e.timestamp, records[0].as<CUpti_ActivityEnvironment>().timestamp + 20'000'000);
    }
    if (e.environmentKind == CUPTI_ACTIVITY_ENVIRONMENT_POWER) {
      EXPECT_EQ(120000u, e.data.power.power);
    }
  }
}

// How often the delivery thread has gone to sleep by itself; -1: there is none.
long deliverySleeps() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, word;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (name != "sonde-delivery") continue;
    std::ifstream status(entry.path() / "status");
    while (status >> word)
      if (word == "voluntary_ctxt_switches:") {
        long count = -1;
        status >> count;
        return count;
      }
  }
  return -1;
}

// Five periods without the kind: the thread does not even wake up.
TEST_F(ActBuffers, ACT_068_TheThreadSleepsWhileTheKindIsOff) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_ENVIRONMENT));
  EXPECT_TRUE(soon([&] { return collector_.flush().size() >= 8; }));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_ENVIRONMENT));
  const uint32_t queries = fake::clockQueriesSoFar();
  const size_t records = collector_.flush().size();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  // The thread may still find out that there is nothing to do any more.
  long sleeps = 0;
  EXPECT_TRUE(soon([&] {
    const long before = deliverySleeps();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    sleeps = deliverySleeps();
    return sleeps == before;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(sleeps, deliverySleeps());
  EXPECT_GE(sleeps, 0);
  EXPECT_EQ(queries, fake::clockQueriesSoFar());
  EXPECT_EQ(records, collector_.flush().size());
}

// --------------------------------------------------------- unified memory etc --

TEST_F(ActBuffers, ACT_114_AutoBoostTellsWhoAskedForIt) {
  CUpti_ActivityAutoBoostState state{};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetAutoBoostState(context(), &state));
  // The stand-in driver has it on, for process 4711: results may vary.
  EXPECT_EQ(1u, state.enabled);
  EXPECT_EQ(4711u, state.pid);
}

// ---------------------------------------------------------- enqueued buffers --

TEST_F(ActBuffers, EnqueuedBuffersAreFilledInOrder) {
  alignas(8) uint8_t first[80], second[400];
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnqueueBuffer(nullptr, 0, first, sizeof first));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnqueueBuffer(nullptr, 0, second, sizeof second));
  size_t valid = 99;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityQueryBuffer(nullptr, 0, &valid));
  EXPECT_EQ(0u, valid);
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityQueryBuffer(nullptr, 0, &valid));
  EXPECT_EQ(40u, valid);
  for (int i = 0; i < 4; ++i) fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityQueryBuffer(nullptr, 0, &valid));
  EXPECT_EQ(80u, valid);
  uint8_t* buffer = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDequeueBuffer(nullptr, 0, &buffer, &valid));
  EXPECT_EQ(first, buffer);
  EXPECT_EQ(80u, valid);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDequeueBuffer(nullptr, 0, &buffer, &valid));
  EXPECT_EQ(second, buffer);
  EXPECT_EQ(120u, valid);
  CUpti_Activity* record = nullptr;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(buffer, valid, &record));
    EXPECT_EQ(kMalloc, reinterpret_cast<CUpti_ActivityAPI*>(record)->cbid);
  }
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, valid, &record));
  EXPECT_EQ(CUPTI_ERROR_QUEUE_EMPTY, cuptiActivityDequeueBuffer(nullptr, 0, &buffer, &valid));
  EXPECT_EQ(CUPTI_ERROR_QUEUE_EMPTY, cuptiActivityQueryBuffer(nullptr, 0, &valid));
  // No buffer, no record.
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  EXPECT_EQ(CUPTI_ERROR_QUEUE_EMPTY, cuptiActivityQueryBuffer(nullptr, 0, &valid));
  size_t dropped = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(1u, dropped);
}

TEST_F(ActBuffers, EnqueuedBuffersOfStreamAndContext) {
  alignas(8) uint8_t ofAll[1000], ofContext[1000], ofStream[1000];
  SondeHandle stream = fake::createStream(context());
  uint32_t id = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(context(), static_cast<CUstream>(stream), &id));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnqueueBuffer(nullptr, 0, ofAll, sizeof ofAll));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnqueueBuffer(context(), 0, ofContext, sizeof ofContext));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnqueueBuffer(context(), id, ofStream, sizeof ofStream));
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  for (int i = 0; i < 2; ++i) fake::enqueue(context(), nullptr, SONDE_WORK_MEMSET);
  for (int i = 0; i < 3; ++i) fake::enqueue(context(), stream, SONDE_WORK_MEMSET);
  fake::waitWork();
  uint8_t* buffer = nullptr;
  size_t valid = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDequeueBuffer(nullptr, 0, &buffer, &valid));
  EXPECT_EQ(sizeof(CUpti_ActivityAPI), valid);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDequeueBuffer(context(), 0, &buffer, &valid));
  EXPECT_EQ(ofContext, buffer);
  EXPECT_EQ(2 * sizeof(CUpti_ActivityMemset4), valid);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDequeueBuffer(context(), id, &buffer, &valid));
  EXPECT_EQ(ofStream, buffer);
  EXPECT_EQ(3 * sizeof(CUpti_ActivityMemset4), valid);
  EXPECT_EQ(id, reinterpret_cast<CUpti_ActivityMemset4*>(buffer)->streamId);
  fake::destroyStream(stream);
}

TEST_F(ActBuffers, EnqueuedBufferErrors) {
  alignas(8) uint8_t memory[64];
  size_t valid = 7;
  uint8_t* buffer = memory;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityEnqueueBuffer(nullptr, 0, nullptr, 64));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityEnqueueBuffer(nullptr, 0, memory + 4, 32));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityEnqueueBuffer(nullptr, 0, memory, 8));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityEnqueueBuffer(nullptr, 3, memory, 64));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiActivityEnqueueBuffer(reinterpret_cast<CUcontext>(8), 0, memory, 64));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityDequeueBuffer(nullptr, 0, nullptr, &valid));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityDequeueBuffer(nullptr, 0, &buffer, nullptr));
  EXPECT_EQ(CUPTI_ERROR_QUEUE_EMPTY, cuptiActivityDequeueBuffer(nullptr, 0, &buffer, &valid));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityQueryBuffer(nullptr, 0, nullptr));
  EXPECT_EQ(7u, valid);
  EXPECT_EQ(memory, buffer);
}

// ---------------------------------------------------------------- checksums --

uint64_t seenBytes = 0;
void CUPTIAPI sum(const void* cubin, size_t size, uint64_t* crc) {
  for (size_t i = 0; i < size; ++i) seenBytes += static_cast<const uint8_t*>(cubin)[i];
  *crc = 5;
}

TEST_F(ActBuffers, TheClientsChecksumSeesLoadedImages) {
  seenBytes = 0;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiRegisterComputeCrcCallback(nullptr));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiRegisterComputeCrcCallback(sum));
  const uint8_t image[] = {1, 2, 3, 4};
  SondeHandle module = fake::loadModule(context(), image, sizeof image);
  EXPECT_EQ(10u, seenBytes);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  fake::unloadModule(module);
  module = fake::loadModule(context(), image, sizeof image);
  EXPECT_EQ(10u, seenBytes);
  fake::unloadModule(module);
}

}  // namespace
