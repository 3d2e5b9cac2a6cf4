// SPDX-License-Identifier: Apache-2.0
// Every byte of the records that the core makes: what the platform tells has a
// value of its own in each field, and the whole record must be the expected one.
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <tuple>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;
using testing_support::Record;

namespace {

// The bytes, with a message that names the first place that differs.
template <typename T>
::testing::AssertionResult same(const T& expected, const Record& record) {
  if (record.words.size() * 8 != sizeof(T)) {
    return ::testing::AssertionFailure() << record.words.size() * 8 << " bytes, not " << sizeof(T);
  }
  const auto* a = reinterpret_cast<const uint8_t*>(&expected);
  const auto* b = reinterpret_cast<const uint8_t*>(record.words.data());
  for (size_t i = 0; i < sizeof(T); ++i) {
    if (a[i] != b[i]) {
      return ::testing::AssertionFailure() << "byte " << i << " is " << int{b[i]} << ", not " << int{a[i]};
    }
  }
  return ::testing::AssertionSuccess();
}

class RecordFields : public ::testing::Test {
 protected:
  void SetUp() override {
    collector_.start();
    context_ = fake::createContext();
    stream_ = fake::createStream(context_);
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(static_cast<CUcontext>(context_), &contextId_));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(nullptr, static_cast<CUstream>(stream_), &streamId_));
  }
  void TearDown() override {
    fake::waitWork();
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    fake::destroyStream(stream_);
    fake::destroyContext(context_);
  }
  void enable(CUpti_ActivityKind kind) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind));
    collector_.flush();
    collector_.clear();
  }
  // The one record of the kind after the flush.
  const Record& only(CUpti_ActivityKind kind) {
    collector_.flush();
    records_ = collector_.records(kind);
    EXPECT_EQ(1u, records_.size());
    static const Record none{std::vector<uint64_t>(64)};
    return records_.empty() ? none : records_[0];
  }
  // One piece of work within a call; its correlation id.
  uint32_t work(SondeWorkKind kind, const std::function<void(SondeWork&)>& fill) {
    fake::call(SONDE_DOMAIN_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0,
               [&] { fake::enqueue(context_, stream_, kind, fill); });
    fake::waitWork();
    return fake::lastCorrelation();
  }
  Collector& collector_ = Collector::instance();
  SondeHandle context_ = nullptr, stream_ = nullptr;
  uint32_t contextId_ = 0, streamId_ = 0;
  std::vector<Record> records_;
};

void fillKernel(SondeWork& w) {
  w.name = "_Z1kPf";
  w.queued = 1001, w.submitted = 1002, w.start = 1003, w.end = 1004, w.completed = 1005;
  w.grid[0] = 2, w.grid[1] = 3, w.grid[2] = 4;
  w.block[0] = 5, w.block[1] = 6, w.block[2] = 7;
  w.cluster[0] = 8, w.cluster[1] = 9, w.cluster[2] = 10;
  w.registersPerThread = 11;
  w.staticSharedMemory = 12, w.dynamicSharedMemory = 13, w.sharedMemoryExecuted = 14;
  w.localMemoryPerThread = 15, w.localMemoryTotal = 16;
  w.cacheConfigRequested = 1, w.cacheConfigExecuted = 2;
  w.sharedMemoryConfig = 2;
  w.sharedMemoryCarveout = 17, w.sharedMemoryCarveoutRequested = 1;
  w.launchType = 1;
  w.partitionedCacheRequested = 1, w.partitionedCacheExecuted = 2;
  w.gridId = 18;
  w.graphId = 19, w.graphNodeId = 20;
  w.channelId = 21, w.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  w.clusterSchedulingPolicy = 22, w.maxPotentialClusterSize = 23, w.maxActiveClusters = 24;
  w.sharedMemoryOptin = 1;
}

TEST_F(RecordFields, Kernels) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableLatencyTimestamps(1));
  for (auto kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL}) {
    enable(kind);
    const uint32_t correlation = work(SONDE_WORK_KERNEL, fillKernel);
    const Record& record = only(kind);
    CUpti_ActivityKernel10 k;
    std::memset(static_cast<void*>(&k), 0, sizeof k);
    k.kind = kind;
    k.cacheConfig.config.requested = 1, k.cacheConfig.config.executed = 2;
    k.sharedMemoryConfig = 2;
    k.registersPerThread = 11;
    k.partitionedGlobalCacheRequested = static_cast<CUpti_ActivityPartitionedGlobalCacheConfig>(1);
    k.partitionedGlobalCacheExecuted = static_cast<CUpti_ActivityPartitionedGlobalCacheConfig>(2);
    k.start = 1003, k.end = 1004, k.completed = 1005, k.queued = 1001, k.submitted = 1002;
    k.contextId = contextId_, k.streamId = streamId_;
    k.gridX = 2, k.gridY = 3, k.gridZ = 4, k.blockX = 5, k.blockY = 6, k.blockZ = 7;
    k.staticSharedMemory = 12, k.dynamicSharedMemory = 13, k.sharedMemoryExecuted = 14;
    k.localMemoryPerThread = 15, k.localMemoryTotal = 16, k.localMemoryTotal_v2 = 16;
    k.correlationId = correlation;
    k.gridId = 18;
    k.launchType = 1;
    k.isSharedMemoryCarveoutRequested = 1, k.sharedMemoryCarveoutRequested = 17;
    k.graphId = 19, k.graphNodeId = 20;
    k.channelID = 21, k.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
    k.clusterX = 8, k.clusterY = 9, k.clusterZ = 10;
    k.clusterSchedulingPolicy = 22, k.maxPotentialClusterSize = 23, k.maxActiveClusters = 24;
    k.shmemLimitConfig = CUPTI_FUNC_SHMEM_LIMIT_OPTIN;
    k.name = record.as<CUpti_ActivityKernel10>().name;
    EXPECT_STREQ("_Z1kPf", k.name);
    EXPECT_TRUE(same(k, record)) << kind;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(kind));
  }
}

TEST_F(RecordFields, KernelsOfKernels) {
  enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const uint32_t correlation = work(SONDE_WORK_KERNEL, [](SondeWork& w) {
    fillKernel(w);
    w.parentGridId = 30;
    w.parentBlock[0] = 31, w.parentBlock[1] = 32, w.parentBlock[2] = 33;
  });
  const Record& record = only(CUPTI_ACTIVITY_KIND_CDP_KERNEL);
  CUpti_ActivityCdpKernel k;
  std::memset(static_cast<void*>(&k), 0, sizeof k);
  k.kind = CUPTI_ACTIVITY_KIND_CDP_KERNEL;
  k.cacheConfig.config.requested = 1, k.cacheConfig.config.executed = 2;
  k.sharedMemoryConfig = 2;
  k.registersPerThread = 11;
  k.start = 1003, k.end = 1004, k.completed = 1005, k.queued = 1001, k.submitted = 1002;
  k.contextId = contextId_, k.streamId = streamId_;
  k.gridX = 2, k.gridY = 3, k.gridZ = 4, k.blockX = 5, k.blockY = 6, k.blockZ = 7;
  k.staticSharedMemory = 12, k.dynamicSharedMemory = 13;
  k.localMemoryPerThread = 15, k.localMemoryTotal = 16;
  k.correlationId = correlation;
  k.gridId = 18, k.parentGridId = 30;
  k.parentBlockX = 31, k.parentBlockY = 32, k.parentBlockZ = 33;
  k.name = record.as<CUpti_ActivityCdpKernel>().name;
  EXPECT_STREQ("_Z1kPf", k.name);
  EXPECT_TRUE(same(k, record));
}

TEST_F(RecordFields, CopiesOfEveryDirection) {
  enable(CUPTI_ACTIVITY_KIND_MEMCPY);
  for (int kind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD; kind <= CUPTI_ACTIVITY_MEMCPY_KIND_HTOH; ++kind) {
    for (uint32_t async : {0u, 1u}) {
      collector_.clear();
      const uint32_t correlation = work(SONDE_WORK_MEMCPY, [&](SondeWork& w) {
        w.copyKind = static_cast<uint32_t>(kind);
        w.srcMemoryKind = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, w.dstMemoryKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
        w.isAsync = async;
        w.bytes = uint64_t{1} << 33;
        w.start = 2001, w.end = 2002;
        w.graphId = 22, w.graphNodeId = 23;
        w.channelId = 24, w.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
        w.copyCount = 25;
      });
      CUpti_ActivityMemcpy6 c;
      std::memset(static_cast<void*>(&c), 0, sizeof c);
      c.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
      c.copyKind = static_cast<uint8_t>(kind);
      c.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, c.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
      c.flags = async != 0 ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
      c.bytes = uint64_t{1} << 33;
      c.start = 2001, c.end = 2002;
      c.contextId = contextId_, c.streamId = streamId_;
      c.correlationId = c.runtimeCorrelationId = correlation;
      c.graphId = 22, c.graphNodeId = 23;
      c.channelID = 24, c.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
      c.copyCount = 25;
      EXPECT_TRUE(same(c, only(CUPTI_ACTIVITY_KIND_MEMCPY))) << kind;
    }
  }
}

TEST_F(RecordFields, PeerCopies) {
  enable(CUPTI_ACTIVITY_KIND_MEMCPY2);
  const uint32_t correlation = work(SONDE_WORK_MEMCPY_PEER, [&](SondeWork& w) {
    w.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    w.srcMemoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, w.dstMemoryKind = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY;
    w.isAsync = 1;
    w.bytes = 77;
    w.start = 2003, w.end = 2004;
    w.srcDeviceId = 1, w.srcContextUid = 2, w.dstDeviceId = 3, w.dstContextUid = 4;
    w.graphId = 26, w.graphNodeId = 27;
    w.channelId = 28, w.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  });
  CUpti_ActivityMemcpyPtoP4 c;
  std::memset(static_cast<void*>(&c), 0, sizeof c);
  c.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  c.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  c.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, c.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY;
  c.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
  c.bytes = 77;
  c.start = 2003, c.end = 2004;
  c.contextId = contextId_, c.streamId = streamId_;
  c.srcDeviceId = 1, c.srcContextId = 2, c.dstDeviceId = 3, c.dstContextId = 4;
  c.correlationId = correlation;
  c.graphId = 26, c.graphNodeId = 27;
  c.channelID = 28, c.channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY;
  EXPECT_TRUE(same(c, only(CUPTI_ACTIVITY_KIND_MEMCPY2)));
}

TEST_F(RecordFields, Sets) {
  enable(CUPTI_ACTIVITY_KIND_MEMSET);
  const uint32_t correlation = work(SONDE_WORK_MEMSET, [&](SondeWork& w) {
    w.setValue = 0xdeadbeef;
    w.dstMemoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
    w.isAsync = 1;
    w.bytes = 78;
    w.start = 2005, w.end = 2006;
    w.graphId = 29, w.graphNodeId = 30;
    w.channelId = 31, w.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  });
  CUpti_ActivityMemset4 m;
  std::memset(static_cast<void*>(&m), 0, sizeof m);
  m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  m.value = 0xdeadbeef;
  m.bytes = 78;
  m.start = 2005, m.end = 2006;
  m.contextId = contextId_, m.streamId = streamId_;
  m.correlationId = correlation;
  m.flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC;
  m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
  m.graphId = 29, m.graphNodeId = 30;
  m.channelID = 31, m.channelType = CUPTI_CHANNEL_TYPE_COMPUTE;
  EXPECT_TRUE(same(m, only(CUPTI_ACTIVITY_KIND_MEMSET)));
}

TEST_F(RecordFields, EventsAndGraphs) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableCudaEventDeviceTimestamps(1));
  enable(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  enable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  CUpti_ActivityCudaEvent2 e;
  std::memset(static_cast<void*>(&e), 0, sizeof e);
  e.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  e.correlationId = work(SONDE_WORK_EVENT_RECORD, [](SondeWork& w) {
    w.start = w.end = 2007;
    w.eventId = 32;
    w.eventSyncId = uint64_t{33} << 32;
  });
  e.contextId = contextId_, e.streamId = streamId_;
  e.eventId = 32;
  e.deviceTimestamp = 2007;
  e.cudaEventSyncId = uint64_t{33} << 32;
  EXPECT_TRUE(same(e, only(CUPTI_ACTIVITY_KIND_CUDA_EVENT)));
  CUpti_ActivityGraphTrace2 g;
  std::memset(static_cast<void*>(&g), 0, sizeof g);
  g.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  g.correlationId = work(SONDE_WORK_GRAPH, [](SondeWork& w) {
    w.start = 2008, w.end = 2009;
    w.graphId = 34;
  });
  g.start = 2008, g.end = 2009;
  g.graphId = 34;
  g.contextId = g.endContextId = contextId_;
  g.streamId = streamId_;
  EXPECT_TRUE(same(g, only(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)));
}

TEST_F(RecordFields, Synchronizations) {
  enable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  for (int kind = SONDE_SYNC_EVENT_SYNCHRONIZE; kind <= SONDE_SYNC_CONTEXT_SYNCHRONIZE; ++kind) {
    collector_.clear();
    SondeSync sync{};
    sync.size = sizeof sync;
    sync.kind = static_cast<uint32_t>(kind);
    sync.context = context_, sync.contextUid = 41;
    sync.streamId = 42, sync.eventId = 43, sync.eventSyncId = uint64_t{44} << 32;
    sync.correlationId = 45;
    sync.start = 3001, sync.end = 3002;
    sync.returnValue = 46;
    fake::emit(sync);
    CUpti_ActivitySynchronization2 s;
    std::memset(static_cast<void*>(&s), 0, sizeof s);
    s.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    s.type = static_cast<CUpti_ActivitySynchronizationType>(kind);
    s.start = 3001, s.end = 3002;
    s.correlationId = 45, s.contextId = 41, s.streamId = 42;
    const bool ofEvent = kind <= SONDE_SYNC_STREAM_WAIT_EVENT;
    s.cudaEventId = ofEvent ? 43 : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    s.cudaEventSyncId = ofEvent ? uint64_t{44} << 32 : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
    s.returnValue = 46;
    EXPECT_TRUE(same(s, only(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))) << kind;
  }
}

SondeResource resource(SondeHandle context, uint32_t event) {
  SondeResource r{};
  r.size = sizeof r;
  r.event = event;
  r.context = context;
  r.contextUid = 51;
  r.deviceId = 1;
  r.id = 52;
  return r;
}

TEST_F(RecordFields, StreamsFunctionsAndModules) {
  enable(CUPTI_ACTIVITY_KIND_STREAM);
  enable(CUPTI_ACTIVITY_KIND_FUNCTION);
  enable(CUPTI_ACTIVITY_KIND_MODULE);
  SondeResource r = resource(context_, SONDE_RESOURCE_STREAM_CREATED);
  r.flags = 2, r.priority = -3, r.correlationId = 53;
  fake::emit(r);
  CUpti_ActivityStream s;
  std::memset(static_cast<void*>(&s), 0, sizeof s);
  s.kind = CUPTI_ACTIVITY_KIND_STREAM;
  s.contextId = 51, s.streamId = 52, s.priority = static_cast<uint32_t>(-3), s.correlationId = 53;
  s.flag = CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING;
  EXPECT_TRUE(same(s, only(CUPTI_ACTIVITY_KIND_STREAM)));

  r = resource(context_, SONDE_RESOURCE_FUNCTION_LOADED);
  r.name = "_Z1fv", r.moduleId = 54, r.functionIndex = 55;
  fake::emit(r);
  const Record& function = only(CUPTI_ACTIVITY_KIND_FUNCTION);
  CUpti_ActivityFunction f;
  std::memset(static_cast<void*>(&f), 0, sizeof f);
  f.kind = CUPTI_ACTIVITY_KIND_FUNCTION;
  f.id = 52, f.contextId = 51, f.moduleId = 54, f.functionIndex = 55;
  f.name = function.as<CUpti_ActivityFunction>().name;
  EXPECT_STREQ("_Z1fv", f.name);
  EXPECT_TRUE(same(f, function));

  char image[] = "image";
  r = resource(context_, SONDE_RESOURCE_MODULE_LOADED);
  r.image = image, r.imageSize = sizeof image;
  fake::emit(r);
  image[0] = 'x';  // the module is gone
  const Record& module = only(CUPTI_ACTIVITY_KIND_MODULE);
  CUpti_ActivityModule m;
  std::memset(static_cast<void*>(&m), 0, sizeof m);
  m.kind = CUPTI_ACTIVITY_KIND_MODULE;
  m.contextId = 51, m.id = 52, m.cubinSize = sizeof image;
  m.cubin = module.as<CUpti_ActivityModule>().cubin;
  EXPECT_STREQ("image", static_cast<const char*>(m.cubin));
  EXPECT_TRUE(same(m, module));
}

TEST_F(RecordFields, AllocationsAndPools) {
  enable(CUPTI_ACTIVITY_KIND_MEMORY);
  enable(CUPTI_ACTIVITY_KIND_MEMORY2);
  enable(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  SondeResource r = resource(context_, SONDE_RESOURCE_DEVICE_MEMORY);
  r.address = 0x1000, r.bytes = 61, r.memoryKind = SONDE_MEMORY_DEVICE, r.memoryOp = 1, r.time = 4001;
  r.correlationId = 62, r.streamId = 63, r.isAsync = 1;
  r.pool = reinterpret_cast<SondeHandle>(0x2000);
  r.poolReleaseThreshold = 64, r.poolReservedBytes = 65, r.poolUsedBytes = 66;
  r.pc = 0x7001, r.name = "variable";
  fake::emit(r);
  CUpti_ActivityMemory4 a;
  std::memset(static_cast<void*>(&a), 0, sizeof a);
  a.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  a.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  a.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  a.correlationId = 62;
  a.address = 0x1000, a.bytes = 61, a.timestamp = 4001;
  a.processId = static_cast<uint32_t>(getpid()), a.deviceId = 1, a.contextId = 51, a.streamId = 63;
  a.isAsync = 1;
  a.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  a.memoryPoolConfig.address = 0x2000, a.memoryPoolConfig.releaseThreshold = 64;
  a.memoryPoolConfig.pool.size = 65, a.memoryPoolConfig.utilizedSize = 66;
  a.PC = 0x7001;
  a.name = only(CUPTI_ACTIVITY_KIND_MEMORY2).as<CUpti_ActivityMemory4>().name;
  EXPECT_STREQ("variable", a.name);
  EXPECT_TRUE(same(a, only(CUPTI_ACTIVITY_KIND_MEMORY2)));
  r.memoryOp = 2, r.time = 4002, r.pc = 0x7002;
  fake::emit(r);
  CUpti_ActivityMemory m;
  std::memset(static_cast<void*>(&m), 0, sizeof m);
  m.kind = CUPTI_ACTIVITY_KIND_MEMORY;
  m.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  m.address = 0x1000, m.bytes = 61, m.start = 4001, m.end = 4002;
  m.allocPC = 0x7001, m.freePC = 0x7002, m.name = a.name;
  m.processId = static_cast<uint32_t>(getpid()), m.deviceId = 1, m.contextId = 51;
  EXPECT_TRUE(same(m, only(CUPTI_ACTIVITY_KIND_MEMORY)));
  const CUpti_ActivityMemoryPoolOperationType operations[] = {CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED,
                                                              CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED,
                                                              CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED};
  for (uint32_t op = 3; op <= 5; ++op) {
    collector_.clear();
    r.memoryOp = op, r.time = 4000 + op, r.bytes = 67, r.name = nullptr;
    fake::emit(r);
    CUpti_ActivityMemoryPool3 p;
    std::memset(static_cast<void*>(&p), 0, sizeof p);
    p.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
    p.memoryPoolOperationType = operations[op - 3];
    p.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    p.correlationId = 62;
    p.processId = static_cast<uint32_t>(getpid()), p.deviceId = 1;
    p.minBytesToKeep = op == 5 ? 67 : 0;
    p.address = 0x2000, p.size = 65, p.releaseThreshold = 64;
    p.timestamp = 4000 + op;
    p.utilizedSize = 66;
    EXPECT_TRUE(same(p, only(CUPTI_ACTIVITY_KIND_MEMORY_POOL))) << op;
  }
}

TEST_F(RecordFields, OverheadsAndCompilations) {
  enable(CUPTI_ACTIVITY_KIND_OVERHEAD);
  enable(CUPTI_ACTIVITY_KIND_JIT);
  const std::pair<SondeOverheadKind, CUpti_ActivityOverheadKind> kinds[] = {
      {SONDE_OVERHEAD_COMPILER, CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER},
      {SONDE_OVERHEAD_INSTRUMENTATION, CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION},
      {SONDE_OVERHEAD_LAZY_LOADING, CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING},
      {SONDE_OVERHEAD_RUNTIME_MODULE_LOADING, CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING},
      {SONDE_OVERHEAD_QUEUE_FULL, CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL}};
  for (const auto& [told, recorded] : kinds) {
    collector_.flush();
    collector_.clear();
    SondeOverhead o{};
    o.size = sizeof o;
    o.kind = told;
    o.start = 5001, o.end = 5002, o.correlationId = 71, o.deviceId = 1;
    o.cacheHit = 1, o.cacheFile = "/cache/file", o.cacheBytes = 72;
    o.channelId = 73, o.channelType = 2;
    fake::emit(o);
    collector_.flush();
    CUpti_ActivityOverhead3 r;
    std::memset(static_cast<void*>(&r), 0, sizeof r);
    r.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    r.overheadKind = recorded;
    r.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    r.objectId.pt.processId = static_cast<uint32_t>(getpid());
    r.objectId.pt.threadId = static_cast<uint32_t>(pthread_self());
    r.start = 5001, r.end = 5002, r.correlationId = 71;
    int found = 0;
    for (const Record& record : collector_.records(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
      if (record.as<CUpti_ActivityOverhead3>().correlationId != 71) continue;  // of buffers
      ++found;
      void* const data = record.as<CUpti_ActivityOverhead3>().overheadData;
      ASSERT_EQ(told == SONDE_OVERHEAD_QUEUE_FULL, data != nullptr);
      r.overheadData = data;
      EXPECT_TRUE(same(r, record)) << recorded;
      if (data == nullptr) continue;
      const auto& full = *static_cast<CUpti_ActivityOverheadCommandBufferFullData*>(data);
      EXPECT_EQ(0u, full.commandBufferLength);
      EXPECT_EQ(73u, full.channelID);
      EXPECT_EQ(2u, full.channelType);
      std::free(data);
    }
    EXPECT_EQ(1, found);
    const auto jits = collector_.records(CUPTI_ACTIVITY_KIND_JIT);
    ASSERT_EQ(told == SONDE_OVERHEAD_COMPILER ? 1u : 0u, jits.size());
    if (jits.empty()) continue;
    CUpti_ActivityJit2 j;
    std::memset(static_cast<void*>(&j), 0, sizeof j);
    j.kind = CUPTI_ACTIVITY_KIND_JIT;
    j.jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN;
    j.jitOperationType = CUPTI_ACTIVITY_JIT_OPERATION_CACHE_LOAD;
    j.deviceId = 1;
    j.start = 5001, j.end = 5002;
    j.correlationId = 71, j.jitOperationCorrelationId = 71;
    j.cacheSize = 72;
    j.cachePath = jits[0].as<CUpti_ActivityJit2>().cachePath;
    EXPECT_STREQ("/cache/file", j.cachePath);
    j.processId = static_cast<uint32_t>(getpid());
    j.threadId = static_cast<uint32_t>(pthread_self());
    EXPECT_TRUE(same(j, jits[0]));
  }
}

// What belongs to a record goes with it when nobody takes it; the leak checker looks.
TEST_F(RecordFields, ADroppedOverheadTakesItsDataAlong) {
  enable(CUPTI_ACTIVITY_KIND_OVERHEAD);
  collector_.flush();
  size_t before = 0, after = 0;
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) { *buffer = nullptr, *size = 0; };
  cuptiActivityFlushAll(0);  // a buffer that was asked for meanwhile
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &before);
  SondeOverhead o{};
  o.size = sizeof o;
  o.kind = SONDE_OVERHEAD_QUEUE_FULL;
  o.start = 5001, o.end = 5002, o.correlationId = 71;
  for (int i = 0; i < 3; ++i) fake::emit(o);
  cuptiActivityFlushAll(0);
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &after);
  EXPECT_GE(after, 3u);
  fake::emit(o);  // its client ends, and takes no buffer for it
}

// What the library itself costs: buffers asked for and flushed, room for a new
// context and for a thread.
TEST_F(RecordFields, OverheadsOfTheLibrary) {
  enable(CUPTI_ACTIVITY_KIND_OVERHEAD);
  uint64_t before = 0, after = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&before));
  SondeHandle other = fake::createContext();
  fake::destroyContext(other);
  collector_.flush();
  collector_.flush();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&after));
  std::map<int, int> kinds;
  for (const Record& record : collector_.records(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
    const auto& o = record.as<CUpti_ActivityOverhead3>();
    EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_THREAD, o.objectKind);
    // The thread that delivers in the background may have come to work, and have made room for itself.
    const bool ours = o.objectId.pt.threadId == static_cast<uint32_t>(pthread_self());
    if (ours || o.overheadKind != CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE) ++kinds[o.overheadKind];
    EXPECT_EQ(static_cast<uint32_t>(getpid()), o.objectId.pt.processId);
    EXPECT_LE(o.start, o.end);
    EXPECT_LE(o.end, after);
  }
  EXPECT_GE(kinds[CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH], 1);
  // This thread's queue, the context's coming and its going.
  EXPECT_EQ(3, kinds[CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE]);
  EXPECT_GE(kinds[CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST], 1);
}

TEST_F(RecordFields, CallsAndExternalIds) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
  for (auto [kind, domain, cbid] : {std::tuple{CUPTI_ACTIVITY_KIND_DRIVER, SONDE_DOMAIN_DRIVER, 243u},
                                    std::tuple{CUPTI_ACTIVITY_KIND_RUNTIME, SONDE_DOMAIN_RUNTIME, 20u}}) {
    enable(kind);
    ASSERT_EQ(CUPTI_SUCCESS,
              cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC, uint64_t{81} << 32));
    fake::call(domain, cbid, 82);
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC, nullptr));
    const Record& record = only(kind);
    CUpti_ActivityAPI api;
    std::memset(static_cast<void*>(&api), 0, sizeof api);
    api.kind = kind;
    api.cbid = cbid;
    api.start = record.as<CUpti_ActivityAPI>().start, api.end = record.as<CUpti_ActivityAPI>().end;
    EXPECT_LE(api.start, api.end);
    api.processId = static_cast<uint32_t>(getpid());
    api.threadId = static_cast<uint32_t>(pthread_self());
    api.correlationId = fake::lastCorrelation();
    api.returnValue = 82;
    EXPECT_TRUE(same(api, record));
    CUpti_ActivityExternalCorrelation e;
    std::memset(static_cast<void*>(&e), 0, sizeof e);
    e.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    e.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC;
    e.externalId = uint64_t{81} << 32;
    e.correlationId = fake::lastCorrelation();
    EXPECT_TRUE(same(e, only(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(kind));
  }
}

}  // namespace
