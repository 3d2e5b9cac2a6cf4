// SPDX-License-Identifier: Apache-2.0
// Two devices and one allocation.
#include <map>
#include <set>

#include "um.h"

namespace um {
namespace {

class Devices : public UnifiedMemory {
 protected:
  void SetUp() override {
    UnifiedMemory::SetUp();
    int count = 0;
    ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetCount(&count));
    ASSERT_EQ(2, count);
    ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v4(&second_, nullptr, 0, 1));
  }
  void TearDown() override {
    if (second_) cuCtxDestroy(second_);
    UnifiedMemory::TearDown();
  }
  void fillOn(CUcontext context, char* p, size_t bytes, unsigned char value) {
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context));
    deviceFill(p, bytes, value);
  }
  CUcontext second_ = nullptr;
};

TEST_F(Devices, PagesMoveFromDeviceToDevice) {
  char* p = managed(kPage);
  fillOn(context_, p, kPage, 1);
  fillOn(second_, p, kPage, 2);
  const auto moves = records(kDtoD);
  ASSERT_EQ(1u, moves.size());
  EXPECT_EQ(kPage, moves[0].value);
  EXPECT_EQ(0u, moves[0].srcId);
  EXPECT_EQ(1u, moves[0].dstId);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE}, moves[0].flags);
  EXPECT_TRUE(records(kHtoD).empty());
  EXPECT_EQ(2, load(p));
  ASSERT_EQ(1u, records(kDtoH).size());
  EXPECT_EQ(1u, records(kDtoH)[0].srcId);
}

// Device 1 does it all, so that no id is right by chance.
TEST_F(Devices, UMC_017_018_019_020_021_027_030_IdsOfEveryKind) {
  char* p = managed(kPage);
  store(p, 1);
  for (int i = 0; i < 12; ++i) {  // until it is pinned and mapped
    fillOn(second_, p, kPage, 2);
    store(p, 3);
  }
  struct Expected {
    uint32_t source, destination;
  };
  const std::map<uint32_t, Expected> byKind = {{kCpuFault, {0, 0}},  {kHtoD, {0, 1}},      {kDtoH, {1, 0}},
                                               {kGpuFault, {1, 0}},  {kThrashing, {2, 0}}, {kRemoteMap, {1, kCpuId}},
                                               {kThrottling, {1, 0}}};
  std::set<uint32_t> seen;
  bool held[2] = {};
  for (const Counter& r : records()) {
    const uint32_t kind = r.counterKind;
    seen.insert(kind);
    const auto expected = byKind.find(kind);
    ASSERT_NE(byKind.end(), expected) << kind;
    const bool cpu = kind == kThrottling && r.flags == CUPTI_ACTIVITY_FLAG_THROTTLING_IN_CPU;
    EXPECT_EQ(cpu ? kCpuId : expected->second.source, r.srcId) << kind;
    EXPECT_EQ(expected->second.destination, r.dstId) << kind;
    EXPECT_EQ(kind == kThrashing ? 2u : 0u, r.processors[0]) << kind;
    if (kind == kThrottling) held[cpu] = true;
    EXPECT_EQ(CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU, kind == kThrashing ? r.flags : 1u);
  }
  EXPECT_EQ(byKind.size(), seen.size());
  EXPECT_TRUE(held[0] && held[1]);
}

// A map that the other device asked for is not one of this device.
TEST_F(Devices, ARemoteMapIsOfTheDeviceThatMaps) {
  char* p = managed(kPage);
  store(p, 1);
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  auto c = config(kRemoteMap, 0, 0);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));  // of device 1 alone
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at, kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, {CU_MEM_LOCATION_TYPE_DEVICE, {0}}));
  EXPECT_TRUE(records(kRemoteMap).empty());
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at, kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, {CU_MEM_LOCATION_TYPE_DEVICE, {1}}));
  EXPECT_EQ(1u, records(kRemoteMap).size());
}

TEST_F(Devices, UMC_018_030_ThrashingNamesAllContenders) {
  char* p = managed(kPage);
  for (int i = 0; i < 4; ++i) {
    fillOn(context_, p, kPage, 1);
    fillOn(second_, p, kPage, 2);
  }
  const auto found = records(kThrashing);
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ(3u, found[0].srcId);  // bits 0 and 1
  EXPECT_EQ(3u, found[0].processors[0]);
  EXPECT_EQ(0u, found[0].flags);  // the CPU has no part in it
}

TEST_F(Devices, OneDeviceMapsWhatIsWithTheOther) {
  char* p = managed(kPage);
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  fillOn(context_, p, kPage, 1);
  forget();
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at, kPage, CU_MEM_ADVISE_SET_ACCESSED_BY, {CU_MEM_LOCATION_TYPE_DEVICE, {1}}));
  const auto maps = records(kRemoteMap);
  ASSERT_EQ(1u, maps.size());
  EXPECT_EQ(1u, maps[0].srcId);  // who maps
  EXPECT_EQ(0u, maps[0].dstId);  // who has the memory
  EXPECT_EQ(kPage, maps[0].value);
  forget();
  fillOn(second_, p, kPage, 2);
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(2, load(p));
  ASSERT_EQ(1u, records(kDtoH).size());
  EXPECT_EQ(0u, records(kDtoH)[0].srcId);
}

TEST_F(Devices, APreferredDeviceKeepsItsPages) {
  char* p = managed(kPage);
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  store(p, 1);
  ASSERT_EQ(CUDA_SUCCESS,
            cuMemAdvise_v2(at, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {CU_MEM_LOCATION_TYPE_DEVICE, {1}}));
  forget();
  fillOn(context_, p, kPage, 2);  // device 0 faults; the page goes to device 1 and is mapped
  ASSERT_EQ(1u, records(kGpuFault).size());
  EXPECT_EQ(0u, records(kGpuFault)[0].srcId);
  ASSERT_EQ(1u, records(kHtoD).size());
  EXPECT_EQ(1u, records(kHtoD)[0].dstId);
  ASSERT_EQ(1u, records(kRemoteMap).size());
  EXPECT_EQ(0u, records(kRemoteMap)[0].srcId);
  EXPECT_EQ(1u, records(kRemoteMap)[0].dstId);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_POLICY}, records(kRemoteMap)[0].flags);
  forget();
  fillOn(second_, p, kPage, 3);  // its own
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(3, load(p));
}

TEST_F(Devices, ReadMostlyPagesAreWithBothDevices) {
  char* p = managed(kPage);
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  store(p, 9);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, {}));
  forget();
  char byte = 0;
  for (CUcontext context : {context_, second_, context_, second_}) {
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context));
    ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(&byte, at, 1));
    EXPECT_EQ(9, byte);
  }
  const auto up = records(kHtoD);
  ASSERT_EQ(2u, up.size());
  EXPECT_EQ(0u, up[0].dstId);
  EXPECT_EQ(1u, up[1].dstId);
  forget();
  fillOn(second_, p, kPage, 8);  // ends the copies of the others
  EXPECT_EQ(1u, records(kGpuFault).size());
  EXPECT_EQ(1u, records(kGpuFault)[0].srcId);
  EXPECT_EQ(8, load(p));
  ASSERT_EQ(1u, records(kDtoH).size());
  EXPECT_EQ(1u, records(kDtoH)[0].srcId);
}

TEST_F(Devices, ACounterOfOneDeviceIsOfThatDevice) {
  // Faults and transfers of device 1 alone.
  for (uint32_t kind : {kHtoD, kDtoH, kGpuFault}) {
    auto c = config(kind, 0, 0);
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
  }
  char *p = managed(kPage), *q = managed(kPage);
  store(p, 1);
  store(q, 1);
  fillOn(context_, p, kPage, 2);
  fillOn(second_, q, kPage, 3);
  load(p);
  load(q);
  for (uint32_t kind : {kHtoD, kDtoH, kGpuFault}) {
    const auto found = records(kind);
    ASSERT_EQ(1u, found.size()) << kind;
    EXPECT_EQ(reinterpret_cast<uint64_t>(q), found[0].address);
  }
}

}  // namespace
}  // namespace um
