/* SPDX-License-Identifier: Apache-2.0
 *
 * Built with the toolkit's headers and linked with the toolkit's libcupti; run
 * with ours. The dynamic linker aborts such a program when a symbol version is
 * missing.
 */
#define _GNU_SOURCE
#include <cupti.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void check(int ok, const char* what) {
  if (!ok) {
    printf("failed: %s\n", what);
    ++failures;
  }
}

static void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *buffer = NULL;
  *size = 0;
  *maxNumRecords = 0;
}

static void CUPTIAPI completed(CUcontext context, uint32_t streamId, uint8_t* buffer, size_t size, size_t validSize) {
  (void)context, (void)streamId, (void)buffer, (void)size, (void)validSize;
}

int main(int argc, char** argv) {
  uint32_t version = 0;
  uint64_t before = 0, after = 0;
  size_t dropped = 1;
  const char* text = NULL;
  Dl_info info;
  check(cuptiGetVersion(&version) == CUPTI_SUCCESS && version == CUPTI_API_VERSION, "cuptiGetVersion gives 130001");
  check(dladdr((void*)(size_t)&cuptiGetVersion, &info) != 0, "dladdr");
  check(argc > 1 && dlsym(RTLD_DEFAULT, "cuptiClockControlLock") != NULL,
        "the library is ours: it has cuptiClockControlLock");
  check(cuptiGetResultString(CUPTI_ERROR_INVALID_KIND, &text) == CUPTI_SUCCESS &&
            strcmp(text, "CUPTI_ERROR_INVALID_KIND") == 0,
        "cuptiGetResultString");
  check(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &text) ==
                CUPTI_SUCCESS &&
            strcmp(text, "cudaLaunchKernel_v7000") == 0,
        "cuptiGetCallbackName");
  check(cuptiGetTimestamp(&before) == CUPTI_SUCCESS && cuptiGetTimestamp(&after) == CUPTI_SUCCESS && after >= before &&
            before > 1500000000ull * 1000000000ull,
        "cuptiGetTimestamp: nanoseconds since the epoch, never backwards");
  check(cuptiActivityRegisterCallbacks(requested, completed) == CUPTI_SUCCESS, "cuptiActivityRegisterCallbacks");
  check(cuptiActivityRegisterCallbacks(NULL, completed) == CUPTI_ERROR_INVALID_PARAMETER, "a NULL callback is refused");
  check(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS && dropped == 0, "nothing was dropped");
  (void)argv;
  printf("%d failures, library %s\n", failures, info.dli_fname);
  return failures != 0;
}
