// SPDX-License-Identifier: Apache-2.0
// The runtime reports its calls through the driver's tools interface.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "platform/tools_api.h"
#include "tests/runtime/fat_binary.h"

namespace sonde::test {
namespace {

constexpr uint32_t kCudaMalloc = 20, kCudaFree = 22, kCudaLaunchKernel = 211, kCudaMemcpyPtds = 215;

struct Seen {
  std::string what, symbol;
  uint32_t domain, cbid, correlation, nested;
  int result;
};

struct Recorder {
  std::vector<Seen> calls;
  static void enter(void* self, SondeApiCall* call) { static_cast<Recorder*>(self)->add("enter", call); }
  static void exit(void* self, SondeApiCall* call) { static_cast<Recorder*>(self)->add("exit", call); }
  void add(const char* when, SondeApiCall* call) {
    calls.push_back({std::string(when) + " " + call->functionName, call->symbolName ? call->symbolName : "",
                     call->domain, call->cbid, call->correlationId, call->nested,
                     call->returnValue ? *static_cast<int*>(call->returnValue) : -1});
    if (call->cbid == kCudaMalloc && call->domain == SONDE_DOMAIN_RUNTIME) {
      struct Params {
        void** devPtr;
        size_t size;
      };
      size = static_cast<const Params*>(call->params)->size;
    }
  }
  size_t size = 0;
};

class Callbacks : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_NE(driver, nullptr);
    auto get = reinterpret_cast<SondeToolsGetPlatformFn>(dlsym(driver, SONDE_TOOLS_GET_PLATFORM_SYMBOL));
    if (!get) GTEST_SKIP() << "this driver has no tools interface";
    platform_ = get(SONDE_TOOLS_ABI_VERSION);
    ASSERT_NE(platform_, nullptr);
    listener_.size = sizeof listener_;
    listener_.self = &recorder_;
    listener_.apiEnter = Recorder::enter;
    listener_.apiExit = Recorder::exit;
    ASSERT_EQ(platform_->attach(&listener_), 0);
    runtime_ = platform_->enabledCallbacks(SONDE_DOMAIN_RUNTIME, &count_);
    ASSERT_GT(count_, 500u);
  }
  void TearDown() override {
    if (!platform_) return;
    for (uint32_t i = 0; i < count_; ++i) runtime_[i] = 0;
    platform_->detach();
  }
  const SondePlatform* platform_ = nullptr;
  volatile uint8_t* runtime_ = nullptr;
  uint32_t count_ = 0;
  SondeListener listener_{};  // lives while it is attached
  Recorder recorder_;
};

TEST_F(Callbacks, EnterAndExitOfTheEnabledFunctionOnly) {
  runtime_[kCudaMalloc] = 1;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 256), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_EQ(recorder_.calls.size(), 2u);
  EXPECT_EQ(recorder_.calls[0].what, "enter cudaMalloc");
  EXPECT_EQ(recorder_.calls[1].what, "exit cudaMalloc");
  EXPECT_EQ(recorder_.calls[0].cbid, kCudaMalloc);
  EXPECT_EQ(recorder_.calls[1].result, 0);
  EXPECT_NE(recorder_.calls[0].correlation, 0u);
  EXPECT_EQ(recorder_.calls[0].correlation, recorder_.calls[1].correlation);
  EXPECT_EQ(recorder_.size, 256u);
}

TEST_F(Callbacks, DriverCallsInsideShareTheCorrelation) {
  uint32_t driverCount = 0;
  volatile uint8_t* driver = platform_->enabledCallbacks(SONDE_DOMAIN_DRIVER, &driverCount);
  for (uint32_t i = 0; i < driverCount; ++i) driver[i] = 1;
  runtime_[kCudaMalloc] = 1;
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 256), cudaSuccess);
  for (uint32_t i = 0; i < driverCount; ++i) driver[i] = 0;
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  ASSERT_GE(recorder_.calls.size(), 4u);
  EXPECT_EQ(recorder_.calls.front().what, "enter cudaMalloc");
  EXPECT_EQ(recorder_.calls.back().what, "exit cudaMalloc");
  bool allocated = false;
  for (const Seen& call : recorder_.calls) {
    EXPECT_EQ(call.correlation, recorder_.calls.front().correlation) << call.what;
    if (call.domain == SONDE_DOMAIN_DRIVER) {
      EXPECT_EQ(call.nested, 1u) << call.what;
      allocated = allocated || call.what.find("cuMemAlloc") != std::string::npos;
    }
  }
  EXPECT_TRUE(allocated);
}

TEST_F(Callbacks, FailuresAndVariantsAreReportedAsThemselves) {
  runtime_[kCudaFree] = 1;
  runtime_[kCudaMemcpyPtds] = 1;
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(0x10)), cudaErrorInvalidValue);
  ASSERT_EQ(recorder_.calls.size(), 2u);
  EXPECT_EQ(recorder_.calls[1].result, cudaErrorInvalidValue);
  auto memcpyPtds = reinterpret_cast<cudaError_t (*)(void*, const void*, size_t, cudaMemcpyKind)>(
      dlsym(RTLD_DEFAULT, "cudaMemcpy_ptds"));
  ASSERT_NE(memcpyPtds, nullptr);
  int from = 5, to = 0;
  EXPECT_EQ(memcpyPtds(&to, &from, sizeof to, cudaMemcpyHostToHost), cudaSuccess);
  EXPECT_EQ(to, 5);
  ASSERT_EQ(recorder_.calls.size(), 4u);
  EXPECT_EQ(recorder_.calls[2].cbid, kCudaMemcpyPtds);
}

TEST_F(Callbacks, LaunchesNameTheirKernel) {
  char stub = 0;
  FatBinary binary(R"(
.version 6.4
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
)");
  binary.kernel(&stub, "nothing");
  runtime_[kCudaLaunchKernel] = 1;
  cudaKernel_t kernel = nullptr;
  ASSERT_EQ(__cudaGetKernel(&kernel, &stub), cudaSuccess);
  ASSERT_EQ(__cudaLaunchKernel(kernel, dim3(1), dim3(1), nullptr, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(recorder_.calls.size(), 2u);
  EXPECT_EQ(recorder_.calls[0].what, "enter cudaLaunchKernel");
  EXPECT_EQ(recorder_.calls[0].symbol, "nothing");
}

}  // namespace
}  // namespace sonde::test
