// SPDX-License-Identifier: Apache-2.0
// Without userfaultfd: what waiting for the device brings back.
#include "um.h"

namespace um {
namespace {

class Returns : public UnifiedMemory {};

TEST_F(Returns, PagesAreBackAfterWaiting) {
  char* p = managed(kMiB);
  fill(p, kMiB, 1);
  forget();
  deviceFill(p, kMiB, 2);
  fill(p, kMiB, 3);
  uint64_t back = 0;
  for (const Counter& r : records(kDtoH)) back += r.value;
  EXPECT_EQ(kMiB, back);
  EXPECT_TRUE(records(kCpuFault).empty());
}

}  // namespace
}  // namespace um
