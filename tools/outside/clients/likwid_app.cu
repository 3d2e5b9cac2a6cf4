// SPDX-License-Identifier: Apache-2.0
// Counts the workload with LIKWID's nvmon and prints what it says.
#include <likwid.h>

#include "workload.h"

int main() {
  const int gpu = 0;
  topology_init();
  WORKLOAD_OK(cudaSetDevice(gpu));
  WORKLOAD_OK(cudaFree(nullptr));
  if (int e = nvmon_init(1, &gpu)) {
    std::printf("error: nvmon_init: %d\n", e);
    return 1;
  }
  NvmonEventList_t list = nullptr;
  if (nvmon_getEventsOfGpu(gpu, &list) == 0) std::printf("events: %d\n", list->numEvents);
  const int group =
      nvmon_addEventSet("WARPS_LAUNCHED:GPU0,THREADS_LAUNCHED:GPU1,GST_REQUEST:GPU2,SM_CTA_LAUNCHED:GPU3");
  if (group < 0 || nvmon_setupCounters(group) != 0 || nvmon_startCounters() != 0) {
    std::printf("error: the counters cannot be started\n");
    return 1;
  }
  bool right = workload();
  if (nvmon_stopCounters() != 0) std::printf("error: nvmon_stopCounters\n");
  for (int i = 0; i < nvmon_getNumberOfEvents(group); ++i)
    std::printf("%s = %.0f\n", nvmon_getEventName(group, i), nvmon_getResult(group, i, gpu));
  nvmon_finalize();
  std::printf("results: %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
