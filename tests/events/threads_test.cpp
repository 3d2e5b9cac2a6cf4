// SPDX-License-Identifier: Apache-2.0
// Every function of the Event API from several threads at once, each with a
// context and groups of its own, while kernels run: all are documented as
// thread-safe. A build with ThreadSanitizer sees races, the values see the rest.
#include <atomic>
#include <thread>

#include "events_fixture.h"

namespace sonde::test {
namespace {

TEST_F(
    Events,
    EVT_035_038_041_043_045_047_050_053_055_057_060_062_064_067_070_072_074_078_080_081_084_086_095_117_119_121_124_ThreadSafety) {
  constexpr int kThreads = 6, kRounds = 12;  // six events fit into the domain at once
  std::atomic<int> failures{0};
  const std::string ptx = kernel("");
  auto work = [&](unsigned number) {
    auto good = [&](auto result) {
      if (result == 0) return true;
      ++failures;
      return false;
    };
    CUcontext mine = nullptr;
    CUmodule module = nullptr;
    CUfunction f = nullptr;
    if (!good(cuCtxCreate(&mine, nullptr, 0, device)) || !good(cuModuleLoadData(&module, ptx.c_str())) ||
        !good(cuModuleGetFunction(&f, module, "k")))
      return;
    uint64_t nothing = 0;
    void* arguments[] = {&nothing, &nothing};
    for (int round = 0; round < kRounds; ++round) {
      uint32_t n = 0, value = 0;
      uint64_t time = 0;
      size_t bytes = sizeof value;
      good(cuptiDeviceGetAttribute(device, CUPTI_DEVICE_ATTR_MAX_EVENT_ID, &bytes, &value));
      good(cuptiDeviceGetTimestamp(mine, &time));
      good(cuptiDeviceGetNumEventDomains(device, &n));
      std::vector<CUpti_EventDomainID> domains(n);
      bytes = n * sizeof domains[0];
      good(cuptiDeviceEnumEventDomains(device, &bytes, domains.data()));
      bytes = sizeof value;
      good(cuptiDeviceGetEventDomainAttribute(device, domains[0], CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, &bytes,
                                              &value));
      good(cuptiGetNumEventDomains(&n));
      bytes = domains.size() * sizeof domains[0];
      good(cuptiEnumEventDomains(&bytes, domains.data()));
      bytes = sizeof value;
      good(cuptiEventDomainGetAttribute(domains[0], CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD, &bytes, &value));
      good(cuptiEventDomainGetNumEvents(domains[0], &n));
      std::vector<CUpti_EventID> ids(n);
      bytes = n * sizeof ids[0];
      good(cuptiEventDomainEnumEvents(domains[0], &bytes, ids.data()));
      bytes = sizeof value;
      good(cuptiEventGetAttribute(ids[0], CUPTI_EVENT_ATTR_CATEGORY, &bytes, &value));
      CUpti_EventID id = 0, other = 0;
      good(cuptiEventGetIdFromName(device, "warps_launched", &id));
      good(cuptiEventGetIdFromName(device, "inst_executed", &other));
      good(cuptiSetEventCollectionMode(mine, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
      CUpti_EventGroup g = nullptr;
      good(cuptiEventGroupCreate(mine, &g, 0));
      good(cuptiEventGroupAddEvent(g, other));
      good(cuptiEventGroupRemoveEvent(g, other));
      good(cuptiEventGroupAddEvent(g, other));
      good(cuptiEventGroupRemoveAllEvents(g));
      good(cuptiEventGroupAddEvent(g, id));
      void* data = &value;
      good(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_USER_DATA, sizeof data, &data));
      bytes = sizeof n;
      good(cuptiEventGroupGetAttribute(g, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &bytes, &n));
      good(cuptiEventGroupEnable(g));
      good(cuLaunchKernel(f, number + 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
      good(cuCtxSynchronize());
      uint64_t warps = 0;
      bytes = sizeof warps;
      good(cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, id, &bytes, &warps));
      if (warps != 2 * (number + 1)) ++failures;  // of this context's kernel alone
      good(cuptiEventGroupResetAllEvents(g));
      CUpti_EventID got = 0;
      size_t idBytes = sizeof got, count = 0;
      bytes = sizeof warps;
      good(cuptiEventGroupReadAllEvents(g, CUPTI_EVENT_READ_FLAG_NONE, &bytes, &warps, &idBytes, &got, &count));
      if (warps != 0 || count != 1 || got != id) ++failures;
      good(cuptiEventGroupDisable(g));
      good(cuptiEventGroupDestroy(g));
      good(cuptiEnableKernelReplayMode(mine));
      CUpti_EventGroupSets* sets = nullptr;
      if (good(cuptiEventGroupSetsCreate(mine, ids.size() * sizeof ids[0], ids.data(), &sets))) {
        good(cuptiEventGroupSetEnable(&sets->sets[0]));
        good(cuptiEventGroupSetDisable(&sets->sets[0]));
        good(cuptiEventGroupSetsDestroy(sets));
      }
      good(cuptiDisableKernelReplayMode(mine));
    }
    good(cuModuleUnload(module));
    good(cuCtxDestroy(mine));
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(0, failures.load());
}

}  // namespace
}  // namespace sonde::test
