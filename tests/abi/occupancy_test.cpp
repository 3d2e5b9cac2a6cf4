// SPDX-License-Identifier: Apache-2.0
// cuda_occupancy.h: values worked out by hand, and those of the toolkit's header
// where there is one.
#define OCCUPANCY_NAME askOurs
#include <gtest/gtest.h>

#include <climits>
#include <random>

#include "occupancy_calls.h"

OccupancyAnswer askToolkit(const OccupancyQuestion& q);

namespace {

constexpr size_t kKiB = 1024;

// An H200 and a kernel of 32 registers a thread, 256 threads.
OccupancyQuestion hopper() {
  OccupancyQuestion q{};
  q.major = 9;
  q.regsPerBlock = q.regsPerMultiprocessor = 65536;
  q.maxThreads = 2048;
  q.sharedPerBlock = 48 * kKiB, q.sharedPerMultiprocessor = 228 * kKiB, q.sharedOptin = 227 * kKiB, q.reserved = kKiB;
  q.registers = 32;
  q.barriers = 1;
  q.optin = 1;
  q.maxDynamic = 48 * kKiB;
  q.carveout = -1;
  q.threads = 256;
  q.blocks = 1;
  return q;
}

TEST(Occupancy, ByHand) {
  OccupancyQuestion q = hopper();
  // 64 warps of 8; 32 * 32 = 1024 registers a warp, 16384 a partition: 16 warps, 64 in all.
  OccupancyAnswer a = askOurs(q);
  EXPECT_EQ(0, a.error);
  EXPECT_EQ(8, a.active);
  EXPECT_EQ(OCC_LIMIT_WARPS | OCC_LIMIT_REGISTERS, a.factors);
  EXPECT_EQ(8192, a.registersPerBlock);
  EXPECT_EQ(kKiB, a.sharedPerBlock);  // what the driver keeps
  EXPECT_EQ(228, a.limits[1]);
  EXPECT_EQ(32, a.limits[3]);
  EXPECT_EQ(64, a.limits[4]);
  EXPECT_EQ(INT_MAX, a.limits[5]);
  // 33 registers: 1056 are 1280 a warp; 12 warps a partition.
  q.registers = 33;
  EXPECT_EQ(6, askOurs(q).active);
  EXPECT_EQ(OCC_LIMIT_REGISTERS, askOurs(q).factors);
  // 40 KiB and the driver's one: five of 41.
  q = hopper();
  q.dynamicShared = 40 * kKiB;
  EXPECT_EQ(5, askOurs(q).active);
  EXPECT_EQ(OCC_LIMIT_SHARED_MEMORY, askOurs(q).factors);
  q.dynamicShared = 49 * kKiB;  // more than the kernel may have
  EXPECT_EQ(0, askOurs(q).active);
  // One warp: the number of blocks is the limit.
  q = hopper();
  q.threads = 32;
  EXPECT_EQ(32, askOurs(q).active);
  EXPECT_EQ(OCC_LIMIT_BLOCKS, askOurs(q).factors);
  q.barriers = 16;
  EXPECT_EQ(4, askOurs(q).active);
  EXPECT_EQ(OCC_LIMIT_BLOCKS | OCC_LIMIT_BARRIERS, askOurs(q).factors);
  // The whole of 2048 threads first with blocks of 1024; ten multiprocessors.
  a = askOurs(hopper());
  EXPECT_EQ(0, a.potentialError);
  EXPECT_EQ(1024, a.block);
  EXPECT_EQ(20, a.grid);
  EXPECT_EQ(0, a.availableError);
  EXPECT_EQ(48 * kKiB, a.available);
  q = hopper();
  q.major = 13;
  EXPECT_EQ(CUDA_OCC_ERROR_UNKNOWN_DEVICE, askOurs(q).error);
  q = hopper();
  q.carveout = 101;
  EXPECT_EQ(CUDA_OCC_ERROR_INVALID_INPUT, askOurs(q).error);
}

#ifdef SONDE_WITH_TOOLKIT
TEST(Occupancy, AsTheToolkitsHeader) {
  std::mt19937 random(1);
  auto pick = [&](auto... values) {
    const size_t list[] = {static_cast<size_t>(values)...};
    return list[random() % sizeof...(values)];
  };
  const int kinds[][2] = {{3, 5}, {5, 0}, {6, 0}, {6, 1},  {7, 0},  {7, 5},  {8, 0},  {8, 6},
                          {8, 7}, {8, 9}, {9, 0}, {10, 0}, {10, 1}, {11, 0}, {12, 0}, {13, 0}};
  int succeeded = 0;
  for (int i = 0; i < 100000; ++i) {
    const int* kind = kinds[random() % std::size(kinds)];
    OccupancyQuestion q{};
    q.major = kind[0], q.minor = kind[1];
    q.maxThreads = static_cast<int>(pick(1024, 1536, 2048));
    q.regsPerMultiprocessor = 65536;
    q.regsPerBlock = static_cast<int>(pick(32768, 65536));
    q.sharedPerMultiprocessor = pick(64, 96, 100, 164, 228) * kKiB;
    q.sharedPerBlock = 48 * kKiB;
    q.sharedOptin = q.sharedPerMultiprocessor - kKiB;
    q.reserved = pick(0, 1024);
    q.registers = static_cast<int>(random() % 258);
    q.barriers = static_cast<int>(random() % 17);
    q.virtualResources = static_cast<int>(pick(0, 0, 5, 50));
    q.optin = static_cast<int>(random() % 2);
    q.staticShared = pick(0, 0, 100, 4000, 40000);
    q.maxDynamic = pick(0, 1000, 49152, 100000);
    q.dynamicShared = pick(0, 0, 1, 900, 30000, 90000);
    q.cacheConfig = static_cast<int>(random() % 4);
    q.carveout = static_cast<int>(pick(0, 25, 50, 100, 101)) - (random() % 2 != 0 ? 0 : 1);
    q.threads = static_cast<int>(random() % 1100 + 1);
    q.blocks = static_cast<int>(random() % 5);
    const OccupancyAnswer expected = askToolkit(q), found = askOurs(q);
    succeeded += expected.error == 0;
    ASSERT_EQ(0, std::memcmp(&expected, &found, sizeof expected))
        << "compute capability " << q.major << '.' << q.minor << ", " << q.threads << " threads, " << q.registers
        << " registers, " << q.dynamicShared << " + " << q.staticShared << " of " << q.sharedPerMultiprocessor
        << " bytes, carveout " << q.carveout << ", error " << expected.error << " and " << found.error << ", "
        << expected.active << " and " << found.active << ", factors " << expected.factors << " and " << found.factors
        << ", shared " << expected.limits[1] << " and " << found.limits[1] << ", registers " << expected.limits[0]
        << " and " << found.limits[0] << ", available " << expected.availableError << ' ' << expected.available
        << " and " << found.availableError << ' ' << found.available << ", block " << expected.block << " and "
        << found.block;
  }
  EXPECT_GT(succeeded, 10000);
}
#endif

}  // namespace
