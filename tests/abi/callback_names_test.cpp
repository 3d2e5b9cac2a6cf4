// SPDX-License-Identifier: Apache-2.0
// Callback ids and names: numbers known from CUPTI's public headers, the
// agreement with the headers' enumerations, and with the vendor's library where
// it is installed.
#include "core/generated/callback_names.h"

#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

namespace sonde::core {
namespace {

constexpr uint32_t kDriver = CUPTI_CB_DOMAIN_DRIVER_API;
constexpr uint32_t kRuntime = CUPTI_CB_DOMAIN_RUNTIME_API;

TEST(CallbackNames, KnownIds) {
  EXPECT_STREQ(callbackName(kDriver, 1)->name, "cuInit");
  EXPECT_STREQ(callbackName(kDriver, 307)->name, "cuLaunchKernel");
  EXPECT_STREQ(callbackName(kDriver, 243)->name, "cuMemAlloc_v2");
  EXPECT_STREQ(callbackName(kRuntime, 20)->name, "cudaMalloc_v3020");
  EXPECT_STREQ(callbackName(kRuntime, 20)->functionName, "cudaMalloc");
  EXPECT_STREQ(callbackName(kRuntime, 13)->name, "cudaLaunch_v3020");
  EXPECT_STREQ(callbackName(kRuntime, 211)->name, "cudaLaunchKernel_v7000");
  EXPECT_STREQ(callbackName(kRuntime, 214)->functionName, "cudaLaunchKernel_ptsz");
  EXPECT_STREQ(nvtxName(8), "nvtxRangePushA");
}

TEST(CallbackNames, IdsAreThoseOfTheHeaders) {
  EXPECT_EQ(kDriverCbidCount, uint32_t{CUPTI_DRIVER_TRACE_CBID_SIZE});
  EXPECT_EQ(kRuntimeCbidCount, uint32_t{CUPTI_RUNTIME_TRACE_CBID_SIZE});
  EXPECT_EQ(kNvtxCbidCount, uint32_t{CUPTI_CBID_NVTX_SIZE});
  EXPECT_STREQ(callbackName(kRuntime, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_ptsz_v10000)->name,
               "cudaGraphLaunch_ptsz_v10000");
}

TEST(CallbackNames, OutOfRange) {
  EXPECT_STREQ(callbackName(kDriver, 0)->name, "INVALID");
  EXPECT_EQ(callbackName(kDriver, kDriverCbidCount), nullptr);
  EXPECT_EQ(callbackName(kRuntime, kRuntimeCbidCount), nullptr);
  EXPECT_EQ(callbackName(CUPTI_CB_DOMAIN_INVALID, 1), nullptr);
  EXPECT_EQ(callbackName(CUPTI_CB_DOMAIN_RESOURCE, 1), nullptr);
  EXPECT_EQ(callbackName(0xffffffffu, 1), nullptr);
  EXPECT_EQ(nvtxName(kNvtxCbidCount), nullptr);
}

TEST(CallbackNames, LaunchesAreMarked) {
  EXPECT_TRUE(callbackName(kDriver, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)->launch);
  EXPECT_TRUE(callbackName(kDriver, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz)->launch);
  EXPECT_TRUE(callbackName(kRuntime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060)->launch);
  EXPECT_FALSE(callbackName(kDriver, CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc)->launch);
  EXPECT_FALSE(callbackName(kRuntime, CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000)->launch);
}

TEST(CallbackNames, FindByFunction) {
  EXPECT_EQ(findCallbackId(kDriver, "cuMemAlloc_v2"), 243u);
  EXPECT_EQ(findCallbackId(kDriver, "cuMemAlloc"), 29u);
  EXPECT_EQ(findCallbackId(kRuntime, "cudaMalloc"), 20u);
  // Several ids: that of CUDA 13.0.
  EXPECT_EQ(findCallbackId(kRuntime, "cudaMemcpyBatchAsync"),
            uint32_t{CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyBatchAsync_v13000});
  EXPECT_EQ(findCallbackId(kRuntime, "cudaNoSuchThing"), 0u);
  EXPECT_EQ(findCallbackId(kDriver, ""), 0u);
  EXPECT_EQ(findCallbackId(9, "cuInit"), 0u);
  for (uint32_t cbid = 1; cbid < kDriverCbidCount; ++cbid) {
    EXPECT_EQ(findCallbackId(kDriver, callbackName(kDriver, cbid)->functionName), cbid);
  }
}

TEST(CallbackNames, AgreeWithTheVendorsLibrary) {
  void* library = dlopen(SONDE_VENDOR_CUPTI, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) GTEST_SKIP() << SONDE_VENDOR_CUPTI << " is not installed";
  using Name = CUptiResult (*)(CUpti_CallbackDomain, uint32_t, const char**);
  using Version = CUptiResult (*)(uint32_t*);
  auto name = reinterpret_cast<Name>(dlsym(library, "cuptiGetCallbackName"));
  auto version = reinterpret_cast<Version>(dlsym(library, "cuptiGetVersion"));
  ASSERT_NE(name, nullptr);
  uint32_t number = 0;
  ASSERT_EQ(version(&number), CUPTI_SUCCESS);
  if (number / 100 != 1300) GTEST_SKIP() << "it is of version " << number << ", not 13.0";
  for (CUpti_CallbackDomain domain : {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API}) {
    for (uint32_t cbid = 0; cbid < 1000; ++cbid) {
      const char* theirs = nullptr;
      const CallbackName* ours = callbackName(domain, cbid);
      if (name(domain, cbid, &theirs) != CUPTI_SUCCESS) {
        EXPECT_EQ(ours, nullptr) << domain << " " << cbid;
      } else {
        ASSERT_NE(ours, nullptr) << domain << " " << cbid;
        EXPECT_STREQ(ours->name, theirs);
      }
    }
  }
}

}  // namespace
}  // namespace sonde::core
