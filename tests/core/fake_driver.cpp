// SPDX-License-Identifier: Apache-2.0
#include "core/fake_driver.h"

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "core/generated/callback_names.h"
#include "platform/clock.h"

namespace fake {
namespace {

struct Context {
  uint32_t uid, device;
  uint32_t nextStream = 14;
};
struct Stream {
  Context* context;
  uint32_t id, flags;
  int32_t priority;
};
struct Module {
  Context* context;
  uint32_t id;
  const void* image;
  size_t bytes;
};

constexpr uint32_t kNullStream = 7;

struct State {
  std::vector<void*> everything;  // handles stay readable for the whole run
  std::mutex mutex;
  std::condition_variable changed;
  std::map<SondeHandle, Context*> contexts;
  std::map<SondeHandle, Stream*> streams;
  std::map<SondeHandle, Module*> modules;
  uint32_t nextContext = 1, nextModule = 1;
  uint32_t devices = 1;
  std::deque<std::pair<SondeWork, std::string>> work;
  bool held = false;
  bool busy = false;
  bool workerStarted = false;
};
State& state() {
  static State& instance = *new State;
  return instance;
}

std::atomic<const SondeListener*> listener{nullptr};
volatile uint8_t driverOn[sonde::core::kDriverCbidCount];
volatile uint8_t runtimeOn[sonde::core::kRuntimeCbidCount];
std::atomic<uint64_t> interestBits{0};
std::atomic<uint32_t> nextCorrelation{1};
std::atomic<uint32_t> syncCount{0};
std::atomic<uint32_t> clockQueries{0};
std::atomic<int32_t> autoBoostResult{0};

struct ThreadCalls {
  uint32_t depth = 0, correlation = 0, runtimeDepth = 0;
  SondeHandle context = nullptr;
};
thread_local ThreadCalls calls;

const SondeListener* listening() { return listener.load(std::memory_order_acquire); }

uint64_t now() { return sonde::platform::nowNs(); }

void report(const SondeWork& work) {
  if (const SondeListener* l = listening()) l->workCompleted(l->self, &work);
}

void doOldest(State& s, std::unique_lock<std::mutex>& lock) {
  auto [work, name] = s.work.front();
  s.work.pop_front();
  s.busy = true;
  lock.unlock();
  if (work.name != nullptr) work.name = name.c_str();
  if (work.start == 0) work.start = now();
  if (work.end == 0) work.end = now();
  report(work);
  lock.lock();
  s.busy = false;
  s.changed.notify_all();
}

void worker() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.changed.wait(lock, [&] { return !s.held && !s.work.empty(); });
    doOldest(s, lock);
  }
}

uint64_t interestOf(SondeWorkKind kind) {
  switch (kind) {
    case SONDE_WORK_KERNEL: return SONDE_INTEREST_KERNEL;
    case SONDE_WORK_MEMCPY:
    case SONDE_WORK_MEMCPY_PEER: return SONDE_INTEREST_MEMCPY;
    case SONDE_WORK_MEMSET: return SONDE_INTEREST_MEMSET;
    case SONDE_WORK_EVENT_RECORD: return SONDE_INTEREST_EVENT_RECORD;
    case SONDE_WORK_GRAPH: return SONDE_INTEREST_GRAPH;
    default: return SONDE_INTEREST_HOST_FUNCTION;
  }
}

Context* find(SondeHandle context) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto found = s.contexts.find(context);
  return found == s.contexts.end() ? nullptr : found->second;
}

SondeResource contextEvent(Context* c, SondeResourceEvent event) {
  SondeResource r{};
  r.size = sizeof r;
  r.event = event;
  r.context = c;
  r.contextUid = c->uid;
  r.deviceId = c->device;
  return r;
}

SondeResource streamEvent(Stream* stream, SondeResourceEvent event) {
  SondeResource r = contextEvent(stream->context, event);
  r.handle = stream;
  r.id = stream->id;
  r.flags = stream->flags;
  r.priority = stream->priority;
  return r;
}

SondeResource moduleEvent(Module* module, SondeResourceEvent event) {
  SondeResource r = contextEvent(module->context, event);
  r.handle = module;
  r.id = module->id;
  r.image = module->image;
  r.imageSize = module->bytes;
  return r;
}

// ---------------------------------------------------------- the platform --

int32_t attach(const SondeListener* l) {
  const SondeListener* expected = nullptr;
  return listener.compare_exchange_strong(expected, l) ? 0 : CUDA_ERROR_ALREADY_ACQUIRED;
}
void detach() { listener.store(nullptr); }

volatile uint8_t* enabledCallbacks(uint32_t domain, uint32_t* count) {
  *count = domain == SONDE_DOMAIN_DRIVER ? sizeof driverOn : sizeof runtimeOn;
  return domain == SONDE_DOMAIN_DRIVER ? driverOn : runtimeOn;
}
void setInterest(uint64_t bits) { interestBits.store(bits); }

int32_t contextId(SondeHandle context, uint32_t* id) {
  Context* c = find(context);
  if (c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *id = c->uid;
  return 0;
}
int32_t contextDevice(SondeHandle context, uint32_t* device) {
  Context* c = find(context);
  if (c == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = c->device;
  return 0;
}
int32_t streamId(SondeHandle context, SondeHandle stream, int, uint32_t* id) {
  if (stream == nullptr) {
    *id = kNullStream;
    return 0;
  }
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto found = s.streams.find(stream);
  if (found == s.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (context != nullptr && found->second->context != context) return CUDA_ERROR_INVALID_HANDLE;
  *id = found->second->id;
  return 0;
}
int32_t graphId(SondeHandle graph, uint32_t* id) {
  if (reinterpret_cast<uintptr_t>(graph) != 0x6000) return CUDA_ERROR_INVALID_HANDLE;
  *id = 41;
  return 0;
}
int32_t graphExecId(SondeHandle exec, uint32_t* id) {
  if (reinterpret_cast<uintptr_t>(exec) != 0x6100) return CUDA_ERROR_INVALID_HANDLE;
  *id = 42;
  return 0;
}
int32_t graphNodeId(SondeHandle node, uint64_t* id) {
  if (reinterpret_cast<uintptr_t>(node) != 0x6200) return CUDA_ERROR_INVALID_HANDLE;
  *id = uint64_t{2} << 32;
  return 0;
}
int32_t currentContext(SondeHandle* context) {
  *context = calls.context;
  return 0;
}
uint32_t correlationId() { return calls.correlation; }
int32_t synchronizeContext(SondeHandle) {
  waitWork();
  return 0;
}
int32_t synchronizeAll() {
  syncCount.fetch_add(1);
  releaseWork();
  waitWork();
  return 0;
}

void enumerate(void (*visit)(void*, const SondeResource*), void* self) {
  State& s = state();
  std::vector<SondeResource> all;
  {
    std::lock_guard lock(s.mutex);
    for (auto& [h, c] : s.contexts) all.push_back(contextEvent(c, SONDE_RESOURCE_CONTEXT_CREATED));
    for (auto& [h, stream] : s.streams) all.push_back(streamEvent(stream, SONDE_RESOURCE_STREAM_CREATED));
    for (auto& [h, module] : s.modules) all.push_back(moduleEvent(module, SONDE_RESOURCE_MODULE_LOADED));
  }
  for (const SondeResource& r : all) visit(self, &r);
}

int32_t deviceCount(uint32_t* count) {
  *count = state().devices;
  return 0;
}
int32_t deviceAttribute(uint32_t device, int32_t attribute, int64_t* value) {
  if (device >= state().devices) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; return 0;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 16; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; return 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; return 0;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: *value = 1; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: *value = 1024; return 0;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; return 0;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
int32_t deviceFact(uint32_t device, const char* name, double* value) {
  if (device >= state().devices) return CUDA_ERROR_INVALID_DEVICE;
  if (std::strcmp(name, "memory_bytes") == 0) {
    *value = 8589934592.0;
  } else if (std::strcmp(name, "global_memory_bandwidth_kBps") == 0) {
    *value = 4814304000.0;
  } else if (std::strcmp(name, "instruction_per_cycle") == 0) {
    *value = 4;
  } else {
    return CUDA_ERROR_NOT_FOUND;
  }
  return 0;
}
int32_t deviceString(uint32_t device, const char* name, const char** value) {
  if (device >= state().devices) return CUDA_ERROR_INVALID_DEVICE;
  if (std::strcmp(name, "name") == 0) {
    *value = "Fake GPU";
  } else if (std::strcmp(name, "uuid") == 0) {
    *value = "000102030405060708090a0b0c0d0eff";
  } else {
    return CUDA_ERROR_NOT_FOUND;
  }
  return 0;
}
std::atomic<uint32_t> fanSpeed{30};
int32_t clockInfo(uint32_t device, SondeClockInfo* info) {
  ++clockQueries;
  if (device >= state().devices) return CUDA_ERROR_INVALID_DEVICE;
  info->smClockMHz = 1980;
  info->memoryClockMHz = 2619;
  info->pcieLinkGen = 5;
  info->pcieLinkWidth = 16;
  info->throttleReasons = 1;
  info->temperatureC = 41;
  info->fanSpeedPercent = fanSpeed.load();
  info->powerMilliwatts = 120000;
  info->powerLimitMilliwatts = 700000;
  return 0;
}
int32_t autoBoost(uint32_t, uint32_t* enabled, uint32_t* pid) {
  if (const int32_t error = autoBoostResult.load()) return error;
  *enabled = 1;
  *pid = 4711;
  return 0;
}

const SondePlatform kPlatform = [] {
  SondePlatform p{};
  p.size = sizeof p;
  p.abiVersion = SONDE_TOOLS_ABI_VERSION;
  p.name = "fake";
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
  p.currentContext = currentContext;
  p.correlationId = correlationId;
  p.synchronizeContext = synchronizeContext;
  p.synchronizeAll = synchronizeAll;
  p.enumerate = enumerate;
  p.deviceCount = deviceCount;
  p.deviceAttribute = deviceAttribute;
  p.deviceFact = deviceFact;
  p.deviceString = deviceString;
  p.clockInfo = clockInfo;
  p.autoBoost = autoBoost;
  return p;
}();

// Around one call: the correlation id lasts from the outermost call on.
struct Nesting {
  Nesting() {
    if (calls.depth++ == 0) calls.correlation = nextCorrelation.fetch_add(1, std::memory_order_relaxed);
  }
  ~Nesting() {
    if (--calls.depth == 0) calls.correlation = 0;
  }
};

void fill(SondeApiCall& c, uint32_t domain, uint32_t cbid, int32_t* result) {
  c.size = sizeof c;
  c.domain = domain;
  c.cbid = cbid;
  c.correlationId = calls.correlation;
  c.nested = domain == SONDE_DOMAIN_DRIVER && calls.runtimeDepth != 0;
  c.context = calls.context;
  c.contextUid = calls.context != nullptr ? static_cast<Context*>(calls.context)->uid : 0;
  const auto* name = sonde::core::callbackName(domain, cbid);
  c.functionName = name != nullptr ? name->functionName : "";
  c.returnValue = result;
}

}  // namespace

int32_t call(uint32_t domain, uint32_t cbid, int32_t result, const std::function<void()>& body, const void* params,
             const char* symbol) {
  Nesting nesting;
  const volatile uint8_t* on = domain == SONDE_DOMAIN_DRIVER ? driverOn : runtimeOn;
  const bool listened = on[cbid] != 0;
  SondeApiCall c{};
  const SondeListener* l = listening();
  if (listened) {
    fill(c, domain, cbid, &result);
    c.params = params;
    c.symbolName = symbol;
    l->apiEnter(l->self, &c);
  }
  if (domain == SONDE_DOMAIN_RUNTIME) ++calls.runtimeDepth;
  if (body) body();
  if (domain == SONDE_DOMAIN_RUNTIME) --calls.runtimeDepth;
  if (listened) l->apiExit(l->self, &c);
  return result;
}

void plainCall(uint32_t domain, uint32_t cbid) {
  const volatile uint8_t* on = domain == SONDE_DOMAIN_DRIVER ? driverOn : runtimeOn;
  if (on[cbid] == 0) return;
  Nesting nesting;
  int32_t result = 0;
  SondeApiCall c{};
  fill(c, domain, cbid, &result);
  const SondeListener* l = listening();
  l->apiEnter(l->self, &c);
  l->apiExit(l->self, &c);
}

void callHeardBy(const std::atomic<const Hearer*>& listener, uint32_t domain, uint32_t cbid) {
  Nesting nesting;
  int32_t result = 0;
  SondeApiCall c{};
  fill(c, domain, cbid, &result);
  const Hearer* l = listener.load(std::memory_order_acquire);
  l->apiEnter(&c);
  l->apiExit(&c);
}

SondeHandle createContext(uint32_t device) {
  State& s = state();
  auto* c = new Context{};
  {
    std::lock_guard lock(s.mutex);
    c->uid = s.nextContext++;
    c->device = device;
    s.contexts[c] = c;
    s.everything.push_back(c);
  }
  emit(contextEvent(c, SONDE_RESOURCE_CONTEXT_CREATED));
  setCurrent(c);
  return c;
}

void destroyContext(SondeHandle context) {
  Context* c = find(context);
  emit(contextEvent(c, SONDE_RESOURCE_CONTEXT_DESTROY_STARTING));
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.contexts.erase(context);
  if (calls.context == context) calls.context = nullptr;
}

void setCurrent(SondeHandle context) { calls.context = context; }

SondeHandle createStream(SondeHandle context, bool nonBlocking, int32_t priority) {
  State& s = state();
  auto* c = static_cast<Context*>(context);
  auto* stream = new Stream{c, 0, nonBlocking ? 2u : 0u, priority};
  {
    std::lock_guard lock(s.mutex);
    stream->id = c->nextStream++;
    s.streams[stream] = stream;
    s.everything.push_back(stream);
  }
  emit(streamEvent(stream, SONDE_RESOURCE_STREAM_CREATED));
  return stream;
}

void destroyStream(SondeHandle stream) {
  emit(streamEvent(static_cast<Stream*>(stream), SONDE_RESOURCE_STREAM_DESTROY_STARTING));
  std::lock_guard lock(state().mutex);
  state().streams.erase(stream);
}

SondeHandle loadModule(SondeHandle context, const void* image, size_t bytes) {
  State& s = state();
  auto* module = new Module{static_cast<Context*>(context), 0, image, bytes};
  {
    std::lock_guard lock(s.mutex);
    module->id = s.nextModule++;
    s.modules[module] = module;
    s.everything.push_back(module);
  }
  emit(moduleEvent(module, SONDE_RESOURCE_MODULE_LOADED));
  return module;
}

void unloadModule(SondeHandle module) {
  emit(moduleEvent(static_cast<Module*>(module), SONDE_RESOURCE_MODULE_UNLOAD_STARTING));
  std::lock_guard lock(state().mutex);
  state().modules.erase(module);
}

void useFunction(SondeHandle context, uint32_t moduleId, uint32_t functionId, const char* name) {
  SondeResource r = contextEvent(static_cast<Context*>(context), SONDE_RESOURCE_FUNCTION_LOADED);
  r.id = functionId;
  r.moduleId = moduleId;
  r.functionIndex = functionId * 10;
  r.name = name;
  emit(r);
}

void enqueue(SondeHandle context, SondeHandle stream, SondeWorkKind kind, const std::function<void(SondeWork&)>& fill) {
  State& s = state();
  if ((interestBits.load() & interestOf(kind)) == 0) return;
  auto* c = static_cast<Context*>(context);
  SondeWork work{};
  work.size = sizeof work;
  work.kind = kind;
  work.correlationId = calls.correlation;
  work.deviceId = c->device;
  work.contextUid = c->uid;
  work.context = c;
  work.streamId = stream != nullptr ? static_cast<Stream*>(stream)->id : kNullStream;
  work.queued = work.submitted = now();
  work.grid[0] = work.grid[1] = work.grid[2] = 1;
  work.block[0] = work.block[1] = work.block[2] = 1;
  if (kind == SONDE_WORK_KERNEL) work.name = "kernel";
  if (fill) fill(work);
  if (const SondeListener* l = listening()) l->workEnqueued(l->self, &work);
  std::string name = work.name != nullptr ? work.name : "";
  std::lock_guard lock(s.mutex);
  if (!s.workerStarted) {
    s.workerStarted = true;
    std::thread(worker).detach();
  }
  s.work.emplace_back(work, std::move(name));
  s.changed.notify_all();
}

void holdWork() {
  std::lock_guard lock(state().mutex);
  state().held = true;
}
void releaseWork() {
  std::lock_guard lock(state().mutex);
  state().held = false;
  state().changed.notify_all();
}
void doHeldWork() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  while (!s.work.empty()) doOldest(s, lock);
}
void waitWork() {
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return s.work.empty() && !s.busy; });
}

void emit(const SondeResource& r) {
  const bool memory = r.event == SONDE_RESOURCE_DEVICE_MEMORY;
  if ((interestBits.load() & (memory ? SONDE_INTEREST_MEMORY : SONDE_INTEREST_RESOURCE)) == 0) return;
  if (const SondeListener* l = listening()) l->resource(l->self, &r);
}
void emit(const SondeSync& sync) {
  if ((interestBits.load() & SONDE_INTEREST_SYNC) == 0) return;
  if (const SondeListener* l = listening()) l->synchronized(l->self, &sync);
}
void emit(const SondeOverhead& overhead) {
  if ((interestBits.load() & SONDE_INTEREST_OVERHEAD) == 0) return;
  if (const SondeListener* l = listening()) l->overhead(l->self, &overhead);
}
void failContext(SondeHandle context, int32_t error, const char* message) {
  if (const SondeListener* l = listening()) {
    l->contextFailed(l->self, context, static_cast<Context*>(context)->uid, error, message);
  }
}

uint64_t interest() { return interestBits.load(); }
uint32_t lastCorrelation() { return nextCorrelation.load() - 1; }
uint32_t synchronizations() { return syncCount.load(); }
uint32_t clockQueriesSoFar() { return clockQueries.load(); }
void setAutoBoostResult(int32_t result) { autoBoostResult = result; }
void setDeviceCount(uint32_t count) { state().devices = count; }
void setFanSpeed(uint32_t percent) { fanSpeed = percent; }

}  // namespace fake

extern "C" FAKE_API const SondePlatform* sondeToolsGetPlatform(uint32_t abiVersion) {
  return abiVersion == SONDE_TOOLS_ABI_VERSION ? &fake::kPlatform : nullptr;
}
