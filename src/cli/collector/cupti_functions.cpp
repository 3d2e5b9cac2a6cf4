// SPDX-License-Identifier: Apache-2.0
#include "cli/collector/cupti_functions.h"

#include <dlfcn.h>

namespace sonde::collector {
namespace {

template <typename F>
void find(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, name));
}

}  // namespace

bool CuptiFunctions::load(const char* path, std::string* error) {
  handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    *error = why != nullptr ? why : path;
    return false;
  }
  const char* missing = nullptr;
  const auto need = [&](const char* name, auto& function) {
    find(handle, name, function);
    if (function == nullptr && missing == nullptr) missing = name;
  };
  need("cuptiGetVersion", getVersion);
  need("cuptiGetTimestamp", getTimestamp);
  need("cuptiGetResultString", getResultString);
  need("cuptiGetCallbackName", getCallbackName);
  need("cuptiActivityRegisterCallbacks", registerCallbacks);
  need("cuptiActivityEnable", enable);
  need("cuptiActivityDisable", disable);
  need("cuptiActivityFlushAll", flushAll);
  need("cuptiActivityGetNextRecord", getNextRecord);
  need("cuptiActivityGetNumDroppedRecords", getNumDroppedRecords);
  find(handle, "cuptiActivityFlushPeriod", flushPeriod);
  find(handle, "cuptiSetThreadIdType", setThreadIdType);
  find(handle, "cuptiActivityConfigureUnifiedMemoryCounter", configureUnifiedMemory);
  find(handle, "cuptiSubscribe", subscribe);
  find(handle, "cuptiEnableCallback", enableCallback);
  find(handle, "cuptiEventGroupSetsCreate", eventGroupSetsCreate);
  find(handle, "cuptiGetDeviceId", getDeviceId);
  find(handle, "cuptiSetEventCollectionMode", setEventCollectionMode);
  find(handle, "cuptiEnableKernelReplayMode", enableKernelReplayMode);
  find(handle, "cuptiDisableKernelReplayMode", disableKernelReplayMode);
  find(handle, "cuptiGetGraphExecId", getGraphExecId);
  find(handle, "cuptiDeviceGetEventDomainAttribute", deviceGetEventDomainAttribute);
  find(handle, "cuptiEventGetIdFromName", eventGetIdFromName);
  find(handle, "cuptiEventGetAttribute", eventGetAttribute);
  find(handle, "cuptiEventGroupGetAttribute", eventGroupGetAttribute);
  find(handle, "cuptiEventGroupSetAttribute", eventGroupSetAttribute);
  find(handle, "cuptiEventGroupEnable", eventGroupEnable);
  find(handle, "cuptiEventGroupDisable", eventGroupDisable);
  find(handle, "cuptiEventGroupReadAllEvents", eventGroupReadAllEvents);
  // The Event API is whole or absent.
  if (getDeviceId == nullptr || setEventCollectionMode == nullptr || deviceGetEventDomainAttribute == nullptr ||
      eventGetIdFromName == nullptr || eventGetAttribute == nullptr || eventGroupGetAttribute == nullptr ||
      eventGroupSetAttribute == nullptr || eventGroupEnable == nullptr || eventGroupDisable == nullptr ||
      eventGroupReadAllEvents == nullptr)
    eventGroupSetsCreate = nullptr;
  find(handle, "InitializeInjectionNvtx2", initializeInjectionNvtx2);
  if (missing != nullptr) {
    *error = std::string(path) + " has no function " + missing + ", so it is no CUPTI that the collector can use";
    return false;
  }
  return true;
}

}  // namespace sonde::collector
