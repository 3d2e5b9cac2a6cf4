// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace sonde::softgpu::memory {
namespace {

Allocation request(uint64_t bytes, Kind kind = Kind::device) {
  Allocation a;
  a.bytes = bytes;
  a.kind = kind;
  a.contextUid = 77;
  return a;
}

class AllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override { allocator_.setCapacity(0, 1 << 30); }
  Allocator& allocator_ = Allocator::get();
};

TEST_F(AllocatorTest, DeviceMemoryIsThereForTheDeviceAlone) {
  Allocation a = request(1000);
  ASSERT_EQ(allocator_.allocate(a), AllocError::none);
  EXPECT_TRUE(AddressSpace::get().global.contains(a.address, 1000));
  std::byte* bytes = Allocator::hostAccess(a.address);
  EXPECT_EQ(static_cast<int>(bytes[999]), 0);
  std::memset(bytes, 1, 1000);
  EXPECT_NE(reinterpret_cast<uint64_t>(bytes), a.address);
  ASSERT_EQ(allocator_.release(a.address), AllocError::none);
  EXPECT_EQ(allocator_.release(a.address), AllocError::notFound);
}

TEST_F(AllocatorTest, PinnedMemoryIsTheSamePagesTwice) {
  Allocation a = request(10000, Kind::pinned);
  ASSERT_EQ(allocator_.allocate(a), AllocError::none);
  auto* host = reinterpret_cast<unsigned char*>(a.address);
  host[9999] = 0x5a;
  EXPECT_EQ(static_cast<unsigned char>(Allocator::hostAccess(a.address)[9999]), 0x5a);
  EXPECT_EQ(allocator_.used(0), 0u);
  allocator_.release(a.address);
}

TEST_F(AllocatorTest, CapacityIsExact) {
  Allocation a = request(1 << 29), b = request((1 << 29) + 1), c = request(1 << 29);
  ASSERT_EQ(allocator_.allocate(a), AllocError::none);
  EXPECT_EQ(allocator_.allocate(b), AllocError::outOfMemory);
  ASSERT_EQ(allocator_.allocate(c), AllocError::none);
  EXPECT_EQ(allocator_.used(0), uint64_t{1} << 30);
  allocator_.release(a.address);
  allocator_.release(c.address);
  EXPECT_EQ(allocator_.used(0), 0u);
}

TEST_F(AllocatorTest, SmallBlocksEndAtTheirGuardPage) {
  Allocation a = request(512);
  ASSERT_EQ(allocator_.allocate(a), AllocError::none);
  EXPECT_EQ((a.address + 512) % 4096, 0u);
  EXPECT_FALSE(allocator_.find(a.address + 512));
  EXPECT_TRUE(allocator_.find(a.address + 511));
  EXPECT_FALSE(allocator_.find(a.address - 1));
  allocator_.release(a.address);
}

TEST_F(AllocatorTest, FreedRangesJoinAgain) {
  Allocation a = request(5000), b = request(5000), c = request(5000);
  allocator_.allocate(a);
  allocator_.allocate(b);
  allocator_.allocate(c);
  const uint64_t first = a.address;
  allocator_.release(a.address);
  allocator_.release(c.address);
  allocator_.release(b.address);
  // Three pieces have become one: a block as large as all of them fits there.
  Allocation d = request(15000);
  allocator_.allocate(d);
  EXPECT_LE(d.address, first + 4096);
  allocator_.release(d.address);
}

TEST_F(AllocatorTest, ContextsTakeTheirsAlong) {
  Allocation a = request(100), b = request(100, Kind::pinned);
  allocator_.allocate(a);
  allocator_.allocate(b);
  EXPECT_EQ(allocator_.releaseContext(77).size(), 2u);
  EXPECT_FALSE(allocator_.find(a.address));
}

TEST_F(AllocatorTest, RegisteredRanges) {
  static char memory[8192];
  Allocation a;
  a.address = reinterpret_cast<uint64_t>(memory) + 100;
  a.bytes = 1000;
  ASSERT_EQ(allocator_.registerHost(a), AllocError::none);
  EXPECT_TRUE(allocator_.hostRangeAllowed(a.address, 1000));
  EXPECT_FALSE(allocator_.hostRangeAllowed(a.address, 1001));
  EXPECT_FALSE(allocator_.hostRangeAllowed(a.address - 1, 4));
  Allocation overlap = a;
  overlap.address += 999;
  EXPECT_EQ(allocator_.registerHost(overlap), AllocError::alreadyRegistered);
  EXPECT_EQ(allocator_.unregisterHost(a.address + 1), AllocError::notFound);
  EXPECT_EQ(allocator_.unregisterHost(a.address), AllocError::none);
  EXPECT_FALSE(allocator_.anyRegistered());
}

// A process may have 65,530 mappings by default.
TEST_F(AllocatorTest, ManySmallAllocations) {
  constexpr size_t count = 80000;
  for (const Kind kind : {Kind::device, Kind::pinned, Kind::managed}) {
    std::vector<uint64_t> addresses;
    for (size_t i = 0; i < count; i++) {
      Allocation a = request(100 + i % 3000, kind);
      ASSERT_EQ(allocator_.allocate(a), AllocError::none) << i;
      ASSERT_EQ(a.address % 512, 0u);
      addresses.push_back(a.address);
      std::memset(Allocator::hostAccess(a.address), 1, a.bytes);
    }
    // A byte before and the 400 behind belong to nobody, also where there is no guard page.
    for (size_t i : {size_t{0}, count / 2, count - 1}) {
      const auto a = allocator_.find(addresses[i]);
      ASSERT_TRUE(a);
      EXPECT_EQ(a->bytes, 100 + i % 3000);
      EXPECT_FALSE(allocator_.find(a->address - 1));
      EXPECT_FALSE(allocator_.find(a->end()));
      EXPECT_FALSE(allocator_.find(a->end() + 400));
    }
    // What is freed is given out again, and reads as zero.
    ASSERT_EQ(allocator_.release(addresses.back()), AllocError::none);
    EXPECT_FALSE(allocator_.find(addresses.back()));
    Allocation again = request(100 + (count - 1) % 3000, kind);
    ASSERT_EQ(allocator_.allocate(again), AllocError::none);
    EXPECT_EQ(again.address, addresses.back());
    EXPECT_EQ(static_cast<int>(*Allocator::hostAccess(again.address)), 0);
    for (uint64_t address : addresses) ASSERT_EQ(allocator_.release(address), AllocError::none);
  }
  EXPECT_EQ(allocator_.used(0), 0u);
}

TEST_F(AllocatorTest, PagesMoveIntoAFile) {
  Allocation a = request(6000);
  ASSERT_EQ(allocator_.allocate(a), AllocError::none);
  std::memset(Allocator::hostAccess(a.address), 7, a.bytes);
  SharedPages pages;
  ASSERT_EQ(allocator_.share(a.address, pages), AllocError::none);
  EXPECT_EQ(static_cast<int>(Allocator::hostAccess(a.address)[5999]), 7);
  Allocation seen = request(6000);
  ASSERT_EQ(allocator_.importPages(pages.fd, pages.offset, seen), AllocError::none);
  EXPECT_EQ(static_cast<int>(seen.kind), static_cast<int>(Kind::imported));
  EXPECT_EQ(static_cast<int>(Allocator::hostAccess(seen.address)[5999]), 7);
  *Allocator::hostAccess(seen.address) = std::byte{9};
  EXPECT_EQ(static_cast<int>(*Allocator::hostAccess(a.address)), 9);
  EXPECT_EQ(allocator_.used(0), 6000u);  // imported memory is the other's
  EXPECT_EQ(allocator_.release(a.address), AllocError::none);
  EXPECT_EQ(static_cast<int>(*Allocator::hostAccess(seen.address)), 9);
  EXPECT_EQ(allocator_.release(seen.address), AllocError::none);
}

}  // namespace
}  // namespace sonde::softgpu::memory
