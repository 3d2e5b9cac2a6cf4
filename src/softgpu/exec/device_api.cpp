// SPDX-License-Identifier: Apache-2.0
//
// The run time that kernels call for launches, streams, events and memory on
// the device. Compilers know each function under two names: cuda… and
// __cudaCDP2…. Threads call one after the other, lowest first.
#include <deque>
#include <string>

#include "softgpu/exec/cta.h"
#include "softgpu/exec/device_errors.h"
#include "softgpu/exec/device_heap.h"
#include "softgpu/exec/device_launch.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/program_impl.h"
#include "softgpu/jit/codegen_tokens.h"

namespace sonde::softgpu::exec {

namespace {

using Row = uint32_t[kLanes];

// One thread's call.
struct Call {
  WarpState* warp;
  uint32_t lane;
  const Row* args;
  Row* results;
  uint32_t word = 0;  // of the next argument

  uint32_t get32() { return args[word++][lane]; }
  uint64_t get64() {
    const uint64_t low = get32();
    return low | uint64_t{get32()} << 32;
  }
  Dim3 getDim3() {
    Dim3 d;
    d.x = get32();
    d.y = get32();
    d.z = get32();
    return d;
  }
  void give64(uint64_t v) const {
    results[0][lane] = static_cast<uint32_t>(v);
    results[1][lane] = static_cast<uint32_t>(v >> 32);
  }
  Cta& cta() const { return *warp->cta; }
  DeviceLaunches* launches() const { return cta().grid->request->launches; }
  // This thread's last error.
  int32_t& error() const {
    std::vector<int32_t>& errors = cta().threadErrors;
    if (errors.empty()) errors.resize(size_t{cta().warps} * kLanes);
    return errors[warp->warpid * kLanes + lane];
  }
  int32_t fail(int32_t code) const {
    if (code) error() = code;
    return code;
  }
  // A pointer argument of the program: the thread faults where it may not write.
  template <class T>
  SONDE_DEVICE_CODE void write(uint64_t address, T value) const {
    auto* from = reinterpret_cast<const uint8_t*>(&value);
    for (size_t i = 0; i < sizeof(T); ++i)
      *static_cast<volatile uint8_t*>(resolveLane(warp, 0, address + i, 1, lane, true)) = from[i];
  }
  uint32_t kernelOf(uint64_t token) const {
    const ProgramImpl& program = *cta().grid->program;
    const auto none = static_cast<uint32_t>(program.kernels().size());
    if (token < jit::functionToken(0) || (token - jit::functionToken(0)) % 16) return none;
    const uint64_t function = (token - jit::functionToken(0)) / 16;
    return function > UINT32_MAX ? none : program.kernelOf(static_cast<uint32_t>(function));
  }
  bool isKernel(uint32_t kernel) const { return kernel < cta().grid->program->kernels().size(); }
  DeviceWork work(DeviceWork::Kind kind) const {
    DeviceWork w;
    w.kind = kind;
    w.parent = cta().block;
    w.parentBlock = {warp->ctaid[0], warp->ctaid[1], warp->ctaid[2]};
    return w;
  }
  int32_t enqueue(DeviceWork&& w, uint64_t stream) const {
    DeviceLaunches* l = launches();
    if (!l) return fail(kDeviceNotSupported);
    if (!l->isStream(stream)) return fail(kDeviceInvalidResourceHandle);
    w.stream = stream;
    w.order = cta().deviceCalls++;
    const bool kernel = w.kind == DeviceWork::Kind::kernel;
    const int32_t e = l->enqueue(std::move(w));
    if (!e && kernel && warp->counters) addCount(warp->counters, RawCounter::device_launches, 1);
    return fail(e);
  }
};

// --- launches ---

// void* GetParameterBufferV2(void* function, dim3 grid, dim3 block, unsigned shared)
uint64_t parameterBufferV2(Call& c) {
  DeviceWork w = c.work(DeviceWork::Kind::kernel);
  w.kernel = c.kernelOf(c.get64());
  w.grid = c.getDim3();
  w.block = c.getDim3();
  w.dynamicSharedBytes = c.get32();
  if (!c.launches()) return c.fail(kDeviceNotSupported), 0;
  if (!c.isKernel(w.kernel)) return c.fail(kDeviceInvalidDeviceFunction), 0;
  const uint64_t at = c.launches()->parameterBuffer(c.cta().grid->program->kernels()[w.kernel].paramBytes, &w);
  if (!at) c.fail(kDeviceMemoryAllocation);
  return at;
}

// cudaError_t LaunchDeviceV2(void* buffer, cudaStream_t stream)
int32_t launchV2(Call& c) {
  const uint64_t buffer = c.get64(), stream = c.get64();
  DeviceWork w;
  if (!c.launches()) return c.fail(kDeviceNotSupported);
  if (!c.launches()->takeBuffer(buffer, w)) return c.fail(kDeviceInvalidValue);
  return c.enqueue(std::move(w), stream);
}

// void* GetParameterBuffer(size_t alignment, size_t size)
uint64_t parameterBuffer(Call& c) {
  const uint64_t alignment = c.get64(), size = c.get64();
  if (!c.launches()) return c.fail(kDeviceNotSupported), 0;
  if (alignment > 64 || size > (1u << 20)) return c.fail(kDeviceInvalidValue), 0;
  const uint64_t at = c.launches()->parameterBuffer(size, nullptr);
  if (!at) c.fail(kDeviceMemoryAllocation);
  return at;
}

// cudaError_t LaunchDevice(void* function, void* buffer, dim3 grid, dim3 block, unsigned shared, cudaStream_t)
int32_t launchV1(Call& c) {
  DeviceWork w = c.work(DeviceWork::Kind::kernel);
  w.kernel = c.kernelOf(c.get64());
  const uint64_t buffer = c.get64();
  w.grid = c.getDim3();
  w.block = c.getDim3();
  w.dynamicSharedBytes = c.get32();
  const uint64_t stream = c.get64();
  if (!c.launches()) return c.fail(kDeviceNotSupported);
  if (!c.isKernel(w.kernel)) return c.fail(kDeviceInvalidDeviceFunction);
  const uint32_t bytes = c.cta().grid->program->kernels()[w.kernel].paramBytes;
  if (bytes && !c.launches()->readBuffer(buffer, bytes, w.params)) return c.fail(kDeviceInvalidValue);
  return c.enqueue(std::move(w), stream);
}

// The block's launches so far, of all its threads.
int32_t synchronize(Call& c) {
  DeviceLaunches* l = c.launches();
  if (!l) return c.fail(kDeviceNotSupported);
  if (l->host().depth >= l->host().syncDepth) return c.fail(kDeviceSyncDepthExceeded);
  if (l->hasWorkOf(c.cta().block)) waitForChildren(c.warp);
  return 0;
}

// --- streams and events ---

int32_t streamCreate(Call& c) {
  const uint64_t to = c.get64();
  uint64_t handle = 0;
  if (!c.launches()) return c.fail(kDeviceNotSupported);
  if (const int32_t e = c.launches()->createStream(c.get32(), handle)) return c.fail(e);
  c.write(to, handle);
  return 0;
}
int32_t streamDestroy(Call& c) {
  return c.fail(c.launches() ? c.launches()->destroyStream(c.get64()) : kDeviceNotSupported);
}
int32_t eventCreate(Call& c) {
  const uint64_t to = c.get64();
  uint64_t handle = 0;
  if (!c.launches()) return c.fail(kDeviceNotSupported);
  if (const int32_t e = c.launches()->createEvent(c.get32(), handle)) return c.fail(e);
  c.write(to, handle);
  return 0;
}
int32_t eventDestroy(Call& c) {
  return c.fail(c.launches() ? c.launches()->destroyEvent(c.get64()) : kDeviceNotSupported);
}
// Work runs in the order of the calls, which keeps every order that events ask for.
int32_t orderBy(Call& c, uint64_t event, uint64_t stream) {
  if (!c.launches()) return c.fail(kDeviceNotSupported);
  return c.fail(c.launches()->isEvent(event) && c.launches()->isStream(stream) ? 0 : kDeviceInvalidResourceHandle);
}
int32_t eventRecord(Call& c) {
  const uint64_t event = c.get64();
  return orderBy(c, event, c.get64());
}
int32_t streamWaitEvent(Call& c) {
  const uint64_t stream = c.get64();
  return orderBy(c, c.get64(), stream);
}

// --- memory ---

int32_t mallocCall(Call& c) {
  const uint64_t to = c.get64(), bytes = c.get64();
  const LaunchRequest& r = *c.cta().grid->request;
  const uint64_t at = DeviceHeap::of(r.device, r.heapBytes).allocate(bytes);
  if (!at && bytes) return c.fail(kDeviceMemoryAllocation);
  c.write(to, at);
  return 0;
}
int32_t freeCall(Call& c) {
  const uint64_t at = c.get64();
  const LaunchRequest& r = *c.cta().grid->request;
  return c.fail(!at || DeviceHeap::of(r.device, r.heapBytes).release(at) ? 0 : kDeviceInvalidValue);
}
// cudaError_t MemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
int32_t memcpyCall(Call& c) {
  DeviceWork w = c.work(DeviceWork::Kind::copy);
  w.to = c.get64();
  w.from = c.get64();
  w.bytes = c.get64();
  c.get32();
  const uint64_t stream = c.get64();
  return w.bytes ? c.enqueue(std::move(w), stream) : 0;
}
// cudaError_t MemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream)
int32_t memsetCall(Call& c) {
  DeviceWork w = c.work(DeviceWork::Kind::set);
  w.to = c.get64();
  w.value = static_cast<uint8_t>(c.get32());
  w.bytes = c.get64();
  const uint64_t stream = c.get64();
  return w.bytes ? c.enqueue(std::move(w), stream) : 0;
}

// --- questions ---

int32_t getLastError(Call& c) {
  const int32_t e = c.error();
  c.error() = 0;
  return e;
}
int32_t peekAtLastError(Call& c) { return c.error(); }
uint64_t errorName(Call& c) {
  return c.launches() ? c.launches()->text(deviceErrorName(static_cast<int32_t>(c.get32()))) : 0;
}
uint64_t errorString(Call& c) {
  return c.launches() ? c.launches()->text(deviceErrorText(static_cast<int32_t>(c.get32()))) : 0;
}
int32_t getDevice(Call& c) {
  c.write(c.get64(), static_cast<int32_t>(c.cta().grid->request->deviceOrdinal));
  return 0;
}
int32_t getDeviceCount(Call& c) {
  c.write(c.get64(), c.launches() ? c.launches()->host().deviceCount : 1);
  return 0;
}
int32_t runtimeGetVersion(Call& c) {
  c.write(c.get64(), int32_t{13000});
  return 0;
}
int32_t deviceGetAttribute(Call& c) {
  const uint64_t to = c.get64();
  const auto attribute = static_cast<int32_t>(c.get32());
  const auto device = static_cast<int32_t>(c.get32());
  DeviceLaunches* l = c.launches();
  if (!l || !l->host().deviceAttribute) return c.fail(kDeviceNotSupported);
  if (device != l->host().device) return c.fail(kDeviceInvalidDevice);
  int32_t value = 0;
  if (const int32_t e = l->host().deviceAttribute(attribute, &value)) return c.fail(e);
  c.write(to, value);
  return 0;
}
int32_t deviceGetLimit(Call& c) {
  const uint64_t to = c.get64();
  const auto limit = static_cast<int32_t>(c.get32());
  uint64_t value = 0;
  if (!c.launches() || !c.launches()->host().limit) return c.fail(kDeviceNotSupported);
  if (const int32_t e = c.launches()->host().limit(limit, &value)) return c.fail(e);
  c.write(to, value);
  return 0;
}
// cudaFuncCachePreferNone; banks of four bytes.
int32_t getCacheConfig(Call& c) {
  c.write(c.get64(), int32_t{0});
  return 0;
}
int32_t getSharedMemConfig(Call& c) {
  c.write(c.get64(), int32_t{1});
  return 0;
}
// The fields of cudaFuncAttributes that a kernel has.
int32_t funcGetAttributes(Call& c) {
  const uint64_t to = c.get64();
  const uint32_t kernel = c.kernelOf(c.get64());
  if (!c.isKernel(kernel)) return c.fail(kDeviceInvalidDeviceFunction);
  const KernelInfo& k = c.cta().grid->program->kernels()[kernel];
  c.write(to, uint64_t{k.staticSharedBytes});
  c.write(to + 8, uint64_t{k.constBytes});
  c.write(to + 16, uint64_t{k.localBytesPerThread});
  c.write(to + 24, static_cast<int32_t>(k.maxThreadsPerBlock));
  c.write(to + 28, static_cast<int32_t>(k.registersPerThread));
  c.write(to + 32, static_cast<int32_t>(k.ptxVersion));
  c.write(to + 36, static_cast<int32_t>(k.ptxTarget));
  return 0;
}
// cudaError_t Occupancy…(int* blocks, const void* function, int blockSize, size_t shared[, unsigned flags])
int32_t occupancy(Call& c) {
  const uint64_t to = c.get64();
  const uint32_t kernel = c.kernelOf(c.get64());
  const uint32_t threads = c.get32();
  const uint64_t shared = c.get64();
  const LaunchRequest& r = *c.cta().grid->request;
  if (!c.isKernel(kernel)) return c.fail(kDeviceInvalidDeviceFunction);
  if (!r.device || threads == 0) return c.fail(kDeviceInvalidValue);
  c.write(to, static_cast<int32_t>(Engine::get().occupancy(*r.program, kernel, threads, shared, *r.device)));
  return 0;
}

template <int32_t (*function)(Call&)>
uint32_t returnsError(WarpState* w, uint32_t mask, void* args, void* results) {
  for (uint32_t m = mask; m; m &= m - 1) {
    Call c{w, static_cast<uint32_t>(__builtin_ctz(m)), static_cast<const Row*>(args), static_cast<Row*>(results)};
    const int32_t value = function(c);
    c.results[0][c.lane] = static_cast<uint32_t>(value);
  }
  return mask;
}

template <uint64_t (*function)(Call&)>
uint32_t returnsPointer(WarpState* w, uint32_t mask, void* args, void* results) {
  for (uint32_t m = mask; m; m &= m - 1) {
    Call c{w, static_cast<uint32_t>(__builtin_ctz(m)), static_cast<const Row*>(args), static_cast<Row*>(results)};
    const uint64_t value = function(c);
    c.give64(value);
  }
  return mask;
}

struct Named {
  const char* name;
  WarpFunction function;
  bool perThreadStream = false;  // has a …_ptsz form: there is no other null stream on the device
};

constexpr Named kFunctions[] = {
    {"GetParameterBuffer", &returnsPointer<parameterBuffer>},
    {"GetParameterBufferV2", &returnsPointer<parameterBufferV2>},
    {"LaunchDevice", &returnsError<launchV1>, true},
    {"LaunchDeviceV2", &returnsError<launchV2>, true},
    {"DeviceSynchronize", &returnsError<synchronize>},
    {"StreamCreateWithFlags", &returnsError<streamCreate>},
    {"StreamDestroy", &returnsError<streamDestroy>},
    {"StreamWaitEvent", &returnsError<streamWaitEvent>, true},
    {"EventCreateWithFlags", &returnsError<eventCreate>},
    {"EventRecord", &returnsError<eventRecord>, true},
    {"EventRecordWithFlags", &returnsError<eventRecord>, true},
    {"EventDestroy", &returnsError<eventDestroy>},
    {"Malloc", &returnsError<mallocCall>},
    {"Free", &returnsError<freeCall>},
    {"MemcpyAsync", &returnsError<memcpyCall>, true},
    {"MemsetAsync", &returnsError<memsetCall>, true},
    {"GetLastError", &returnsError<getLastError>},
    {"PeekAtLastError", &returnsError<peekAtLastError>},
    {"GetErrorName", &returnsPointer<errorName>},
    {"GetErrorString", &returnsPointer<errorString>},
    {"GetDevice", &returnsError<getDevice>},
    {"GetDeviceCount", &returnsError<getDeviceCount>},
    {"RuntimeGetVersion", &returnsError<runtimeGetVersion>},
    {"DeviceGetAttribute", &returnsError<deviceGetAttribute>},
    {"DeviceGetLimit", &returnsError<deviceGetLimit>},
    {"DeviceGetCacheConfig", &returnsError<getCacheConfig>},
    {"DeviceGetSharedMemConfig", &returnsError<getSharedMemConfig>},
    {"FuncGetAttributes", &returnsError<funcGetAttributes>},
    {"OccupancyMaxActiveBlocksPerMultiprocessor", &returnsError<occupancy>},
    {"OccupancyMaxActiveBlocksPerMultiprocessorWithFlags", &returnsError<occupancy>},
};

struct ErrorText {
  int32_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {kDeviceInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {kDeviceMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {kDeviceInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid launch configuration"},
    {kDeviceLaunchMaxDepthExceeded, "cudaErrorLaunchMaxDepthExceeded", "launches are nested too deep"},
    {kDeviceSyncDepthExceeded, "cudaErrorSyncDepthExceeded", "synchronisation below cudaLimitDevRuntimeSyncDepth"},
    {kDeviceLaunchPendingCountExceeded, "cudaErrorLaunchPendingCountExceeded",
     "more work than cudaLimitDevRuntimePendingLaunchCount is waiting"},
    {kDeviceInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "not a kernel"},
    {kDeviceInvalidDevice, "cudaErrorInvalidDevice", "invalid device number"},
    {kDeviceInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid stream or event"},
    {kDeviceNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

}  // namespace

const char* deviceErrorName(int32_t error) {
  for (const ErrorText& e : kErrors)
    if (e.error == error) return e.name;
  return "unrecognized error code";
}

const char* deviceErrorText(int32_t error) {
  for (const ErrorText& e : kErrors)
    if (e.error == error) return e.text;
  return "unrecognized error code";
}

std::span<const jit::RuntimeSymbol> launchFunctions() {
  static const std::vector<jit::RuntimeSymbol>* symbols = [] {
    static auto* names = new std::deque<std::string>();  // reachable to leak checkers
    auto* v = new std::vector<jit::RuntimeSymbol>();
    const auto add = [&](std::string name, WarpFunction function) {
      v->push_back({names->emplace_back("sonde_fn_" + std::move(name)).c_str(), reinterpret_cast<void*>(function)});
    };
    for (const char* prefix : {"cuda", "__cudaCDP2"})
      for (const Named& f : kFunctions) {
        add(std::string(prefix) + f.name, f.function);
        if (f.perThreadStream) add(std::string(prefix) + f.name + "_ptsz", f.function);
      }
    // What nvcc's header calls where it avoids a warning.
    add("__cudaDeviceSynchronizeDeprecationAvoidance", &returnsError<synchronize>);
    return v;
  }();
  return *symbols;
}

}  // namespace sonde::softgpu::exec
