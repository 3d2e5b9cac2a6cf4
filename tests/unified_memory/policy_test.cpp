// SPDX-License-Identifier: Apache-2.0
// Prefetching, advice, and what a range says of itself.
#include "kernels.h"

namespace um {
namespace {

class Policy : public UnifiedMemory {
 protected:
  static CUdeviceptr at(char* p) { return reinterpret_cast<CUdeviceptr>(p); }
  static CUmemLocation cpu() { return {CU_MEM_LOCATION_TYPE_HOST, {0}}; }
  static CUmemLocation gpu() { return {CU_MEM_LOCATION_TYPE_DEVICE, {0}}; }
  void prefetch(char* p, size_t bytes, CUmemLocation to) {
    ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync_v2(at(p), bytes, to, 0, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  }
  int attribute(char* p, size_t bytes, CUmem_range_attribute which) {
    int value = 1234;
    EXPECT_EQ(CUDA_SUCCESS, cuMemRangeGetAttribute(&value, sizeof value, which, at(p), bytes));
    return value;
  }
};

TEST_F(Policy, PrefetchMovesAndNothingFaults) {
  char* p = managed(4 * kMiB);
  fill(p, 4 * kMiB, 1);
  forget();
  prefetch(p, 4 * kMiB, gpu());
  deviceFill(p, 4 * kMiB, 2);
  prefetch(p, 4 * kMiB, cpu());
  for (size_t i = 0; i < 4 * kMiB; i += kPage) ASSERT_EQ(2, load(p + i));
  EXPECT_TRUE(records(kCpuFault).empty());
  EXPECT_TRUE(records(kGpuFault).empty());
  for (uint32_t kind : {kHtoD, kDtoH}) {
    const auto found = records(kind);
    ASSERT_EQ(2u, found.size());  // blocks of 2 MiB
    for (const Counter& r : found) {
      EXPECT_EQ(2 * kMiB, r.value);
      EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER}, r.flags);
    }
  }
  EXPECT_EQ(CU_DEVICE_CPU, attribute(p, kPage, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION));
}

TEST_F(Policy, ReadMostlyPagesAreDuplicatedUntilWritten) {
  char* p = managed(kPage);
  store(p, 9);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, cpu()));
  EXPECT_EQ(1, attribute(p, kPage, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY));
  forget();
  std::vector<char> host(kPage);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(host.data(), at(p), kPage));
  EXPECT_EQ(9, host[0]);
  EXPECT_EQ(9, load(p));  // still here as well
  EXPECT_EQ(1u, records(kHtoD).size());
  EXPECT_TRUE(records(kCpuFault).empty());
  store(p, 10);  // ends the duplicate, without a transfer
  EXPECT_EQ(1u, records(kCpuFault).size());
  EXPECT_TRUE(records(kDtoH).empty());
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(host.data(), at(p), kPage));
  EXPECT_EQ(10, host[0]);
  EXPECT_EQ(2u, records(kHtoD).size());
}

TEST_F(Policy, PreferredLocationCpuIsMappedByTheDevice) {
  char* p = managed(kPage);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, cpu()));
  EXPECT_EQ(CU_DEVICE_CPU, attribute(p, kPage, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION));
  store(p, 1);
  deviceFill(p, kPage, 2);
  EXPECT_EQ(2, load(p));
  EXPECT_TRUE(records(kHtoD).empty());
  const auto maps = records(kRemoteMap);
  ASSERT_EQ(1u, maps.size());
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_POLICY}, maps[0].flags);
}

TEST_F(Policy, LocationsHaveATypeAndAnId) {
  char* p = managed(16 * kPage);
  const auto is = [&](size_t bytes, CUmem_range_attribute type, CUmem_range_attribute id, int wantType, int wantId) {
    EXPECT_EQ(wantType, attribute(p, bytes, type));
    const int found = attribute(p, bytes, id);
    EXPECT_TRUE(wantType != CU_MEM_LOCATION_TYPE_DEVICE || wantId == found) << found;
  };
  const auto preferred = [&](size_t bytes, int type) {
    is(bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, type, 0);
  };
  const auto prefetched = [&](size_t bytes, int type) {
    is(bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID,
       type, 0);
  };
  preferred(16 * kPage, CU_MEM_LOCATION_TYPE_INVALID);
  prefetched(16 * kPage, CU_MEM_LOCATION_TYPE_INVALID);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), 16 * kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, cpu()));
  prefetch(p, 16 * kPage, gpu());
  preferred(16 * kPage, CU_MEM_LOCATION_TYPE_HOST);
  prefetched(16 * kPage, CU_MEM_LOCATION_TYPE_DEVICE);
  // One half of it elsewhere: the whole is in no one place.
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), 8 * kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu()));
  prefetch(p, 8 * kPage, cpu());
  preferred(8 * kPage, CU_MEM_LOCATION_TYPE_DEVICE);
  preferred(16 * kPage, CU_MEM_LOCATION_TYPE_INVALID);
  prefetched(8 * kPage, CU_MEM_LOCATION_TYPE_HOST);
  prefetched(16 * kPage, CU_MEM_LOCATION_TYPE_INVALID);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), 16 * kPage, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, {}));
  preferred(8 * kPage, CU_MEM_LOCATION_TYPE_INVALID);
}

TEST_F(Policy, WhatIsNoPlaceIsRefused) {
  char* p = managed(kPage);
  const CUmemLocation nowhere = {CU_MEM_LOCATION_TYPE_INVALID, {0}}, device = {CU_MEM_LOCATION_TYPE_DEVICE, {99}},
                      node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, {0}}, noNode = {CU_MEM_LOCATION_TYPE_HOST_NUMA, {7777}};
  for (const CUmemLocation& l : {nowhere, device, noNode}) {
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, l));
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, l));
    EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync_v2(at(p), kPage, l, 0, nullptr));
    EXPECT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_UNSET_READ_MOSTLY, l));  // not looked at
  }
  EXPECT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, node));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(at(p), kPage, gpu(), 1, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(at(p), 0, gpu(), 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(at(p), 0, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu()));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(at(p), 64 * kMiB, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu()));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(at(p), kPage, static_cast<CUmem_advise>(7), gpu()));
}

// As on a card: one fault of the CPU brings all 64 KiB, one of the device takes them back.
TEST_F(Policy, PreferredLocationGpuDoesNotHoldPagesAgainstTheCpu) {
  constexpr size_t kBytes = 16 * kPage;
  char* p = managed(kBytes);
  fill(p, kBytes, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kBytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu()));
  EXPECT_EQ(0, attribute(p, kBytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION));
  deviceFill(p, kBytes, 2);
  forget();
  for (size_t i = 0; i < kBytes; i += kPage) ASSERT_EQ(2, load(p + i));
  EXPECT_EQ(1u, records(kCpuFault).size());
  uint64_t down = 0;
  for (const Counter& r : records(kDtoH)) down += r.value;
  EXPECT_EQ(kBytes, down);
  EXPECT_TRUE(records(kThrashing).empty());
  forget();
  deviceFill(p, kBytes, 3);
  EXPECT_EQ(1u, records(kGpuFault).size());
  uint64_t up = 0;
  for (const Counter& r : records(kHtoD)) up += r.value;
  EXPECT_EQ(kBytes, up);
}

// Pageable memory is not for kernels, and everything says so.
TEST_F(Policy, PageableMemoryIsRefused) {
  for (CUdevice_attribute which :
       {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST}) {
    int value = -1;
    ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&value, which, 0));
    EXPECT_EQ(0, value) << which;
  }
  std::vector<char> own(4 * kPage, 1);
  char* p = own.data();
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, cpu()));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(at(p), kPage, gpu(), 0, nullptr));
  int value = 1234;
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, at(p), kPage));
  EXPECT_EQ(1234, value);
  Worker worker;
  worker.launch(p, 1, 1);
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  EXPECT_EQ(1, own[0]);
}

TEST_F(Policy, AccessedByKeepsAMapping) {
  char* p = managed(kPage);
  store(p, 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at(p), kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu()));
  EXPECT_EQ(0, attribute(p, kPage, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY));
  deviceFill(p, kPage, 2);
  EXPECT_EQ(2, load(p));
  EXPECT_TRUE(records(kGpuFault).empty());
  EXPECT_TRUE(records(kHtoD).empty());
}

TEST_F(Policy, OversubscriptionEvictsWhatWasUsedLongestAgo) {
  size_t free = 0, total = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemGetInfo(&free, &total));
  CUdeviceptr filler = 0;  // leaves 4 MiB of the device
  ASSERT_EQ(CUDA_SUCCESS, cuMemAlloc(&filler, free - 4 * kMiB));
  char* p = managed(6 * kMiB);
  fill(p, 6 * kMiB, 1);
  forget();
  deviceFill(p, 6 * kMiB, 2);
  uint64_t evicted = 0;
  for (const Counter& r : records(kDtoH)) {
    EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION}, r.flags);
    EXPECT_LT(r.address, reinterpret_cast<uint64_t>(p) + 2 * kMiB);  // the first block
    evicted += r.value;
  }
  EXPECT_EQ(2 * kMiB, evicted);
  for (size_t i = 0; i < 6 * kMiB; i += kPage) ASSERT_EQ(2, load(p + i));
}

}  // namespace
}  // namespace um
