// SPDX-License-Identifier: Apache-2.0
#include "core/layouts.h"

#include <charconv>
#include <cstring>

namespace sonde::core {
namespace {

// Converts a newest record; a version without a converter is a prefix of it.
using Converter = void (*)(const void* newest, void* out);

struct Version {
  uint8_t number;
  uint16_t size;
  Converter convert;
};

// The newest first. Seven versions besides the newest are the most any has.
struct Kind {
  const char* name;
  uint16_t size;  // of the newest; 0: no such record
  uint8_t newest;
  Version older[9];
};

// Copies fields of one name between two structures.
#define SONDE_COPY(field) out.field = in.field

template <typename In, typename Out>
void copyLaunch(const In& in, Out& out) {
  SONDE_COPY(kind);
  SONDE_COPY(registersPerThread);
  SONDE_COPY(start);
  SONDE_COPY(end);
  SONDE_COPY(deviceId);
  SONDE_COPY(contextId);
  SONDE_COPY(streamId);
  SONDE_COPY(gridX);
  SONDE_COPY(gridY);
  SONDE_COPY(gridZ);
  SONDE_COPY(blockX);
  SONDE_COPY(blockY);
  SONDE_COPY(blockZ);
  SONDE_COPY(staticSharedMemory);
  SONDE_COPY(dynamicSharedMemory);
  SONDE_COPY(localMemoryPerThread);
  SONDE_COPY(localMemoryTotal);
  SONDE_COPY(correlationId);
  SONDE_COPY(name);
}

void toKernel1(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityKernel10*>(newest);
  CUpti_ActivityKernel out{};
  copyLaunch(in, out);
  out.cacheConfigRequested = in.cacheConfig.config.requested;
  out.cacheConfigExecuted = in.cacheConfig.config.executed;
  out.runtimeCorrelationId = in.correlationId;
  std::memcpy(target, &out, sizeof out);
}

void toKernel2(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityKernel10*>(newest);
  CUpti_ActivityKernel2 out{};
  copyLaunch(in, out);
  out.cacheConfig.both = in.cacheConfig.both;
  SONDE_COPY(sharedMemoryConfig);
  SONDE_COPY(completed);
  SONDE_COPY(gridId);
  std::memcpy(target, &out, sizeof out);
}

void toDevice1(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityDevice5*>(newest);
  CUpti_ActivityDevice out{};
  SONDE_COPY(kind);
  SONDE_COPY(flags);
  SONDE_COPY(globalMemoryBandwidth);
  SONDE_COPY(globalMemorySize);
  SONDE_COPY(constantMemorySize);
  SONDE_COPY(l2CacheSize);
  SONDE_COPY(numThreadsPerWarp);
  SONDE_COPY(coreClockRate);
  SONDE_COPY(numMemcpyEngines);
  SONDE_COPY(numMultiprocessors);
  SONDE_COPY(maxIPC);
  SONDE_COPY(maxWarpsPerMultiprocessor);
  SONDE_COPY(maxBlocksPerMultiprocessor);
  SONDE_COPY(maxRegistersPerBlock);
  SONDE_COPY(maxSharedMemoryPerBlock);
  SONDE_COPY(maxThreadsPerBlock);
  SONDE_COPY(maxBlockDimX);
  SONDE_COPY(maxBlockDimY);
  SONDE_COPY(maxBlockDimZ);
  SONDE_COPY(maxGridDimX);
  SONDE_COPY(maxGridDimY);
  SONDE_COPY(maxGridDimZ);
  SONDE_COPY(computeCapabilityMajor);
  SONDE_COPY(computeCapabilityMinor);
  SONDE_COPY(id);
  SONDE_COPY(name);
  std::memcpy(target, &out, sizeof out);
}

void toGlobalAccess1(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityGlobalAccess3*>(newest);
  CUpti_ActivityGlobalAccess out{};
  SONDE_COPY(kind);
  SONDE_COPY(flags);
  SONDE_COPY(sourceLocatorId);
  SONDE_COPY(correlationId);
  out.pcOffset = static_cast<uint32_t>(in.pcOffset);
  SONDE_COPY(executed);
  SONDE_COPY(threadsExecuted);
  SONDE_COPY(l2_transactions);
  std::memcpy(target, &out, sizeof out);
}

void toGlobalAccess2(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityGlobalAccess3*>(newest);
  CUpti_ActivityGlobalAccess2 out{};
  SONDE_COPY(kind);
  SONDE_COPY(flags);
  SONDE_COPY(sourceLocatorId);
  SONDE_COPY(correlationId);
  SONDE_COPY(functionId);
  out.pcOffset = static_cast<uint32_t>(in.pcOffset);
  SONDE_COPY(executed);
  SONDE_COPY(threadsExecuted);
  SONDE_COPY(l2_transactions);
  SONDE_COPY(theoreticalL2Transactions);
  std::memcpy(target, &out, sizeof out);
}

void toBranch1(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityBranch2*>(newest);
  CUpti_ActivityBranch out{};
  SONDE_COPY(kind);
  SONDE_COPY(sourceLocatorId);
  SONDE_COPY(correlationId);
  SONDE_COPY(pcOffset);
  SONDE_COPY(executed);
  SONDE_COPY(diverged);
  SONDE_COPY(threadsExecuted);
  std::memcpy(target, &out, sizeof out);
}

void toPcSampling1(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityPCSampling3*>(newest);
  CUpti_ActivityPCSampling out{};
  SONDE_COPY(kind);
  SONDE_COPY(flags);
  SONDE_COPY(sourceLocatorId);
  SONDE_COPY(correlationId);
  SONDE_COPY(functionId);
  out.pcOffset = static_cast<uint32_t>(in.pcOffset);
  SONDE_COPY(samples);
  SONDE_COPY(stallReason);
  std::memcpy(target, &out, sizeof out);
}

void toPcSampling2(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityPCSampling3*>(newest);
  CUpti_ActivityPCSampling2 out{};
  SONDE_COPY(kind);
  SONDE_COPY(flags);
  SONDE_COPY(sourceLocatorId);
  SONDE_COPY(correlationId);
  SONDE_COPY(functionId);
  out.pcOffset = static_cast<uint32_t>(in.pcOffset);
  SONDE_COPY(latencySamples);
  SONDE_COPY(samples);
  SONDE_COPY(stallReason);
  std::memcpy(target, &out, sizeof out);
}

// The 6.5 form knows byte counts and the number of page faults; in the newest
// form a page fault record stands for one fault.
void toUnifiedMemory1(const void* newest, void* target) {
  const auto& in = *static_cast<const CUpti_ActivityUnifiedMemoryCounter3*>(newest);
  CUpti_ActivityUnifiedMemoryCounter out{};
  SONDE_COPY(kind);
  SONDE_COPY(counterKind);
  out.scope = in.pad == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES
                  ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES
                  : CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
  const bool fault = in.counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT;
  out.deviceId = in.counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD ? in.dstId : in.srcId;
  if (out.deviceId == CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID) out.deviceId = 0;
  out.value = fault ? 1 : in.value;
  out.timestamp = in.start;
  SONDE_COPY(processId);
  std::memcpy(target, &out, sizeof out);
}
#undef SONDE_COPY

#define SONDE_PREFIX(number, type) {number, sizeof(type), nullptr}
#define SONDE_KERNELS                                                                           \
  {{1, sizeof(CUpti_ActivityKernel), toKernel1}, {2, sizeof(CUpti_ActivityKernel2), toKernel2}, \
   SONDE_PREFIX(3, CUpti_ActivityKernel3),       SONDE_PREFIX(4, CUpti_ActivityKernel4),        \
   SONDE_PREFIX(5, CUpti_ActivityKernel5),       SONDE_PREFIX(6, CUpti_ActivityKernel6),        \
   SONDE_PREFIX(7, CUpti_ActivityKernel7),       SONDE_PREFIX(8, CUpti_ActivityKernel8),        \
   SONDE_PREFIX(9, CUpti_ActivityKernel9)}

const Kind kKinds[kKindCount] = {
    {"INVALID", 0, 0, {}},
    {"MEMCPY",
     sizeof(CUpti_ActivityMemcpy6),
     6,
     {SONDE_PREFIX(1, CUpti_ActivityMemcpy), SONDE_PREFIX(3, CUpti_ActivityMemcpy3),
      SONDE_PREFIX(4, CUpti_ActivityMemcpy4), SONDE_PREFIX(5, CUpti_ActivityMemcpy5)}},
    {"MEMSET",
     sizeof(CUpti_ActivityMemset4),
     4,
     {SONDE_PREFIX(1, CUpti_ActivityMemset), SONDE_PREFIX(2, CUpti_ActivityMemset2),
      SONDE_PREFIX(3, CUpti_ActivityMemset3)}},
    {"KERNEL", sizeof(CUpti_ActivityKernel10), 10, SONDE_KERNELS},
    {"DRIVER", sizeof(CUpti_ActivityAPI), 1, {}},
    {"RUNTIME", sizeof(CUpti_ActivityAPI), 1, {}},
    {"EVENT", sizeof(CUpti_ActivityEvent), 1, {}},
    {"METRIC", sizeof(CUpti_ActivityMetric), 1, {}},
    {"DEVICE",
     sizeof(CUpti_ActivityDevice5),
     5,
     {{1, sizeof(CUpti_ActivityDevice), toDevice1},
      SONDE_PREFIX(2, CUpti_ActivityDevice2),
      SONDE_PREFIX(3, CUpti_ActivityDevice3),
      SONDE_PREFIX(4, CUpti_ActivityDevice4)}},
    {"CONTEXT",
     sizeof(CUpti_ActivityContext3),
     3,
     {SONDE_PREFIX(1, CUpti_ActivityContext), SONDE_PREFIX(2, CUpti_ActivityContext2)}},
    {"CONCURRENT_KERNEL", sizeof(CUpti_ActivityKernel10), 10, SONDE_KERNELS},
    {"NAME", sizeof(CUpti_ActivityName), 1, {}},
    {"MARKER", sizeof(CUpti_ActivityMarker2), 2, {SONDE_PREFIX(1, CUpti_ActivityMarker)}},
    {"MARKER_DATA", sizeof(CUpti_ActivityMarkerData2), 2, {SONDE_PREFIX(1, CUpti_ActivityMarkerData)}},
    {"SOURCE_LOCATOR", sizeof(CUpti_ActivitySourceLocator), 1, {}},
    {"GLOBAL_ACCESS",
     sizeof(CUpti_ActivityGlobalAccess3),
     3,
     {{1, sizeof(CUpti_ActivityGlobalAccess), toGlobalAccess1},
      {2, sizeof(CUpti_ActivityGlobalAccess2), toGlobalAccess2}}},
    {"BRANCH", sizeof(CUpti_ActivityBranch2), 2, {{1, sizeof(CUpti_ActivityBranch), toBranch1}}},
    {"OVERHEAD",
     sizeof(CUpti_ActivityOverhead3),
     3,
     {SONDE_PREFIX(1, CUpti_ActivityOverhead), SONDE_PREFIX(2, CUpti_ActivityOverhead2)}},
    {"CDP_KERNEL", sizeof(CUpti_ActivityCdpKernel), 1, {}},
    {"PREEMPTION", sizeof(CUpti_ActivityPreemption), 1, {}},
    {"ENVIRONMENT", sizeof(CUpti_ActivityEnvironment), 1, {}},
    {"EVENT_INSTANCE", sizeof(CUpti_ActivityEventInstance), 1, {}},
    {"MEMCPY2",
     sizeof(CUpti_ActivityMemcpyPtoP4),
     4,
     {SONDE_PREFIX(1, CUpti_ActivityMemcpyPtoP), SONDE_PREFIX(2, CUpti_ActivityMemcpyPtoP2),
      SONDE_PREFIX(3, CUpti_ActivityMemcpyPtoP3)}},
    {"METRIC_INSTANCE", sizeof(CUpti_ActivityMetricInstance), 1, {}},
    {"INSTRUCTION_EXECUTION", sizeof(CUpti_ActivityInstructionExecution), 1, {}},
    {"UNIFIED_MEMORY_COUNTER",
     sizeof(CUpti_ActivityUnifiedMemoryCounter3),
     3,
     {{1, sizeof(CUpti_ActivityUnifiedMemoryCounter), toUnifiedMemory1},
      SONDE_PREFIX(2, CUpti_ActivityUnifiedMemoryCounter2)}},
    {"FUNCTION", sizeof(CUpti_ActivityFunction), 1, {}},
    {"MODULE", sizeof(CUpti_ActivityModule), 1, {}},
    {"DEVICE_ATTRIBUTE", sizeof(CUpti_ActivityDeviceAttribute), 1, {}},
    {"SHARED_ACCESS", sizeof(CUpti_ActivitySharedAccess), 1, {}},
    {"PC_SAMPLING",
     sizeof(CUpti_ActivityPCSampling3),
     3,
     {{1, sizeof(CUpti_ActivityPCSampling), toPcSampling1}, {2, sizeof(CUpti_ActivityPCSampling2), toPcSampling2}}},
    {"PC_SAMPLING_RECORD_INFO", sizeof(CUpti_ActivityPCSamplingRecordInfo), 1, {}},
    {"INSTRUCTION_CORRELATION", sizeof(CUpti_ActivityInstructionCorrelation), 1, {}},
    {"OPENACC_DATA", sizeof(CUpti_ActivityOpenAccData), 1, {}},
    {"OPENACC_LAUNCH", sizeof(CUpti_ActivityOpenAccLaunch), 1, {}},
    {"OPENACC_OTHER", sizeof(CUpti_ActivityOpenAccOther), 1, {}},
    {"CUDA_EVENT", sizeof(CUpti_ActivityCudaEvent2), 2, {SONDE_PREFIX(1, CUpti_ActivityCudaEvent)}},
    {"STREAM", sizeof(CUpti_ActivityStream), 1, {}},
    {"SYNCHRONIZATION", sizeof(CUpti_ActivitySynchronization2), 2, {SONDE_PREFIX(1, CUpti_ActivitySynchronization)}},
    {"EXTERNAL_CORRELATION", sizeof(CUpti_ActivityExternalCorrelation), 1, {}},
    {"NVLINK", sizeof(CUpti_ActivityNvLink4), 4, {}},
    {"INSTANTANEOUS_EVENT", sizeof(CUpti_ActivityInstantaneousEvent), 1, {}},
    {"INSTANTANEOUS_EVENT_INSTANCE", sizeof(CUpti_ActivityInstantaneousEventInstance), 1, {}},
    {"INSTANTANEOUS_METRIC", sizeof(CUpti_ActivityInstantaneousMetric), 1, {}},
    {"INSTANTANEOUS_METRIC_INSTANCE", sizeof(CUpti_ActivityInstantaneousMetricInstance), 1, {}},
    {"MEMORY", sizeof(CUpti_ActivityMemory), 1, {}},
    {"PCIE", sizeof(CUpti_ActivityPcie), 1, {}},
    {"OPENMP", sizeof(CUpti_ActivityOpenMp), 1, {}},
    {"INTERNAL_LAUNCH_API", sizeof(CUpti_ActivityAPI), 1, {}},
    {"MEMORY2",
     sizeof(CUpti_ActivityMemory4),
     4,
     {SONDE_PREFIX(2, CUpti_ActivityMemory2), SONDE_PREFIX(3, CUpti_ActivityMemory3)}},
    {"MEMORY_POOL",
     sizeof(CUpti_ActivityMemoryPool3),
     3,
     {SONDE_PREFIX(1, CUpti_ActivityMemoryPool), SONDE_PREFIX(2, CUpti_ActivityMemoryPool2)}},
    {"GRAPH_TRACE", sizeof(CUpti_ActivityGraphTrace2), 2, {SONDE_PREFIX(1, CUpti_ActivityGraphTrace)}},
    {"JIT", sizeof(CUpti_ActivityJit2), 2, {SONDE_PREFIX(1, CUpti_ActivityJit)}},
    {"DEVICE_GRAPH_TRACE", sizeof(CUpti_ActivityDeviceGraphTrace), 1, {}},
    {"MEM_DECOMPRESS", sizeof(CUpti_ActivityMemDecompress), 1, {}},
    {"CONFIDENTIAL_COMPUTE_ROTATION", sizeof(CUpti_ActivityConfidentialComputeRotation), 1, {}},
};
#undef SONDE_KERNELS
#undef SONDE_PREFIX

const Version* olderVersion(uint32_t kind, unsigned number) {
  for (const Version& v : kKinds[kind].older) {
    if (v.number == number && v.size != 0) return &v;
  }
  return nullptr;
}

}  // namespace

Layouts layouts6050() {
  Layouts layouts;
  auto set = [&](CUpti_ActivityKind kind, uint8_t version) { layouts.version[kind] = version; };
  set(CUPTI_ACTIVITY_KIND_MEMCPY, 1);
  set(CUPTI_ACTIVITY_KIND_MEMSET, 1);
  set(CUPTI_ACTIVITY_KIND_KERNEL, 2);
  set(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 2);
  set(CUPTI_ACTIVITY_KIND_DEVICE, 1);
  set(CUPTI_ACTIVITY_KIND_CONTEXT, 1);
  set(CUPTI_ACTIVITY_KIND_MARKER, 1);
  set(CUPTI_ACTIVITY_KIND_MARKER_DATA, 1);
  set(CUPTI_ACTIVITY_KIND_OVERHEAD, 1);
  set(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, 2);
  set(CUPTI_ACTIVITY_KIND_MEMCPY2, 1);
  set(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, 1);
  return layouts;
}

bool parseLayouts(std::string_view list, Layouts* layouts, std::string* error) {
  while (!list.empty()) {
    std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(entry.size() < list.size() ? entry.size() + 1 : list.size());
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    if (entry.empty()) continue;
    const size_t equals = entry.find('=');
    std::string_view name = entry.substr(0, equals);
    unsigned number = 0;
    bool ok = equals != std::string_view::npos;
    if (ok) {
      std::string_view digits = entry.substr(equals + 1);
      auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
      ok = code == std::errc() && end == digits.data() + digits.size();
    }
    if (!ok) {
      *error = "\"" + std::string(entry) + "\" is not KIND=VERSION";
      return false;
    }
    uint32_t kind = 1;
    while (kind < kKindCount && name != kKinds[kind].name) ++kind;
    if (kind == kKindCount) {
      *error = "there is no activity kind \"" + std::string(name) + "\"";
      return false;
    }
    if (number == kKinds[kind].newest) number = 0;
    if (number != 0 && olderVersion(kind, number) == nullptr) {
      *error = "the record of " + std::string(name) + " has no version " + std::to_string(number) +
               " (newest: " + std::to_string(kKinds[kind].newest) + ")";
      return false;
    }
    layouts->version[kind] = static_cast<uint8_t>(number);
  }
  return true;
}

uint32_t newestSize(uint32_t kind) { return kind < kKindCount ? kKinds[kind].size : 0; }

uint32_t recordSize(uint32_t kind, const Layouts& layouts) {
  if (kind >= kKindCount) return 0;
  const uint8_t version = layouts.version[kind];
  if (version == 0) return kKinds[kind].size;
  const Version* older = olderVersion(kind, version);
  return older != nullptr ? older->size : kKinds[kind].size;
}

void convertRecord(const void* newest, const Layouts& layouts, void* out) {
  uint32_t kind;
  std::memcpy(&kind, newest, sizeof kind);
  const Version* older = layouts.version[kind] != 0 ? olderVersion(kind, layouts.version[kind]) : nullptr;
  if (older == nullptr) {
    std::memcpy(out, newest, kKinds[kind].size);
  } else if (older->convert == nullptr) {
    std::memcpy(out, newest, older->size);
  } else {
    older->convert(newest, out);
  }
}

const char* kindName(uint32_t kind) { return kind < kKindCount ? kKinds[kind].name : nullptr; }

}  // namespace sonde::core
