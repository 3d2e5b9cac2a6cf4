// SPDX-License-Identifier: Apache-2.0
//
// A runtime that is linked into the program, with the software driver in the
// place of the vendor's. NO_SYMBOLS=1: the program was stripped.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

std::mutex mutex;
std::map<std::string, int> calls;

void requested(uint8_t** buffer, size_t* size, size_t* maximum) {
  *size = 1 << 20;
  *maximum = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* r = nullptr;
  std::lock_guard lock(mutex);
  while (cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS) {
    if (r->kind != CUPTI_ACTIVITY_KIND_RUNTIME && r->kind != CUPTI_ACTIVITY_KIND_DRIVER) continue;
    const bool runtime = r->kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    const char* name = "?";
    cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
                         reinterpret_cast<CUpti_ActivityAPI*>(r)->cbid, &name);
    ++calls[name];
  }
  std::free(buffer);
}

TEST(StaticRuntime, IsHookedByTheSymbolTable) {
  const bool symbols = std::getenv("NO_SYMBOLS") == nullptr;
  ASSERT_EQ(cudaSuccess, cudaFree(nullptr));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(requested, completed));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
  void* memory = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 1000));
  ASSERT_EQ(cudaSuccess, cudaMemset(memory, 0, 1000));
  ASSERT_EQ(cudaSuccess, cudaFree(memory));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  {
    std::lock_guard lock(mutex);
    // A driver call by a runtime call is recorded by itself only where that one is not seen.
    EXPECT_EQ(symbols ? 1 : 0, calls["cudaMalloc_v3020"]);
    EXPECT_EQ(symbols ? 1 : 0, calls["cudaMemset_v3020"]);
    EXPECT_EQ(symbols ? 1 : 0, calls["cudaFree_v3020"]);
    EXPECT_EQ(symbols ? 0 : 1, calls["cuMemAlloc_v2"]);
    EXPECT_EQ(symbols ? 0 : 1, calls["cuMemFree_v2"]);
  }
  EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
}

}  // namespace
