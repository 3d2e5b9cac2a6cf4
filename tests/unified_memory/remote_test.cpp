// SPDX-License-Identifier: Apache-2.0
// Mapping pages where they are, and the migrations that follow from touching
// them often. SONDE_ACCESS_COUNTERS is 32 here.
#include "um.h"

namespace um {
namespace {

class Remote : public UnifiedMemory {
 protected:
  static CUdeviceptr at(char* p) { return reinterpret_cast<CUdeviceptr>(p); }
  static CUmemLocation cpu() { return {CU_MEM_LOCATION_TYPE_HOST, {0}}; }
  static CUmemLocation gpu() { return {CU_MEM_LOCATION_TYPE_DEVICE, {0}}; }
  // Leaves `bytes` of the device for managed memory.
  CUdeviceptr leave(size_t bytes) {
    size_t free = 0, total = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemGetInfo(&free, &total));
    CUdeviceptr filler = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemAlloc(&filler, free - bytes));
    return filler;
  }
};

TEST_F(Remote, AccessCountersBringWhatIsTouchedOften) {
  char* p = managed(16 * kPage);
  fill(p, 16 * kPage, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), 16 * kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  forget();
  deviceFill(p, 16 * kPage, 2);  // 16 touches
  deviceFill(p, 15 * kPage, 3);  // 31
  EXPECT_TRUE(records().empty());
  deviceFill(p, kPage, 4);  // 32
  const auto up = records(kHtoD);
  ASSERT_EQ(1u, up.size());
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_ACCESS_COUNTERS}, up[0].flags);
  EXPECT_EQ(16 * kPage, up[0].value);
  EXPECT_EQ(at(p), up[0].address);
  EXPECT_EQ(0u, up[0].dstId);
  EXPECT_TRUE(records(kGpuFault).empty());
  forget();
  deviceFill(p, 16 * kPage, 5);  // is there now
  EXPECT_TRUE(records().empty());
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(5, load(p + i * kPage));
}

TEST_F(Remote, OneKernelCountsAPageOnce) {
  char* p = managed(kPage);
  store(p, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  forget();
  for (int i = 0; i < 31; ++i) deviceFill(p, kPage, 2);
  EXPECT_TRUE(records(kHtoD).empty());
  deviceFill(p, kPage, 2);
  EXPECT_EQ(1u, records(kHtoD).size());
}

TEST_F(Remote, APreferredLocationHoldsAgainstAccessCounters) {
  char* p = managed(kPage);
  store(p, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, cpu()));
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  for (int i = 0; i < 100; ++i) deviceFill(p, kPage, 2);
  EXPECT_TRUE(records(kHtoD).empty());
  EXPECT_EQ(2, load(p));
}

TEST_F(Remote, UMC_004_011_017_020_026_AMapOfPolicy) {
  char* p = managed(4 * kPage);
  fill(p, 4 * kPage, 1);
  forget();
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), 3 * kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  const auto maps = records(kRemoteMap);
  ASSERT_EQ(1u, maps.size());
  EXPECT_EQ(3 * kPage, maps[0].value);
  EXPECT_EQ(at(p), maps[0].address);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_POLICY}, maps[0].flags);
  EXPECT_EQ(0u, maps[0].end);
  EXPECT_EQ(0u, maps[0].srcId);
  EXPECT_EQ(kCpuId, maps[0].dstId);
}

TEST_F(Remote, APageThatComesBackIsMappedAnew) {
  char* p = managed(kPage);
  store(p, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync_v2(at(p), kPage, gpu(), 0, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  forget();
  store(p, 2);  // fault, transfer, map
  ASSERT_EQ(1u, records(kRemoteMap).size());
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_POLICY}, records(kRemoteMap)[0].flags);
  forget();
  deviceFill(p, kPage, 3);
  EXPECT_TRUE(records().empty());
}

// The faulting page and what comes along are two transfers and one map, as on a card.
TEST_F(Remote, WhatComesBackTogetherIsOneMap) {
  char* p = managed(16 * kPage);
  fill(p, 16 * kPage, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), 16 * kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync_v2(at(p), 16 * kPage, gpu(), 0, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  forget();
  store(p + 5, 2);
  const auto down = records(kDtoH), maps = records(kRemoteMap);
  ASSERT_EQ(2u, down.size());
  EXPECT_EQ(kPage, down[0].value);
  EXPECT_EQ(15 * kPage, down[1].value);
  ASSERT_EQ(1u, maps.size());
  EXPECT_EQ(16 * kPage, maps[0].value);
  EXPECT_EQ(at(p), maps[0].address);
  EXPECT_GE(maps[0].start, down[1].end - 1);
}

TEST_F(Remote, WhatIsEvictedIsMappedForThoseThatUseIt) {
  const CUdeviceptr filler = leave(4 * kMiB);
  char* p = managed(6 * kMiB);
  fill(p, 6 * kMiB, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), 2 * kMiB, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync_v2(at(p), 2 * kMiB, gpu(), 0, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  forget();
  deviceFill(p + 2 * kMiB, 4 * kMiB, 2);  // the first block must go
  const auto maps = records(kRemoteMap);
  ASSERT_EQ(1u, maps.size());
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_EVICTION}, maps[0].flags);
  EXPECT_EQ(at(p), maps[0].address);
  EXPECT_EQ(2 * kMiB, maps[0].value);
  const auto down = records(kDtoH);
  ASSERT_EQ(1u, down.size());
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION}, down[0].flags);
  EXPECT_EQ(2 * kMiB, down[0].value);
  EXPECT_EQ(1, load(p));
  cuMemFree(filler);
}

TEST_F(Remote, WithoutRoomTheDeviceReachesOver) {
  const CUdeviceptr filler = leave(0);
  char* p = managed(kMiB);
  fill(p, kMiB, 1);
  forget();
  deviceFill(p, kMiB, 2);
  uint64_t mapped = 0;
  for (const Counter& r : records(kRemoteMap)) {
    EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_OUT_OF_MEMORY}, r.flags);
    mapped += r.value;
  }
  EXPECT_EQ(kMiB, mapped);
  EXPECT_TRUE(records(kHtoD).empty());
  EXPECT_TRUE(records(kDtoH).empty());
  for (size_t i = 0; i < kMiB; i += kPage) ASSERT_EQ(2, load(p + i));
  cuMemFree(filler);
}

}  // namespace
}  // namespace um
