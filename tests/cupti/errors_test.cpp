// SPDX-License-Identifier: Apache-2.0
// Every function of the Activity and Callback APIs with every error that is
// documented for it, two errors at once in the order of the checks, and outputs
// that a failure leaves alone. Each failure says what was wrong.
#include <cupti_pcsampling.h>

#include <cstring>
#include <functional>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;

namespace {

struct Case {
  const char* what;
  CUptiResult expected;
  std::function<CUptiResult()> call;
};

CUcontext context;
auto* const noContext = reinterpret_cast<CUcontext>(0x10);
auto* const noStream = reinterpret_cast<CUstream>(0x10);
constexpr auto kNoKind = static_cast<CUpti_ActivityKind>(1000);
constexpr auto kNoAttribute = static_cast<CUpti_ActivityAttribute>(77);
constexpr auto kSize = CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE;
constexpr auto kRuntime = CUPTI_ACTIVITY_KIND_RUNTIME;

// Outputs, filled with a pattern before each call.
struct Outputs {
  uint64_t number[16];
} out;
template <typename T>
T* place(int i = 0) {
  return reinterpret_cast<T*>(&out.number[i]);
}
size_t eight = 8, four = 4;

class Errors : public ::testing::Test {
 protected:
  void SetUp() override { context = static_cast<CUcontext>(fake::createContext()); }
  void TearDown() override {
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    fake::destroyContext(context);
  }
  void run(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      SCOPED_TRACE(c.what);
      std::memset(&out, 0xa5, sizeof out);
      const Outputs before = out;
      eight = 8, four = 4;
      cuptiGetLastError();
      EXPECT_EQ(c.expected, c.call());
      EXPECT_EQ(0, std::memcmp(&before, &out, sizeof out)) << "a failure wrote an output";
      EXPECT_EQ(8u, eight);
      EXPECT_EQ(4u, four);
      if (c.expected == CUPTI_ERROR_MAX_LIMIT_REACHED) continue;  // no failure: the end
      EXPECT_EQ(c.expected, cuptiGetLastError());
      const char* message = nullptr;
      ASSERT_EQ(CUPTI_SUCCESS, cuptiGetErrorMessage(c.expected, &message));
      EXPECT_GT(std::strlen(message), 10u) << message;
    }
  }
};

TEST_F(Errors, KindsAndContexts) {
  run({
      {"enable, no kind", CUPTI_ERROR_INVALID_KIND, [] { return cuptiActivityEnable(kNoKind); }},
      {"enable 0", CUPTI_ERROR_INVALID_KIND, [] { return cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID); }},
      {"enable CDP_KERNEL", CUPTI_ERROR_NOT_COMPATIBLE,
       [] { return cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CDP_KERNEL); }},
      {"enable and dump, no kind", CUPTI_ERROR_INVALID_KIND, [] { return cuptiActivityEnableAndDump(kNoKind); }},
      {"enable and dump CDP_KERNEL", CUPTI_ERROR_NOT_COMPATIBLE,
       [] { return cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CDP_KERNEL); }},
      {"disable, no kind", CUPTI_ERROR_INVALID_KIND, [] { return cuptiActivityDisable(kNoKind); }},
      {"disable CDP_KERNEL", CUPTI_ERROR_INVALID_KIND,
       [] { return cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CDP_KERNEL); }},
      {"enable for a context, NULL", CUPTI_ERROR_INVALID_CONTEXT,
       [] { return cuptiActivityEnableContext(nullptr, kRuntime); }},
      {"enable for a context, no context", CUPTI_ERROR_INVALID_CONTEXT,
       [] { return cuptiActivityEnableContext(noContext, kRuntime); }},
      {"enable for a context, neither", CUPTI_ERROR_INVALID_CONTEXT,
       [] { return cuptiActivityEnableContext(nullptr, kNoKind); }},
      {"enable for a context, no kind", CUPTI_ERROR_INVALID_KIND,
       [] { return cuptiActivityEnableContext(context, kNoKind); }},
      {"enable for a context, CDP_KERNEL", CUPTI_ERROR_NOT_COMPATIBLE,
       [] { return cuptiActivityEnableContext(context, CUPTI_ACTIVITY_KIND_CDP_KERNEL); }},
      {"disable for a context, NULL", CUPTI_ERROR_INVALID_CONTEXT,
       [] { return cuptiActivityDisableContext(nullptr, kRuntime); }},
      {"disable for a context, no kind", CUPTI_ERROR_INVALID_KIND,
       [] { return cuptiActivityDisableContext(context, kNoKind); }},
  });
}

TEST_F(Errors, BuffersAndFlushing) {
  run({
      {"no callbacks", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiActivityRegisterCallbacks(nullptr, nullptr); }},
      {"no request callback", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityRegisterCallbacks(nullptr, Collector::completed); }},
      {"no complete callback", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityRegisterCallbacks(Collector::requested, nullptr); }},
      {"flush all, none registered", CUPTI_ERROR_INVALID_OPERATION, [] { return cuptiActivityFlushAll(0); }},
      {"forced", CUPTI_ERROR_INVALID_OPERATION, [] { return cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); }},
      {"flush, none registered", CUPTI_ERROR_INVALID_OPERATION, [] { return cuptiActivityFlush(context, 0, 0); }},
      {"flush, no context either", CUPTI_ERROR_INVALID_OPERATION, [] { return cuptiActivityFlush(noContext, 9, 0); }},
      {"dropped, no place", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetNumDroppedRecords(nullptr, 0, nullptr); }},
      {"dropped, no place, no context", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetNumDroppedRecords(noContext, 0, nullptr); }},
      {"timestamp callback", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityRegisterTimestampCallback(nullptr); }},
  });
}

TEST_F(Errors, Records) {
  static uint8_t buffer[64] = {};
  run({
      {"no buffer", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetNextRecord(nullptr, 64, place<CUpti_Activity*>()); }},
      {"no buffer, size 0", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetNextRecord(nullptr, 0, place<CUpti_Activity*>()); }},
      {"no record", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiActivityGetNextRecord(buffer, 64, nullptr); }},
      {"record elsewhere", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetNextRecord(buffer, 64, place<CUpti_Activity*>()); }},
      {"no such kind", CUPTI_ERROR_INVALID_KIND,
       [] {
         CUpti_Activity* record = nullptr;
         const CUptiResult r = cuptiActivityGetNextRecord(buffer, 64, &record);
         EXPECT_EQ(nullptr, record);
         return r;
       }},
      {"nothing", CUPTI_ERROR_MAX_LIMIT_REACHED,
       [] {
         CUpti_Activity* record = nullptr;
         return cuptiActivityGetNextRecord(buffer, 0, &record);
       }},
  });
}

TEST_F(Errors, Attributes) {
  run({
      {"get, no size", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiActivityGetAttribute(kSize, nullptr, &out); }},
      {"get, no value", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetAttribute(kSize, &eight, nullptr); }},
      {"get, no attribute", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetAttribute(kNoAttribute, &eight, &out); }},
      {"get, no attribute and small", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityGetAttribute(kNoAttribute, &four, &out); }},
      {"get, small", CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
       [] { return cuptiActivityGetAttribute(kSize, &four, &out); }},
      {"set, no size", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiActivitySetAttribute(kSize, nullptr, &out); }},
      {"set, no value", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivitySetAttribute(kSize, &eight, nullptr); }},
      {"set, no attribute", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivitySetAttribute(kNoAttribute, &eight, &out); }},
      {"set, small", CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
       [] { return cuptiActivitySetAttribute(kSize, &four, &out); }},
      {"runtime id", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_SIZE, 1); }},
      {"runtime id 0", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiActivityEnableRuntimeApi(0, 1); }},
      {"driver id", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_SIZE, 0); }},
      {"thread ids", CUPTI_ERROR_NOT_SUPPORTED,
       [] { return cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE); }},
      {"thread ids, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetThreadIdType(nullptr); }},
      {"hardware trace", CUPTI_ERROR_NOT_SUPPORTED, [] { return cuptiActivityEnableHWTrace(1); }},
      {"external kind", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1); }},
      {"external kind, pop", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, place<uint64_t>()); }},
      {"pop of nothing", CUPTI_ERROR_QUEUE_EMPTY,
       [] {
         return cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, place<uint64_t>());
       }},
      {"unified memory, no config", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiActivityConfigureUnifiedMemoryCounter(nullptr, 1); }},
  });
}

TEST_F(Errors, Ids) {
  run({
      {"timestamp", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetTimestamp(nullptr); }},
      {"context id, NULL", CUPTI_ERROR_INVALID_CONTEXT, [] { return cuptiGetContextId(nullptr, place<uint32_t>()); }},
      {"context id, no context", CUPTI_ERROR_INVALID_CONTEXT,
       [] { return cuptiGetContextId(noContext, place<uint32_t>()); }},
      {"context id, neither", CUPTI_ERROR_INVALID_CONTEXT, [] { return cuptiGetContextId(nullptr, nullptr); }},
      {"context id, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetContextId(context, nullptr); }},
      {"device id, no context", CUPTI_ERROR_INVALID_DEVICE,
       [] { return cuptiGetDeviceId(noContext, place<uint32_t>()); }},
      {"device id, neither", CUPTI_ERROR_INVALID_DEVICE, [] { return cuptiGetDeviceId(noContext, nullptr); }},
      {"device id, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetDeviceId(context, nullptr); }},
      {"stream id, no stream", CUPTI_ERROR_INVALID_STREAM,
       [] { return cuptiGetStreamId(nullptr, noStream, place<uint32_t>()); }},
      {"stream id, no context", CUPTI_ERROR_INVALID_STREAM,
       [] { return cuptiGetStreamId(noContext, nullptr, place<uint32_t>()); }},
      {"stream id, no place", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetStreamId(context, nullptr, nullptr); }},
      {"stream id, Ex", CUPTI_ERROR_INVALID_STREAM,
       [] { return cuptiGetStreamIdEx(nullptr, noStream, 0, place<uint32_t>()); }},
      {"stream id, Ex, no place", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetStreamIdEx(context, nullptr, 1, nullptr); }},
      {"graph", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetGraphId(nullptr, place<uint32_t>()); }},
      {"graph, no place", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetGraphId(reinterpret_cast<CUgraph>(0x6000), nullptr); }},
      {"graph exec", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetGraphExecId(nullptr, place<uint32_t>()); }},
      {"graph node", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetGraphNodeId(nullptr, place<uint64_t>()); }},
      {"auto boost, no context", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetAutoBoostState(nullptr, place<CUpti_ActivityAutoBoostState>()); }},
      {"auto boost, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetAutoBoostState(context, nullptr); }},
      {"device supported", CUPTI_ERROR_INVALID_DEVICE, [] { return cuptiDeviceSupported(99, place<int>()); }},
      {"device supported, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiDeviceSupported(0, nullptr); }},
      {"capability, no place", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiComputeCapabilitySupported(9, 0, nullptr); }},
      {"version, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetVersion(nullptr); }},
  });
}

TEST_F(Errors, Callbacks) {
  static CUpti_SubscriberHandle subscriber;
  static auto* const bogus = reinterpret_cast<CUpti_SubscriberHandle>(0x99);
  static const auto nobody = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber, nobody, nullptr));
  constexpr auto kDomain = CUPTI_CB_DOMAIN_RUNTIME_API;
  constexpr auto kNoDomain = static_cast<CUpti_CallbackDomain>(99);
  run({
      {"subscribe, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiSubscribe(nullptr, nobody, nullptr); }},
      {"subscribe again", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
       [] { return cuptiSubscribe(place<CUpti_SubscriberHandle>(), nobody, nullptr); }},
      {"unsubscribe NULL", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiUnsubscribe(nullptr); }},
      {"unsubscribe another", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiUnsubscribe(bogus); }},
      {"callback, no subscriber", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiEnableCallback(1, bogus, kDomain, 20); }},
      {"callback, no domain", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiEnableCallback(1, subscriber, kNoDomain, 20); }},
      {"callback, no id", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiEnableCallback(1, subscriber, kDomain, 100000); }},
      {"domain, no subscriber", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiEnableDomain(1, bogus, kDomain); }},
      {"domain, none", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiEnableDomain(1, subscriber, kNoDomain); }},
      {"all domains", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiEnableAllDomains(1, bogus); }},
      {"state, no place", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetCallbackState(nullptr, subscriber, kDomain, 20); }},
      {"state, no subscriber", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetCallbackState(place<uint32_t>(), bogus, kDomain, 20); }},
      {"state, no id", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetCallbackState(place<uint32_t>(), subscriber, kDomain, 100000); }},
      {"name, no place", CUPTI_ERROR_INVALID_PARAMETER, [] { return cuptiGetCallbackName(kDomain, 20, nullptr); }},
      {"name, no domain", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetCallbackName(kNoDomain, 20, place<const char*>()); }},
      {"name, no id", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetCallbackName(kDomain, 0, place<const char*>()); }},
      {"domains, no count", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiSupportedDomains(nullptr, place<CUpti_DomainTable>()); }},
      {"domains, no table", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiSupportedDomains(place<size_t>(), nullptr); }},
      {"result string", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetResultString(static_cast<CUptiResult>(5000), place<const char*>()); }},
      {"result string, no place", CUPTI_ERROR_INVALID_PARAMETER,
       [] { return cuptiGetResultString(CUPTI_SUCCESS, nullptr); }},
  });
}

}  // namespace
