// SPDX-License-Identifier: Apache-2.0
//
// The table of functions that a tool gets from sondeToolsGetPlatform.
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "platform/clock.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/counters.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/library.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver::tools {

int32_t attachListener(const SondeListener* who);
void detachListener();

const char* kernelName(const void* function) {
  switch (HandleTable::typeOf(function)) {
    case Type::function:
      if (auto f = HandleTable::find<Function>(function)) return f->info().name.c_str();
      break;
    case Type::kernel:
      if (auto k = HandleTable::find<Kernel>(function)) return k->info().name.c_str();
      break;
    default: break;
  }
  return nullptr;
}

namespace {

uint64_t now() { return platform::nowNs(); }

volatile uint8_t* enabledCallbacks(uint32_t domain, uint32_t* count) {
  if (count) *count = kCallbackBytes;
  if (domain == SONDE_DOMAIN_DRIVER) return driverEnabled;
  if (domain == SONDE_DOMAIN_RUNTIME) return runtimeEnabled;
  if (count) *count = 0;
  return nullptr;
}

void setInterest(uint64_t bits) { interest.store(bits, std::memory_order_seq_cst); }

// NULL means the current context of the thread.
Ref<Context> contextOf(SondeHandle handle) {
  if (!handle) return Ref<Context>(peekContext());
  return HandleTable::find<Context>(handle);
}

// NULL means the current one; null: another sort of context.
Ref<GreenContext> greenArgument(SondeHandle handle) {
  return handle ? greenOf(static_cast<CUcontext>(handle)) : Ref<GreenContext>(currentGreen());
}

int32_t contextId(SondeHandle handle, uint32_t* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  if (!handle && !peekContext()) return CUDA_ERROR_INVALID_CONTEXT;
  const auto green = greenArgument(handle);
  const auto context = contextOf(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *id = green ? green->uid() : context->uid();
  return CUDA_SUCCESS;
}

int32_t contextDevice(SondeHandle handle, uint32_t* device) {
  const auto context = contextOf(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = context->device()->ordinal;
  return CUDA_SUCCESS;
}

int32_t streamId(SondeHandle contextHandle, SondeHandle handle, int perThread, uint32_t* id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = static_cast<CUstream>(handle);
  if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    const auto context = contextOf(contextHandle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    const bool own = stream == CU_STREAM_PER_THREAD || (stream == nullptr && perThread);
    const auto green = stream == nullptr && !own ? greenArgument(contextHandle) : Ref<GreenContext>();
    const Ref<Stream> s = green ? green->defaultStream() : own ? context->perThread() : context->legacy();
    if (!s) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = s->id();
    return CUDA_SUCCESS;
  }
  const auto s = HandleTable::find<Stream>(handle);
  if (!s) return CUDA_ERROR_INVALID_HANDLE;
  if (contextHandle && s->context()->handle() != contextHandle && reported(*s).handle != contextHandle)
    return CUDA_ERROR_INVALID_CONTEXT;
  *id = s->id();
  return CUDA_SUCCESS;
}

int32_t graphId(SondeHandle handle, uint32_t* id) {
  const auto graph = HandleTable::find<Graph>(handle);
  if (!graph || !id) return CUDA_ERROR_INVALID_VALUE;
  *id = graph->id;
  return CUDA_SUCCESS;
}

int32_t graphExecId(SondeHandle handle, uint32_t* id) {
  const auto exec = HandleTable::find<GraphExec>(handle);
  if (!exec || !id) return CUDA_ERROR_INVALID_VALUE;
  *id = exec->id;
  return CUDA_SUCCESS;
}

int32_t graphNodeId(SondeHandle handle, uint64_t* id) {
  const auto node = HandleTable::find<GraphNode>(handle);
  if (!node || !id) return CUDA_ERROR_INVALID_VALUE;
  *id = node->id;
  return CUDA_SUCCESS;
}

int32_t currentContextHandle(SondeHandle* out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = reportedCurrent().handle;
  return CUDA_SUCCESS;
}

uint32_t correlationOfThread() { return thread().correlation; }

int32_t synchronizeContextHandle(SondeHandle handle) {
  const auto context = contextOf(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (thread().inHostFunction) return CUDA_ERROR_NOT_PERMITTED;
  return context->synchronize();
}

int32_t synchronizeAll() {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (thread().inHostFunction) return CUDA_ERROR_NOT_PERMITTED;
  int32_t result = CUDA_SUCCESS;
  for (auto& context : Driver::get().contexts())
    if (const CUresult e = context->synchronize(); e && !result) result = e;
  return result;
}

void enumerate(void (*visit)(void* self, const SondeResource* resource), void* self) {
  if (!visit || !driverReady()) return;
  for (auto& context : Driver::get().contexts()) {
    SondeResource r{};
    r.size = sizeof r;
    r.event = SONDE_RESOURCE_CONTEXT_CREATED;
    r.context = context->handle();
    r.contextUid = context->uid();
    r.deviceId = context->device()->ordinal;
    r.handle = context->handle();
    r.id = context->uid();
    visit(self, &r);
    for (auto& green : GreenContext::live()) {
      if (green->primary() != context.get()) continue;
      const SondeResource g = describe(*green, SONDE_RESOURCE_CONTEXT_CREATED);
      visit(self, &g);
    }
    for (auto& stream : context->streams()) {
      SondeResource s = r;
      s.event = SONDE_RESOURCE_STREAM_CREATED;
      s.handle = stream->handle();
      s.id = stream->id();
      s.context = reported(*stream).handle;
      s.contextUid = reported(*stream).uid;
      s.flags = (stream->role() == Stream::Role::legacyDefault || stream->greenDefault ? 1u : 0u) |
                (stream->blocking() ? 0u : 2u);
      s.priority = stream->priority();
      visit(self, &s);
    }
    std::vector<Ref<Module>> modules;
    {
      std::lock_guard lock(context->objects);
      for (Module* m : context->modules) modules.emplace_back(m);
    }
    for (auto& m : modules) {
      SondeResource s = r;
      s.event = SONDE_RESOURCE_MODULE_LOADED;
      s.handle = m->handle();
      s.id = s.moduleId = m->id();
      s.image = m->image().c_str();
      s.imageSize = m->image().size();
      visit(self, &s);
      for (const SondeResource& f : m->describeFunctions()) visit(self, &f);
    }
  }
}

int32_t findDevice(uint32_t ordinal, Device*& device) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  device = Driver::get().device(static_cast<int>(ordinal));
  return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

int32_t deviceCount(uint32_t* count) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<uint32_t>(Driver::get().devices().size());
  return CUDA_SUCCESS;
}

int32_t deviceAttributeOf(uint32_t ordinal, int32_t attribute, int64_t* value) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  int64_t v = 0;
  if (!value || !deviceAttribute(*device, attribute, v)) return CUDA_ERROR_INVALID_VALUE;
  *value = v;
  return CUDA_SUCCESS;
}

int32_t deviceFact(uint32_t ordinal, const char* name, double* value) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  if (!name || !value) return CUDA_ERROR_INVALID_VALUE;
  const std::string key = name;
  const auto& m = device->model;
  if (auto it = m.facts.find(key); it != m.facts.end()) {
    *value = it->second;
    // The model says how many an SM executes a cycle, the fact is the device's for a second.
    if (key == "instruction_throughput_sp") *value *= m.smCount * m.boostClockMHz * 1e6;
    return CUDA_SUCCESS;
  }
  const std::pair<const char*, double> derived[] = {
      {"memory_bytes", static_cast<double>(m.memoryBytes)},  {"multiprocessor_count", m.smCount},
      {"warps_per_multiprocessor", m.maxWarpsPerSm},         {"blocks_per_multiprocessor", m.maxBlocksPerSm},
      {"schedulers_per_multiprocessor", m.schedulersPerSm},  {"clock_rate_khz", m.boostClockMHz * 1000.0},
      {"max_registers_per_thread", m.maxRegistersPerThread}, {"l1_bytes", static_cast<double>(m.l1.bytes)},
      {"l2_bytes", static_cast<double>(m.l2.bytes)},
  };
  for (const auto& [known, v] : derived)
    if (key == known) {
      *value = v;
      return CUDA_SUCCESS;
    }
  if (key == "global_memory_bandwidth_kBps") {  // two transfers a clock
    int64_t bits = 0;
    deviceAttribute(*device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, bits);
    *value = 2.0 * m.memoryClockMHz * 1e3 * static_cast<double>(bits) / 8.0;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

// 32 hexadecimal digits, kept for good.
const char* uuidDigits(uint32_t ordinal, const uint8_t* uuid) {
  static std::mutex& mutex = *new std::mutex;
  static std::map<uint32_t, std::string>& texts = *new std::map<uint32_t, std::string>;
  std::lock_guard lock(mutex);
  std::string& text = texts[ordinal];
  if (text.empty()) {
    for (int i = 0; i < 16; ++i) {
      text += "0123456789abcdef"[uuid[i] >> 4];
      text += "0123456789abcdef"[uuid[i] & 15];
    }
  }
  return text.c_str();
}

int32_t deviceString(uint32_t ordinal, const char* name, const char** value) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  if (!name || !value) return CUDA_ERROR_INVALID_VALUE;
  const std::string key = name;
  const auto& m = device->model;
  if (key == "name") {
    *value = m.name.c_str();
  } else if (key == "model") {
    *value = m.id.c_str();
  } else if (key == "uuid") {
    *value = uuidDigits(ordinal, m.uuid);
  } else if (key == "counters") {
    if (m.countersJson.empty()) return CUDA_ERROR_NOT_FOUND;
    *value = m.countersJson.c_str();
  } else if (key == "metrics") {
    if (m.metricsJson.empty()) return CUDA_ERROR_NOT_FOUND;
    *value = m.metricsJson.c_str();
  } else if (auto it = m.strings.find(key); it != m.strings.end()) {
    *value = it->second.c_str();
  } else {
    return CUDA_ERROR_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

int32_t counterConfigure(SondeHandle handle, uint32_t mode, const uint32_t* counters, uint32_t count) {
  const auto context = contextOf(handle);
  return context ? configureCounters(*context, mode, counters, count) : CUDA_ERROR_INVALID_CONTEXT;
}

int32_t counterRead(SondeHandle handle, const uint32_t* counters, uint32_t count, uint64_t* totals,
                    uint64_t* totalsAtKernelStart, uint32_t* instances, uint64_t* kernels) {
  const auto context = contextOf(handle);
  return context ? readCounters(*context, counters, count, totals, totalsAtKernelStart, instances, kernels)
                 : CUDA_ERROR_INVALID_CONTEXT;
}

int32_t counterInstancesOf(uint32_t ordinal, uint32_t counter, uint32_t* instances) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  if (!instances || counter >= exec::kRawCounterCount) return CUDA_ERROR_INVALID_VALUE;
  *instances = counterInstances(device->model, counter);
  return CUDA_SUCCESS;
}

int32_t toResult(model::ClockError error, const std::string& message) {
  // What CUPTI answers cannot name the file.
  if (error == model::ClockError::stateFile) {
    say(message);
  } else if (error != model::ClockError::none && !message.empty()) {
    sayVerbose(message);
  }
  switch (error) {
    case model::ClockError::none: return CUDA_SUCCESS;
    case model::ClockError::notSupported: return CUDA_ERROR_NOT_SUPPORTED;
    case model::ClockError::notPermitted: return CUDA_ERROR_NOT_PERMITTED;
    case model::ClockError::stateFile: return CUDA_ERROR_OPERATING_SYSTEM;
    case model::ClockError::taken: return CUDA_ERROR_ALREADY_ACQUIRED;
  }
  return CUDA_ERROR_UNKNOWN;
}

int32_t clockInfo(uint32_t ordinal, SondeClockInfo* info) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  if (!info || info->size < sizeof(SondeClockInfo)) return CUDA_ERROR_INVALID_VALUE;
  const auto& m = device->model;
  auto fact = [&](const char* name) {
    auto it = m.facts.find(name);
    return it == m.facts.end() ? 0u : static_cast<uint32_t>(it->second);
  };
  const model::ClockSample sample = device->clocks->sample(platform::nowNs());
  info->smClockMHz = sample.smClockMHz;
  info->memoryClockMHz = sample.memoryClockMHz;
  info->baseClockMHz = m.baseClockMHz;
  info->boostClockMHz = m.boostClockMHz;
  info->pcieLinkGen = fact("pcie_gen");
  info->pcieLinkWidth = fact("pcie_link_width");
  info->throttleReasons = sample.throttleReasons;
  info->temperatureC = sample.temperatureC;
  info->fanSpeedPercent = sample.fanPercent;
  info->powerMilliwatts = sample.powerMilliwatts;
  info->powerLimitMilliwatts = sample.powerLimitMilliwatts;
  return CUDA_SUCCESS;
}

int32_t clockLock(uint32_t ordinal, uint32_t mode) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  if (mode != 1 && mode != 2) return CUDA_ERROR_INVALID_VALUE;  // base, boost
  std::string message;
  const auto error = device->clocks->lock(static_cast<model::ClockLock>(mode), &message);
  device->clocksChanged();
  return toResult(error, message);
}

int32_t clockUnlock(uint32_t ordinal) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  std::string message;
  const auto error = device->clocks->unlock(&message);
  device->clocksChanged();
  return toResult(error, message);
}

int32_t clockReset(uint32_t ordinal) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  std::string message;
  const auto error = device->clocks->reset(&message);
  device->clocksChanged();
  return toResult(error, message);
}

int32_t clockStatus(uint32_t ordinal, uint32_t* status, int* ours) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  if (!status || !ours) return CUDA_ERROR_INVALID_VALUE;
  model::ClockLock lock{};
  uint32_t owner = 0;
  std::string message;
  const auto error = device->clocks->lockState(&lock, &owner, &message);
  if (error != model::ClockError::none) return toResult(error, message);
  // CUpti_ClockControl_Status.
  constexpr uint32_t kUnlocked = 1, kLocked = 2, kFloor = 3, kBoostOn = 4, kBoostOff = 5;
  uint32_t answer = lock == model::ClockLock::floor ? kFloor : kLocked;
  model::ClockState::Boost boost;
  if (lock == model::ClockLock::none) {
    answer = kUnlocked;
    if (device->clocks->autoBoost(&boost) == model::ClockError::none && boost.requester)
      answer = boost.enabled ? kBoostOn : kBoostOff;
  }
  *status = answer;
  *ours = owner == static_cast<uint32_t>(getpid());
  return CUDA_SUCCESS;
}

int32_t autoBoost(uint32_t ordinal, uint32_t* enabled, uint32_t* pid) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  if (!enabled || !pid) return CUDA_ERROR_INVALID_VALUE;
  model::ClockState::Boost boost;
  if (const auto error = device->clocks->autoBoost(&boost); error != model::ClockError::none)
    return toResult(error, "a partitioned device has no auto boost");
  *enabled = boost.enabled;
  *pid = boost.requester.value_or(0);
  return CUDA_SUCCESS;
}

int32_t unifiedMemoryConfigure(uint32_t ordinal, uint32_t kindMask) {
  Device* device;
  if (const int32_t e = findDevice(ordinal, device)) return e;
  return managed::configure(*device, kindMask);
}

const SondePlatform thePlatform = [] {
  SondePlatform p{};
  p.size = sizeof p;
  p.abiVersion = SONDE_TOOLS_ABI_VERSION;
  p.name = "softgpu";
  p.now = now;
  p.attach = attachListener;
  p.detach = detachListener;
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
  p.synchronizeContext = synchronizeContextHandle;
  p.synchronizeAll = synchronizeAll;
  p.enumerate = enumerate;
  p.deviceCount = deviceCount;
  p.deviceAttribute = deviceAttributeOf;
  p.deviceFact = deviceFact;
  p.deviceString = deviceString;
  p.counterConfigure = counterConfigure;
  p.counterRead = counterRead;
  p.counterInstances = counterInstancesOf;
  p.counterName = counterName;
  p.clockInfo = clockInfo;
  p.clockLock = clockLock;
  p.clockUnlock = clockUnlock;
  p.clockReset = clockReset;
  p.clockStatus = clockStatus;
  p.autoBoost = autoBoost;
  p.unifiedMemoryConfigure = unifiedMemoryConfigure;
  p.collect = managed::drain;
  p.countsInstructions = 1;
  return p;
}();

}  // namespace

const SondePlatform* platform() { return &thePlatform; }

}  // namespace sonde::softgpu::driver::tools
