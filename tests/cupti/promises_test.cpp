// SPDX-License-Identifier: Apache-2.0
// Promises of delivery: nothing twice, nothing lost without being counted, in
// order per thread, and no lock held while client code runs.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"
#include "sanitizers.h"

using testing_support::Collector;

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;

size_t dropped() {
  size_t count = 0;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &count));
  return count;
}

class Promises : public ::testing::Test {
 protected:
  void SetUp() override {
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  }
  void TearDown() override {
    collector_.onRequest = nullptr;
    collector_.onComplete = nullptr;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    collector_.onRelease = nullptr;
  }

  // `threads` threads make `calls` calls each, with a flushing thread beside
  // them; returns how many records came, having checked each.
  size_t storm(uint32_t threads, uint32_t calls) {
    std::atomic<bool> stop{false};
    std::thread flusher([&] {
      while (!stop) {
        EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
        std::this_thread::yield();
      }
    });
    std::vector<std::thread> workers;
    for (uint32_t t = 0; t < threads; ++t) {
      workers.emplace_back([=] {
        for (uint32_t i = 0; i < calls; ++i) fake::call(SONDE_DOMAIN_RUNTIME, kMalloc, static_cast<int32_t>(i));
      });
    }
    for (std::thread& worker : workers) worker.join();
    stop = true;
    flusher.join();
    return check();
  }

  size_t check() {
    const auto records = collector_.flush();
    std::map<uint32_t, uint64_t> lastEnd;  // by thread
    std::map<uint32_t, uint32_t> seen;     // by correlation id
    size_t disorder = 0, twice = 0, damaged = 0;
    for (const auto& record : records) {
      const auto& api = record.as<CUpti_ActivityAPI>();
      if (api.kind != CUPTI_ACTIVITY_KIND_RUNTIME || api.cbid != kMalloc || api.start > api.end) ++damaged;
      if (api.start < lastEnd[api.threadId]) ++disorder;
      lastEnd[api.threadId] = api.end;
      if (++seen[api.correlationId] != 1) ++twice;
    }
    EXPECT_EQ(0u, damaged);
    EXPECT_EQ(0u, disorder);
    EXPECT_EQ(0u, twice);
    return records.size();
  }

  Collector& collector_ = Collector::instance();
};

// With a buffer for each thread, and with one for all.
class Storms : public Promises, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    Promises::SetUp();
    uint8_t perThread = GetParam();
    size_t size = sizeof perThread;
    ASSERT_EQ(CUPTI_SUCCESS,
              cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &perThread));
  }
};
INSTANTIATE_TEST_SUITE_P(Buffers, Storms, ::testing::Bool(), [](const ::testing::TestParamInfo<bool>& mode) {
  return mode.param ? "OfEachThread" : "OfAllThreads";
});

TEST_P(Storms, ThirtyTwoThreadsLoseNothing) {
  EXPECT_EQ(32u * 2000, storm(32, 2000));
  EXPECT_EQ(0u, dropped());
}

// Kernels are made and done by other threads than those that launch them.
TEST_P(Storms, EachKernelOnceWithItsCall) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  SondeHandle context = fake::createContext();
  std::atomic<bool> stop{false};
  std::thread flusher([&] {
    while (!stop) EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  });
  std::vector<std::thread> workers;
  for (int t = 0; t < 32; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        fake::call(SONDE_DOMAIN_RUNTIME, kMalloc, 0, [&] { fake::enqueue(context, nullptr, SONDE_WORK_KERNEL); });
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  fake::waitWork();
  stop = true;
  flusher.join();
  std::map<uint32_t, int> calls, kernels;
  for (const auto& record : collector_.flush()) {
    if (record.kind() == CUPTI_ACTIVITY_KIND_RUNTIME) ++calls[record.as<CUpti_ActivityAPI>().correlationId];
    if (record.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++kernels[record.as<CUpti_ActivityKernel10>().correlationId];
    }
  }
  EXPECT_EQ(32u * 300, calls.size());
  EXPECT_EQ(calls, kernels);  // each once
  for (const auto& [id, times] : calls) EXPECT_EQ(1, times) << id;
  EXPECT_EQ(0u, dropped());
  fake::destroyContext(context);
}

TEST_P(Storms, EveryThirdBufferRefused) {
  std::atomic<uint32_t> requests{0};
  collector_.onRequest = [&](uint8_t** buffer, size_t* size, size_t* max) {
    if (++requests % 3 == 0) return;
    *size = 1000;
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, 1000));
    *max = 0;
  };
  collector_.onRelease = [](uint8_t* buffer) { std::free(buffer); };
  const size_t delivered = storm(32, 1000);
  EXPECT_EQ(32u * 1000, delivered + dropped());
  EXPECT_GT(delivered, 0u);
}

TEST_P(Storms, TinyUnalignedAndLimitedBuffers) {
  std::atomic<uint32_t> requests{0};
  // What malloc gave stands before the address that is handed out.
  collector_.onRequest = [&](uint8_t** buffer, size_t* size, size_t* max) {
    static const size_t sizes[] = {8, 39, 40, 41, 95, 400, 4000};
    const uint32_t n = ++requests;
    *size = sizes[n % 7];
    void* whole = std::malloc(*size + sizeof whole + 4);
    *buffer = static_cast<uint8_t*>(whole) + sizeof whole + n % 5;
    std::memcpy(*buffer - sizeof whole, &whole, sizeof whole);
    *max = n % 4;
  };
  collector_.onRelease = [](uint8_t* buffer) {
    void* whole;
    std::memcpy(&whole, buffer - sizeof whole, sizeof whole);
    std::free(whole);
  };
  const size_t delivered = storm(8, 2000);
  EXPECT_EQ(8u * 2000, delivered + dropped());
}

TEST_P(Storms, ASlowClientGetsEverything) {
  collector_.bufferSize = 4096;
  collector_.onComplete = [](uint8_t*, size_t, size_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  EXPECT_EQ(4u * 2000, storm(4, 2000));
  EXPECT_EQ(0u, dropped());
}

TEST_P(Storms, ThreadsThatEndEarlyLeaveTheirRecords) {
  for (int i = 0; i < 200; ++i) std::thread([] { fake::call(SONDE_DOMAIN_RUNTIME, kMalloc); }).join();
  EXPECT_EQ(200u, check());
}

TEST_F(Promises, MemoryStaysFlatOverManyRecords) {
#if SONDE_WITH_ASAN || SONDE_WITH_TSAN
  GTEST_SKIP() << "sanitizers keep freed memory and a history";
#endif
  collector_.onComplete = [](uint8_t*, size_t, size_t) {};
  std::atomic<uint64_t> records{0};
  static std::vector<uint8_t> memory(1 << 16);
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
    *buffer = memory.data();
    *size = memory.size();
  };
  auto residentKb = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  auto rounds = [&](int n) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < 10000; ++j) fake::plainCall(SONDE_DOMAIN_RUNTIME, kMalloc);
      cuptiActivityFlushAll(0);
      records += collector_.records().size();
      collector_.clear();
      collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
        *buffer = memory.data();
        *size = memory.size();
      };
    }
  };
  rounds(10);
  const long before = residentKb();
  rounds(40);
  EXPECT_EQ(500000u, records);
  EXPECT_LT(residentKb() - before, 4096) << "KiB";
}

// Legal sequences of switching, in any order: a thousand of up to twenty steps.
TEST_F(Promises, AThousandLegalSequences) {
  SondeHandle context = fake::createContext();
  uint32_t random = 12345;
  auto next = [&] { return random = random * 1664525u + 1013904223u, random >> 16; };
  uint64_t lastTime = 0, kernels = 0, calls = 0;
  for (uint64_t sequence = 1; sequence <= 1000; ++sequence) {
    for (uint32_t step = next() % 20; step != 0; --step) {
      const auto kind = next() % 2 != 0 ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      switch (next() % 12) {
        case 0: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind)); break;
        case 1: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(kind)); break;
        case 2:
          ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(Collector::requested, Collector::completed));
          break;
        case 3: ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize()); break;
        case 4:
          fake::destroyContext(context);
          context = fake::createContext();
          break;
        case 5: cuptiActivityFlushAll(next() % 2); break;
        case 6: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableContext(static_cast<CUcontext>(context), kind)); break;
        case 7: ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisableContext(static_cast<CUcontext>(context), kind)); break;
        case 8: {
          uint8_t perThread = next() % 2;
          size_t size = sizeof perThread;
          ASSERT_EQ(CUPTI_SUCCESS,
                    cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &perThread));
          break;
        }
        case 9: {
          // The name's memory is used again by the next module's.
          char name[32];
          std::snprintf(name, sizeof name, "kernel%llu", static_cast<unsigned long long>(sequence));
          SondeHandle module = fake::loadModule(context, "ptx", 3);
          fake::enqueue(context, nullptr, SONDE_WORK_KERNEL, [&](SondeWork& w) {
            w.name = name;
            w.gridId = sequence;
          });
          fake::waitWork();
          fake::unloadModule(module);
          std::memset(name, 'x', sizeof name - 1);
          break;
        }
        default: fake::call(SONDE_DOMAIN_RUNTIME, kMalloc); break;
      }
    }
    // A life of its own, and back to work.
    if (sequence % 3 == 0) {
      ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    }
    cuptiActivityRegisterCallbacks(Collector::requested, Collector::completed);
    uint64_t before = 0, after = 0;
    for (const auto& record : collector_.flush()) {
      if (record.kind() == CUPTI_ACTIVITY_KIND_RUNTIME) {
        ++calls;
        ASSERT_LE(lastTime, record.as<CUpti_ActivityAPI>().start);
        ASSERT_LE(record.as<CUpti_ActivityAPI>().start, record.as<CUpti_ActivityAPI>().end);
        lastTime = record.as<CUpti_ActivityAPI>().end;
      } else if (record.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        ++kernels;
        const auto& kernel = record.as<CUpti_ActivityKernel10>();
        ASSERT_EQ("kernel" + std::to_string(kernel.gridId), kernel.name);
      }
    }
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&before));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&after));
    ASSERT_LE(before, after);
    ASSERT_LE(lastTime, before);
    collector_.clear();
  }
  EXPECT_GT(calls, 300u);
  EXPECT_GT(kernels, 50u);
  fake::destroyContext(context);
}

// ------------------------------------------------------------ the matrix --

struct Function {
  const char* name;
  std::function<void()> call;
};

CUcontext matrixContext;
CUpti_SubscriberHandle matrixSubscriber;

// Every public function of the activity and callback interfaces that a client
// could call at any time.
std::vector<Function> functions() {
  static uint32_t u32;
  static uint64_t u64;
  static size_t size;
  static const char* text;
  static uint8_t buffer[64];
  return {
      {"GetTimestamp", [] { cuptiGetTimestamp(&u64); }},
      {"GetContextId", [] { cuptiGetContextId(matrixContext, &u32); }},
      {"GetDeviceId", [] { cuptiGetDeviceId(nullptr, &u32); }},
      {"GetStreamId", [] { cuptiGetStreamId(matrixContext, nullptr, &u32); }},
      {"GetStreamIdEx", [] { cuptiGetStreamIdEx(matrixContext, nullptr, 1, &u32); }},
      {"GetGraphId", [] { cuptiGetGraphId(reinterpret_cast<CUgraph>(0x6000), &u32); }},
      {"GetGraphExecId", [] { cuptiGetGraphExecId(reinterpret_cast<CUgraphExec>(0x6100), &u32); }},
      {"GetGraphNodeId", [] { cuptiGetGraphNodeId(reinterpret_cast<CUgraphNode>(0x6200), &u64); }},
      {"ActivityEnable", [] { cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"ActivityEnableAndDump", [] { cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT); }},
      {"ActivityDisable", [] { cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"ActivityEnableContext", [] { cuptiActivityEnableContext(matrixContext, CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"ActivityDisableContext", [] { cuptiActivityDisableContext(matrixContext, CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"ActivityGetNumDroppedRecords", [] { cuptiActivityGetNumDroppedRecords(nullptr, 0, &size); }},
      {"ActivityGetNextRecord",
       [] {
         CUpti_Activity* record = nullptr;
         cuptiActivityGetNextRecord(buffer, sizeof buffer, &record);
       }},
      {"ActivityFlush", [] { cuptiActivityFlush(nullptr, 0, 0); }},
      {"ActivityFlushAll", [] { cuptiActivityFlushAll(0); }},
      {"ActivityFlushAllForced", [] { cuptiActivityFlushAll(1); }},
      {"ActivityFlushPeriod", [] { cuptiActivityFlushPeriod(0); }},
      {"ActivityGetAttribute",
       [] {
         size = sizeof u64;
         cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &u64);
       }},
      {"ActivitySetAttribute",
       [] {
         size_t eight = 8;
         uint64_t value = 3200000;
         cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &eight, &value);
       }},
      {"ActivityRegisterCallbacks", [] { cuptiActivityRegisterCallbacks(Collector::requested, Collector::completed); }},
      {"ActivityPushPop",
       [] {
         cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 5);
         cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &u64);
       }},
      {"ActivityEnableRuntimeApi", [] { cuptiActivityEnableRuntimeApi(kMalloc, 1); }},
      {"ActivityEnableDriverApi", [] { cuptiActivityEnableDriverApi(5, 0); }},
      {"ActivityEnableLatencyTimestamps", [] { cuptiActivityEnableLatencyTimestamps(0); }},
      {"ActivityEnableLaunchAttributes", [] { cuptiActivityEnableLaunchAttributes(0); }},
      {"ActivityEnableAllocationSource", [] { cuptiActivityEnableAllocationSource(0); }},
      {"SetThreadIdType", [] { cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT); }},
      {"GetResultString", [] { cuptiGetResultString(CUPTI_ERROR_UNKNOWN, &text); }},
      {"GetLastError", [] { cuptiGetLastError(); }},
      {"GetCallbackName", [] { cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 20, &text); }},
      {"GetCallbackState", [] { cuptiGetCallbackState(&u32, matrixSubscriber, CUPTI_CB_DOMAIN_RUNTIME_API, 20); }},
      {"EnableCallback", [] { cuptiEnableCallback(1, matrixSubscriber, CUPTI_CB_DOMAIN_DRIVER_API, 5); }},
      {"EnableDomain", [] { cuptiEnableDomain(1, matrixSubscriber, CUPTI_CB_DOMAIN_NVTX); }},
      {"EnableAllDomains", [] { cuptiEnableAllDomains(1, matrixSubscriber); }},
      {"Subscribe",
       [] {
         CUpti_SubscriberHandle second;
         cuptiSubscribe(&second, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr);
       }},
      {"a CUDA call", [] { fake::call(SONDE_DOMAIN_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2); }},
  };
}

// Runs the function when the place is reached, once, here or on another thread.
struct Probe {
  std::function<void()> call;
  bool elsewhere = false;
  std::atomic<bool> armed{false};
  std::atomic<uint32_t> ran{0};

  void reached() {
    if (!armed.exchange(false)) return;
    if (elsewhere) {
      std::thread([this] { call(); }).join();
    } else {
      call();
    }
    ++ran;
  }

  // After the place was visited. Whoever came to it, perhaps the delivery thread,
  // gets done; a flush waits for that thread only so long.
  void settle() {
    if (armed.exchange(false)) return;  // nobody came
    while (ran == 0) std::this_thread::yield();
  }
};
Probe probe;
int matrixPlace = -1;

void CUPTIAPI probing(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  if (!probe.call) return;
  switch (domain) {
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      if (matrixPlace == static_cast<const CUpti_CallbackData*>(data)->callbackSite) probe.reached();
      break;
    case CUPTI_CB_DOMAIN_RESOURCE:
      if (matrixPlace == 2) probe.reached();
      break;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE:
      if (matrixPlace == 3) probe.reached();
      break;
    case CUPTI_CB_DOMAIN_STATE:
      if (matrixPlace == 4) probe.reached();
      break;
    default: break;
  }
}

class Matrix : public Promises, public ::testing::WithParamInterface<int> {};

// Places: 0 API entry, 1 API exit, 2 resource, 3 synchronize, 4 state, 5 buffer
// requested, 6 buffer completed.
void CUPTIAPI visitPlace(int place, SondeHandle context) {
  switch (place) {
    case 0:
    case 1: fake::call(SONDE_DOMAIN_RUNTIME, kMalloc); break;
    case 2: fake::destroyStream(fake::createStream(context)); break;
    case 3: {
      SondeSync sync{};
      sync.size = sizeof sync;
      sync.kind = SONDE_SYNC_STREAM_SYNCHRONIZE;
      sync.context = context;
      fake::emit(sync);
      break;
    }
    case 4: fake::failContext(context, CUDA_ERROR_ILLEGAL_ADDRESS, "illegal address"); break;
    default:
      fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
      cuptiActivityFlushAll(0);
      break;
  }
}

TEST_P(Matrix, EveryFunctionFromEveryCallback) {
  // A deadlock ends the program here.
  alarm(100);
  matrixPlace = GetParam();
  SondeHandle context = fake::createContext();
  matrixContext = static_cast<CUcontext>(context);
  for (bool elsewhere : {false, true}) {
    for (const Function& function : functions()) {
      SCOPED_TRACE(function.name);
      cuptiFinalize();
      collector_.start();
      ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
      probe.call = function.call;
      probe.elsewhere = elsewhere;
      probe.ran = 0;
      collector_.onComplete = [](uint8_t*, size_t, size_t) {
        if (matrixPlace == 6) probe.reached();
      };
      collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
        if (matrixPlace == 5) probe.reached();
        *size = 4096;
        *buffer = Collector::instance().allocate(4096);
      };
      collector_.onRelease = [](uint8_t* buffer) { Collector::instance().release(buffer); };
      ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&matrixSubscriber, probing, nullptr));
      ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableAllDomains(1, matrixSubscriber));
      probe.armed = true;
      visitPlace(matrixPlace, context);
      probe.settle();
      EXPECT_EQ(1u, probe.ran);
    }
  }
  probe.call = nullptr;
  matrixPlace = -1;
  fake::destroyContext(context);
  alarm(0);
}

INSTANTIATE_TEST_SUITE_P(Places, Matrix, ::testing::Range(0, 7));

// Unsubscribe and Finalize from each place, and a new life afterwards.
TEST_P(Matrix, UnsubscribeAndFinalizeFromEveryCallback) {
  alarm(100);
  matrixPlace = GetParam();
  SondeHandle context = fake::createContext();
  for (int which = 0; which < 2; ++which) {
    for (int life = 0; life < 3; ++life) {
      cuptiFinalize();
      collector_.start();
      ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
      probe.call = [which] {
        if (which == 0) {
          cuptiUnsubscribe(matrixSubscriber);
        } else {
          cuptiFinalize();
        }
      };
      probe.elsewhere = false;
      probe.ran = 0;
      collector_.onComplete = [](uint8_t*, size_t, size_t) {
        if (matrixPlace == 6) probe.reached();
      };
      collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
        if (matrixPlace == 5) probe.reached();
        *size = 4096;
        *buffer = Collector::instance().allocate(4096);
      };
      collector_.onRelease = [](uint8_t* buffer) { Collector::instance().release(buffer); };
      ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&matrixSubscriber, probing, nullptr));
      ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableAllDomains(1, matrixSubscriber));
      probe.armed = true;
      visitPlace(matrixPlace, context);
      probe.settle();
      EXPECT_EQ(1u, probe.ran);
      fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);  // nobody is called
      EXPECT_EQ(1u, probe.ran);
    }
  }
  probe.call = nullptr;
  matrixPlace = -1;
  fake::destroyContext(context);
  alarm(0);
}

}  // namespace
