// SPDX-License-Identifier: Apache-2.0
// cuptiActivityConfigureUnifiedMemoryCounter: what it refuses, what it selects.
#include "um.h"

namespace um {
namespace {

class Configure : public UnifiedMemory {};

TEST_F(Configure, ACT_112_RefusesWhatIsNotValid) {
  auto c = config(kHtoD);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(nullptr, 1));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 0));
  c.scope = static_cast<CUpti_ActivityUnifiedMemoryCounterScope>(0);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
  c.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_COUNT;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
  for (uint32_t kind : {0u, 9u, 1000u}) {
    c = config(kind);
    EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1)) << kind;
  }
  c = config(kHtoD, 99);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
  c = config(kHtoD, 0, 2);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
}

TEST_F(Configure, ACT_112_OneBadStructureChangesNothing) {
  // The first would switch the counter off.
  CUpti_ActivityUnifiedMemoryCounterConfig two[] = {config(kCpuFault, 0, 0), config(0)};
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityConfigureUnifiedMemoryCounter(two, 2));
  store(managed(kPage), 1);
  EXPECT_EQ(1u, records(kCpuFault).size());
}

TEST_F(Configure, ACT_111_SelectsCounters) {
  auto c = config(kCpuFault, 0, 0);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityConfigureUnifiedMemoryCounter(&c, 1));
  char* p = managed(kPage);
  store(p, 1);
  deviceFill(p, kPage, 2);
  EXPECT_TRUE(records(kCpuFault).empty());
  EXPECT_EQ(1u, records(kHtoD).size());
}

TEST_F(Configure, ADisabledKindRecordsNothing) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
  store(managed(kPage), 1);
  EXPECT_TRUE(records().empty());
}

}  // namespace
}  // namespace um
