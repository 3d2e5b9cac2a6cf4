// SPDX-License-Identifier: Apache-2.0
// What stands in the records.
#include <pthread.h>
#include <unistd.h>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;
using testing_support::Record;

namespace {

constexpr uint32_t kLaunch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
constexpr uint32_t kDriverLaunch = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;

class Records : public ::testing::Test {
 protected:
  void SetUp() override {
    Collector::instance().start();
    context_ = fake::createContext();
  }
  void TearDown() override {
    fake::releaseWork();
    fake::waitWork();
    fake::destroyContext(context_);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  }
  void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
    for (CUpti_ActivityKind kind : kinds) ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind)) << kind;
  }
  Collector& collector_ = Collector::instance();
  SondeHandle context_ = nullptr;
};

TEST_F(Records, RuntimeCallHidesTheDriverCallsInside) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
  uint64_t before, after;
  cuptiGetTimestamp(&before);
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch, 0, [] { fake::call(SONDE_DOMAIN_DRIVER, kDriverLaunch); });
  const uint32_t first = fake::lastCorrelation();
  fake::call(SONDE_DOMAIN_DRIVER, kDriverLaunch, 1);
  cuptiGetTimestamp(&after);
  const auto records = collector_.flush();
  ASSERT_EQ(2u, records.size());
  const auto& runtime = records[0].as<CUpti_ActivityAPI>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_RUNTIME, runtime.kind);
  EXPECT_EQ(kLaunch, runtime.cbid);
  EXPECT_EQ(first, runtime.correlationId);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), runtime.processId);
  EXPECT_EQ(static_cast<uint32_t>(pthread_self()), runtime.threadId);
  EXPECT_EQ(0u, runtime.returnValue);
  EXPECT_LE(before, runtime.start);
  EXPECT_LE(runtime.start, runtime.end);
  const auto& driver = records[1].as<CUpti_ActivityAPI>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_DRIVER, driver.kind);
  EXPECT_EQ(first + 1, driver.correlationId);
  EXPECT_EQ(1u, driver.returnValue);
  EXPECT_LE(runtime.end, driver.start);
  EXPECT_LE(driver.end, after);
}

TEST_F(Records, DriverCallInsideAnUnrecordedRuntimeCallIsRecorded) {
  enable({CUPTI_ACTIVITY_KIND_DRIVER});
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch, 0, [] { fake::call(SONDE_DOMAIN_DRIVER, kDriverLaunch); });
  const auto records = collector_.flush();
  ASSERT_EQ(1u, records.size());
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_DRIVER, records[0].as<CUpti_ActivityAPI>().kind);
  EXPECT_EQ(fake::lastCorrelation(), records[0].as<CUpti_ActivityAPI>().correlationId);
}

TEST_F(Records, KernelHasEveryField) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  SondeHandle stream = fake::createStream(context_);
  fake::call(SONDE_DOMAIN_DRIVER, kDriverLaunch, 0, [&] {
    fake::enqueue(context_, stream, SONDE_WORK_KERNEL, [](SondeWork& w) {
      w.name = "_Z6saxpyfPfS_i";
      w.start = 1000;
      w.end = 1250;
      w.grid[0] = 196;
      w.grid[1] = 2;
      w.grid[2] = 3;
      w.block[0] = 256;
      w.block[1] = 4;
      w.cluster[0] = 5;
      w.registersPerThread = 32;
      w.staticSharedMemory = 1024;
      w.dynamicSharedMemory = 2048;
      w.sharedMemoryExecuted = 8192;
      w.localMemoryPerThread = 16;
      w.localMemoryTotal = uint64_t{5} << 32;
      w.gridId = 77;
      w.cacheConfigRequested = 1;
      w.cacheConfigExecuted = 2;
      w.launchType = 1;
      w.channelId = 6;
      w.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
      w.graphId = 8;
      w.graphNodeId = 9;
    });
  });
  fake::waitWork();
  const auto records = collector_.flush();
  ASSERT_EQ(1u, records.size());
  const auto& k = records[0].as<CUpti_ActivityKernel10>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, k.kind);
  EXPECT_STREQ("_Z6saxpyfPfS_i", k.name);
  EXPECT_EQ(1000u, k.start);
  EXPECT_EQ(1250u, k.end);
  EXPECT_EQ(1250u, k.completed);
  EXPECT_EQ(0u, k.queued);  // latency timestamps are off
  EXPECT_EQ(0u, k.submitted);
  EXPECT_EQ(196, k.gridX);
  EXPECT_EQ(2, k.gridY);
  EXPECT_EQ(3, k.gridZ);
  EXPECT_EQ(256, k.blockX);
  EXPECT_EQ(4, k.blockY);
  EXPECT_EQ(1, k.blockZ);
  EXPECT_EQ(5u, k.clusterX);
  EXPECT_EQ(32, k.registersPerThread);
  EXPECT_EQ(1024, k.staticSharedMemory);
  EXPECT_EQ(2048, k.dynamicSharedMemory);
  EXPECT_EQ(8192u, k.sharedMemoryExecuted);
  EXPECT_EQ(16u, k.localMemoryPerThread);
  EXPECT_EQ(0xffffffffu, k.localMemoryTotal);  // does not fit
  EXPECT_EQ(uint64_t{5} << 32, k.localMemoryTotal_v2);
  EXPECT_EQ(77, k.gridId);
  EXPECT_EQ(1, k.cacheConfig.config.requested);
  EXPECT_EQ(2, k.cacheConfig.config.executed);
  EXPECT_EQ(1, k.launchType);
  EXPECT_EQ(6u, k.channelID);
  EXPECT_EQ(CUPTI_CHANNEL_TYPE_COMPUTE, k.channelType);
  EXPECT_EQ(8u, k.graphId);
  EXPECT_EQ(9u, k.graphNodeId);
  EXPECT_EQ(14u, k.streamId);
  uint32_t contextId;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(static_cast<CUcontext>(context_), &contextId));
  EXPECT_EQ(contextId, k.contextId);
  EXPECT_EQ(fake::lastCorrelation(), k.correlationId);
}

TEST_F(Records, CopiesAndSets) {
  enable({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET});
  fake::call(SONDE_DOMAIN_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, 0, [&] {
    fake::enqueue(context_, nullptr, SONDE_WORK_MEMCPY, [](SondeWork& w) {
      w.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
      w.srcMemoryKind = SONDE_MEMORY_PAGEABLE;
      w.dstMemoryKind = SONDE_MEMORY_DEVICE;
      w.bytes = 200000;
      w.isAsync = 1;
      w.copyCount = 1;
      w.start = 10;
      w.end = 20;
    });
    fake::enqueue(context_, nullptr, SONDE_WORK_MEMSET, [](SondeWork& w) {
      w.setValue = 0xab;
      w.bytes = 4096;
      w.dstMemoryKind = SONDE_MEMORY_MANAGED;
      w.start = 30;
      w.end = 40;
    });
    fake::enqueue(context_, nullptr, SONDE_WORK_MEMCPY_PEER, [](SondeWork& w) {
      w.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
      w.bytes = 64;
      w.srcDeviceId = 0;
      w.dstDeviceId = 1;
      w.srcContextUid = 3;
      w.dstContextUid = 4;
    });
  });
  fake::waitWork();
  const auto records = collector_.flush();
  ASSERT_EQ(3u, records.size());
  const auto& copy = records[0].as<CUpti_ActivityMemcpy6>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_MEMCPY, copy.kind);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, copy.copyKind);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, copy.srcKind);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, copy.dstKind);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, copy.flags);
  EXPECT_EQ(200000u, copy.bytes);
  EXPECT_EQ(10u, copy.start);
  EXPECT_EQ(20u, copy.end);
  EXPECT_EQ(7u, copy.streamId);
  EXPECT_EQ(1u, copy.copyCount);
  const auto& set = records[1].as<CUpti_ActivityMemset4>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_MEMSET, set.kind);
  EXPECT_EQ(0xabu, set.value);
  EXPECT_EQ(4096u, set.bytes);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, set.memoryKind);
  EXPECT_EQ(0, set.flags);
  const auto& peer = records[2].as<CUpti_ActivityMemcpyPtoP4>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_MEMCPY2, peer.kind);
  EXPECT_EQ(1u, peer.dstDeviceId);
  EXPECT_EQ(3u, peer.srcContextId);
  EXPECT_EQ(4u, peer.dstContextId);
}

TEST_F(Records, WorkIsRecordedWhenTheKindWasOnAtTheLaunch) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  fake::holdWork();
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
  fake::releaseWork();
  fake::waitWork();
  EXPECT_EQ(1u, collector_.flush().size());
}

TEST_F(Records, DevicesAndContextsThatExistAlready) {
  enable({CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT});
  const auto records = collector_.flush();
  ASSERT_EQ(2u, records.size());
  const auto& device = records[0].as<CUpti_ActivityDevice5>();
  EXPECT_STREQ("Fake GPU", device.name);
  EXPECT_EQ(8589934592u, device.globalMemorySize);
  EXPECT_EQ(4814304000u, device.globalMemoryBandwidth);
  EXPECT_EQ(4u, device.maxIPC);
  EXPECT_EQ(64u, device.maxWarpsPerMultiprocessor);
  EXPECT_EQ(16u, device.numMultiprocessors);
  EXPECT_EQ(9u, device.computeCapabilityMajor);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS, device.flags);
  EXPECT_EQ(1, device.uuid.bytes[1]);
  EXPECT_EQ(static_cast<char>(0xff), device.uuid.bytes[15]);
  const auto& context = records[1].as<CUpti_ActivityContext3>();
  EXPECT_EQ(7, context.nullStreamId);
  EXPECT_EQ(CUPTI_ACTIVITY_COMPUTE_API_CUDA, context.computeApiKind);
  EXPECT_EQ(16, context.numMultiprocessors);
}

}  // namespace
