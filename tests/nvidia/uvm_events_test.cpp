// SPDX-License-Identifier: Apache-2.0
//
// Entries of the module's queue, as a card wrote them, and the records that they
// have to become.
#include "platform/nvidia/uvm_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sonde::platform::nvidia {
namespace {

class UvmEvents : public ::testing::Test {
 protected:
  UvmEvents()
      : decoder({[](uint64_t raw) { return raw + 1'000'000; },
                 [](uint32_t device, uint64_t timer) { return timer - 5'000 - device; },
                 [](uint32_t processor) { return processor == 1 ? 0u : 1u; },
                 [this](const SondeUnifiedMemory& r) { records.push_back(r); }}) {}
  void feed(std::initializer_list<uint64_t> words) {
    UvmEntry entry{};
    std::copy(words.begin(), words.end(), entry.words);
    decoder.decode(entry);
  }
  std::vector<SondeUnifiedMemory> records;
  UvmDecoder decoder;
};

TEST_F(UvmEvents, AFaultOfTheCpuHasItsInstruction) {
  feed({0x0000000100000201, 0x7f4676010000, 0x6467ab31d, 0x000001c1000001c1, 0x55e99799ec6c});
  ASSERT_EQ(1u, records.size());
  const SondeUnifiedMemory& r = records[0];
  EXPECT_EQ(3u, r.kind);
  EXPECT_EQ(0x55e99799ec6cu, r.value);
  EXPECT_EQ(0x7f4676010000u, r.address);
  EXPECT_EQ(2u, r.flags);  // a write
  EXPECT_EQ(0x6467ab31du + 1'000'000, r.start);
  EXPECT_EQ(0u, r.end);
  EXPECT_EQ(0u, r.srcId);
}

TEST_F(UvmEvents, AMigrationIsACopyInItsDirection) {
  feed({281474976711170, 18446744069414584320u, 139940604149760, 262144, 26954396327, 26954828758, 0,
        1796010293489970720, 1796010293489985152});
  feed({0x0000'0001'0000'0302, 0, 0x7f4676001000, 61440, 10, 20, 0, 0, 0});  // to the CPU, without device times
  feed({0x0002'0001'0000'0202, 0, 0x7f4676001000, 4096, 10, 20, 0, 7'000, 8'000});
  ASSERT_EQ(3u, records.size());
  EXPECT_EQ(1u, records[0].kind);
  EXPECT_EQ(262144u, records[0].value);
  EXPECT_EQ(139940604149760u, records[0].address);
  EXPECT_EQ(2u, records[0].flags);  // for coherence
  EXPECT_EQ(1796010293489970720u - 5'000, records[0].start);
  EXPECT_EQ(1796010293489985152u - 5'000, records[0].end);
  EXPECT_EQ(0u, records[0].srcId);
  EXPECT_EQ(0u, records[0].dstId);
  EXPECT_EQ(2u, records[1].kind);
  EXPECT_EQ(3u, records[1].flags);  // a prefetch
  EXPECT_EQ(1'000'010u, records[1].start);
  EXPECT_EQ(1'000'020u, records[1].end);
  EXPECT_EQ(8u, records[2].kind);
  EXPECT_EQ(0u, records[2].srcId);
  EXPECT_EQ(1u, records[2].dstId);
  EXPECT_EQ(7'000u - 5'000 - 1, records[2].start);
}

TEST_F(UvmEvents, ABatchOfFaultsIsOneRecordWhenItIsReplayed) {
  const uint64_t batch = 0x0000020100000001;  // number 1, a write
  feed({0x0004000100010103, 0x7f4676000000, 100, 9'000, batch});
  feed({0x0004000100010103, 0x7f4676000000, 100, 9'500, batch});
  feed({0x0024000100010103, 0x7f4676001000, 100, 9'600, batch});
  feed({0x0004000100010103, 0x7f4676000000, 100, 9'700, 0x0000010100000002});  // of another batch
  EXPECT_TRUE(records.empty());
  feed({0x0000'0001'0001'0104, 200, 12'000});
  feed({0x0000'0001'0001'0104, 200, 12'000});  // nothing is left of it
  ASSERT_EQ(1u, records.size());
  EXPECT_EQ(4u, records[0].kind);
  EXPECT_EQ(2u, records[0].value);
  EXPECT_EQ(0x7f4676000000u, records[0].address);
  EXPECT_EQ(2u, records[0].flags);
  EXPECT_EQ(4'000u, records[0].start);
  EXPECT_EQ(7'000u, records[0].end);
}

TEST_F(UvmEvents, ThrashingThrottlingAndRemoteMaps) {
  feed({0x0a, 0x7f4676100000, 4096, 50, 3});
  feed({0x000000000001000b, 0x7f4676100000, 60});
  feed({0x000000000000000b, 0x7f4676100000, 61});
  feed({0x000000000001000c, 0x7f4676100000, 70});
  feed({0x000000000000000c, 0x7f4676100000, 71});
  feed({0x000000010000030d, 0x7f4676600000, 0x38000, 80, 30'000});
  ASSERT_EQ(4u, records.size());
  EXPECT_EQ(5u, records[0].kind);
  EXPECT_EQ(4096u, records[0].value);
  EXPECT_EQ(1u, records[0].flags);  // the CPU, too
  EXPECT_EQ(1u, records[0].processors[0]);
  EXPECT_EQ(1u, records[0].srcId);
  EXPECT_EQ(6u, records[1].kind);
  EXPECT_EQ(0u, records[1].srcId);
  EXPECT_EQ(0u, records[1].flags);
  EXPECT_EQ(1'000'060u, records[1].start);
  EXPECT_EQ(1'000'070u, records[1].end);
  EXPECT_EQ(0xffffffffu, records[2].srcId);
  EXPECT_EQ(1u, records[2].flags);
  EXPECT_EQ(7u, records[3].kind);
  EXPECT_EQ(0x38000u, records[3].value);
  EXPECT_EQ(3u, records[3].flags);
  EXPECT_EQ(0u, records[3].srcId);
  EXPECT_EQ(0xffffffffu, records[3].dstId);
  EXPECT_EQ(25'000u, records[3].start);
}

TEST(UvmEventMask, EachKindNeedsItsOwnEvents) {
  EXPECT_EQ(0u, uvmEventsFor(0));
  EXPECT_EQ(1u << 2, uvmEventsFor(1 << 1));
  EXPECT_EQ(1u << 2, uvmEventsFor(1 << 2 | 1 << 8));
  EXPECT_EQ(1u << 1, uvmEventsFor(1 << 3));
  EXPECT_EQ(1u << 3 | 1u << 4, uvmEventsFor(1 << 4));
  EXPECT_EQ(1u << 10 | 1u << 11 | 1u << 12 | 1u << 13, uvmEventsFor(1 << 5 | 1 << 6 | 1 << 7));
}

}  // namespace
}  // namespace sonde::platform::nvidia
