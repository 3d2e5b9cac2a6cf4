// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/fake_driver.h"
#include "cupti/collector.h"

namespace {

struct Seen {
  CUpti_CallbackDomain domain;
  CUpti_CallbackId cbid;
  CUpti_CallbackData data;
  uint64_t slot;
};
std::vector<Seen> seen;

void CUPTIAPI note(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  EXPECT_EQ(&seen, user);
  const auto* api = static_cast<const CUpti_CallbackData*>(data);
  if (api->callbackSite == CUPTI_API_ENTER) *api->correlationData = 4000 + cbid;
  seen.push_back({domain, cbid, *api, *api->correlationData});
}

class Callbacks : public ::testing::Test {
 protected:
  void SetUp() override {
    seen.clear();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber_, note, &seen));
  }
  void TearDown() override { EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize()); }
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

TEST_F(Callbacks, EnterAndExitCarryTheCall) {
  constexpr uint32_t cbid = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API, cbid));
  int params = 5;
  fake::call(SONDE_DOMAIN_RUNTIME, cbid, 3, {}, &params, "_Z1kv");
  fake::call(SONDE_DOMAIN_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020);
  ASSERT_EQ(2u, seen.size());
  EXPECT_EQ(CUPTI_API_ENTER, seen[0].data.callbackSite);
  EXPECT_EQ(nullptr, seen[0].data.functionReturnValue);
  EXPECT_EQ(CUPTI_API_EXIT, seen[1].data.callbackSite);
  EXPECT_STREQ("cudaLaunchKernel", seen[1].data.functionName);
  EXPECT_EQ(&params, seen[1].data.functionParams);
  EXPECT_STREQ("_Z1kv", seen[1].data.symbolName);
  EXPECT_EQ(seen[0].data.correlationId, seen[1].data.correlationId);
  EXPECT_EQ(4000u + cbid, seen[1].slot);
}

TEST_F(Callbacks, SecondSubscriberOfTheSameObjectIsRefused) {
  CUpti_SubscriberHandle second = nullptr;
  EXPECT_EQ(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, cuptiSubscribe(&second, note, &seen));
  EXPECT_EQ(nullptr, second);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiUnsubscribe(subscriber_));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiUnsubscribe(subscriber_));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&second, note, &seen));
}

}  // namespace
