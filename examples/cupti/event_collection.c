/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects any number of events of one kernel: the library says in how many
 * passes, the kernel is launched once a pass, and each domain's instances are
 * added up.
 *
 *   event_collection [event …]
 */
#include <string.h>

#include "common.h"

#define MAX_EVENTS 64

int main(int argc, char** argv) {
  static const char* const kDefault[] = {"warps_launched", "inst_executed",       "thread_inst_executed",
                                         "branch",         "divergent_branch",    "gld_request",
                                         "gst_request",    "global_load_sectors", "global_store_sectors",
                                         "gld_inst_32bit"};
  const char* const* names = argc > 1 ? (const char* const*)(argv + 1) : kDefault;
  const int count = argc > 1 ? argc - 1 : (int)(sizeof kDefault / sizeof *kDefault);
  CUpti_EventID ids[MAX_EVENTS];
  uint64_t totals[MAX_EVENTS] = {0};
  CUdevice device;
  if (count > MAX_EVENTS) {
    fprintf(stderr, "at most %d events\n", MAX_EVENTS);
    return 1;
  }
  CHECK_CU(cuInit(0));
  CHECK_CU(cuDeviceGet(&device, 0));
  Work work = prepareWork(device);
  for (int i = 0; i < count; ++i) CHECK_CUPTI(cuptiEventGetIdFromName(device, names[i], &ids[i]));

  CUpti_EventGroupSets* passes = NULL;
  CHECK_CUPTI(cuptiEventGroupSetsCreate(work.context, (size_t)count * sizeof *ids, ids, &passes));
  for (uint32_t p = 0; p < passes->numSets; ++p) {
    CUpti_EventGroupSet* set = &passes->sets[p];
    /* All instances, to see each SM; without it the library adds them up. */
    uint32_t all = 1;
    for (uint32_t g = 0; g < set->numEventGroups; ++g)
      CHECK_CUPTI(cuptiEventGroupSetAttribute(set->eventGroups[g], CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES,
                                              sizeof all, &all));
    CHECK_CUPTI(cuptiEventGroupSetEnable(set));
    launchWork(&work, 4);
    CHECK_CU(cuCtxSynchronize());
    for (uint32_t g = 0; g < set->numEventGroups; ++g) {
      uint32_t events = 0, instances = 0;
      size_t size = sizeof events;
      CHECK_CUPTI(cuptiEventGroupGetAttribute(set->eventGroups[g], CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &events));
      size = sizeof instances;
      CHECK_CUPTI(
          cuptiEventGroupGetAttribute(set->eventGroups[g], CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &size, &instances));
      size_t valueBytes = (size_t)events * instances * sizeof(uint64_t), idBytes = events * sizeof(CUpti_EventID),
             got = 0;
      uint64_t* values = malloc(valueBytes);
      CUpti_EventID* order = malloc(idBytes);
      CHECK_CUPTI(cuptiEventGroupReadAllEvents(set->eventGroups[g], CUPTI_EVENT_READ_FLAG_NONE, &valueBytes, values,
                                               &idBytes, order, &got));
      for (uint32_t instance = 0; instance < instances; ++instance)
        for (size_t e = 0; e < got; ++e)
          for (int i = 0; i < count; ++i)
            if (ids[i] == order[e]) totals[i] += values[instance * got + e];
      free(values);
      free(order);
    }
    CHECK_CUPTI(cuptiEventGroupSetDisable(set));
  }
  printf("%u pass(es)\n", passes->numSets);
  for (int i = 0; i < count; ++i) printf("%-28s %llu\n", names[i], (unsigned long long)totals[i]);
  CHECK_CUPTI(cuptiEventGroupSetsDestroy(passes));
  finishWork(&work);
  return 0;
}
