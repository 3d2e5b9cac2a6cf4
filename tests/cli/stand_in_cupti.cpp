// SPDX-License-Identifier: Apache-2.0
// A libcupti for tests of the collector: the public functions that it calls,
// and standIn… functions with which a test program makes records appear.
#include <cupti.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::mutex mutex;
std::set<uint32_t> enabledKinds;
CUpti_BuffersCallbackRequestFunc requestBuffer;
CUpti_BuffersCallbackCompleteFunc completeBuffer;
uint8_t* buffer;
size_t bufferSize, used, droppedRecords;
CUpti_CallbackFunc callback;
void* callbackData;
bool periodSupported = std::getenv("STAND_IN_NO_PERIOD") == nullptr;

size_t sizeOf(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_DEVICE: return sizeof(CUpti_ActivityDevice5);
    case CUPTI_ACTIVITY_KIND_MARKER: return sizeof(CUpti_ActivityMarker2);
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT: return sizeof(CUpti_ActivityEnvironment);
    default: return sizeof(CUpti_ActivityAPI);
  }
}

void deliver() {
  if (buffer == nullptr) return;
  uint8_t* full = buffer;
  buffer = nullptr;
  completeBuffer(nullptr, 0, full, bufferSize, used);
}

}  // namespace

// The kinds that are on get the record; others are ignored, as in CUPTI.
EXPORT void standInRecord(const void* record) {
  std::lock_guard lock(mutex);
  uint32_t kind;
  std::memcpy(&kind, record, sizeof kind);
  if (!enabledKinds.contains(kind) && kind != CUPTI_ACTIVITY_KIND_ENVIRONMENT) return;
  const size_t size = sizeOf(kind);
  if (buffer != nullptr && used + size > bufferSize) deliver();
  if (buffer == nullptr) {
    size_t limit = 0;
    requestBuffer(&buffer, &bufferSize, &limit);
    used = 0;
    if (buffer == nullptr) {
      droppedRecords++;
      return;
    }
  }
  std::memcpy(buffer + used, record, size);
  used += size;
}
EXPORT void standInDrop(size_t n) { droppedRecords += n; }
EXPORT void standInProfilerCall(int start, int site) {
  if (callback == nullptr) return;
  CUpti_CallbackData data{};
  data.callbackSite = site == 0 ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  callback(callbackData, CUPTI_CB_DOMAIN_DRIVER_API,
           start ? CUPTI_DRIVER_TRACE_CBID_cuProfilerStart : CUPTI_DRIVER_TRACE_CBID_cuProfilerStop, &data);
}

EXPORT CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiGetTimestamp(uint64_t* time) {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  *time = static_cast<uint64_t>(t.tv_sec) * 1000000000ull + static_cast<uint64_t>(t.tv_nsec);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_NOT_SUPPORTED ? "CUPTI_ERROR_NOT_SUPPORTED" : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) {
    *name = cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 ? "cudaLaunchKernel_v7000" : "cudaMemcpy_v3020";
  } else {
    *name = "cuLaunchKernel";
  }
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                  CUpti_BuffersCallbackCompleteFunc complete) {
  if (std::getenv("STAND_IN_NO_REGISTER") != nullptr) return CUPTI_ERROR_UNKNOWN;
  requestBuffer = request;
  completeBuffer = complete;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD) return CUPTI_ERROR_NOT_SUPPORTED;
  std::lock_guard lock(mutex);
  enabledKinds.insert(kind);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  std::lock_guard lock(mutex);
  enabledKinds.erase(kind);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityFlushAll(uint32_t) {
  std::lock_guard lock(mutex);
  deliver();
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t) {
  return periodSupported ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_SUPPORTED;
}
EXPORT CUptiResult cuptiActivityGetNextRecord(uint8_t* data, size_t valid, CUpti_Activity** record) {
  uint8_t* next = data;
  if (*record != nullptr) {
    uint32_t kind;
    std::memcpy(&kind, *record, sizeof kind);
    next = reinterpret_cast<uint8_t*>(*record) + sizeOf(kind);
  }
  if (next >= data + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  *dropped = droppedRecords;
  droppedRecords = 0;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc function, void* data) {
  callback = function;
  callbackData = data;
  *subscriber = nullptr;
  return CUPTI_SUCCESS;
}
EXPORT CUptiResult cuptiEnableCallback(uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain, CUpti_CallbackId) {
  return CUPTI_SUCCESS;
}
