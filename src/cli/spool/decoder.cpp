// SPDX-License-Identifier: Apache-2.0
#include "cli/spool/decoder.h"

#include <cupti.h>

#include <algorithm>
#include <cstring>

namespace sonde::spool {
namespace {

uint32_t load32(const unsigned char* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The record as the newest structure of its kind; what a shorter, older one
// did not have is zero.
template <typename R>
R as(const unsigned char* data, size_t size) {
  R r;
  std::memset(static_cast<void*>(&r), 0, sizeof r);
  std::memcpy(static_cast<void*>(&r), data, std::min(size, sizeof r));
  return r;
}

// Fields of enumeration type can hold anything in a damaged or newer file;
// reading them through the type would be undefined.
template <typename E>
uint32_t enumValue(const E& field) {
  static_assert(sizeof(E) == sizeof(uint32_t));
  uint32_t v;
  std::memcpy(&v, &field, sizeof v);
  return v;
}

template <typename R>
void fillDeviceWork(GpuEvent& e, const R& r) {
  e.device = r.deviceId;
  e.context = r.contextId;
  e.stream = r.streamId;
  e.correlation = r.correlationId;
  e.graphId = r.graphId;
  e.graphNodeId = r.graphNodeId;
  e.channel = r.channelID;
  e.finished = r.end != 0;
}

}  // namespace

bool Decoder::strings(std::span<const unsigned char> p) {
  while (!p.empty()) {
    if (p.size() < 8) return false;
    const uint32_t id = load32(p.data()), length = load32(p.data() + 4);
    if (length > p.size() - 8) return false;
    strings_[id] = trace_.intern(std::string(reinterpret_cast<const char*>(p.data() + 8), length));
    p = p.subspan(std::min(p.size(), padded(size_t{8} + length)));
  }
  return true;
}

bool Decoder::names(std::span<const unsigned char> p) {
  for (; p.size() >= 16; p = p.subspan(16)) {
    const auto it = strings_.find(load32(p.data() + 8));
    if (it != strings_.end()) apiNames_[{load32(p.data()), load32(p.data() + 4)}] = it->second;
  }
  return p.empty();
}

bool Decoder::records(std::span<const unsigned char> p) {
  if (firstApiCall_ == SIZE_MAX) firstApiCall_ = trace_.apiCalls.size();
  if (firstRange_ == SIZE_MAX) firstRange_ = trace_.ranges.size();
  Process& process = trace_.processes[process_];
  while (!p.empty()) {
    if (p.size() < sizeof(RecordHeader)) return false;
    const uint32_t size = load32(p.data());
    if (size < 8 || size > p.size() - sizeof(RecordHeader)) return false;
    if (record(p.data() + sizeof(RecordHeader), size)) process.records++;
    nextRecord_++;
    p = p.subspan(std::min(p.size(), sizeof(RecordHeader) + padded(size)));
  }
  return true;
}

StringId Decoder::textOf(const char* storedId) {
  const auto it = strings_.find(reinterpret_cast<uint64_t>(storedId));
  return it == strings_.end() ? 0 : it->second;
}

bool Decoder::record(const unsigned char* data, size_t size) {
  switch (load32(data)) {
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
      const auto r = as<CUpti_ActivityAPI>(data, size);
      auto e = event<ApiCall>(r.start, r.end);
      e.runtime = load32(data) == CUPTI_ACTIVITY_KIND_RUNTIME;
      e.cbid = r.cbid;
      e.threadId = r.threadId;
      e.correlation = r.correlationId;
      e.returnValue = r.returnValue;
      trace_.apiCalls.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto r = as<CUpti_ActivityKernel10>(data, size);
      auto e = event<GpuEvent>(r.start, r.end);
      e.work = GpuWork::Kernel;
      fillDeviceWork(e, r);
      e.name = textOf(r.name);
      e.grid[0] = r.gridX, e.grid[1] = r.gridY, e.grid[2] = r.gridZ;
      e.block[0] = r.blockX, e.block[1] = r.blockY, e.block[2] = r.blockZ;
      e.cluster[0] = r.clusterX, e.cluster[1] = r.clusterY, e.cluster[2] = r.clusterZ;
      e.registers = r.registersPerThread;
      e.staticShared = static_cast<uint32_t>(r.staticSharedMemory);
      e.dynamicShared = static_cast<uint32_t>(r.dynamicSharedMemory);
      e.sharedExecuted = r.sharedMemoryExecuted;
      e.localPerThread = r.localMemoryPerThread;
      e.localTotal = r.localMemoryTotal_v2 != 0 ? r.localMemoryTotal_v2 : r.localMemoryTotal;
      e.queued = r.queued;
      e.submitted = r.submitted;
      trace_.gpuEvents.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_CDP_KERNEL: {
      const auto r = as<CUpti_ActivityCdpKernel>(data, size);
      auto e = event<GpuEvent>(r.start, r.end);
      e.work = GpuWork::Kernel;
      e.fromDevice = true;
      e.device = r.deviceId, e.context = r.contextId, e.stream = r.streamId, e.correlation = r.correlationId;
      e.channel = r.streamId;
      e.finished = r.end != 0;
      e.name = textOf(r.name);
      e.grid[0] = r.gridX, e.grid[1] = r.gridY, e.grid[2] = r.gridZ;
      e.block[0] = r.blockX, e.block[1] = r.blockY, e.block[2] = r.blockZ;
      e.registers = r.registersPerThread;
      e.staticShared = static_cast<uint32_t>(r.staticSharedMemory);
      e.dynamicShared = static_cast<uint32_t>(r.dynamicSharedMemory);
      e.localPerThread = r.localMemoryPerThread;
      e.localTotal = r.localMemoryTotal;
      e.queued = r.queued;
      e.submitted = r.submitted;
      trace_.gpuEvents.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto r = as<CUpti_ActivityMemcpy6>(data, size);
      auto e = event<GpuEvent>(r.start, r.end);
      e.work = GpuWork::Memcpy;
      fillDeviceWork(e, r);
      e.bytes = r.bytes;
      e.copyKind = r.copyKind, e.srcKind = r.srcKind, e.dstKind = r.dstKind;
      e.async = (r.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0;
      e.srcDevice = e.dstDevice = e.device;
      trace_.gpuEvents.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto r = as<CUpti_ActivityMemcpyPtoP4>(data, size);
      auto e = event<GpuEvent>(r.start, r.end);
      e.work = GpuWork::Memcpy;
      fillDeviceWork(e, r);
      e.bytes = r.bytes;
      e.copyKind = r.copyKind, e.srcKind = r.srcKind, e.dstKind = r.dstKind;
      e.async = (r.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0;
      e.srcDevice = r.srcDeviceId, e.dstDevice = r.dstDeviceId;
      trace_.gpuEvents.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto r = as<CUpti_ActivityMemset4>(data, size);
      auto e = event<GpuEvent>(r.start, r.end);
      e.work = GpuWork::Memset;
      fillDeviceWork(e, r);
      e.bytes = r.bytes;
      e.setValue = r.value;
      e.dstKind = static_cast<uint8_t>(r.memoryKind);
      e.async = (r.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0;
      trace_.gpuEvents.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
      const auto r = as<CUpti_ActivityGraphTrace2>(data, size);
      auto e = event<GpuEvent>(r.start, r.end);
      e.work = GpuWork::Graph;
      e.device = r.deviceId, e.context = r.contextId, e.stream = r.streamId;
      e.correlation = r.correlationId;
      e.graphId = r.graphId;
      e.finished = r.end != 0;
      trace_.gpuEvents.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      const auto r = as<CUpti_ActivityDevice5>(data, size);
      Device d;
      d.process = process_;
      d.id = r.id;
      d.name = textOf(r.name);
      d.ccMajor = r.computeCapabilityMajor, d.ccMinor = r.computeCapabilityMinor;
      d.memoryBytes = r.globalMemorySize, d.memoryBandwidthKBs = r.globalMemoryBandwidth;
      d.coreClockKHz = r.coreClockRate, d.multiprocessors = r.numMultiprocessors, d.l2Bytes = r.l2CacheSize;
      d.warpsPerMultiprocessor = r.maxWarpsPerMultiprocessor, d.warpSize = r.numThreadsPerWarp;
      d.maxThreadsPerBlock = r.maxThreadsPerBlock, d.sharedPerMultiprocessor = r.maxSharedMemoryPerMultiprocessor;
      static_assert(sizeof r.uuid == sizeof d.uuid);
      std::memcpy(d.uuid, &r.uuid, sizeof d.uuid);
      trace_.devices.push_back(d);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
      const auto r = as<CUpti_ActivityContext3>(data, size);
      trace_.contexts.push_back({process_, r.contextId, r.deviceId, r.nullStreamId});
      return true;
    }
    case CUPTI_ACTIVITY_KIND_NAME: {
      const auto r = as<CUpti_ActivityName>(data, size);
      if (enumValue(r.objectKind) == CUPTI_ACTIVITY_OBJECT_THREAD)
        trace_.processes[process_].threadNames[r.objectId.pt.threadId] = textOf(r.name);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MARKER: marker(data, size); return true;
    case CUPTI_ACTIVITY_KIND_MARKER_DATA: {
      const auto r = as<CUpti_ActivityMarkerData2>(data, size);
      std::optional<uint32_t> color;
      if (enumValue(r.flags) & CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB) color = r.color;
      markerData_[r.id] = {color, r.category};
      return true;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto r = as<CUpti_ActivityOverhead3>(data, size);
      auto e = event<Overhead>(r.start, r.end);
      e.kind = enumValue(r.overheadKind);
      if (enumValue(r.objectKind) == CUPTI_ACTIVITY_OBJECT_THREAD) e.threadId = r.objectId.pt.threadId;
      e.correlation = r.correlationId;
      trace_.overheads.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
      const auto r = as<CUpti_ActivitySynchronization2>(data, size);
      auto e = event<Synchronization>(r.start, r.end);
      e.type = enumValue(r.type);
      e.context = r.contextId, e.stream = r.streamId, e.eventId = r.cudaEventId, e.correlation = r.correlationId;
      trace_.synchronizations.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2: {
      const auto r = as<CUpti_ActivityMemory4>(data, size);
      auto e = event<MemoryOperation>(r.timestamp, r.timestamp);
      e.operation = enumValue(r.memoryOperationType);
      e.kind = enumValue(r.memoryKind);
      e.device = r.deviceId, e.context = r.contextId, e.stream = r.streamId, e.correlation = r.correlationId;
      e.address = r.address, e.bytes = r.bytes;
      trace_.memoryOperations.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER: {
      const auto r = as<CUpti_ActivityUnifiedMemoryCounter3>(data, size);
      auto e = event<UnifiedMemory>(r.start, r.end);
      e.kind = enumValue(r.counterKind);
      e.value = r.value, e.address = r.address, e.srcId = r.srcId, e.dstId = r.dstId, e.stream = r.streamId;
      e.flags = r.flags;
      std::copy(std::begin(r.processors), std::end(r.processors), e.processors);
      trace_.unifiedMemory.push_back(e);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT: {
      const auto r = as<CUpti_ActivityEnvironment>(data, size);
      auto e = event<EnvironmentSample>(r.timestamp, r.timestamp);
      e.device = r.deviceId;
      e.kind = enumValue(r.environmentKind);
      switch (e.kind) {
        case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
          e.smClockMHz = r.data.speed.smClock;
          e.memoryClockMHz = r.data.speed.memoryClock;
          e.throttleReasons = enumValue(r.data.speed.clocksThrottleReasons);
          break;
        case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE: e.temperatureC = r.data.temperature.gpuTemperature; break;
        case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
          e.powerMilliwatts = r.data.power.power;
          e.powerLimit = r.data.power.powerLimit;
          break;
        case CUPTI_ACTIVITY_ENVIRONMENT_COOLING: e.fanPercent = r.data.cooling.fanSpeed; break;
        default: return true;
      }
      trace_.environment.push_back(e);
      return true;
    }
    default: return sourceRecord(data, size);
  }
}

void Decoder::marker(const unsigned char* data, size_t size) {
  const auto r = as<CUpti_ActivityMarker2>(data, size);
  const uint32_t flags = enumValue(r.flags);
  const uint32_t thread = enumValue(r.objectKind) == CUPTI_ACTIVITY_OBJECT_THREAD ? r.objectId.pt.threadId : 0;
  if (flags & CUPTI_ACTIVITY_FLAG_MARKER_END) {
    const auto it = openRanges_.find(r.id);
    if (it == openRanges_.end()) return;  // its start was lost
    NvtxRange range = it->second;
    openRanges_.erase(it);
    range.end = r.timestamp;
    range.closed = true;
    // Push and pop nest in one thread; start and end may be in two.
    if (thread != range.threadId) range.style = RangeStyle::StartEnd;
    trace_.ranges.push_back(range);
    return;
  }
  auto e = event<NvtxRange>(r.timestamp, r.timestamp);
  e.id = r.id;
  e.threadId = thread;
  e.name = textOf(r.name);
  e.domain = textOf(r.domain);
  if (flags & CUPTI_ACTIVITY_FLAG_MARKER_START) {
    e.style = RangeStyle::PushPop;
    e.closed = false;
    openRanges_[r.id] = e;
  } else {
    e.style = RangeStyle::Mark;
    trace_.ranges.push_back(e);
  }
}

void Decoder::finish() {
  finishInstructions();
  for (size_t i = firstApiCall_; i < trace_.apiCalls.size(); i++) {
    ApiCall& call = trace_.apiCalls[i];
    const uint32_t domain = call.runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
    const auto it = apiNames_.find({domain, call.cbid});
    call.name = it != apiNames_.end()
                    ? it->second
                    : trace_.intern((call.runtime ? "runtime call " : "driver call ") + std::to_string(call.cbid));
  }
  for (const auto& [id, range] : openRanges_) trace_.ranges.push_back(range);
  openRanges_.clear();
  for (size_t i = firstRange_; i < trace_.ranges.size(); i++) {
    const auto it = markerData_.find(trace_.ranges[i].id);
    if (it == markerData_.end()) continue;
    trace_.ranges[i].color = it->second.first;
    trace_.ranges[i].category = it->second.second;
  }
}

}  // namespace sonde::spool
