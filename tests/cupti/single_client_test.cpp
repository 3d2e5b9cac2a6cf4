// SPDX-License-Identifier: Apache-2.0
// SONDE_SINGLE_CLIENT=1: every object in the process is the same client, as
// with the vendor's library; and SONDE_RECORD_LAYOUT for binaries that cannot
// be rebuilt. Both are set by the build.
#include <cstdlib>

#include "core/fake_driver.h"
#include "cupti/collector.h"
#include "cupti/plugin.h"

using testing_support::Collector;
using testing_support::Plugin;

namespace {

class SingleClient : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("SONDE_SINGLE_CLIENT") == nullptr) GTEST_SKIP() << "SONDE_SINGLE_CLIENT is not set";
  }
  void TearDown() override { cuptiFinalize(); }
};

TEST_F(SingleClient, ASecondSubscriberIsRefusedWhoeverAsks) {
  Plugin plugin(PLUGIN_A);
  CUpti_SubscriberHandle subscriber;
  ASSERT_EQ(CUPTI_SUCCESS,
            cuptiSubscribe(&subscriber, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr));
  EXPECT_EQ(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
            plugin.call("pluginSubscribe", uint32_t{CUPTI_CB_DOMAIN_RUNTIME_API}, uint32_t{20}));
}

TEST_F(SingleClient, LayoutsFromTheEnvironment) {
  Collector& collector = Collector::instance();
  collector.start();
  SondeHandle context = fake::createContext();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DEVICE));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  fake::call(SONDE_DOMAIN_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 0,
             [&] { fake::enqueue(context, nullptr, SONDE_WORK_KERNEL, [](SondeWork& w) { w.gridId = 31; }); });
  fake::waitWork();
  collector.flush();
  const auto kernels = collector.records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, kernels.size());
  EXPECT_EQ(sizeof(CUpti_ActivityKernel4), kernels[0].words.size() * 8);
  EXPECT_EQ(31, kernels[0].as<CUpti_ActivityKernel4>().gridId);
  const auto devices = collector.records(CUPTI_ACTIVITY_KIND_DEVICE);
  ASSERT_EQ(1u, devices.size());
  EXPECT_EQ(sizeof(CUpti_ActivityDevice), devices[0].words.size() * 8);
  EXPECT_STREQ("Fake GPU", devices[0].as<CUpti_ActivityDevice>().name);
  EXPECT_EQ(1u, collector.records(CUPTI_ACTIVITY_KIND_RUNTIME).size());
  fake::destroyContext(context);
}

}  // namespace
