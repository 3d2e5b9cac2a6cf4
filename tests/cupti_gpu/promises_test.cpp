// SPDX-License-Identifier: Apache-2.0
// Promises of delivery where kernels really run: any legal sequence of
// switching, resetting and ending, and clients and threads that go early.
#include <malloc.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include "gpu_trace.h"
#include "tests/cupti/plugin.h"
#include "tests/sanitizers.h"

namespace sonde::test {
namespace {

// A module of one kernel, which says how often it was launched.
std::string modulePtx(const std::string& name) {
  return ".version 6.4\n.target sm_50\n.address_size 64\n.visible .entry " + name +
         "(.param .u64 out)\n{\n  .reg .b32 v;\n  .reg .b64 at;\n  ld.param.u64 at, [out];\n  mov.u32 v, 1;\n"
         "  red.global.add.u32 [at], v;\n  ret;\n}\n";
}

class GpuPromises : public GpuTrace {
 protected:
  void TearDown() override {
    collector_.onRequest = nullptr;
    collector_.onComplete = nullptr;
    GpuTrace::TearDown();
  }
};

// What the sequences have done so far, and what of it was recorded.
struct Tally {
  std::map<uint32_t, uint64_t> lastCallEnd;                 // by thread
  std::set<std::tuple<uint32_t, uint64_t, uint64_t>> seen;  // kind, correlation or id, time
  std::map<uint32_t, uint64_t> records;                     // by kind
  uint64_t latest = 0;
};

void check(const testing_support::Record& record, Tally& tally) {
  ++tally.records[record.kind()];
  const auto once = [&](uint64_t id, uint64_t time) {
    ASSERT_TRUE(tally.seen.emplace(record.kind(), id, time).second) << "twice: kind " << record.kind() << ", " << id;
  };
  switch (record.kind()) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& api = record.as<CUpti_ActivityAPI>();
      ASSERT_LE(api.start, api.end);
      ASSERT_LE(tally.lastCallEnd[api.threadId], api.start) << "a call before the one before it";
      tally.lastCallEnd[api.threadId] = api.end;
      tally.latest = std::max(tally.latest, api.end);
      once(api.correlationId, api.start);
      break;
    }
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = record.as<CUpti_ActivityKernel10>();
      // The grid tells which kernel it was: the name is not that of a later module at the same address.
      const std::string expected =
          kernel.gridX == 100 ? kFill : std::string(static_cast<size_t>(kernel.gridX), 'k') + "_kernel";
      ASSERT_EQ(expected, kernel.name);
      // A forced flush may tell of one that is not done.
      if (kernel.start != 0) ASSERT_LE(kernel.start, kernel.end);
      tally.latest = std::max(tally.latest, kernel.end);
      once(static_cast<uint64_t>(kernel.gridId), kernel.start);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = record.as<CUpti_ActivityMemset4>();
      if (set.start != 0) ASSERT_LE(set.start, set.end);
      once(set.correlationId, set.start);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
      const auto& memory = record.as<CUpti_ActivityMemory4>();
      once(memory.address, memory.timestamp);
      break;
    }
    default: break;
  }
}

// A thousand sequences of up to sixteen steps: kinds go on and off, callbacks
// are exchanged, the client ends and begins again, contexts go with work and
// memory in them, devices are reset. The same steps each time.
TEST_F(GpuPromises, AThousandLegalSequences) {
  constexpr CUpti_ActivityKind kKinds[] = {
      CUPTI_ACTIVITY_KIND_RUNTIME,         CUPTI_ACTIVITY_KIND_DRIVER,  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
      CUPTI_ACTIVITY_KIND_MEMSET,          CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY,
      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_STREAM,
      CUPTI_ACTIVITY_KIND_MODULE,          CUPTI_ACTIVITY_KIND_FUNCTION};
  uint32_t random = 2024;
  auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 16; };
  CUcontext primary = nullptr, context = nullptr;
  CU(cuCtxGetCurrent(&primary));
  auto newContext = [&] {
    EXPECT_EQ(CUDA_SUCCESS, cuCtxCreate(&context, nullptr, 0, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(primary));
  };
  newContext();
  Tally tally;
  bool registered = true;
  std::map<std::string, uint64_t> did;
  size_t bytesBefore = 0;
  constexpr uint32_t kSequences = SONDE_WITH_TSAN || SONDE_WITH_ASAN ? 300 : 1000;
  for (uint32_t sequence = 1; sequence <= kSequences; ++sequence) {
    for (uint32_t step = next() % 16; step != 0; --step) {
      const CUpti_ActivityKind kind = kKinds[next() % std::size(kKinds)];
      switch (next() % 14) {
        case 0:
        case 1: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind)); break;
        case 2: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(kind)); break;
        case 3:
          ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(testing_support::Collector::requested,
                                                                  testing_support::Collector::completed));
          registered = true;
          break;
        case 4:
          ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
          registered = false;
          ++did["finalize"];
          break;
        case 5: {  // with memory and work in it
          CU(cuCtxSetCurrent(context));
          CUdeviceptr left = 0;
          CU(cuMemAlloc(&left, 1000));
          CU(cuMemsetD8Async(left, 1, 1000, nullptr));
          CU(cuCtxSetCurrent(primary));
          CU(cuCtxDestroy(context));
          newContext();
          ++did["context"];
          break;
        }
        case 6:
          ASSERT_EQ(registered ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION, cuptiActivityFlushAll(next() % 2));
          break;
        case 7: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableContext(context, kind)); break;
        case 8: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisableContext(context, kind)); break;
        case 9: {
          uint8_t perThread = next() % 2;
          size_t size = sizeof perThread;
          ASSERT_EQ(CUPTI_SUCCESS,
                    cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &perThread));
          break;
        }
        case 10: {  // the module is gone before its kernel's record is read
          CU(cuCtxSetCurrent(context));
          const uint32_t which = 1 + next() % 6;
          CUmodule module = nullptr;
          CUfunction function = nullptr;
          CUdeviceptr out = 0;
          CU(cuModuleLoadData(&module, modulePtx(std::string(which, 'k') + "_kernel").c_str()));
          CU(cuModuleGetFunction(&function, module, (std::string(which, 'k') + "_kernel").c_str()));
          CU(cuMemAlloc(&out, 4));
          CU(cuMemsetD32(out, 0, 1));
          void* arguments[] = {&out};
          CU(cuLaunchKernel(function, which, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
          uint32_t value = 0;
          CU(cuMemcpyDtoH(&value, out, 4));
          ASSERT_EQ(which * 32, value) << "the kernel ran";
          CU(cuMemFree(out));
          CU(cuModuleUnload(module));
          CU(cuCtxSetCurrent(primary));
          ++did["module"];
          break;
        }
        case 11: {
          CUstream stream = nullptr;
          uint32_t* out = nullptr;
          CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
          CUDA(allocate(&out, 100 * 32 * 4));
          CUDA(launch(out, 100, 32, 0, stream));
          if (next() % 2 != 0) CU(cuStreamSynchronize(stream));
          CU(cuStreamDestroy(stream));  // its work goes on
          CUDA(cudaDeviceSynchronize());
          CUDA(cudaFree(out));
          ++did["stream"];
          break;
        }
        case 12:  // another device: this one has the module of the other tests
          CUDA(cudaSetDevice(1));
          CUDA(cudaFree(nullptr));
          if (next() % 2 != 0) {
            void* left = nullptr;
            CUDA(cudaMalloc(&left, 500));
          }
          CUDA(cudaDeviceReset());
          CUDA(cudaSetDevice(0));
          ++did["reset"];
          break;
        default: {
          std::thread([&] {
            void* memory = nullptr;
            EXPECT_EQ(cudaSuccess, cudaMalloc(&memory, 64));
            EXPECT_EQ(cudaSuccess, cudaFree(memory));
          }).join();
          break;
        }
      }
    }
    if (sequence % 5 == 0) ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(testing_support::Collector::requested,
                                                            testing_support::Collector::completed));
    registered = true;
    CUDA(cudaDeviceSynchronize());
    for (const auto& record : collector_.flush()) {
      check(record, tally);
      if (HasFatalFailure()) return;
    }
    uint64_t now = 0;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&now));
    ASSERT_LE(tally.latest, now);
    collector_.clear();
    if (sequence == kSequences / 2) {
      tally.seen.clear();
      bytesBefore = mallinfo2().uordblks;
    }
  }
  // Every step was taken often, and its records came.
  for (const auto& [what, times] : did) EXPECT_GT(times, kSequences / 5) << what;
  EXPECT_EQ(5u, did.size());
  for (uint32_t kind : kKinds) EXPECT_GT(tally.records[kind], 20u) << kind;
  // Half of the sequences leave nothing behind but what they were asked to keep.
  tally.seen.clear();
  if (!SONDE_WITH_ASAN && !SONDE_WITH_TSAN)
    EXPECT_LT(static_cast<double>(mallinfo2().uordblks) - static_cast<double>(bytesBefore), 1e6);
  CU(cuCtxDestroy(context));
  CU(cuCtxSetCurrent(primary));
}

// Threads that launch and are gone before their kernels are done.
TEST_F(GpuPromises, ThreadsThatEndEarly) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 64 * 64 * 4));
  constexpr int kThreads = 60;
  for (int i = 0; i < kThreads; ++i) std::thread([&] { EXPECT_EQ(cudaSuccess, launch(out, 64, 64, 0)); }).join();
  finish();
  std::map<uint32_t, int> launches, kernels;
  for (const auto& api : of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME))
    if (api.cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) ++launches[api.correlationId];
  for (const auto& k : of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) ++kernels[k.correlationId];
  EXPECT_EQ(static_cast<size_t>(kThreads), launches.size());
  EXPECT_EQ(launches, kernels);
  for (const auto& [id, times] : kernels) EXPECT_EQ(1, times) << id;
  CUDA(cudaFree(out));
}

// Many threads launch into streams of their own; buffers are refused, tiny or
// slow to come back. What is not delivered is counted.
TEST_F(GpuPromises, DeliveredAndDroppedAreAllThatWasLaunched) {
  std::atomic<uint32_t> requests{0};
  collector_.onRequest = [&](uint8_t** buffer, size_t* size, size_t* most) {
    const uint32_t n = ++requests;
    if (n % 3 == 0) return;
    *size = n % 5 == 0 ? 500 : 2000;
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, 2000));
    *most = n % 4 == 1 ? 2 : 0;
  };
  collector_.onRelease = [](uint8_t* buffer) { std::free(buffer); };
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 100 * 32 * 4));
  constexpr int kThreads = 8, kLaunches = 200;
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  std::thread flusher([&] {
    while (!stop) EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  });
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      cudaStream_t stream = nullptr;
      EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (int i = 0; i < kLaunches; ++i) EXPECT_EQ(cudaSuccess, launch(out, 100, 32, 0, stream));
      EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
    });
  for (std::thread& thread : threads) thread.join();
  CUDA(cudaDeviceSynchronize());
  stop = true;
  flusher.join();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  size_t dropped = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  const auto kernels = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_EQ(static_cast<size_t>(kThreads) * kLaunches, kernels.size() + dropped);
  EXPECT_GT(kernels.size(), 0u);
  EXPECT_GT(dropped, 0u);
  std::set<int64_t> grids;
  for (const auto& k : kernels) EXPECT_TRUE(grids.insert(k.gridId).second) << "twice";
  CUDA(cudaFree(out));
}

// Where calls that wait do the work of other threads' streams.
TEST_F(GpuPromises, ExternalIdsComeBeforeTheirWorkInOneBufferForAll) {
  uint8_t perThread = 0;
  size_t size = sizeof perThread;
  ASSERT_EQ(CUPTI_SUCCESS,
            cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &perThread));
  enable(
      {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 100 * 32 * 4));
  std::vector<std::thread> threads;
  std::atomic<bool> stop{false};
  std::thread flusher([&] {
    while (!stop) EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  });
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, static_cast<uint64_t>(t));
        EXPECT_EQ(cudaSuccess, launch(out, 100, 32, 0));
        if (i % 4 == 0) EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CUDA(cudaDeviceSynchronize());
  stop = true;
  flusher.join();
  std::set<uint32_t> external;
  size_t kernels = 0;
  for (const Record& record : collector_.flush()) {
    if (record.kind() == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
      external.insert(record.as<CUpti_ActivityExternalCorrelation>().correlationId);
    } else if (record.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++kernels;
      ASSERT_EQ(1u, external.count(record.as<CUpti_ActivityKernel10>().correlationId));
    }
  }
  EXPECT_EQ(600u, kernels);
  CUDA(cudaFree(out));
}

// A client's object is closed while its kernels run: its code stays mapped, and
// all that it asked for comes to it, until it ends its life itself.
TEST_F(GpuPromises, AClientThatIsClosed) {
  constexpr auto kKernel = uint32_t{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 100 * 32 * 4));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint32_t expected = 0;
  for (int round = 0; round < 20; ++round) {
    {
      testing_support::Plugin plugin(CLIENT_PLUGIN);
      ASSERT_EQ(CUPTI_SUCCESS, plugin.call("pluginStart", kKernel));
      for (int i = 0; i < 5; ++i) CUDA(launch(out, 100, 32, 0));
    }
    CUDA(launch(out, 100, 32, 0));
    CUDA(cudaDeviceSynchronize());
    testing_support::Plugin again(CLIENT_PLUGIN);
    ASSERT_EQ(CUPTI_SUCCESS, again.call("pluginFlush"));
    expected += 6;
    ASSERT_EQ(expected, again.records(kKernel));
    ASSERT_EQ(CUPTI_SUCCESS, again.call("pluginFinalize"));
    CUDA(launch(out, 100, 32, 0));
  }
  finish();
  EXPECT_EQ(20u * 7u, collector_.records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).size());
  CUDA(cudaFree(out));
}

}  // namespace
}  // namespace sonde::test
