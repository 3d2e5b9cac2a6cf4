// SPDX-License-Identifier: Apache-2.0
// Without a driver: what must still work works, the rest answers in one stable
// way. This program does not link the stand-in driver.
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

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

}  // namespace
