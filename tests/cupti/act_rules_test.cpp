// SPDX-License-Identifier: Apache-2.0
// The Activity API's functions, rule by rule. Buffer rules: activity_test.cpp.
#include <cstring>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;

class ActivityRules : public ::testing::Test {
 protected:
  void SetUp() override { context_ = fake::createContext(); }
  void TearDown() override {
    fake::releaseWork();
    fake::waitWork();
    fake::destroyContext(context_);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  }
  CUcontext context() { return static_cast<CUcontext>(context_); }
  Collector& collector_ = Collector::instance();
  SondeHandle context_ = nullptr;
};

size_t apiRecords(Collector& collector) {
  const size_t before = collector.records().size();
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  return collector.flush().size() - before;
}

TEST_F(ActivityRules, ACT_064_KernelAndConcurrentKernelGiveOneRecordPerKernel) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL));
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
  fake::waitWork();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
  fake::waitWork();
  const auto records = collector_.flush();
  ASSERT_EQ(2u, records.size());
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_KERNEL, static_cast<int>(records[0].kind()));
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, static_cast<int>(records[1].kind()));
}

TEST_F(ActivityRules, ACT_065_CdpKernelFollowsConcurrentKernel) {
  EXPECT_EQ(CUPTI_ERROR_NOT_COMPATIBLE, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CDP_KERNEL));
}

TEST_F(ActivityRules, XV_002_SourceLevelKindsNeedAGpuThatCountsInstructions) {
  for (auto kind : {CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR, CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_BRANCH,
                    CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION, CUPTI_ACTIVITY_KIND_SHARED_ACCESS}) {
    EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiActivityEnable(kind));
    const char* why = nullptr;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetErrorMessage(CUPTI_ERROR_NOT_SUPPORTED, &why));
    EXPECT_NE(nullptr, std::strstr(why, "counts instructions")) << why;
  }
}

TEST_F(ActivityRules, ACT_077_KindsAreOffAtFirstAndAddUp) {
  collector_.start();
  EXPECT_EQ(0u, apiRecords(collector_));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
  EXPECT_EQ(1u, apiRecords(collector_));
  fake::enqueue(context_, nullptr, SONDE_WORK_MEMSET);
  fake::waitWork();
  collector_.flush();
  EXPECT_EQ(1u, collector_.records(CUPTI_ACTIVITY_KIND_MEMSET).size());
}

TEST_F(ActivityRules, ACT_078_EnableRefusesKindsThatDoNotExist) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_COUNT));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityEnable(static_cast<CUpti_ActivityKind>(1000)));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityEnable(static_cast<CUpti_ActivityKind>(-1)));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_FORCE_INT));
}

TEST_F(ActivityRules, ACT_079_DisableTurnsOneKindOff) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(0u, apiRecords(collector_));
  fake::call(SONDE_DOMAIN_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2);
  EXPECT_EQ(1u, collector_.flush().size());
  // Off already: no error.
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME));
}

TEST_F(ActivityRules, ACT_080_DisableKnowsNoNotCompatible) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_INVALID));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_COUNT));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CDP_KERNEL));
}

TEST_F(ActivityRules, ACT_081_EnablingForOneContextOverrulesTheGlobalSetting) {
  collector_.start();
  SondeHandle other = fake::createContext();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableContext(context(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
  fake::enqueue(other, nullptr, SONDE_WORK_KERNEL);
  fake::waitWork();
  auto records = collector_.flush();
  ASSERT_EQ(1u, records.size());
  uint32_t id;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(context(), &id));
  EXPECT_EQ(id, records[0].as<CUpti_ActivityKernel10>().contextId);
  // A global change leaves the context's own setting alone.
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
  fake::waitWork();
  EXPECT_EQ(2u, collector_.flush().size());
  // API records too.
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableContext(context(), CUPTI_ACTIVITY_KIND_RUNTIME));
  fake::setCurrent(other);
  EXPECT_EQ(0u, apiRecords(collector_));
  fake::setCurrent(context_);
  EXPECT_EQ(1u, apiRecords(collector_));
  fake::destroyContext(other);
}

TEST_F(ActivityRules, ACT_082_EnableContextErrors) {
  EXPECT_EQ(CUPTI_ERROR_NOT_COMPATIBLE, cuptiActivityEnableContext(context(), CUPTI_ACTIVITY_KIND_CDP_KERNEL));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityEnableContext(context(), CUPTI_ACTIVITY_KIND_INVALID));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiActivityEnableContext(nullptr, CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT,
            cuptiActivityEnableContext(reinterpret_cast<CUcontext>(0x1234), CUPTI_ACTIVITY_KIND_RUNTIME));
}

TEST_F(ActivityRules, ACT_083_DisablingForOneContextOverrulesTheGlobalSetting) {
  collector_.start();
  SondeHandle other = fake::createContext();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisableContext(context(), CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  fake::enqueue(context_, nullptr, SONDE_WORK_KERNEL);
  fake::enqueue(other, nullptr, SONDE_WORK_KERNEL);
  fake::waitWork();
  EXPECT_EQ(1u, collector_.flush().size());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisableContext(context(), CUPTI_ACTIVITY_KIND_RUNTIME));
  fake::setCurrent(context_);
  EXPECT_EQ(0u, apiRecords(collector_));
  fake::setCurrent(other);
  EXPECT_EQ(1u, apiRecords(collector_));
  fake::destroyContext(other);
}

TEST_F(ActivityRules, ACT_084_DisableContextErrors) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityDisableContext(context(), CUPTI_ACTIVITY_KIND_INVALID));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiActivityDisableContext(nullptr, CUPTI_ACTIVITY_KIND_RUNTIME));
}

TEST_F(ActivityRules, ACT_086_RegisterNeedsBothCallbacks) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityRegisterCallbacks(nullptr, Collector::completed));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityRegisterCallbacks(Collector::requested, nullptr));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(Collector::requested, Collector::completed));
}

TEST_F(ActivityRules, ACT_087_NoQueueOfBuffersAfterRegistration) {
  collector_.start();
  alignas(8) uint8_t buffer[64];
  uint8_t* out = buffer;
  size_t size = 64;
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiActivityEnqueueBuffer(nullptr, 0, buffer, sizeof buffer));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiActivityDequeueBuffer(nullptr, 0, &out, &size));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiActivityQueryBuffer(nullptr, 0, &size));
}

TEST_F(ActivityRules, ACT_088_FlushAllNeedsCallbacks) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiActivityFlushAll(0));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  collector_.start();
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
}

TEST_F(ActivityRules, ACT_097_FlushNeedsCallbacks) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION, cuptiActivityFlush(nullptr, 0, 0));
}

TEST_F(ActivityRules, ACT_093_FlushIgnoresContextAndStream) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlush(reinterpret_cast<CUcontext>(0x1), 999, 0));
  EXPECT_EQ(1u, collector_.records().size());
}

TEST_F(ActivityRules, ACT_098_GetAttributeDefaults) {
  size_t value = 0, size = sizeof value;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value));
  EXPECT_EQ(3200000u, value);  // ACT-019 says 4194304 for 6.5; XV-008 gives 13.0's
  EXPECT_EQ(sizeof(size_t), size);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, &size, &value));
  EXPECT_EQ(8388608u, value);  // ACT-023
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size, &value));
  EXPECT_EQ(250u, value);
  ASSERT_EQ(CUPTI_SUCCESS,
            cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, &size, &value));
  EXPECT_EQ(3u, value);
  ASSERT_EQ(CUPTI_SUCCESS,
            cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS, &size, &value));
  EXPECT_EQ(16777216u, value);
  // Room to spare: the size comes back as what was written.
  uint8_t flag = 7;
  size = 32;
  uint8_t room[32] = {};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, room));
  EXPECT_EQ(1u, size);
  EXPECT_EQ(1, room[0]);
  size = 1;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &flag));
  EXPECT_EQ(0, flag);
}

TEST_F(ActivityRules, ACT_099_GetAttributeErrors) {
  size_t value = 5, size = sizeof value;
  const auto attribute = CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetAttribute(attribute, nullptr, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetAttribute(attribute, &size, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_FORCE_INT, &size, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiActivityGetAttribute(static_cast<CUpti_ActivityAttribute>(99), &size, &value));
  size = 7;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, cuptiActivityGetAttribute(attribute, &size, &value));
  EXPECT_EQ(5u, value);
  EXPECT_EQ(7u, size);
}

TEST_F(ActivityRules, ACT_100_SetAttribute) {
  size_t value = 1 << 20, size = sizeof value;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value));
  value = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value));
  EXPECT_EQ(1u << 20, value);
}

TEST_F(ActivityRules, ACT_101_SetAttributeErrors) {
  size_t value = 5, size = sizeof value;
  const auto attribute = CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivitySetAttribute(attribute, nullptr, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivitySetAttribute(attribute, &size, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiActivitySetAttribute(static_cast<CUpti_ActivityAttribute>(-1), &size, &value));
  size = 4;
  EXPECT_EQ(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, cuptiActivitySetAttribute(attribute, &size, &value));
  size = sizeof value;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetAttribute(attribute, &size, &value));
  EXPECT_EQ(250u, value);
}

TEST_F(ActivityRules, ACT_113_AutoBoostState) {
  CUpti_ActivityAutoBoostState state{};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetAutoBoostState(context(), &state));
  EXPECT_EQ(1u, state.enabled);
  EXPECT_EQ(4711u, state.pid);
}

TEST_F(ActivityRules, ACT_115_AutoBoostErrors) {
  CUpti_ActivityAutoBoostState state{5, 6};
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetAutoBoostState(nullptr, &state));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetAutoBoostState(context(), nullptr));
  fake::setAutoBoostResult(CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiGetAutoBoostState(context(), &state));
  fake::setAutoBoostResult(CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, cuptiGetAutoBoostState(context(), &state));
  fake::setAutoBoostResult(0);
  EXPECT_EQ(5u, state.enabled);
  EXPECT_EQ(6u, state.pid);
}

TEST_F(ActivityRules, ACT_116_ContextIdsAreUnique) {
  SondeHandle other = fake::createContext();
  uint32_t a = 0, b = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(context(), &a));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(static_cast<CUcontext>(other), &b));
  EXPECT_NE(a, b);
  fake::destroyContext(other);
}

TEST_F(ActivityRules, ACT_117_ContextIdErrors) {
  uint32_t id = 77;
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiGetContextId(nullptr, &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_CONTEXT, cuptiGetContextId(reinterpret_cast<CUcontext>(0x10), &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetContextId(context(), nullptr));
  EXPECT_EQ(77u, id);
}

TEST_F(ActivityRules, ACT_118_DeviceIdOfTheCurrentOrGivenContext) {
  fake::setDeviceCount(2);
  SondeHandle second = fake::createContext(1);
  uint32_t id = 99;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetDeviceId(nullptr, &id));
  EXPECT_EQ(1u, id);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetDeviceId(context(), &id));
  EXPECT_EQ(0u, id);
  fake::destroyContext(second);
  fake::setDeviceCount(1);
}

TEST_F(ActivityRules, ACT_119_DeviceIdErrors) {
  uint32_t id = 77;
  fake::setCurrent(nullptr);
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiGetDeviceId(nullptr, &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_DEVICE, cuptiGetDeviceId(reinterpret_cast<CUcontext>(0x10), &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetDeviceId(context(), nullptr));
  EXPECT_EQ(77u, id);
}

TEST_F(ActivityRules, ACT_120_StreamIdsAreUniqueInAContext) {
  SondeHandle a = fake::createStream(context_), b = fake::createStream(context_);
  uint32_t null = 0, idA = 0, idB = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(context(), nullptr, &null));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(context(), static_cast<CUstream>(a), &idA));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamIdEx(nullptr, static_cast<CUstream>(b), 1, &idB));
  EXPECT_EQ(7u, null);
  EXPECT_NE(idA, idB);
  EXPECT_NE(null, idA);
}

TEST_F(ActivityRules, ACT_121_StreamOfAnotherContext) {
  SondeHandle other = fake::createContext();
  SondeHandle stream = fake::createStream(other);
  uint32_t id = 77;
  EXPECT_EQ(CUPTI_ERROR_INVALID_STREAM, cuptiGetStreamId(context(), static_cast<CUstream>(stream), &id));
  EXPECT_EQ(77u, id);
  fake::destroyStream(stream);
  fake::destroyContext(other);
}

TEST_F(ActivityRules, ACT_122_StreamIdErrors) {
  uint32_t id = 77;
  EXPECT_EQ(CUPTI_ERROR_INVALID_STREAM, cuptiGetStreamId(nullptr, reinterpret_cast<CUstream>(0x40), &id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetStreamId(nullptr, nullptr, nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetStreamIdEx(nullptr, nullptr, 0, nullptr));
  EXPECT_EQ(77u, id);
}

TEST_F(ActivityRules, ACT_123_TimestampsAreOnTheRecordsScale) {
  collector_.start();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  uint64_t before = 0, after = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&before));
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetTimestamp(&after));
  const auto records = collector_.flush();
  ASSERT_EQ(1u, records.size());
  EXPECT_LE(before, records[0].as<CUpti_ActivityAPI>().start);
  EXPECT_LE(records[0].as<CUpti_ActivityAPI>().end, after);
}

TEST_F(ActivityRules, ACT_124_TimestampNeedsAPlace) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetTimestamp(nullptr));
}

}  // namespace
