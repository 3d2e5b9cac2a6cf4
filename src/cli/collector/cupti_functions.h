// SPDX-License-Identifier: Apache-2.0
// The public CUPTI functions that the collector calls, found with dlsym in
// whichever libcupti it was told to use.
#ifndef SONDE_CLI_COLLECTOR_CUPTI_FUNCTIONS_H_
#define SONDE_CLI_COLLECTOR_CUPTI_FUNCTIONS_H_

#include <cupti.h>

#include <string>

namespace sonde::collector {

struct CuptiFunctions {
  void* handle = nullptr;
  decltype(&::cuptiGetVersion) getVersion = nullptr;
  decltype(&::cuptiGetTimestamp) getTimestamp = nullptr;
  decltype(&::cuptiGetResultString) getResultString = nullptr;
  decltype(&::cuptiGetCallbackName) getCallbackName = nullptr;
  decltype(&::cuptiActivityRegisterCallbacks) registerCallbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityFlushAll) flushAll = nullptr;
  decltype(&::cuptiActivityGetNextRecord) getNextRecord = nullptr;
  decltype(&::cuptiActivityGetNumDroppedRecords) getNumDroppedRecords = nullptr;
  // Not in every library: may be NULL.
  decltype(&::cuptiActivityFlushPeriod) flushPeriod = nullptr;
  decltype(&::cuptiSetThreadIdType) setThreadIdType = nullptr;
  decltype(&::cuptiActivityConfigureUnifiedMemoryCounter) configureUnifiedMemory = nullptr;
  decltype(&::cuptiSubscribe) subscribe = nullptr;
  decltype(&::cuptiEnableCallback) enableCallback = nullptr;
  decltype(&::cuptiGetDeviceId) getDeviceId = nullptr;
  decltype(&::cuptiSetEventCollectionMode) setEventCollectionMode = nullptr;
  decltype(&::cuptiEnableKernelReplayMode) enableKernelReplayMode = nullptr;
  decltype(&::cuptiDisableKernelReplayMode) disableKernelReplayMode = nullptr;
  decltype(&::cuptiGetGraphExecId) getGraphExecId = nullptr;
  decltype(&::cuptiDeviceGetEventDomainAttribute) deviceGetEventDomainAttribute = nullptr;
  decltype(&::cuptiEventGetIdFromName) eventGetIdFromName = nullptr;
  decltype(&::cuptiEventGetAttribute) eventGetAttribute = nullptr;
  decltype(&::cuptiEventGroupSetsCreate) eventGroupSetsCreate = nullptr;  // NULL: there is no Event API
  decltype(&::cuptiEventGroupGetAttribute) eventGroupGetAttribute = nullptr;
  decltype(&::cuptiEventGroupSetAttribute) eventGroupSetAttribute = nullptr;
  decltype(&::cuptiEventGroupEnable) eventGroupEnable = nullptr;
  decltype(&::cuptiEventGroupDisable) eventGroupDisable = nullptr;
  decltype(&::cuptiEventGroupReadAllEvents) eventGroupReadAllEvents = nullptr;
  int (*initializeInjectionNvtx2)(void* getExportTable) = nullptr;

  // False: *error says which file or function is missing.
  bool load(const char* path, std::string* error);
};

}  // namespace sonde::collector

#endif  // SONDE_CLI_COLLECTOR_CUPTI_FUNCTIONS_H_
