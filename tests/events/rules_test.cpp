// SPDX-License-Identifier: Apache-2.0
// The rest of the rules of the Event API (EVT-nnn): constants and types,
// arguments, thread safety, passes, overflow.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>

#include "events_fixture.h"

namespace sonde::test {
namespace {

TEST(EventTypes, EVT_001_003_004_005_Types) {
  static_assert(std::is_same_v<CUpti_EventID, uint32_t>);
  static_assert(std::is_same_v<CUpti_EventDomainID, uint32_t>);
  static_assert(std::is_same_v<CUpti_EventGroup, void*>);
  CUpti_EventGroupSet set{};
  CUpti_EventGroupSets sets{};
  static_assert(std::is_same_v<decltype(set.numEventGroups), uint32_t>);
  static_assert(std::is_same_v<decltype(sets.sets), CUpti_EventGroupSet*>);
  EXPECT_EQ(nullptr, set.eventGroups);
  EXPECT_EQ(0u, sets.numSets);
}

TEST(EventTypes, EVT_006_007_Constants) {
  EXPECT_EQ(~uint64_t{0}, CUPTI_EVENT_OVERFLOW);
  EXPECT_EQ(0, CUPTI_EVENT_READ_FLAG_NONE);
}

TEST(EventTypes, EVT_011_013_015_Enumerators) {
  EXPECT_EQ(0, CUPTI_DEVICE_ATTR_DEVICE_CLASS_TESLA);
  EXPECT_EQ(1, CUPTI_DEVICE_ATTR_DEVICE_CLASS_QUADRO);
  EXPECT_EQ(2, CUPTI_DEVICE_ATTR_DEVICE_CLASS_GEFORCE);
  EXPECT_EQ(0, CUPTI_EVENT_CATEGORY_INSTRUCTION);
  EXPECT_EQ(1, CUPTI_EVENT_CATEGORY_MEMORY);
  EXPECT_EQ(2, CUPTI_EVENT_CATEGORY_CACHE);
  EXPECT_EQ(3, CUPTI_EVENT_CATEGORY_PROFILE_TRIGGER);
  EXPECT_EQ(0, CUPTI_EVENT_DOMAIN_ATTR_NAME);
  EXPECT_EQ(1, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT);
  EXPECT_EQ(3, CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT);
  EXPECT_EQ(4, CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD);
}

// The models' facts, and what follows from them, by hand.
TEST_F(Events, EVT_008_009_010_ValuesOfTheDeviceAttributes) {
  auto wide = [&](CUpti_DeviceAttribute which) {
    uint64_t v = 0;
    size_t bytes = sizeof v;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiDeviceGetAttribute(device, which, &bytes, &v)) << which;
    return v;
  };
  auto narrow = [&](CUpti_DeviceAttribute which) {
    uint32_t v = 0;
    size_t bytes = sizeof v;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiDeviceGetAttribute(device, which, &bytes, &v)) << which;
    return v;
  };
  uint32_t domains = 0, events = 0;
  CUPTI_OK(cuptiDeviceGetNumEventDomains(device, &domains));
  std::vector<CUpti_EventDomainID> ids(domains);
  size_t bytes = domains * sizeof ids[0];
  CUPTI_OK(cuptiDeviceEnumEventDomains(device, &bytes, ids.data()));
  for (CUpti_EventDomainID d : ids) events += static_cast<uint32_t>(eventsOf(d).size());
  EXPECT_EQ(events, narrow(CUPTI_DEVICE_ATTR_MAX_EVENT_ID));
  EXPECT_EQ(domains, narrow(CUPTI_DEVICE_ATTR_MAX_EVENT_DOMAIN_ID));
  const bool kepler = std::getenv("EVENTS_CAPABILITY") != nullptr;
  const bool bus = std::getenv("EVENTS_NO_PCIE") == nullptr;
  // Two transfers a clock: 2619 MHz over 1024 bits, 3004 MHz over 384 bits.
  EXPECT_EQ(kepler ? 288384000u : 670464000u, wide(CUPTI_DEVICE_ATTR_GLOBAL_MEMORY_BANDWIDTH));
  EXPECT_EQ(kepler ? 7u : 4u, narrow(CUPTI_DEVICE_ATTR_INSTRUCTION_PER_CYCLE));
  // 15 SMs of 192 lanes at 875 MHz, 16 of 128 at 1980 MHz.
  EXPECT_EQ(kepler ? 2520000000000u : 4055040000000u, wide(CUPTI_DEVICE_ATTR_INSTRUCTION_THROUGHPUT_SINGLE_PRECISION));
  EXPECT_EQ(kepler ? 6u : 4u, wide(CUPTI_DEVICE_ATTR_MAX_FRAME_BUFFERS));
  EXPECT_EQ(!bus ? 0u : kepler ? 8000u : 32000u, wide(CUPTI_DEVICE_ATTR_PCIE_LINK_RATE));
  EXPECT_EQ(bus ? 16u : 0u, wide(CUPTI_DEVICE_ATTR_PCIE_LINK_WIDTH));
  EXPECT_EQ(!bus ? 0u : kepler ? 3u : 5u, wide(CUPTI_DEVICE_ATTR_PCIE_GEN));
  EXPECT_EQ(0u, narrow(CUPTI_DEVICE_ATTR_DEVICE_CLASS));
  // An fma of each lane is two.
  EXPECT_EQ(kepler ? 384u : 256u, wide(CUPTI_DEVICE_ATTR_FLOP_SP_PER_CYCLE));
  EXPECT_EQ(128u, wide(CUPTI_DEVICE_ATTR_FLOP_DP_PER_CYCLE));
  EXPECT_EQ(kepler ? 6u : 16u, wide(CUPTI_DEVICE_ATTR_MAX_L2_UNITS));
}

// Ids are numbers from 1 without gaps, so that clients can walk through them.
TEST_F(Events, EVT_001_002_IdsHaveNoGaps) {
  uint32_t domains = 0;
  CUPTI_OK(cuptiGetNumEventDomains(&domains));
  std::vector<CUpti_EventDomainID> ids(domains);
  size_t bytes = domains * sizeof ids[0];
  CUPTI_OK(cuptiEnumEventDomains(&bytes, ids.data()));
  CUpti_EventID next = 1;
  for (uint32_t i = 0; i < domains; ++i) {
    EXPECT_EQ(i + 1, ids[i]);
    for (CUpti_EventID e : eventsOf(ids[i])) EXPECT_EQ(next++, e);
  }
}

TEST_F(Events, EVT_032_033_DefaultModeIsKernelAndHoldsForTheContext) {
  CUcontext other = nullptr;
  CU_OK(cuCtxCreate(&other, nullptr, 0, device));
  CU_OK(cuCtxSetCurrent(context));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  // The other context still has the default: its value is that of the last
  // kernel alone.
  CUpti_EventGroup g = nullptr;
  CUPTI_OK(cuptiEventGroupCreate(other, &g, 0));
  CUPTI_OK(cuptiEventGroupAddEvent(g, eventId("warps_launched")));
  CUPTI_OK(cuptiEventGroupEnable(g));
  CU_OK(cuCtxSetCurrent(other));
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  CU_OK(cuModuleLoadData(&m, kernel("").c_str()));
  CU_OK(cuModuleGetFunction(&f, m, "k"));
  launch(f, 4, 32, {0, 0});
  launch(f, 1, 32, {0, 0});
  EXPECT_EQ(1u, read(g, "warps_launched"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CU_OK(cuCtxDestroy(other));
  CU_OK(cuCtxSetCurrent(context));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
}

// SONDE_DEVICES=…/geforce.json: a model of the class of consumer cards.
TEST_F(Events, EVT_029_032_034_ContinuousModeNeedsADeviceOfTheTeslaClass) {
  CUpti_DeviceAttributeDeviceClass deviceClass{};
  size_t bytes = sizeof deviceClass;
  CUPTI_OK(cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_DEVICE_CLASS, &bytes, &deviceClass));
  if (deviceClass == CUPTI_DEVICE_ATTR_DEVICE_CLASS_TESLA) GTEST_SKIP() << "runs as events_geforce_test";
  EXPECT_EQ(CUPTI_DEVICE_ATTR_DEVICE_CLASS_GEFORCE, deviceClass);
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  // The mode is still that of a kernel.
  CUpti_EventGroup g = group({"warps_launched"});
  CUPTI_OK(cuptiEventGroupEnable(g));
  runEmpty(4, 32);
  runEmpty(1, 32);
  EXPECT_EQ(1u, read(g, "warps_launched"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
}

// Kernels that a graph launches are kernels: in both modes, and replayed.
class GraphEvents : public Events {
 protected:
  // Two kernels in a row: 4 blocks of 64 threads, then 2 of 32; each adds 1 to
  // `counter` per thread.
  void SetUp() override {
    Events::SetUp();
    counter = buffer(64);
    CU_OK(cuCtxSynchronize());  // the stream below does not wait for the set
    CUfunction f = function(kernel("red.global.add.u32 [%rd1], 1;"), "k");
    uint64_t unused = 0;
    void* arguments[] = {&counter, &unused};
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CU_OK(cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr));
    CU_OK(cuLaunchKernel(f, 2, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
    CU_OK(cuStreamEndCapture(stream, &graph));
    CU_OK(cuGraphInstantiate(&exec, graph, 0));
  }
  void TearDown() override {
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    cuStreamDestroy(stream);
    Events::TearDown();
  }
  void launchGraph() {
    CU_OK(cuGraphLaunch(exec, stream));
    CU_OK(cuStreamSynchronize(stream));
  }
  uint32_t counted() {
    uint32_t value = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(&value, counter, sizeof value));
    return value;
  }
  CUdeviceptr counter = 0;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
};

TEST_F(GraphEvents, EVT_027_030_KernelsOfAGraphCount) {
  CUpti_EventGroup g = group({"threads_launched", "gred_count"});
  CUPTI_OK(cuptiEventGroupEnable(g));
  launchGraph();
  EXPECT_EQ(64u, read(g, "threads_launched"));  // the last kernel's
  EXPECT_EQ(2u, read(g, "gred_count"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CUPTI_OK(cuptiEventGroupEnable(g));
  launchGraph();
  launchGraph();
  EXPECT_EQ(2u * (256 + 64), read(g, "threads_launched"));
  EXPECT_EQ(2u * (8 + 2), read(g, "gred_count"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
  EXPECT_EQ(3u * 320, counted());
}

TEST_F(GraphEvents, EVT_036_KernelsOfAGraphAreReplayed) {
  std::vector<CUpti_EventID> ids = eventsOf(sm);
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  CUpti_EventGroupSets* sets = nullptr;
  CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
  ASSERT_EQ(1u, sets->numSets);
  CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[0]));
  launchGraph();
  EXPECT_EQ(2u, read(sets->sets[0].eventGroups[0], "warps_launched"));
  EXPECT_EQ(320u, counted());  // in effect each ran once
  CUPTI_OK(cuptiDisableKernelReplayMode(context));
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
}

TEST_F(Events, EVT_029_UnknownModeIsNotSupported) {
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiSetEventCollectionMode(context, static_cast<CUpti_EventCollectionMode>(7)));
}

TEST_F(Events, EVT_036_038_041_ReplayTakesAnyNumberOfEventsInOneRun) {
  std::vector<CUpti_EventID> ids = eventsOf(sm);
  ASSERT_GT(ids.size(), 8u);
  CUPTI_OK(cuptiEnableKernelReplayMode(context));
  CUpti_EventGroupSets* sets = nullptr;
  CUPTI_OK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &sets));
  EXPECT_EQ(1u, sets->numSets);
  CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[0]));
  // The kernel must run once in effect: an increment is seen once.
  const CUdeviceptr p = buffer(64);
  launch(function(kernel("red.global.add.u32 [%rd1], 1;"), "k"), 2, 32, {p, 0});
  uint32_t value = 0;
  CU_OK(cuMemcpyDtoH(&value, p, sizeof value));
  EXPECT_EQ(64u, value);
  EXPECT_EQ(2u, read(sets->sets[0].eventGroups[0], "warps_launched"));
  CUPTI_OK(cuptiDisableKernelReplayMode(context));
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
}

TEST_F(Events, EVT_051_055_056_058_059_Lists) {
  uint32_t n = 0;
  size_t bytes = sizeof n;
  CUPTI_OK(cuptiDeviceGetEventDomainAttribute(device, sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, &bytes, &n));
  EXPECT_EQ(sizeof n, bytes);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetNumEventDomains(nullptr));
  CUpti_EventDomainID one[1] = {};
  bytes = sizeof one;
  CUPTI_OK(cuptiEnumEventDomains(&bytes, one));  // cut short
  EXPECT_EQ(sizeof one, bytes);
  char name[2] = {'x', 'x'};
  bytes = 1;
  CUPTI_OK(cuptiEventDomainGetAttribute(sm, CUPTI_EVENT_DOMAIN_ATTR_NAME, &bytes, name));
  EXPECT_EQ('s', name[0]);
  EXPECT_EQ('x', name[1]);
  EXPECT_EQ(1u, bytes);
}

TEST_F(Events, EVT_061_062_063_064_EventsOfADomain) {
  uint32_t n = 0;
  CUPTI_OK(cuptiEventDomainGetNumEvents(sm, &n));
  EXPECT_GT(n, 20u);
  uint32_t same = 99;
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, cuptiEventDomainGetNumEvents(0xfffff, &same));
  EXPECT_EQ(99u, same);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainGetNumEvents(sm, nullptr));
  CUpti_EventID ids[3] = {};
  size_t bytes = 2 * sizeof(CUpti_EventID) + 1;
  CUPTI_OK(cuptiEventDomainEnumEvents(sm, &bytes, ids));
  EXPECT_EQ(2 * sizeof(CUpti_EventID), bytes);
  EXPECT_EQ(0u, ids[2]);
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID, cuptiEventDomainEnumEvents(0xfffff, &bytes, ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainEnumEvents(sm, nullptr, ids));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventDomainEnumEvents(sm, &bytes, nullptr));
}

TEST_F(Events, EVT_078_080_084_086_088_NullGroups) {
  const CUpti_EventID id = eventId("inst_executed");
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupAddEvent(nullptr, id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupRemoveEvent(nullptr, id));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupRemoveAllEvents(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupEnable(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupDisable(nullptr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupResetAllEvents(nullptr));
  int something = 0;  // not a group at all
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiEventGroupEnable(&something));
}

TEST_F(Events, EVT_085_DisableStopsCounting) {
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CUpti_EventGroup g = group({"warps_launched"});
  CUPTI_OK(cuptiEventGroupEnable(g));
  runEmpty(1, 32);
  CUPTI_OK(cuptiEventGroupDisable(g));
  runEmpty(4, 32);
  CUPTI_OK(cuptiEventGroupEnable(g));
  runEmpty(2, 32);
  EXPECT_EQ(2u, read(g, "warps_launched"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
}

TEST_F(Events, EVT_090_093_AttributeSizesInAndOut) {
  CUpti_EventGroup g = group({"inst_executed"});
  uint64_t room = 0;
  size_t bytes = sizeof room;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, &room));
  EXPECT_EQ(sizeof(uint32_t), bytes);
  EXPECT_EQ(1u, room);
  uint64_t on = 1;  // a wider integer is as good
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
  uint32_t back = 0;
  bytes = sizeof back;
  CUPTI_OK(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, &bytes, &back));
  EXPECT_EQ(1u, back);
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_099_102_110_ReadingErrors) {
  CUpti_EventGroup g = group({"inst_executed"});
  CUPTI_OK(cuptiEventGroupEnable(g));
  const CUpti_EventID id = eventId("inst_executed");
  uint64_t value = 5;
  size_t bytes = sizeof value;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupReadEvent(g, static_cast<CUpti_ReadEventFlags>(2), id, &bytes, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_EVENT_ID,
            cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId("branch"), &bytes, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupReadEvent(nullptr, CUPTI_EVENT_READ_FLAG_NONE, id, &bytes, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, id, nullptr, &value));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER,
            cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, id, &bytes, nullptr));
  EXPECT_EQ(5u, value);
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUpti_EventID ids[2];
  size_t idBytes = sizeof ids, got = 7;
  EXPECT_EQ(CUPTI_ERROR_INVALID_OPERATION,
            cuptiEventGroupReadAllEvents(g, CUPTI_EVENT_READ_FLAG_NONE, &bytes, &value, &idBytes, ids, &got));
  EXPECT_EQ(7u, got);
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

TEST_F(Events, EVT_120_121_122_123_124_Sets) {
  CUpti_EventID ids[2] = {eventId("warps_launched"), eventId("gld_inst_32bit")};
  CUpti_EventGroupSets* sets = nullptr;
  CUPTI_OK(cuptiEventGroupSetsCreate(context, sizeof ids, ids, &sets));
  ASSERT_EQ(1u, sets->numSets);
  ASSERT_EQ(2u, sets->sets[0].numEventGroups);  // one a domain
  CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[0]));
  runEmpty(1, 64);
  CUPTI_OK(cuptiEventGroupSetEnable(&sets->sets[0]));  // again: from zero
  EXPECT_EQ(0u, read(sets->sets[0].eventGroups[0], "warps_launched"));
  CUPTI_OK(cuptiEventGroupSetDisable(&sets->sets[0]));
  CUPTI_OK(cuptiEventGroupSetDisable(&sets->sets[0]));  // nothing left to stop
  CUPTI_OK(cuptiEventGroupSetsDestroy(sets));
  CUpti_EventGroup empty = group({});
  CUpti_EventGroup both[2] = {group({"inst_executed"}), empty};
  CUpti_EventGroupSet set{2, both};
  EXPECT_EQ(CUPTI_ERROR_NOT_READY, cuptiEventGroupSetEnable(&set));
  // All or none: the full one was not enabled either.
  CUPTI_OK(cuptiEventGroupDestroy(both[0]));
  CUPTI_OK(cuptiEventGroupDestroy(empty));
}

// EVT-089, EVT-092, EVT-103, EVT-112, EVT-117: reading, resetting and looking
// from many threads while nobody changes the groups.
TEST_F(Events, EVT_089_092_103_112_117_ThreadsReadOneGroup) {
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CUpti_EventGroup g = group({"threads_launched"});
  CUPTI_OK(cuptiEventGroupEnable(g));
  std::atomic<uint64_t> sum{0};
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  const CUpti_EventID id = eventId("threads_launched");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        uint64_t value = 0;
        size_t bytes = sizeof value;
        if (cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, id, &bytes, &value)) ++failures;
        sum += value;
        uint32_t n = 0;
        bytes = sizeof n;
        if (cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, &n) || n != 1) ++failures;
        CUpti_EventGroupSets* sets = nullptr;
        if (cuptiEventGroupSetsCreate(context, sizeof id, const_cast<CUpti_EventID*>(&id), &sets) ||
            cuptiEventGroupSetsDestroy(sets))
          ++failures;
      }
    });
  for (int i = 0; i < 50; ++i) runEmpty(2, 96);
  stop = true;
  for (auto& t : threads) t.join();
  // Each count was given to exactly one reader.
  EXPECT_EQ(50u * 192, sum + read(g, "threads_launched"));
  EXPECT_EQ(0, failures.load());
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
}

// SONDE_DEVICES=…/narrow.json: a model whose counters have eight bits.
TEST_F(Events, EVT_098_108_OverflowReadsAsOverflowAlone) {
  uint32_t domains = 0;
  CUPTI_OK(cuptiDeviceGetNumEventDomains(device, &domains));
  CUpti_EventID wide = 0;
  if (cuptiEventGetIdFromName(device, "narrow_threads", &wide) != CUPTI_SUCCESS)
    GTEST_SKIP() << "runs as events_narrow_test";
  CUpti_EventGroup g = group({"narrow_threads", "narrow_blocks"});
  uint32_t on = 1;
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
  CUPTI_OK(cuptiEventGroupEnable(g));
  uint32_t n = instances(domainOf("narrow_threads"), CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT);
  // The first SM gets two blocks of 128 threads, the others one: 256 does not
  // fit into eight bits, 128 does.
  runEmpty(n + 1, 128);
  std::vector<uint64_t> values(2 * n);
  CUpti_EventID ids[2];
  size_t valueBytes = values.size() * 8, idBytes = sizeof ids, got = 0;
  CUPTI_OK(
      cuptiEventGroupReadAllEvents(g, CUPTI_EVENT_READ_FLAG_NONE, &valueBytes, values.data(), &idBytes, ids, &got));
  EXPECT_EQ(CUPTI_EVENT_OVERFLOW, values[0]);
  EXPECT_EQ(2u, values[1]);
  for (uint32_t i = 1; i < n; ++i) {
    EXPECT_EQ(128u, values[2 * i]);
    EXPECT_EQ(1u, values[2 * i + 1]);
  }
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
}

// SONDE_DEVICES=kepler: hardware counters of 32 bits. A loop of 3
// instructions in 256 threads passes 2^32 on one SM.
TEST_F(Events, EVT_098_108_CountersOf32BitsOverflow) {
  if (!std::getenv("EVENTS_CAPABILITY")) GTEST_SKIP() << "runs as events_kepler_test";
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CUpti_EventGroup g = group({"thread_inst_executed", "inst_executed", "threads_launched"});
  uint32_t on = 1;
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
  CUPTI_OK(cuptiEventGroupEnable(g));
  // Block 0, on SM 0, goes round 2^22 times with 8 warps, block 1 once.
  CUfunction f = function(kernel("mov.u32 %r5, 4194304; setp.ne.u32 %p1, %r2, 0; @%p1 mov.u32 %r5, 1;\n"
                                 "L: sub.u32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra L;"),
                          "k");
  launch(f, 2, 256, {0, 0});
  const uint64_t perWarp[2] = {kFrame + 3 + 3 * 4194304ull, kFrame + 3 + 3};
  std::vector<uint64_t> values(3 * instances(sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT));
  CUpti_EventID ids[3];
  auto readAll = [&] {
    size_t valueBytes = values.size() * 8, idBytes = sizeof ids, got = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupReadAllEvents(g, CUPTI_EVENT_READ_FLAG_NONE, &valueBytes, values.data(),
                                                          &idBytes, ids, &got));
  };
  readAll();
  static_assert(256 * 3 * 4194304ull < 0xffffffff);
  EXPECT_EQ(256 * perWarp[0], values[0]);
  launch(f, 2, 256, {0, 0});
  launch(f, 2, 256, {0, 0});
  readAll();  // twice that is more than 32 bits hold
  EXPECT_EQ(CUPTI_EVENT_OVERFLOW, values[0]);
  EXPECT_EQ(2 * 8 * perWarp[0], values[1]);
  EXPECT_EQ(512u, values[2]);
  EXPECT_EQ(2 * 256 * perWarp[1], values[3]);
  CUPTI_OK(cuptiEventGroupDisable(g));
  // A total with such an instance overflows too.
  on = 0;
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
  CUPTI_OK(cuptiEventGroupEnable(g));
  launch(f, 2, 256, {0, 0});
  launch(f, 2, 256, {0, 0});
  EXPECT_EQ(CUPTI_EVENT_OVERFLOW, read(g, "thread_inst_executed"));
  EXPECT_EQ(2 * 8 * (perWarp[0] + perWarp[1]), read(g, "inst_executed"));
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
}

// A second client: a library of its own that collects on the same device.
TEST_F(Events, EVT_083_AnotherClientMakesTheDeviceBusy) {
  void* plugin = dlopen(SONDE_EVENTS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(plugin) << dlerror();
  auto enable = reinterpret_cast<CUptiResult (*)(CUpti_EventGroup)>(dlsym(plugin, "pluginEnable"));
  auto disable = reinterpret_cast<CUptiResult (*)(CUpti_EventGroup)>(dlsym(plugin, "pluginDisable"));
  CUpti_EventGroup ours = group({"inst_executed"}), theirs = group({"warps_launched"});
  CUPTI_OK(enable(theirs));
  EXPECT_EQ(CUPTI_ERROR_HARDWARE_BUSY, cuptiEventGroupEnable(ours));
  CUPTI_OK(disable(theirs));
  CUPTI_OK(cuptiEventGroupEnable(ours));
  EXPECT_EQ(CUPTI_ERROR_HARDWARE_BUSY, enable(theirs));
  CUPTI_OK(cuptiEventGroupDisable(ours));
  CUPTI_OK(cuptiEventGroupDestroy(ours));
  CUPTI_OK(cuptiEventGroupDestroy(theirs));
}

}  // namespace
}  // namespace sonde::test
