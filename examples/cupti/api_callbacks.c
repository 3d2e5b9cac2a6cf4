/* SPDX-License-Identifier: Apache-2.0
 * Callbacks: code that runs at the entry and the exit of chosen functions, on
 * the thread that calls them. */
#include <inttypes.h>

#include "common.h"

static unsigned launches;

static void CUPTIAPI onCall(void* userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  const CUpti_CallbackData* call = data;
  uint64_t now;
  CHECK_CUPTI(cuptiGetTimestamp(&now));
  if (call->callbackSite == CUPTI_API_ENTER) {
    *call->correlationData = now; /* one word, kept for this call until its exit */
    ++*(unsigned*)userdata;
    return;
  }
  printf("%s of %s took %" PRIu64 " ns and returned %d\n", call->functionName,
         call->symbolName != NULL ? call->symbolName : "-", now - *call->correlationData,
         *(const int*)call->functionReturnValue);
  (void)domain, (void)cbid;
}

int main(void) {
  CUpti_SubscriberHandle subscriber;
  CUdevice device;
  Work work;
  CHECK_CUPTI(cuptiSubscribe(&subscriber, onCall, &launches));
  CHECK_CUPTI(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  CHECK_CU(cuInit(0));
  CHECK_CU(cuDeviceGet(&device, 0));
  work = prepareWork(device);
  launchWork(&work, 1);
  launchWork(&work, 2);
  finishWork(&work);
  CHECK_CUPTI(cuptiUnsubscribe(subscriber));
  printf("%u launches\n", launches);
  return launches == 2 ? 0 : 1;
}
