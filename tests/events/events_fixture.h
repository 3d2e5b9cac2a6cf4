// SPDX-License-Identifier: Apache-2.0
// A fixture with domains, groups and readings.
#pragma once

#include <algorithm>

#include "gpu.h"

namespace sonde::test {

class Events : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    sm = domainOf("inst_executed");
  }
  CUpti_EventDomainID domainOf(const char* event) {
    const CUpti_EventID id = eventId(event);
    uint32_t n = 0;
    cuptiDeviceGetNumEventDomains(device, &n);
    std::vector<CUpti_EventDomainID> domains(n);
    size_t bytes = n * sizeof domains[0];
    cuptiDeviceEnumEventDomains(device, &bytes, domains.data());
    for (CUpti_EventDomainID d : domains)
      for (CUpti_EventID e : eventsOf(d))
        if (e == id) return d;
    ADD_FAILURE() << event << " is in no domain";
    return 0;
  }
  static std::vector<CUpti_EventID> eventsOf(CUpti_EventDomainID d) {
    uint32_t n = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventDomainGetNumEvents(d, &n));
    std::vector<CUpti_EventID> ids(n);
    size_t bytes = n * sizeof ids[0];
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventDomainEnumEvents(d, &bytes, ids.data()));
    EXPECT_EQ(bytes, n * sizeof ids[0]);
    return ids;
  }
  uint32_t instances(CUpti_EventDomainID d, CUpti_EventDomainAttribute which) {
    uint32_t n = 0;
    size_t bytes = sizeof n;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiDeviceGetEventDomainAttribute(device, d, which, &bytes, &n));
    EXPECT_EQ(sizeof n, bytes);
    return n;
  }
  CUpti_EventGroup group(std::initializer_list<const char*> events) {
    CUpti_EventGroup g = nullptr;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupCreate(context, &g, 0));
    for (const char* e : events) EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupAddEvent(g, eventId(e))) << e;
    return g;
  }
  uint64_t read(CUpti_EventGroup g, const char* event) {
    uint64_t value = 12345;
    size_t bytes = sizeof value;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId(event), &bytes, &value));
    EXPECT_EQ(sizeof value, bytes);
    return value;
  }
  void runEmpty(unsigned grid = 4, unsigned block = 256) { launch(function(kernel(""), "k"), grid, block, {0, 0}); }

  CUpti_EventDomainID sm = 0;
};

}  // namespace sonde::test
