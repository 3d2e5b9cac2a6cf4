// SPDX-License-Identifier: Apache-2.0
#include "core/records.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>

#include "core/caller.h"
#include "core/core.h"
#include "core/strings.h"
#include "platform/application_caller.h"

namespace sonde::core {
namespace {

CUpti_ChannelType channelType(const SondeWork& work) { return static_cast<CUpti_ChannelType>(work.channelType); }

uint32_t clamp32(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX)); }

// 32 hexadecimal digits, other characters between them ignored.
void parseUuid(const char* text, char (&bytes)[16]) {
  unsigned digits = 0;
  for (; *text != 0 && digits < 32; ++text) {
    const char c = *text;
    int value;
    if (c >= '0' && c <= '9') {
      value = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      value = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      value = c - 'A' + 10;
    } else {
      continue;
    }
    bytes[digits / 2] = static_cast<char>((digits % 2 == 0 ? value << 4 : bytes[digits / 2] | value));
    ++digits;
  }
}

}  // namespace

const CUaccessPolicyWindow* internAccessPolicy(const SondeWork& work) {
  if (work.size < offsetof(SondeWork, accessPolicy) + sizeof work.accessPolicy || !work.accessPolicy) return nullptr;
  const auto& given = *static_cast<const CUaccessPolicyWindow*>(work.accessPolicy);
  CUaccessPolicyWindow window;
  std::memset(static_cast<void*>(&window), 0, sizeof window);  // also what lies between the members
  window.base_ptr = given.base_ptr;
  window.num_bytes = given.num_bytes;
  window.hitRatio = given.hitRatio;
  window.hitProp = given.hitProp;
  window.missProp = given.missProp;
  // Longer than what a string keeps in itself, so aligned for everything.
  static_assert(sizeof window > sizeof(std::string) / 2);
  return reinterpret_cast<const CUaccessPolicyWindow*>(
      intern(std::string_view(reinterpret_cast<const char*>(&window), sizeof window)));
}

CUpti_ActivityKernel10 kernelRecord(const Client& client, const SondeWork& work, CUpti_ActivityKind kind) {
  CUpti_ActivityKernel10 r{};
  r.kind = kind;
  r.cacheConfig.config.requested = work.cacheConfigRequested & 0xf;
  r.cacheConfig.config.executed = work.cacheConfigExecuted & 0xf;
  r.sharedMemoryConfig = static_cast<uint8_t>(work.sharedMemoryConfig);
  r.registersPerThread = static_cast<uint16_t>(work.registersPerThread);
  r.partitionedGlobalCacheRequested =
      static_cast<CUpti_ActivityPartitionedGlobalCacheConfig>(work.partitionedCacheRequested);
  r.partitionedGlobalCacheExecuted =
      static_cast<CUpti_ActivityPartitionedGlobalCacheConfig>(work.partitionedCacheExecuted);
  r.start = client.toClientTime(work.start);
  r.end = client.toClientTime(work.end);
  const bool hasCompleted = work.size >= offsetof(SondeWork, completed) + sizeof work.completed && work.completed != 0;
  r.completed = hasCompleted && r.end != 0 ? client.toClientTime(work.completed) : r.end;
  r.deviceId = work.deviceId;
  r.contextId = work.contextUid;
  r.streamId = work.streamId;
  r.gridX = static_cast<int32_t>(work.grid[0]);
  r.gridY = static_cast<int32_t>(work.grid[1]);
  r.gridZ = static_cast<int32_t>(work.grid[2]);
  r.blockX = static_cast<int32_t>(work.block[0]);
  r.blockY = static_cast<int32_t>(work.block[1]);
  r.blockZ = static_cast<int32_t>(work.block[2]);
  r.staticSharedMemory = static_cast<int32_t>(work.staticSharedMemory);
  r.dynamicSharedMemory = static_cast<int32_t>(work.dynamicSharedMemory);
  r.localMemoryPerThread = work.localMemoryPerThread;
  r.localMemoryTotal = clamp32(work.localMemoryTotal);
  r.localMemoryTotal_v2 = work.localMemoryTotal;
  r.correlationId = work.correlationId;
  r.gridId = static_cast<int64_t>(work.gridId);
  r.name = intern(work.name);
  if (client.latencyTimestamps.load(std::memory_order_relaxed)) {
    r.queued = client.toClientTime(work.queued);
    r.submitted = client.toClientTime(work.submitted);
  }
  if (client.launchAttributes.load(std::memory_order_relaxed))
    r.pAccessPolicyWindow = const_cast<CUaccessPolicyWindow*>(internAccessPolicy(work));
  r.launchType = static_cast<uint8_t>(work.launchType);
  r.isSharedMemoryCarveoutRequested = work.sharedMemoryCarveoutRequested != 0;
  r.sharedMemoryCarveoutRequested = static_cast<uint8_t>(work.sharedMemoryCarveout);
  r.sharedMemoryExecuted = work.sharedMemoryExecuted;
  r.graphNodeId = work.graphNodeId;
  r.graphId = work.graphId;
  r.channelID = work.channelId;
  r.channelType = channelType(work);
  r.clusterX = work.cluster[0];
  r.clusterY = work.cluster[1];
  r.clusterZ = work.cluster[2];
  if (work.size >= offsetof(SondeWork, sharedMemoryOptin) + sizeof work.sharedMemoryOptin) {
    r.shmemLimitConfig = work.sharedMemoryOptin ? CUPTI_FUNC_SHMEM_LIMIT_OPTIN : CUPTI_FUNC_SHMEM_LIMIT_DEFAULT;
    r.clusterSchedulingPolicy = work.clusterSchedulingPolicy;
    r.maxPotentialClusterSize = work.maxPotentialClusterSize;
    r.maxActiveClusters = work.maxActiveClusters;
  }
  return r;
}

CUpti_ActivityCdpKernel cdpKernelRecord(const Client& client, const SondeWork& work) {
  const CUpti_ActivityKernel10 k = kernelRecord(client, work, CUPTI_ACTIVITY_KIND_CDP_KERNEL);
  CUpti_ActivityCdpKernel r{};
  r.kind = k.kind;
  r.cacheConfig.both = k.cacheConfig.both;
  r.sharedMemoryConfig = k.sharedMemoryConfig;
  r.registersPerThread = k.registersPerThread;
  r.start = k.start;
  r.end = k.end;
  r.completed = k.completed;
  // The device notes these whether latency times are enabled or not.
  r.queued = client.toClientTime(work.queued);
  r.submitted = client.toClientTime(work.submitted);
  r.deviceId = k.deviceId;
  r.contextId = k.contextId;
  r.streamId = k.streamId;
  r.gridX = k.gridX, r.gridY = k.gridY, r.gridZ = k.gridZ;
  r.blockX = k.blockX, r.blockY = k.blockY, r.blockZ = k.blockZ;
  r.staticSharedMemory = k.staticSharedMemory;
  r.dynamicSharedMemory = k.dynamicSharedMemory;
  r.localMemoryPerThread = k.localMemoryPerThread;
  r.localMemoryTotal = k.localMemoryTotal;
  r.correlationId = k.correlationId;
  r.gridId = k.gridId;
  r.parentGridId = static_cast<int64_t>(work.parentGridId);
  r.parentBlockX = work.parentBlock[0];
  r.parentBlockY = work.parentBlock[1];
  r.parentBlockZ = work.parentBlock[2];
  r.name = k.name;
  return r;
}

CUpti_ActivityMemcpy6 memcpyRecord(const Client& client, const SondeWork& work) {
  CUpti_ActivityMemcpy6 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  r.copyKind = static_cast<uint8_t>(work.copyKind);
  r.srcKind = static_cast<uint8_t>(work.srcMemoryKind);
  r.dstKind = static_cast<uint8_t>(work.dstMemoryKind);
  r.flags = work.isAsync ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  r.bytes = work.bytes;
  r.start = client.toClientTime(work.start);
  r.end = client.toClientTime(work.end);
  r.deviceId = work.deviceId;
  r.contextId = work.contextUid;
  r.streamId = work.streamId;
  r.correlationId = work.correlationId;
  r.runtimeCorrelationId = work.correlationId;
  r.graphNodeId = work.graphNodeId;
  r.graphId = work.graphId;
  r.channelID = work.channelId;
  r.channelType = channelType(work);
  r.copyCount = std::max<uint64_t>(work.copyCount, 1);
  return r;
}

CUpti_ActivityMemcpyPtoP4 peerCopyRecord(const Client& client, const SondeWork& work) {
  CUpti_ActivityMemcpyPtoP4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  r.copyKind = static_cast<uint8_t>(work.copyKind);
  r.srcKind = static_cast<uint8_t>(work.srcMemoryKind);
  r.dstKind = static_cast<uint8_t>(work.dstMemoryKind);
  r.flags = work.isAsync ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  r.bytes = work.bytes;
  r.start = client.toClientTime(work.start);
  r.end = client.toClientTime(work.end);
  r.deviceId = work.deviceId;
  r.contextId = work.contextUid;
  r.streamId = work.streamId;
  r.srcDeviceId = work.srcDeviceId;
  r.srcContextId = work.srcContextUid;
  r.dstDeviceId = work.dstDeviceId;
  r.dstContextId = work.dstContextUid;
  r.correlationId = work.correlationId;
  r.graphNodeId = work.graphNodeId;
  r.graphId = work.graphId;
  r.channelID = work.channelId;
  r.channelType = channelType(work);
  return r;
}

CUpti_ActivityMemset4 memsetRecord(const Client& client, const SondeWork& work) {
  CUpti_ActivityMemset4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  r.value = work.setValue;
  r.bytes = work.bytes;
  r.start = client.toClientTime(work.start);
  r.end = client.toClientTime(work.end);
  r.deviceId = work.deviceId;
  r.contextId = work.contextUid;
  r.streamId = work.streamId;
  r.correlationId = work.correlationId;
  r.flags = work.isAsync ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : CUPTI_ACTIVITY_FLAG_NONE;
  r.memoryKind = static_cast<uint16_t>(work.dstMemoryKind);
  r.graphNodeId = work.graphNodeId;
  r.graphId = work.graphId;
  r.channelID = work.channelId;
  r.channelType = channelType(work);
  return r;
}

CUpti_ActivityCudaEvent2 cudaEventRecord(const Client& client, const SondeWork& work) {
  CUpti_ActivityCudaEvent2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  r.correlationId = work.correlationId;
  r.contextId = work.contextUid;
  r.streamId = work.streamId;
  r.eventId = work.eventId;
  r.deviceId = work.deviceId;
  if (client.eventTimestamps.load(std::memory_order_relaxed)) r.deviceTimestamp = client.toClientTime(work.end);
  r.cudaEventSyncId = work.eventSyncId;
  return r;
}

CUpti_ActivityGraphTrace2 graphRecord(const Client& client, const SondeWork& work) {
  CUpti_ActivityGraphTrace2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  r.correlationId = work.correlationId;
  r.start = client.toClientTime(work.start);
  r.end = client.toClientTime(work.end);
  r.deviceId = work.deviceId;
  r.graphId = work.graphId;
  r.contextId = work.contextUid;
  r.streamId = work.streamId;
  r.endDeviceId = work.deviceId;
  r.endContextId = work.contextUid;
  return r;
}

CUpti_ActivitySynchronization2 synchronizationRecord(const Client& client, const SondeSync& sync) {
  CUpti_ActivitySynchronization2 r{};
  r.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  r.type = static_cast<CUpti_ActivitySynchronizationType>(sync.kind);
  r.start = client.toClientTime(sync.start);
  r.end = client.toClientTime(sync.end);
  r.correlationId = sync.correlationId;
  r.contextId = sync.contextUid;
  r.streamId = sync.streamId;
  const bool event = sync.kind == SONDE_SYNC_EVENT_SYNCHRONIZE || sync.kind == SONDE_SYNC_STREAM_WAIT_EVENT;
  r.cudaEventId = event ? sync.eventId : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  r.cudaEventSyncId = event ? sync.eventSyncId : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  r.returnValue = static_cast<uint32_t>(sync.returnValue);
  return r;
}

CUpti_ActivityContext3 contextRecord(const SondePlatform& platform, const SondeResource& context) {
  CUpti_ActivityContext3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_CONTEXT;
  r.contextId = context.contextUid;
  r.deviceId = context.deviceId;
  r.computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA;
  uint32_t nullStream = 0;
  platform.streamId(context.context, nullptr, 0, &nullStream);
  r.nullStreamId = static_cast<uint16_t>(nullStream);
  const bool green = context.size >= sizeof context && context.parentContextUid != 0;
  r.isGreenContext = green ? 1 : 0;
  r.parentContextId = green ? context.parentContextUid : CUPTI_INVALID_CONTEXT_ID;
  int64_t multiprocessors = 0;
  if (green)
    multiprocessors = context.multiprocessors;
  else
    platform.deviceAttribute(context.deviceId, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &multiprocessors);
  r.numMultiprocessors = static_cast<uint16_t>(multiprocessors);
  r.cigMode = CUPTI_CONTEXT_CIG_MODE_NONE;
  return r;
}

CUpti_ActivityStream streamRecord(const SondeResource& stream) {
  CUpti_ActivityStream r{};
  r.kind = CUPTI_ACTIVITY_KIND_STREAM;
  r.contextId = stream.contextUid;
  r.streamId = stream.id;
  r.priority = static_cast<uint32_t>(stream.priority);
  r.flag = stream.flags & 1   ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL
           : stream.flags & 2 ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
                              : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT;
  r.correlationId = stream.correlationId;
  return r;
}

CUpti_ActivityModule moduleRecord(const SondeResource& module) {
  CUpti_ActivityModule r{};
  r.kind = CUPTI_ACTIVITY_KIND_MODULE;
  r.contextId = module.contextUid;
  r.id = module.id;
  r.cubinSize = clamp32(module.imageSize);
  // The application may unload the module before the record is read.
  if (module.image != nullptr) {
    r.cubin = intern(std::string_view(static_cast<const char*>(module.image), module.imageSize));
  }
  return r;
}

CUpti_ActivityFunction functionRecord(const SondeResource& function) {
  CUpti_ActivityFunction r{};
  r.kind = CUPTI_ACTIVITY_KIND_FUNCTION;
  r.id = function.id;
  r.contextId = function.contextUid;
  r.moduleId = function.moduleId;
  r.functionIndex = function.functionIndex;
  r.name = intern(function.name);
  return r;
}

CUpti_ActivityMemory memoryRecord(uint64_t address, const Client::Allocation& allocation) {
  CUpti_ActivityMemory r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY;
  r.memoryKind = static_cast<CUpti_ActivityMemoryKind>(allocation.kind);
  r.address = address;
  r.bytes = allocation.bytes;
  r.start = allocation.start;
  r.processId = processId();
  r.deviceId = allocation.device;
  r.contextId = allocation.contextUid;
  r.allocPC = allocation.pc;
  r.name = allocation.name;
  return r;
}

uint64_t pcOf(const SondeResource& memory) {
  return memory.size >= offsetof(SondeResource, pc) + sizeof memory.pc ? memory.pc : 0;
}

const char* variableName(const SondeResource& memory) { return memory.name != nullptr ? intern(memory.name) : nullptr; }

// The file of the object that asked for memory, interned; nullptr: not known.
const char* sourceOf(uint64_t pc) {
  if (pc == 0) pc = platform::applicationCaller();
  if (pc == 0) return nullptr;
  const CallerObject object = findCaller(reinterpret_cast<const void*>(pc));
  if (object.base == 0) return nullptr;
  if (!object.path.empty()) return intern(object.path.c_str());
  static const char* const executable = [] {
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return intern(program_invocation_name);
    path[length] = 0;
    return intern(path);
  }();
  return executable;
}

CUpti_ActivityMemory4 memory2Record(const Client& client, const SondeResource& allocation) {
  CUpti_ActivityMemory4 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  r.memoryOperationType = static_cast<CUpti_ActivityMemoryOperationType>(allocation.memoryOp);
  r.memoryKind = static_cast<CUpti_ActivityMemoryKind>(allocation.memoryKind);
  r.correlationId = allocation.correlationId;
  r.address = allocation.address;
  r.bytes = allocation.bytes;
  r.timestamp = client.toClientTime(allocation.time);
  r.PC = pcOf(allocation);
  r.processId = processId();
  r.deviceId = allocation.deviceId;
  r.contextId = allocation.contextUid;
  r.streamId = allocation.isAsync ? allocation.streamId : CUPTI_INVALID_STREAM_ID;
  r.name = variableName(allocation);
  r.isAsync = allocation.isAsync;
  if (allocation.memoryOp == 1 && client.allocationSource.load(std::memory_order_relaxed)) r.source = sourceOf(r.PC);
  if (allocation.pool != nullptr) {
    r.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    r.memoryPoolConfig.address = reinterpret_cast<uint64_t>(allocation.pool);
    r.memoryPoolConfig.releaseThreshold = allocation.poolReleaseThreshold;
    r.memoryPoolConfig.pool.size = allocation.poolReservedBytes;
    r.memoryPoolConfig.utilizedSize = allocation.poolUsedBytes;
  }
  return r;
}

CUpti_ActivityMemoryPool3 poolRecord(const Client& client, const SondeResource& pool) {
  CUpti_ActivityMemoryPool3 r{};
  r.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  r.memoryPoolOperationType = static_cast<CUpti_ActivityMemoryPoolOperationType>(pool.memoryOp - 2);
  r.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  r.correlationId = pool.correlationId;
  r.processId = processId();
  r.deviceId = pool.deviceId;
  r.minBytesToKeep = pool.memoryOp == 5 ? pool.bytes : 0;
  r.address = reinterpret_cast<uint64_t>(pool.pool);
  r.size = pool.poolReservedBytes;
  r.releaseThreshold = pool.poolReleaseThreshold;
  r.timestamp = client.toClientTime(pool.time);
  r.utilizedSize = pool.poolUsedBytes;
  return r;
}

CUpti_ActivityDevice5 deviceRecord(const SondePlatform& platform, uint32_t device) {
  auto attribute = [&](CUdevice_attribute which) {
    int64_t value = 0;
    platform.deviceAttribute(device, which, &value);
    return static_cast<uint32_t>(value);
  };
  auto fact = [&](const char* name) {
    double value = 0;
    platform.deviceFact(device, name, &value);
    return static_cast<uint64_t>(value);
  };
  CUpti_ActivityDevice5 r{};
  r.kind = CUPTI_ACTIVITY_KIND_DEVICE;
  r.flags = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS) ? CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS
                                                              : CUPTI_ACTIVITY_FLAG_NONE;
  r.globalMemoryBandwidth = fact("global_memory_bandwidth_kBps");
  r.globalMemorySize = fact("memory_bytes");
  r.constantMemorySize = attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  r.l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  r.numThreadsPerWarp = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  r.coreClockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  r.numMemcpyEngines = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
  r.numMultiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  r.maxIPC = static_cast<uint32_t>(fact("instruction_per_cycle"));
  const uint32_t warp = std::max(r.numThreadsPerWarp, 1u);
  r.maxWarpsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / warp;
  r.maxBlocksPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  r.maxSharedMemoryPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  r.maxRegistersPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  r.maxRegistersPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  r.maxSharedMemoryPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  r.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  r.maxBlockDimX = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
  r.maxBlockDimY = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
  r.maxBlockDimZ = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  r.maxGridDimX = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
  r.maxGridDimY = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
  r.maxGridDimZ = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
  r.computeCapabilityMajor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  r.computeCapabilityMinor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  r.id = device;
  r.eccEnabled = attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
  const char* text = nullptr;
  if (platform.deviceString(device, "uuid", &text) == 0 && text != nullptr) {
    parseUuid(text, r.uuid.bytes);
  }
  text = nullptr;
  platform.deviceString(device, "name", &text);
  r.name = intern(text);
  r.isCudaVisible = 1;
  r.isNumaNode = 0;
  r.numaId = invalidNumaId;
  return r;
}

}  // namespace sonde::core
