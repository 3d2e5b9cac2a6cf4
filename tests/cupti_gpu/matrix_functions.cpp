// SPDX-License-Identifier: Apache-2.0
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include <cstdlib>

#include "matrix.h"

extern "C" {
// No header of CUPTI has these.
CUptiResult cuptiNvtxInitialize(void* getExportTable);
CUptiResult cuptiNvtxInitialize2(void* getExportTable);
}

namespace sonde::test {
namespace {

// With a group of one event, enabled or not.
void withGroup(bool enabled, const std::function<void(CUpti_EventGroup)>& use) {
  CUpti_EventGroup group = nullptr;
  if (cuptiEventGroupCreate(matrixContext, &group, 0) != CUPTI_SUCCESS) return;
  cuptiEventGroupAddEvent(group, matrixEvent);
  if (enabled) cuptiEventGroupEnable(group);
  use(group);
  cuptiEventGroupDisable(group);
  cuptiEventGroupDestroy(group);
}
void withSets(const std::function<void(CUpti_EventGroupSets*)>& use) {
  CUpti_EventGroupSets* sets = nullptr;
  CUpti_EventID ids[] = {matrixEvent};
  if (cuptiEventGroupSetsCreate(matrixContext, sizeof ids, ids, &sets) != CUPTI_SUCCESS) return;
  use(sets);
  cuptiEventGroupSetsDestroy(sets);
}

}  // namespace

std::vector<Function> functions() {
  static uint32_t u32;
  static uint64_t u64, many[64];
  static size_t size;
  static const char* text;
  static uint8_t buffer[4096];
  auto number = [](auto function) { return [function] { function(&u32); }; };
  std::vector<Function> list = {
      {"cuptiGetTimestamp", [] { cuptiGetTimestamp(&u64); }},
      {"cuptiGetVersion", number(cuptiGetVersion)},
      {"cuptiGetContextId", [] { cuptiGetContextId(matrixContext, &u32); }},
      {"cuptiGetDeviceId", [] { cuptiGetDeviceId(matrixContext, &u32); }},
      {"cuptiGetStreamId", [] { cuptiGetStreamId(matrixContext, nullptr, &u32); }},
      {"cuptiGetStreamIdEx", [] { cuptiGetStreamIdEx(matrixContext, nullptr, 1, &u32); }},
      {"cuptiGetGraphId", [] { cuptiGetGraphId(nullptr, &u32); }},
      {"cuptiGetGraphExecId", [] { cuptiGetGraphExecId(nullptr, &u32); }},
      {"cuptiGetGraphNodeId", [] { cuptiGetGraphNodeId(nullptr, &u64); }},
      {"cuptiGetThreadIdType",
       [] {
         CUpti_ActivityThreadIdType type;
         cuptiGetThreadIdType(&type);
       }},
      {"cuptiSetThreadIdType", [] { cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT); }},
      {"cuptiGetResultString", [] { cuptiGetResultString(CUPTI_ERROR_UNKNOWN, &text); }},
      {"cuptiGetErrorMessage", [] { cuptiGetErrorMessage(CUPTI_ERROR_UNKNOWN, &text); }},
      {"cuptiGetLastError", [] { cuptiGetLastError(); }},
      {"cuptiGetAutoBoostState",
       [] {
         CUpti_ActivityAutoBoostState state;
         cuptiGetAutoBoostState(matrixContext, &state);
       }},
      {"cuptiComputeCapabilitySupported",
       [] {
         int support;
         cuptiComputeCapabilitySupported(9, 0, &support);
       }},
      {"cuptiDeviceSupported",
       [] {
         int support;
         cuptiDeviceSupported(0, &support);
       }},
      {"cuptiDeviceVirtualizationMode",
       [] {
         CUpti_DeviceVirtualizationMode mode;
         cuptiDeviceVirtualizationMode(0, &mode);
       }},
      // The activity interface.
      {"cuptiActivityEnable", [] { cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"cuptiActivityEnableAndDump", [] { cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT); }},
      {"cuptiActivityDisable", [] { cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"cuptiActivityEnableContext", [] { cuptiActivityEnableContext(matrixContext, CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"cuptiActivityDisableContext", [] { cuptiActivityDisableContext(matrixContext, CUPTI_ACTIVITY_KIND_MEMSET); }},
      {"cuptiActivityEnableAllSyncRecords", [] { cuptiActivityEnableAllSyncRecords(1); }},
      {"cuptiActivityEnableAllocationSource", [] { cuptiActivityEnableAllocationSource(1); }},
      {"cuptiActivityEnableCudaEventDeviceTimestamps", [] { cuptiActivityEnableCudaEventDeviceTimestamps(1); }},
      {"cuptiActivityEnableHWTrace", [] { cuptiActivityEnableHWTrace(0); }},
      {"cuptiActivityEnableLatencyTimestamps", [] { cuptiActivityEnableLatencyTimestamps(1); }},
      {"cuptiActivityEnableLaunchAttributes", [] { cuptiActivityEnableLaunchAttributes(1); }},
      {"cuptiActivityEnableRuntimeApi", [] { cuptiActivityEnableRuntimeApi(20, 1); }},
      {"cuptiActivityEnableDriverApi", [] { cuptiActivityEnableDriverApi(5, 1); }},
      {"cuptiActivityConfigureUnifiedMemoryCounter",
       [] {
         CUpti_ActivityUnifiedMemoryCounterConfig config{};
         config.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
         config.kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
         config.enable = 1;
         cuptiActivityConfigureUnifiedMemoryCounter(&config, 1);
       }},
      {"cuptiActivityGetNumDroppedRecords", [] { cuptiActivityGetNumDroppedRecords(nullptr, 0, &size); }},
      {"cuptiActivityGetNextRecord",
       [] {
         CUpti_Activity* record = nullptr;
         cuptiActivityGetNextRecord(buffer, sizeof buffer, &record);
       }},
      {"cuptiActivityFlush", [] { cuptiActivityFlush(matrixContext, 0, 0); }},
      {"cuptiActivityFlushAll", [] { cuptiActivityFlushAll(0); }},
      {"cuptiActivityFlushAll, forced", [] { cuptiActivityFlushAll(1); }},
      {"cuptiActivityFlushPeriod", [] { cuptiActivityFlushPeriod(0); }},
      {"cuptiActivityGetAttribute",
       [] {
         size = sizeof u64;
         cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &u64);
       }},
      {"cuptiActivitySetAttribute",
       [] {
         size_t eight = 8;
         uint64_t value = 3200000;
         cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &eight, &value);
       }},
      {"cuptiActivityRegisterCallbacks",
       [] {
         cuptiActivityRegisterCallbacks(testing_support::Collector::requested, testing_support::Collector::completed);
       }},
      {"cuptiActivityRegisterTimestampCallback", [] { cuptiActivityRegisterTimestampCallback(ownClock); }},
      {"cuptiActivityEnqueueBuffer", [] { cuptiActivityEnqueueBuffer(nullptr, 0, buffer, sizeof buffer); }},
      {"cuptiActivityQueryBuffer", [] { cuptiActivityQueryBuffer(nullptr, 0, &size); }},
      {"cuptiActivityDequeueBuffer",
       [] {
         uint8_t* back = nullptr;
         cuptiActivityDequeueBuffer(nullptr, 0, &back, &size);
       }},
      {"cuptiActivityPushExternalCorrelationId",
       [] { cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 5); }},
      {"cuptiActivityPopExternalCorrelationId",
       [] { cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &u64); }},
      {"cuptiRegisterComputeCrcCallback", [] { cuptiRegisterComputeCrcCallback(ownChecksum); }},
      {"cuptiGetCubinCrc",
       [] {
         CUpti_GetCubinCrcParams p{};
         p.size = CUpti_GetCubinCrcParamsSize;
         p.cubin = kTracePtx;
         p.cubinSize = sizeof kTracePtx;
         cuptiGetCubinCrc(&p);
       }},
      {"cuptiGetSassToSourceCorrelation",
       [] {
         CUpti_GetSassToSourceCorrelationParams p{};
         p.size = CUpti_GetSassToSourceCorrelationParamsSize;
         p.cubin = kTracePtx;
         p.cubinSize = sizeof kTracePtx;
         p.functionName = kFill;
         cuptiGetSassToSourceCorrelation(&p);
         std::free(p.fileName);
         std::free(p.dirName);
       }},
      {"cuptiNvtxInitialize", [] { cuptiNvtxInitialize(reinterpret_cast<void*>(nvtxExports)); }},
      {"cuptiNvtxInitialize2", [] { cuptiNvtxInitialize2(reinterpret_cast<void*>(nvtxExports)); }},
      // The callback interface.
      {"cuptiGetCallbackName", [] { cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 20, &text); }},
      {"cuptiGetCallbackState", [] { cuptiGetCallbackState(&u32, matrixSubscriber, CUPTI_CB_DOMAIN_RUNTIME_API, 20); }},
      {"cuptiEnableCallback", [] { cuptiEnableCallback(1, matrixSubscriber, CUPTI_CB_DOMAIN_DRIVER_API, 5); }},
      {"cuptiEnableDomain", [] { cuptiEnableDomain(1, matrixSubscriber, CUPTI_CB_DOMAIN_NVTX); }},
      {"cuptiEnableAllDomains", [] { cuptiEnableAllDomains(1, matrixSubscriber); }},
      {"cuptiSupportedDomains",
       [] {
         CUpti_DomainTable domains = nullptr;
         cuptiSupportedDomains(&size, &domains);
       }},
      {"cuptiSubscribe",
       [] {
         CUpti_SubscriberHandle second;
         cuptiSubscribe(&second, probing, nullptr);
       }},
      {"cuptiSubscribe_v2",
       [] {
         CUpti_SubscriberHandle second;
         CUpti_SubscriberParams p{};
         p.structSize = sizeof p;
         cuptiSubscribe_v2(&second, probing, nullptr, &p);
       }},
      // Events and metrics.
      {"cuptiDeviceGetTimestamp", [] { cuptiDeviceGetTimestamp(matrixContext, &u64); }},
      {"cuptiDeviceGetAttribute",
       [] {
         size = sizeof u64;
         cuptiDeviceGetAttribute(0, CUPTI_DEVICE_ATTR_GLOBAL_MEMORY_BANDWIDTH, &size, &u64);
       }},
      {"cuptiDeviceGetChipName",
       [] {
         CUpti_Device_GetChipName_Params p{};
         p.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
         cuptiDeviceGetChipName(&p);
       }},
      {"cuptiDeviceGetNumEventDomains", [] { cuptiDeviceGetNumEventDomains(0, &u32); }},
      {"cuptiGetNumEventDomains", number(cuptiGetNumEventDomains)},
      {"cuptiDeviceEnumEventDomains",
       [] {
         CUpti_EventDomainID ids[8];
         size = sizeof ids;
         cuptiDeviceEnumEventDomains(0, &size, ids);
       }},
      {"cuptiEnumEventDomains",
       [] {
         CUpti_EventDomainID ids[8];
         size = sizeof ids;
         cuptiEnumEventDomains(&size, ids);
       }},
      {"cuptiDeviceGetEventDomainAttribute",
       [] {
         size = sizeof u32;
         cuptiDeviceGetEventDomainAttribute(0, matrixDomain, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT, &size, &u32);
       }},
      {"cuptiEventDomainGetAttribute",
       [] {
         char name[64];
         size = sizeof name;
         cuptiEventDomainGetAttribute(matrixDomain, CUPTI_EVENT_DOMAIN_ATTR_NAME, &size, name);
       }},
      {"cuptiEventDomainGetNumEvents", [] { cuptiEventDomainGetNumEvents(matrixDomain, &u32); }},
      {"cuptiEventDomainEnumEvents",
       [] {
         CUpti_EventID ids[8];
         size = sizeof ids;
         cuptiEventDomainEnumEvents(matrixDomain, &size, ids);
       }},
      {"cuptiEventGetAttribute",
       [] {
         char name[64];
         size = sizeof name;
         cuptiEventGetAttribute(matrixEvent, CUPTI_EVENT_ATTR_NAME, &size, name);
       }},
      {"cuptiEventGetIdFromName",
       [] {
         CUpti_EventID id;
         cuptiEventGetIdFromName(0, "inst_executed", &id);
       }},
      {"cuptiSetEventCollectionMode",
       [] { cuptiSetEventCollectionMode(matrixContext, CUPTI_EVENT_COLLECTION_MODE_KERNEL); }},
      {"cuptiEventGroupCreate", [] { withGroup(false, [](CUpti_EventGroup) {}); }},
      {"cuptiEventGroupDestroy", [] { withGroup(false, [](CUpti_EventGroup) {}); }},
      {"cuptiEventGroupAddEvent", [] { withGroup(false, [](CUpti_EventGroup) {}); }},
      {"cuptiEventGroupRemoveEvent",
       [] { withGroup(false, [](CUpti_EventGroup group) { cuptiEventGroupRemoveEvent(group, matrixEvent); }); }},
      {"cuptiEventGroupRemoveAllEvents",
       [] { withGroup(false, [](CUpti_EventGroup group) { cuptiEventGroupRemoveAllEvents(group); }); }},
      {"cuptiEventGroupEnable", [] { withGroup(true, [](CUpti_EventGroup) {}); }},
      {"cuptiEventGroupDisable",
       [] { withGroup(true, [](CUpti_EventGroup group) { cuptiEventGroupDisable(group); }); }},
      {"cuptiEventGroupResetAllEvents",
       [] { withGroup(true, [](CUpti_EventGroup group) { cuptiEventGroupResetAllEvents(group); }); }},
      {"cuptiEventGroupReadEvent",
       [] {
         withGroup(true, [](CUpti_EventGroup group) {
           size = sizeof many;
           cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, matrixEvent, &size, many);
         });
       }},
      {"cuptiEventGroupReadAllEvents",
       [] {
         withGroup(true, [](CUpti_EventGroup group) {
           size = sizeof many;
           CUpti_EventID ids[2];
           size_t idBytes = sizeof ids, read = 0;
           cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &size, many, &idBytes, ids, &read);
         });
       }},
      {"cuptiEventGroupGetAttribute",
       [] {
         withGroup(false, [](CUpti_EventGroup group) {
           size = sizeof u32;
           cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &u32);
         });
       }},
      {"cuptiEventGroupSetAttribute",
       [] {
         withGroup(false, [](CUpti_EventGroup group) {
           uint32_t all = 1;
           cuptiEventGroupSetAttribute(group, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof all, &all);
         });
       }},
      {"cuptiEventGroupSetsCreate", [] { withSets([](CUpti_EventGroupSets*) {}); }},
      {"cuptiEventGroupSetsDestroy", [] { withSets([](CUpti_EventGroupSets*) {}); }},
      {"cuptiEventGroupSetEnable",
       [] {
         withSets([](CUpti_EventGroupSets* sets) {
           cuptiEventGroupSetEnable(&sets->sets[0]);
           cuptiEventGroupSetDisable(&sets->sets[0]);
         });
       }},
      {"cuptiEventGroupSetDisable",
       [] { withSets([](CUpti_EventGroupSets* sets) { cuptiEventGroupSetDisable(&sets->sets[0]); }); }},
      {"cuptiEnableKernelReplayMode",
       [] {
         cuptiEnableKernelReplayMode(matrixContext);
         cuptiDisableKernelReplayMode(matrixContext);
       }},
      {"cuptiDisableKernelReplayMode", [] { cuptiDisableKernelReplayMode(matrixContext); }},
      {"cuptiGetNumMetrics", number(cuptiGetNumMetrics)},
      {"cuptiEnumMetrics",
       [] {
         CUpti_MetricID ids[8];
         size = sizeof ids;
         cuptiEnumMetrics(&size, ids);
       }},
      {"cuptiDeviceGetNumMetrics", [] { cuptiDeviceGetNumMetrics(0, &u32); }},
      {"cuptiDeviceEnumMetrics",
       [] {
         CUpti_MetricID ids[8];
         size = sizeof ids;
         cuptiDeviceEnumMetrics(0, &size, ids);
       }},
      {"cuptiMetricGetIdFromName",
       [] {
         CUpti_MetricID id;
         cuptiMetricGetIdFromName(0, "ipc", &id);
       }},
      {"cuptiMetricGetAttribute",
       [] {
         char name[64];
         size = sizeof name;
         cuptiMetricGetAttribute(matrixMetric, CUPTI_METRIC_ATTR_NAME, &size, name);
       }},
      {"cuptiMetricGetNumEvents", [] { cuptiMetricGetNumEvents(matrixMetric, &u32); }},
      {"cuptiMetricEnumEvents",
       [] {
         CUpti_EventID ids[8];
         size = sizeof ids;
         cuptiMetricEnumEvents(matrixMetric, &size, ids);
       }},
      {"cuptiMetricGetNumProperties", [] { cuptiMetricGetNumProperties(matrixMetric, &u32); }},
      {"cuptiMetricEnumProperties",
       [] {
         CUpti_MetricPropertyID ids[8];
         size = sizeof ids;
         cuptiMetricEnumProperties(matrixMetric, &size, ids);
       }},
      {"cuptiMetricGetRequiredEventGroupSets",
       [] {
         CUpti_EventGroupSets* sets = nullptr;
         if (cuptiMetricGetRequiredEventGroupSets(matrixContext, matrixMetric, &sets) == CUPTI_SUCCESS)
           cuptiEventGroupSetsDestroy(sets);
       }},
      {"cuptiMetricCreateEventGroupSets",
       [] {
         CUpti_EventGroupSets* sets = nullptr;
         if (cuptiMetricCreateEventGroupSets(matrixContext, sizeof matrixMetric, &matrixMetric, &sets) == CUPTI_SUCCESS)
           cuptiEventGroupSetsDestroy(sets);
       }},
      {"cuptiMetricGetValue",
       [] {
         CUpti_MetricValue value;
         cuptiMetricGetValue(0, matrixMetric, sizeof matrixEvent, &matrixEvent, sizeof u64, &u64, 1000, &value);
       }},
      {"cuptiMetricGetValue2",
       [] {
         CUpti_MetricValue value;
         cuptiMetricGetValue2(matrixMetric, sizeof matrixEvent, &matrixEvent, sizeof u64, &u64, 0, nullptr, 0, nullptr,
                              &value);
       }},
      // Clocks and the profiler interface.
      {"cuptiClockControlGetStatus",
       [] {
         CUpti_ClockControl_Status status;
         cuptiClockControlGetStatus(matrixContext, &status);
       }},
      {"cuptiClockControlLock",
       [] {
         cuptiClockControlLock(matrixContext, CUPTI_CLOCK_CONTROL_MODE_BASE);
         cuptiClockControlUnlock();
       }},
      {"cuptiClockControlUnlock", [] { cuptiClockControlUnlock(); }},
      {"cuptiProfilerInitialize",
       [] {
         CUpti_Profiler_Initialize_Params p{};
         p.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
         cuptiProfilerInitialize(&p);
       }},
      {"cuptiProfilerDeInitialize",
       [] {
         CUpti_Profiler_DeInitialize_Params p{};
         p.structSize = CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE;
         cuptiProfilerDeInitialize(&p);
       }},
      {"cuptiProfilerDeviceSupported",
       [] {
         CUpti_Profiler_DeviceSupported_Params p{};
         p.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
         cuptiProfilerDeviceSupported(&p);
       }},
  };
  // CUDA, of the runtime and of the driver.
  const std::vector<Function> calls = {
      {"memory",
       [] {
         void* memory = nullptr;
         cudaMalloc(&memory, 4096);
         cudaFree(memory);
         cudaMallocManaged(&memory, 4096, cudaMemAttachGlobal);
         cudaFree(memory);
         cudaMallocAsync(&memory, 4096, nullptr);
         cudaFreeAsync(memory, nullptr);
       }},
      {"copies and sets",
       [] {
         uint32_t host[16];
         cudaMemset(matrixMemory, 0, 64);
         cudaMemcpy(host, matrixMemory, 64, cudaMemcpyDeviceToHost);
         cudaMemcpyAsync(matrixMemory, host, 64, cudaMemcpyHostToDevice, nullptr);
         cudaStreamSynchronize(nullptr);
       }},
      {"a launch",
       [] {
         uint32_t value = 1;
         void* arguments[] = {&matrixMemory, &value};
         cudaLaunchKernel(&fillStub, dim3(1), dim3(32), arguments, 0, nullptr);
         cudaDeviceSynchronize();
       }},
      {"streams and events",
       [] {
         cudaStream_t stream = nullptr;
         cudaEvent_t mark = nullptr;
         cudaStreamCreate(&stream);
         cudaEventCreate(&mark);
         cudaEventRecord(mark, stream);
         cudaStreamWaitEvent(nullptr, mark, 0);
         cudaEventSynchronize(mark);
         cudaEventDestroy(mark);
         cudaStreamDestroy(stream);
       }},
      {"modules",
       [] {
         CUmodule module = nullptr;
         CUfunction function = nullptr;
         cuModuleLoadData(&module, kTracePtx);
         cuModuleGetFunction(&function, module, kFill);
         uint32_t value = 1;
         void* arguments[] = {&matrixMemory, &value};
         cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
         cuModuleUnload(module);
       }},
      {"graphs",
       [] {
         cudaGraph_t graph = nullptr;
         cudaGraphExec_t executable = nullptr;
         cudaGraphNode_t node = nullptr;
         cudaGraphCreate(&graph, 0);
         cudaGraphAddEmptyNode(&node, graph, nullptr, 0);
         cudaGraphInstantiate(&executable, graph, 0);
         cudaGraphLaunch(executable, nullptr);
         cudaStreamSynchronize(nullptr);
         cudaGraphExecDestroy(executable);
         cudaGraphDestroy(graph);
       }},
      {"a context",
       [] {
         CUcontext other = nullptr;
         cuCtxCreate(&other, nullptr, 0, 0);
         cuCtxDestroy(other);
         cuCtxSetCurrent(matrixContext);
       }},
  };
  list.insert(list.end(), calls.begin(), calls.end());
  return list;
}

}  // namespace sonde::test
