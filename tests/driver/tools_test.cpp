// SPDX-License-Identifier: Apache-2.0
//
// The tools interface, as a profiler sees it.
#include <dlfcn.h>

#include <condition_variable>
#include <cstring>

#include "gpu.h"
#include "platform/tools_api.h"
#include "ptx.h"

extern "C" const SondePlatform* sondeToolsGetPlatform(uint32_t);
extern "C" const SondeRuntimeHooks* sondeToolsRuntime(uint32_t);

namespace {

struct Recorder {
  std::mutex mutex;
  std::vector<std::string> calls;
  std::vector<SondeApiCall> entered;
  std::vector<SondeWork> done;
  std::vector<SondeResource> resources;
  std::vector<SondeSync> syncs;
  std::string failed;
  std::condition_variable told;
  CUdeviceptr* written = nullptr;
};

class ToolsTest : public Gpu {
 protected:
  void SetUp() override {
    platform_ = sondeToolsGetPlatform(SONDE_TOOLS_ABI_VERSION);
    ASSERT_TRUE(platform_);
    listener_.size = sizeof listener_;
    listener_.self = &seen_;
    listener_.apiEnter = [](void* self, SondeApiCall* call) {
      auto& r = *static_cast<Recorder*>(self);
      std::lock_guard lock(r.mutex);
      r.calls.push_back("> " + std::string(call->functionName));
      r.entered.push_back(*call);
    };
    listener_.apiExit = [](void* self, SondeApiCall* call) {
      auto& r = *static_cast<Recorder*>(self);
      std::lock_guard lock(r.mutex);
      r.calls.push_back("< " + std::string(call->functionName) + " " +
                        std::to_string(*static_cast<CUresult*>(call->returnValue)));
    };
    listener_.resource = [](void* self, const SondeResource* e) {
      auto& r = *static_cast<Recorder*>(self);
      std::lock_guard lock(r.mutex);
      r.resources.push_back(*e);
    };
    listener_.synchronized = [](void* self, const SondeSync* e) {
      auto& r = *static_cast<Recorder*>(self);
      std::lock_guard lock(r.mutex);
      r.syncs.push_back(*e);
    };
    listener_.workEnqueued = [](void*, SondeWork* w) { w->listenerWord = 1000 + w->correlationId; };
    listener_.workCompleted = [](void* self, const SondeWork* w) {
      auto& r = *static_cast<Recorder*>(self);
      std::lock_guard lock(r.mutex);
      r.done.push_back(*w);
    };
    listener_.contextFailed = [](void* self, SondeHandle, uint32_t, int32_t error, const char* message) {
      auto& r = *static_cast<Recorder*>(self);
      std::lock_guard lock(r.mutex);
      r.failed = std::to_string(error) + " " + message;
      r.told.notify_all();
    };
    ASSERT_EQ(platform_->attach(&listener_), 0);
    Gpu::SetUp();
  }
  void TearDown() override {
    Gpu::TearDown();
    platform_->detach();
  }
  void enable(uint32_t cbid) {
    uint32_t count = 0;
    __atomic_store_n(&platform_->enabledCallbacks(SONDE_DOMAIN_DRIVER, &count)[cbid], uint8_t{1}, __ATOMIC_RELAXED);
    ASSERT_GT(count, cbid);
  }
  static constexpr uint32_t kMemAllocV2 = 243, kLaunchKernel = 307, kMemcpyHtoDV2 = 276;

  const SondePlatform* platform_ = nullptr;
  SondeListener listener_{};
  Recorder seen_;
};

TEST_F(ToolsTest, OnlyOneListener) {
  SondeListener other{};
  other.size = sizeof other;
  EXPECT_NE(platform_->attach(&other), 0);
  EXPECT_EQ(sondeToolsGetPlatform(999), nullptr);
}

TEST_F(ToolsTest, EnterAndExitOfEnabledCallsOnly) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 64));
  EXPECT_TRUE(seen_.calls.empty());
  enable(kMemAllocV2);
  OK(cuMemAlloc(&p, 4711));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
  OK(cuMemFree(p));
  ASSERT_EQ(seen_.calls,
            (std::vector<std::string>{"> cuMemAlloc_v2", "< cuMemAlloc_v2 0", "> cuMemAlloc_v2", "< cuMemAlloc_v2 1"}));
  const SondeApiCall& call = seen_.entered[0];
  EXPECT_EQ(call.cbid, kMemAllocV2);
  EXPECT_EQ(call.context, context_);
  EXPECT_NE(call.correlationId, 0u);
  EXPECT_EQ(call.nested, 0u);
  EXPECT_GT(seen_.entered[1].correlationId, call.correlationId);
}

TEST_F(ToolsTest, BatchesAndRefusalsAreCallsLikeOthers) {
  constexpr uint32_t kMemcpyBatchV2 = 796, kMulticastCreate = 706;
  platform_->setInterest(SONDE_INTEREST_MEMCPY);
  enable(kMemcpyBatchV2);
  enable(kMulticastCreate);
  CUstream s;
  CUdeviceptr p;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc(&p, 64));
  CUdeviceptr dsts[] = {p, p + 16}, srcs[] = {p + 32, p + 48};
  size_t sizes[] = {16, 8}, zero = 0;
  CUmemcpyAttributes how{};
  how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &how, &zero, 1, s));
  OK(cuStreamSynchronize(s));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMulticastCreate(nullptr, nullptr));
  ASSERT_EQ(seen_.calls, (std::vector<std::string>{"> cuMemcpyBatchAsync_v2", "< cuMemcpyBatchAsync_v2 0",
                                                   "> cuMulticastCreate", "< cuMulticastCreate 801"}));
  const SondeApiCall& call = seen_.entered[0];
  EXPECT_EQ(call.cbid, kMemcpyBatchV2);
  // One record a copy, all of the one call.
  ASSERT_EQ(seen_.done.size(), 2u);
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(seen_.done[i].correlationId, call.correlationId);
    EXPECT_EQ(seen_.done[i].bytes, sizes[i]);
    EXPECT_EQ(seen_.done[i].copyKind, 8u);  // between device memories
    EXPECT_EQ(seen_.done[i].isAsync, 1u);
    EXPECT_EQ(seen_.done[i].copyCount, 1u);
  }
}

TEST_F(ToolsTest, KernelWorkIsDescribed) {
  platform_->setInterest(SONDE_INTEREST_KERNEL | SONDE_INTEREST_MEMCPY | SONDE_INTEREST_MEMSET);
  enable(kLaunchKernel);
  CUmodule m;
  CUfunction f;
  OK(cuModuleLoadData(&m, kSmall));
  OK(cuModuleGetFunction(&f, m, "empty"));
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  const uint64_t before = platform_->now();
  OK(cuLaunchKernel(f, 3, 2, 1, 64, 1, 1, 256, s, nullptr, nullptr));
  OK(cuStreamSynchronize(s));
  const uint64_t after = platform_->now();
  ASSERT_EQ(seen_.done.size(), 1u);
  const SondeWork& w = seen_.done[0];
  EXPECT_EQ(w.kind, unsigned{SONDE_WORK_KERNEL});
  EXPECT_STREQ(w.name, "empty");
  EXPECT_STREQ(seen_.entered[0].symbolName, "empty");
  EXPECT_EQ(w.correlationId, seen_.entered[0].correlationId);
  EXPECT_EQ(w.listenerWord, 1000u + w.correlationId);
  EXPECT_EQ(w.grid[0], 3u);
  EXPECT_EQ(w.grid[1], 2u);
  EXPECT_EQ(w.block[0], 64u);
  EXPECT_EQ(w.dynamicSharedMemory, 256u);
  unsigned long long id;
  OK(cuStreamGetId(s, &id));
  EXPECT_EQ(w.streamId, id);
  EXPECT_GE(w.start, before);
  EXPECT_GE(w.end, w.start);
  EXPECT_LE(w.end, after);
}

TEST_F(ToolsTest, CopiesAndSetsAreDescribed) {
  platform_->setInterest(SONDE_INTEREST_MEMCPY | SONDE_INTEREST_MEMSET);
  CUdeviceptr a, b;
  void* pinned;
  OK(cuMemAlloc(&a, 4096));
  OK(cuMemAlloc(&b, 4096));
  OK(cuMemHostAlloc(&pinned, 4096, 0));
  std::vector<char> pageable(4096);
  OK(cuMemcpyHtoD(a, pageable.data(), 100));
  OK(cuMemcpyDtoD(b, a, 200));
  OK(cuMemcpyDtoHAsync(pinned, b, 300, nullptr));
  OK(cuMemsetD32(a, 0xab, 10));
  OK(cuCtxSynchronize());
  ASSERT_EQ(seen_.done.size(), 4u);
  const auto& d = seen_.done;
  EXPECT_EQ(d[0].copyKind, 1u);  // host to device
  EXPECT_EQ(d[0].srcMemoryKind, unsigned{SONDE_MEMORY_PAGEABLE});
  EXPECT_EQ(d[0].dstMemoryKind, unsigned{SONDE_MEMORY_DEVICE});
  EXPECT_EQ(d[0].bytes, 100u);
  EXPECT_EQ(d[0].isAsync, 0u);
  EXPECT_EQ(d[1].copyKind, 8u);  // device to device
  EXPECT_EQ(d[2].copyKind, 2u);  // device to host
  EXPECT_EQ(d[2].dstMemoryKind, unsigned{SONDE_MEMORY_PINNED});
  EXPECT_EQ(d[2].isAsync, 1u);
  EXPECT_EQ(d[3].kind, unsigned{SONDE_WORK_MEMSET});
  EXPECT_EQ(d[3].bytes, 40u);
  EXPECT_EQ(d[3].setValue, 0xabu);
  for (size_t i = 1; i < d.size(); i++) {
    EXPECT_GT(d[i].correlationId, d[i - 1].correlationId);
    EXPECT_GE(d[i].start, d[i - 1].end);
  }
}

TEST_F(ToolsTest, RuntimeCallsShareTheirIdWithTheDriverCallsInside) {
  const SondeRuntimeHooks* hooks = sondeToolsRuntime(SONDE_TOOLS_ABI_VERSION);
  ASSERT_TRUE(hooks);
  platform_->setInterest(SONDE_INTEREST_MEMCPY);
  enable(kMemcpyHtoDV2);
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 64));
  char bytes[64] = {};
  SondeApiCall call{};
  call.cbid = 31;
  call.functionName = "cudaMemcpy";
  int result = 0;
  call.returnValue = &result;
  hooks->enter(&call);
  OK(cuMemcpyHtoD(a, bytes, 64));
  OK(cuMemcpyHtoD(a, bytes, 32));
  hooks->exit(&call);
  ASSERT_EQ(seen_.entered.size(), 3u);
  EXPECT_EQ(seen_.entered[0].domain, unsigned{SONDE_DOMAIN_RUNTIME});
  EXPECT_EQ(seen_.entered[0].nested, 0u);
  EXPECT_EQ(seen_.entered[1].nested, 1u);
  EXPECT_EQ(seen_.entered[1].correlationId, call.correlationId);
  EXPECT_EQ(seen_.entered[2].correlationId, call.correlationId);
  ASSERT_EQ(seen_.done.size(), 2u);
  EXPECT_EQ(seen_.done[0].correlationId, call.correlationId);
  // The same when nobody listens to the runtime call itself.
  hooks->begin();
  OK(cuMemcpyHtoD(a, bytes, 64));
  OK(cuMemcpyHtoD(a, bytes, 32));
  hooks->end();
  EXPECT_EQ(seen_.done[2].correlationId, seen_.done[3].correlationId);
  EXPECT_NE(seen_.done[2].correlationId, call.correlationId);
}

TEST_F(ToolsTest, ResourcesComeAndGo) {
  platform_->setInterest(SONDE_INTEREST_RESOURCE);
  CUcontext c;
  OK(createContext(&c, 0, 0));
  CUmodule m;
  OK(cuModuleLoadData(&m, kSmall));
  OK(cuModuleUnload(m));
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(cuStreamDestroy(s));
  OK(cuCtxDestroy(c));
  std::vector<uint32_t> events;
  for (auto& r : seen_.resources) events.push_back(r.event);
  EXPECT_EQ(events,
            (std::vector<uint32_t>{SONDE_RESOURCE_CONTEXT_CREATED, SONDE_RESOURCE_STREAM_CREATED,
                                   SONDE_RESOURCE_MODULE_LOADED, SONDE_RESOURCE_MODULE_UNLOAD_STARTING,
                                   SONDE_RESOURCE_STREAM_CREATED, SONDE_RESOURCE_STREAM_DESTROY_STARTING,
                                   SONDE_RESOURCE_CONTEXT_DESTROY_STARTING, SONDE_RESOURCE_STREAM_DESTROY_STARTING}));
  EXPECT_EQ(seen_.resources[1].flags, 1u);  // the null stream
  EXPECT_EQ(seen_.resources[4].flags, 2u);  // non-blocking
}

TEST_F(ToolsTest, SynchronisationIsReported) {
  platform_->setInterest(SONDE_INTEREST_SYNC);
  OK(cuCtxSynchronize());
  OK(cuStreamSynchronize(nullptr));
  ASSERT_EQ(seen_.syncs.size(), 2u);
  EXPECT_EQ(seen_.syncs[0].kind, unsigned{SONDE_SYNC_CONTEXT_SYNCHRONIZE});
  EXPECT_EQ(seen_.syncs[0].streamId, 0xffffffffu);
  EXPECT_EQ(seen_.syncs[1].kind, unsigned{SONDE_SYNC_STREAM_SYNCHRONIZE});
  EXPECT_LE(seen_.syncs[1].start, seen_.syncs[1].end);
}

TEST_F(ToolsTest, FailureOfAContextIsToldWithItsReason) {
  CUmodule m;
  CUfunction f;
  OK(cuModuleLoadData(&m, kSmall));
  OK(cuModuleGetFunction(&f, m, "store"));
  CUdeviceptr p = 64;
  unsigned v = 1;
  void* params[] = {&p, &v};
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  // Told by the stream's thread; a call that waits may return with the error before.
  std::unique_lock lock(seen_.mutex);
  seen_.told.wait(lock, [&] { return !seen_.failed.empty(); });
  EXPECT_EQ(seen_.failed.substr(0, 4), "700 ");
  EXPECT_NE(seen_.failed.find("store"), std::string::npos) << seen_.failed;
}

TEST_F(ToolsTest, CountersOfAKernel) {
  uint32_t instances = 0, warps = 0, threads = 0;
  for (uint32_t c = 0; platform_->counterName(c); c++) {
    if (std::string(platform_->counterName(c)) == "warps_launched") warps = c;
    if (std::string(platform_->counterName(c)) == "threads_launched") threads = c;
  }
  ASSERT_EQ(platform_->counterInstances(0, warps, &instances), 0);
  EXPECT_EQ(instances, 16u);
  const uint32_t wanted[] = {warps, threads};
  ASSERT_EQ(platform_->counterConfigure(context_, SONDE_COUNTER_MODE_KERNEL, wanted, 2), 0);
  CUmodule m;
  CUfunction f;
  OK(cuModuleLoadData(&m, kSmall));
  OK(cuModuleGetFunction(&f, m, "empty"));
  OK(cuLaunchKernel(f, 5, 1, 1, 100, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuCtxSynchronize());
  std::vector<uint64_t> totals(32), start(32);
  uint64_t kernels = 0;
  ASSERT_EQ(platform_->counterRead(context_, wanted, 2, totals.data(), start.data(), &instances, &kernels), 0);
  uint64_t sum[2] = {}, sumStart[2] = {};
  for (int c = 0; c < 2; c++)
    for (int i = 0; i < 16; i++) sum[c] += totals[c * 16 + i], sumStart[c] += start[c * 16 + i];
  EXPECT_EQ(sum[0], 21u);  // 5 blocks of 4 warps, and one
  EXPECT_EQ(sum[1], 532u);
  EXPECT_EQ(sumStart[0], 20u);
  EXPECT_EQ(sumStart[1], 500u);
  EXPECT_EQ(kernels, 2u);
  const uint32_t other = warps + 1 == threads ? 40 : warps + 1;
  EXPECT_EQ(platform_->counterRead(context_, &other, 1, totals.data(), nullptr, &instances, nullptr),
            static_cast<int32_t>(CUDA_ERROR_NOT_FOUND));
}

TEST_F(ToolsTest, FactsOfTheDevice) {
  double value;
  ASSERT_EQ(platform_->deviceFact(0, "l2_units", &value), 0);
  EXPECT_EQ(value, 16.0);
  EXPECT_NE(platform_->deviceFact(0, "no such fact", &value), 0);
  const char* text;
  ASSERT_EQ(platform_->deviceString(0, "counters", &text), 0);
  EXPECT_NE(std::strstr(text, "inst_executed"), nullptr);
  SondeClockInfo clocks{};
  clocks.size = sizeof clocks;
  ASSERT_EQ(platform_->clockInfo(0, &clocks), 0);
  EXPECT_EQ(clocks.boostClockMHz, 1980u);
}

}  // namespace
