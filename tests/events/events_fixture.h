// SPDX-License-Identifier: Apache-2.0
// A fixture with domains, groups and readings.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "gpu.h"

namespace sonde::test {

class Events : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    // The Hopper-class model has today's names alone.
    hopper = std::getenv("EVENTS_HOPPER") != nullptr;
    sm = domainOf(hopper ? "smsp__inst_executed" : "inst_executed");
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

  // A texture of 128 words in each of 8 rows of 512 bytes at `p`, filtered.
  CUtexObject rows(CUdeviceptr p) {
    CUDA_RESOURCE_DESC r{};
    r.resType = CU_RESOURCE_TYPE_PITCH2D;
    r.res.pitch2D.devPtr = p;
    r.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
    r.res.pitch2D.numChannels = 1;
    r.res.pitch2D.width = 128;
    r.res.pitch2D.height = 8;
    r.res.pitch2D.pitchInBytes = 512;
    CUDA_TEXTURE_DESC t{};
    for (auto& m : t.addressMode) m = CU_TR_ADDRESS_MODE_CLAMP;
    t.filterMode = CU_TR_FILTER_MODE_LINEAR;
    CUtexObject object = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuTexObjectCreate(&object, &r, &t, nullptr));
    return object;
  }
  // Lane l of each warp fetches, twice, between columns l and l + 1 and rows 0
  // and 1: 33 words of two rows, 2 * 5 sectors.
  static std::string fetchBetween() {
    return kernel(
        "and.b32 %r5, %r1, 31; cvt.rn.f32.u32 %f1, %r5; add.f32 %f1, %f1, 0f3F800000; mov.f32 %f2, 0f3F800000;"
        "tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd2, {%f1, %f2}];"
        "tex.2d.v4.f32.f32 {%f8, %f9, %f10, %f11}, [%rd2, {%f1, %f2}];"
        "add.f32 %f4, %f4, %f8; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd3, %rd1; st.global.f32 [%rd3], %f4;");
  }

  CUpti_EventDomainID sm = 0;
  bool hopper = false;
};

}  // namespace sonde::test
