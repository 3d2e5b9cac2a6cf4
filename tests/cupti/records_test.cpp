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

TEST_F(Records, StreamsModulesAndFunctions) {
  enable({CUPTI_ACTIVITY_KIND_STREAM, CUPTI_ACTIVITY_KIND_MODULE, CUPTI_ACTIVITY_KIND_FUNCTION});
  collector_.flush();  // what other tests left
  collector_.clear();
  SondeHandle stream = fake::createStream(context_, true, -1);
  static const char image[] = ".version 8.0";
  SondeHandle module = fake::loadModule(context_, image, sizeof image);
  fake::useFunction(context_, 3, 9, "_Z1kv");
  fake::unloadModule(module);
  fake::destroyStream(stream);
  const auto records = collector_.flush();
  ASSERT_EQ(3u, records.size());
  const auto& s = records[0].as<CUpti_ActivityStream>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_STREAM, s.kind);
  EXPECT_EQ(14u, s.streamId);
  EXPECT_EQ(CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING, s.flag);
  EXPECT_EQ(0xffffffffu, s.priority);
  const auto& m = records[1].as<CUpti_ActivityModule>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_MODULE, m.kind);
  ASSERT_NE(nullptr, m.cubin);
  EXPECT_NE(image, m.cubin);  // a copy that outlives the module
  EXPECT_STREQ(image, static_cast<const char*>(m.cubin));
  EXPECT_EQ(sizeof image, m.cubinSize);
  const auto& f = records[2].as<CUpti_ActivityFunction>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_FUNCTION, f.kind);
  EXPECT_EQ(9u, f.id);
  EXPECT_EQ(3u, f.moduleId);
  EXPECT_EQ(90u, f.functionIndex);
  EXPECT_STREQ("_Z1kv", f.name);
}

TEST_F(Records, Synchronizations) {
  enable({CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
  SondeSync sync{};
  sync.size = sizeof sync;
  sync.kind = SONDE_SYNC_STREAM_SYNCHRONIZE;
  sync.context = context_;
  sync.contextUid = 5;
  sync.streamId = 14;
  sync.correlationId = 99;
  sync.start = 100;
  sync.end = 130;
  fake::emit(sync);
  sync.kind = SONDE_SYNC_EVENT_SYNCHRONIZE;
  sync.streamId = 0xffffffff;
  sync.eventId = 3;
  sync.eventSyncId = 4;
  sync.returnValue = 600;
  fake::emit(sync);
  const auto records = collector_.flush();
  ASSERT_EQ(2u, records.size());
  const auto& stream = records[0].as<CUpti_ActivitySynchronization2>();
  EXPECT_EQ(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, stream.type);
  EXPECT_EQ(100u, stream.start);
  EXPECT_EQ(130u, stream.end);
  EXPECT_EQ(14u, stream.streamId);
  EXPECT_EQ(CUPTI_SYNCHRONIZATION_INVALID_VALUE, stream.cudaEventId);
  EXPECT_EQ(99u, stream.correlationId);
  const auto& event = records[1].as<CUpti_ActivitySynchronization2>();
  EXPECT_EQ(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, event.type);
  EXPECT_EQ(CUPTI_INVALID_STREAM_ID, event.streamId);
  EXPECT_EQ(3u, event.cudaEventId);
  EXPECT_EQ(4u, event.cudaEventSyncId);
  EXPECT_EQ(600u, event.returnValue);
}

TEST_F(Records, EventsWithAndWithoutDeviceTime) {
  enable({CUPTI_ACTIVITY_KIND_CUDA_EVENT});
  auto record = [&] {
    fake::enqueue(context_, nullptr, SONDE_WORK_EVENT_RECORD, [](SondeWork& w) {
      w.eventId = 6;
      w.eventSyncId = 7;
      w.start = w.end = 1234;
    });
    fake::waitWork();
  };
  record();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableCudaEventDeviceTimestamps(1));
  record();
  const auto records = collector_.flush();
  ASSERT_EQ(2u, records.size());
  EXPECT_EQ(6u, records[0].as<CUpti_ActivityCudaEvent2>().eventId);
  EXPECT_EQ(7u, records[0].as<CUpti_ActivityCudaEvent2>().cudaEventSyncId);
  EXPECT_EQ(0u, records[0].as<CUpti_ActivityCudaEvent2>().deviceTimestamp);
  EXPECT_EQ(1234u, records[1].as<CUpti_ActivityCudaEvent2>().deviceTimestamp);
}

TEST_F(Records, LatencyTimestampsOnRequest) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableLatencyTimestamps(1));
  EXPECT_NE(0u, fake::interest() & SONDE_INTEREST_LATENCY);
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL, [](SondeWork& w) {
    w.queued = 11;
    w.submitted = 12;
  });
  fake::waitWork();
  const auto records = collector_.flush();
  ASSERT_EQ(1u, records.size());
  EXPECT_EQ(11u, records[0].as<CUpti_ActivityKernel10>().queued);
  EXPECT_EQ(12u, records[0].as<CUpti_ActivityKernel10>().submitted);
}

TEST_F(Records, AllocationsOfBothKinds) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY_POOL});
  SondeResource r{};
  r.size = sizeof r;
  r.event = SONDE_RESOURCE_DEVICE_MEMORY;
  r.context = context_;
  r.contextUid = 2;
  r.address = 0x7000;
  r.bytes = 4096;
  r.memoryKind = SONDE_MEMORY_PINNED;
  r.memoryOp = 1;
  r.time = 50;
  r.correlationId = 8;
  fake::emit(r);
  r.memoryOp = 2;
  r.time = 80;
  fake::emit(r);
  r.memoryOp = 3;
  r.pool = reinterpret_cast<SondeHandle>(0x9000);
  r.poolReservedBytes = 33554432;
  fake::emit(r);
  r.memoryOp = 1;
  r.isAsync = 1;
  r.streamId = 13;
  r.address = 0xa000;
  r.poolUsedBytes = 4096;
  fake::emit(r);
  collector_.flush();
  const auto operations = collector_.records(CUPTI_ACTIVITY_KIND_MEMORY2);
  ASSERT_EQ(3u, operations.size());
  const auto& made = operations[0].as<CUpti_ActivityMemory4>();
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, made.memoryOperationType);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, made.memoryKind);
  EXPECT_EQ(0x7000u, made.address);
  EXPECT_EQ(4096u, made.bytes);
  EXPECT_EQ(50u, made.timestamp);
  EXPECT_EQ(CUPTI_INVALID_STREAM_ID, made.streamId);
  EXPECT_EQ(8u, made.correlationId);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID, made.memoryPoolConfig.memoryPoolType);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
            operations[1].as<CUpti_ActivityMemory4>().memoryOperationType);
  const auto& pooled = operations[2].as<CUpti_ActivityMemory4>();
  EXPECT_EQ(13u, pooled.streamId);
  EXPECT_EQ(1u, pooled.isAsync);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL, pooled.memoryPoolConfig.memoryPoolType);
  EXPECT_EQ(33554432u, pooled.memoryPoolConfig.pool.size);
  EXPECT_EQ(4096u, pooled.memoryPoolConfig.utilizedSize);
  const auto pools = collector_.records(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  ASSERT_EQ(1u, pools.size());
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED,
            pools[0].as<CUpti_ActivityMemoryPool3>().memoryPoolOperationType);
  const auto lives = collector_.records(CUPTI_ACTIVITY_KIND_MEMORY);
  ASSERT_EQ(1u, lives.size());
  EXPECT_EQ(50u, lives[0].as<CUpti_ActivityMemory>().start);
  EXPECT_EQ(80u, lives[0].as<CUpti_ActivityMemory>().end);
  // A forced flush shows what is still allocated, once.
  collector_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  collector_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const auto all = collector_.records(CUPTI_ACTIVITY_KIND_MEMORY);
  ASSERT_EQ(2u, all.size());
  EXPECT_EQ(0xa000u, all[1].as<CUpti_ActivityMemory>().address);
  EXPECT_EQ(0u, all[1].as<CUpti_ActivityMemory>().end);
}

TEST_F(Records, CompilerOverheadAndJit) {
  enable({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_JIT});
  collector_.flush();
  collector_.clear();
  SondeOverhead overhead{};
  overhead.size = sizeof overhead;
  overhead.kind = SONDE_OVERHEAD_COMPILER;
  overhead.start = 1000;
  overhead.end = 1500;
  overhead.correlationId = 21;
  fake::emit(overhead);
  overhead.kind = SONDE_OVERHEAD_LAZY_LOADING;
  fake::emit(overhead);
  collector_.flush();
  std::vector<CUpti_ActivityOverhead3> mine;
  for (const Record& r : collector_.records(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
    if (r.as<CUpti_ActivityOverhead3>().correlationId == 21) mine.push_back(r.as<CUpti_ActivityOverhead3>());
  }
  ASSERT_EQ(2u, mine.size());
  EXPECT_EQ(CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, mine[0].overheadKind);
  EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_THREAD, mine[0].objectKind);
  EXPECT_EQ(static_cast<uint32_t>(pthread_self()), mine[0].objectId.pt.threadId);
  EXPECT_EQ(1000u, mine[0].start);
  EXPECT_EQ(1500u, mine[0].end);
  EXPECT_EQ(CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, mine[1].overheadKind);
  const auto jit = collector_.records(CUPTI_ACTIVITY_KIND_JIT);
  ASSERT_EQ(1u, jit.size());
  EXPECT_EQ(CUPTI_ACTIVITY_JIT_OPERATION_COMPILE, jit[0].as<CUpti_ActivityJit2>().jitOperationType);
  EXPECT_EQ(CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN, jit[0].as<CUpti_ActivityJit2>().jitEntryType);
}

TEST_F(Records, Graphs) {
  enable({CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
  fake::enqueue(context_, nullptr, SONDE_WORK_GRAPH, [](SondeWork& w) {
    w.graphId = 2;
    w.start = 5;
    w.end = 9;
  });
  fake::waitWork();
  const auto records = collector_.flush();
  ASSERT_EQ(1u, records.size());
  const auto& g = records[0].as<CUpti_ActivityGraphTrace2>();
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, g.kind);
  EXPECT_EQ(2u, g.graphId);
  EXPECT_EQ(5u, g.start);
  EXPECT_EQ(9u, g.end);
  EXPECT_EQ(7u, g.streamId);
}

// ACT-068, ACT-029, ACT-058: one set for each device when the kind is enabled.
TEST_F(Records, ACT_068_EnvironmentHasFourSamplesOfEachDevice) {
  fake::setDeviceCount(2);
  uint64_t before = 0, after = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&before));
  enable({CUPTI_ACTIVITY_KIND_ENVIRONMENT});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&after));
  const auto records = collector_.flush();
  fake::setDeviceCount(1);
  ASSERT_EQ(8u, records.size());
  const CUpti_ActivityEnvironmentKind kKinds[] = {CUPTI_ACTIVITY_ENVIRONMENT_SPEED,
                                                  CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE,
                                                  CUPTI_ACTIVITY_ENVIRONMENT_POWER, CUPTI_ACTIVITY_ENVIRONMENT_COOLING};
  for (size_t i = 0; i < records.size(); ++i) {
    const auto& e = records[i].as<CUpti_ActivityEnvironment>();
    EXPECT_EQ(CUPTI_ACTIVITY_KIND_ENVIRONMENT, e.kind);
    EXPECT_EQ(i / 4, e.deviceId);
    EXPECT_EQ(kKinds[i % 4], e.environmentKind);
    EXPECT_GE(e.timestamp, before);
    EXPECT_LE(e.timestamp, after);
  }
  const auto& speed = records[4].as<CUpti_ActivityEnvironment>().data.speed;
  EXPECT_EQ(5u, speed.pcieLinkGen);
  EXPECT_EQ(16u, speed.pcieLinkWidth);
  EXPECT_EQ(CUPTI_CLOCKS_THROTTLE_REASON_GPU_IDLE, speed.clocksThrottleReasons);
  EXPECT_EQ(1980u, records[0].as<CUpti_ActivityEnvironment>().data.speed.smClock);
  EXPECT_EQ(2619u, records[0].as<CUpti_ActivityEnvironment>().data.speed.memoryClock);
  EXPECT_EQ(41u, records[1].as<CUpti_ActivityEnvironment>().data.temperature.gpuTemperature);
  EXPECT_EQ(120000u, records[2].as<CUpti_ActivityEnvironment>().data.power.power);
  EXPECT_EQ(700000u, records[2].as<CUpti_ActivityEnvironment>().data.power.powerLimit);
  EXPECT_EQ(30u, records[3].as<CUpti_ActivityEnvironment>().data.cooling.fanSpeed);
}

TEST_F(Records, ADeviceWithoutAFanHasNoSampleOfOne) {
  fake::setFanSpeed(~0u);
  enable({CUPTI_ACTIVITY_KIND_ENVIRONMENT});
  const auto records = collector_.flush();
  fake::setFanSpeed(30);
  ASSERT_EQ(3u, records.size());
  EXPECT_EQ(CUPTI_ACTIVITY_ENVIRONMENT_POWER, records[2].as<CUpti_ActivityEnvironment>().environmentKind);
}

TEST_F(Records, DeviceAttributesOfBothSorts) {
  enable({CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE});
  bool warp = false, bandwidth = false;
  for (const Record& record : collector_.flush()) {
    const auto& a = record.as<CUpti_ActivityDeviceAttribute>();
    if (a.flags == CUPTI_ACTIVITY_FLAG_DEVICE_ATTRIBUTE_CUDEVICE && a.attribute.cu == CU_DEVICE_ATTRIBUTE_WARP_SIZE) {
      warp = a.value.vInt32 == 32;
    }
    if (a.flags == CUPTI_ACTIVITY_FLAG_NONE && a.attribute.cupti == CUPTI_DEVICE_ATTR_GLOBAL_MEMORY_BANDWIDTH) {
      bandwidth = a.value.vUint64 == 4814304000u;
    }
  }
  EXPECT_TRUE(warp);
  EXPECT_TRUE(bandwidth);
}

TEST_F(Records, ExternalIdsPrecedeTheCall) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 70));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 71));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 80));
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch);
  uint64_t last = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
  EXPECT_EQ(71u, last);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, nullptr));
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
  EXPECT_EQ(70u, last);
  EXPECT_EQ(CUPTI_ERROR_QUEUE_EMPTY,
            cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, &last));
  const auto records = collector_.flush();
  ASSERT_EQ(6u, records.size());  // call, external 80, external 71, call, external 70, call
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_RUNTIME, static_cast<int>(records[0].kind()));
  const auto& inner = records[2].as<CUpti_ActivityExternalCorrelation>();
  EXPECT_EQ(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, records[1].as<CUpti_ActivityExternalCorrelation>().externalKind);
  EXPECT_EQ(80u, records[1].as<CUpti_ActivityExternalCorrelation>().externalId);
  EXPECT_EQ(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, inner.externalKind);
  EXPECT_EQ(71u, inner.externalId);
  EXPECT_EQ(records[3].as<CUpti_ActivityAPI>().correlationId, inner.correlationId);
  EXPECT_EQ(70u, records[4].as<CUpti_ActivityExternalCorrelation>().externalId);
}

TEST_F(Records, SingleFunctionsCanBeSwitched) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableRuntimeApi(kLaunch, 1));
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch);
  fake::call(SONDE_DOMAIN_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  EXPECT_EQ(1u, collector_.flush().size());
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableRuntimeApi(kLaunch, 0));
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch);
  fake::call(SONDE_DOMAIN_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  EXPECT_EQ(2u, collector_.flush().size());
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_SIZE, 1));
}

TEST_F(Records, ThreadIdTypes) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch);
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE));
  CUpti_ActivityThreadIdType type;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetThreadIdType(&type));
  EXPECT_EQ(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM, type);
  const auto records = collector_.flush();
  ASSERT_EQ(1u, records.size());
  EXPECT_EQ(static_cast<uint32_t>(gettid()), records[0].as<CUpti_ActivityAPI>().threadId);
}

uint64_t fastClock() {
  uint64_t t;
  cuptiGetTimestamp(&t);
  return 3 * (t - 1700000000000000000u);
}

TEST_F(Records, TimesAreInTheClientsClock) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityRegisterTimestampCallback(nullptr));
  for (int again = 0; again < 3; ++again) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterTimestampCallback(fastClock));
  }
  const uint64_t before = fastClock();
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch, 0, [&] { fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL); });
  fake::waitWork();
  const uint64_t after = fastClock();
  for (const Record& record : collector_.flush()) {
    const bool kernel = record.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    const uint64_t start = kernel ? record.as<CUpti_ActivityKernel10>().start : record.as<CUpti_ActivityAPI>().start;
    const uint64_t end = kernel ? record.as<CUpti_ActivityKernel10>().end : record.as<CUpti_ActivityAPI>().end;
    // The converted device time may be off by the calibration's error.
    constexpr uint64_t kSlack = 3 * 100000;
    EXPECT_LE(before, start + (kernel ? kSlack : 0));
    EXPECT_LE(start, end);
    EXPECT_LE(end, after + (kernel ? kSlack : 0));
  }
}

}  // namespace
