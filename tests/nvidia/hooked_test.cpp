// SPDX-License-Identifier: Apache-2.0
//
// libcupti on hooks, with the software driver in the place of the vendor's.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <generated_cuda_meta.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

const char kPtx[] = R"(.version 7.0
.target sm_60
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value)
{
  .reg .b32 %n<6>;
  .reg .b64 %r<4>;
  ld.param.u64 %r0, [out];
  ld.param.u32 %n0, [value];
  cvta.to.global.u64 %r0, %r0;
  mov.u32 %n1, %tid.x;
  mov.u32 %n2, %ctaid.x;
  mov.u32 %n3, %ntid.x;
  mad.lo.u32 %n4, %n2, %n3, %n1;
  mul.wide.u32 %r1, %n4, 4;
  add.u64 %r2, %r0, %r1;
  st.global.u32 [%r2], %n0;
  ret;
}
)";

#define CHECK_CU(call) ASSERT_EQ(CUDA_SUCCESS, (call))
#define CHECK_RT(call) ASSERT_EQ(cudaSuccess, (call))
#define CHECK_CUPTI(call) ASSERT_EQ(CUPTI_SUCCESS, (call))

struct Records {
  std::mutex mutex;
  std::vector<CUpti_ActivityKernel10> kernels;
  std::vector<CUpti_ActivityMemcpy6> copies;
  std::vector<CUpti_ActivityMemset4> sets;
  std::vector<CUpti_ActivityAPI> driver, runtime;
  std::vector<CUpti_ActivityGraphTrace2> graphs;
  std::vector<CUpti_ActivitySynchronization2> syncs;
  std::vector<CUpti_ActivityMemory4> memory;
  // Places in the order of delivery: by correlation id, of the external id and of the kernel.
  std::map<uint32_t, unsigned> externalPlace, kernelPlace;
  unsigned place = 0;
} records;

void requested(uint8_t** buffer, size_t* size, size_t* maximum) {
  *size = 1 << 20;
  *maximum = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  std::lock_guard lock(records.mutex);
  for (; cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS; ++records.place) {
    const unsigned place = records.place;
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        records.externalPlace[reinterpret_cast<CUpti_ActivityExternalCorrelation*>(record)->correlationId] = place;
        break;
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        records.kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel10*>(record));
        records.kernelPlace[records.kernels.back().correlationId] = place;
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY:
        records.copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpy6*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMSET: records.sets.push_back(*reinterpret_cast<CUpti_ActivityMemset4*>(record)); break;
      case CUPTI_ACTIVITY_KIND_DRIVER: records.driver.push_back(*reinterpret_cast<CUpti_ActivityAPI*>(record)); break;
      case CUPTI_ACTIVITY_KIND_RUNTIME: records.runtime.push_back(*reinterpret_cast<CUpti_ActivityAPI*>(record)); break;
      case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        records.graphs.push_back(*reinterpret_cast<CUpti_ActivityGraphTrace2*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        records.syncs.push_back(*reinterpret_cast<CUpti_ActivitySynchronization2*>(record));
        break;
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        records.memory.push_back(*reinterpret_cast<CUpti_ActivityMemory4*>(record));
        break;
      default: break;
    }
  }
  std::free(buffer);
}

class Hooked : public ::testing::Test {
 protected:
  void SetUp() override {
    {
      std::lock_guard lock(records.mutex);
      records.kernels.clear();
      records.copies.clear();
      records.sets.clear();
      records.driver.clear();
      records.runtime.clear();
      records.graphs.clear();
      records.syncs.clear();
      records.memory.clear();
      records.externalPlace.clear();
      records.kernelPlace.clear();
    }
    CHECK_CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
  }
  void TearDown() override { CHECK_CUPTI(cuptiFinalize()); }

  void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
    for (CUpti_ActivityKind kind : kinds) CHECK_CUPTI(cuptiActivityEnable(kind));
  }
  void load() {
    CHECK_RT(cudaFree(nullptr));
    CHECK_CU(cuModuleLoadData(&module, kPtx));
    CHECK_CU(cuModuleGetFunction(&fill, module, "fill"));
    CHECK_CU(cuMemAlloc(&memory, 4096));
  }
  void launch(CUstream stream, unsigned value, unsigned blocks = 2) {
    void* params[] = {&memory, &value};
    CHECK_CU(cuLaunchKernel(fill, blocks, 1, 1, 64, 1, 1, 0, stream, params, nullptr));
  }
  CUmodule module = nullptr;
  CUfunction fill = nullptr;
  CUdeviceptr memory = 0;
};

TEST_F(Hooked, KernelsAreReportedOnceInOrderWithTheCallsThatLaunchedThem) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER});
  load();
  CUstream streams[2];
  for (CUstream& s : streams) CHECK_CU(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  for (unsigned i = 0; i < 20; ++i) launch(streams[i % 2], i, 1 + i % 3);
  CHECK_CU(cuCtxSynchronize());
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  ASSERT_EQ(20u, records.kernels.size());
  std::map<uint32_t, const CUpti_ActivityAPI*> calls;
  for (const auto& call : records.driver)
    if (call.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) calls[call.correlationId] = &call;
  ASSERT_EQ(20u, calls.size());
  std::sort(records.kernels.begin(), records.kernels.end(),
            [](const auto& a, const auto& b) { return a.correlationId < b.correlationId; });
  std::map<uint32_t, uint64_t> lastEnd;
  std::set<uint32_t> ids;
  for (unsigned i = 0; i < 20; ++i) {
    const auto& k = records.kernels[i];
    ASSERT_TRUE(calls.count(k.correlationId));
    EXPECT_STREQ("fill", k.name);
    EXPECT_EQ(static_cast<int>(1 + i % 3), k.gridX);
    EXPECT_EQ(64, k.blockX);
    EXPECT_LE(k.start, k.end);
    EXPECT_GE(k.start, lastEnd[k.streamId]);
    lastEnd[k.streamId] = k.end;
    ids.insert(k.streamId);
  }
  EXPECT_EQ(2u, ids.size());
  for (const auto& s : streams) CHECK_CU(cuStreamDestroy(s));
}

TEST_F(Hooked, LaunchesOfEverySort) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  load();
  CUstream stream, other;
  CHECK_CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1));
  CHECK_CU(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  unsigned value = 1;
  void* params[] = {&memory, &value};
  CUlaunchAttribute attribute{};
  CUlaunchConfig config{};
  config.gridDimX = 4, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = 2, attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  CHECK_CU(cuLaunchKernelEx(&config, fill, params, nullptr));
  // The second may start before the first one's end; their times may not overlap.
  attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  config.gridDimX = 5;
  CHECK_CU(cuLaunchKernelEx(&config, fill, params, nullptr));
  CHECK_CU(cuLaunchCooperativeKernel(fill, 6, 1, 1, 32, 1, 1, 0, stream, params));
  // Behind an event of another stream.
  CUevent event;
  CHECK_CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  launch(other, 1, 7);
  CHECK_CU(cuEventRecord(event, other));
  CHECK_CU(cuStreamWaitEvent(stream, event, 0));
  launch(stream, 1, 8);
  launch(CU_STREAM_LEGACY, 1, 9);
  launch(CU_STREAM_PER_THREAD, 1, 10);
  CHECK_CU(cuCtxSynchronize());
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  std::map<int, CUpti_ActivityKernel10> by;
  for (const auto& k : records.kernels) {
    EXPECT_LT(k.start, k.end) << k.gridX;
    by[k.gridX] = k;
  }
  ASSERT_EQ(7u, by.size());
  EXPECT_EQ(2u, by[4].clusterX);
  EXPECT_EQ(1u, by[4].clusterY);
  EXPECT_EQ(0u, by[5].clusterX);
  EXPECT_EQ(CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE, by[6].launchType);
  EXPECT_EQ(CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR, by[5].launchType);
  for (int grid : {4, 5, 6, 8}) EXPECT_EQ(by[4].streamId, by[grid].streamId) << grid;
  EXPECT_EQ((std::set<uint32_t>{by[4].streamId, by[7].streamId, by[9].streamId, by[10].streamId}).size(), 4u);
  EXPECT_LE(by[4].end, by[5].start);
  EXPECT_LE(by[5].end, by[6].start);
  EXPECT_LE(by[6].end, by[8].start);
  CHECK_CU(cuStreamDestroy(stream));
  CHECK_CU(cuStreamDestroy(other));
}

TEST_F(Hooked, SourceLevelKindsSayThatTheyAreNotThere) {
  load();
  for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_SHARED_ACCESS,
                                  CUPTI_ACTIVITY_KIND_BRANCH, CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION}) {
    const CUptiResult result = cuptiActivityEnable(kind);
    EXPECT_TRUE(result == CUPTI_ERROR_NOT_SUPPORTED || result == CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED) << result;
    const char* message = nullptr;
    CHECK_CUPTI(cuptiGetErrorMessage(result, &message));
    ASSERT_NE(nullptr, message);
    EXPECT_LT(20u, std::strlen(message)) << message;  // a sentence
  }
}

TEST_F(Hooked, CopiesAndSetsSayWhatTheyMoved) {
  enable({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME});
  void* device = nullptr;
  void* pinned = nullptr;
  std::vector<char> pageable(5000, 'x');
  CHECK_RT(cudaMalloc(&device, 8192));
  CHECK_RT(cudaMallocHost(&pinned, 8192));
  CHECK_RT(cudaMemset(device, 7, 3000));
  CHECK_RT(cudaMemcpy(device, pageable.data(), 5000, cudaMemcpyHostToDevice));
  CHECK_RT(cudaMemcpy(pinned, device, 1234, cudaMemcpyDeviceToHost));
  CHECK_RT(cudaMemcpyAsync(static_cast<char*>(device) + 4096, device, 1000, cudaMemcpyDeviceToDevice, nullptr));
  CHECK_RT(cudaDeviceSynchronize());
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  ASSERT_EQ(1u, records.sets.size());
  EXPECT_EQ(3000u, records.sets[0].bytes);
  EXPECT_EQ(7u, records.sets[0].value);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, records.sets[0].memoryKind);
  ASSERT_EQ(3u, records.copies.size());
  struct Expected {
    uint64_t bytes;
    int kind, from, to;
  } expected[] = {
      {5000, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE},
      {1234, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PINNED},
      {1000, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE}};
  std::set<uint32_t> runtimeCalls;
  for (const auto& call : records.runtime) runtimeCalls.insert(call.correlationId);
  for (int i = 0; i < 3; ++i) {
    const auto& c = records.copies[static_cast<size_t>(i)];
    EXPECT_EQ(expected[i].bytes, c.bytes);
    EXPECT_EQ(expected[i].kind, c.copyKind);
    EXPECT_EQ(expected[i].from, c.srcKind);
    EXPECT_EQ(expected[i].to, c.dstKind);
    EXPECT_EQ(i == 2 ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0, c.flags);
    EXPECT_TRUE(runtimeCalls.count(c.correlationId));
    EXPECT_EQ(7u, c.streamId);
    EXPECT_LE(c.start, c.end);
    if (i > 0) {
      EXPECT_GE(c.start, records.copies[static_cast<size_t>(i - 1)].end);
    }
  }
  CHECK_RT(cudaFree(device));
  CHECK_RT(cudaFreeHost(pinned));
}

struct Seen {
  std::vector<std::string> entered, left;
  bool fail = false;
};

void CUPTIAPI onCall(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  auto& seen = *static_cast<Seen*>(user);
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const std::string name = call.functionName;
  (call.callbackSite == CUPTI_API_ENTER ? seen.entered : seen.left).push_back(name);
  if (cbid == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2) {
    EXPECT_EQ(256u, static_cast<const cuMemAlloc_v2_params*>(call.functionParams)->bytesize);
    if (call.callbackSite == CUPTI_API_EXIT && seen.fail)
      *static_cast<CUresult*>(call.functionReturnValue) = CUDA_ERROR_OUT_OF_MEMORY;
  }
}

TEST_F(Hooked, CallbacksSeeParametersAndMayChangeTheResult) {
  load();
  Seen seen;
  CUpti_SubscriberHandle subscriber;
  CHECK_CUPTI(cuptiSubscribe(&subscriber, onCall, &seen));
  CHECK_CUPTI(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2));
  CUdeviceptr p = 0;
  CHECK_CU(cuMemAlloc(&p, 256));
  CHECK_CU(cuMemFree(p));
  seen.fail = true;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, 256));
  CHECK_CU(cuMemFree(p));
  EXPECT_EQ((std::vector<std::string>{"cuMemAlloc_v2", "cuMemAlloc_v2"}), seen.entered);
  EXPECT_EQ(seen.entered, seen.left);
  CHECK_CUPTI(cuptiUnsubscribe(subscriber));
}

TEST_F(Hooked, ACaptureIsNotTouchedAndALaunchedGraphIsOneRecord) {
  enable({CUPTI_ACTIVITY_KIND_GRAPH_TRACE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  load();
  CUstream stream;
  CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  launch(stream, 1);
  CHECK_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (unsigned i = 0; i < 3; ++i) launch(stream, i);
  CUgraph graph;
  CHECK_CU(cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(3u, nodes);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CHECK_CU(cuGraphLaunch(exec, stream));
  CHECK_CU(cuGraphLaunch(exec, stream));
  CHECK_CU(cuStreamSynchronize(stream));
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  EXPECT_EQ(1u, records.kernels.size());
  ASSERT_EQ(2u, records.graphs.size());
  EXPECT_EQ(records.graphs[0].graphId, records.graphs[1].graphId);
  EXPECT_GE(records.graphs[1].start, records.graphs[0].end);
}

TEST_F(Hooked, ThreadsLaunchAtOnceAndNothingIsLost) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
  load();
  CUcontext context;
  CHECK_CU(cuCtxGetCurrent(&context));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      CHECK_CU(cuCtxSetCurrent(context));
      CUstream stream;
      CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (unsigned i = 0; i < 100; ++i) launch(stream, i);
      CHECK_CU(cuStreamSynchronize(stream));
      CHECK_CU(cuStreamDestroy(stream));
    });
  for (auto& t : threads) t.join();
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  EXPECT_EQ(400u, records.kernels.size());
  std::set<uint32_t> correlations;
  for (const auto& k : records.kernels) correlations.insert(k.correlationId);
  EXPECT_EQ(400u, correlations.size());
  EXPECT_EQ(4, std::count_if(records.syncs.begin(), records.syncs.end(), [](const auto& s) {
              return s.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
            }));
}

TEST_F(Hooked, TheExternalIdComesBeforeTheKernel) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  load();
  CUcontext context;
  CHECK_CU(cuCtxGetCurrent(&context));
  auto work = [&](uint64_t id) {
    CHECK_CU(cuCtxSetCurrent(context));
    CHECK_CUPTI(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id));
    for (unsigned i = 0; i < 5; ++i) launch(nullptr, i);
    CHECK_CUPTI(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr));
  };
  work(1);
  CHECK_CU(cuCtxSynchronize());
  std::thread(work, 2).join();  // it has ended when its work is done
  work(3);
  CHECK_CU(cuCtxSynchronize());
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  ASSERT_EQ(15u, records.kernelPlace.size());
  for (const auto& [correlation, place] : records.kernelPlace) {
    ASSERT_TRUE(records.externalPlace.count(correlation));
    EXPECT_LT(records.externalPlace[correlation], place);
  }
}

TEST_F(Hooked, AContextMayGoWithItsWorkUnread) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  CHECK_CU(cuInit(0));
  for (unsigned round = 0; round < 3; ++round) {
    CUcontext context;
    CHECK_CU(cuCtxCreate(&context, nullptr, 0, 0));
    CHECK_CU(cuModuleLoadData(&module, kPtx));
    CHECK_CU(cuModuleGetFunction(&fill, module, "fill"));
    CHECK_CU(cuMemAlloc(&memory, 4096));
    for (unsigned i = 0; i < 4; ++i) launch(nullptr, i);
    CHECK_CU(cuCtxSynchronize());
    CHECK_CU(cuCtxDestroy(context));
  }
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  EXPECT_EQ(12u, records.kernels.size());
  std::set<uint32_t> contexts;
  for (const auto& k : records.kernels) contexts.insert(k.contextId);
  EXPECT_EQ(3u, contexts.size());
}

TEST_F(Hooked, AfterFinalizeTheDriverIsAsItWasAndASecondLifeWorks) {
  uint8_t hooked[8], plain[8];
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  load();
  std::memcpy(hooked, reinterpret_cast<void*>(&cuLaunchKernel), 8);
  CHECK_CUPTI(cuptiFinalize());
  std::memcpy(plain, reinterpret_cast<void*>(&cuLaunchKernel), 8);
  EXPECT_NE(0, std::memcmp(hooked, plain, 8));
  launch(nullptr, 1);
  CHECK_CU(cuCtxSynchronize());
  CHECK_CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  launch(nullptr, 2);
  CHECK_CU(cuCtxSynchronize());
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  EXPECT_EQ(1u, records.kernels.size());
}

TEST_F(Hooked, AReleaseSaysWhatWasAllocatedAndWhere) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  load();
  records.memory.clear();
  CUdeviceptr device = 0, async = 0;
  void* pinned = nullptr;
  CUstream stream;
  CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_CU(cuMemAlloc(&device, 12345));
  CHECK_CU(cuMemHostAlloc(&pinned, 4096, 0));
  CHECK_CU(cuMemAllocAsync(&async, 1 << 16, stream));
  CHECK_CU(cuMemFreeAsync(async, stream));
  CHECK_CU(cuMemFreeHost(pinned));
  CHECK_CU(cuMemFree(device));
  CHECK_CU(cuStreamSynchronize(stream));
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  std::vector<CUpti_ActivityMemory4> seen;
  for (const auto& m : records.memory)
    if (m.address == device || m.address == async || m.address == reinterpret_cast<uint64_t>(pinned)) seen.push_back(m);
  ASSERT_EQ(6u, seen.size());
  const uint64_t bytes[] = {12345, 4096, 1 << 16, 1 << 16, 4096, 12345};
  const int kinds[] = {CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
                       CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
                       CUPTI_ACTIVITY_MEMORY_KIND_PINNED, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE};
  for (unsigned i = 0; i < 6; ++i) {
    EXPECT_EQ(i < 3 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
              seen[i].memoryOperationType);
    EXPECT_EQ(bytes[i], seen[i].bytes) << i;
    EXPECT_EQ(kinds[i], seen[i].memoryKind) << i;
    EXPECT_EQ(i == 2 || i == 3 ? 1u : 0u, seen[i].isAsync);
    EXPECT_EQ(i == 2 || i == 3 ? CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL : CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID,
              seen[i].memoryPoolConfig.memoryPoolType);
  }
}

TEST_F(Hooked, CorrelationIdsCountCallsThatSomebodySees) {
  CHECK_CU(cuInit(0));
  load();
  enable({CUPTI_ACTIVITY_KIND_DRIVER});
  CUdeviceptr p = 0;
  CHECK_CU(cuMemAlloc(&p, 256));
  CHECK_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_DRIVER));
  for (int i = 0; i < 10; ++i) {
    CUmodule other;
    CHECK_CU(cuModuleLoadData(&other, kPtx));  // looked at, but recorded by nobody
    CHECK_CU(cuModuleUnload(other));
  }
  enable({CUPTI_ACTIVITY_KIND_DRIVER});
  CHECK_CU(cuMemFree(p));
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(records.mutex);
  ASSERT_EQ(2u, records.driver.size());
  EXPECT_EQ(records.driver[0].correlationId + 1, records.driver[1].correlationId);
}

TEST_F(Hooked, TheEventApiSaysThatItIsNotThere) {
  load();
  CUcontext context;
  CHECK_CU(cuCtxGetCurrent(&context));
  CUpti_EventGroup group;
  EXPECT_EQ(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, cuptiEventGroupCreate(context, &group, 0));
  const char* message = nullptr;
  CHECK_CUPTI(cuptiGetErrorMessage(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED, &message));
  EXPECT_NE(nullptr, message);
}

}  // namespace
