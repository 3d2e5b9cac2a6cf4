/* SPDX-License-Identifier: Apache-2.0
 * Asynchronous tracing: what ran on the device, and which call asked for it. */
#include <inttypes.h>

#include "common.h"

#define BUFFER_BYTES (256 * 1024)

/* Called when the library needs room for records. It may be on any thread; to
 * refuse, leave *buffer NULL: the records are then counted as dropped. */
static void CUPTIAPI bufferRequested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *buffer = aligned_alloc(8, BUFFER_BYTES);
  *size = BUFFER_BYTES;
  *maxNumRecords = 0; /* as many as fit */
}

static void printRecord(const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const CUpti_ActivityAPI* api = (const CUpti_ActivityAPI*)record;
      const char* name = "?";
      cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, api->cbid, &name);
      printf("call    %-24s %8" PRIu64 " ns  correlation %u\n", name, api->end - api->start, api->correlationId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const CUpti_ActivityKernel10* kernel = (const CUpti_ActivityKernel10*)record;
      printf("kernel  %-24s %8" PRIu64 " ns  correlation %u  grid %d block %d stream %u\n", kernel->name,
             kernel->end - kernel->start, kernel->correlationId, kernel->gridX, kernel->blockX, kernel->streamId);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const CUpti_ActivityMemcpy6* copy = (const CUpti_ActivityMemcpy6*)record;
      printf("copy    %" PRIu64 " bytes %8" PRIu64 " ns  correlation %u\n", copy->bytes, copy->end - copy->start,
             copy->correlationId);
      break;
    }
    default: break;
  }
}

/* The buffer is ours again; the library does not touch it any more. */
static void CUPTIAPI bufferCompleted(CUcontext context, uint32_t streamId, uint8_t* buffer, size_t size,
                                     size_t validSize) {
  CUpti_Activity* record = NULL;
  CUptiResult result;
  (void)context, (void)streamId, (void)size; /* always NULL and 0: buffers are global */
  while ((result = cuptiActivityGetNextRecord(buffer, validSize, &record)) == CUPTI_SUCCESS) printRecord(record);
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) CHECK_CUPTI(result);
  free(buffer);
}

int main(void) {
  CUdevice device;
  Work work;
  size_t dropped = 0;
  /* Before the driver starts, so that its first calls are seen. */
  CHECK_CUPTI(cuptiActivityRegisterCallbacks(bufferRequested, bufferCompleted));
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));

  CHECK_CU(cuInit(0));
  CHECK_CU(cuDeviceGet(&device, 0));
  work = prepareWork(device);
  launchWork(&work, 1);
  finishWork(&work);

  /* Hands over every finished record before it returns. Work that still runs
   * is not waited for: synchronise first. */
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  CHECK_CUPTI(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
  printf("%zu records dropped\n", dropped);
  return 0;
}
