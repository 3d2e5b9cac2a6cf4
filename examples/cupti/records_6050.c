/* SPDX-License-Identifier: Apache-2.0
 * The record structures of CUPTI 6.5, for programs written against them. The
 * choice is made when the program is compiled, before the first include. */
#define CUPTI_RECORD_ABI 6050
#include <inttypes.h>

#include "common.h"

static unsigned kernels;

static void CUPTIAPI bufferRequested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *size = 64 * 1024;
  *buffer = aligned_alloc(8, *size);
  *maxNumRecords = 0;
}

static void CUPTIAPI bufferCompleted(CUcontext context, uint32_t streamId, uint8_t* buffer, size_t size,
                                     size_t validSize) {
  CUpti_Activity* record = NULL;
  (void)context, (void)streamId, (void)size;
  while (cuptiActivityGetNextRecord(buffer, validSize, &record) == CUPTI_SUCCESS) {
    const CUpti_ActivityKernel2* kernel = (const CUpti_ActivityKernel2*)record;
    printf("kernel %s grid %d block %d, %" PRIu64 " ns\n", kernel->name, kernel->gridX, kernel->blockX,
           kernel->end - kernel->start);
    if (kernel->gridX == BLOCKS && kernel->blockX == THREADS) ++kernels;
  }
  free(buffer);
}

int main(void) {
  CUdevice device;
  Work work;
  CHECK_CUPTI(cuptiActivityRegisterCallbacks(bufferRequested, bufferCompleted));
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CHECK_CU(cuInit(0));
  CHECK_CU(cuDeviceGet(&device, 0));
  work = prepareWork(device);
  launchWork(&work, 1);
  /* As in 6.5, the flush waits for the streams by itself. */
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  finishWork(&work);
  return kernels == 1 ? 0 : 1;
}
