// SPDX-License-Identifier: Apache-2.0
// The older forms of the record, end to end: one page written by the CPU, set
// by the device and read by the CPU, as each client sees it.
#include "um.h"

namespace um {
namespace {

class Layouts : public UnifiedMemory {
 protected:
  char* roundTrip() {
    char* p = managed(kPage);
    store(p, 1);
    deviceFill(p, kPage, 2);
    EXPECT_EQ(2, load(p));
    return p;
  }
  template <typename R>
  static std::vector<R> of() {
    std::vector<R> out;
    for (const auto& r : Collector::instance().flush()) {
      EXPECT_EQ(sizeof(R), r.words.size() * 8);
      if (r.kind() == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) out.push_back(r.as<R>());
    }
    return out;
  }
};

uint64_t wallClock() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

#if UM_LAYOUT == 1
using Old = CUpti_ActivityUnifiedMemoryCounter;

TEST_F(Layouts, ACT_056_057_RecordsOfSixFiveCount) {
  const uint64_t t0 = wallClock();
  roundTrip();
  const uint64_t t1 = wallClock();
  uint64_t faults = 0, up = 0, down = 0;
  for (const Old& r : of<Old>()) {
    EXPECT_EQ(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, r.kind);
    EXPECT_EQ(0u, r.deviceId);
    EXPECT_EQ(CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES, r.scope);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), r.processId);
    EXPECT_GE(r.timestamp, t0);
    EXPECT_LE(r.timestamp, t1);
    switch (static_cast<uint32_t>(r.counterKind)) {
      case kCpuFault: faults += r.value; break;  // a count, not an address
      case kHtoD: up += r.value; break;
      case kDtoH: down += r.value; break;
      default: break;  // later counters, which nobody of 6.5 could ask for
    }
  }
  EXPECT_EQ(2u, faults);
  EXPECT_EQ(kPage, up);
  EXPECT_EQ(kPage, down);
}

TEST_F(Layouts, ACT_057_TheScopeIsTheOneAskedFor) {
  auto c = config(kCpuFault);  // of one device
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
  roundTrip();
  size_t faults = 0, others = 0;
  for (const Old& r : of<Old>()) {
    if (static_cast<uint32_t>(r.counterKind) > kCpuFault) continue;
    const bool fault = static_cast<uint32_t>(r.counterKind) == kCpuFault;
    EXPECT_EQ(fault ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE
                    : CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES,
              r.scope);
    ++(fault ? faults : others);
  }
  EXPECT_EQ(2u, faults);
  EXPECT_EQ(2u, others);
}
#else
using Old = CUpti_ActivityUnifiedMemoryCounter2;

TEST_F(Layouts, RecordsOfSevenHaveTheSameFieldsUpToFlags) {
  const uint64_t t0 = wallClock();
  char* p = roundTrip();
  const uint64_t t1 = wallClock();
  size_t cpu = 0, gpu = 0, up = 0, down = 0;
  for (const Old& r : of<Old>()) {
    EXPECT_EQ(reinterpret_cast<uint64_t>(p), r.address);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), r.processId);
    EXPECT_GE(r.start, t0);
    EXPECT_LE(r.start, t1);
    EXPECT_EQ(0u, r.srcId);
    EXPECT_EQ(0u, r.dstId);
    switch (static_cast<uint32_t>(r.counterKind)) {
      case kCpuFault:
        EXPECT_EQ(0u, r.end);
        EXPECT_EQ(cpu == 0 ? uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_WRITE}
                           : uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_READ},
                  r.flags);
        ++cpu;
        break;
      case kGpuFault:
        EXPECT_EQ(4u, r.value);
        EXPECT_GT(r.end, r.start);
        ++gpu;
        break;
      default:
        EXPECT_EQ(kPage, r.value);
        EXPECT_GT(r.end, r.start);
        EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE}, r.flags);
        ++(static_cast<uint32_t>(r.counterKind) == kHtoD ? up : down);
    }
  }
  EXPECT_EQ(2u, cpu);
  EXPECT_EQ(1u, gpu);
  EXPECT_EQ(1u, up);
  EXPECT_EQ(1u, down);
}
#endif

}  // namespace
}  // namespace um
