// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/platform.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_ids.h"
#include "platform/nvidia/harvester.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/lifetimes.h"
#include "platform/nvidia/nvml.h"
#include "platform/nvidia/objects.h"
#include "platform/nvidia/uvm_tools.h"
#include "platform/nvidia/work.h"

namespace sonde::platform::nvidia {
namespace {

void* driverHandle = nullptr;
std::string& failure() {
  static std::string& text = *new std::string;
  return text;
}

uint64_t now() { return platform::nowNs(); }

void clearWanted() {
  for (uint32_t i = 0; i < kCbidCount; ++i) {
    setFlag(driverWanted[i], 0);
    setFlag(runtimeWanted[i], 0);
  }
}

int32_t attach(const SondeListener* listener) {
  if (listener == nullptr || listener->size < sizeof(SondeListener)) return CUDA_ERROR_INVALID_VALUE;
  if (const int32_t e = setListener(listener)) return e;
  failure().clear();
  if (!hookDriver(driverHandle, &failure())) {
    clearListener();
    debug("not attached: %s", failure().c_str());
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  noteAttached();
  setInterest(0);
  return CUDA_SUCCESS;
}

void detach() {
  clearWanted();
  setInterest(0);
  collect();
  clearListener();
  stopHarvester();
  stopUnifiedMemory();
  unhook();
}

volatile uint8_t* enabledCallbacks(uint32_t domain, uint32_t* count) {
  if (count != nullptr) *count = domain == SONDE_DOMAIN_DRIVER || domain == SONDE_DOMAIN_RUNTIME ? kCbidCount : 0;
  return domain == SONDE_DOMAIN_DRIVER ? driverWanted : domain == SONDE_DOMAIN_RUNTIME ? runtimeWanted : nullptr;
}

bool isPrimaryContext(CUcontext handle) {
  int count = 0;
  if (!own.cuDevicePrimaryCtxGetState || !own.cuDevicePrimaryCtxRetain || !own.cuDevicePrimaryCtxRelease ||
      !own.cuDeviceGetCount || own.cuDeviceGetCount(&count) != CUDA_SUCCESS)
    return false;
  for (CUdevice device = 0; device < count; ++device) {
    unsigned flags = 0;
    int active = 0;
    CUcontext primary = nullptr;
    // Retained only where it is in use: looking makes no context.
    if (own.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || !active ||
        own.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS)
      continue;
    own.cuDevicePrimaryCtxRelease(device);
    if (primary == handle) return true;
  }
  return false;
}

// NULL means the current context of the thread. The driver trusts handles, so
// one is believed only if a hook saw it, or it is current or a primary context.
Context* contextOf(SondeHandle handle) {
  Context* current = currentContext();
  if (handle == nullptr || (current != nullptr && current->handle == handle)) return current;
  const auto asked = static_cast<CUcontext>(handle);
  if (Context* context = findContext(asked, false)) return context;
  if (!isPrimaryContext(asked)) return nullptr;
  Context* context = findContext(asked, true);
  if (context != nullptr) context->primary.store(true);
  return context;
}

int32_t contextId(SondeHandle handle, uint32_t* id) {
  const Context* context = contextOf(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->uid;
  return CUDA_SUCCESS;
}

int32_t contextDevice(SondeHandle handle, uint32_t* device) {
  const Context* context = contextOf(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device;
  return CUDA_SUCCESS;
}

int32_t streamId(SondeHandle handle, SondeHandle stream, int perThread, uint32_t* id) {
  Context* context = contextOf(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = findStream(*context, static_cast<CUstream>(stream), perThread != 0)->id;
  return CUDA_SUCCESS;
}

int32_t graphId(SondeHandle handle, uint32_t* id) {
  if (handle == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = graphIdOf(static_cast<CUgraph>(handle));
  return CUDA_SUCCESS;
}

int32_t graphExecId(SondeHandle handle, uint32_t* id) {
  if (handle == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = graphExecIdOf(static_cast<CUgraphExec>(handle));
  return CUDA_SUCCESS;
}

int32_t graphNodeId(SondeHandle handle, uint64_t* id) {
  if (handle == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = graphNodeIdOf(static_cast<CUgraphNode>(handle));
  return CUDA_SUCCESS;
}

int32_t currentContextHandle(SondeHandle* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext handle = nullptr;
  if (const CUresult e = own.cuCtxGetCurrent(&handle)) return e;
  *out = handle;
  return CUDA_SUCCESS;
}

uint32_t correlationOfThread() { return threadCalls.correlation; }

int32_t synchronizeContext(SondeHandle handle) {
  const Context* context = contextOf(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult result;
  {
    WithContext with(context->handle);
    if (!with) return CUDA_ERROR_INVALID_CONTEXT;
    const auto synchronize = reinterpret_cast<CUresult (*)()>(driverOriginal[17]);  // cuCtxSynchronize
    if (synchronize == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    result = synchronize();
  }
  collect();
  return result;
}

int32_t synchronizeAll() {
  int32_t result = CUDA_SUCCESS;
  for (Context* context : liveContexts())
    if (const int32_t e = synchronizeContext(context->handle); e != 0 && result == 0) result = e;
  return result;
}

void enumerate(void (*visit)(void* self, const SondeResource* resource), void* self) {
  if (visit == nullptr) return;
  currentContext();  // known from now on
  for (Context* context : liveContexts()) {
    const SondeResource c = describe(*context);
    visit(self, &c);
    for (Stream* stream : liveStreams(*context)) {
      if (stream->dead.load()) continue;
      const SondeResource s = describe(*stream);
      visit(self, &s);
    }
  }
}

// ----------------------------------------------------------------- devices --

int32_t findDevice(uint32_t ordinal, CUdevice* device) {
  if (own.cuDeviceGet == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return own.cuDeviceGet(device, static_cast<int>(ordinal));
}

int32_t deviceCount(uint32_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int n = 0;
  if (own.cuDeviceGetCount == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (const CUresult e = own.cuDeviceGetCount(&n)) return e;
  *count = static_cast<uint32_t>(n);
  return CUDA_SUCCESS;
}

int32_t deviceAttribute(uint32_t ordinal, int32_t attribute, int64_t* value) {
  CUdevice device;
  if (const int32_t e = findDevice(ordinal, &device)) return e;
  int v = 0;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = own.cuDeviceGetAttribute(&v, static_cast<CUdevice_attribute>(attribute), device)) return e;
  *value = v;
  return CUDA_SUCCESS;
}

int32_t busIdOf(uint32_t ordinal, char (&text)[32]) {
  CUdevice device;
  if (const int32_t e = findDevice(ordinal, &device)) return e;
  if (own.cuDeviceGetPCIBusId == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return own.cuDeviceGetPCIBusId(text, sizeof text, device);
}

int32_t deviceFact(uint32_t ordinal, const char* name, double* value) {
  if (name == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdevice device;
  if (const int32_t e = findDevice(ordinal, &device)) return e;
  const std::string key = name;
  auto attribute = [&](CUdevice_attribute which) {
    int v = 0;
    own.cuDeviceGetAttribute(&v, which, device);
    return static_cast<double>(v);
  };
  if (key == "memory_bytes") {
    size_t bytes = 0;
    if (own.cuDeviceTotalMem == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (const CUresult e = own.cuDeviceTotalMem(&bytes, device)) return e;
    *value = static_cast<double>(bytes);
    return CUDA_SUCCESS;
  }
  const double threadsPerWarp = std::max(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 1.0);
  const std::pair<const char*, double> known[] = {
      {"multiprocessor_count", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)},
      {"warps_per_multiprocessor", attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / threadsPerWarp},
      {"blocks_per_multiprocessor", attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)},
      {"clock_rate_khz", attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)},
      {"l2_bytes", attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)},
      // Two transfers a clock.
      {"global_memory_bandwidth_kBps", 2.0 * attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                                           attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0},
  };
  for (const auto& [fact, v] : known)
    if (key == fact) {
      *value = v;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}

int32_t deviceString(uint32_t ordinal, const char* name, const char** value) {
  if (name == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdevice device;
  if (const int32_t e = findDevice(ordinal, &device)) return e;
  if (std::strcmp(name, "name") == 0 && own.cuDeviceGetName != nullptr) {
    char text[256] = "";
    if (const CUresult e = own.cuDeviceGetName(text, sizeof text, device)) return e;
    *value = keep(text);
    return CUDA_SUCCESS;
  }
  if (std::strcmp(name, "uuid") == 0 && own.cuDeviceGetUuid != nullptr) {
    CUuuid uuid;
    if (const CUresult e = own.cuDeviceGetUuid(&uuid, device)) return e;
    char text[33];
    for (int i = 0; i < 16; ++i)
      std::snprintf(text + 2 * i, 3, "%02x", static_cast<unsigned>(static_cast<uint8_t>(uuid.bytes[i])));
    *value = keep(text);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

// ------------------------------------------------------------------ clocks --

int32_t clockInfo(uint32_t ordinal, SondeClockInfo* info) {
  char bus[32];
  if (info == nullptr || info->size < sizeof(SondeClockInfo)) return CUDA_ERROR_INVALID_VALUE;
  if (const int32_t e = busIdOf(ordinal, bus)) return e;
  return nvmlClockInfo(bus, info);
}
int32_t clockLock(uint32_t ordinal, uint32_t mode) {
  char bus[32];
  if (const int32_t e = busIdOf(ordinal, bus)) return e;
  return nvmlClockLock(bus, mode);
}
int32_t clockUnlock(uint32_t ordinal) {
  char bus[32];
  if (const int32_t e = busIdOf(ordinal, bus)) return e;
  return nvmlClockUnlock(bus);
}
int32_t clockStatus(uint32_t ordinal, uint32_t* status, int* ours) {
  char bus[32];
  if (status == nullptr || ours == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const int32_t e = busIdOf(ordinal, bus)) return e;
  return nvmlClockStatus(bus, status, ours);
}
int32_t autoBoost(uint32_t ordinal, uint32_t* enabled, uint32_t* pid) {
  char bus[32];
  if (enabled == nullptr || pid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const int32_t e = busIdOf(ordinal, bus)) return e;
  return nvmlAutoBoost(bus, enabled, pid);
}

// No counters yet: the Event API says NOT_SUPPORTED.
const SondePlatform thePlatform = [] {
  SondePlatform p{};
  p.size = sizeof p;
  p.abiVersion = SONDE_TOOLS_ABI_VERSION;
  p.name = "nvidia";
  p.now = now;
  p.attach = attach;
  p.detach = detach;
  p.enabledCallbacks = enabledCallbacks;
  p.setInterest = setInterest;
  p.contextId = contextId;
  p.contextDevice = contextDevice;
  p.streamId = streamId;
  p.graphId = graphId;
  p.graphExecId = graphExecId;
  p.graphNodeId = graphNodeId;
  p.currentContext = currentContextHandle;
  p.correlationId = correlationOfThread;
  p.synchronizeContext = synchronizeContext;
  p.synchronizeAll = synchronizeAll;
  p.enumerate = enumerate;
  p.deviceCount = deviceCount;
  p.deviceAttribute = deviceAttribute;
  p.deviceFact = deviceFact;
  p.deviceString = deviceString;
  p.clockInfo = clockInfo;
  p.clockLock = clockLock;
  p.clockUnlock = clockUnlock;
  p.clockStatus = clockStatus;
  p.autoBoost = autoBoost;
  p.collect = collect;
  p.detachWhenUnused = 1;
  p.pendingWork = pendingWork;
  p.unifiedMemoryConfigure = configureUnifiedMemory;
  p.unifiedMemoryFailure = unifiedMemoryFailure;
  return p;
}();

}  // namespace

const SondePlatform* platformFor(void* handle) {
  driverHandle = handle;
  return &thePlatform;
}

const char* attachFailure() { return failure().c_str(); }

}  // namespace sonde::platform::nvidia
