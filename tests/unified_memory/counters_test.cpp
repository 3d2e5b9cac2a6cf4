// SPDX-License-Identifier: Apache-2.0
// CUpti_ActivityUnifiedMemoryCounter3, field by field.
#include "um.h"

namespace um {
namespace {

class Counters : public UnifiedMemory {
 protected:
  // CPU fault, transfer to the device with its fault, transfer back with its.
  char* roundTrip() {
    char* p = managed(kPage);
    store(p + 8, 1);
    deviceFill(p, kPage, 2);
    EXPECT_EQ(2, load(p + 16));
    return p;
  }
  Counter only(uint32_t kind) {
    const auto found = records(kind);
    EXPECT_EQ(1u, found.size()) << "kind " << kind;
    return found.empty() ? Counter{} : found[0];
  }
  // CPU and device take turns on one page.
  void fight(char* p, int turns) {
    for (int i = 0; i < turns; ++i) {
      store(p, 1);
      deviceFill(p, kPage, 2);
    }
  }
};

uint64_t wallClock() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

TEST_F(Counters, UMC_001_EachRecordIsOneSample) {
  roundTrip();
  // Two faults of the CPU, one of the device, one transfer each way.
  EXPECT_EQ(5u, records().size());
}

TEST_F(Counters, UMC_002_003_KindAndCounterKind) {
  roundTrip();
  std::vector<uint32_t> kinds;
  for (const Counter& r : records()) {
    EXPECT_EQ(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, r.kind);
    kinds.push_back(r.counterKind);
  }
  EXPECT_EQ((std::vector<uint32_t>{kCpuFault, kGpuFault, kHtoD, kCpuFault, kDtoH}), kinds);
}

TEST_F(Counters, UMC_004_ValueIsTheSizeOfTheRegion) {
  char* p = roundTrip();
  EXPECT_EQ(kPage, only(kHtoD).value);
  EXPECT_EQ(kPage, only(kDtoH).value);
  fight(p, 12);
  ASSERT_FALSE(records(kThrashing).empty());
  EXPECT_EQ(kPage, records(kThrashing)[0].value);
  ASSERT_FALSE(records(kRemoteMap).empty());
  EXPECT_EQ(kPage, records(kRemoteMap)[0].value);
}

TEST_F(Counters, UMC_005_ValueOfADeviceFaultIsItsGroups) {
  roundTrip();
  EXPECT_EQ(4u, only(kGpuFault).value);
}

TEST_F(Counters, UMC_006_ValueOfACpuFaultIsTheProgramCounter) {
  char* p = managed(kPage);
  store(p, 1);
  const uint64_t pc = only(kCpuFault).value, function = reinterpret_cast<uint64_t>(&store);
  EXPECT_GE(pc, function);
  EXPECT_LT(pc, function + 256);
}

TEST_F(Counters, UMC_007_008_013_014_TimesLieWithinTheAccess) {
  char* p = managed(kPage);
  const uint64_t t0 = wallClock();
  store(p, 1);
  const uint64_t t1 = wallClock();
  deviceFill(p, kPage, 2);
  const uint64_t t2 = wallClock();
  const Counter cpu = only(kCpuFault), gpu = only(kGpuFault), up = only(kHtoD);
  EXPECT_GE(cpu.start, t0);
  EXPECT_LE(cpu.start, t1);
  EXPECT_GE(gpu.start, t1);
  EXPECT_LT(gpu.start, gpu.end);
  EXPECT_LE(gpu.end, t2 + 1);
  EXPECT_LE(gpu.start, up.start);
  EXPECT_LT(up.start, up.end);
  EXPECT_LE(up.end, gpu.end + 1000000);
}

TEST_F(Counters, UMC_009_016_018_021_027_029_030_Thrashing) {
  char* p = managed(kPage);
  store(p, 1);
  const uint64_t t0 = wallClock();
  fight(p, 3);
  const uint64_t t1 = wallClock();
  const Counter r = only(kThrashing);
  EXPECT_GE(r.start, t0);
  EXPECT_LE(r.start, t1);
  EXPECT_EQ(1u, r.srcId);  // bit 0: device 0
  EXPECT_EQ(0u, r.dstId);
  EXPECT_EQ(1u, r.processors[0]);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(0u, r.processors[i]);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_FLAG_THRASHING_IN_CPU}, r.flags);
  EXPECT_EQ(reinterpret_cast<uint64_t>(p), r.address);
}

TEST_F(Counters, UMC_010_015_016_017_021_027_Throttling) {
  char* p = managed(2 * kPage) + kPage;
  store(p, 1);
  const uint64_t t0 = wallClock();
  fight(p, 3);  // device, CPU, device: the third move is held back, the fourth and fifth too
  const uint64_t t1 = wallClock();
  const auto found = records(kThrottling);
  ASSERT_EQ(3u, found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const Counter& r = found[i];
    const bool cpu = i == 1;
    EXPECT_EQ(0u, r.value);
    EXPECT_EQ(reinterpret_cast<uint64_t>(p), r.address);  // the page's
    EXPECT_EQ(cpu ? kCpuId : 0u, r.srcId) << i;
    EXPECT_EQ(0u, r.dstId);
    EXPECT_EQ(cpu ? uint32_t{CUPTI_ACTIVITY_FLAG_THROTTLING_IN_CPU} : 0u, r.flags) << i;
    EXPECT_GE(r.start, t0);
    EXPECT_LE(r.end, t1);
    EXPECT_GE(r.end - r.start, 250000u);  // what the detector's limits say
    for (uint64_t word : r.processors) EXPECT_EQ(0u, word);
  }
}

TEST_F(Counters, UMC_011_017_020_026_RemoteMap) {
  char* p = managed(kPage);
  fight(p, 12);
  const Counter r = only(kRemoteMap);
  // While the fault that led to it was being handled: after the move to the CPU, before the replay.
  bool within = false;
  for (const Counter& fault : records(kGpuFault)) within = within || (fault.start <= r.start && r.start <= fault.end);
  EXPECT_TRUE(within);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_THRASHING}, r.flags);
  EXPECT_EQ(reinterpret_cast<uint64_t>(p), r.address);
  EXPECT_EQ(0u, r.srcId);      // device 0 maps
  EXPECT_EQ(kCpuId, r.dstId);  // the CPU's memory
  // It has settled: both sides reach the page, nothing moves any more.
  forget();
  fight(p, 5);
  EXPECT_TRUE(records().empty());
  EXPECT_EQ(2, load(p));
}

TEST_F(Counters, UMC_012_EndIsZeroWhereItHasNoMeaning) {
  fight(managed(kPage), 12);
  for (uint32_t kind : {kCpuFault, kThrashing, kRemoteMap}) {
    const auto found = records(kind);
    ASSERT_FALSE(found.empty()) << kind;
    for (const Counter& r : found) EXPECT_EQ(0u, r.end) << kind;
  }
}

TEST_F(Counters, UMC_016_Address) {
  char* p = managed(4 * kPage);
  store(p + 2 * kPage + 100, 1);
  // The page, not the byte.
  EXPECT_EQ(reinterpret_cast<uint64_t>(p + 2 * kPage), only(kCpuFault).address);
  deviceFill(p + kPage, kPage, 1);
  EXPECT_EQ(reinterpret_cast<uint64_t>(p + kPage), only(kGpuFault).address);
  ASSERT_EQ(3u, records(kHtoD).size());
  EXPECT_EQ(reinterpret_cast<uint64_t>(p), records(kHtoD)[0].address);
}

TEST_F(Counters, UMC_017_019_020_021_022_Processors) {
  roundTrip();
  for (const Counter& r : records()) {
    EXPECT_EQ(0u, r.srcId);  // the CPU's id and the first device's
    EXPECT_EQ(0u, r.dstId);
    EXPECT_EQ(0u, r.streamId);
  }
}

// A walk through the pages by one side is no fight, even when each page faults.
TEST_F(Counters, MovesOfOneSideAreNoThrashing) {
  char* p = managed(16 * kPage);
  deviceFill(p, 16 * kPage, 2);
  ASSERT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(reinterpret_cast<CUdeviceptr>(p), 16 * kPage, CU_MEM_ADVISE_SET_READ_MOSTLY,
                                         {CU_MEM_LOCATION_TYPE_HOST, {0}}));
  std::vector<char> host(kPage);
  for (size_t i = 0; i < 16; ++i) store(p + i * kPage, 3);  // each write faults, and moves one page
  EXPECT_LE(1u, records(kCpuFault).size());
  EXPECT_TRUE(records(kThrashing).empty());
  EXPECT_TRUE(records(kThrottling).empty());
}

TEST_F(Counters, UMC_023_ProcessId) {
  roundTrip();
  for (const Counter& r : records()) EXPECT_EQ(static_cast<uint32_t>(getpid()), r.processId);
}

TEST_F(Counters, UMC_024_AccessType) {
  char* p = managed(kPage);
  store(p, 1);
  forget();
  std::vector<char> host(kPage);
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(host.data(), reinterpret_cast<CUdeviceptr>(p), kPage));
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_READ}, only(kGpuFault).flags);
  EXPECT_EQ(1, host[0]);
  forget();
  store(p, 1);
  deviceFill(p, kPage, 1);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_WRITE}, only(kGpuFault).flags);
}

TEST_F(Counters, UMC_025_MigrationCause) {
  char* p = managed(2 * kPage);
  store(p, 1);
  store(p + kPage, 1);
  deviceFill(p, kPage, 1);
  const auto up = records(kHtoD);
  ASSERT_EQ(2u, up.size());
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE}, up[0].flags);
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH}, up[1].flags);
}

TEST_F(Counters, UMC_028_031_PadAndProcessorsAreZero) {
  roundTrip();
  for (const Counter& r : records()) {
    EXPECT_EQ(0u, r.pad);
    for (uint64_t word : r.processors) EXPECT_EQ(0u, word);
  }
}

}  // namespace
}  // namespace um
