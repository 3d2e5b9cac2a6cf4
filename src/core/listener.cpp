// SPDX-License-Identifier: Apache-2.0
// What the platform calls: API calls, resources, synchronisation, finished work.
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "core/core.h"
#include "core/delivery.h"
#include "core/errors.h"
#include "core/events/access.h"
#include "core/pass.h"
#include "core/records.h"
#include "core/strings.h"
#include "core/unified_memory.h"
#include "core/work.h"

namespace sonde::core {
namespace {

// ------------------------------------------------------------- API calls --

// listenerWords of a call.
enum : unsigned {
  kWanted = 0,        // wantedCalls at entry, records of nested calls removed
  kOuterRecorded = 1  // ThreadState::runtimeRecorded outside this call
};

CUpti_CallbackData callbackData(const SondeApiCall& call, const Client& client, CallFrame& frame,
                                CUpti_ApiCallbackSite site) {
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.functionName = call.functionName;
  data.functionParams = call.params;
  data.functionReturnValue = site == CUPTI_API_EXIT ? call.returnValue : nullptr;
  data.symbolName = call.symbolName;
  data.context = static_cast<CUcontext>(call.context);
  data.contextUid = call.contextUid;
  data.correlationData = &frame.correlationData[client.index];
  data.correlationId = call.correlationId;
  return data;
}

// EXTERNAL_CORRELATION records: the innermost id of each kind.
void recordExternalIds(ThreadState& thread, Client& client, uint32_t correlationId) {
  const std::vector<ExternalId>& stack = thread.external[client.index];
  if (stack.empty() || thread.externalGeneration[client.index] != client.generation.load(std::memory_order_relaxed)) {
    return;
  }
  if ((client.anyKinds.load(std::memory_order_relaxed) & kindBit(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) == 0)
    return;
  uint32_t seen = 0;
  for (size_t i = stack.size(); i-- > 0;) {
    const uint32_t bit = 1u << stack[i].kind;
    if (seen & bit) continue;
    seen |= bit;
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = stack[i].kind;
    record.externalId = stack[i].id;
    record.correlationId = correlationId;
    client.append(thread, record);
  }
}

// Callbacks, clients with clocks of their own, external ids: whatever a plain
// recorded call has not.
__attribute__((noinline)) void enterSlow(ThreadState& thread, SondeApiCall* call, uint32_t callbacks,
                                         uint32_t records) {
  CallFrame* frame = nullptr;
  auto needFrame = [&] {
    if (frame == nullptr) call->listenerData = frame = thread.takeFrame();
  };
  if (callbacks != 0) {
    needFrame();
    forEachClient(callbacks, [&](Client& client) {
      const CUpti_CallbackData data = callbackData(*call, client, *frame, CUPTI_API_ENTER);
      dispatch(thread, client, static_cast<CUpti_CallbackDomain>(call->domain), call->cbid, &data);
    });
  }
  forEachClient(records, [&](Client& client) {
    recordExternalIds(thread, client, call->correlationId);
    if (ClientClock* clock = client.clock.load(std::memory_order_acquire)) {
      needFrame();
      frame->start[client.index] = clock->read();
    } else if (frame != nullptr) {
      frame->start[client.index] = 0;
    }
  });
}

bool needsSlowEntry(const ThreadState& thread, uint32_t records) {
  bool slow = false;
  forEachClient(records, [&](Client& client) {
    slow = slow || !thread.external[client.index].empty() || client.clock.load(std::memory_order_relaxed) != nullptr;
  });
  return slow;
}

void apiEnter(void*, SondeApiCall* call) {
  const uint32_t wanted = wantedCalls[call->domain][call->cbid].load(std::memory_order_relaxed);
  ThreadState& thread = threadState();
  uint32_t callbacks = wanted & 0xffff;
  // Callbacks need the parameters, which nobody knows of a call that began unseen.
  if (call->domain == SONDE_DOMAIN_RUNTIME && call->nested != 0 && call->params == nullptr) callbacks = 0;
  uint32_t records = wanted >> 16;
  call->listenerWords[kOuterRecorded] = thread.runtimeRecorded;
  if (call->domain == SONDE_DOMAIN_RUNTIME) {
    thread.runtimeRecorded |= records;
  } else if (call->nested != 0) {
    records &= ~thread.runtimeRecorded;
  }
  call->listenerWords[kWanted] = callbacks | records << 16;
  if (callbacks != 0 || needsSlowEntry(thread, records)) enterSlow(thread, call, callbacks, records);
  call->enterTime = now();
}

inline void recordCall(ThreadState& thread, Client& client, const SondeApiCall& call, const CallFrame* frame,
                       uint64_t end) {
  const uint32_t kind = call.domain == SONDE_DOMAIN_RUNTIME ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  // With a choice by context; single functions that were switched on by
  // themselves are recorded everywhere.
  if (client.contexts.load(std::memory_order_relaxed) != nullptr &&
      (client.anyKinds.load(std::memory_order_relaxed) & kindBit(kind)) != 0 &&
      !client.kindOn(kind, static_cast<CUcontext>(call.context))) {
    return;
  }
  uint64_t start = call.enterTime;
  if (ClientClock* clock = client.clock.load(std::memory_order_acquire)) [[unlikely]] {
    end = clock->read();
    start = frame != nullptr && frame->start[client.index] != 0 ? frame->start[client.index] : clock->convert(start);
  }
  auto* record = static_cast<CUpti_ActivityAPI*>(client.reserve(thread, sizeof(CUpti_ActivityAPI)));
  if (record == nullptr) return;
  record->kind = static_cast<CUpti_ActivityKind>(kind);
  record->cbid = call.cbid;
  record->start = start;
  record->end = end;
  record->processId = processId();
  record->threadId = threadIdFor(client, thread);
  record->correlationId = call.correlationId;
  record->returnValue = call.returnValue != nullptr ? *static_cast<const uint32_t*>(call.returnValue) : 0;
  client.commit(thread, sizeof(CUpti_ActivityAPI));
  if (client.needsBuffer.load(std::memory_order_relaxed)) [[unlikely]]
    offerBuffer(client, thread);
}

void apiExit(void*, SondeApiCall* call) {
  const uint64_t end = now();
  if (call->enterTime == 0) return;  // nobody listened at the entry
  const auto before = static_cast<uint32_t>(call->listenerWords[kWanted]);
  const uint32_t wanted = before & wantedCalls[call->domain][call->cbid].load(std::memory_order_relaxed);
  ThreadState& thread = threadState();
  auto* frame = static_cast<CallFrame*>(call->listenerData);
  thread.runtimeRecorded = static_cast<uint32_t>(call->listenerWords[kOuterRecorded]);
  forEachClient(wanted >> 16, [&](Client& client) { recordCall(thread, client, *call, frame, end); });
  if ((wanted & 0xffff) != 0 && frame != nullptr) {
    forEachClient(wanted & 0xffff, [&](Client& client) {
      const CUpti_CallbackData data = callbackData(*call, client, *frame, CUPTI_API_EXIT);
      dispatch(thread, client, static_cast<CUpti_CallbackDomain>(call->domain), call->cbid, &data);
    });
  }
  if (frame != nullptr) thread.giveFrame(frame);
}

// -------------------------------------------------------------- resources --

void forgetContext(Client& client, CUcontext context) {
  std::lock_guard lock(registryMutex());
  const ContextTable* table = client.contexts.load();
  if (table == nullptr) return;
  auto next = std::make_unique<ContextTable>();
  for (const ContextKinds& entry : *table) {
    if (entry.context != context) next->push_back(entry);
  }
  client.contexts.store(next->empty() ? nullptr : next.get());
  client.contextTables.push_back(std::move(next));
}

void recordMemory(ThreadState& thread, const SondeResource& event) {
  const auto context = static_cast<CUcontext>(event.context);
  auto each = [&](uint32_t kind, auto&& make) {
    forEachClient(wantedKinds[kind].load(std::memory_order_relaxed), [&](Client& client) {
      if (client.kindOn(kind, context)) make(client);
    });
  };
  if (event.memoryOp >= 3) {
    each(CUPTI_ACTIVITY_KIND_MEMORY_POOL, [&](Client& client) { client.append(thread, poolRecord(client, event)); });
    return;
  }
  each(CUPTI_ACTIVITY_KIND_MEMORY2, [&](Client& client) { client.append(thread, memory2Record(client, event)); });
  each(CUPTI_ACTIVITY_KIND_MEMORY, [&](Client& client) { trackAllocation(thread, client, event); });
}

// Activity records of a resource that came into being or is about to go.
void recordResource(const SondeResource& event) {
  ThreadState& thread = threadState();
  const auto context = static_cast<CUcontext>(event.context);
  auto each = [&](uint32_t kind, uint32_t id, auto&& make) {
    forEachClient(wantedKinds[kind].load(std::memory_order_relaxed), [&](Client& client) {
      if (client.kindOn(kind, context) && client.reportOnce(kind, id)) client.append(thread, make());
    });
  };
  const SondePlatform* platform = attachedPlatform();
  switch (event.event) {
    case SONDE_RESOURCE_INIT_FINISHED:
      for (uint32_t kind :
           {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE, CUPTI_ACTIVITY_KIND_ENVIRONMENT}) {
        forEachClient(wantedKinds[kind].load(), [&](Client& client) { reportExisting(&client, kind, false); });
      }
      break;
    case SONDE_RESOURCE_CONTEXT_CREATED:
      if (platform != nullptr) {
        each(CUPTI_ACTIVITY_KIND_CONTEXT, event.contextUid, [&] { return contextRecord(*platform, event); });
      }
      // Room for the work of the context.
      forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_OVERHEAD].load(std::memory_order_relaxed), [&](Client& client) {
        const uint64_t start = now();
        client.deviceBuffers.prepare(event.contextUid);
        reportOverhead(client, thread, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, start);
      });
      break;
    case SONDE_RESOURCE_STREAM_CREATED:
      // Stream ids are unique within a context only.
      each(CUPTI_ACTIVITY_KIND_STREAM, event.contextUid << 20 ^ event.id, [&] {
        CUpti_ActivityStream record = streamRecord(event);
        if (record.correlationId == 0 && platform != nullptr) record.correlationId = platform->correlationId();
        return record;
      });
      break;
    case SONDE_RESOURCE_MODULE_LOADED:
      each(CUPTI_ACTIVITY_KIND_MODULE, event.id, [&] { return moduleRecord(event); });
      break;
    case SONDE_RESOURCE_FUNCTION_LOADED:
      each(CUPTI_ACTIVITY_KIND_FUNCTION, event.id, [&] { return functionRecord(event); });
      break;
    case SONDE_RESOURCE_DEVICE_MEMORY: recordMemory(thread, event); break;
    default: break;
  }
}

struct EventName {
  uint32_t event;
  CUpti_CallbackIdResource cbid;
};
constexpr EventName kResourceCbids[] = {
    {SONDE_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_CREATED},
    {SONDE_RESOURCE_CONTEXT_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING},
    {SONDE_RESOURCE_STREAM_CREATED, CUPTI_CBID_RESOURCE_STREAM_CREATED},
    {SONDE_RESOURCE_STREAM_DESTROY_STARTING, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING},
    {SONDE_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_LOADED},
    {SONDE_RESOURCE_MODULE_UNLOAD_STARTING, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING},
    {SONDE_RESOURCE_INIT_FINISHED, CUPTI_CBID_RESOURCE_CU_INIT_FINISHED},
    {SONDE_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPH_CREATED},
    {SONDE_RESOURCE_GRAPH_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING},
    {SONDE_RESOURCE_GRAPH_CLONED, CUPTI_CBID_RESOURCE_GRAPH_CLONED},
    {SONDE_RESOURCE_GRAPH_NODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED},
    {SONDE_RESOURCE_GRAPH_NODE_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING},
    {SONDE_RESOURCE_GRAPH_NODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED},
    {SONDE_RESOURCE_GRAPH_EXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED},
    {SONDE_RESOURCE_GRAPH_EXEC_DESTROY_STARTING, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING},
};

CUpti_GraphData graphData(const SondeResource& event) {
  CUpti_GraphData data{};
  data.nodeType = static_cast<CUgraphNodeType>(event.nodeType);
  switch (event.event) {
    case SONDE_RESOURCE_GRAPH_CREATED:
    case SONDE_RESOURCE_GRAPH_DESTROY_STARTING: data.graph = static_cast<CUgraph>(event.handle); break;
    case SONDE_RESOURCE_GRAPH_CLONED:
      data.graph = static_cast<CUgraph>(event.handle);
      data.originalGraph = static_cast<CUgraph>(event.parent);
      break;
    case SONDE_RESOURCE_GRAPH_EXEC_CREATED:
    case SONDE_RESOURCE_GRAPH_EXEC_DESTROY_STARTING:
      data.graphExec = static_cast<CUgraphExec>(event.handle);
      data.graph = static_cast<CUgraph>(event.parent);
      break;
    default:
      data.node = static_cast<CUgraphNode>(event.handle);
      data.graph = static_cast<CUgraph>(event.parent);
      data.originalNode = static_cast<CUgraphNode>(event.originalNode);
      break;
  }
  return data;
}

void callResource(const SondeResource& event) {
  CUpti_CallbackIdResource cbid = CUPTI_CBID_RESOURCE_INVALID;
  for (const EventName& name : kResourceCbids) {
    if (name.event == event.event) cbid = name.cbid;
  }
  if (cbid == CUPTI_CBID_RESOURCE_INVALID || !eventWanted(CUPTI_CB_DOMAIN_RESOURCE, cbid)) return;
  CUpti_ResourceData data{};
  CUpti_ModuleResourceData module{};
  CUpti_GraphData graph{};
  data.context = static_cast<CUcontext>(event.context);
  switch (event.event) {
    case SONDE_RESOURCE_STREAM_CREATED:
    case SONDE_RESOURCE_STREAM_DESTROY_STARTING:
      data.resourceHandle.stream = static_cast<CUstream>(event.handle);
      break;
    case SONDE_RESOURCE_MODULE_LOADED:
    case SONDE_RESOURCE_MODULE_UNLOAD_STARTING:
      module.moduleId = event.id;
      module.cubinSize = event.imageSize;
      module.pCubin = static_cast<const char*>(event.image);
      data.resourceDescriptor = &module;
      break;
    default:
      if (event.event >= SONDE_RESOURCE_GRAPH_CREATED) {
        graph = graphData(event);
        data.resourceDescriptor = &graph;
      }
      break;
  }
  dispatchEvent(CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

// Clients with a checksum of their own see every image that is loaded.
void computeCrcs(const SondeResource& event) {
  ThreadState& thread = threadState();
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    Client& client = clients()[i];
    if (!client.inUse()) continue;
    thread.inClient[i].fetch_add(1);
    uint64_t crc = 0;
    if (CUpti_ComputeCrcCallbackFunc function = client.computeCrc.load()) function(event.image, event.imageSize, &crc);
    thread.inClient[i].fetch_sub(1);
  }
}

void resource(void*, const SondeResource* event) {
  if (event->event == SONDE_RESOURCE_MODULE_LOADED) computeCrcs(*event);
  recordResource(*event);
  callResource(*event);
  if (event->event == SONDE_RESOURCE_CONTEXT_DESTROY_STARTING) {
    const uint64_t start = now();
    events::contextDestroyed(static_cast<CUcontext>(event->context));
    forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_MEMORY].load(std::memory_order_relaxed),
                  [&](Client& client) { allocationsGo(threadState(), client, event->contextUid); });
    for (uint32_t i = 0; i < kMaxClients; ++i) {
      Client& client = clients()[i];
      if (client.inUse() && client.contexts.load() != nullptr) {
        forgetContext(client, static_cast<CUcontext>(event->context));
      }
    }
    forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_OVERHEAD].load(std::memory_order_relaxed), [&](Client& client) {
      reportOverhead(client, threadState(), CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, start);
    });
  }
}

// ---------------------------------------------------------- the rest of it --

void synchronized(void*, const SondeSync* sync) {
  ThreadState& thread = threadState();
  forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_SYNCHRONIZATION].load(std::memory_order_relaxed), [&](Client& client) {
    if (!client.kindOn(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, static_cast<CUcontext>(sync->context))) return;
    client.append(thread, synchronizationRecord(client, *sync));
  });
  CUpti_CallbackIdSync cbid;
  if (sync->kind == SONDE_SYNC_STREAM_SYNCHRONIZE) {
    cbid = CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED;
  } else if (sync->kind == SONDE_SYNC_CONTEXT_SYNCHRONIZE) {
    cbid = CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED;
  } else {
    return;
  }
  if (!eventWanted(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid)) return;
  CUpti_SynchronizeData data{};
  data.context = static_cast<CUcontext>(sync->context);
  data.stream = static_cast<CUstream>(sync->stream);
  dispatchEvent(CUPTI_CB_DOMAIN_SYNCHRONIZE, cbid, &data);
}

CUpti_ActivityOverheadKind overheadKind(uint32_t kind) {
  switch (kind) {
    case SONDE_OVERHEAD_COMPILER: return CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER;
    case SONDE_OVERHEAD_LAZY_LOADING: return CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING;
    case SONDE_OVERHEAD_INSTRUMENTATION: return CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION;
    case SONDE_OVERHEAD_RUNTIME_MODULE_LOADING: return CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING;
    case SONDE_OVERHEAD_QUEUE_FULL: return CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL;
    default: return CUPTI_ACTIVITY_OVERHEAD_UNKNOWN;
  }
}

// Which queue was full. The client frees it; one that reads an older structure
// would never see it.
void* queueFullData(const Client& client, const SondeOverhead& event) {
  if (client.layouts.load()->version[CUPTI_ACTIVITY_KIND_OVERHEAD] != 0) return nullptr;
  if (event.size < offsetof(SondeOverhead, channelType) + sizeof event.channelType) return nullptr;
  auto* data = static_cast<CUpti_ActivityOverheadCommandBufferFullData*>(
      std::malloc(sizeof(CUpti_ActivityOverheadCommandBufferFullData)));
  if (data != nullptr) *data = {0, event.channelId, event.channelType};
  return data;
}

void overhead(void*, const SondeOverhead* event) {
  ThreadState& thread = threadState();
  forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_OVERHEAD].load(std::memory_order_relaxed), [&](Client& client) {
    CUpti_ActivityOverhead3 record{};
    record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    record.overheadKind = overheadKind(event->kind);
    record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    record.objectId.pt.processId = processId();
    record.objectId.pt.threadId = threadIdFor(client, thread);
    record.start = client.toClientTime(event->start);
    record.end = client.toClientTime(event->end);
    record.correlationId = event->correlationId;
    if (event->kind == SONDE_OVERHEAD_QUEUE_FULL) record.overheadData = queueFullData(client, *event);
    if (!client.append(thread, record)) std::free(record.overheadData);
  });
  if (event->kind != SONDE_OVERHEAD_COMPILER) return;
  forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_JIT].load(std::memory_order_relaxed), [&](Client& client) {
    CUpti_ActivityJit2 record{};
    record.kind = CUPTI_ACTIVITY_KIND_JIT;
    record.jitEntryType = CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN;
    record.jitOperationType =
        event->cacheHit != 0 ? CUPTI_ACTIVITY_JIT_OPERATION_CACHE_LOAD : CUPTI_ACTIVITY_JIT_OPERATION_COMPILE;
    record.deviceId = event->deviceId;
    record.start = client.toClientTime(event->start);
    record.end = client.toClientTime(event->end);
    record.correlationId = event->correlationId;
    record.jitOperationCorrelationId = event->correlationId;
    if (event->size >= sizeof *event && event->cacheFile != nullptr) {
      record.cachePath = intern(event->cacheFile);
      record.cacheSize = event->cacheBytes;
    }
    record.processId = processId();
    record.threadId = threadIdFor(client, thread);
    client.append(thread, record);
  });
}

void preempted(void*, const SondePreemption* event) {
  ThreadState& thread = threadState();
  forEachClient(wantedKinds[CUPTI_ACTIVITY_KIND_PREEMPTION].load(std::memory_order_relaxed), [&](Client& client) {
    if (!client.kindOn(CUPTI_ACTIVITY_KIND_PREEMPTION, static_cast<CUcontext>(event->context))) return;
    CUpti_ActivityPreemption record{};
    record.kind = CUPTI_ACTIVITY_KIND_PREEMPTION;
    record.preemptionKind =
        event->restored != 0 ? CUPTI_ACTIVITY_PREEMPTION_KIND_RESTORE : CUPTI_ACTIVITY_PREEMPTION_KIND_SAVE;
    record.timestamp = client.toClientTime(event->time);
    record.gridId = static_cast<int64_t>(event->gridId);
    record.blockX = event->block[0];
    record.blockY = event->block[1];
    record.blockZ = event->block[2];
    client.append(thread, record);
  });
}

void contextFailed(void*, SondeHandle, uint32_t, int32_t error, const char* message) {
  reportState(CUPTI_CBID_STATE_FATAL_ERROR, fromDriver(error), message);
}

}  // namespace

const SondeListener* listener() {
  static const SondeListener instance = [] {
    SondeListener l{};
    l.size = sizeof l;
    l.apiEnter = apiEnter;
    l.apiExit = apiExit;
    l.resource = resource;
    l.synchronized = synchronized;
    l.overhead = overhead;
    l.workEnqueued = workEnqueued;
    l.workCompleted = workCompleted;
    l.unifiedMemory = [](void*, const SondeUnifiedMemory* event) { recordUnifiedMemory(*event); };
    l.contextFailed = contextFailed;
    l.preempted = preempted;
    return l;
  }();
  return &instance;
}

}  // namespace sonde::core
