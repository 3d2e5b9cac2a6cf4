// SPDX-License-Identifier: Apache-2.0
// Time lost to the driver and to this library: each kind where the software GPU
// has that cost, within the call that paid for it.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "gpu_trace.h"

namespace sonde::test {
namespace {

char lazyStub;

class GpuOverheads : public GpuTrace {
 protected:
  void SetUp() override {
    GpuTrace::SetUp();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    enable({CUPTI_ACTIVITY_KIND_OVERHEAD});
  }
  // Of the calling thread.
  std::vector<CUpti_ActivityOverhead3> overheads(CUpti_ActivityOverheadKind kind) {
    std::vector<CUpti_ActivityOverhead3> found;
    for (const auto& o : of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
      if (o.overheadKind != kind || o.objectId.pt.threadId != thread()) continue;
      EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_THREAD, o.objectKind);
      EXPECT_EQ(static_cast<uint32_t>(getpid()), o.objectId.pt.processId);
      EXPECT_LE(o.start, o.end);
      found.push_back(o);
    }
    return found;
  }
  static uint32_t thread() { return static_cast<uint32_t>(syscall(SYS_gettid)); }
  // Modules that no other test compiled.
  static std::string fresh(const char* what) {
    return std::string(kTracePtx) + "// " + what + " " + std::to_string(getpid()) + "\n";
  }
};

TEST_F(GpuOverheads, ALazilyLoadedFunctionCostsItsFirstLaunch) {
  enable({CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME});
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CU(cuModuleLoadData(&module, fresh("lazy").c_str()));
  CU(cuModuleGetFunction(&function, module, kFill));
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  uint32_t value = 1;
  void* arguments[] = {&out, &value};
  for (int i = 0; i < 2; ++i) CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  finish();
  const auto loads = overheads(CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
  ASSERT_EQ(1u, loads.size()) << "once";
  const CUpti_ActivityAPI& call = callOf(loads[0].correlationId);
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel), call.cbid);
  within(loads[0], call);
  const auto compilations = overheads(CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER);
  ASSERT_EQ(1u, compilations.size());
  within(compilations[0], call);
  EXPECT_LE(loads[0].start, compilations[0].start) << "the compilation is part of the loading";
  EXPECT_LE(compilations[0].end, loads[0].end);
  EXPECT_EQ(loads[0].correlationId, compilations[0].correlationId);
  EXPECT_EQ(nullptr, loads[0].overheadData);
  CU(cuModuleUnload(module));
  CUDA(cudaFree(out));
}

TEST_F(GpuOverheads, TheyBelongToTheLaunchAlsoWhenCallsAreNotRecorded) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CU(cuModuleLoadData(&module, fresh("unrecorded").c_str()));
  CU(cuModuleGetFunction(&function, module, kFill));
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  uint32_t value = 1;
  void* arguments[] = {&out, &value};
  CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  finish();
  const auto kernels = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, kernels.size());
  const auto loads = overheads(CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
  ASSERT_EQ(1u, loads.size());
  EXPECT_EQ(kernels[0].correlationId, loads[0].correlationId);
  EXPECT_LE(loads[0].end, kernels[0].start);
  CU(cuModuleUnload(module));
  CUDA(cudaFree(out));
}

TEST_F(GpuOverheads, TheRuntimeLoadsAModuleAtTheFirstLaunchFromIt) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  static const std::string text = fresh("of the runtime");
  FatBinary lazy(text.c_str());
  lazy.kernel(&lazyStub, kFill);
  __cudaRegisterFatBinaryEnd(lazy.handle());
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  uint32_t value = 1;
  void* arguments[] = {&out, &value};
  for (int i = 0; i < 2; ++i) CUDA(cudaLaunchKernel(&lazyStub, dim3(1), dim3(1), arguments, 0, nullptr));
  CUmodule module = nullptr;
  CU(cuModuleLoadData(&module, text.c_str()));  // the program's own: no overhead of the runtime
  finish();
  const auto loads = overheads(CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING);
  ASSERT_EQ(1u, loads.size());
  const CUpti_ActivityAPI& call = callOf(loads[0].correlationId);
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000), call.cbid);
  within(loads[0], call);
  EXPECT_LT(loads[0].start, loads[0].end);
  // Then the function.
  const auto functions = overheads(CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING);
  ASSERT_EQ(1u, functions.size());
  EXPECT_LE(loads[0].end, functions[0].start);
  within(functions[0], call);
  CU(cuModuleUnload(module));
  CUDA(cudaFree(out));
}

// Work is launched faster than it can be done until a launch has to wait.
TEST_F(GpuOverheads, AFullQueueMakesALaunchWait) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 1 << 20));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  std::vector<CUpti_ActivityOverhead3> waits;
  for (int round = 0; round < 100 && waits.empty(); ++round) {
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(cudaSuccess, launch(out, 64, 256, 0, stream));
    collector_.flush();
    waits = overheads(CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
  }
  finish();
  waits = overheads(CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
  ASSERT_GE(waits.size(), 1u);
  uint32_t streamId = 0;
  CUcontext context = nullptr;
  CU(cuCtxGetCurrent(&context));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamIdEx(context, stream, 0, &streamId));
  const auto kernels = byCall<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_FALSE(kernels.empty());
  for (const auto& wait : waits) {
    const CUpti_ActivityAPI& call = callOf(wait.correlationId);
    EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000), call.cbid);
    within(wait, call);
    EXPECT_LT(wait.start, wait.end);
    auto* data = static_cast<CUpti_ActivityOverheadCommandBufferFullData*>(wait.overheadData);
    ASSERT_NE(nullptr, data);
    EXPECT_EQ(0u, data->commandBufferLength);
    EXPECT_EQ(kernels[0].channelID, data->channelID);
    EXPECT_EQ(static_cast<uint32_t>(kernels[0].channelType), data->channelType);
    EXPECT_EQ(static_cast<uint32_t>(CUPTI_CHANNEL_TYPE_COMPUTE), data->channelType);
    std::free(data);
    // Half of what may be pending was done meanwhile.
    const auto done = std::count_if(kernels.begin(), kernels.end(), [&](const CUpti_ActivityKernel10& k) {
      return k.end > wait.start && k.start < wait.end;
    });
    EXPECT_GE(done, 2000);
  }
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(out));
}

TEST_F(GpuOverheads, SettingUpUnifiedMemoryTracing) {
  uint64_t before = 0, after = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&before));
  CUpti_ActivityUnifiedMemoryCounterConfig config{};
  config.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
  config.kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
  config.deviceId = 0;
  config.enable = 1;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityConfigureUnifiedMemoryCounter(&config, 1));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&after));
  collector_.flush();
  const auto inits = overheads(CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT);
  ASSERT_GE(inits.size(), 1u);
  for (const auto& o : inits) {
    EXPECT_LE(before, o.start);
    EXPECT_LE(o.end, after);
  }
  // A second counter of the same device needs no set-up.
  config.kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityConfigureUnifiedMemoryCounter(&config, 1));
  collector_.flush();
  EXPECT_EQ(inits.size(), overheads(CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT).size());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
}

// What the library keeps for a context comes and goes within the calls that make
// and end it; what it keeps for a thread comes with its first record.
TEST_F(GpuOverheads, ResourcesForContextsAndThreads) {
  enable({CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME});
  CUdevice device = 0;
  CU(cuDeviceGet(&device, 1));
  collector_.flush();
  collector_.clear();  // what this thread's first record cost
  CUcontext context = nullptr;
  CU(cuCtxCreate(&context, nullptr, 0, device));
  CU(cuCtxDestroy(context));
  finish();
  const auto made = overheads(CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE);
  std::map<CUpti_CallbackId, int> calls;
  for (const auto& o : made) {
    if (o.correlationId == 0) continue;
    const CUpti_ActivityAPI& call = callOf(o.correlationId);
    within(o, call);
    ++calls[call.cbid];
  }
  EXPECT_EQ(1, calls[CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v4]);
  EXPECT_EQ(1, calls[CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2]);
  uint32_t other = 0;
  std::thread([&] {
    other = thread();
    int count = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetCount(&count));
  }).join();
  collector_.flush();
  int ofThread = 0;
  for (const auto& o : of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
    ofThread += o.overheadKind == CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE && o.objectId.pt.threadId == other;
  }
  EXPECT_EQ(1, ofThread);
}

TEST_F(GpuOverheads, BuffersAskedForAndHandedOver) {
  enable({CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME});
  int count = 0;
  CU(cuDeviceGetCount(&count));
  uint64_t before = 0, after = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&before));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&after));
  finish();
  EXPECT_GE(overheads(CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST).size(), 1u);
  int flushes = 0;
  for (const auto& o : overheads(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH)) {
    flushes += before <= o.start && o.end <= after;
    EXPECT_EQ(0u, o.correlationId) << "of no call of the program";
  }
  EXPECT_EQ(1, flushes);
}

}  // namespace
}  // namespace sonde::test
