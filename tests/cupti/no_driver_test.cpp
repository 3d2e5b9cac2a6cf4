// SPDX-License-Identifier: Apache-2.0
// Without a driver: what must still work works, the rest answers in one stable
// way. This program does not link the stand-in driver.
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

extern "C" int InitializeInjectionNvtx2(void* getExportTable);
extern "C" CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks_v6050(CUpti_BuffersCallbackRequestFunc,
                                                                     CUpti_BuffersCallbackCompleteFunc);

namespace {

class NoDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    // A machine that has a real one cannot run these tests.
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY)) {
      dlclose(driver);
      GTEST_SKIP() << "there is a driver";
    }
  }
};

void CUPTIAPI requested(uint8_t** buffer, size_t*, size_t*) { *buffer = nullptr; }
void CUPTIAPI completed(CUcontext, uint32_t, uint8_t*, size_t, size_t) {}
void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

TEST_F(NoDriver, WhatNeedsNoneWorks) {
  uint32_t version = 0;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetVersion(&version));
  EXPECT_EQ(130001u, version);
  uint64_t time = 0;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&time));
  EXPECT_GT(time, uint64_t{1700000000} * 1000000000);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(requested, completed));
  const char* name = nullptr;
  EXPECT_EQ(CUPTI_SUCCESS,
            cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name));
  EXPECT_STREQ("cudaLaunchKernel_v7000", name);
  size_t dropped = 5;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(0u, dropped);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
}

// ACT-092: what is not there cannot be flushed.
TEST_F(NoDriver, ACT_092_FlushAllReportsAnInternalFailureAsUnknown) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(requested, completed));
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiActivityFlushAll(0));
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
}

TEST_F(NoDriver, TheRestSaysSo) {
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  CUpti_SubscriberHandle subscriber = nullptr;
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiSubscribe(&subscriber, called, nullptr));
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiActivityFlushAll(0));
  CUpti_Profiler_Initialize_Params params = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE, nullptr};
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiProfilerInitialize(&params));
  const char* message = nullptr;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetErrorMessage(CUPTI_ERROR_UNKNOWN, &message));
  EXPECT_NE(nullptr, std::strstr(message, "libcuda.so.1")) << message;
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiGetLastError());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetLastError());
}

// The 6.5 manual names NOT_INITIALIZED for all of these.
TEST_F(NoDriver, AClientOf65IsToldNotInitialized) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks_v6050(requested, completed));
  const auto expected = CUPTI_ERROR_NOT_INITIALIZED;
  const auto context = reinterpret_cast<CUcontext>(0x10);
  uint32_t id = 77;
  EXPECT_EQ(expected, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(expected, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(expected, cuptiActivityEnableContext(context, CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(expected, cuptiActivityDisableContext(context, CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(expected, cuptiActivityFlushAll(0));
  EXPECT_EQ(expected, cuptiActivityFlush(nullptr, 0, 0));
  EXPECT_EQ(expected, cuptiGetContextId(context, &id));
  EXPECT_EQ(expected, cuptiGetDeviceId(nullptr, &id));
  EXPECT_EQ(expected, cuptiGetStreamId(nullptr, nullptr, &id));
  CUpti_ActivityUnifiedMemoryCounterConfig config{};
  EXPECT_EQ(expected, cuptiActivityConfigureUnifiedMemoryCounter(&config, 1));
  EXPECT_EQ(77u, id);
  const char* message = nullptr;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetErrorMessage(expected, &message));
  EXPECT_NE(nullptr, std::strstr(message, "libcuda.so.1")) << message;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
}

// NVTX calls need no driver, and none initialised.
using Slot = void (*)();
Slot coreSlots[16], cudaSlots[9], domainSlots[16];
Slot* pointers[3][16];
int moduleTable(int module, Slot*** table, unsigned* count) {
  const int index = module == 1 ? 0 : module == 2 ? 1 : module == 5 ? 2 : -1;
  if (index < 0) return 0;
  Slot* const slots[] = {coreSlots, cudaSlots, domainSlots};
  *count = index == 1 ? 9 : 16;
  for (unsigned i = 0; i < *count; ++i) pointers[index][i] = &slots[index][i];
  *table = pointers[index];
  return 1;
}
struct {
  size_t size = 16;
  int (*get)(int, Slot***, unsigned*) = moduleTable;
} callbackTable;
const void* exportTable(uint32_t id) { return id == 1 ? &callbackTable : nullptr; }

template <typename R, typename... A>
R app(Slot slot, A... arguments) {
  return reinterpret_cast<R (*)(A...)>(slot)(arguments...);
}

TEST_F(NoDriver, NvtxCallsBeforeThereIsADriverAreSafe) {
  ASSERT_EQ(1, InitializeInjectionNvtx2(reinterpret_cast<void*>(exportTable)));
  app<void>(coreSlots[2], "mark");
  EXPECT_EQ(0, app<int>(coreSlots[9], "push"));
  EXPECT_EQ(0, app<int>(coreSlots[11]));
  const auto id = app<uint64_t>(coreSlots[5], "start");
  app<void>(coreSlots[7], id);
  app<void>(coreSlots[14], uint32_t{1}, "thread");
  app<void>(cudaSlots[3], reinterpret_cast<void*>(0x10), "context");
  const auto* domain = app<const void*>(domainSlots[12], "domain");
  EXPECT_NE(nullptr, domain);
  app<void>(domainSlots[14], domain);
  // A client that wants them must still be told that there is no driver.
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER));
  app<void>(coreSlots[2], "mark");
}

}  // namespace
