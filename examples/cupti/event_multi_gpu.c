/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts the same event on every device at once, each in a context of its own.
 * On the software GPU: SONDE_DEVICES=default,default event_multi_gpu
 */
#include "common.h"

#define MAX_DEVICES 16

int main(void) {
  int devices = 0;
  Work work[MAX_DEVICES];
  CUpti_EventGroup groups[MAX_DEVICES];
  CUpti_EventID events[MAX_DEVICES];
  int failed = 0;
  CHECK_CU(cuInit(0));
  CHECK_CU(cuDeviceGetCount(&devices));
  if (devices > MAX_DEVICES) devices = MAX_DEVICES;
  for (int d = 0; d < devices; ++d) {
    CUdevice device;
    CHECK_CU(cuDeviceGet(&device, d));
    work[d] = prepareWork(device);
    CHECK_CUPTI(cuptiEventGetIdFromName(device, "threads_launched", &events[d]));
    CHECK_CUPTI(cuptiSetEventCollectionMode(work[d].context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
    CHECK_CUPTI(cuptiEventGroupCreate(work[d].context, &groups[d], 0));
    CHECK_CUPTI(cuptiEventGroupAddEvent(groups[d], events[d]));
    CHECK_CUPTI(cuptiEventGroupEnable(groups[d]));
  }
  for (int d = 0; d < devices; ++d) {
    CHECK_CU(cuCtxSetCurrent(work[d].context));
    launchWork(&work[d], 10);
  }
  for (int d = 0; d < devices; ++d) {
    uint64_t value = 0;
    size_t bytes = sizeof value;
    CHECK_CU(cuCtxSetCurrent(work[d].context));
    CHECK_CU(cuCtxSynchronize());
    CHECK_CUPTI(cuptiEventGroupReadEvent(groups[d], CUPTI_EVENT_READ_FLAG_NONE, events[d], &bytes, &value));
    printf("device %d: %llu threads launched\n", d, (unsigned long long)value);
    failed |= value != ELEMENTS;
    CHECK_CUPTI(cuptiEventGroupDisable(groups[d]));
    CHECK_CUPTI(cuptiEventGroupDestroy(groups[d]));
    finishWork(&work[d]);
  }
  return failed;
}
