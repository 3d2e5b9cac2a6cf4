// SPDX-License-Identifier: Apache-2.0
//
// The call that was under way when the library came, with the software driver in
// the place of the vendor's.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

// The runtime finds the driver that the test is linked with.
[[gnu::used]] CUresult (*const driver)(unsigned) = &cuInit;

TEST(Injected, TheFirstCallIsRecordedOnceAndTheNextOnesAsEver) {
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&first, 1000));  // loads the driver, and that the library
  ASSERT_EQ(cudaSuccess, cudaMalloc(&second, 2000));
  ASSERT_EQ(cudaSuccess, cudaFree(first));
  void* library = dlopen(INJECTED, RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(nullptr, library);
  auto* recorded = reinterpret_cast<const CUpti_ActivityAPI* (*)(size_t*)>(dlsym(library, "recordedCalls"));
  ASSERT_NE(nullptr, recorded);
  size_t count = 0;
  const CUpti_ActivityAPI* calls = recorded(&count);
  std::vector<CUpti_ActivityAPI> runtime;
  unsigned allocations = 0;
  for (size_t i = 0; i < count; ++i) {
    if (calls[i].kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
      runtime.push_back(calls[i]);
    } else {
      allocations += calls[i].cbid == CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2;
    }
  }
  EXPECT_EQ(0u, allocations);  // made by runtime calls, which are recorded instead
  ASSERT_EQ(3u, runtime.size());
  EXPECT_EQ(CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, runtime[0].cbid);
  EXPECT_EQ(CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020, runtime[1].cbid);
  EXPECT_EQ(CUPTI_RUNTIME_TRACE_CBID_cudaFree_v3020, runtime[2].cbid);
  EXPECT_LT(runtime[0].start, runtime[0].end);
  EXPECT_LE(runtime[0].end, runtime[1].start);
  EXPECT_LT(runtime[0].correlationId, runtime[1].correlationId);
}

}  // namespace
