// SPDX-License-Identifier: Apache-2.0
// The Callback API.
#include <cupti_pcsampling.h>

#include <cstring>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"

namespace {

constexpr uint32_t kLaunch = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;

struct Seen {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId cbid;
  CUpti_CallbackData api;
  CUpti_ResourceData resource;
  CUpti_ModuleResourceData module;
  CUpti_GraphData graph;
  CUpti_SynchronizeData sync;
  CUptiResult state;
  std::string text;
  uint64_t slot;
};
std::vector<Seen> seen;
int32_t overwrite = -1;

void CUPTIAPI note(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  EXPECT_EQ(&seen, user);
  Seen s{};
  s.domain = domain;
  s.cbid = cbid;
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      s.api = *static_cast<const CUpti_CallbackData*>(data);
      if (s.api.callbackSite == CUPTI_API_ENTER) {
        *s.api.correlationData = 4000 + cbid;
      } else if (overwrite >= 0) {
        *static_cast<int32_t*>(s.api.functionReturnValue) = overwrite;
      }
      s.slot = *s.api.correlationData;
      break;
    case CUPTI_CB_DOMAIN_RESOURCE:
      s.resource = *static_cast<const CUpti_ResourceData*>(data);
      if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
        s.module = *static_cast<CUpti_ModuleResourceData*>(s.resource.resourceDescriptor);
      }
      if (cbid >= CUPTI_CBID_RESOURCE_GRAPH_CREATED && cbid <= CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
        s.graph = *static_cast<CUpti_GraphData*>(s.resource.resourceDescriptor);
      }
      break;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE: s.sync = *static_cast<const CUpti_SynchronizeData*>(data); break;
    case CUPTI_CB_DOMAIN_STATE:
      s.state = static_cast<const CUpti_StateData*>(data)->notification.result;
      s.text = static_cast<const CUpti_StateData*>(data)->notification.message;
      break;
    default: break;
  }
  seen.push_back(s);
}

class Callbacks : public ::testing::Test {
 protected:
  void SetUp() override {
    seen.clear();
    overwrite = -1;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber_, note, &seen));
  }
  void TearDown() override { EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize()); }
  void enable(CUpti_CallbackDomain domain) { ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, domain)); }
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

TEST_F(Callbacks, EnterAndExitCarryTheCall) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch));
  SondeHandle context = fake::createContext();
  uint32_t uid = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(static_cast<CUcontext>(context), &uid));
  int params = 5;
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch, 3, {}, &params, "_Z1kv");
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  ASSERT_EQ(2u, seen.size());
  EXPECT_EQ(CUPTI_API_ENTER, seen[0].api.callbackSite);
  EXPECT_EQ(nullptr, seen[0].api.functionReturnValue);
  EXPECT_EQ(CUPTI_API_EXIT, seen[1].api.callbackSite);
  EXPECT_STREQ("cudaLaunchKernel", seen[1].api.functionName);
  EXPECT_EQ(&params, seen[1].api.functionParams);
  EXPECT_STREQ("_Z1kv", seen[1].api.symbolName);
  EXPECT_EQ(context, seen[1].api.context);
  EXPECT_EQ(uid, seen[1].api.contextUid);
  EXPECT_EQ(seen[0].api.correlationId, seen[1].api.correlationId);
  EXPECT_EQ(4000u + kLaunch, seen[1].slot);
  fake::destroyContext(context);
}

TEST_F(Callbacks, NestedCallsShareTheCorrelationIdButNotTheSlot) {
  enable(CUPTI_CB_DOMAIN_RUNTIME_API);
  enable(CUPTI_CB_DOMAIN_DRIVER_API);
  constexpr uint32_t driver = CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
  fake::call(SONDE_DOMAIN_RUNTIME, kLaunch, 0, [] { fake::call(SONDE_DOMAIN_DRIVER, driver); });
  ASSERT_EQ(4u, seen.size());
  EXPECT_EQ(driver, seen[1].cbid);
  EXPECT_EQ(seen[0].api.correlationId, seen[1].api.correlationId);
  EXPECT_EQ(4000u + driver, seen[2].slot);
  EXPECT_EQ(4000u + kLaunch, seen[3].slot);
}

TEST_F(Callbacks, TheReturnValueCanBeChanged) {
  enable(CUPTI_CB_DOMAIN_RUNTIME_API);
  overwrite = 700;
  EXPECT_EQ(700, fake::call(SONDE_DOMAIN_RUNTIME, kMalloc, 0));
}

TEST_F(Callbacks, ResourceEventsCarryTheirObjects) {
  enable(CUPTI_CB_DOMAIN_RESOURCE);
  SondeHandle context = fake::createContext();
  SondeHandle stream = fake::createStream(context);
  static const char image[] = "image";
  SondeHandle module = fake::loadModule(context, image, 5);
  fake::unloadModule(module);
  fake::destroyStream(stream);
  fake::destroyContext(context);
  ASSERT_EQ(6u, seen.size());
  const CUpti_CallbackId expected[] = {
      CUPTI_CBID_RESOURCE_CONTEXT_CREATED,         CUPTI_CBID_RESOURCE_STREAM_CREATED,
      CUPTI_CBID_RESOURCE_MODULE_LOADED,           CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
      CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING};
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(expected[i], seen[i].cbid);
    EXPECT_EQ(context, seen[i].resource.context);
  }
  EXPECT_EQ(stream, seen[1].resource.resourceHandle.stream);
  EXPECT_EQ(image, seen[2].module.pCubin);
  EXPECT_EQ(5u, seen[2].module.cubinSize);
  EXPECT_NE(0u, seen[2].module.moduleId);
}

TEST_F(Callbacks, GraphEventsCarryGraphsNodesAndExecs) {
  enable(CUPTI_CB_DOMAIN_RESOURCE);
  SondeResource r{};
  r.size = sizeof r;
  r.event = SONDE_RESOURCE_GRAPH_NODE_CREATED;
  r.handle = reinterpret_cast<SondeHandle>(0x6200);
  r.parent = reinterpret_cast<SondeHandle>(0x6000);
  r.nodeType = CU_GRAPH_NODE_TYPE_MEMCPY;
  fake::emit(r);
  r.event = SONDE_RESOURCE_GRAPH_EXEC_CREATED;
  r.handle = reinterpret_cast<SondeHandle>(0x6100);
  fake::emit(r);
  ASSERT_EQ(2u, seen.size());
  EXPECT_EQ(reinterpret_cast<CUgraphNode>(0x6200), seen[0].graph.node);
  EXPECT_EQ(reinterpret_cast<CUgraph>(0x6000), seen[0].graph.graph);
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_MEMCPY, seen[0].graph.nodeType);
  EXPECT_EQ(reinterpret_cast<CUgraphExec>(0x6100), seen[1].graph.graphExec);
}

TEST_F(Callbacks, SynchronizeAndStateDomains) {
  enable(CUPTI_CB_DOMAIN_SYNCHRONIZE);
  enable(CUPTI_CB_DOMAIN_STATE);
  SondeHandle context = fake::createContext();
  SondeSync sync{};
  sync.size = sizeof sync;
  sync.kind = SONDE_SYNC_CONTEXT_SYNCHRONIZE;
  sync.context = context;
  fake::emit(sync);
  sync.kind = SONDE_SYNC_EVENT_SYNCHRONIZE;  // has no callback id
  fake::emit(sync);
  fake::failContext(context, CUDA_ERROR_ILLEGAL_ADDRESS, "kernel k read outside every allocation");
  ASSERT_EQ(2u, seen.size());
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED), seen[0].cbid);
  EXPECT_EQ(context, seen[0].sync.context);
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_CBID_STATE_FATAL_ERROR), seen[1].cbid);
  EXPECT_EQ(CUPTI_ERROR_UNKNOWN, seen[1].state);
  EXPECT_EQ("kernel k read outside every allocation", seen[1].text);
  fake::destroyContext(context);
}

TEST_F(Callbacks, StateOfEachCallback) {
  uint32_t on = 5;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetCallbackState(&on, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch));
  EXPECT_EQ(0u, on);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableAllDomains(1, subscriber_));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableCallback(0, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetCallbackState(&on, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch));
  EXPECT_EQ(0u, on);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetCallbackState(&on, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, kMalloc));
  EXPECT_EQ(1u, on);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetCallbackState(&on, subscriber_, CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_WARNING));
  EXPECT_EQ(1u, on);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableAllDomains(0, subscriber_));
  fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
  EXPECT_EQ(0u, seen.size());
}

TEST_F(Callbacks, BadArgumentsChangeNothing) {
  auto* bogus = reinterpret_cast<CUpti_SubscriberHandle>(0x99);
  uint32_t on = 5;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiSubscribe(nullptr, note, &seen));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiUnsubscribe(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiUnsubscribe(bogus));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnableDomain(1, bogus, CUPTI_CB_DOMAIN_RUNTIME_API));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_INVALID));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_SIZE));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, 0));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_SIZE));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEnableAllDomains(1, bogus));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiGetCallbackState(nullptr, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, kMalloc));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetCallbackState(&on, bogus, CUPTI_CB_DOMAIN_RUNTIME_API, kMalloc));
  EXPECT_EQ(5u, on);
}

TEST_F(Callbacks, SecondSubscriberOfTheSameObjectIsRefused) {
  CUpti_SubscriberHandle second = nullptr;
  EXPECT_EQ(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, cuptiSubscribe(&second, note, &seen));
  EXPECT_EQ(nullptr, second);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiUnsubscribe(subscriber_));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&second, note, &seen));
}

TEST_F(Callbacks, SubscribeV2TellsWhoIsThere) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "the first";
  ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe_v2(&subscriber_, note, &seen, &params));
  char old[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = {};
  params.subscriberName = "the second";
  params.oldSubscriberName = old;
  params.oldSubscriberSize = sizeof old;
  CUpti_SubscriberHandle second = nullptr;
  EXPECT_EQ(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, cuptiSubscribe_v2(&second, note, &seen, &params));
  EXPECT_STREQ("the first", old);
  params.oldSubscriberSize = 10;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiSubscribe_v2(&second, note, &seen, &params));
}

TEST_F(Callbacks, NamesAsTheTablesHaveThem) {
  const char* name = nullptr;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, kLaunch, &name));
  EXPECT_STREQ("cudaLaunchKernel_v7000", name);
  EXPECT_EQ(CUPTI_SUCCESS,
            cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2, &name));
  EXPECT_STREQ("cuMemcpyHtoD_v2", name);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetCallbackName(CUPTI_CB_DOMAIN_NVTX, CUPTI_CBID_NVTX_nvtxMarkA, &name));
  EXPECT_STREQ("nvtxMarkA", name);
  const char* before = name;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 100000, &name));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetCallbackName(CUPTI_CB_DOMAIN_INVALID, 1, &name));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 1, nullptr));
  EXPECT_EQ(before, name);
}

TEST_F(Callbacks, SupportedDomains) {
  size_t count = 0;
  CUpti_DomainTable table = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiSupportedDomains(&count, &table));
  ASSERT_EQ(6u, count);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(static_cast<int>(i) + 1, table[i]);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiSupportedDomains(nullptr, &table));
}

TEST(Cubin, ChecksumIsTheCrc64OfXz) {
  CUpti_GetCubinCrcParams params{};
  params.size = CUpti_GetCubinCrcParamsSize;
  params.cubin = "123456789";
  params.cubinSize = 9;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetCubinCrc(&params));
  EXPECT_EQ(0x995dc9bbdf1939fau, params.cubinCrc);
  params.cubin = nullptr;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetCubinCrc(&params));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetCubinCrc(nullptr));
}

TEST(Results, EveryCodeHasAName) {
  const char* name = nullptr;
  for (int code = 0; code <= CUPTI_ERROR_INVALID_CHIP_NAME; ++code) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetResultString(static_cast<CUptiResult>(code), &name)) << code;
    EXPECT_EQ(0, std::strncmp("CUPTI_", name, 6));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiGetErrorMessage(static_cast<CUptiResult>(code), &name)) << code;
  }
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &name));
  EXPECT_STREQ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", name);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetResultString(CUPTI_ERROR_UNKNOWN, &name));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetResultString(static_cast<CUptiResult>(500), &name));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetResultString(CUPTI_SUCCESS, nullptr));
}

TEST(Results, TheLastErrorBelongsToTheThreadAndIsTakenOnce) {
  cuptiGetLastError();
  cuptiGetTimestamp(nullptr);
  std::thread([] { EXPECT_EQ(CUPTI_SUCCESS, cuptiGetLastError()); }).join();
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetLastError());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetLastError());
  const char* message = nullptr;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetErrorMessage(CUPTI_ERROR_INVALID_PARAMETER, &message));
  EXPECT_STREQ("timestamp is NULL", message);
}

}  // namespace
