// SPDX-License-Identifier: Apache-2.0
// Kernel replay: any number of events in what is, for the program, one
// execution of the kernel.
#include <map>

#include "events_fixture.h"

namespace sonde::test {
namespace {

// One block of 64 threads. Each adds its number to the word behind p (device
// memory) with an atomic, adds 1 to its own word of q (managed memory) without
// one, and thread 0 prints the word that it found in q.
const std::string kDeclarations =
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 format[12] = {102, 111, 117, 110, 100, 32, 37, 117, 10, 0, 0, 0};\n";  // "found %u\n"
const std::string kBody = R"(
  .local .align 8 .b8 frame[8];
  red.global.add.u32 [%rd1], %r3;
  mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd3, %rd2;
  ld.global.u32 %r5, [%rd3]; add.u32 %r6, %r5, 1; st.global.u32 [%rd3], %r6;
  setp.ne.u32 %p1, %r3, 0; @%p1 bra END;
  mov.u64 %rd4, frame; cvta.local.u64 %rd5, %rd4; st.local.u32 [%rd4], %r5;
  mov.u64 %rd6, format; cvta.global.u64 %rd6, %rd6;
  { .param .b64 a0; .param .b64 a1; .param .b32 r0;
    st.param.b64 [a0], %rd6; st.param.b64 [a1], %rd5; call (r0), vprintf, (a0, a1); }
END:
)";

class Replay : public Events {
 protected:
  std::vector<CUpti_EventID> allEvents() {
    std::vector<CUpti_EventID> all;
    uint32_t n = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiDeviceGetNumEventDomains(device, &n));
    std::vector<CUpti_EventDomainID> domains(n);
    size_t bytes = n * sizeof domains[0];
    EXPECT_EQ(CUPTI_SUCCESS, cuptiDeviceEnumEventDomains(device, &bytes, domains.data()));
    for (CUpti_EventDomainID d : domains)
      for (CUpti_EventID e : eventsOf(d)) all.push_back(e);
    return all;
  }
  // Values of all instances, one after the other.
  static void readSet(const CUpti_EventGroupSet& set, std::map<CUpti_EventID, std::vector<uint64_t>>* values) {
    for (uint32_t g = 0; g < set.numEventGroups; ++g) {
      std::vector<uint64_t> v(16384);
      std::vector<CUpti_EventID> e(256);
      size_t vb = v.size() * 8, eb = e.size() * 4, got = 0;
      ASSERT_EQ(CUPTI_SUCCESS, cuptiEventGroupReadAllEvents(set.eventGroups[g], CUPTI_EVENT_READ_FLAG_NONE, &vb,
                                                            v.data(), &eb, e.data(), &got));
      for (size_t k = 0; k < vb / 8; ++k) (*values)[e[k % got]].push_back(v[k]);
    }
  }
  static void profileAll(const CUpti_EventGroupSet& set) {
    uint32_t on = 1;
    for (uint32_t g = 0; g < set.numEventGroups; ++g)
      ASSERT_EQ(CUPTI_SUCCESS,
                cuptiEventGroupSetAttribute(set.eventGroups[g], CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES,
                                            sizeof on, &on));
  }
  std::string name(CUpti_EventID id) {
    char text[100] = {};
    size_t bytes = sizeof text;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGetAttribute(id, CUPTI_EVENT_ATTR_NAME, &bytes, text));
    return text;
  }
};

TEST_F(Replay, EVT_036_ResultsAndCountsAreThoseOfOneExecution) {
  CUfunction f = function(kernel(kBody, kDeclarations), "k");
  CUdeviceptr sum = buffer(64), managed = 0;
  CU_OK(cuMemAllocManaged(&managed, 256, CU_MEM_ATTACH_GLOBAL));
  auto* words = reinterpret_cast<uint32_t*>(managed);
  auto prepare = [&] {
    CU_OK(cuMemsetD32(sum, 1000, 1));
    for (uint32_t i = 0; i < 64; ++i) words[i] = 7 + i;
  };
  std::string printed;
  auto runAndCheck = [&] {
    prepare();
    ::testing::internal::CaptureStdout();
    launch(f, 1, 64, {sum, managed});
    printed = ::testing::internal::GetCapturedStdout();
    uint32_t total = 0;
    CU_OK(cuMemcpyDtoH(&total, sum, sizeof total));
    EXPECT_EQ(1000u + 63 * 64 / 2, total);
    for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(8 + i, words[i]) << i;
    EXPECT_EQ("found 7\n", printed);
  };
  std::vector<CUpti_EventID> ids = allEvents();
  ASSERT_GT(ids.size(), 100u);
  // Everything in one run.
  std::map<CUpti_EventID, std::vector<uint64_t>> replayed, single;
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  CUpti_EventGroupSets* sets = nullptr;
  CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
  ASSERT_EQ(1u, sets->numSets);
  profileAll(sets->sets[0]);
  CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[0]));
  runAndCheck();
  readSet(sets->sets[0], &replayed);
  CUPTI_OK(cuptiDisableKernelReplayMode(context));
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
  // Pass by pass, each a run of its own.
  CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
  ASSERT_GT(sets->numSets, 3u);
  for (uint32_t s = 0; s < sets->numSets; ++s) {
    profileAll(sets->sets[s]);
    CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[s]));
    runAndCheck();
    readSet(sets->sets[s], &single);
    CUPTI_OK(cuptiEventGroupSetDisable(&sets->sets[s]));
  }
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
  ASSERT_EQ(ids.size(), replayed.size());
  const CUpti_EventID clocked[] = {eventId("active_cycles"), eventId("active_warps"), eventId("elapsed_cycles_sm")};
  for (const auto& [id, values] : replayed) {
    // Cycles depend on the SM clock, which moves unless it is locked.
    const std::string n = name(id);
    if (std::find(std::begin(clocked), std::end(clocked), id) != std::end(clocked) ||
        n.find("cycles") != std::string::npos || n.find("warps_active") != std::string::npos)
      continue;
    EXPECT_EQ(single.at(id), values) << n;
  }
  EXPECT_EQ(2u, replayed.at(eventId("gred_count"))[0]);
  EXPECT_EQ(64u, replayed.at(eventId("threads_launched"))[0]);
  CU_OK(cuMemFree(managed));
}

// Where the limits hold, they hold for groups that replay has left behind too.
TEST_F(Replay, EVT_039_LeavingReplayBringsTheLimitsBack) {
  std::vector<CUpti_EventID> ids = eventsOf(sm);
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  CUpti_EventGroupSets* sets = nullptr;
  CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
  CUPTI_OK(cuptiDisableKernelReplayMode(context));
  EXPECT_EQ(CUPTI_ERROR_NOT_COMPATIBLE, cuptiEventGroupSetEnable(&sets->sets[0]));
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
  // Sets made before replay can be enabled all at once within it.
  CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
  ASSERT_GT(sets->numSets, 1u);
  CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[0]));
  EXPECT_EQ(CUPTI_ERROR_NOT_COMPATIBLE, cuptiEventGroupSetEnable(&sets->sets[1]));
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  for (uint32_t s = 1; s < sets->numSets; ++s) CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[s]));
  runEmpty(3, 64);
  std::map<CUpti_EventID, std::vector<uint64_t>> values;
  for (uint32_t s = 0; s < sets->numSets; ++s) readSet(sets->sets[s], &values);
  EXPECT_EQ(ids.size(), values.size());
  EXPECT_EQ(6u, values.at(eventId("warps_launched"))[0]);
  EXPECT_EQ(6 * kFrame, values.at(eventId("inst_executed"))[0]);
  CUPTI_OK(cuptiDisableKernelReplayMode(context));  // and all are disabled
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
}

// Every event of every domain has the instances that its domain says, and their
// sum is what the group reads without them.
TEST_F(Replay, EVT_017_025_097_InstancesOfEveryDomain) {
  CUfunction f = function(kernel("mul.wide.u32 %rd3, %r3, 256; add.u64 %rd3, %rd3, %rd1; ld.global.u32 %r5, [%rd3];"
                                 "st.global.u32 [%rd3], %r5; red.global.add.u32 [%rd3], 1;"),
                          "k");
  const CUdeviceptr p = buffer(7 * 64 * 256);
  uint32_t n = 0;
  CUPTI_OK(cuptiDeviceGetNumEventDomains(device, &n));
  std::vector<CUpti_EventDomainID> domains(n);
  size_t bytes = n * sizeof domains[0];
  CUPTI_OK(cuptiDeviceEnumEventDomains(device, &bytes, domains.data()));
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  for (CUpti_EventDomainID d : domains) {
    std::vector<CUpti_EventID> ids = eventsOf(d);
    std::map<CUpti_EventID, std::vector<uint64_t>> values[2];
    for (int all : {0, 1}) {
      CUpti_EventGroupSets* sets = nullptr;
      CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
      if (all) profileAll(sets->sets[0]);
      CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[0]));
      launch(f, 7, 64, {p, 0});
      readSet(sets->sets[0], &values[all]);
      CUPTI_OK(cuptiEventGroupSetDisable(&sets->sets[0]));
      CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
    }
    const uint32_t counted = instances(d, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT);
    for (CUpti_EventID id : ids) {
      const std::string eventName = name(id);
      ASSERT_EQ(1u, values[0][id].size()) << eventName;
      ASSERT_EQ(counted, values[1][id].size()) << eventName;
      if (eventName.find("cycles") != std::string::npos || eventName.find("active") != std::string::npos) continue;
      uint64_t sum = 0;
      for (uint64_t v : values[1][id]) sum += v;
      EXPECT_EQ(values[0][id][0], sum) << eventName;
    }
  }
  CUPTI_OK(cuptiDisableKernelReplayMode(context));
}

}  // namespace
}  // namespace sonde::test
