// SPDX-License-Identifier: Apache-2.0
// OpenACC's profiling interface, version 2.6.
#include <cupti.h>

#include <atomic>
#include <cstddef>

#include "core/core.h"
#include "core/directives.h"
#include "core/strings.h"

namespace sonde::core::openacc {
namespace {

// As the specification has them.
enum Event {
  kDeviceInitStart = 1,
  kDeviceInitEnd,
  kDeviceShutdownStart,
  kDeviceShutdownEnd,
  kRuntimeShutdown,
  kCreate,
  kDelete,
  kAlloc,
  kFree,
  kEnterDataStart,
  kEnterDataEnd,
  kExitDataStart,
  kExitDataEnd,
  kUpdateStart,
  kUpdateEnd,
  kComputeStart,
  kComputeEnd,
  kLaunchStart,
  kLaunchEnd,
  kUploadStart,
  kUploadEnd,
  kDownloadStart,
  kDownloadEnd,
  kWaitStart,
  kWaitEnd,
  kEventCount
};

struct Information {
  int event, validBytes, version, deviceType, deviceNumber, threadId;
  ptrdiff_t async, asyncQueue;
  const char *file, *function;
  int line, endLine, functionLine, functionEndLine;
};

struct EventInformation {
  int event, validBytes, parentConstruct, implicit;
  void* toolInfo;
};
struct DataInformation : EventInformation {
  const char* variable;
  size_t bytes;
  const void *host, *device;
};
struct LaunchInformation : EventInformation {
  const char* kernel;
  size_t gangs, workers, vectorLength;
};

struct DeviceInformation {
  int api, validBytes, deviceType, vendor;
  const void *device, *context, *async;
};
constexpr int kApiCuda = 1;

// A member is there when the runtime's structure is long enough.
#define SONDE_HAS(info, member) \
  ((info)->validBytes >= reinterpret_cast<const char*>(&(info)->member + 1) - reinterpret_cast<const char*>(info))

struct Meaning {
  CUpti_ActivityKind kind;
  CUpti_OpenAccEventKind event;
  enum { kStart, kEnd, kAtOnce } what;
};

Meaning meaningOf(int event) {
  constexpr auto kData = CUPTI_ACTIVITY_KIND_OPENACC_DATA;
  constexpr auto kLaunch = CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH;
  constexpr auto kOther = CUPTI_ACTIVITY_KIND_OPENACC_OTHER;
  switch (event) {
    case kDeviceInitStart: return {kOther, CUPTI_OPENACC_EVENT_KIND_DEVICE_INIT, Meaning::kStart};
    case kDeviceInitEnd: return {kOther, CUPTI_OPENACC_EVENT_KIND_DEVICE_INIT, Meaning::kEnd};
    case kDeviceShutdownStart: return {kOther, CUPTI_OPENACC_EVENT_KIND_DEVICE_SHUTDOWN, Meaning::kStart};
    case kDeviceShutdownEnd: return {kOther, CUPTI_OPENACC_EVENT_KIND_DEVICE_SHUTDOWN, Meaning::kEnd};
    case kRuntimeShutdown: return {kOther, CUPTI_OPENACC_EVENT_KIND_RUNTIME_SHUTDOWN, Meaning::kAtOnce};
    case kCreate: return {kData, CUPTI_OPENACC_EVENT_KIND_CREATE, Meaning::kAtOnce};
    case kDelete: return {kData, CUPTI_OPENACC_EVENT_KIND_DELETE, Meaning::kAtOnce};
    case kAlloc: return {kData, CUPTI_OPENACC_EVENT_KIND_ALLOC, Meaning::kAtOnce};
    case kFree: return {kData, CUPTI_OPENACC_EVENT_KIND_FREE, Meaning::kAtOnce};
    case kEnterDataStart: return {kOther, CUPTI_OPENACC_EVENT_KIND_ENTER_DATA, Meaning::kStart};
    case kEnterDataEnd: return {kOther, CUPTI_OPENACC_EVENT_KIND_ENTER_DATA, Meaning::kEnd};
    case kExitDataStart: return {kOther, CUPTI_OPENACC_EVENT_KIND_EXIT_DATA, Meaning::kStart};
    case kExitDataEnd: return {kOther, CUPTI_OPENACC_EVENT_KIND_EXIT_DATA, Meaning::kEnd};
    case kUpdateStart: return {kOther, CUPTI_OPENACC_EVENT_KIND_UPDATE, Meaning::kStart};
    case kUpdateEnd: return {kOther, CUPTI_OPENACC_EVENT_KIND_UPDATE, Meaning::kEnd};
    case kComputeStart: return {kOther, CUPTI_OPENACC_EVENT_KIND_COMPUTE_CONSTRUCT, Meaning::kStart};
    case kComputeEnd: return {kOther, CUPTI_OPENACC_EVENT_KIND_COMPUTE_CONSTRUCT, Meaning::kEnd};
    case kLaunchStart: return {kLaunch, CUPTI_OPENACC_EVENT_KIND_ENQUEUE_LAUNCH, Meaning::kStart};
    case kLaunchEnd: return {kLaunch, CUPTI_OPENACC_EVENT_KIND_ENQUEUE_LAUNCH, Meaning::kEnd};
    case kUploadStart: return {kData, CUPTI_OPENACC_EVENT_KIND_ENQUEUE_UPLOAD, Meaning::kStart};
    case kUploadEnd: return {kData, CUPTI_OPENACC_EVENT_KIND_ENQUEUE_UPLOAD, Meaning::kEnd};
    case kDownloadStart: return {kData, CUPTI_OPENACC_EVENT_KIND_ENQUEUE_DOWNLOAD, Meaning::kStart};
    case kDownloadEnd: return {kData, CUPTI_OPENACC_EVENT_KIND_ENQUEUE_DOWNLOAD, Meaning::kEnd};
    case kWaitStart: return {kOther, CUPTI_OPENACC_EVENT_KIND_WAIT, Meaning::kStart};
    case kWaitEnd: return {kOther, CUPTI_OPENACC_EVENT_KIND_WAIT, Meaning::kEnd};
    default: return {CUPTI_ACTIVITY_KIND_INVALID, CUPTI_OPENACC_EVENT_KIND_INVALID, Meaning::kAtOnce};
  }
}

uint32_t wanting(CUpti_ActivityKind kind) { return wantedKinds[kind].load(std::memory_order_relaxed); }
uint32_t wantingAny() {
  return wanting(CUPTI_ACTIVITY_KIND_OPENACC_DATA) | wanting(CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH) |
         wanting(CUPTI_ACTIVITY_KIND_OPENACC_OTHER);
}

std::atomic<uint32_t> nextExternalId{1};

// What the three records have in common.
template <typename Record>
Record begin(const Meaning& meaning, const Information* info, const EventInformation* event) {
  Record r{};
  r.kind = meaning.kind;
  r.eventKind = meaning.event;
  if (event != nullptr && SONDE_HAS(event, implicit)) {
    // The specification counts from 0; its newest construct has no name here.
    const int construct = event->parentConstruct + 1;
    if (construct > 0 && construct <= CUPTI_OPENACC_CONSTRUCT_KIND_RUNTIME_API) {
      r.parentConstruct = static_cast<CUpti_OpenAccConstructKind>(construct);
    }
    r.implicit = static_cast<uint32_t>(event->implicit);
    if (event->implicit != 0 && meaning.event == CUPTI_OPENACC_EVENT_KIND_WAIT) {
      r.eventKind = CUPTI_OPENACC_EVENT_KIND_IMPLICIT_WAIT;
    }
  }
  if (SONDE_HAS(info, asyncQueue)) {
    r.version = static_cast<uint32_t>(info->version);
    r.deviceType = static_cast<uint32_t>(info->deviceType);
    r.deviceNumber = static_cast<uint32_t>(info->deviceNumber);
    r.threadId = static_cast<uint32_t>(info->threadId);
    r.async = static_cast<uint64_t>(info->async);
    r.asyncMap = static_cast<uint64_t>(info->asyncQueue);
  }
  if (SONDE_HAS(info, functionEndLine)) {
    r.lineNo = static_cast<uint32_t>(info->line);
    r.endLineNo = static_cast<uint32_t>(info->endLine);
    r.funcLineNo = static_cast<uint32_t>(info->functionLine);
    r.funcEndLineNo = static_cast<uint32_t>(info->functionEndLine);
    r.srcFile = intern(info->file);
    r.funcName = intern(info->function);
  }
  return r;
}

// The device's context and stream, where the runtime works with CUDA.
template <typename Record>
void addDevice(const DeviceInformation* device, Record* r) {
  const SondePlatform* platform = attachedPlatform();
  if (platform == nullptr || device == nullptr || device->api != kApiCuda || !SONDE_HAS(device, async)) return;
  auto* context = const_cast<void*>(device->context);
  if (context == nullptr) return;
  uint32_t id;
  if (platform->contextId(context, &id) == 0) r->cuContextId = id;
  if (platform->contextDevice(context, &id) == 0) r->cuDeviceId = id;
  if (platform->streamId(context, const_cast<void*>(device->async), 0, &id) == 0) r->cuStreamId = id;
}

template <typename Record>
void deliver(Record r, const DeviceInformation* device, uint64_t start, uint64_t end, uint32_t externalId) {
  addDevice(device, &r);
  r.cuProcessId = processId();
  r.externalId = externalId;
  ThreadState& thread = threadState();
  forEachClient(wanting(r.kind), [&](Client& client) {
    r.cuThreadId = threadIdFor(client, thread);
    r.start = client.toClientTime(start);
    r.end = client.toClientTime(end);
    client.append(thread, r);
  });
}

void record(const Meaning& meaning, const Information* info, const EventInformation* event,
            const DeviceInformation* device, uint64_t start, uint64_t end, uint32_t externalId) {
  if (wanting(meaning.kind) == 0) return;
  if (meaning.kind == CUPTI_ACTIVITY_KIND_OPENACC_DATA) {
    auto r = begin<CUpti_ActivityOpenAccData>(meaning, info, event);
    const auto* data = static_cast<const DataInformation*>(event);
    if (data != nullptr && SONDE_HAS(data, device)) {
      r.bytes = data->bytes;
      r.hostPtr = reinterpret_cast<uint64_t>(data->host);
      r.devicePtr = reinterpret_cast<uint64_t>(data->device);
      r.varName = intern(data->variable);
    }
    deliver(r, device, start, end, externalId);
  } else if (meaning.kind == CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH) {
    auto r = begin<CUpti_ActivityOpenAccLaunch>(meaning, info, event);
    const auto* launch = static_cast<const LaunchInformation*>(event);
    if (launch != nullptr && SONDE_HAS(launch, vectorLength)) {
      r.numGangs = launch->gangs;
      r.numWorkers = launch->workers;
      r.vectorLength = launch->vectorLength;
      r.kernelName = intern(launch->kernel);
    }
    deliver(r, device, start, end, externalId);
  } else {
    deliver(begin<CUpti_ActivityOpenAccOther>(meaning, info, event), device, start, end, externalId);
  }
}

// What is called within a construct has its external id.
void push(OpenConstruct* open) {
  forEachClient(wantingAny(), [&](Client& client) {
    if (pushExternalId(&client, CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC, open->externalId) == CUPTI_SUCCESS) {
      open->clients |= 1u << client.index;
    }
  });
}
void pop(const OpenConstruct& open) {
  forEachClient(open.clients, [](Client& client) {
    // Empty when the client ended since and lives again.
    if (client.inUse()) popExternalId(&client, CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC, nullptr);
  });
}

void told(const Information* info, const EventInformation* event, const DeviceInformation* device) {
  if (info == nullptr) return;
  const Meaning meaning = meaningOf(info->event);
  if (meaning.kind == CUPTI_ACTIVITY_KIND_INVALID) return;
  auto& open = threadState().directives.accelerated;
  if (meaning.what == Meaning::kEnd) {
    // Beginnings without an end (an error in between) are forgotten.
    while (!open.empty()) {
      const OpenConstruct construct = open.back();
      open.pop_back();
      pop(construct);
      if (construct.event != static_cast<uint32_t>(info->event) - 1) continue;
      record(meaning, info, event, device, construct.start, now(), construct.externalId);
      return;
    }
    return;
  }
  if (wantingAny() == 0) return;
  const uint32_t id = nextExternalId.fetch_add(1, std::memory_order_relaxed);
  const uint64_t time = now();
  if (meaning.what == Meaning::kAtOnce) {
    record(meaning, info, event, device, time, time, id);
    return;
  }
  OpenConstruct construct{static_cast<uint32_t>(info->event), id, 0, time};
  push(&construct);
  open.push_back(construct);
}

}  // namespace

void attach(Register registerCallback) {
  static std::atomic<Register> known{nullptr};
  if (known.exchange(registerCallback) == registerCallback) return;
  for (int event = kDeviceInitStart; event < kEventCount; ++event) {
    registerCallback(event, reinterpret_cast<void*>(told), 0);
  }
}

}  // namespace sonde::core::openacc
