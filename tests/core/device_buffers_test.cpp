// SPDX-License-Identifier: Apache-2.0
#include "core/device_buffers.h"

#include <gtest/gtest.h>

namespace sonde::core {
namespace {

constexpr uint64_t kSlot = DeviceBuffers::kSlotBytes;

// ACT-020: a buffer is full when as much work is done as it has slots, and not before.
TEST(DeviceBuffersTest, FullAfterExactlyAsManyAsItHolds) {
  for (const uint32_t slots : {1u, 3u, 8u}) {
    DeviceBuffers buffers;
    buffers.configure({slots * kSlot, kSlot, 4, 1});
    for (uint32_t done = 1; done <= 5 * slots; ++done) {
      ASSERT_TRUE(buffers.take(1, false));
      EXPECT_EQ(done % slots == 0, buffers.release(1)) << done << " of " << slots;
    }
    EXPECT_EQ(1u, buffers.buffers(1));
  }
}

TEST(DeviceBuffersTest, NoMoreBuffersThanTheLimit) {
  DeviceBuffers buffers;
  buffers.configure({2 * kSlot, kSlot, 3, 1});
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(buffers.take(1, false));
  EXPECT_EQ(3u, buffers.buffers(1));
  EXPECT_FALSE(buffers.take(1, false));
  EXPECT_TRUE(buffers.take(1, true));  // of a kind that always has its times
  buffers.release(1);
  EXPECT_FALSE(buffers.take(1, false));
  buffers.release(1);
  EXPECT_TRUE(buffers.take(1, false));
}

}  // namespace
}  // namespace sonde::core
