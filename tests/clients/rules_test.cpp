// SPDX-License-Identifier: Apache-2.0
// Fifteen things that clients rely on and no manual says; each on the software GPU.
#include <generated_cuda_runtime_api_meta.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "tests/cupti_gpu/gpu_trace.h"

namespace sonde::test {
namespace {

using Call = std::function<void(CUpti_CallbackDomain, CUpti_CallbackId, const CUpti_CallbackData*)>;
Call onCall;
void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  if (onCall && domain <= CUPTI_CB_DOMAIN_RUNTIME_API) {
    onCall(domain, cbid, static_cast<const CUpti_CallbackData*>(data));
  }
}

class ClientRules : public GpuTrace {
 protected:
  void SetUp() override {
    GpuTrace::SetUp();
    ASSERT_EQ(cudaSuccess, allocate(&out_, 65536));
  }
  void TearDown() override {
    GpuTrace::TearDown();
    onCall = nullptr;
    cudaFree(out_);
  }
  void subscribe(CUpti_CallbackDomain domain, Call call) {
    onCall = std::move(call);
    ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber_, called, nullptr));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, domain));
  }
  size_t kernels() { return collector_.records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).size(); }
  // Not for races: what comes by itself, and when is not said.
  static bool comes(const std::function<bool()>& condition) {
    for (int i = 0; i < 10000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  }
  uint32_t* out_ = nullptr;
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

TEST_F(ClientRules, B4_01_FinalizeWithinTheExitOfACallAndLifeAfterwards) {
  for (uint32_t life = 1; life <= 200; ++life) {
    SCOPED_TRACE(life);
    collector_.start();
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
    int entries = 0, exits = 0;
    subscribe(CUPTI_CB_DOMAIN_RUNTIME_API, [&](auto, CUpti_CallbackId cbid, const CUpti_CallbackData* call) {
      ++(call->callbackSite == CUPTI_API_ENTER ? entries : exits);
      if (cbid != CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020 || call->callbackSite != CUPTI_API_EXIT) return;
      EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
      EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    });
    for (uint32_t i = 0; i < 3; ++i) ASSERT_EQ(cudaSuccess, launch(out_, life, 32, 0));
    CUDA(cudaDeviceSynchronize());
    // Delivered by the end; nothing more comes.
    const auto found = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    ASSERT_EQ(3u, found.size());
    for (const auto& k : found) EXPECT_EQ(static_cast<int32_t>(life), k.gridX);
    EXPECT_EQ(4, entries);
    EXPECT_EQ(4, exits);
    ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
    CUDA(cudaDeviceSynchronize());
    ASSERT_EQ(3u, kernels());
    ASSERT_EQ(4, entries);
  }
}

TEST_F(ClientRules, B4_02_APlainFlushDeliversWhatIsFinishedBeforeItReturns) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY});
  uint32_t host[32];
  for (size_t round = 1; round <= 50; ++round) {
    ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
    CUDA(cudaMemcpy(host, out_, sizeof host, cudaMemcpyDeviceToHost));
    const uint32_t completions = collector_.completions;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
    EXPECT_GT(collector_.completions, completions);
    EXPECT_EQ(round, kernels());
    EXPECT_EQ(round, collector_.records(CUPTI_ACTIVITY_KIND_MEMCPY).size());
    EXPECT_EQ(2 * round, collector_.records(CUPTI_ACTIVITY_KIND_RUNTIME).size());
  }
}

TEST_F(ClientRules, B4_03_FunctionsThatAreCalledFromCallbacks) {
  enable(
      {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  int inside = 0, completions = 0;
  CUcontext context = nullptr;
  CU(cuCtxGetCurrent(&context));
  subscribe(CUPTI_CB_DOMAIN_RUNTIME_API, [&](auto, CUpti_CallbackId cbid, const CUpti_CallbackData* call) {
    if (cbid != CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 || call->callbackSite != CUPTI_API_ENTER) return;
    ++inside;
    size_t dropped = 1;
    uint32_t id = 0, stream = 0;
    uint64_t last = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
    EXPECT_EQ(0u, dropped);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiGetContextId(call->context, &id));
    EXPECT_EQ(call->contextUid, id);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiGetDeviceId(call->context, &id));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(call->context, nullptr, &id));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiGetStreamIdEx(call->context, nullptr, 0, &stream));
    EXPECT_EQ(id, stream);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 9));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
    EXPECT_EQ(9u, last);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityEnableContext(call->context, CUPTI_ACTIVITY_KIND_MEMSET));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_SYNCHRONIZE));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  });
  collector_.onComplete = [&](uint8_t*, size_t, size_t) {
    ++completions;
    size_t dropped = 1;
    uint32_t id = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
    EXPECT_EQ(0u, dropped);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiGetContextId(context, &id));
  };
  for (int i = 0; i < 10; ++i) ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
  CUDA(cudaMemset(out_, 0, 64));
  finish();
  EXPECT_EQ(10, inside);
  EXPECT_GE(completions, 1);
  EXPECT_EQ(10u, kernels());
  EXPECT_EQ(1u, collector_.records(CUPTI_ACTIVITY_KIND_MEMSET).size());
  onCall = nullptr;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
  collector_.onComplete = nullptr;
}

// The ids of graphs, where their parts come into being and where they are launched.
TEST_F(ClientRules, B4_03_IdsOfGraphsFromCallbacks) {
  static std::set<uint64_t> nodes;
  static uint32_t graphs, execs;
  nodes.clear(), graphs = execs = 0;
  CUpti_SubscriberHandle subscriber = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(
                               &subscriber,
                               [](void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
                                 if (domain != CUPTI_CB_DOMAIN_RESOURCE) return;
                                 const auto* graph = static_cast<const CUpti_GraphData*>(
                                     static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor);
                                 uint64_t node = 0;
                                 uint32_t id = 0;
                                 if (cbid == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
                                   EXPECT_EQ(CUPTI_SUCCESS, cuptiGetGraphNodeId(graph->node, &node));
                                   nodes.insert(node);
                                   EXPECT_EQ(CUPTI_SUCCESS, cuptiGetGraphId(graph->graph, &id));
                                   graphs = id;
                                 } else if (cbid == CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED) {
                                   EXPECT_EQ(CUPTI_SUCCESS, cuptiGetGraphExecId(graph->graphExec, &id));
                                   execs = id;
                                 }
                               },
                               nullptr));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0, stream));
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(3u, nodes.size());
  EXPECT_NE(0u, graphs);
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  CUDA(cudaGraphLaunch(exec, stream));
  finish();
  const auto found = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(3u, found.size());
  for (const auto& k : found) EXPECT_EQ(execs, k.graphId);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber));
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
}

TEST_F(ClientRules, B4_04_RefusalsAndOneBufferAgainAndAgain) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint8_t off = 0;
  size_t size = sizeof off;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &off));
  auto work = [&](uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
    CUDA(cudaDeviceSynchronize());
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  };
  auto dropped = [] {
    size_t count = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &count));
    return count;
  };
  // NULL, and nothing set at all: the outputs are preset.
  collector_.onRequest = [](uint8_t** buffer, size_t* bytes, size_t*) { *buffer = nullptr, *bytes = 0; };
  work(20);
  EXPECT_EQ(20u, dropped());
  collector_.onRequest = [](uint8_t** buffer, size_t* bytes, size_t* records) {
    EXPECT_EQ(nullptr, *buffer);
    EXPECT_EQ(0u, *bytes);
    EXPECT_EQ(0u, *records);
  };
  work(20);
  EXPECT_EQ(20u, dropped());
  EXPECT_EQ(0u, kernels());
  // One static buffer, offered again as soon as it is back; never twice at once.
  alignas(8) static uint8_t only[4096];
  static std::atomic<int> outside;
  outside = 0;
  collector_.onRequest = [](uint8_t** buffer, size_t* bytes, size_t*) {
    EXPECT_EQ(1, ++outside);
    *buffer = only, *bytes = sizeof only;
  };
  collector_.onComplete = [](uint8_t* buffer, size_t bytes, size_t) {
    EXPECT_EQ(only, buffer);
    EXPECT_EQ(sizeof only, bytes);
    --outside;
  };
  work(200);  // 18 fit
  EXPECT_EQ(200u, kernels());
  EXPECT_EQ(0u, dropped());
  collector_.onRequest = nullptr;
  collector_.onComplete = nullptr;
}

TEST_F(ClientRules, B4_05_ThePointerTheSizeAndTheEndOfABuffer) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  // At 8 and no more: an odd multiple of it.
  static std::set<uint8_t*> outside;
  static std::vector<uint64_t> memory(1 << 16);
  outside.clear();
  collector_.onRequest = [](uint8_t** buffer, size_t* bytes, size_t*) {
    static size_t next = 1;
    *buffer = reinterpret_cast<uint8_t*>(memory.data() + next);
    next = (next + 130) % 60000 | 1;
    *bytes = 1000;
    EXPECT_EQ(8u, reinterpret_cast<uintptr_t>(*buffer) % 16);
    outside.insert(*buffer);
  };
  size_t records = 0;
  collector_.onComplete = [&](uint8_t* buffer, size_t bytes, size_t valid) {
    EXPECT_EQ(1u, outside.erase(buffer));
    EXPECT_EQ(1000u, bytes);
    CUpti_Activity* record = nullptr;
    size_t walked = 0;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
      EXPECT_EQ(buffer + walked, reinterpret_cast<uint8_t*>(record));
      walked +=
          record->kind == CUPTI_ACTIVITY_KIND_RUNTIME ? sizeof(CUpti_ActivityAPI) : sizeof(CUpti_ActivityKernel10);
      ++records;
    }
    EXPECT_EQ(valid, walked);
    EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, valid, &record));
  };
  for (int i = 0; i < 100; ++i) ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
  CUDA(cudaDeviceSynchronize());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  EXPECT_EQ(201u, records);
  collector_.onRequest = nullptr;
  collector_.onComplete = nullptr;
}

TEST_F(ClientRules, B4_06_ThreadIdsAreThoseOfPthreadsOrTheSystem) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  uint32_t byPthread = 0, bySystem = 0;
  std::thread([&] {
    byPthread = static_cast<uint32_t>(pthread_self());
    CUDA(cudaMemset(out_, 0, 4));
  }).join();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
  std::thread([&] {
    bySystem = static_cast<uint32_t>(syscall(SYS_gettid));
    CUDA(cudaMemset(out_, 0, 4));
  }).join();
  collector_.flush();
  const auto found = byCall<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(byPthread, found[0].threadId);
  EXPECT_EQ(bySystem, found[1].threadId);
}

// Two clocks, a year apart.
constexpr uint64_t kYear = uint64_t{365} * 86400 * 1000000000;
uint64_t realTime(uint64_t offset) {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec) - offset;
}
uint64_t aYearAgo() { return realTime(kYear); }
uint64_t twoYearsAgo() { return realTime(2 * kYear); }

TEST_F(ClientRules, B4_07_AnotherClockLeavesOldRecordsAlone) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterTimestampCallback(aYearAgo));
  const uint64_t a = aYearAgo();
  ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
  CUDA(cudaDeviceSynchronize());
  const uint64_t b = aYearAgo();
  // Not delivered yet.
  for (int again = 0; again < 3; ++again) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterTimestampCallback(twoYearsAgo));
  }
  const uint64_t c = twoYearsAgo();
  ASSERT_EQ(cudaSuccess, launch(out_, 2, 32, 0));
  CUDA(cudaDeviceSynchronize());
  const uint64_t d = twoYearsAgo();
  collector_.flush();
  // Converted device times may be off by the calibration's error.
  constexpr uint64_t kSlack = 300000;
  const auto found = byCall<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(2u, found.size());
  EXPECT_LE(a, found[0].start + kSlack);
  EXPECT_LE(found[0].end, b + kSlack);
  EXPECT_LE(c, found[1].start + kSlack);
  EXPECT_LE(found[1].end, d + kSlack);
  const auto apis = byCall<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
  ASSERT_EQ(4u, apis.size());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_LE(i < 2 ? a : c, apis[i].start) << i;
    EXPECT_LE(apis[i].end, i < 2 ? b : d) << i;
  }
}

// A clock whose reader now and then loses the processor.
uint64_t interruptedClock() {
  static std::atomic<uint32_t> calls{0};
  const uint64_t time = aYearAgo() * 5 / 2;
  if (++calls % 5 == 2) usleep(2000);
  return time;
}

// Work starts after its call also in the client's clock.
TEST_F(ClientRules, B4_07_KernelsFollowTheirCallsInAnotherClock) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterTimestampCallback(interruptedClock));
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
    CUDA(cudaDeviceSynchronize());
  }
  finish();
  const auto found = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(50u, found.size());
  for (const auto& k : found) {
    EXPECT_LE(callOf(k.correlationId).start, k.start + 20000 * 5 / 2);  // 20 us
    EXPECT_LE(k.start, k.end);
  }
}

TEST_F(ClientRules, B4_08_APeriodDeliversWhatIdleThreadsLeftAndZeroEndsIt) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  std::promise<void> worked, over;
  std::thread idle([&] {
    ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
    CUDA(cudaDeviceSynchronize());
    worked.set_value();
    over.get_future().wait();  // lives on, and does nothing
  });
  worked.get_future().wait();
  EXPECT_EQ(0u, kernels());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushPeriod(2));
  EXPECT_TRUE(comes([&] { return kernels() == 1 && collector_.records(CUPTI_ACTIVITY_KIND_RUNTIME).size() == 2; }));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushPeriod(0));
  // A flush that had begun is over when this one is.
  collector_.flush();
  ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
  CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 100; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(1u, kernels());
  }
  collector_.flush();
  EXPECT_EQ(2u, kernels());
  over.set_value();
  idle.join();
}

TEST_F(ClientRules, B4_09_EachThreadHasABufferUnlessTheClientSaysOtherwiseInTime) {
  auto attribute = [] {
    uint8_t value = 7;
    size_t size = sizeof value;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &value));
    return value;
  };
  auto buffersOfTwoThreads = [&]() -> size_t {
    enable({CUPTI_ACTIVITY_KIND_RUNTIME});
    std::promise<void> worked, over;
    std::thread other([&] {
      CUDA(cudaMemset(out_, 0, 4));
      worked.set_value();
      over.get_future().wait();
    });
    worked.get_future().wait();
    EXPECT_EQ(cudaSuccess, cudaMemset(out_, 0, 4));
    collector_.flush();
    over.set_value();
    other.join();
    const auto found = of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
    EXPECT_EQ(2u, found.size());
    return collector_.recordsPerBuffer().size();
  };
  EXPECT_EQ(1, attribute());
  EXPECT_EQ(2u, buffersOfTwoThreads());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  uint8_t off = 0;
  size_t size = sizeof off;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &off));
  collector_.start();
  EXPECT_EQ(0, attribute());
  EXPECT_EQ(1u, buffersOfTwoThreads());
}

TEST_F(ClientRules, B4_10_SingleFunctionsAreSilencedWhileTheKindStaysOn) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 0));
  for (CUpti_CallbackId id :
       {CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute, CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState,
        CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent}) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableDriverApi(id, 0));
  }
  int device = 0, active = 0;
  unsigned flags = 0;
  CUcontext context = nullptr;
  for (int i = 0; i < 5; ++i) {
    CUDA(cudaGetDevice(&device));
    CU(cuCtxGetCurrent(&context));
    CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CU(cuCtxGetDevice(&device));
    CUDA(cudaMemset(out_, 0, 4));
  }
  collector_.flush();
  const auto runtime = of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME);
  ASSERT_EQ(5u, runtime.size());
  for (const auto& r : runtime) EXPECT_EQ(uint32_t{CUPTI_RUNTIME_TRACE_CBID_cudaMemset_v3020}, r.cbid);
  size_t asked = 0;
  for (const auto& r : of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER)) {
    EXPECT_NE(uint32_t{CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent}, r.cbid);
    EXPECT_NE(uint32_t{CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState}, r.cbid);
    asked += r.cbid == CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice;
  }
  // Five of the program's, and five of the silenced cudaGetDevice: no record of a runtime call covers them.
  EXPECT_EQ(10u, asked);
  // And again on.
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 1));
  CUDA(cudaGetDevice(&device));
  collector_.flush();
  EXPECT_EQ(6u, of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME).size());
}

TEST_F(ClientRules, B4_11_LayoutsFollowTheVersionThatIsReported) {
  uint32_t version = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetVersion(&version));
  EXPECT_EQ(130001u, version);
  EXPECT_EQ(130001, CUPTI_API_VERSION);
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
          CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_DEVICE});
  uint32_t host[4];
  ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
  CUDA(cudaMemset(out_, 0, 16));
  CUDA(cudaMemcpy(host, out_, 16, cudaMemcpyDeviceToHost));
  void* more = nullptr;
  CUDA(cudaMalloc(&more, 16));
  CUDA(cudaFree(more));
  collector_.flush();
  // The sizes of CUDA 13.0.
  const std::map<uint32_t, size_t> sizes = {{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 216},
                                            {CUPTI_ACTIVITY_KIND_MEMCPY, 96},
                                            {CUPTI_ACTIVITY_KIND_MEMSET, 88},
                                            {CUPTI_ACTIVITY_KIND_MEMORY2, 128},
                                            {CUPTI_ACTIVITY_KIND_DEVICE, 184}};
  std::set<uint32_t> seen;
  for (const Record& r : collector_.records()) {
    ASSERT_EQ(1u, sizes.count(r.kind())) << r.kind();
    EXPECT_EQ(sizes.at(r.kind()), r.words.size() * 8) << r.kind();
    seen.insert(r.kind());
  }
  EXPECT_EQ(sizes.size(), seen.size());
}

TEST_F(ClientRules, B4_12_ASecondSubscriberIsTold39) {
  subscribe(CUPTI_CB_DOMAIN_RUNTIME_API, [](auto, auto, auto*) {});
  CUpti_SubscriberHandle second = nullptr;
  EXPECT_EQ(39, static_cast<int>(cuptiSubscribe(&second, called, nullptr)));
  EXPECT_EQ(nullptr, second);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&second, called, nullptr));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(second));
}

// In processes of their own, whose driver has not started. The child's exit status is the line that failed.
#define CHILD(condition)                     \
  do {                                       \
    if (!(condition)) _exit(__LINE__ % 256); \
  } while (0)

int inANewProcess(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// No fixture: nothing has called CUDA yet when these are run alone, as ctest does.
TEST(ClientRulesBeforeTheDriver, B4_13_KindsCanBeEnabledBeforeItStartsAndWithoutADevice) {
  auto enableAll = [] {
    CHILD(cuptiActivityRegisterCallbacks(testing_support::Collector::requested,
                                         testing_support::Collector::completed) == CUPTI_SUCCESS);
    for (CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_KERNEL,
                                    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_ENVIRONMENT}) {
      CHILD(cuptiActivityEnable(kind) == CUPTI_SUCCESS);
    }
  };
  EXPECT_EQ(0, inANewProcess([&] {
              enableAll();
              int devices = 0;
              CHILD(cuDeviceGetCount(&devices) == CUDA_ERROR_NOT_INITIALIZED);  // nothing was started
              CHILD(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
              CHILD(testing_support::Collector::instance().records().empty());
              CHILD(cudaFree(nullptr) == cudaSuccess);
              CHILD(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
              auto& collector = testing_support::Collector::instance();
              CHILD(collector.records(CUPTI_ACTIVITY_KIND_DEVICE).size() == 2);
              CHILD(collector.records(CUPTI_ACTIVITY_KIND_ENVIRONMENT).size() == 8);
              CHILD(collector.records(CUPTI_ACTIVITY_KIND_RUNTIME).size() == 1);
            }));
  EXPECT_EQ(0, inANewProcess([&] {
              setenv("CUDA_VISIBLE_DEVICES", "", 1);
              enableAll();
              CHILD(cuInit(0) == CUDA_ERROR_NO_DEVICE);
              uint32_t device = 7;
              CHILD(cuptiGetDeviceId(nullptr, &device) == CUPTI_ERROR_INVALID_DEVICE && device == 7);
              CHILD(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS);
              CHILD(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
              CHILD(testing_support::Collector::instance().records(CUPTI_ACTIVITY_KIND_DEVICE).empty());
              CHILD(cuptiFinalize() == CUPTI_SUCCESS);
            }));
}

TEST_F(ClientRules, B4_14_NamesCarryTheVersion) {
  const char* name = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS,
            cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name));
  EXPECT_STREQ("cudaLaunchKernel_v7000", name);
  ASSERT_EQ(CUPTI_SUCCESS,
            cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, &name));
  EXPECT_STREQ("cuMemcpyHtoD_v2", name);
  std::string told;
  subscribe(CUPTI_CB_DOMAIN_RUNTIME_API,
            [&](auto, auto, const CUpti_CallbackData* call) { told = call->functionName; });
  ASSERT_EQ(cudaSuccess, launch(out_, 1, 32, 0));
  EXPECT_EQ("cudaLaunchKernel", told);  // in callbacks it is the function's
  onCall = nullptr;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
}

TEST_F(ClientRules, B4_15_WhatACallbackKnowsOfItsCall) {
  int launches = 0, others = 0;
  uint64_t kept = 0;
  subscribe(CUPTI_CB_DOMAIN_RUNTIME_API, [&](auto, CUpti_CallbackId cbid, const CUpti_CallbackData* call) {
    const bool enter = call->callbackSite == CUPTI_API_ENTER;
    if (cbid != CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) {
      ++others;
      EXPECT_EQ(nullptr, call->symbolName);
      return;
    }
    ++launches;
    EXPECT_STREQ(kFill, call->symbolName);  // mangled
    EXPECT_EQ(contextId, call->contextUid);
    const auto* params = static_cast<const cudaLaunchKernel_v7000_params*>(call->functionParams);
    EXPECT_EQ(3u, params->gridDim.x);
    EXPECT_EQ(64u, params->blockDim.x);
    EXPECT_EQ(128u, params->sharedMem);
    EXPECT_EQ(&fillStub, params->func);
    if (enter) {
      EXPECT_EQ(0u, *call->correlationData);  // one for each call
      *call->correlationData = kept = 0x1234500000000 + call->correlationId;
    } else {
      EXPECT_EQ(kept, *call->correlationData);
      // The program is told what the client says.
      auto* result = static_cast<cudaError_t*>(const_cast<void*>(call->functionReturnValue));
      EXPECT_EQ(cudaSuccess, *result);
      *result = cudaErrorMemoryAllocation;
    }
  });
  EXPECT_EQ(cudaErrorMemoryAllocation, launch(out_, 3, 64, 128));
  EXPECT_EQ(cudaErrorMemoryAllocation, launch(out_, 3, 64, 128));
  CUDA(cudaMemset(out_, 0, 4));
  onCall = nullptr;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
  EXPECT_EQ(4, launches);
  EXPECT_EQ(2, others);
}

}  // namespace
}  // namespace sonde::test
