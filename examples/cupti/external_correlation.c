/* SPDX-License-Identifier: Apache-2.0
 * External correlation: tie device work to the program's own phases. Each call
 * made while an id is pushed is preceded by a record that joins the two. */
#include <inttypes.h>

#include "common.h"

enum { PREPARE = 100, COMPUTE = 200 };

static void CUPTIAPI bufferRequested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *size = 64 * 1024;
  *buffer = aligned_alloc(8, *size);
  *maxNumRecords = 0;
}

/* The phase of a correlation id. */
static uint64_t phaseOf[4096];

static void CUPTIAPI bufferCompleted(CUcontext context, uint32_t streamId, uint8_t* buffer, size_t size,
                                     size_t validSize) {
  CUpti_Activity* record = NULL;
  (void)context, (void)streamId, (void)size;
  while (cuptiActivityGetNextRecord(buffer, validSize, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
      const CUpti_ActivityExternalCorrelation* join = (const CUpti_ActivityExternalCorrelation*)record;
      phaseOf[join->correlationId % 4096] = join->externalId;
    } else if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      const CUpti_ActivityKernel10* kernel = (const CUpti_ActivityKernel10*)record;
      printf("kernel %s in phase %" PRIu64 "\n", kernel->name, phaseOf[kernel->correlationId % 4096]);
    }
  }
  free(buffer);
}

int main(void) {
  CUdevice device;
  Work work;
  uint64_t id = 0;
  CHECK_CUPTI(cuptiActivityRegisterCallbacks(bufferRequested, bufferCompleted));
  /* The API kind must be on: its records are what the ids are joined to. */
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));

  CHECK_CUPTI(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, PREPARE));
  CHECK_CU(cuInit(0));
  CHECK_CU(cuDeviceGet(&device, 0));
  work = prepareWork(device);
  CHECK_CUPTI(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));

  CHECK_CUPTI(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, COMPUTE));
  launchWork(&work, 1);
  CHECK_CUPTI(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
  /* Calls first, so that the joins are read before the kernels. */
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  finishWork(&work);
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  return id == COMPUTE ? 0 : 1;
}
