/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples an event from a second thread while kernels run: continuous mode,
 * where reading resets and nothing is lost between two readings.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "common.h"

typedef struct Sampler {
  CUcontext context;
  CUdevice device;
  atomic_int ready, stop;
  uint64_t sum;
  unsigned samples, nonZero;
} Sampler;

static uint64_t readOnce(Sampler* s, CUpti_EventGroup group, CUpti_EventID event) {
  uint64_t value = 0;
  size_t bytes = sizeof value;
  CHECK_CUPTI(cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, event, &bytes, &value));
  s->sum += value;
  s->samples++;
  s->nonZero += value != 0;
  return value;
}

static void* sample(void* argument) {
  Sampler* s = argument;
  CUpti_EventGroup group;
  CUpti_EventID event;
  CHECK_CUPTI(cuptiSetEventCollectionMode(s->context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CHECK_CUPTI(cuptiEventGetIdFromName(s->device, "inst_executed", &event));
  CHECK_CUPTI(cuptiEventGroupCreate(s->context, &group, 0));
  CHECK_CUPTI(cuptiEventGroupAddEvent(group, event));
  CHECK_CUPTI(cuptiEventGroupEnable(group));
  atomic_store(&s->ready, 1);
  while (!atomic_load(&s->stop)) {
    const uint64_t value = readOnce(s, group, event);
    if (value != 0) printf("%12llu warp instructions\n", (unsigned long long)value);
    const struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
  }
  readOnce(s, group, event); /* what ran since the last sample */
  CHECK_CUPTI(cuptiEventGroupDisable(group));
  CHECK_CUPTI(cuptiEventGroupDestroy(group));
  return NULL;
}

int main(void) {
  enum { kLaunches = 20, kRounds = 1000 };
  Sampler s = {0};
  pthread_t thread;
  CHECK_CU(cuInit(0));
  CHECK_CU(cuDeviceGet(&s.device, 0));
  Work work = prepareWork(s.device);
  s.context = work.context;
  pthread_create(&thread, NULL, sample, &s);
  while (!atomic_load(&s.ready)) {
    const struct timespec pause = {0, 100000};
    nanosleep(&pause, NULL);
  }
  for (int i = 0; i < kLaunches; ++i) {
    launchWork(&work, kRounds);
    CHECK_CU(cuCtxSynchronize());
  }
  atomic_store(&s.stop, 1);
  pthread_join(thread, NULL);
  /* 12 instructions before the loop, 7 in a round, one to return; 8 warps a block. */
  const uint64_t expected = (uint64_t)kLaunches * BLOCKS * (THREADS / 32) * (12 + 7 * kRounds + 1);
  printf("%u samples, %u with work; %llu warp instructions in all, %llu expected\n", s.samples, s.nonZero,
         (unsigned long long)s.sum, (unsigned long long)expected);
  finishWork(&work);
  return s.sum == expected ? 0 : 1;
}
