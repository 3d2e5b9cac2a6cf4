// SPDX-License-Identifier: Apache-2.0
//
// For CUDA_INJECTION64_PATH: records calls from within the program's first one.
#include <cupti.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace {

std::mutex mutex;
std::vector<CUpti_ActivityAPI> calls;

void requested(uint8_t** buffer, size_t* size, size_t* maximum) {
  *size = 1 << 20;
  *maximum = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* r = nullptr;
  std::lock_guard lock(mutex);
  while (cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS)
    if (r->kind == CUPTI_ACTIVITY_KIND_RUNTIME || r->kind == CUPTI_ACTIVITY_KIND_DRIVER)
      calls.push_back(*reinterpret_cast<CUpti_ActivityAPI*>(r));
  std::free(buffer);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  return cuptiActivityRegisterCallbacks(requested, completed) == CUPTI_SUCCESS &&
         cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME) == CUPTI_SUCCESS &&
         cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER) == CUPTI_SUCCESS;
}

// The records so far.
extern "C" __attribute__((visibility("default"))) const CUpti_ActivityAPI* recordedCalls(size_t* count) {
  cuptiActivityFlushAll(0);
  std::lock_guard lock(mutex);
  *count = calls.size();
  return calls.data();
}
